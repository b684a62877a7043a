//! The workflows as Tulpar runs them, in both languages, with few and small pictures; killed with all that they started,
//! and gone on with. `./test` names the program in `TULPAR`; without it they are skipped, and say so.

use super::programs::{PROGRAM, Place};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub fn tulpar() -> Option<PathBuf> {
    let found = std::env::var_os("TULPAR").map(PathBuf::from).filter(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: the exemplars' workflows need TULPAR=path/of/tulpar");
        if let Some(path) = std::env::var_os("TULPAR_SKIPS")
            && let Ok(mut file) = std::fs::File::options().append(true).create(true).open(path)
        {
            writeln!(file, "the exemplars' workflows were not run: TULPAR names no program").expect("a line");
        }
    }
    found
}

/// A folder with the program, a small data set and the workflow files of an exemplar; training is short.
fn exemplar(name: &str, generate: &str, archives: &[&str]) -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path().join("bin")).expect("a folder");
    std::fs::copy(PROGRAM, place.path().join("bin/tulpar-exemplars")).expect("the program");
    place.step(&format!("{name} generate {generate} --out data"));
    for archive in archives {
        let tar = Command::new("tar")
            .args(["-cf", &format!("{archive}.tar"), archive])
            .current_dir(place.path().join("data"))
            .status();
        assert!(tar.expect("tar starts").success());
    }
    for file in ["workflow.yaml", "pegasus.yaml"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name).join(file);
        if !path.exists() {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a workflow");
        let text = text.replace("  epochs: 8", "  epochs: 3");
        place.write(file, &text.replace("--epochs 8", "--epochs 3"));
    }
    place
}

fn run(place: &Place, tulpar: &PathBuf, words: &str) -> String {
    let said =
        Command::new(tulpar).args(words.split_whitespace()).current_dir(place.path()).output().expect("it starts");
    let err = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{words}\n{err}");
    err
}

#[test]
fn galaxy_runs_natively_and_as_pegasus_and_a_second_run_trains_nothing() {
    let Some(tulpar) = tulpar() else { return };
    let place = exemplar("galaxy", "--count 90 --size 72", &["images_training_rev1"]);
    run(&place, &tulpar, "run");
    assert!(place.bytes("results/report.html").starts_with(b"<!doctype html>"));
    let again = run(&place, &tulpar, "run");
    assert!(again.contains("galaxy-2: done"), "{again}");
    let model = place.bytes("results/model.safetensors");
    let held_out = place.json("results/metrics.json")["held_out"].clone();
    run(&place, &tulpar, "run pegasus.yaml");
    assert_eq!(place.json("results/metrics.json")["held_out"], held_out);
    assert_eq!(place.bytes("results/model.safetensors").len(), model.len());
}

#[test]
fn lung_runs_natively_and_as_pegasus() {
    let Some(tulpar) = tulpar() else { return };
    let place = exemplar("lung", "--count 30 --size 72", &["CXR_png", "masks"]);
    run(&place, &tulpar, "run");
    assert_eq!(place.json("results/metrics.json")["held_out"], 6);
    run(&place, &tulpar, "run pegasus.yaml");
    assert_eq!(place.json("results/metrics.json")["held_out"], 6);
}

#[test]
fn crisis_runs_natively_and_as_pegasus_and_a_second_run_trains_nothing() {
    let Some(tulpar) = tulpar() else { return };
    let place = exemplar("crisis", "--tweets 84", &["data_image"]);
    run(&place, &tulpar, "run");
    assert_eq!(place.json("results/metrics.json")["held_out"], 12);
    let model = place.bytes("results/text-model.safetensors");
    run(&place, &tulpar, "run");
    assert!(place.bytes("results/text-model.safetensors") == model, "the models differ");
    run(&place, &tulpar, "run pegasus.yaml");
    assert_eq!(place.json("results/metrics.json")["held_out"], 12);
}

#[test]
fn deepdrivemd_comes_to_the_same_in_every_mode() {
    let Some(tulpar) = tulpar() else { return };
    let small = "-p simulations=2 -p length=20 -p plain_length=40 -p steps=10 -p epochs=2";
    let come_to = |mode: &str| {
        let place = exemplar("deepdrivemd", "", &[]);
        run(&place, &tulpar, &format!("run --mode {mode} {small}"));
        ["results/outliers/8.xyz", "results/models/8.safetensors", "results/metrics.json"].map(|name| place.bytes(name))
    };
    let adaptive = come_to("adaptive");
    assert!(come_to("sequential") == adaptive, "sequential came to something else");
    assert!(come_to("staggered") == adaptive, "staggered came to something else");
}

/// Runs a workflow as a whole, and once more killed whenever a task of these begins, when an epoch is kept, and twice at a
/// moment that differs from test to test; what it makes must be the same, byte for byte.
fn killed_and_gone_on_with(name: &str, generate: &str, run_words: &str, begun: &[&str], made: &[&str]) {
    let Some(tulpar) = tulpar() else { return };
    let whole = exemplar(name, generate, &[]);
    let lines = run(&whole, &tulpar, run_words).lines().count();
    let parts = exemplar(name, generate, &[]);
    for begun in begun {
        killed_when(&parts, &tulpar, run_words, |mut said| {
            Iterator::any(&mut said, |line| line.starts_with("start") && line.contains(begun))
        });
    }
    killed_when(&parts, &tulpar, run_words, |_| {
        wait_for("an epoch is kept", || kept(&parts.path().join(".tulpar/runs")))
    });
    run(&parts, &tulpar, "resume");
    same(&whole, &parts, made);
    for _ in 0..2 {
        let chosen = RandomState::new().build_hasher().finish() as usize % (lines * 3 / 4).max(1) + 1;
        println!("{name}: killed when line {chosen} of about {lines} was said");
        let parts = exemplar(name, generate, &[]);
        killed_when(&parts, &tulpar, run_words, |said| said.nth(chosen - 1).is_some());
        run(&parts, &tulpar, "resume");
        same(&whole, &parts, made);
    }
}

fn same(whole: &Place, parts: &Place, made: &[&str]) {
    for name in made {
        let name = format!("results/{name}");
        assert!(whole.bytes(&name) == parts.bytes(&name), "{name} differs");
    }
}

#[test]
fn galaxy_killed_at_any_moment_ends_with_the_same_model() {
    let made = ["model.safetensors", "history.json", "predictions.csv", "metrics.json"];
    killed_and_gone_on_with(
        "galaxy",
        "--count 60 --size 72",
        "run",
        &["preprocess", "augment", "search", "train"],
        &made,
    );
}

#[test]
fn lung_killed_at_any_moment_ends_with_the_same_model() {
    let made = ["model.safetensors", "history.json", "metrics.json"];
    killed_and_gone_on_with("lung", "--count 30 --size 72", "run", &["preprocess", "search", "train"], &made);
}

#[test]
fn crisis_killed_at_any_moment_ends_with_the_same_models() {
    let made = ["text-model.safetensors", "image-model.safetensors", "fused.csv", "metrics.json"];
    let short = "run -p text_epochs=3 -p image_epochs=2 -p image_trial_epochs=1";
    killed_and_gone_on_with("crisis", "--tweets 84", short, &["clean", "resize", "search-image", "train-image"], &made);
}

#[test]
fn deepdrivemd_killed_at_any_moment_ends_with_the_same_outliers() {
    let made = ["outliers/8.xyz", "models/8.safetensors", "metrics.json"];
    let small = "run -p simulations=2 -p length=60 -p plain_length=120 -p steps=20 -p epochs=3";
    killed_and_gone_on_with("deepdrivemd", "", small, &["simulate-2", "train-3", "infer-5"], &made);
}

/// Starts or resumes; once this has happened, kills the driver and then everything that it had started.
fn killed_when(
    place: &Place,
    tulpar: &PathBuf,
    run_words: &str,
    happened: impl Fn(&mut dyn Iterator<Item = String>) -> bool,
) {
    let words = if place.path().join(".tulpar/runs").exists() { "resume" } else { run_words };
    let mut command = Command::new(tulpar);
    command.args(words.split_whitespace()).current_dir(place.path()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(happened(&mut said), "it ended before that");
    let started = descendants(child.id());
    child.kill().expect("it runs");
    for process in started {
        // Most have ended with the driver.
        let _ = Command::new("kill").args(["-KILL", &process.to_string()]).stderr(Stdio::null()).status();
    }
    assert!(!child.wait().expect("it ends").success(), "it was not killed");
}

/// The processes that a process has started, and those that these have started.
fn descendants(process: u32) -> Vec<u32> {
    let children = |of: u32| -> Vec<u32> {
        let threads = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
        let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()).collect()
    };
    let mut found = children(process);
    let mut at = 0;
    while at < found.len() {
        found.extend(children(found[at]));
        at += 1;
    }
    found
}

/// Whether a checkpoint is somewhere below a folder.
fn kept(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => kept(&entry.path()),
        _ => entry.file_name() == "training.checkpoint",
    })
}

fn wait_for(what: &str, happened: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(300);
    while !happened() {
        assert!(Instant::now() < until, "waited too long until {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    true
}
