//! Pilots as real processes of this machine, over real connections: how tests start them.

mod faults;
mod strangers;
mod work;

use crossbeam_channel::{Receiver, unbounded};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tulpar_core::event::Input;
use tulpar_core::ids::{AttemptId, Digest, JobId, NodeId};
use tulpar_core::job::{CommandLine, Ending, InputFile, InputFiles, JobSpec, OutputSpec, Place, Report, Source};
use tulpar_core::resources::Capacity;
use tulpar_core::units::Bytes;
use tulpar_core::workflow::{Limits, OutputKind};
use tulpar_exec::executor::{Executor, FromExecutor};
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_exec::pilots::{LocalSupply, Options, PilotNode, Pilots, folder};
use tulpar_exec::remote::Remote;
use tulpar_launch::pilot::{PilotOptions, pilot_main};

/// This very program is the pilot too: a test of this crate cannot count on programs of other crates being built.
/// What libtest would make of the words of a pilot must not be waited for, so it happens before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = be_a_pilot;

extern "C" fn be_a_pilot() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let code = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["pilot", "--connect", ..] => {
            let options = PilotOptions::parse(&words[1..]).expect("the words of a pilot");
            i32::from(pilot_main(&options).is_err())
        }
        ["__guard", run] => {
            tulpar_launch::guard_main(run);
            0
        }
        ["__script"] => tulpar_launch::script_main(Box::new(|_| None)),
        _ => return,
    };
    #[expect(clippy::exit, reason = "before `main` there is nothing to go back to")]
    std::process::exit(code);
}

fn program() -> PathBuf {
    std::env::current_exe().unwrap()
}

fn nodes(count: u32) -> Vec<PilotNode> {
    let capacity = Capacity { milli_cpus: 1000, memory: Bytes(1 << 30), ..Capacity::default() };
    let node = |n| PilotNode { id: NodeId(n), name: format!("pilot-{n}"), capacity: capacity.clone() };
    (0..count).map(node).collect()
}

fn options(project: &Project, run: &Path) -> Options {
    let supply = LocalSupply::new(program(), Vec::new(), &folder(run).join("local"), project.root()).unwrap();
    Options { listen: ([127, 0, 0, 1], 0).into(), supply: Some(Box::new(supply)), ..Options::default() }
}

/// Spreads attempts over nodes, as an engine would.
struct Spread(Pilots, usize);

impl Executor for Spread {
    fn submit(&mut self, mut batch: Vec<Box<JobSpec>>) {
        for spec in &mut batch {
            spec.node = format!("pilot-{}", self.1 % 2);
            self.1 += 1;
        }
        self.0.submit(batch);
    }

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        self.0.cancel(attempts, ending);
    }

    fn reconcile(&mut self, attempts: &[AttemptId]) {
        self.0.reconcile(attempts);
    }

    fn shutdown(self: Box<Self>) {
        Box::new(self.0).shutdown();
    }
}

/// Two pilots that are there, for the tests of all executors.
pub(super) fn place(path: &Path) -> (Box<dyn Executor>, Receiver<FromExecutor>) {
    let project = Project::new(path).unwrap();
    let run = project.new_run("conformance").unwrap();
    let options = options(&project, &run.path);
    let remote = Remote::new(project, run, Box::new(|_| None));
    let (pilots, observations) = Pilots::start(remote, nodes(2), options).unwrap();
    for _ in 0..2 {
        let there = observations.recv_timeout(Duration::from_secs(60)).expect("pilots come");
        assert!(matches!(there, FromExecutor::Input(Input::Node { present: true, .. })), "{there:?}");
    }
    let (told, heard) = unbounded();
    std::thread::spawn(move || {
        for observation in observations {
            if !matches!(observation, FromExecutor::Input(Input::Node { .. })) && told.send(observation).is_err() {
                return;
            }
        }
    });
    (Box::new(Spread(pilots, 0)), heard)
}

/// A run with pilots of its own.
struct Scene {
    /// Removed at the end.
    _place: Option<tempfile::TempDir>,
    project: Project,
    run: RunFolder,
    pilots: Pilots,
    observations: Receiver<FromExecutor>,
}

impl Scene {
    fn new(count: u32, change: impl FnOnce(&mut Options)) -> Scene {
        let place = tempfile::tempdir().unwrap();
        let project = Project::new(place.path()).unwrap();
        let run = project.new_run("scene").unwrap();
        Scene { _place: Some(place), ..Scene::of(project, run, count, change) }
    }

    fn of(project: Project, run: RunFolder, count: u32, change: impl FnOnce(&mut Options)) -> Scene {
        let mut options = options(&project, &run.path);
        change(&mut options);
        let secret = |name: &str| (name == "TOKEN").then(|| "hush".to_owned());
        let remote = Remote::new(project.clone(), run.clone(), Box::new(secret));
        let (pilots, observations) = Pilots::start(remote, nodes(count), options).unwrap();
        Scene { _place: None, project, run, pilots, observations }
    }

    fn hear(&self) -> FromExecutor {
        self.observations.recv_timeout(Duration::from_secs(60)).expect("something happens within a minute")
    }

    /// What is said until this one is, which is the last.
    fn hear_until(&self, wanted: impl Fn(&FromExecutor) -> bool) -> Vec<FromExecutor> {
        let mut heard = Vec::new();
        loop {
            heard.push(self.hear());
            if wanted(&heard[heard.len() - 1]) {
                return heard;
            }
        }
    }

    fn wait_for_pilots(&self, count: usize) {
        for _ in 0..count {
            self.hear_until(|it| matches!(it, FromExecutor::Input(Input::Node { present: true, .. })));
        }
    }

    fn report(&self, job: u32) -> Report {
        let end = |it: &FromExecutor| matches!(it, FromExecutor::Input(Input::Ended { attempt, .. }) if attempt.job == JobId(job));
        match self.hear_until(end).pop() {
            Some(FromExecutor::Input(Input::Ended { report, .. })) => *report,
            _ => unreachable!("it was the last"),
        }
    }

    fn wait_for_start(&self, job: u32) {
        self.hear_until(
            |it| matches!(it, FromExecutor::Input(Input::Started { attempt }) if attempt.job == JobId(job)),
        );
    }

    fn end(self) {
        Box::new(self.pilots).shutdown();
    }

    /// The number of the process that is a pilot: the one whose arguments say so.
    fn process(&self, name: &str) -> i32 {
        let folder = self.run.path.display().to_string();
        let mut found = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let number: i32 = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
            let is_it = words.get(1).is_some_and(|verb| verb == "pilot")
                && words.iter().any(|word| word == name)
                && words.iter().any(|word| word.starts_with(&folder));
            is_it.then_some(number)
        });
        found.next().expect("the pilot runs")
    }
}

fn spec(job: u32, pilot: u32, line: &str) -> Box<JobSpec> {
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
        node: format!("pilot-{pilot}"),
        place: Place::Owned,
        script: None,
        objectives: Vec::new(),
    })
}

fn output(path: &str) -> OutputSpec {
    OutputSpec { name: path.replace('.', "_"), path: path.into(), kind: OutputKind::File, optional: false }
}

/// A file of the user's, written now.
fn user_file(project: &Project, path: &str, content: &[u8]) -> InputFile {
    let place = project.root().join(path);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, content).unwrap();
    InputFile {
        path: path.into(),
        source: Source::Path(path.into()),
        size: content.len() as u64,
        digest: Digest::of(content),
    }
}

fn input(name: &str, files: Vec<InputFile>) -> InputFiles {
    InputFiles { name: name.into(), files: files.into(), list: None }
}
