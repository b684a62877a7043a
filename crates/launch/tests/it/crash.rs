use super::scene::*;
use std::process::{Command, Stdio};
use tulpar_core::job::{Ending, Report};
use tulpar_launch::kill_leftovers;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tulpar-launch");

fn driver(folder: &std::path::Path, run: &str, line: &str) -> Command {
    std::fs::write(folder.join("job.json"), serde_json::to_string(&shell(line)).unwrap()).unwrap();
    let mut command = Command::new(PROGRAM);
    command
        .args(["--folder", folder.to_str().unwrap(), "--run", run, folder.join("job.json").to_str().unwrap()])
        .stdout(Stdio::piped());
    command
}

/// A tree that does what it can to stay: another session, no environment, no reaction to signals.
fn hiding(pids: &Fifo) -> String {
    format!(
        "env -i setsid sh -c 'trap \"\" TERM HUP INT; sleep 1000 & echo $$ $! > {}; wait' & sleep 1000",
        pids.0.display()
    )
}

#[test]
fn when_the_driver_is_killed_its_guard_ends_every_process() {
    let folder = tempfile::tempdir().unwrap();
    let pids = Fifo::make(folder.path().join("pids"));
    let mut child = driver(folder.path(), &folder.path().display().to_string(), &hiding(&pids)).spawn().unwrap();
    let processes: Vec<_> = pids.read().split(' ').map(pidfd).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(processes.iter().all(is_over_soon));
}

#[test]
fn resuming_a_run_ends_what_an_unguarded_driver_left_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().display().to_string();
    let pids = Fifo::make(folder.path().join("pids"));
    let other = Fifo::make(folder.path().join("other"));
    let scene = Scene::new();
    scene.launch(shell(&format!("echo $$ > {}; exec sleep 1000", other.0.display())));
    let stranger = pidfd(&other.read());
    let mut child = driver(folder.path(), &run, &hiding(&pids)).spawn().unwrap();
    let processes: Vec<_> = pids.read().split(' ').map(pidfd).collect();
    // Stopped, it is as good as dead: it neither reaps nor guards.
    let driver = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(driver, rustix::process::Signal::STOP).unwrap();
    assert!(kill_leftovers(&run) >= 4);
    assert!(processes.iter().all(is_over_now));
    assert!(!is_over_now(&stranger));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(kill_leftovers(&run), 0);
}

#[test]
fn the_program_prints_its_report_and_passes_the_sites_signal_on() {
    let folder = tempfile::tempdir().unwrap();
    let report = |output: std::process::Output| serde_json::from_slice::<Report>(&output.stdout).unwrap();
    let output = driver(folder.path(), "one", "echo hello; exit 3").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(report(output).ending, Ending::Exit(3));
    let ready = Fifo::make(folder.path().join("ready"));
    let child =
        driver(folder.path(), "two", &format!("echo > {}; exec sleep 1000", ready.0.display())).spawn().unwrap();
    ready.read();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    assert_eq!(report(child.wait_with_output().unwrap()).ending, Ending::Preempted);
    let output = Command::new(PROGRAM).arg(folder.path().join("none.json")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
