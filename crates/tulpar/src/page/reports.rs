//! What `tulpar report --json` says of a run, for the parts of the page that need all of its journal: what was moved, what
//! was asked for and used.
//!
//! A report is made once for a run that is over; while it goes on, again when it is asked for and some time has passed.

use super::{Given, JSON, Page, lock};
use crate::failure::Failure;
use crate::verbs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tulpar_exec::folder::Project;
use tulpar_transfer::Answer;

/// So many are kept.
const MOST: usize = 8;
/// A report of a run that goes on is made at most so often, and takes at most a tenth of the time.
const PACE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Reports {
    known: Mutex<Vec<Known>>,
}

struct Known {
    run: String,
    /// Of the run, when it was made.
    events: u64,
    not_before: Instant,
    bytes: Arc<Vec<u8>>,
}

impl Reports {
    fn of(&self, project: &Project, run: &str, events: u64) -> Result<Arc<Vec<u8>>, Failure> {
        let now = Instant::now();
        let good = |known: &&Known| known.run == run && (known.events == events || now < known.not_before);
        if let Some(known) = lock(&self.known).iter().find(good) {
            return Ok(known.bytes.clone());
        }
        let report = verbs::run_report(project, project.folder_of(run))?;
        let bytes = Arc::new(serde_json::to_vec(&report).map_err(|error| Failure::Bug(error.to_string()))?);
        let mut known = lock(&self.known);
        known.retain(|known| known.run != run);
        let not_before = Instant::now() + PACE.max(now.elapsed() * 10);
        known.push(Known { run: run.to_owned(), events, not_before, bytes: bytes.clone() });
        if known.len() > MOST {
            known.remove(0);
        }
        Ok(bytes)
    }
}

impl Page {
    pub(super) fn report(&self, run: &str) -> Given {
        self.folder(run)?;
        let events = self.board.line(run).map_or(0, |line| line.events);
        let bytes = self.reports.of(&self.project, run, events)?;
        Ok(Answer::new(200, JSON, bytes.to_vec()).with("Cache-Control", "no-store"))
    }
}
