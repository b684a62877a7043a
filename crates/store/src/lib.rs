//! The store: journals and records projected into SQLite, and typed questions about them.
//!
//! It is a view, not the truth: everything in it comes from `journal.jsonl`, `records.jsonl` and `samples.jsonl` of
//! the runs and can be thrown away at any time. It reads leniently, because a report that shows most of a run is
//! better than none. States come from the engine's `apply`, and from nowhere else. It knows no executor and no terminal.
//! `docs/store.md` describes the tables for people with any SQLite tool.

mod answers;
mod ask;
mod bars;
mod blocks;
mod cursor;
mod ingest;
mod kept;
mod lines;
mod page;
mod project;
mod rows;
mod schema;
mod seen;
mod states;
mod studies;
mod tallies;
mod trials;
mod usage;

pub use answers::{
    AttemptAnswer, JobAnswer, JobFilter, JobSort, LiveAnswer, OutputAnswer, Producer, RunAnswer, SetSummary, Spread,
    StoryEvent, TransferAnswer, UsageColumn, Wanted,
};
pub use bars::Bars;
pub use ingest::Synced;
pub use kept::Kept;
pub use page::{Cells, JobLine, letter};
pub use studies::{StudyDatabase, StudyError};

use cursor::Cursors;
use rusqlite::Connection;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use tulpar_core::engine::Policy;
use tulpar_core::plan::Plan;

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("the store {}: {cause}. It can be removed at any time: it is made again from the journals", path.display())]
    Sql { path: PathBuf, cause: rusqlite::Error },
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: io::Error },
    #[error("no run is called `{0}`")]
    NoSuchRun(String),
}

/// Reads the plan and the policy that a run was started with, from its name and folder. Asked once for a run with new
/// events, until it ends; not at all for a run without news. None when they do not read: states are then `unknown`.
pub type PlanOf<'a> = dyn FnMut(&str, &Path) -> Option<(Arc<Plan>, Policy)> + 'a;

/// Told, after every portion of a run that is long, how many bytes of its files were taken in.
pub type Told<'a> = dyn FnMut(&str, u64) + 'a;

/// An open store. Several processes may have it open, to ask and to bring it up to date.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    cursors: Cursors,
}

impl Store {
    /// Opens or makes the store. One of another version, or one that is no database, is emptied.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = schema::open(path).map_err(|cause| StoreError::Sql { path: path.to_owned(), cause })?;
        Ok(Self { connection, path: path.to_owned(), cursors: Cursors::default() })
    }

    /// Takes in what the runs below this folder wrote since the last time.
    pub fn sync(&mut self, runs: &Path, plans: &mut PlanOf<'_>) -> Result<Synced, StoreError> {
        self.sync_telling(runs, plans, &mut |_, _| {})
    }

    /// The same, and says meanwhile how far it is.
    pub fn sync_telling(
        &mut self,
        runs: &Path,
        plans: &mut PlanOf<'_>,
        told: &mut Told<'_>,
    ) -> Result<Synced, StoreError> {
        ingest::sync(self, runs, plans, told)
    }

    /// How many bytes of a run's journal, records and samples were taken in; 0 when it is not known.
    pub fn taken_in(&self, run: &str) -> Result<u64, StoreError> {
        self.answer(|sql| ingest::taken_in(sql, run))
    }

    /// Throws everything away and reads all journals again.
    pub fn rebuild(&mut self, runs: &Path, plans: &mut PlanOf<'_>) -> Result<Synced, StoreError> {
        schema::empty(&mut self.connection).map_err(|cause| self.sql(cause))?;
        self.cursors = Cursors::default();
        self.sync(runs, plans)
    }

    fn sql(&self, cause: rusqlite::Error) -> StoreError {
        StoreError::Sql { path: self.path.clone(), cause }
    }
}
