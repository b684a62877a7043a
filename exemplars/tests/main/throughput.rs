//! The two templates for many tasks: one with few and small pictures, one in virtual time at its full size.

use super::programs::{PROGRAM, Place};
use super::workflows::{all_reused, run, tulpar};
use std::fs::File;
use std::path::Path;

/// A template in a folder of its own.
pub fn template(name: &str) -> Place {
    let place = Place::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("throughput").join(name);
    std::fs::copy(from, place.path().join(name)).expect("a workflow");
    place
}

#[test]
fn cats_and_dogs_are_told_apart_by_one_network_and_then_by_several() {
    let Some(tulpar) = tulpar() else { return };
    let place = template("cats-and-dogs.yaml");
    std::fs::create_dir(place.path().join("bin")).expect("a folder");
    std::fs::copy(PROGRAM, place.path().join("bin/tulpar-exemplars")).expect("the program");
    place.step("pets generate --count 60 --out train");
    let small = "run cats-and-dogs.yaml -p members=2 -p trials=2 -p epochs=1 -p trial_epochs=1";
    let one = run(&place, &tulpar, &format!("{small} --until one"));
    assert!(one.contains("cats-and-dogs-1: done: 2 of 2 tasks, in "), "{one}");
    let all = run(&place, &tulpar, small);
    assert!(all.contains("cats-and-dogs-2: done: 9 of 9 tasks, 2 reused, in "), "{all}");
    let metrics = place.json("results/metrics.json");
    assert_eq!(metrics["members"].as_array().map(Vec::len), Some(2), "{metrics}");
    assert!(place.bytes("results/report.html").starts_with(b"<!doctype html>"));
    assert!(place.bytes("results/model-1.safetensors") != place.bytes("results/model-2.safetensors"));
    all_reused(&run(&place, &tulpar, small), "cats-and-dogs-3", 9);
}

/// Eighteen million articles as files that are as large as they should be, and empty.
#[test]
fn the_campaign_of_eighteen_million_articles_comes_to_the_numbers_of_its_readme() {
    let Some(tulpar) = tulpar() else { return };
    let place = template("articles.yaml");
    let readme = include_str!("../../throughput/README.md");
    let commands: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("    tulpar simulate ")).collect();
    let [command] = commands.as_slice() else { panic!("one command was expected: {commands:?}") };
    let large = |name: String, size: u64| {
        let file = File::create(place.path().join(name)).and_then(|file| file.set_len(size));
        file.expect("a file with nothing in it");
    };
    large("model.gguf".into(), 8_000_000_000);
    std::fs::create_dir(place.path().join("articles")).expect("a folder");
    for shard in 1..=30_000 {
        large(format!("articles/{shard:05}.tar"), 600_000_000);
    }
    let simulated = std::process::Command::new(&tulpar)
        .arg("simulate")
        .args(command.split_whitespace())
        .current_dir(place.path())
        .output()
        .expect("it starts");
    assert!(simulated.status.success(), "{}", String::from_utf8_lossy(&simulated.stderr));
    let said = String::from_utf8(simulated.stdout).expect("text");
    assert!(said.contains("30031 of 30031 done"), "{said}");
    // An hour less would be nine days and two: what a link does that everything has to cross.
    assert!(said.contains("(9 d 3 h)") && readme.contains("| 9 days 3 hours |"), "{said}");
    let attempts = said.lines().find(|line| line.starts_with("attempts")).expect("a line about attempts");
    let number = |word: &str| word.trim_matches(|letter: char| !letter.is_ascii_digit()).parse::<u64>().ok();
    for count in attempts.split_whitespace().filter_map(number).take(2) {
        let written = format!("{},{:03} ", count / 1000, count % 1000);
        assert!(readme.contains(&written), "the README does not say {written:?}: {attempts}");
    }
}
