//! The same networks on a graphics card, or on what plays one: the CPU says what must come out. Only in programs that were built
//! for it (`--features wgpu`).

use super::programs::Place;
use super::{crisis, deepdrivemd, galaxy, lung};

/// Cards and CPUs add numbers in another order.
const NEAR: f64 = 1e-3;

/// Trains on the card, and sees what was learnt.
fn learns(place: &Place, train: &str, epochs: usize) {
    place.step(&format!("{train} --device gpu --epochs {epochs} --model by-card --history by-card.json"));
    let history = place.json("by-card.json");
    let loss = |at: usize| history[at]["training_loss"].as_f64().expect("a number");
    assert!(loss(epochs - 1) < 0.95 * loss(0), "nothing was learnt: {history}");
}

/// Both devices must say the same of the same model, number by number.
fn agree(place: &Place, infer: &str, out: &str) {
    let table = |device: &str| {
        place.step(&format!("{infer} --device {device}"));
        String::from_utf8(place.bytes(out)).expect("text")
    };
    let (cpu, card) = (table("cpu"), table("gpu"));
    assert_eq!(cpu.lines().count(), card.lines().count());
    let mut numbers = 0;
    for (cpu, card) in cpu.lines().zip(card.lines()).flat_map(|(cpu, card)| cpu.split(',').zip(card.split(','))) {
        match (cpu.parse::<f64>(), card.parse::<f64>()) {
            (Ok(cpu), Ok(card)) => {
                assert!((cpu - card).abs() <= NEAR * cpu.abs().max(1.0), "{cpu} on the CPU, {card} on the card");
                numbers += 1;
            }
            _ => assert_eq!(cpu, card),
        }
    }
    assert!(numbers > 10, "only {numbers} numbers were compared");
}

#[test]
fn vgg_learns_on_a_card_and_says_there_what_it_says_on_the_cpu() {
    let place = galaxy::pictures();
    learns(&place, galaxy::TRAIN, 4);
    agree(&place, "galaxy infer clean-1 clean-2 --model by-card --out predictions.csv", "predictions.csv");
}

#[test]
fn unet_learns_on_a_card() {
    let place = lung::pairs();
    learns(&place, lung::TRAIN, 3);
    let dice = |device: &str| {
        place.step(&format!(
            "lung infer clean --model by-card --device {device} --out masks-{device} --masks drawn-{device}"
        ));
        place.step(&format!("lung evaluate clean --drawn masks-{device} --history by-card.json --out report-{device}"));
        place.json(&format!("report-{device}/metrics.json"))["dice"].as_f64().expect("a number")
    };
    let (cpu, card) = (dice("cpu"), dice("gpu"));
    assert!((cpu - card).abs() < NEAR, "Dice {cpu} on the CPU, {card} on the card");
}

#[test]
fn bilstm_and_resnet_learn_on_a_card_and_say_there_what_they_say_on_the_cpu() {
    let place = crisis::messages(140);
    crisis::clean(&place);
    learns(&place, "crisis train-text texts --best best.json --threads 2", 6);
    agree(&place, "crisis infer-text texts --model by-card --out text.csv", "text.csv");
    place.step(&format!("crisis resize {} --images data/data_image --part 1 --of 1 --out squares", crisis::TABLES));
    learns(&place, "crisis train-image squares --best best.json --threads 2", 4);
    agree(&place, "crisis infer-image squares --model by-card --out images.csv", "images.csv");
}

#[test]
fn an_autoencoder_learns_on_a_card_and_says_there_what_it_says_on_the_cpu() {
    let place = deepdrivemd::simulated();
    learns(&place, deepdrivemd::TRAIN, 20);
    agree(&place, "deepdrivemd infer all --model by-card --count 3 --out outliers --latent latent.csv", "latent.csv");
}
