//! What `tulpar report --json` says of a run, for the parts of the page that need all of its journal: what was moved, what
//! was asked for and used.
//!
//! A report is made once for a run that is over; while it goes on, again when it is asked for and some time has passed. That
//! of a long run is made in a thread of its own and kept in the store.

use super::replays::{Look, Replays, Shared, is_large, read};
use super::{Given, JSON, Page, Stores, Trouble, lock};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::run_report;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_store::Kept;
use tulpar_transfer::Answer;

/// So many are kept in memory.
const MOST: usize = 8;
/// A report of a run that goes on is made at most so often, and takes at most a tenth of the time.
const PACE: Duration = Duration::from_secs(5);
/// The name under which one is kept: another version writes others.
const WHAT: &str = concat!("report of ", env!("CARGO_PKG_VERSION"));

pub(super) struct Reports {
    project: Project,
    replays: Arc<Replays>,
    stores: Arc<Stores>,
    messages: Arc<dyn Messages>,
    known: Mutex<Vec<Known>>,
    /// Runs whose reports are being made.
    making: Mutex<BTreeSet<String>>,
}

#[derive(Clone)]
struct Known {
    run: String,
    /// Of the run, when it was made.
    events: u64,
    not_before: Instant,
    bytes: Arc<Vec<u8>>,
}

/// Said until there is a report.
#[derive(Serialize)]
struct ReadingView {
    reading: super::replays::Reading,
    events: u64,
}

impl Reports {
    pub(super) fn new(
        project: Project,
        replays: Arc<Replays>,
        stores: Arc<Stores>,
        messages: Arc<dyn Messages>,
    ) -> Self {
        Reports { project, replays, stores, messages, known: Mutex::default(), making: Mutex::default() }
    }

    /// The report; none while it is being made for the first time.
    fn of(self: &Arc<Self>, folder: &RunFolder, events: u64) -> Result<Option<Arc<Vec<u8>>>, Trouble> {
        let run = &folder.name;
        let now = Instant::now();
        let known = lock(&self.known).iter().find(|known| known.run == *run).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.events == events || now < known.not_before) {
            return Ok(Some(known.bytes.clone()));
        }
        if !is_large(folder) {
            let shown = self.replays.wait(folder)?;
            return Ok(Some(self.make(run, &shown, events)?));
        }
        if known.is_none() && events > 0 {
            let kept = self.stores.ask(|store| store.kept(run, WHAT))?;
            if let Some(kept) = kept.filter(|kept| kept.seq == events) {
                return Ok(Some(self.put(run, events, Arc::new(kept.body), now)));
            }
        }
        if lock(&self.making).insert(run.clone()) {
            let (reports, folder) = (self.clone(), folder.clone());
            let work = move || {
                if let Err(trouble) = reports.make_and_keep(&folder, events) {
                    reports.messages.warning(&format!("no report of {}: {trouble}", folder.name));
                }
                lock(&reports.making).remove(&folder.name);
            };
            std::thread::Builder::new().name("page-report".into()).spawn(work).map_err(Failure::Launch)?;
        }
        // While a later one is made, the one before.
        Ok(known.map(|known| known.bytes))
    }

    fn make_and_keep(&self, folder: &RunFolder, events: u64) -> Result<(), Trouble> {
        let shown = self.replays.wait(folder)?;
        let bytes = self.make(&folder.name, &shown, events)?;
        let kept = Kept { seq: events, body: bytes.to_vec() };
        self.stores.ask(|store| store.keep(&folder.name, WHAT, &kept))
    }

    fn make(&self, run: &str, shown: &Shared, events: u64) -> Result<Arc<Vec<u8>>, Failure> {
        let began = Instant::now();
        let shown = read(shown);
        let report =
            run_report::report_of(&self.project, &shown.replayed, &shown.timeline, &shown.gathered, &*self.messages)?;
        let bytes = serde_json::to_vec(&report).map_err(|error| Failure::Bug(error.to_string()))?;
        Ok(self.put(run, events, Arc::new(bytes), began))
    }

    fn put(&self, run: &str, events: u64, bytes: Arc<Vec<u8>>, began: Instant) -> Arc<Vec<u8>> {
        let mut known = lock(&self.known);
        known.retain(|known| known.run != run);
        let not_before = Instant::now() + PACE.max(began.elapsed() * 10);
        known.push(Known { run: run.to_owned(), events, not_before, bytes: bytes.clone() });
        if known.len() > MOST {
            known.remove(0);
        }
        bytes
    }
}

impl Page {
    pub(super) fn report(&self, run: &str) -> Given {
        let folder = self.folder(run)?;
        let events = self.board.line(run).map_or(0, |line| line.events);
        if let Some(bytes) = self.reports.of(&folder, events)? {
            return Ok(Answer::new(200, JSON, bytes.to_vec()).with("Cache-Control", "no-store"));
        }
        let read = match self.replays.of(&folder)? {
            Look::Whole(_) => events,
            Look::Reading(reading) => reading.read,
        };
        let said = ReadingView { reading: super::replays::Reading { read }, events };
        let mut answer = super::json(&said)?;
        answer.status = 202;
        Ok(answer)
    }

    /// Begins to read what a page about a long run will ask for.
    pub(super) fn prepare(&self, folder: &RunFolder) {
        if is_large(folder) {
            let _ = self.replays.of(folder);
        }
    }
}
