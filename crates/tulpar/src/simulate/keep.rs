//! Keeping a simulated run: the same journal in a folder of its own, which becomes visible when it is whole.

use super::imitate::Case;
use crate::failure::Failure;
use crate::forecast;
use crate::messages::Messages;
use crate::running::VERSION;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use tulpar_core::event::Event;
use tulpar_core::journal_line;
use tulpar_core::plan::Plan;
use tulpar_core::provenance::Provenance;
use tulpar_core::units::Timestamp;
use tulpar_exec::folder::{Project, RunFolder, SavedRun};

pub(crate) struct Keeper {
    folder: RunFolder,
    journal: BufWriter<File>,
    line: Vec<u8>,
    next: u64,
    whole: bool,
}

impl Keeper {
    pub(crate) fn start(project: &Project, plan: &Plan) -> Result<Self, Failure> {
        let folder = project.new_run(&plan.workflow.name)?;
        let path = folder.journal();
        let file = File::options().write(true).create_new(true).open(&path).map_err(failed(&path))?;
        Ok(Self { folder, journal: BufWriter::with_capacity(1 << 20, file), line: Vec::new(), next: 1, whole: false })
    }

    pub(crate) fn first(&self, plan: &Plan, seed: u64) -> Event {
        let provenance = Box::new(Provenance::of(plan, None));
        let (run, version) = (self.folder.name.clone(), VERSION.to_owned());
        Event::RunStarted { run, version, plan: plan.digest(), seed, provenance, simulated: true }
    }

    /// Nothing is acted upon, so nothing needs to be durable before the end.
    pub(crate) fn append(&mut self, events: &[(Timestamp, Event)]) -> Result<(), Failure> {
        self.line.clear();
        for (at, event) in events {
            journal_line::encode(self.next, *at, event, &mut self.line);
            self.next += 1;
        }
        self.journal.write_all(&self.line).map_err(failed(&self.folder.journal()))
    }

    /// A folder without a plan is no run: the plan comes last.
    pub(crate) fn finish(
        mut self,
        case: &Case,
        workflow_file: String,
        view: &impl Serialize,
        messages: &dyn Messages,
    ) -> Result<String, Failure> {
        let path = self.folder.journal();
        self.journal.flush().and_then(|()| self.journal.get_ref().sync_data()).map_err(failed(&path))?;
        let path = self.folder.simulation();
        let text = serde_json::to_vec_pretty(view).map_err(|error| Failure::Bug(error.to_string()))?;
        std::fs::write(&path, text).map_err(failed(&path))?;
        forecast::keep(&self.folder, &case.plan, &case.policy, messages);
        let plan = (*case.plan).clone();
        let policy = case.policy.clone();
        self.folder.save(&SavedRun { version: VERSION.into(), workflow_file, code: None, policy, plan })?;
        self.whole = true;
        Ok(self.folder.name.clone())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if !self.whole {
            let _ = std::fs::remove_dir_all(&self.folder.path);
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + use<> {
    let path = path.to_owned();
    move |source| Failure::Write { path, source }
}
