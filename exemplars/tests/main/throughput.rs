//! The two templates for many tasks: one with few and small pictures, one in virtual time at its full size.

use super::programs::{PROGRAM, Place};
use super::workflows::{all_reused, killed_when, run, tulpar, wait_for};
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

/// In place of the program that infers: goes through the articles of a shard that are not on the list. Having done two of the
/// first shard it waits until it may go on.
const INFER: &str = "\
# SHARD --model MODEL --done LIST --out ANSWERS
touch \"$5\"
for article in $(tar -tf \"$1\"); do
  if grep -qx \"$article\" \"$5\"; then continue; fi
  echo \"$article\" >> FOLDER/inferred
  echo \"$article\" >> \"$5\"
  if [ \"$article\" = 1-2 ]; then : > FOLDER/two; while [ ! -e FOLDER/go ]; do sleep 0.05; done; fi
done
cp \"$5\" \"$7\"
";

#[test]
fn a_campaign_that_is_killed_infers_every_article_once() {
    let Some(tulpar) = tulpar() else { return };
    let place = template("articles.yaml");
    let folder = place.path().display().to_string();
    place.write("infer-articles", &INFER.replace("FOLDER", &folder));
    let text = String::from_utf8(place.bytes("articles.yaml")).expect("text");
    place.write("articles.yaml", &text.replace("      infer-articles ", &format!("      sh {folder}/infer-articles ")));
    place.write("catalogue.yaml", "sites:\n  large: {groups: [{nodes: 1, cpus: 12, memory: 64 GB, disk: 64 GB}]}\n");
    place.write("model.gguf", "a model\n");
    std::fs::create_dir(place.path().join("articles")).expect("a folder");
    for shard in 1..=3 {
        let names: Vec<String> = (1..=5).map(|article| format!("{shard}-{article}")).collect();
        names.iter().for_each(|name| place.write(name, "words\n"));
        let tar = std::process::Command::new("tar")
            .args(["-cf", &format!("articles/{shard}.tar")])
            .args(&names)
            .current_dir(place.path())
            .status();
        assert!(tar.expect("tar starts").success());
    }
    let killed = killed_when(&place, &tulpar, "run articles.yaml --site large", |_| {
        wait_for("two articles are done", || place.path().join("two").exists())
    });
    assert!(killed, "it ended first");
    place.write("go", "");
    run(&place, &tulpar, "resume");
    assert_eq!(place.bytes("results/articles.txt"), b"15\n");
    let inferred = String::from_utf8(place.bytes("inferred")).expect("text");
    let mut inferred: Vec<&str> = inferred.lines().collect();
    inferred.sort_unstable();
    let all: Vec<String> = (1..=3).flat_map(|shard| (1..=5).map(move |number| format!("{shard}-{number}"))).collect();
    assert_eq!(inferred, all, "each once, though the first shard was killed after two");
}
