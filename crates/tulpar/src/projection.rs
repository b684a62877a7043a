//! The store of this folder, brought up to date: for questions over several runs.

use crate::failure::Failure;
use crate::messages::Messages;
use crate::replay::{self, Replayed};
use std::path::Path;
use tulpar_core::ids::JobId;
use tulpar_exec::folder::{FolderError, Project, RunFolder};
use tulpar_store::{JobNames, Store};

struct Names(Replayed);

impl JobNames for Names {
    fn name(&self, job: JobId) -> Option<String> {
        self.is_known(job).then(|| self.0.name(job))
    }

    fn set(&self, job: JobId) -> Option<String> {
        let graph = self.0.engine.graph();
        self.is_known(job).then(|| graph.plan().task(graph.set_of(job)).name.clone())
    }

    fn count(&self) -> u32 {
        self.0.engine.counts().total()
    }
}

impl Names {
    fn is_known(&self, job: JobId) -> bool {
        job.index() < self.0.engine.graph().len()
    }
}

/// Opens the store and takes in what was written since the last time.
pub fn open(project: &Project, messages: &dyn Messages) -> Result<Store, Failure> {
    let path = project.store();
    if path.parent().is_some_and(|own| !own.is_dir()) {
        return Err(FolderError::NoRuns.into());
    }
    let mut store = Store::open(&path)?;
    store.sync(&project.runs(), &mut |name: &str, path: &Path| {
        let folder = RunFolder { name: name.to_owned(), path: path.to_owned() };
        // A run whose plan does not read is shown by its journal alone.
        replay::open_with(messages, folder, |_, _| {})
            .ok()
            .map(|replayed| Box::new(Names(replayed)) as Box<dyn JobNames>)
    })?;
    Ok(store)
}
