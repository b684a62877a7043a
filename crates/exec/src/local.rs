//! The executor for this machine: `launch` in-process, no second process a task.

use crate::executor::{Executor, FromExecutor, ToDriver};
use crate::live::{LiveFile, take_said};
use crossbeam_channel::Receiver;
use std::io;
use std::path::Path;
use tulpar_core::event::Input;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec, Report};
use tulpar_core::units::Timestamp;
use tulpar_launch::{Folders, Launcher, Notice, Options};

pub struct Local {
    launcher: Launcher,
    run: String,
    driver: ToDriver,
}

impl Local {
    /// Starts the launcher. What happens to attempts arrives at the receiver.
    pub fn start(folders: Folders, mut options: Options) -> io::Result<(Self, Receiver<FromExecutor>)> {
        let (driver, from_executor) = ToDriver::new();
        if options.looks.is_none() {
            let live = LiveFile::at(folders.records.with_file_name("samples.jsonl"));
            let told = driver.clone();
            options.looks = Some(Box::new(move |mut looks| {
                take_said(&mut looks, |said| told.input(said));
                live.append(&looks);
            }));
        }
        let run = options.run.clone();
        let told = driver.clone();
        let launcher = Launcher::start(folders, options, move |notice| {
            told.input(match notice {
                Notice::Started(attempt) => Input::Started { attempt },
                Notice::Ended(attempt, report) => Input::Ended { attempt, report },
            });
        })?;
        Ok((Self { launcher, run, driver }, from_executor))
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
            let report = Box::new(Report::unstarted(Ending::DriverLost, now));
            self.driver.input(Input::Ended { attempt: *attempt, report });
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
