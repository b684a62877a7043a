//! SIGKILL at named points and at random moments, then resume: all outputs right, nothing committed twice,
//! the journal clean, no process left behind.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tulpar_core::event::Event;
use tulpar_exec::journal::{Strictness, read};

/// Five stages of `wide` tasks and a gather: `5 · wide + 1` real tasks that leave files.
fn workflow(wide: u32, seconds: &str) -> String {
    let mut text = format!(
        "workflow: crash\ntasks:\n  make:\n    for: {{i: 1..{wide}}}\n    out: {{a: 'a/{{i}}.txt'}}\n    run: sleep {seconds}; echo {{i}} > {{a}}\n"
    );
    for (before, name) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")] {
        text.push_str(&format!(
            "  step_{name}:\n    for: {{i: 1..{wide}}}\n    in: [{before}]\n    out: {{{name}: '{name}/{{i}}.txt'}}\n    run: sleep {seconds}; echo $(($(cat {{{before}}}) + 1)) > {{{name}}}\n"
        ));
    }
    text.push_str("  sum:\n    in: [e]\n    out: {total: total.txt}\n    run: cat {e} | awk '{n += $1} END {print n}' > {total}\n");
    text
}

fn tulpar(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tulpar"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn start(folder: &Path, first: bool) -> Child {
    let arguments: &[&str] = if first { &["run"] } else { &["resume"] };
    tulpar(folder, arguments).process_group(0).spawn().expect("tulpar starts")
}

/// Waits until the time is over or the child has ended; true when it ended by itself.
fn ended_within(child: &mut Child, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            assert!(status.success(), "the run failed: {status}");
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

fn processes_of(folder: &Path) -> Vec<u32> {
    let marker = folder.canonicalize().expect("a folder").display().to_string();
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&format!("TULPAR_RUN={marker}"))
        })
        .collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < until, "still not so after 20 s: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Everything that must be true when a run has ended at last, however often it was killed.
fn check_end(folder: &Path, run: &str, wide: u32) {
    for i in 1..=wide {
        for (name, more) in [("a", 0), ("b", 1), ("c", 2), ("d", 3), ("e", 4)] {
            let path = folder.join(format!("results/{name}/{i}.txt"));
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(text.trim(), (i + more).to_string(), "{}", path.display());
        }
    }
    let total: u32 = (1..=wide).map(|i| i + 4).sum();
    assert_eq!(fs::read_to_string(folder.join("results/total.txt")).unwrap().trim(), total.to_string());

    let journal = folder.join(format!(".tulpar/runs/{run}/journal.jsonl"));
    let reading = read(&journal, Strictness::Strict).expect("the journal reads clean");
    let mut committed = BTreeSet::new();
    let mut ends: BTreeMap<_, u32> = BTreeMap::new();
    for entry in &reading.entries {
        match &entry.event {
            Event::Submitted { attempt, .. } => {
                assert!(!committed.contains(&attempt.job), "{attempt} was committed and runs again");
            }
            Event::Ended { attempt, report, .. } if report.ending.is_success() => {
                committed.insert(attempt.job);
                *ends.entry(attempt.job).or_default() += 1;
            }
            _ => {}
        }
    }
    assert_eq!(committed.len() as u32, 5 * wide + 1);
    assert!(ends.values().all(|count| *count == 1));
    wait_until("no process is left", || processes_of(folder).is_empty());
}

/// Kills the driver again and again; how often it was killed while it ran.
fn kill_at_random(folder: &Path, seed: u64, most: u32, shortest: u64, longest: u64) -> u32 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut kills = 0;
    let mut first = true;
    loop {
        let mut child = start(folder, first);
        let life = Duration::from_millis(random.random_range(shortest..longest));
        let patience = if kills < most { life } else { Duration::from_secs(600) };
        if ended_within(&mut child, patience) {
            return kills;
        }
        child.kill().expect("killed");
        child.wait().expect("reaped");
        kills += 1;
        // Killed before it had made its run: there is nothing to resume yet.
        first = !folder.join(".tulpar/runs/crash-1/plan.json").exists();
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "the campaign says how much it did")]
fn a_driver_killed_at_random_moments_loses_and_doubles_nothing() {
    let full = std::env::var_os("TULPAR_CAMPAIGN").is_some();
    let (wide, kills, seconds) = if full { (100, 200, "0.12") } else { (20, 20, "0.07") };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("workflow.yaml"), workflow(wide, seconds)).unwrap();
    let delivered = kill_at_random(folder.path(), 2026, kills, 20, 260);
    check_end(folder.path(), "crash-1", wide);
    eprintln!("{delivered} kills over {} tasks", 5 * wide + 1);
    assert!(delivered >= kills / 2, "the run ended after {delivered} kills: make its tasks longer");
}

#[test]
fn a_driver_that_dies_at_any_point_of_its_loop_is_resumed() {
    for point in ["decided", "durable", "acted"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("workflow.yaml"), workflow(3, "0.01")).unwrap();
        for count in 1.. {
            let first = !folder.path().join(".tulpar/runs/crash-1/plan.json").exists();
            let verb: &[&str] = if first { &["run"] } else { &["resume"] };
            // Each resume gets a little further before it dies, so that every turn is hit.
            let status = tulpar(folder.path(), verb)
                .env("TULPAR_CRASH", format!("{point}:{}", count / 2 + 1))
                .status()
                .expect("tulpar starts");
            if status.success() {
                assert!(count > 5, "{point}: the run ended after {count} crashes");
                break;
            }
            assert_eq!(status.code(), None, "{point}: it ended by itself, badly");
        }
        check_end(folder.path(), "crash-1", 3);
    }
}

#[test]
fn tasks_of_a_killed_driver_are_ended_at_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("workflow.yaml"),
        "workflow: crash\ntasks:\n  long: {run: 'sh -c \"sleep 600 & sleep 600\"'}\n",
    )
    .unwrap();
    let mut child = start(folder.path(), true);
    wait_until("the task and its children run", || processes_of(folder.path()).len() >= 3);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("no process is left", || processes_of(folder.path()).is_empty());
}
