//! Messages and pictures, few of them and small.

use super::programs::Place;

pub const TABLES: &str = "data/crisismmd_datasplit_all/task_informative_text_img_train.tsv \
    data/crisismmd_datasplit_all/task_informative_text_img_dev.tsv \
    data/crisismmd_datasplit_all/task_informative_text_img_test.tsv";

/// A data set of so many messages.
pub fn messages(count: usize) -> Place {
    let place = Place::new();
    place.step(&format!("crisis generate --tweets {count} --out data"));
    place.write("best.json", r#"{"params": {"lr": 0.004, "dropout": 0.1}, "values": {}}"#);
    place
}

pub fn clean(place: &Place) {
    place.step(&format!("crisis clean-text {TABLES} --vectors data/glove.twitter.27B.200d.txt --out texts"));
}

fn accuracy(place: &Place, table: &str) -> f64 {
    let text = String::from_utf8(place.bytes(table)).expect("text");
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let test: Vec<&Vec<&str>> = rows.iter().filter(|row| row[1] == "test").collect();
    let right = test.iter().filter(|row| (row[3].parse::<f64>().expect("a chance") > 0.5) == (row[2] == "informative"));
    right.count() as f64 / test.len() as f64
}

#[test]
fn texts_and_pictures_are_told_apart_far_above_chance_and_fusion_is_no_worse_than_the_worse_of_both() {
    let place = messages(420);
    clean(&place);
    place.step("crisis train-text texts --best best.json --epochs 5 --threads 2 --model text --history text.json");
    place.step("crisis infer-text texts --model text --out text.csv");
    let text = accuracy(&place, "text.csv");
    assert!(text > 0.7, "accuracy {text}; one half is chance");
    for part in 1..=2 {
        place.step(&format!(
            "crisis resize {TABLES} --images data/data_image --part {part} --of 2 --out squares-{part}"
        ));
    }
    let pictures = "squares-1 squares-2";
    place.step(&format!(
        "crisis train-image {pictures} --best best.json --epochs 8 --threads 2 --model image --history image.json"
    ));
    place.step(&format!("crisis infer-image {pictures} --model image --out images.csv"));
    let image = accuracy(&place, "images.csv");
    assert!(image > 0.6, "accuracy {image}; one half is chance");
    place.step(&format!(
        "crisis fuse {TABLES} --text text.csv --images images.csv --out fused.csv --weights weights.json"
    ));
    place.step(
        "crisis evaluate --fused fused.csv --weights weights.json --text-history text.json --image-history image.json \
         --images data/data_image --out report",
    );
    let metrics = place.json("report/metrics.json");
    let number = |name: &str| metrics[name].as_f64().expect("a number");
    assert_eq!((number("text_accuracy"), number("image_accuracy")), (text, image));
    assert!(number("fused_accuracy") >= number("text_accuracy").min(number("image_accuracy")), "{metrics}");
    let page = String::from_utf8(place.bytes("report/report.html")).expect("text");
    assert_eq!(page.matches("<svg").count(), 5, "three matrices and two charts");
}

#[test]
fn a_search_for_times_a_rate_comes_to_the_same_as_one_for_rates() {
    let place = messages(70);
    clean(&place);
    place.step("crisis tune-text texts --lr 0.001 --times 2 --dropout 0.1 --threads 1 --report trial.json");
    let trial = place.json("trial.json");
    assert_eq!(trial["params"], serde_json::json!({"dropout": 0.1, "lr": 0.002}));
    let train = "crisis train-text texts --epochs 1 --threads 1 --history history.json";
    place.step(&format!("{train} --best trial.json --model rate"));
    place.write("times.json", r#"{"params": {"times": 2, "dropout": 0.1}, "values": {}}"#);
    place.step(&format!("{train} --best times.json --lr 0.001 --model times"));
    assert!(place.bytes("rate") == place.bytes("times"), "the models differ");
    let said = place.refused(&format!("{train} --best times.json --model none"));
    assert!(said.contains("the best trial says how many times the learning rate: --lr says which"), "{said}");
}

#[test]
fn killed_and_started_again_the_reader_is_the_same_bit_for_bit() {
    let place = messages(210);
    clean(&place);
    let train = "crisis train-text texts --best best.json --epochs 3 --threads 2";
    place.step(&format!("{train} --model whole --history whole.json"));
    let parts = format!("{train} --checkpoint state --model parts --history parts.json");
    place.killed_after(1, &parts);
    place.step(&parts);
    assert_eq!(place.json("whole.json"), place.json("parts.json"));
    assert!(place.bytes("whole") == place.bytes("parts"), "the models differ");
}

#[test]
fn the_data_set_is_laid_out_as_published_and_repeats_bit_for_bit() {
    let (one, other) = (messages(28), messages(28));
    let table = "data/crisismmd_datasplit_all/task_informative_text_img_dev.tsv";
    assert_eq!(one.bytes(table), other.bytes(table));
    let text = String::from_utf8(one.bytes(table)).expect("text");
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    assert_eq!(head[..5], ["event_name", "tweet_id", "image_id", "tweet_text", "image"]);
    assert_eq!(head[5..], ["label", "label_text", "label_image", "label_text_image"]);
    let first = lines.next().expect("a message");
    let picture = format!("data/{}", first[4]);
    assert!(picture.starts_with("data/data_image/") && picture.ends_with(".jpg"), "{picture}");
    assert!(one.bytes(&picture) == other.bytes(&picture), "the pictures differ");
    let archived = std::process::Command::new("tar")
        .args(["-C", "data", "-cf", "data_image.tar", "data_image"])
        .current_dir(one.path())
        .status();
    assert!(archived.expect("tar starts").success());
    one.step(&format!("crisis resize {TABLES} --images data_image.tar --out from-archive"));
    one.step(&format!("crisis resize {TABLES} --images data/data_image --out from-folder"));
    assert!(one.bytes("from-archive") == one.bytes("from-folder"), "an archive is not as good as a folder");
}
