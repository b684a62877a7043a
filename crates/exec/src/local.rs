//! The executor for this machine: `launch` in-process, no second process a task.

use crate::executor::{Executor, Observation};
use crate::live::{LiveFile, take_said};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io;
use std::path::Path;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec, Report};
use tulpar_core::units::Timestamp;
use tulpar_launch::{Folders, Launcher, Notice, Options};

pub struct Local {
    launcher: Launcher,
    run: String,
    observations: Sender<Observation>,
}

impl Local {
    /// Starts the launcher. What happens to attempts arrives at the receiver.
    pub fn start(folders: Folders, mut options: Options) -> io::Result<(Self, Receiver<Observation>)> {
        let (observations, observed) = unbounded();
        if options.looks.is_none() {
            let live = LiveFile::at(folders.records.with_file_name("samples.jsonl"));
            let told = observations.clone();
            options.looks = Some(Box::new(move |mut looks| {
                take_said(&mut looks, |said| drop(told.send(said)));
                live.append(&looks);
            }));
        }
        let run = options.run.clone();
        let told = observations.clone();
        let launcher = Launcher::start(folders, options, move |notice| {
            let observation = match notice {
                Notice::Started(attempt) => Observation::Started(attempt),
                Notice::Ended(attempt, report) => Observation::Ended(attempt, report),
            };
            // Nobody listens any more when the driver is gone.
            let _ = told.send(observation);
        })?;
        Ok((Self { launcher, run, observations }, observed))
    }
}

impl Executor for Local {
    fn submit(&mut self, batch: Vec<Box<JobSpec>>) {
        self.launcher.launch(batch);
    }

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        self.launcher.cancel(attempts, ending.clone());
    }

    /// Attempts of a driver on this machine die with it; what its guard did not reach ends here.
    fn reconcile(&mut self, attempts: &[AttemptId]) {
        tulpar_launch::kill_leftovers(&self.run);
        let now = now();
        for attempt in attempts {
            let report = Report::unstarted(Ending::DriverLost, now);
            // The receiver lives as long as the driver; without one there is nobody to tell.
            let _ = self.observations.send(Observation::Ended(*attempt, Box::new(report)));
        }
    }

    fn shutdown(self: Box<Self>) {
        self.launcher.shutdown();
    }
}

pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_micros() as u64)
}

/// Where `launch` keeps things for one run of a project.
pub fn folders(project: &crate::folder::Project, run: &crate::folder::RunFolder) -> Folders {
    let own = |path: &Path| path.to_owned();
    Folders {
        project: own(project.root()),
        attempts: run.attempts(),
        objects: project.objects(),
        records: run.records(),
        checkpoints: run.checkpoints(),
    }
}
