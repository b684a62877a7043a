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
        skipped("the exemplars' workflows were not run: TULPAR names no program");
    }
    found
}

/// Says loudly that something could not be tried here; `./test` counts these.
pub fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("TULPAR_SKIPS")
        && let Ok(mut file) = std::fs::File::options().append(true).create(true).open(path)
    {
        writeln!(file, "{why}").expect("a line");
    }
}

/// Tulpar in a folder, with the pretended cargo if there is one.
fn command(place: &Place, tulpar: &Path, words: &str) -> Command {
    let mut command = Command::new(tulpar);
    command.args(words.split_whitespace()).current_dir(place.path());
    let cargo = place.path().join("cargo");
    if cargo.exists() {
        command.env("CARGO", cargo);
    }
    command
}

/// Cargo built the program before the tests began: what it would say is said for it.
pub fn pretend_cargo(place: &Place) {
    use std::os::unix::fs::PermissionsExt;
    let cargo = place.path().join("cargo");
    let said = serde_json::json!({"reason": "compiler-artifact", "executable": PROGRAM});
    std::fs::write(&cargo, format!("#!/bin/sh\necho '{said}'\n")).expect("a script");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("it can be started");
}

/// Whether cargo finds the program of these tests up to date when a demo asks for it. With other features it would be built
/// anew under the feet of other tests.
fn same_features() -> bool {
    #[cfg(target_arch = "x86_64")]
    return cfg!(feature = "x86-v4") == std::arch::is_x86_feature_detected!("avx512f") && !cfg!(feature = "wgpu");
    #[cfg(not(target_arch = "x86_64"))]
    return !cfg!(feature = "wgpu");
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
    for file in ["workflow.yaml", "pegasus.yaml", "streaming.yaml"] {
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

pub fn run(place: &Place, tulpar: &Path, words: &str) -> String {
    let said = command(place, tulpar, words).output().expect("it starts");
    let err = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{words}\n{err}");
    err
}

/// Whether the last words about this run are that it took every task from the cache.
pub fn all_reused(said: &str, run: &str, tasks: usize) {
    let words = format!("{run}: done: {tasks} of {tasks} tasks, {tasks} reused, in ");
    assert!(said.lines().any(|line| line.starts_with(&words)), "not {words:?}:\n{said}");
}

#[test]
fn galaxy_runs_natively_and_as_pegasus_and_a_second_run_trains_nothing() {
    let Some(tulpar) = tulpar() else { return };
    let place = exemplar("galaxy", "--count 90 --size 72", &["images_training_rev1"]);
    run(&place, &tulpar, "run");
    assert!(place.bytes("results/report.html").starts_with(b"<!doctype html>"));
    all_reused(&run(&place, &tulpar, "run"), "galaxy-2", 13);
    let model = place.bytes("results/model.safetensors");
    let held_out = place.json("results/metrics.json")["held_out"].clone();
    run(&place, &tulpar, "run pegasus.yaml");
    assert_eq!(place.json("results/metrics.json")["held_out"], held_out);
    assert_eq!(place.bytes("results/model.safetensors").len(), model.len());
}

#[test]
fn lung_runs_natively_and_as_pegasus_and_a_second_run_trains_nothing() {
    let Some(tulpar) = tulpar() else { return };
    let place = exemplar("lung", "--count 30 --size 72", &["CXR_png", "masks"]);
    run(&place, &tulpar, "run");
    assert_eq!(place.json("results/metrics.json")["held_out"], 6);
    all_reused(&run(&place, &tulpar, "run"), "lung-2", 9);
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
    all_reused(&run(&place, &tulpar, "run"), "crisis-2", 15);
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

#[test]
fn deepdrivemd_as_a_demo_is_killed_goes_on_reuses_everything_and_comes_to_the_same_as_pegasus() {
    let Some(tulpar) = tulpar() else { return };
    let place = Place::new();
    if !same_features() {
        pretend_cargo(&place);
    }
    let demo = concat!("demo deepdrivemd --exemplars ", env!("CARGO_MANIFEST_DIR"));
    let killed = killed_when(&place, &tulpar, demo, |mut said| {
        Iterator::any(&mut said, |line| line.starts_with("start") && line.contains("train-3"))
    });
    assert!(killed, "the demo ended first");
    let on = run(&place, &tulpar, demo);
    assert!(!on.contains("Compiling"), "the program was built before this test: {on}");
    assert!(on.contains("deepdrivemd-1 was stopped: it goes on.\n"), "{on}");
    assert!(on.contains("deepdrivemd-1: done: 97 of 97 tasks, in "), "{on}");
    assert!(on.contains("cells of the landscape seen by driven simulations"), "{on}");
    all_reused(&run(&place, &tulpar, demo), "deepdrivemd-2", 97);
    for name in ["run.html", "results/report.html", "streaming.yaml"] {
        assert!(!place.bytes(&format!("tulpar-deepdrivemd/{name}")).is_empty());
    }
    let account = String::from_utf8(place.bytes("tulpar-deepdrivemd/run.html")).expect("text");
    assert!(account.contains("deepdrivemd-1"), "the account of a run that reused everything replaced that of the run");
    let native = place.bytes("tulpar-deepdrivemd/results/metrics.json");
    let pegasus = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/deepdrivemd/pegasus.yaml"));
    place.write("tulpar-deepdrivemd/pegasus.yaml", &pegasus.expect("a workflow"));
    run(&place, &tulpar, "-C tulpar-deepdrivemd run pegasus.yaml");
    let results = place.path().join("tulpar-deepdrivemd/results");
    assert!(results.join("outliers-8.xyz").exists(), "the jobs of Pegasus did not run");
    assert!(
        place.bytes("tulpar-deepdrivemd/results/metrics.json") == native,
        "the jobs of Pegasus came to something else"
    );
}

#[test]
fn deepdrivemd_without_stages_finds_outliers_with_models_that_are_newest() {
    let Some(tulpar) = tulpar() else { return };
    let place = exemplar("deepdrivemd", "", &[]);
    run(&place, &tulpar, "run streaming.yaml -p simulations=32 -p epochs=5");
    for batch in 1..=4 {
        assert!(!place.bytes(&format!("results/models/{batch}.safetensors")).is_empty());
    }
    // The first eight trajectories are searched before there is a model; how many more are, only a run tells.
    let outliers = String::from_utf8(place.bytes("results/outliers.txt")).expect("text");
    let outliers: u32 = outliers.trim().parse().expect("a number");
    assert!(outliers >= 8, "all was learnt when the last simulation was over: {outliers} outliers");
}

/// Runs a workflow as a whole, and once more killed whenever a task of these begins, when an epoch is kept, and twice at a
/// moment that differs from test to test; what it makes must be the same, byte for byte. On a busy machine the run can be
/// past a moment before it is killed at the one before; then it goes on to the next.
fn killed_and_gone_on_with(name: &str, generate: &str, run_words: &str, begun: &[&str], made: &[&str]) {
    let Some(tulpar) = tulpar() else { return };
    let whole = exemplar(name, generate, &[]);
    let lines = run(&whole, &tulpar, run_words).lines().count();
    let parts = exemplar(name, generate, &[]);
    let words = |parts: &Place| if parts.path().join(".tulpar/runs").exists() { "resume" } else { run_words };
    let mut kills = 0;
    let mut over = false;
    for at in 0..begun.len() {
        let begins = |line: &String| line.starts_with("start") && begun[at..].iter().any(|task| line.contains(task));
        over = over
            || !killed_when(&parts, &tulpar, words(&parts), |mut said| Iterator::any(&mut said, |line| begins(&line)));
        kills += usize::from(!over);
    }
    over = over
        || !killed_when(&parts, &tulpar, words(&parts), |_| {
            wait_for("an epoch is kept", || kept(&parts.path().join(".tulpar/runs")))
        });
    kills += usize::from(!over);
    if !over {
        run(&parts, &tulpar, "resume");
    }
    same(&whole, &parts, made);
    for _ in 0..2 {
        let chosen = RandomState::new().build_hasher().finish() as usize % (lines * 3 / 4).max(1) + 1;
        println!("{name}: killed when line {chosen} of about {lines} was said");
        let parts = exemplar(name, generate, &[]);
        if killed_when(&parts, &tulpar, run_words, |said| said.nth(chosen - 1).is_some()) {
            run(&parts, &tulpar, "resume");
            kills += 1;
        }
        same(&whole, &parts, made);
    }
    assert!(kills > begun.len().div_ceil(2), "it was killed {kills} times only");
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

/// Starts Tulpar with these words; once this has happened, kills the driver and then everything that it had started.
/// Returns whether it was killed: otherwise it had ended well before that.
pub fn killed_when(
    place: &Place,
    tulpar: &Path,
    words: &str,
    happened: impl Fn(&mut dyn Iterator<Item = String>) -> bool,
) -> bool {
    let mut child = command(place, tulpar, words).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut last = Vec::new();
    let mut heard = said.by_ref().inspect(|line| last.push(line.clone()));
    let happened = happened(&mut heard);
    let started = descendants(child.id());
    if happened {
        child.kill().expect("it runs");
    }
    for process in started {
        // Most have ended with the driver.
        let _ = Command::new("kill").args(["-KILL", &process.to_string()]).stderr(Stdio::null()).status();
    }
    let ended_well = child.wait().expect("it ends").success();
    assert!(happened || ended_well, "{words} failed:\n{}", last.join("\n"));
    !ended_well
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

pub fn wait_for(what: &str, happened: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(300);
    while !happened() {
        assert!(Instant::now() < until, "waited too long until {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    true
}
