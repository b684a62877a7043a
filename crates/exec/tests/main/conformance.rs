//! The contract of [`Executor`], as tests that every executor must pass. A new one adds a [`Place`].
//!
//! `TULPAR_PLACES=local,slurm` says where they run; the default is `local`. Where a site's nodes must see the files,
//! `TMPDIR` says a folder that they see, and `TULPAR_LAUNCH` the program that jobs run.

use crossbeam_channel::Receiver;
use std::path::Path;
use std::time::Duration;
use tulpar_core::event::Input;
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{CommandLine, Ending, JobSpec, OutputSpec, Report};
use tulpar_core::live::{LiveLine, Seen};
use tulpar_core::site::{Queue, System};
use tulpar_core::workflow::{Limits, OutputKind};
use tulpar_exec::condor::{self, Condor};
use tulpar_exec::executor::{Executor, FromExecutor};
use tulpar_exec::folder::Project;
use tulpar_exec::local::{Local, folders};
use tulpar_exec::remote::{Files, Remote};

/// How one kind of executor is started over a project folder.
type Place = fn(&Path) -> (Box<dyn Executor>, Receiver<FromExecutor>);

fn local(folder: &Path) -> (Box<dyn Executor>, Receiver<FromExecutor>) {
    let project = Project::new(folder).unwrap();
    let run = project.new_run("conformance").unwrap();
    let options = tulpar_launch::Options::new(run.path.display().to_string());
    let (executor, observations) = Local::start(folders(&project, &run), options).unwrap();
    (Box::new(executor), observations)
}

/// A real pool: these tests run on its submit host, with the program that travels named by `TULPAR_LAUNCH`.
fn condor(folder: &Path) -> (Box<dyn Executor>, Receiver<FromExecutor>) {
    let project = Project::new(folder).unwrap();
    let run = project.new_run("conformance").unwrap();
    let remote = Remote::new(project, run, Box::new(|_| None));
    let launch = std::env::var_os("TULPAR_LAUNCH").expect("TULPAR_LAUNCH names the program that travels").into();
    let options = condor::Options { queue: Queue::new(System::Htcondor), files: Files::Sent, launch };
    let (executor, observations) = Condor::start(remote, options).unwrap();
    (Box::new(executor), observations)
}

fn slurm(folder: &Path) -> (Box<dyn Executor>, Receiver<FromExecutor>) {
    let (executor, observations) = super::slurm::start(folder, &super::slurm::queue());
    (Box::new(executor), observations)
}

const PLACES: [(&str, Place); 4] =
    [("local", local), ("condor", condor), ("pilots", super::pilots::place), ("slurm", slurm)];

/// `TULPAR_PLACES=condor` takes the places of others; without it this machine is enough.
pub(crate) fn is_asked(place: &str) -> bool {
    let wanted = std::env::var("TULPAR_PLACES").unwrap_or_else(|_| "local,pilots".to_owned());
    let wanted: Vec<&str> = wanted.split(',').collect();
    for name in &wanted {
        assert!(PLACES.iter().any(|(known, _)| known == name), "no place is called `{name}`");
    }
    wanted.contains(&place)
}

pub(crate) fn spec(job: u32, line: &str) -> Box<JobSpec> {
    Box::new(JobSpec {
        attempt: AttemptId { job: JobId(job), n: 1 },
        name: format!("job{job}"),
        command: CommandLine::Shell { shell: "sh".into(), line: line.into() },
        variables: Default::default(),
        secrets: Vec::new(),
        container: None,
        venv: None,
        conda: None,
        inputs: Vec::new(),
        outputs: Vec::new(),
        checkpoint: None,
        limits: Limits { grace: Some(Duration::from_secs(2)), ..Limits::default() },
        io: None,
        milli_cpus: 1000,
        gpus: Vec::new(),
        cores: Vec::new(),
        node: "here".into(),
        place: tulpar_core::job::Place::Queued(Box::default()),
        script: None,
        objectives: Vec::new(),
    })
}

/// Sites may take their time to start something; a cluster of three nodes takes a minute for a thousand.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// What is said about attempts until this many have ended.
pub(crate) fn hear(observations: &Receiver<FromExecutor>, ends: usize) -> Vec<FromExecutor> {
    let mut heard = Vec::new();
    let mut ended = 0;
    while ended < ends {
        let observation = observations.recv_timeout(PATIENCE).expect("an attempt ends in time");
        ended += usize::from(matches!(observation, FromExecutor::Input(Input::Ended { .. })));
        heard.push(observation);
    }
    heard
}

pub(crate) fn report_of(heard: &[FromExecutor], job: u32) -> Report {
    let found = heard.iter().find_map(|observation| match observation {
        FromExecutor::Input(Input::Ended { attempt, report }) if attempt.job == JobId(job) => Some((**report).clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nothing was said of the end of job {job}"))
}

fn on_every_place(test: impl Fn(&str, Box<dyn Executor>, Receiver<FromExecutor>)) {
    in_every_place(|name, _, executor, observations| test(name, executor, observations));
}

/// As [`on_every_place`], with the folder of the project.
fn in_every_place(test: impl Fn(&str, &Path, Box<dyn Executor>, Receiver<FromExecutor>)) {
    for (name, place) in PLACES.iter().filter(|(name, _)| is_asked(name)) {
        let folder = tempfile::tempdir().unwrap();
        let (executor, observations) = place(folder.path());
        test(name, folder.path(), executor, observations);
    }
}

#[test]
fn an_attempt_is_said_to_start_then_to_end_once() {
    on_every_place(|name, mut executor, observations| {
        executor.submit(vec![spec(1, "true")]);
        let heard = hear(&observations, 1);
        assert!(
            matches!(heard[..], [FromExecutor::Input(Input::Started { .. }), FromExecutor::Input(Input::Ended { .. })]),
            "{name}: {heard:?}"
        );
        assert_eq!(report_of(&heard, 1).ending, Ending::Exit(0), "{name}");
        executor.shutdown();
        assert!(observations.try_iter().next().is_none(), "{name}: it ended twice");
    });
}

#[test]
fn a_running_attempt_is_seen_before_it_ends() {
    in_every_place(|name, folder, mut executor, observations| {
        let attempt = AttemptId { job: JobId(1), n: 1 };
        executor.submit(vec![spec(1, "x=$(head -c 40000000 /dev/zero | tr '\\0' a); sleep 600")]);
        let samples = folder.join(".tulpar/runs/conformance-1/samples.jsonl");
        let begun = std::time::Instant::now();
        let seen = loop {
            assert!(begun.elapsed() < PATIENCE, "{name}: nobody saw it");
            if let Ok(FromExecutor::Input(Input::Ended { report, .. })) =
                observations.recv_timeout(Duration::from_millis(100))
            {
                panic!("{name}: it ended before anybody saw it: {report:?}");
            }
            let text = std::fs::read_to_string(&samples).unwrap_or_default();
            let lines = text.lines().filter_map(|line| LiveLine::read(line.as_bytes()));
            let sample = lines.filter(|line| line.attempt() == attempt).find_map(|line| match line.seen {
                Seen::Running(sample) if sample.rss > 40_000_000 => Some(sample),
                _ => None,
            });
            if let Some(sample) = sample {
                break sample;
            }
        };
        assert!(seen.processes >= 2 && seen.ms > 0 && seen.write_bytes >= 40_000_000, "{name}: {seen:?}");
        executor.cancel(&[attempt], &Ending::Cancelled);
        assert_eq!(report_of(&hear(&observations, 1), 1).ending, Ending::Cancelled, "{name}");
        executor.shutdown();
    });
}

#[test]
fn endings_keep_their_kind() {
    on_every_place(|name, mut executor, observations| {
        let mut late = spec(4, "sleep 60");
        late.limits.time = Some(Duration::from_millis(200));
        executor.submit(vec![
            spec(1, "exit 3"),
            spec(2, "kill -9 $$"),
            spec(3, "no-such-program-anywhere"),
            late,
            spec(5, "echo why >&2; exit 1"),
        ]);
        let heard = hear(&observations, 5);
        assert_eq!(report_of(&heard, 1).ending, Ending::Exit(3), "{name}");
        assert_eq!(report_of(&heard, 2).ending, Ending::Signal(9), "{name}");
        assert_eq!(report_of(&heard, 3).ending, Ending::Exit(127), "{name}");
        assert_eq!(report_of(&heard, 4).ending, Ending::Walltime, "{name}");
        assert_eq!(report_of(&heard, 5).stderr_tail.trim(), "why", "{name}");
        executor.shutdown();
    });
}

#[test]
fn outputs_are_there_all_or_none() {
    on_every_place(|name, mut executor, observations| {
        let output = |path: &str| OutputSpec {
            name: path.replace('.', "_"),
            path: path.into(),
            kind: OutputKind::File,
            optional: false,
        };
        let mut good = spec(1, "echo a > a.txt; echo b > b.txt");
        good.outputs = vec![output("a.txt"), output("b.txt")];
        let mut half = spec(2, "echo a > a.txt");
        half.outputs = good.outputs.clone();
        executor.submit(vec![good, half]);
        let heard = hear(&observations, 2);
        assert_eq!(report_of(&heard, 1).outputs.len(), 2, "{name}");
        let half = report_of(&heard, 2);
        assert_eq!(half.ending, Ending::Incomplete(vec!["b.txt".into()]), "{name}");
        // Its files come back without a declared output: a mended declaration may accept them.
        let made: Vec<(u32, &str)> = half.outputs.iter().map(|file| (file.output, file.path.as_str())).collect();
        assert_eq!(made, [(tulpar_core::accept::UNDECLARED, "a.txt")], "{name}");
        executor.shutdown();
    });
}

#[test]
fn a_cancelled_attempt_ends_as_it_was_told_and_unknown_ones_are_ignored() {
    on_every_place(|name, mut executor, observations| {
        executor.submit(vec![spec(1, "sleep 600"), spec(2, "sleep 600")]);
        let (mut one, mut two) = (false, false);
        while !(one && two) {
            match observations.recv_timeout(Duration::from_secs(60)).expect("they start") {
                FromExecutor::Input(Input::Started { attempt }) if attempt.job == JobId(1) => one = true,
                FromExecutor::Input(Input::Started { .. }) => two = true,
                other => panic!("{name}: {other:?}"),
            }
        }
        let attempt = |job| AttemptId { job: JobId(job), n: 1 };
        executor.cancel(&[attempt(1), attempt(99)], &Ending::Cancelled);
        executor.cancel(&[attempt(2)], &Ending::Preempted);
        let heard = hear(&observations, 2);
        assert_eq!(report_of(&heard, 1).ending, Ending::Cancelled, "{name}");
        assert_eq!(report_of(&heard, 2).ending, Ending::Preempted, "{name}");
        executor.shutdown();
    });
}

#[test]
fn what_an_earlier_driver_left_is_accounted_for() {
    on_every_place(|name, mut executor, observations| {
        let attempt = AttemptId { job: JobId(7), n: 3 };
        executor.reconcile(&[attempt]);
        let heard = hear(&observations, 1);
        assert_eq!(report_of(&heard, 7).ending, Ending::DriverLost, "{name}");
        executor.shutdown();
    });
}

#[test]
fn a_thousand_attempts_at_once_all_end() {
    on_every_place(|name, mut executor, observations| {
        executor.submit((0..1000).map(|job| spec(job, "true")).collect());
        let heard = hear(&observations, 1000);
        let reports = heard.iter().filter_map(|observation| match observation {
            FromExecutor::Input(Input::Ended { attempt, report }) => Some((attempt, report)),
            _ => None,
        });
        let (good, bad): (Vec<_>, Vec<_>) = reports.partition(|(_, report)| report.ending.is_success());
        assert_eq!((good.len(), bad), (1000, Vec::new()), "{name}");
        executor.shutdown();
    });
}
