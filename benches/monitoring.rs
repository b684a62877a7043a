//! What does it cost to watch tasks? The CPU time of the process that runs 64 tasks at once and looks at each of them every
//! second, as a share of one CPU; the same without looking is shown beside it. The tasks themselves are other processes and
//! do not count.
//!
//! `cargo bench -p tulpar-benches --bench monitoring [-- SECONDS]`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use crossbeam_channel::Receiver;
use std::time::{Duration, Instant};
use tulpar_core::event::Input;
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{CommandLine, Ending, JobSpec, Place};
use tulpar_core::units::Bytes;
use tulpar_core::workflow::Limits;
use tulpar_exec::executor::{Executor, FromExecutor};
use tulpar_exec::folder::Project;
use tulpar_exec::local::{Local, folders};

const TASKS: u32 = 64;

fn main() {
    let seconds = std::env::args().filter_map(|word| word.parse::<u64>().ok()).next_back().unwrap_or(20);
    let alone = "exec sleep 100000";
    let tree = "for i in 1 2 3; do sleep 100000 & done; wait";
    println!("{TASKS} tasks at once, watched for {seconds} s; CPU of the watching process as a share of one CPU");
    println!("{:<34} {:>10} {:>10} {:>10} {:>14}", "tasks", "processes", "every 1 s", "never", "bytes a second");
    let cases = [
        ("one process each", alone, 1, None),
        ("one process each, memory limits", alone, 1, Some(Bytes(2 << 30))),
        ("four processes each", tree, 4, None),
        ("four processes each, memory limits", tree, 4, Some(Bytes(2 << 30))),
    ];
    for (name, line, processes, memory) in cases {
        let (watched, bytes) = share(line, memory, Duration::from_secs(1), seconds);
        let (idle, _) = share(line, None, Duration::from_secs(100_000), seconds);
        let processes = processes * TASKS;
        println!("{name:<34} {processes:>10} {:>9.3}% {:>9.3}% {bytes:>14.0}", watched * 100.0, idle * 100.0);
    }
}

/// The share of one CPU, and bytes of `samples.jsonl` a second.
fn share(line: &str, memory: Option<Bytes>, every: Duration, seconds: u64) -> (f64, f64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let project = Project::new(folder.path()).expect("a project");
    let run = project.new_run("monitoring").expect("a run");
    let mut options = tulpar_launch::Options::new(run.path.display().to_string());
    options.sample_every = every;
    let (mut local, observations) = Local::start(folders(&project, &run), options).expect("a launcher");
    let attempts: Vec<AttemptId> = (0..TASKS).map(|job| AttemptId { job: JobId(job), n: 1 }).collect();
    local.submit(attempts.iter().map(|attempt| spec(*attempt, line, memory)).collect());
    wait(&observations, |observation| matches!(observation, FromExecutor::Input(Input::Started { .. })));
    // The first looks, of which there are more while tasks are new, are not what lasts.
    std::thread::sleep(Duration::from_secs(2));
    let length = || std::fs::metadata(run.samples()).map_or(0, |about| about.len());
    let (cpu, begun, bytes) = (cpu_time(), Instant::now(), length());
    std::thread::sleep(Duration::from_secs(seconds));
    let took = begun.elapsed().as_secs_f64();
    let share = (cpu_time() - cpu).as_secs_f64() / took;
    let bytes = (length() - bytes) as f64 / took;
    local.cancel(&attempts, &Ending::Cancelled);
    wait(&observations, |observation| matches!(observation, FromExecutor::Input(Input::Ended { .. })));
    Box::new(local).shutdown();
    (share, bytes)
}

fn wait(observations: &Receiver<FromExecutor>, wanted: impl Fn(&FromExecutor) -> bool) {
    let mut left = TASKS;
    while left > 0 {
        let observation = observations.recv_timeout(Duration::from_secs(60)).expect("tasks start and end");
        left -= u32::from(wanted(&observation));
    }
}

/// Of this process, without its children.
fn cpu_time() -> Duration {
    // SAFETY: plain data for the kernel to fill in.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a living local.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut used) };
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    time(used.ru_utime) + time(used.ru_stime)
}

fn spec(attempt: AttemptId, line: &str, memory: Option<Bytes>) -> Box<JobSpec> {
    Box::new(JobSpec {
        attempt,
        name: format!("task{}", attempt.job.0),
        command: CommandLine::Shell { shell: "sh".into(), line: line.into() },
        variables: Default::default(),
        secrets: Vec::new(),
        container: None,
        venv: None,
        conda: None,
        inputs: Vec::new(),
        outputs: Vec::new(),
        checkpoint: None,
        limits: Limits { memory: memory.unwrap_or_default(), grace: Some(Duration::ZERO), ..Limits::default() },
        milli_cpus: 10,
        gpus: Vec::new(),
        cores: Vec::new(),
        node: "here".into(),
        place: Place::Owned,
        script: None,
        io: None,
        objectives: Vec::new(),
    })
}
