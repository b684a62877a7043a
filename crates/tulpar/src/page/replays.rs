//! Runs that are replayed for the page: a few at a time, and followed as their journals grow.
//!
//! A long journal is read in a thread of its own, and whoever asks meanwhile is told how far that is.

use super::{Trouble, lock};
use crate::explanation::Causes;
use crate::failure::Failure;
use crate::messages::Silent;
use crate::replay::{self, Replayed};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard};
use tulpar_core::engine::Engine;
use tulpar_exec::folder::RunFolder;
use tulpar_exec::journal::Entry;
use tulpar_report::{Gathered, Timeline};

/// So many engines are kept.
const MOST: usize = 4;
/// A journal up to this size is read at once, in less time than somebody notices.
pub(super) const LARGE: u64 = 6 << 20;

pub(super) struct Replays {
    state: Mutex<State>,
    /// A journal was read.
    read: Condvar,
}

#[derive(Default)]
struct State {
    /// The one used last is last.
    open: Vec<(String, Shared)>,
    /// Those that are being read, and how many events of them were.
    reading: BTreeMap<String, Arc<AtomicU64>>,
    failed: BTreeMap<String, Failure>,
}

pub(super) type Shared = Arc<RwLock<Shown>>;

/// A run, with what explaining it and reporting about it needs beside the engine.
pub(super) struct Shown {
    pub(super) replayed: Replayed,
    pub(super) causes: Causes,
    pub(super) timeline: Timeline,
    pub(super) gathered: Gathered,
}

/// What there is of a run.
pub(super) enum Look {
    Whole(Shared),
    Reading(Reading),
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Reading {
    /// Events that were read so far.
    pub(super) read: u64,
}

#[derive(Default)]
struct Noted {
    causes: Causes,
    timeline: Timeline,
    gathered: Gathered,
}

impl Noted {
    fn note(&mut self, engine: &Engine, entry: &Entry) {
        self.causes.note(&entry.event);
        self.timeline.note(engine.graph(), entry.at, &entry.event);
        self.gathered.note(engine.graph(), entry.at, &entry.event);
    }
}

impl Shown {
    fn open(folder: RunFolder, count: &AtomicU64) -> Result<Self, Failure> {
        let mut noted = Noted::default();
        let replayed = replay::open_with(&Silent, folder, |engine, entry| {
            noted.note(engine, entry);
            count.store(entry.seq, Ordering::Relaxed);
        })?;
        let Noted { causes, timeline, gathered } = noted;
        Ok(Shown { replayed, causes, timeline, gathered })
    }

    fn advance(&mut self) -> Result<(), Failure> {
        let Shown { replayed, causes, timeline, gathered } = self;
        let mut noted = Noted {
            causes: std::mem::take(causes),
            timeline: std::mem::take(timeline),
            gathered: std::mem::take(gathered),
        };
        let advanced = replayed.advance(|engine, entry| {
            // A journal that was cut is read from its beginning.
            if entry.seq == 1 {
                noted = Noted::default();
            }
            noted.note(engine, entry);
        });
        (*causes, *timeline, *gathered) = (noted.causes, noted.timeline, noted.gathered);
        advanced.map(drop)
    }
}

pub(super) fn read(shown: &Shared) -> RwLockReadGuard<'_, Shown> {
    shown.read().unwrap_or_else(PoisonError::into_inner)
}

/// Whether reading a run takes so long that nobody should wait for it.
pub(super) fn is_large(folder: &RunFolder) -> bool {
    std::fs::metadata(folder.journal()).is_ok_and(|journal| journal.len() > LARGE)
}

impl Replays {
    pub(super) fn new() -> Self {
        Replays { state: Mutex::default(), read: Condvar::new() }
    }

    /// The run as its journal tells it now, or how much of that was read.
    pub(super) fn of(self: &Arc<Self>, folder: &RunFolder) -> Result<Look, Trouble> {
        if let Some(known) = self.known(folder)? {
            return Ok(Look::Whole(known));
        }
        if !is_large(folder) {
            return Ok(Look::Whole(self.wait(folder)?));
        }
        let mut state = lock(&self.state);
        if let Some(failure) = state.failed.remove(&folder.name) {
            return Err(failure.into());
        }
        if let Some(count) = state.reading.get(&folder.name) {
            return Ok(Look::Reading(Reading { read: count.load(Ordering::Relaxed) }));
        }
        drop(state);
        let (replays, folder) = (self.clone(), folder.clone());
        let work = move || {
            if let Err(failure) = replays.wait(&folder) {
                lock(&replays.state).failed.insert(folder.name.clone(), failure);
            }
        };
        std::thread::Builder::new().name("page-read".into()).spawn(work).map_err(Failure::Launch)?;
        Ok(Look::Reading(Reading { read: 0 }))
    }

    /// The run as its journal tells it now, however long that takes.
    pub(super) fn wait(&self, folder: &RunFolder) -> Result<Shared, Failure> {
        let mut state = lock(&self.state);
        while state.reading.contains_key(&folder.name) {
            state = self.read.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        if let Some(known) = self.known(folder)? {
            return Ok(known);
        }
        let count = Arc::new(AtomicU64::new(0));
        lock(&self.state).reading.insert(folder.name.clone(), count.clone());
        let shown = Shown::open(folder.clone(), &count).map(|shown| Arc::new(RwLock::new(shown)));
        let mut state = lock(&self.state);
        state.reading.remove(&folder.name);
        if let Ok(shown) = &shown {
            // Somebody else may have been faster.
            state.open.retain(|(run, _)| *run != folder.name);
            state.open.push((folder.name.clone(), shown.clone()));
            if state.open.len() > MOST {
                state.open.remove(0);
            }
        }
        self.read.notify_all();
        shown
    }

    /// One that was read before, and on to where its journal is now.
    fn known(&self, folder: &RunFolder) -> Result<Option<Shared>, Failure> {
        let known = {
            let open = &mut lock(&self.state).open;
            let place = open.iter().position(|(run, _)| *run == folder.name);
            place.map(|place| {
                let found = open.remove(place);
                open.push(found.clone());
                found.1
            })
        };
        // While somebody reads it, as it was a moment ago.
        if let Some(known) = &known
            && let Ok(mut shown) = known.try_write()
        {
            shown.advance()?;
        }
        Ok(known)
    }
}
