//! Pilots as real processes of this machine, over real connections.

use crossbeam_channel::{Receiver, unbounded};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use tulpar_core::ids::{AttemptId, NodeId};
use tulpar_core::job::{Ending, JobSpec};
use tulpar_core::resources::Capacity;
use tulpar_core::units::Bytes;
use tulpar_exec::executor::{Executor, Observation};
use tulpar_exec::folder::Project;
use tulpar_exec::pilots::{LocalSupply, Options, PilotNode, Pilots, folder};
use tulpar_exec::remote::Remote;

/// The program of pilots. Cargo builds it for the tests of its own crate only.
fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let own = std::env::current_exe().unwrap();
        let profile = own.parent().and_then(Path::parent).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--package", "tulpar-launch"])
            .arg("--target-dir")
            .arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
        profile.join("tulpar-launch")
    };
    PROGRAM.get_or_init(build).clone()
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
pub(super) fn place(path: &Path) -> (Box<dyn Executor>, Receiver<Observation>) {
    let project = Project::new(path).unwrap();
    let run = project.new_run("conformance").unwrap();
    let options = options(&project, &run.path);
    let remote = Remote::new(project, run, Box::new(|_| None));
    let (pilots, observations) = Pilots::start(remote, nodes(2), options).unwrap();
    for _ in 0..2 {
        let there = observations.recv_timeout(Duration::from_secs(60)).expect("pilots come");
        assert!(matches!(there, Observation::Node { present: true, .. }), "{there:?}");
    }
    let (told, heard) = unbounded();
    std::thread::spawn(move || {
        for observation in observations {
            if !matches!(observation, Observation::Node { .. }) && told.send(observation).is_err() {
                return;
            }
        }
    });
    (Box::new(Spread(pilots, 0)), heard)
}
