//! Pilots that die, drivers that die, wall times, leases.

use super::*;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::fs;
use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tulpar_exec::pilots::{Listed, PilotJob, Supply, SupplyError};

fn kill(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

/// Waits for a process that is not ours to end.
fn wait_until_gone(process: i32) {
    let process = Pid::from_raw(process).unwrap();
    let handle = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty());
    if let Ok(handle) = handle {
        let mut polled = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
        let minute = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(rustix::event::poll(&mut polled, Some(&minute)).unwrap(), 1, "{process:?} does not end");
    }
    assert!(handle_is_gone(process), "{process:?} is still there");
}

fn handle_is_gone(process: Pid) -> bool {
    // A zombie of another parent is gone too.
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(process).is_err() || stat.contains(") Z ")
}

/// A task that says its process in a file of the project and stays.
fn staying(scene: &Scene, job: u32, pilot: u32) -> (Box<JobSpec>, PathBuf) {
    let file = scene.project.root().join(format!("process-{job}"));
    let line = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    (spec(job, pilot, &line), file)
}

fn process_in(file: &Path) -> i32 {
    let begun = std::time::Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(file) {
            return text.trim().parse().unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the task does not start");
        std::thread::yield_now();
    }
}

fn is_absent(observation: &FromExecutor) -> bool {
    matches!(observation, FromExecutor::Input(Input::Node { present: false, .. }))
}

#[test]
fn a_killed_pilot_loses_its_tasks_and_another_takes_its_place() {
    let mut scene = Scene::new(2, |_| {});
    scene.wait_for_pilots(2);
    let (task, file) = staying(&scene, 1, 0);
    scene.pilots.submit(vec![task, spec(2, 1, "sleep 1")]);
    let task = process_in(&file);
    kill(scene.process("pilot-0"), Signal::KILL);
    let heard =
        scene.hear_until(|it| matches!(it, FromExecutor::Input(Input::Node { node: NodeId(0), present: true })));
    let absent = heard.iter().position(is_absent).expect("the node went");
    let lost = heard.iter().position(|it| {
        matches!(it, FromExecutor::Input(Input::Ended { attempt, report }) if attempt.job == JobId(1) && report.ending == Ending::NodeLost)
    });
    assert!(lost.is_some_and(|lost| lost > absent), "{heard:?}");
    wait_until_gone(task);
    let other_ended =
        |it: &FromExecutor| matches!(it, FromExecutor::Input(Input::Ended { attempt, .. }) if attempt.job == JobId(2));
    if !heard.iter().any(other_ended) {
        assert_eq!(scene.report(2).ending, Ending::Exit(0));
    }
    scene.pilots.submit(vec![spec(3, 0, "true")]);
    assert_eq!(scene.report(3).ending, Ending::Exit(0));
    scene.end();
}

#[test]
fn a_pilot_that_the_site_wants_back_gives_its_tasks_their_grace() {
    let mut scene = Scene::new(1, |_| {});
    scene.wait_for_pilots(1);
    let mut task = spec(1, 0, "trap 'echo saved > state; exit 85' TERM; echo ready; while :; do sleep 0.05; done");
    task.checkpoint = Some(tulpar_core::workflow::Checkpoint {
        files: vec!["state".into()],
        keep: None,
        best: tulpar_core::workflow::Best::Newest,
        every: None,
    });
    scene.pilots.submit(vec![task]);
    scene.wait_for_start(1);
    kill(scene.process("pilot-0"), Signal::TERM);
    let heard = scene.hear_until(|it| matches!(it, FromExecutor::Input(Input::Ended { .. })));
    assert!(heard.iter().any(is_absent), "{heard:?}");
    let Some(FromExecutor::Input(Input::Ended { report, .. })) = heard.last() else { unreachable!() };
    assert_eq!(report.ending, Ending::Preempted);
    scene.end();
}

#[test]
fn a_pilot_drains_before_its_wall_time_and_the_next_one_comes() {
    let mut scene = Scene::new(1, |options| options.wall = Some(Duration::from_secs(6)));
    scene.wait_for_pilots(1);
    let begun = std::time::Instant::now();
    scene.pilots.submit(vec![spec(1, 0, "sleep 600")]);
    let heard = scene.hear_until(|it| matches!(it, FromExecutor::Input(Input::Ended { .. })));
    assert!(begun.elapsed() < Duration::from_secs(6), "it was too late");
    assert!(heard.iter().any(is_absent), "no more tasks should go there: {heard:?}");
    let Some(FromExecutor::Input(Input::Ended { report, .. })) = heard.last() else { unreachable!() };
    assert_eq!(report.ending, Ending::Preempted);
    scene.wait_for_pilots(1);
    scene.pilots.submit(vec![spec(2, 0, "true")]);
    assert_eq!(scene.report(2).ending, Ending::Exit(0));
    scene.end();
}

#[test]
fn a_task_that_could_not_end_in_time_goes_back_before_it_starts() {
    let mut scene = Scene::new(1, |options| options.wall = Some(Duration::from_secs(20)));
    scene.wait_for_pilots(1);
    let pilot = scene.process("pilot-0");
    scene.pilots.submit(vec![spec(1, 0, "sleep 2.5")]);
    assert_eq!(scene.report(1).ending, Ending::Exit(0));
    let mut long = spec(2, 0, "true");
    // As long as a new pilot has, and this one has no longer.
    long.limits.time = Some(Duration::from_secs(16));
    scene.pilots.submit(vec![long.clone()]);
    let heard = scene.hear_until(|it| matches!(it, FromExecutor::Input(Input::Ended { .. })));
    let [first, FromExecutor::Input(Input::Ended { report, .. })] = &heard[..] else { panic!("{heard:?}") };
    assert!(is_absent(first) && report.ending == Ending::Preempted, "{heard:?}");
    wait_until_gone(pilot);
    scene.wait_for_pilots(1);
    long.attempt.n = 2;
    scene.pilots.submit(vec![long]);
    assert_eq!(scene.report(2).ending, Ending::Exit(0));
    scene.end();
}

/// Not a test by itself: the driver that the tests below kill. It submits three tasks and says so.
#[test]
fn a_driver_that_will_be_killed() {
    let Some(root) = std::env::var_os("TULPAR_TEST_DRIVER") else { return };
    let lease = std::env::var("TULPAR_TEST_LEASE").unwrap().parse().unwrap();
    let project = Project::new(Path::new(&root)).unwrap();
    let run = project.new_run("scene").unwrap();
    let mut scene = Scene::of(project, run, 2, |options| options.lease = Duration::from_secs(lease));
    scene.wait_for_pilots(2);
    scene.pilots.reconcile(&[]);
    let (stays, file) = staying(&scene, 1, 0);
    let mut ends = spec(2, 1, &format!("while [ ! -e {}/go ]; do sleep 0.02; done; echo done > out", root.display()));
    ends.outputs = vec![output("out")];
    scene.pilots.submit(vec![stays, ends, spec(3, 1, "echo late")]);
    process_in(&file);
    writeln!(std::io::stdout(), "\nsubmitted").unwrap();
    loop {
        std::thread::park();
    }
}

/// Starts such a driver and kills it.
fn kill_a_driver(root: &Path, lease: u64) {
    let mut driver = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "main::pilots::faults::a_driver_that_will_be_killed", "--nocapture"])
        .env("TULPAR_TEST_DRIVER", root)
        .env("TULPAR_TEST_LEASE", lease.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = std::io::BufReader::new(driver.stdout.take().unwrap());
    assert!(said.lines().any(|line| line.unwrap() == "submitted"), "the driver says nothing");
    driver.kill().unwrap();
    driver.wait().unwrap();
}

#[test]
fn a_driver_that_is_started_again_finds_its_pilots_at_work() {
    let place = tempfile::tempdir().unwrap();
    kill_a_driver(place.path(), 60);
    let staying = process_in(&place.path().join("process-1"));
    // One task ends while nobody is there to hear of it.
    fs::write(place.path().join("go"), "").unwrap();
    let project = Project::new(place.path()).unwrap();
    let run = project.folder_of("scene-1");
    let mut scene = Scene::of(project, run, 2, |_| {});
    let attempt = |job| AttemptId { job: JobId(job), n: 1 };
    scene.pilots.reconcile(&[attempt(1), attempt(2), attempt(3), attempt(4)]);
    let mut ends = std::collections::BTreeMap::new();
    let mut started = 0;
    while ends.len() < 3 {
        match scene.hear() {
            FromExecutor::Input(Input::Ended { attempt, report }) => drop(ends.insert(attempt.job.0, report)),
            FromExecutor::Input(Input::Started { attempt }) if attempt.job == JobId(1) => started += 1,
            _ => {}
        }
    }
    assert_eq!(ends[&2].ending, Ending::Exit(0));
    assert_eq!(ends[&2].outputs[0].digest, Digest::of(b"done\n"));
    assert!(tulpar_exec::cache::object_path(&scene.project.cache(), &Digest::of(b"done\n")).exists());
    assert_eq!(ends[&3].ending, Ending::Exit(0));
    assert_eq!(ends[&4].ending, Ending::DriverLost, "nobody has ever heard of it");
    assert_eq!(started, 1);
    assert!(!handle_is_gone(Pid::from_raw(staying).unwrap()), "it was started again or ended");
    scene.pilots.cancel(&[attempt(1)], &Ending::Cancelled);
    assert_eq!(scene.report(1).ending, Ending::Cancelled);
    wait_until_gone(staying);
    scene.end();
}

#[test]
fn without_its_driver_a_pilot_ends_its_tasks_and_itself_when_the_lease_is_over() {
    let place = tempfile::tempdir().unwrap();
    kill_a_driver(place.path(), 2);
    let staying = process_in(&place.path().join("process-1"));
    let begun = std::time::Instant::now();
    wait_until_gone(staying);
    assert!(begun.elapsed() > Duration::from_millis(500), "it did not wait for its driver");
    let project = Project::new(place.path()).unwrap();
    let run = project.folder_of("scene-1");
    // Each holds a lock as long as it lives.
    for name in ["pilot-0", "pilot-1"] {
        let lock = fs::File::open(folder(&run.path).join("local").join(format!("{name}.lock"))).unwrap();
        lock.lock().unwrap();
    }
    let left = fs::read_dir(folder(&run.path).join("local/pilot-0")).unwrap().count();
    assert_eq!(left, 0, "it left its folder behind");
}

#[test]
fn a_pilot_that_is_not_heard_of_is_given_up_after_its_lease() {
    let mut scene = Scene::new(1, |options| {
        options.lease = Duration::from_secs(2);
        options.beat = Duration::from_millis(300);
    });
    scene.wait_for_pilots(1);
    scene.pilots.submit(vec![spec(1, 0, "sleep 600")]);
    scene.wait_for_start(1);
    // It lives, but says nothing.
    let pilot = scene.process("pilot-0");
    kill(pilot, Signal::STOP);
    let heard = scene.hear_until(|it| matches!(it, FromExecutor::Input(Input::Ended { .. })));
    assert!(heard.iter().any(is_absent), "{heard:?}");
    let Some(FromExecutor::Input(Input::Ended { report, .. })) = heard.last() else { unreachable!() };
    assert_eq!(report.ending, Ending::NodeLost);
    // When it comes back it ends what nobody waits for any more, and takes new work.
    kill(pilot, Signal::CONT);
    scene.wait_for_pilots(1);
    scene.pilots.submit(vec![spec(2, 0, "true")]);
    assert_eq!(scene.report(2).ending, Ending::Exit(0));
    scene.end();
}

/// Pilots of this machine, of which the site holds the first.
struct Holding {
    inner: LocalSupply,
    held: Vec<String>,
    removed: Arc<Mutex<Vec<String>>>,
}

impl Supply for Holding {
    fn start(&mut self, jobs: &[PilotJob]) -> Result<(), SupplyError> {
        if self.held.is_empty() && self.removed.lock().unwrap().is_empty() {
            self.held = jobs.iter().map(|job| job.name.clone()).collect();
            return Ok(());
        }
        self.inner.start(jobs)
    }

    fn alive(&mut self) -> Result<Vec<Listed>, SupplyError> {
        let held = |name: &String| Listed { name: name.clone(), held: Some("no space left".into()) };
        let mut listed = self.inner.alive()?;
        listed.extend(self.held.iter().map(held));
        Ok(listed)
    }

    fn remove(&mut self, names: &[String]) -> Result<(), SupplyError> {
        self.held.retain(|name| !names.contains(name));
        self.removed.lock().unwrap().extend_from_slice(names);
        Ok(())
    }

    fn every(&self) -> Duration {
        self.inner.every()
    }

    fn release(&mut self, said_goodbye: bool) {
        self.inner.release(said_goodbye);
    }
}

#[test]
fn a_pilot_that_the_site_holds_is_taken_away_said_and_asked_for_again() {
    let removed = Arc::new(Mutex::new(Vec::new()));
    let place = tempfile::tempdir().unwrap();
    let project = Project::new(place.path()).unwrap();
    let run = project.new_run("scene").unwrap();
    let inner = LocalSupply::new(program(), Vec::new(), &folder(&run.path).join("local"), project.root()).unwrap();
    let supply = Holding { inner, held: Vec::new(), removed: removed.clone() };
    let mut scene = Scene::of(project, run, 1, |options| options.supply = Some(Box::new(supply)));
    let heard = scene.hear_until(|it| matches!(it, FromExecutor::Input(Input::Node { present: true, .. })));
    let Some(FromExecutor::Warning(words)) = heard.first() else { panic!("{heard:?}") };
    assert_eq!(words, "a pilot is held by the site (no space left): taken away, and asked for again after a pause");
    assert_eq!(*removed.lock().unwrap(), ["pilot-0"]);
    scene.pilots.submit(vec![spec(1, 0, "true")]);
    assert_eq!(scene.report(1).ending, Ending::Exit(0));
    scene.end();
}
