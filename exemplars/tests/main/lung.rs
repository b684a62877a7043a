//! X-rays, few of them and small.

use super::programs::Place;

/// Pairs of 40 X-rays and masks, ready to be learnt from.
pub fn pairs() -> Place {
    let place = Place::new();
    place.step("lung generate --count 40 --size 80 --out data");
    let folders = "--images data/CXR_png --masks data/masks";
    place.step(&format!("lung split {folders} --out split.csv"));
    place.step(&format!("lung preprocess --split split.csv {folders} --out clean"));
    place.write("best.json", r#"{"params": {"lr": 0.004}, "values": {}}"#);
    place
}

pub const TRAIN: &str = "lung train clean --best best.json --batch 8 --threads 2";

#[test]
fn lungs_are_found_where_they_are() {
    let place = pairs();
    place.step(&format!("{TRAIN} --epochs 6 --model model --history history.json"));
    place.step("lung infer clean --model model --out masks --masks drawn");
    place.step("lung evaluate clean --drawn masks --history history.json --out report");
    let dice = place.json("report/metrics.json")["dice"].as_f64().expect("a number");
    assert!(dice > 0.8, "Dice {dice}");
    let drawn = std::fs::read_dir(place.path().join("drawn")).expect("a folder").count();
    assert_eq!(drawn, 8, "two in ten are held out");
    let page = String::from_utf8(place.bytes("report/report.html")).expect("text");
    assert_eq!(page.matches("<img").count(), 16, "each X-ray and its masks");
}

#[test]
fn killed_and_started_again_the_network_is_the_same_bit_for_bit() {
    let place = pairs();
    place.step(&format!("{TRAIN} --epochs 3 --model whole --history whole.json"));
    let train = format!("{TRAIN} --epochs 3 --checkpoint state --model parts --history parts.json");
    place.killed_after(1, &train);
    place.step(&train);
    assert!(place.bytes("whole") == place.bytes("parts"), "the models differ");
}

#[test]
fn training_pairs_become_three_and_others_stay_one() {
    let place = pairs();
    let arrays = tulpar_exemplars::arrays::Arrays::load(&place.path().join("clean")).expect("arrays");
    let (_, splits) = arrays.bytes("splits").expect("splits");
    let count = |split| splits.iter().filter(|at| **at == split).count();
    assert_eq!([count(0), count(1), count(2)], [28 * 3, 4, 8]);
}
