//! What only Slurm does, on a real one. They run where `TULPAR_PLACES` has `slurm`.

use super::conformance::{PATIENCE, hear, is_asked, report_of, spec};
use crossbeam_channel::Receiver;
use std::path::{Path, PathBuf};
use std::process::Command;
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{Ending, JobSpec};
use tulpar_core::resources::Request;
use tulpar_core::site::{Queue, System};
use tulpar_core::workflow::{Best, Checkpoint};
use tulpar_exec::executor::{Executor, Observation};
use tulpar_exec::folder::Project;
use tulpar_exec::remote::Remote;
use tulpar_exec::slurm::Slurm;

pub(crate) fn queue() -> Queue {
    Queue::new(System::Slurm)
}

fn launch() -> PathBuf {
    std::env::var_os("TULPAR_LAUNCH").expect("TULPAR_LAUNCH says where the program that jobs run is").into()
}

fn remote(folder: &Path) -> Remote {
    let project = Project::new(folder).unwrap();
    let run = match project.all_runs().unwrap().pop().or_else(|| {
        let known = project.folder_of("conformance-1");
        known.path.exists().then_some(known)
    }) {
        Some(run) => run,
        None => project.new_run("conformance").unwrap(),
    };
    Remote::new(project, run, Box::new(|_| None))
}

/// Over the same folder again it is the next driver of the same run.
pub(crate) fn start(folder: &Path, queue: &Queue) -> (Slurm, Receiver<Observation>) {
    Slurm::start(remote(folder), queue, launch()).unwrap()
}

fn here() -> Option<tempfile::TempDir> {
    is_asked("slurm").then(|| tempfile::tempdir().unwrap())
}

fn attempt(job: u32) -> AttemptId {
    AttemptId { job: JobId(job), n: 1 }
}

fn asking(job: u32, line: &str, request: Request) -> Box<JobSpec> {
    let mut spec = spec(job, line);
    spec.request = Some(Box::new(request));
    spec
}

fn slurm(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until something is said that is looked for, and gives all that was said until then.
fn hear_until(observations: &Receiver<Observation>, wanted: impl Fn(&Observation) -> bool) -> Vec<Observation> {
    let mut heard = Vec::new();
    loop {
        let observation = observations.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("not said; only {heard:?}"));
        let found = wanted(&observation);
        heard.push(observation);
        if found {
            return heard;
        }
    }
}

fn started(job: u32) -> impl Fn(&Observation) -> bool {
    move |observation| matches!(observation, Observation::Started(attempt) if attempt.job == JobId(job))
}

/// The job of this attempt, as Slurm's commands name it.
fn job_name(folder: &Path) -> String {
    let tag = std::fs::read_to_string(folder.join(".tulpar/runs/conformance-1/queue/slurm/tag")).unwrap();
    let text = slurm(&["squeue", "-h", "-o", "%F_%K %j"]);
    let found = text.lines().filter_map(|line| line.split_once(' ')).find(|(_, name)| name.starts_with(tag.trim()));
    found.unwrap_or_else(|| panic!("no job of {tag} in {text}")).0.to_owned()
}

/// What is in the queue of this run.
fn in_queue(folder: &Path) -> usize {
    let tag = std::fs::read_to_string(folder.join(".tulpar/runs/conformance-1/queue/slurm/tag")).unwrap();
    let text = slurm(&["squeue", "-h", "-r", "-t", "PENDING,RUNNING", "-o", "%j"]);
    text.lines().filter(|name| name.starts_with(tag.trim())).count()
}

#[test]
fn what_can_never_run_is_refused_with_the_nearest_miss() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    executor.submit(vec![
        asking(1, "true", Request { milli_cpus: 64_000, ..Request::default() }),
        asking(2, "true", Request { gpus: 1, gpu_capability: 90, ..Request::default() }),
    ]);
    let heard = hear(&observations, 2);
    let Ending::Refused(text) = report_of(&heard, 1).ending else { panic!("{heard:?}") };
    assert!(text.starts_with("no node here can ever take it; the nearest, n"), "{text}");
    let Ending::Refused(text) = report_of(&heard, 2).ending else { panic!("{heard:?}") };
    assert!(text.ends_with("n3, has GPUs (a100) that are below capability 9.0"), "{text}");
    executor.shutdown();
}

#[test]
fn a_gpu_of_the_right_generation_is_given() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    let line = "echo $CUDA_VISIBLE_DEVICES >&2; exit 1";
    executor.submit(vec![asking(1, line, Request { gpus: 2, gpu_capability: 80, ..Request::default() })]);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).stderr_tail.trim().split(',').count(), 2, "{heard:?}");
    let records = std::fs::read_to_string(folder.path().join(".tulpar/runs/conformance-1/records.jsonl")).unwrap();
    assert!(records.contains("\"node\":\"n3\""), "{records}");
    executor.shutdown();
}

#[test]
fn a_task_on_two_nodes_runs_once_on_each() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    let line = "echo \"$TULPAR_NODE of $TULPAR_NODES on $SLURMD_NODENAME, first $TULPAR_FIRST_NODE\" >&2; test $TULPAR_NODE = 0 && sleep 1; exit 1";
    executor.submit(vec![asking(1, line, Request { nodes: 2, ..Request::default() })]);
    let heard = hear(&observations, 1);
    let report = report_of(&heard, 1);
    let mut lines: Vec<&str> = report.stderr_tail.lines().filter(|line| line.contains(" of 2 on n")).collect();
    lines.sort_unstable();
    assert!(matches!(lines[..], [zero, one] if zero.starts_with("0 ") && one.starts_with("1 ")), "{heard:?}");
    executor.shutdown();
}

#[test]
fn a_requeued_attempt_goes_on_from_its_checkpoint() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    // It saves on the signal, and the second start finds what the first saved.
    let line = "test -e state && { cat state >&2; exit 3; }; trap 'echo saved > state; exit 85' TERM; while true; do sleep 0.1 || true; done";
    let mut spec = asking(1, line, Request::default());
    spec.checkpoint = Some(Checkpoint { files: vec!["state".into()], keep: None, best: Best::default(), every: None });
    executor.submit(vec![spec]);
    hear_until(&observations, started(1));
    let job = job_name(folder.path());
    slurm(&["scontrol", "requeue", &job]);
    hear_until(&observations, |observation| matches!(observation, Observation::Released(_)));
    // Slurm waits two minutes before it starts something again; here it is enough that its clock went on.
    slurm(&["scontrol", "update", &format!("JobId={job}"), "StartTime=now+3seconds"]);
    let heard = hear_until(&observations, |observation| matches!(observation, Observation::Ended(..)));
    assert!(heard.iter().any(started(1)), "{heard:?}");
    let report = report_of(&heard, 1);
    assert_eq!((report.ending, report.stderr_tail.trim()), (Ending::Exit(3), "saved"));
    executor.shutdown();
}

#[test]
fn a_held_job_is_held_until_it_is_released() {
    let Some(folder) = here() else { return };
    let mut queue = queue();
    queue.lines.push(("hold".into(), String::new()));
    let (executor, observations) = start(folder.path(), &queue);
    let mut executor = Box::new(executor);
    executor.submit(vec![spec(1, "true")]);
    let heard = hear_until(&observations, |observation| matches!(observation, Observation::Held(..)));
    let Some(Observation::Held(_, reason)) = heard.last() else { unreachable!() };
    assert_eq!(reason, "Slurm says `JobHeldUser`: release it with `scontrol release`");
    slurm(&["scontrol", "release", &job_name(folder.path())]);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).ending, Ending::Exit(0));
    executor.shutdown();
}

#[test]
fn what_somebody_else_cancels_is_cancelled() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    executor.submit(vec![spec(1, "sleep 600")]);
    hear_until(&observations, started(1));
    slurm(&["scancel", &job_name(folder.path())]);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).ending, Ending::Cancelled, "{heard:?}");
    executor.shutdown();
}

#[test]
fn the_next_driver_takes_over_what_runs_and_what_has_ended() {
    let Some(folder) = here() else { return };
    let (first, observations) = start(folder.path(), &queue());
    let mut first = Box::new(first);
    let gate = folder.path().join("gate");
    let wait = format!("while ! test -e {}; do sleep 0.1; done", gate.display());
    first.submit(vec![spec(1, "true"), spec(2, &wait), spec(3, "sleep 600")]);
    hear_until(&observations, started(2));
    // As a driver that is killed: nobody says goodbye.
    drop((first, observations));
    let (next, observations) = start(folder.path(), &queue());
    let mut next = Box::new(next);
    // The third is no longer wanted, so it is not to stay in the queue.
    next.reconcile(&[attempt(1), attempt(2), attempt(4)]);
    let heard = hear(&observations, 2);
    assert_eq!(report_of(&heard, 1).ending, Ending::Exit(0));
    assert_eq!(report_of(&heard, 4).ending, Ending::NodeLost, "it was never submitted");
    std::fs::write(&gate, "").unwrap();
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 2).ending, Ending::Exit(0), "{heard:?}");
    next.shutdown();
    assert_eq!(in_queue(folder.path()), 0);
}

#[test]
fn nothing_stays_in_the_queue_after_the_end() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    executor.submit((1..=40).map(|job| spec(job, "sleep 600")).collect());
    hear_until(&observations, |observation| matches!(observation, Observation::Started(_)));
    executor.shutdown();
    assert_eq!(in_queue(folder.path()), 0);
}
