//! A hairpin, simulated for a moment.

use super::programs::Place;

/// Two simulations from the folded hairpin, and their contact maps.
pub fn simulated() -> Place {
    let place = Place::new();
    place.step("deepdrivemd generate --out data");
    for number in 1..=2 {
        place.step(&format!(
            "deepdrivemd simulate --start data/start.xyz --number {number} --frames 40 --steps 40 --out frames-{number}"
        ));
    }
    place.step("deepdrivemd aggregate frames-1 frames-2 --out maps --all all");
    place
}

pub const TRAIN: &str = "deepdrivemd train maps --batch 16 --lr 0.01 --threads 2";

#[test]
fn outliers_are_found_and_simulated_from() {
    let place = simulated();
    place.step(&format!("{TRAIN} --epochs 20 --model model --history history.json"));
    let history = place.json("history.json");
    let loss = |at: usize| history[at]["loss"].as_f64().expect("a number");
    assert!(loss(19) < 0.7 * loss(0), "nothing was learnt: {} and then {}", loss(0), loss(19));
    let files = "--model model --count 3 --out outliers --latent latent.csv";
    place.step(&format!("deepdrivemd infer all {files}"));
    let outliers = String::from_utf8(place.bytes("outliers")).expect("text");
    assert_eq!(outliers.lines().filter(|line| line.contains("loneliness=")).count(), 3);
    assert_eq!(String::from_utf8(place.bytes("latent.csv")).expect("text").lines().count(), 81);
    place.step("deepdrivemd simulate --start data/start.xyz outliers --iteration 2 --frames 5 --steps 20 --out next");
    place.step("deepdrivemd aggregate all next --out more --all everything");
    place.step("deepdrivemd simulate --start data/start.xyz --frames 80 --steps 20 --out plain");
    place.step(
        "deepdrivemd report --driven everything --plain plain --latent latent.csv --out page --json numbers.json",
    );
    let numbers = place.json("numbers.json");
    assert_eq!((numbers["frames"].as_u64(), numbers["driven_cells"].as_array().map(Vec::len)), (Some(85), Some(2)));
    assert_eq!(String::from_utf8(place.bytes("page")).expect("text").matches("<svg").count(), 4);
}

#[test]
fn a_simulation_goes_on_from_its_checkpoint_bit_for_bit() {
    let place = simulated();
    let simulate = "deepdrivemd simulate --start data/start.xyz --steps 20";
    place.step(&format!("{simulate} --frames 60 --out whole"));
    // A shorter one leaves the checkpoint of frame 40, as a longer one does that is killed behind it.
    place.step(&format!("{simulate} --frames 45 --checkpoint state --out short"));
    place.step(&format!("{simulate} --frames 60 --checkpoint state --out parts"));
    assert!(place.bytes("whole") == place.bytes("parts"), "the trajectories differ");
}

#[test]
fn killed_and_started_again_the_autoencoder_is_the_same_bit_for_bit() {
    let place = simulated();
    place.step(&format!("{TRAIN} --epochs 4 --model whole"));
    let parts = format!("{TRAIN} --epochs 4 --checkpoint state --model parts");
    place.killed_after(2, &parts);
    place.step(&parts);
    assert!(place.bytes("whole") == place.bytes("parts"), "the models differ");
}
