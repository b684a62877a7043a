//! The studies of a run in storages that Optuna reads and writes: brought up to date while the run goes on, and looked
//! through for trials that others added.
//!
//! A thread beside the driver writes; a storage that is slow, or locked by others, keeps no task waiting. The journal of
//! the run is the truth: what a storage has not got when we die is written when the run is resumed.

mod file;
mod lock;

pub use file::JournalFile;
pub use lock::{Lock, LockError};

use crate::local::now;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::collections::{BTreeMap, BTreeSet};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tulpar_core::calendar::Date;
use tulpar_core::engine::Engine;
use tulpar_core::event::{Added, Event, Input};
use tulpar_core::hpo::Trial;
use tulpar_core::hpo::optuna::{Foreign, JournalError, Times};
use tulpar_core::ids::SetId;
use tulpar_core::units::Timestamp;

/// How often to look whether others added something.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What changes within this time is written, and synced, together.
const WRITE_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("{path}: {source}")]
    Io { path: String, source: std::io::Error },
    #[error("{path}: {source}")]
    Journal { path: String, source: JournalError },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("{path}: {message}")]
    Database { path: String, message: String },
}

/// Where one study is kept for others.
pub trait Storage: Send {
    /// A trial as it is now; it is written with the next [`Storage::write`].
    fn note(&mut self, trial: Trial, times: Times);
    /// Brings the storage up to date.
    fn write(&mut self) -> Result<(), StorageError>;
    /// What others added since the last time.
    fn look(&mut self) -> Result<Vec<Foreign>, StorageError>;
}

enum Message {
    Changed(SetId, Vec<(Trial, Times)>),
    Finish,
}

/// What came of a look.
enum Heard {
    Foreign(SetId, Foreign),
    Trouble(String),
}

/// All storages of a run, with the thread that keeps them.
pub struct Keeper {
    /// How many trials of each search were told.
    told: BTreeMap<SetId, u32>,
    changes: Sender<Message>,
    heard: Receiver<Heard>,
    /// What was there before the run began.
    first: Vec<Heard>,
    thread: Option<JoinHandle<()>>,
    warnings: Vec<String>,
}

impl Keeper {
    /// Looks through the storages, and then keeps them. Nothing is written before this returns: a storage that cannot be
    /// understood is refused as it is.
    pub fn start(engine: &Engine, mut storages: Vec<(SetId, Box<dyn Storage>)>) -> Result<Self, StorageError> {
        let mut first = Vec::new();
        for (set, storage) in &mut storages {
            for trial in engine.graph().study(*set).into_iter().flat_map(|study| study.trials()) {
                storage.note(trial.clone(), times(now()));
            }
            first.extend(storage.look()?.into_iter().map(|foreign| Heard::Foreign(*set, foreign)));
        }
        let (changes, changed) = unbounded();
        let (tell, heard) = unbounded();
        let count = |set: SetId| engine.graph().study(set).map_or(0, |study| study.trials().len() as u32);
        let told = storages.iter().map(|(set, _)| (*set, count(*set))).collect();
        let keeping = move || Keeping { storages, changed, tell }.run();
        let thread = std::thread::Builder::new().name("studies".into()).spawn(keeping);
        let thread = thread.map_err(|source| StorageError::Io { path: "a thread".into(), source })?;
        Ok(Self { told, changes, heard, first, thread: Some(thread), warnings: Vec::new() })
    }

    /// Tells the storages what the events changed.
    pub fn stepped(&mut self, engine: &Engine, at: Timestamp, events: &[Event]) {
        let graph = engine.graph();
        let jobs = events.iter().filter_map(Event::job);
        let touched: BTreeSet<(SetId, u32)> =
            jobs.filter_map(|job| Some((graph.set_of(job), graph.trial(job)?.number))).collect();
        let times = times(at);
        for (set, told) in &mut self.told {
            let Some(study) = graph.study(*set) else { continue };
            let old = touched.range((*set, 0)..(*set, *told)).map(|(_, number)| *number);
            let trials = old.chain(*told..study.trials().len() as u32).filter_map(|number| study.trial(number));
            let trials: Vec<_> = trials.map(|trial| (trial.clone(), times.clone())).collect();
            *told = study.trials().len() as u32;
            if !trials.is_empty() {
                // Where nobody listens any more, it was said why.
                let _ = self.changes.send(Message::Changed(*set, trials));
            }
        }
    }

    /// What others added, for the engine.
    pub fn inputs(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        for heard in self.first.drain(..).chain(self.heard.try_iter()) {
            match heard {
                Heard::Foreign(set, Foreign::Ended { source, values, reports, outcome }) => {
                    let added = Added { source, values, steps: reports, outcome: Some(outcome) };
                    inputs.push(Input::Added { set, added: Box::new(added) });
                }
                Heard::Foreign(set, Foreign::Requested { source, values }) => {
                    let added = Added { source, values, steps: Vec::new(), outcome: None };
                    inputs.push(Input::Added { set, added: Box::new(added) });
                }
                Heard::Foreign(_, Foreign::Unfit { source, reason }) => {
                    self.warnings.push(format!("{source} does not fit this search and is left out: {reason}"));
                }
                Heard::Trouble(words) => self.warnings.push(words),
            }
        }
        inputs
    }

    /// What there is to say, once each.
    pub fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Writes what is left, and ends.
    pub fn finish(mut self) -> Vec<String> {
        let _ = self.changes.send(Message::Finish);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.inputs();
        self.warnings()
    }
}

/// Of what happens now; a begin that was known counts more.
fn times(at: Timestamp) -> Times {
    let text = Date::from(at).rfc3339().replace('Z', "+00:00");
    Times { begin: text.clone(), end: text }
}

struct Keeping {
    storages: Vec<(SetId, Box<dyn Storage>)>,
    changed: Receiver<Message>,
    tell: Sender<Heard>,
}

impl Keeping {
    fn run(mut self) {
        let mut over = false;
        while !over && !self.storages.is_empty() {
            over = self.gather();
            self.each(|storage| storage.write().map(|()| Vec::new()));
            self.each(|storage| storage.look());
        }
    }

    /// Waits for changes, and a moment for more of them. True when there will be none.
    fn gather(&mut self) -> bool {
        let until = Instant::now() + LOOK_EVERY;
        let mut soon = until;
        loop {
            match self.changed.recv_deadline(soon) {
                Ok(Message::Changed(set, trials)) => {
                    soon = soon.min(Instant::now() + WRITE_EVERY);
                    let of_set = self.storages.iter_mut().filter(|(other, _)| *other == set);
                    for (_, storage) in of_set {
                        trials.iter().cloned().for_each(|(trial, times)| storage.note(trial, times));
                    }
                }
                Ok(Message::Finish) | Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// A storage that fails is given up: the run is worth more.
    fn each(&mut self, mut act: impl FnMut(&mut Box<dyn Storage>) -> Result<Vec<Foreign>, StorageError>) {
        self.storages.retain_mut(|(set, storage)| match act(storage) {
            Ok(found) => {
                for foreign in found {
                    let _ = self.tell.send(Heard::Foreign(*set, foreign));
                }
                true
            }
            Err(error) => {
                let words = format!("the study is not written any more, and the run goes on without: {error}");
                let _ = self.tell.send(Heard::Trouble(words));
                false
            }
        });
    }
}

#[cfg(test)]
mod tests;
