//! How fast do trivial tasks go through pilots? Four single-core pilots as processes of this machine, against the local
//! executor in the same run, and against TaskVine where it is installed: tasks a second, and CPU time a task of everything
//! together (driver, pilots, tasks).
//!
//! `cargo build --release -p tulpar-launch && cargo bench -p tulpar-benches --bench pilots [-- TASKS]`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use crossbeam_channel::{Receiver, never};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tulpar_core::engine::{Engine, Policy};
use tulpar_core::event::{Event, Outcome};
use tulpar_core::ids::NodeId;
use tulpar_core::plan::Plan;
use tulpar_core::resources::Capacity;
use tulpar_core::site::{Node, NodeKind, Site};
use tulpar_core::units::{Bytes, Timestamp};
use tulpar_core::workflow;
use tulpar_exec::cache::Cache;
use tulpar_exec::driver::{Driver, Observer};
use tulpar_exec::environments::Watch;
use tulpar_exec::executor::{Executor, FromExecutor};
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_exec::journal::Journal;
use tulpar_exec::local::{self, Local};
use tulpar_exec::pilots::{LocalSupply, Options, PilotNode, Pilots, declared, folder, real};
use tulpar_exec::publish::Publisher;
use tulpar_exec::remote::Remote;

const PILOTS: u32 = 4;
/// TaskVine 7.15.9 with four single-core workers on a machine of two cores.
const TASKVINE: f64 = 254.0;

fn main() {
    let tasks = std::env::args().filter_map(|word| word.parse::<u64>().ok()).next_back().unwrap_or(5000);
    let program = program();
    println!("{tasks} trivial tasks\n{:<28} {:>9} {:>9} {:>15}", "", "seconds", "tasks/s", "CPU ms a task");
    let local = run(tasks, NodeKind::Fixed, |project, run, _| {
        let mut options = tulpar_launch::Options::new(run.path.display().to_string());
        options.keep_sandboxes = tulpar_launch::Keep::Never;
        let (local, observations) = Local::start(local::folders(project, run), options).expect("a launcher");
        (Box::new(local), observations)
    });
    row("local executor", tasks, &local);
    let pilots = run(tasks, NodeKind::Pilot, |project, run, nodes| {
        let pilots = folder(&run.path).join("local");
        let supply = LocalSupply::new(program.clone(), Vec::new(), &pilots, project.root()).expect("a folder");
        let supply: Option<Box<dyn tulpar_exec::pilots::Supply>> = Some(Box::new(supply));
        let options = Options { listen: ([127, 0, 0, 1], 0).into(), supply, ..Options::default() };
        let nodes = nodes.iter().enumerate().map(|(id, node)| PilotNode {
            id: NodeId::from(id),
            name: node.name.clone(),
            capacity: real(&node.capacity),
        });
        let remote = Remote::new(project.clone(), run.clone(), Box::new(|_| None));
        let (pilots, observations) = Pilots::start(remote, nodes.collect(), options).expect("a port");
        (Box::new(pilots), observations)
    });
    row(&format!("{PILOTS} pilots of one core"), tasks, &pilots);
    println!("pilots / local: {:.2}", local.seconds / pilots.seconds);
    let rate = tasks as f64 / pilots.seconds;
    match taskvine(tasks) {
        Some(vine) => {
            row("TaskVine, 4 workers", tasks, &vine);
            println!("pilots / TaskVine: {:.2}", vine.seconds / pilots.seconds);
        }
        None => println!(
            "TaskVine is not installed here; against the {TASKVINE} tasks/s that were measured of it: {:.2}",
            rate / TASKVINE
        ),
    }
}

struct Measured {
    seconds: f64,
    cpu: Duration,
}

fn row(name: &str, tasks: u64, measured: &Measured) {
    let (rate, cpu) = (tasks as f64 / measured.seconds, measured.cpu.as_secs_f64() * 1e3 / tasks as f64);
    println!("{name:<28} {:>9.2} {rate:>9.0} {cpu:>15.2}", measured.seconds);
}

/// The program beside this benchmark, as `cargo build --release -p tulpar-launch` leaves it.
fn program() -> PathBuf {
    let own = std::env::current_exe().expect("this program");
    let path = own.parent().and_then(Path::parent).expect("a target folder").join("tulpar-launch");
    assert!(path.is_file(), "{} is missing: run `cargo build --release -p tulpar-launch` first", path.display());
    path
}

type Started = (Box<dyn Executor>, Receiver<FromExecutor>);

/// Everything, from starting the executor to its end.
fn run(tasks: u64, kind: NodeKind, start: impl Fn(&Project, &RunFolder, &[Node]) -> Started) -> Measured {
    let text = format!("workflow: trivial\ntasks:\n  work:\n    for: {{i: 1..{tasks}}}\n    run: [/bin/true]\n");
    let (workflow, _) = workflow::read(&text, &BTreeMap::new());
    let capacity = Capacity { milli_cpus: 1000, memory: Bytes(1 << 30), ..Capacity::default() };
    let capacity = if kind == NodeKind::Pilot { declared(&capacity) } else { capacity };
    let node = |n| Node { kind, ..Node::new(format!("pilot-{n}"), capacity.clone()) };
    let nodes: Vec<Node> = (0..PILOTS).map(node).collect();
    let plan = Plan::new(workflow.expect("a workflow"), Vec::new(), Site::new("here", nodes.clone()));
    let engine = Engine::new(Arc::new(plan), Policy { cache: false, ..Policy::default() }).expect("no cycle");
    let place = tempfile::tempdir().expect("a temporary folder");
    let project = Project::new(place.path()).expect("a project");
    let run = project.new_run("trivial").expect("a run");
    let (begun, used) = (Instant::now(), cpu());
    let (executor, observations) = start(&project, &run, &nodes);
    let started = Event::RunStarted {
        run: run.name.clone(),
        version: "bench".into(),
        plan: engine.plan().digest(),
        seed: 0,
        provenance: Box::default(),
        simulated: false,
    };
    let mut quiet = Quiet;
    let environments = Watch::new(project.root(), &project.cache(), engine.plan());
    let driver = Driver {
        engine,
        journal: Journal::create(&run.journal()).expect("a journal"),
        executor,
        from_executor: observations,
        stops: never(),
        cache: Cache::open(&project.cache(), &run.name).expect("a cache"),
        publisher: Publisher::start(&project.results(), &project.cache(), &project.shown(), &run.name)
            .expect("a publisher"),
        project: project.clone(),
        folder: run,
        observer: &mut quiet,
        environments,
    };
    let (outcome, _) = driver.run(vec![started]).expect("the journal can be written");
    assert_eq!(outcome, Outcome::Done);
    Measured { seconds: begun.elapsed().as_secs_f64(), cpu: cpu() - used }
}

struct Quiet;

impl Observer for Quiet {
    fn stepped(&mut self, _: &Engine, _: Timestamp, _: &[Event]) {}

    fn warned(&mut self, message: String) {
        println!("warning: {message}");
    }
}

/// Of this process and of all its children that have ended.
fn cpu() -> Duration {
    let of = |who| {
        // SAFETY: plain data, written by the call.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &mut usage);
            usage
        };
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

/// The same tasks through TaskVine's own Python API and four of its workers; `None` where it is not installed.
fn taskvine(tasks: u64) -> Option<Measured> {
    const SCRIPT: &str = "
import ndcctools.taskvine as vine, subprocess, sys
manager = vine.Manager(0)
workers = [subprocess.Popen(['vine_worker', '--cores', '1', 'localhost', str(manager.port)],
           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
for _ in range(int(sys.argv[1])):
    task = vine.Task('/bin/true')
    task.set_cores(1)
    manager.submit(task)
while not manager.empty():
    manager.wait(5)
[worker.terminate() for worker in workers]
[worker.wait() for worker in workers]
";
    let quiet = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let there = quiet(Command::new("vine_worker").arg("--version"))
        && quiet(Command::new("python3").args(["-c", "import ndcctools.taskvine"]));
    if !there {
        return None;
    }
    let place = tempfile::tempdir().ok()?;
    let (begun, used) = (Instant::now(), cpu());
    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT, &tasks.to_string()]).current_dir(place.path());
    quiet(&mut command).then(|| Measured { seconds: begun.elapsed().as_secs_f64(), cpu: cpu() - used })
}
