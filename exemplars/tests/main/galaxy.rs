//! Galaxies, few of them and small.

use super::programs::Place;

/// Pictures of 160 galaxies, ready to be learnt from.
pub fn pictures() -> Place {
    let place = Place::new();
    place.step("galaxy generate --count 160 --size 80 --out data");
    let images = "--images data/images_training_rev1";
    place.step(&format!("galaxy dataset --labels data/training_solutions_rev1.csv {images} --out dataset.csv"));
    for part in 1..=2 {
        place
            .step(&format!("galaxy preprocess --dataset dataset.csv {images} --part {part} --of 2 --out clean-{part}"));
    }
    place.step("galaxy augment clean-1 clean-2 --out more");
    place.write("best.json", r#"{"params": {"lr": 0.002, "transferred": 0}, "values": {}}"#);
    place
}

pub const TRAIN: &str = "galaxy train clean-1 clean-2 more --best best.json --batch 16 --threads 2";

#[test]
fn five_classes_are_learnt_far_above_chance() {
    let place = pictures();
    let said = place.step(&format!("{TRAIN} --epochs 8 --model model --history history.json"));
    assert_eq!(said.lines().count(), 8, "a line an epoch: {said}");
    place.step("galaxy infer clean-1 clean-2 --model model --out predictions.csv");
    place.step("galaxy evaluate --predictions predictions.csv --history history.json --out report");
    let metrics = place.json("report/metrics.json");
    let accuracy = metrics["accuracy"].as_f64().expect("a number");
    assert!(accuracy > 0.4, "accuracy {accuracy}; one in five is chance");
    let page = String::from_utf8(place.bytes("report/report.html")).expect("text");
    assert_eq!(page.matches("<svg").count(), 3, "a matrix and two charts");
}

#[test]
fn killed_and_started_again_the_model_is_the_same_bit_for_bit() {
    let place = pictures();
    place.step(&format!("{TRAIN} --epochs 3 --model whole --history whole.json"));
    let train = format!("{TRAIN} --epochs 3 --checkpoint state --model parts --history parts.json");
    place.killed_after(1, &train);
    assert!(!place.path().join("parts").exists());
    place.killed_after(2, &train);
    place.step(&train);
    assert_eq!(place.json("whole.json"), place.json("parts.json"));
    assert!(place.bytes("whole") == place.bytes("parts"), "the models differ");
    let other = place.refused(&format!("{TRAIN} --epochs 9 --checkpoint state --model x --history y"));
    assert!(other.contains("remove it to learn"), "{other}");
}

#[test]
fn data_sets_repeat_bit_for_bit_and_archives_are_as_good_as_folders() {
    let (one, other) = (pictures(), pictures());
    for name in ["dataset.csv", "clean-1", "clean-2", "more"] {
        assert!(one.bytes(name) == other.bytes(name), "{name} differs");
    }
    let archived = std::process::Command::new("tar")
        .args(["-C", "data", "-cf", "images.tar", "images_training_rev1"])
        .current_dir(one.path())
        .status();
    assert!(archived.expect("tar starts").success());
    one.step("galaxy preprocess --dataset dataset.csv --images images.tar --part 2 --of 2 --out again");
    assert!(one.bytes("again") == one.bytes("clean-2"), "from an archive it is different");
}

#[test]
fn a_trial_says_its_epochs_and_its_result_and_the_best_of_several_is_chosen() {
    let place = pictures();
    for (number, transferred) in [(1, 0), (2, 2)] {
        let said = place.step(&format!(
            "galaxy tune clean-1 clean-2 --lr 0.002 --transferred {transferred} --batch 16 --threads 1 --report trial-{number}"
        ));
        let lines: Vec<serde_json::Value> =
            said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["epoch"], 1);
        assert_eq!(lines[0]["loss"], lines[1]["loss"]);
        assert_eq!(place.json(&format!("trial-{number}"))["values"]["loss"], lines[1]["loss"]);
    }
    place.step("galaxy choose trial-1 trial-2 --out best.json");
    let loss = |name| place.json(name)["values"]["loss"].as_f64().expect("a number");
    assert_eq!(loss("best.json"), loss("trial-1").min(loss("trial-2")));
}

#[test]
fn what_does_not_fit_is_said_in_words() {
    let place = Place::new();
    place.write("labels.csv", "GalaxyID,Class1.1\n1,0.5\n");
    std::fs::create_dir(place.path().join("images")).expect("a folder");
    let said = place.refused("galaxy dataset --labels labels.csv --images images --out x");
    assert!(said.contains("labels.csv is not what was expected: it has no column Class1.2"), "{said}");
    let said = place.refused("galaxy preprocess --dataset x --images images --part 7 --of 6 --out y");
    assert!(said.contains("there is no part 7 of 6"), "{said}");
}
