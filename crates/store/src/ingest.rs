//! Bringing the store up to date: each run's files are read on from where the last sync stopped.
//!
//! A run without anything new costs three stats, and the plan is read only when the journal has a new line. Records come first,
//! then samples, then the journal, so that the end of an attempt finds what was measured of it. Offsets and rows change in
//! one transaction, so a crash or a second process can neither lose nor double an event. A journal that is not the one that
//! was read before (removed and made anew, or cut by a resume after a power loss) is read from its beginning.

use crate::cursor::{Cursor, Cursors};
use crate::lines::{Lines, has_line, tail};
use crate::project::Changes;
use crate::rows::{self, RunRow, signed};
use crate::{PlanOf, Store, StoreError, Told};
use rusqlite::{Connection, TransactionBehavior, params};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tulpar_core::ids::JobId;
use tulpar_core::job::Record;
use tulpar_core::journal_line::Line;
use tulpar_core::live::LiveLine;

/// Lines in one transaction: enough to be fast, few enough that others get their turn.
const PORTION: u64 = 100_000;

/// What a sync took in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// Runs that had something new.
    pub runs: u64,
    pub events: u64,
    pub records: u64,
    pub samples: u64,
    /// Lines of journals, records and samples that could not be read.
    pub bad_lines: u64,
    /// Events of another version of Tulpar, kept as text only.
    pub unknown_events: u64,
    /// Runs whose folder is gone.
    pub forgotten: u64,
}

enum Trouble {
    Sql(rusqlite::Error),
    Read(PathBuf, io::Error),
}

impl From<rusqlite::Error> for Trouble {
    fn from(cause: rusqlite::Error) -> Self {
        Trouble::Sql(cause)
    }
}

fn reading(path: &Path) -> impl FnOnce(io::Error) -> Trouble {
    let path = path.to_owned();
    move |cause| Trouble::Read(path, cause)
}

pub(crate) fn sync(
    store: &mut Store,
    runs: &Path,
    plans: &mut PlanOf<'_>,
    told: &mut Told<'_>,
) -> Result<Synced, StoreError> {
    let mut synced = Synced::default();
    let outcome = sync_all((&mut store.connection, &mut store.cursors), runs, plans, told, &mut synced);
    outcome.map(|()| synced).map_err(|trouble| match trouble {
        Trouble::Sql(cause) => store.sql(cause),
        Trouble::Read(path, cause) => StoreError::Read { path, cause },
    })
}

fn sync_all(
    (sql, cursors): (&mut Connection, &mut Cursors),
    runs: &Path,
    plans: &mut PlanOf<'_>,
    told: &mut Told<'_>,
    synced: &mut Synced,
) -> Result<(), Trouble> {
    let folders = run_folders(runs)?;
    forget(sql, &folders, synced)?;
    cursors.retain(|run| folders.contains_key(run));
    for (name, folder) in &folders {
        let mut ingest = Ingest {
            name,
            folder,
            journal: folder.join("journal.jsonl"),
            records: folder.join("records.jsonl"),
            samples: folder.join("samples.jsonl"),
            cursor: None,
            news: false,
            left: None,
        };
        while ingest.portion((sql, cursors), plans, synced)? {
            told(name, taken_in(sql, name)?);
        }
        if let Some(cursor) = ingest.cursor.filter(|cursor| !cursor.is_over()) {
            cursors.keep(name, cursor);
        }
        synced.runs += u64::from(ingest.news);
    }
    Ok(())
}

/// All runs below a folder; those of workflows inside a run lie in its folder `sub`.
fn run_folders(runs: &Path) -> Result<BTreeMap<String, PathBuf>, Trouble> {
    let mut folders = BTreeMap::new();
    let mut look_in = vec![(runs.to_owned(), String::new())];
    while let Some((place, before)) = look_in.pop() {
        let listing = match fs::read_dir(&place) {
            Ok(listing) => listing,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(reading(&place)(cause)),
        };
        for entry in listing {
            let path = entry.map_err(reading(&place))?.path();
            if let Some(name) = path.file_name().and_then(|name| name.to_str())
                && path.join("journal.jsonl").is_file()
            {
                let name = format!("{before}{name}");
                look_in.push((path.join("sub"), format!("{name}/sub/")));
                folders.insert(name, path);
            }
        }
    }
    Ok(folders)
}

/// The store shows what the journals say: a run whose folder was removed is no more.
fn forget(sql: &mut Connection, folders: &BTreeMap<String, PathBuf>, synced: &mut Synced) -> rusqlite::Result<()> {
    let known: Vec<(i64, String)> = {
        let mut statement = sql.prepare_cached("SELECT run, name FROM runs")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<_, _>>()?
    };
    for (run, _) in known.iter().filter(|(_, name)| !folders.contains_key(name)) {
        let transaction = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        rows::remove(&transaction, *run)?;
        transaction.execute("DELETE FROM runs WHERE run = ?1", [run])?;
        transaction.commit()?;
        synced.forgotten += 1;
    }
    Ok(())
}

/// Bytes of a run's journal, records and samples that are in the tables.
pub(crate) fn taken_in(sql: &Connection, name: &str) -> rusqlite::Result<u64> {
    let there = rows::read_run(sql, name)?;
    Ok(there.map_or(0, |run| offsets(&run).iter().sum::<i64>().unsigned_abs()))
}

/// The plan did not read when this run was taken in; it may now.
fn lacks_plan(run: &RunRow) -> bool {
    run.applied.is_none() && run.version.is_some()
}

fn length(path: &Path) -> i64 {
    fs::metadata(path).map_or(0, |about| signed(about.len()))
}

/// One run on its way in.
struct Ingest<'a> {
    name: &'a str,
    folder: &'a Path,
    journal: PathBuf,
    records: PathBuf,
    samples: PathBuf,
    /// Where the last portion ended.
    cursor: Option<Cursor>,
    /// There was something new.
    news: bool,
    /// Where the last portion ended, and the jobs that are in the tables since, when all of them were put there now.
    left: Option<([i64; 3], HashSet<u32>)>,
}

/// Where a portion begins.
#[derive(Clone, Copy)]
struct Start {
    /// In the journal.
    offset: i64,
    /// The rows of the run are made anew.
    anew: bool,
    /// The journal is read on.
    journal: bool,
}

#[derive(PartialEq, Eq)]
enum Reached {
    End,
    Portion,
}

impl Ingest<'_> {
    /// Takes in one portion. Whether there may be more.
    fn portion(
        &mut self,
        (sql, cursors): (&mut Connection, &mut Cursors),
        plans: &mut PlanOf<'_>,
        synced: &mut Synced,
    ) -> Result<bool, Trouble> {
        let there = rows::read_run(sql, self.name)?;
        let is_known = there.as_ref().is_some_and(|there| {
            there.journal_bytes == length(&self.journal)
                && there.records_bytes == length(&self.records)
                && there.samples_bytes == length(&self.samples)
        });
        if is_known && !there.as_ref().is_some_and(lacks_plan) {
            return Ok(false);
        }
        // Before the transaction: reading a large plan or journal must not keep others from writing.
        let from = self.prepare(there.as_ref(), cursors, plans)?;
        if is_known && self.cursor.is_none() {
            return Ok(false);
        }
        self.news = true;
        let before = *synced;
        let more = self.take(sql, from, synced)?;
        if more.is_none() {
            *synced = before;
        }
        Ok(more.unwrap_or(true))
    }

    /// Brings the state of the run to where the journal is read on, if it is.
    fn prepare(
        &mut self,
        there: Option<&RunRow>,
        cursors: &mut Cursors,
        plans: &mut PlanOf<'_>,
    ) -> Result<Start, Trouble> {
        let anew = there.map_or(Ok(false), |there| self.is_other(there))?;
        let there = there.filter(|_| !anew);
        let offset = there.map_or(0, |there| there.journal_bytes);
        let begins = there.is_none_or(|there| there.jobs == 0);
        if !begins
            && !there.is_some_and(lacks_plan)
            && !has_line(&self.journal, offset).map_err(reading(&self.journal))?
        {
            return Ok(Start { offset, anew, journal: false });
        }
        let mut kept = self.cursor.take().or_else(|| cursors.take(self.name));
        let mut at = |offset| {
            let run = (self.name, self.folder);
            Cursor::at(kept.take(), run, &self.journal, offset, plans).map_err(reading(&self.journal))
        };
        let cursor = at(offset)?;
        // The plan did not read when these rows were written, and does now.
        let applied = there.and_then(|there| there.applied).unwrap_or(0);
        if offset > 0 && cursor.as_ref().is_some_and(|cursor| signed(cursor.seq()) != applied) {
            self.cursor = at(0)?;
            return Ok(Start { offset: 0, anew: true, journal: true });
        }
        self.cursor = cursor;
        Ok(Start { offset, anew, journal: true })
    }

    /// The files are not those that were read.
    fn is_other(&self, run: &RunRow) -> Result<bool, Trouble> {
        let shrunk = run.journal_bytes > length(&self.journal) || run.records_bytes > length(&self.records);
        Ok(shrunk || tail(&self.journal, run.journal_bytes).map_err(reading(&self.journal))? != run.tail)
    }

    /// Takes in one portion; nothing when another process took in something meanwhile.
    fn take(&mut self, sql: &mut Connection, from: Start, synced: &mut Synced) -> Result<Option<bool>, Trouble> {
        let transaction = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut run = match rows::read_run(&transaction, self.name)? {
            Some(there) => there,
            None => {
                transaction.prepare_cached("INSERT INTO runs (name) VALUES (?1)")?.execute([self.name])?;
                self.anew(transaction.last_insert_rowid())
            }
        };
        if from.anew {
            rows::remove(&transaction, run.run)?;
            run = self.anew(run.run);
        }
        if run.journal_bytes != from.offset {
            return Ok(None);
        }
        // Begun anew because it had become long: what was read of it still holds.
        if run.samples_bytes > length(&self.samples)
            || tail(&self.samples, run.samples_bytes).map_err(reading(&self.samples))? != run.samples_tail
        {
            run.samples_bytes = 0;
        }
        let before = offsets(&run);
        let met = match self.left.take() {
            // Nobody else has taken in anything meanwhile.
            Some((left, met)) if left == before => Some(met),
            // A look before the first event has put the jobs of the plan there.
            _ if before == [0; 3] && run.jobs == 0 => Some(HashSet::new()),
            _ => None,
        };
        let mut cursor = self.cursor.take();
        let mut changes = Changes::new(&transaction, run, cursor.as_mut(), met);
        let mut more = self.take_records(&mut changes, synced)? == Reached::Portion
            || self.take_samples(&mut changes, synced)? == Reached::Portion
            || from.journal && self.take_journal(&transaction, &mut changes, synced)? == Reached::Portion;
        changes.run.tail = tail(&self.journal, changes.run.journal_bytes).map_err(reading(&self.journal))?;
        changes.run.samples_tail = tail(&self.samples, changes.run.samples_bytes).map_err(reading(&self.samples))?;
        let met = changes.write(!more)?;
        let reached = (changes.run.journal_bytes, changes.run.tail.clone());
        let left = met.map(|met| (offsets(&changes.run), met));
        // Half a line at the end is left for the next sync.
        more &= before != offsets(&changes.run);
        drop(changes);
        transaction.commit()?;
        if let Some(cursor) = &mut cursor {
            cursor.reached(reached.0, reached.1);
        }
        self.cursor = cursor;
        self.left = left;
        Ok(Some(more))
    }

    fn anew(&self, run: i64) -> RunRow {
        RunRow { run, name: self.name.to_owned(), ..RunRow::default() }
    }

    fn take_journal(
        &self,
        sql: &Connection,
        changes: &mut Changes<'_>,
        synced: &mut Synced,
    ) -> Result<Reached, Trouble> {
        let mut insert = sql.prepare_cached("INSERT OR REPLACE INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        let mut lines = Lines::open(&self.journal, changes.run.journal_bytes).map_err(reading(&self.journal))?;
        while let Some(bytes) = lines.next().map_err(reading(&self.journal))? {
            let Ok(line) = Line::parse(bytes) else {
                changes.run.bad_lines += 1;
                synced.bad_lines += 1;
                changes.run.journal_bytes = lines.offset;
                continue;
            };
            let event = line.event();
            let (job, attempt) = match &event {
                Ok(event) => (event.job(), event.attempt().map(|attempt| attempt.n)),
                Err(_) => about(line.data),
            };
            insert.execute(params![
                changes.run.run,
                signed(line.seq),
                signed(line.at.0),
                line.kind,
                job.map(|job| job.0),
                attempt,
                line.data
            ])?;
            changes.run.events += 1;
            changes.run.last_seq = signed(line.seq);
            changes.run.last_at = Some(signed(line.at.0));
            synced.events += 1;
            match event {
                Ok(event) => changes.event(line.seq, line.at, event)?,
                Err(_) => {
                    changes.run.unknown_events += 1;
                    synced.unknown_events += 1;
                }
            }
            changes.run.journal_bytes = lines.offset;
            if lines.count >= PORTION {
                return Ok(Reached::Portion);
            }
        }
        Ok(Reached::End)
    }

    fn take_records(&self, changes: &mut Changes<'_>, synced: &mut Synced) -> Result<Reached, Trouble> {
        let lines = Lines::open_if_there(&self.records, changes.run.records_bytes).map_err(reading(&self.records))?;
        let Some(mut lines) = lines else { return Ok(Reached::End) };
        while let Some(bytes) = lines.next().map_err(reading(&self.records))? {
            match serde_json::from_slice::<Record>(bytes) {
                Ok(record) => {
                    synced.records += 1;
                    changes.record(record)?;
                }
                Err(_) => synced.bad_lines += 1,
            }
            changes.run.records_bytes = lines.offset;
            if lines.count >= PORTION {
                return Ok(Reached::Portion);
            }
        }
        Ok(Reached::End)
    }

    fn take_samples(&self, changes: &mut Changes<'_>, synced: &mut Synced) -> Result<Reached, Trouble> {
        let lines = Lines::open_if_there(&self.samples, changes.run.samples_bytes).map_err(reading(&self.samples))?;
        let Some(mut lines) = lines else { return Ok(Reached::End) };
        while let Some(bytes) = lines.next().map_err(reading(&self.samples))? {
            match LiveLine::read(bytes) {
                Some(line) => {
                    synced.samples += 1;
                    changes.seen(line)?;
                }
                None => synced.bad_lines += 1,
            }
            changes.run.samples_bytes = lines.offset;
            if lines.count >= PORTION {
                return Ok(Reached::Portion);
            }
        }
        Ok(Reached::End)
    }
}

fn offsets(run: &RunRow) -> [i64; 3] {
    [run.journal_bytes, run.records_bytes, run.samples_bytes]
}

/// Which job and attempt an event of an unknown kind is about, if it says so as the known ones do.
fn about(data: &str) -> (Option<JobId>, Option<u32>) {
    #[derive(serde::Deserialize)]
    struct About {
        job: Option<JobId>,
        attempt: Option<tulpar_core::ids::AttemptId>,
    }
    match serde_json::from_str::<About>(data) {
        Ok(about) => (about.job.or(about.attempt.map(|attempt| attempt.job)), about.attempt.map(|attempt| attempt.n)),
        Err(_) => (None, None),
    }
}
