//! Runs that are replayed for the page: a few at a time, and followed as their journals grow.

use super::{Trouble, lock};
use crate::explanation::Causes;
use crate::failure::Failure;
use crate::replay::{self, Replayed};
use std::sync::{Arc, Mutex};
use tulpar_core::ids::JobId;
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_store::JobNames;

/// So many engines are kept.
const MOST: usize = 4;

pub(super) struct Replays {
    project: Project,
    /// The one used last is last.
    open: Mutex<Vec<(String, Arc<Mutex<Shown>>)>>,
}

/// A run, with what explaining it needs beside the engine.
pub(super) struct Shown {
    pub(super) replayed: Replayed,
    pub(super) causes: Causes,
}

impl Shown {
    fn advance(&mut self) -> Result<(), Failure> {
        let Shown { replayed, causes } = self;
        replayed.advance(|_, entry| causes.note(&entry.event)).map(drop)
    }
}

impl Replays {
    pub(super) fn new(project: Project) -> Self {
        Replays { project, open: Mutex::default() }
    }

    /// The run as its journal tells it now.
    pub(super) fn of(&self, folder: &RunFolder) -> Result<Arc<Mutex<Shown>>, Trouble> {
        let known = {
            let mut open = lock(&self.open);
            let place = open.iter().position(|(run, _)| *run == folder.name);
            place.map(|place| {
                let found = open.remove(place);
                open.push(found.clone());
                found.1
            })
        };
        if let Some(known) = known {
            lock(&known).advance()?;
            return Ok(known);
        }
        let mut causes = Causes::default();
        let replayed = replay::open_with(folder.clone(), |_, entry| causes.note(&entry.event))?;
        let shown = Arc::new(Mutex::new(Shown { replayed, causes }));
        let mut open = lock(&self.open);
        // Somebody else may have been faster.
        open.retain(|(run, _)| *run != folder.name);
        open.push((folder.name.clone(), shown.clone()));
        if open.len() > MOST {
            open.remove(0);
        }
        Ok(shown)
    }

    /// The names of a run's jobs. A run whose plan does not read is shown by its journal alone.
    pub(super) fn names(&self, run: &str) -> Option<Box<dyn JobNames>> {
        let shown = self.of(&self.project.folder_of(run)).ok()?;
        Some(Box::new(Names(shown)))
    }
}

struct Names(Arc<Mutex<Shown>>);

impl Names {
    fn if_known<T>(&self, job: JobId, ask: impl FnOnce(&Replayed) -> T) -> Option<T> {
        let shown = lock(&self.0);
        (job.index() < shown.replayed.engine.graph().len()).then(|| ask(&shown.replayed))
    }
}

impl JobNames for Names {
    fn name(&self, job: JobId) -> Option<String> {
        self.if_known(job, |replayed| replayed.name(job))
    }

    fn set(&self, job: JobId) -> Option<String> {
        self.if_known(job, |replayed| {
            let graph = replayed.engine.graph();
            graph.plan().task(graph.set_of(job)).name.clone()
        })
    }

    fn count(&self) -> u32 {
        let mut shown = lock(&self.0);
        // Asked when the journal was read: what it says by then must be known here too.
        let _ = shown.advance();
        shown.replayed.engine.counts().total()
    }
}
