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
use tulpar_core::ids::SearchId;
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

/// Opens the storage of a search.
pub type Opener = Box<dyn Fn(&Engine, SearchId) -> Result<Box<dyn Storage>, StorageError>>;

enum Message {
    /// A search whose tasks are known only now.
    Opened(SearchId, Box<dyn Storage>),
    Changed(SearchId, Vec<(Trial, Times)>),
    Finish,
}

/// What came of a look.
enum Heard {
    Foreign(SearchId, Foreign),
    Trouble(String),
}

/// All storages of a run, with the thread that keeps them.
pub struct Keeper {
    /// How many trials of each search were told.
    told: BTreeMap<SearchId, u32>,
    open: Opener,
    changes: Sender<Message>,
    heard: Receiver<Heard>,
    /// What was there before the run began.
    first: Vec<Heard>,
    thread: Option<JoinHandle<()>>,
    warnings: Vec<String>,
}

impl Keeper {
    /// Looks through the storages, and then keeps them. Nothing is written before this returns: a storage that cannot be
    /// understood is refused as it is. A run that is `resumed` goes on without it, as it would if it broke meanwhile.
    pub fn start(engine: &Engine, open: Opener, resumed: bool) -> Result<Self, StorageError> {
        let (mut first, mut storages, mut told) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut warnings = Vec::new();
        for search in engine.graph().searches() {
            let opened = open(engine, search).and_then(|mut storage| {
                let known = prepare(engine, search, &mut *storage, &mut first)?;
                Ok((storage, known))
            });
            match opened {
                Ok((storage, known)) => {
                    told.insert(search, known);
                    storages.push((search, storage));
                }
                Err(error) if resumed => warnings.push(not_kept(engine, search, &error)),
                Err(error) => return Err(error),
            }
        }
        let (changes, changed) = unbounded();
        let (tell, heard) = unbounded();
        let keeping = move || Keeping { storages, changed, tell }.run();
        let thread = std::thread::Builder::new().name("studies".into()).spawn(keeping);
        let thread = thread.map_err(|source| StorageError::Io { path: "a thread".into(), source })?;
        Ok(Self { told, open, changes, heard, first, thread: Some(thread), warnings })
    }

    /// Tells the storages what the events changed.
    pub fn stepped(&mut self, engine: &Engine, at: Timestamp, events: &[Event]) {
        let graph = engine.graph();
        if events.iter().any(|event| matches!(event, Event::Grafted { .. })) {
            self.open_new(engine);
        }
        let mut touched: BTreeMap<SearchId, BTreeSet<u32>> = BTreeMap::new();
        for event in events {
            if let Event::Added { set, part, .. } = event {
                touched.entry(SearchId { set: *set, part: *part }).or_default();
            }
            let trial = event.job().and_then(|job| Some((graph.search_of(job)?, graph.trial(job)?.number)));
            if let Some((search, number)) = trial {
                touched.entry(search).or_default().insert(number);
            }
        }
        let times = times(at);
        for (search, numbers) in touched {
            let (Some(study), Some(told)) = (graph.study(search), self.told.get_mut(&search)) else { continue };
            let known = *told;
            let old = numbers.into_iter().filter(|number| *number < known);
            let trials = old.chain(known..study.trials().len() as u32).filter_map(|number| study.trial(number));
            let trials: Vec<_> = trials.map(|trial| (trial.clone(), times.clone())).collect();
            *told = study.trials().len() as u32;
            if !trials.is_empty() {
                // Where nobody listens any more, it was said why.
                let _ = self.changes.send(Message::Changed(search, trials));
            }
        }
    }

    /// Searches over what an earlier task left are known when that has ended.
    fn open_new(&mut self, engine: &Engine) {
        let new: Vec<SearchId> = engine.graph().searches().filter(|search| !self.told.contains_key(search)).collect();
        for search in new {
            let opened = (self.open)(engine, search).and_then(|mut storage| {
                let told = prepare(engine, search, &mut *storage, &mut self.first)?;
                Ok((storage, told))
            });
            match opened {
                Ok((storage, told)) => {
                    self.told.insert(search, told);
                    let _ = self.changes.send(Message::Opened(search, storage));
                }
                Err(error) => self.warnings.push(not_kept(engine, search, &error)),
            }
        }
    }

    /// What others added, for the engine.
    pub fn inputs(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        for heard in self.first.drain(..).chain(self.heard.try_iter()) {
            match heard {
                Heard::Foreign(SearchId { set, part }, Foreign::Ended { source, values, reports, outcome }) => {
                    let added = Added { source, values, steps: reports, outcome: Some(outcome), running: false };
                    inputs.push(Input::Added { set, part, added: Box::new(added) });
                }
                Heard::Foreign(SearchId { set, part }, Foreign::Requested { source, values }) => {
                    let added = Added { source, values, steps: Vec::new(), outcome: None, running: false };
                    inputs.push(Input::Added { set, part, added: Box::new(added) });
                }
                Heard::Foreign(SearchId { set, part }, Foreign::Running { source, values }) => {
                    let added = Added { source, values, steps: Vec::new(), outcome: None, running: true };
                    inputs.push(Input::Added { set, part, added: Box::new(added) });
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

fn not_kept(engine: &Engine, search: SearchId, error: &StorageError) -> String {
    format!("the study of {} is not kept for others: {error}", engine.graph().search_name(search))
}

/// Gives a storage what the study has, and looks what is there; the number of trials that it was given.
fn prepare(
    engine: &Engine,
    search: SearchId,
    storage: &mut dyn Storage,
    first: &mut Vec<Heard>,
) -> Result<u32, StorageError> {
    let trials = engine.graph().study(search).map(|study| study.trials()).unwrap_or_default();
    for trial in trials {
        storage.note(trial.clone(), times(now()));
    }
    first.extend(storage.look()?.into_iter().map(|foreign| Heard::Foreign(search, foreign)));
    Ok(trials.len() as u32)
}

/// Of what happens now; a begin that was known counts more.
fn times(at: Timestamp) -> Times {
    let text = Date::from(at).rfc3339().replace('Z', "+00:00");
    Times { begin: text.clone(), end: text }
}

struct Keeping {
    storages: Vec<(SearchId, Box<dyn Storage>)>,
    changed: Receiver<Message>,
    tell: Sender<Heard>,
}

impl Keeping {
    fn run(mut self) {
        let mut over = false;
        while !over {
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
                Ok(Message::Opened(search, storage)) => self.storages.push((search, storage)),
                Ok(Message::Changed(search, trials)) => {
                    soon = soon.min(Instant::now() + WRITE_EVERY);
                    let of_search = self.storages.iter_mut().filter(|(other, _)| *other == search);
                    for (_, storage) in of_search {
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
