//! The published networks at their full size, for a few steps on a handful of pictures: minutes on two cores and gigabytes of
//! memory, so `./test --full` starts them and `./test` does not.

use super::programs::Place;

/// Set where the long campaigns are wanted.
const CAMPAIGN: &str = "TULPAR_CAMPAIGN";

/// What the network came to: its loss on what it learns from falls from the first epoch to the last.
fn learns(place: &Place, words: &str) {
    place.step(&format!("{words} --scale full --threads 2 --model model --history history.json"));
    let epochs = place.json("history.json");
    let losses: Vec<f64> = epochs
        .as_array()
        .expect("epochs")
        .iter()
        .map(|epoch| epoch["training_loss"].as_f64().expect("a number"))
        .collect();
    println!("{words}: {losses:?}");
    assert!(losses.iter().all(|loss| loss.is_finite()), "{losses:?}");
    assert!(losses.last() < losses.first(), "{losses:?}");
}

#[test]
fn vgg_16_as_published_learns() {
    if std::env::var_os(CAMPAIGN).is_none() {
        return;
    }
    let place = Place::new();
    place.step("galaxy generate --count 12 --size 424 --out data");
    let images = "--images data/images_training_rev1";
    place.step(&format!("galaxy dataset --labels data/training_solutions_rev1.csv {images} --out dataset.csv"));
    place.step(&format!("galaxy preprocess --dataset dataset.csv {images} --scale full --out clean"));
    place.write("best.json", r#"{"params": {"lr": 0.0001, "transferred": 0}, "values": {}}"#);
    learns(&place, "galaxy train clean --best best.json --batch 4 --epochs 3");
}

#[test]
fn unet_as_published_learns() {
    if std::env::var_os(CAMPAIGN).is_none() {
        return;
    }
    let place = Place::new();
    place.step("lung generate --count 6 --size 512 --out data");
    let folders = "--images data/CXR_png --masks data/masks";
    place.step(&format!("lung split {folders} --out split.csv"));
    place.step(&format!("lung preprocess --split split.csv {folders} --scale full --new 0 --out clean"));
    place.write("best.json", r#"{"params": {"lr": 0.001}, "values": {}}"#);
    learns(&place, "lung train clean --best best.json --batch 2 --epochs 3");
}

#[test]
fn resnet_50_and_the_bilstm_as_published_learn() {
    if std::env::var_os(CAMPAIGN).is_none() {
        return;
    }
    let place = Place::new();
    place.step("crisis generate --tweets 28 --out data");
    let tables = ["train", "dev", "test"]
        .map(|split| format!("data/crisismmd_datasplit_all/task_informative_text_img_{split}.tsv"))
        .join(" ");
    place.step(&format!("crisis resize {tables} --images data/data_image --scale full --out squares"));
    place.step(&format!("crisis clean-text {tables} --vectors data/glove.twitter.27B.200d.txt --out texts"));
    place.write("best.json", r#"{"params": {"lr": 0.001, "dropout": 0.2}, "values": {}}"#);
    learns(&place, "crisis train-text texts --best best.json --epochs 3");
    learns(&place, "crisis train-image squares --best best.json --epochs 3");
}
