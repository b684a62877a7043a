//! Bringing the store up to date: each run's files are read on from where the last sync stopped.
//!
//! A run without anything new costs two stats. Offsets and rows change in one transaction, so a crash or
//! a second process can neither lose nor double an event. A journal that is not the one that was read
//! before (removed and made anew, or cut by a resume after a power loss) is read from its beginning.

use crate::project::Changes;
use crate::rows::{self, RunRow, signed};
use crate::{JobNames, NamesOf, Store, StoreError};
use rusqlite::{Connection, TransactionBehavior, params};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tulpar_core::ids::JobId;
use tulpar_core::job::Record;
use tulpar_core::journal_line::Line;

/// Lines in one transaction: enough to be fast, few enough that others get their turn.
const PORTION: u64 = 100_000;

/// What a sync took in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// Runs that had something new.
    pub runs: u64,
    pub events: u64,
    pub records: u64,
    /// Lines of journals and records that could not be read.
    pub bad_lines: u64,
    /// Events of a newer Tulpar, kept as text only.
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

pub(crate) fn sync(store: &mut Store, runs: &Path, names: &mut NamesOf<'_>) -> Result<Synced, StoreError> {
    let mut synced = Synced::default();
    let outcome = sync_all(&mut store.connection, runs, names, &mut synced);
    outcome.map(|()| synced).map_err(|trouble| match trouble {
        Trouble::Sql(cause) => store.sql(cause),
        Trouble::Read(path, cause) => StoreError::Read { path, cause },
    })
}

fn sync_all(sql: &mut Connection, runs: &Path, names: &mut NamesOf<'_>, synced: &mut Synced) -> Result<(), Trouble> {
    let folders = run_folders(runs)?;
    forget(sql, &folders, synced)?;
    for (name, folder) in &folders {
        let mut ingest = Ingest {
            name,
            folder,
            journal: folder.join("journal.jsonl"),
            records: folder.join("records.jsonl"),
            names: None,
        };
        while ingest.portion(sql, names, synced)? {}
        synced.runs += u64::from(ingest.names.is_some());
    }
    Ok(())
}

fn run_folders(runs: &Path) -> Result<BTreeMap<String, PathBuf>, Trouble> {
    let listing = match fs::read_dir(runs) {
        Ok(listing) => listing,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(cause) => return Err(reading(runs)(cause)),
    };
    let mut folders = BTreeMap::new();
    for entry in listing {
        let path = entry.map_err(reading(runs))?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str())
            && path.join("journal.jsonl").is_file()
        {
            folders.insert(name.to_owned(), path);
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

fn length(path: &Path) -> i64 {
    fs::metadata(path).map_or(0, |about| signed(about.len()))
}

/// One run on its way in.
struct Ingest<'a> {
    name: &'a str,
    folder: &'a Path,
    journal: PathBuf,
    records: PathBuf,
    /// Asked for once, when there is something new.
    names: Option<Option<Box<dyn JobNames>>>,
}

#[derive(PartialEq, Eq)]
enum Reached {
    End,
    Portion,
}

impl Ingest<'_> {
    /// Takes in one portion. Whether there may be more.
    fn portion(&mut self, sql: &mut Connection, names: &mut NamesOf<'_>, synced: &mut Synced) -> Result<bool, Trouble> {
        if rows::read_run(sql, self.name)?.is_some_and(|there| {
            there.journal_bytes == length(&self.journal) && there.records_bytes == length(&self.records)
        }) {
            return Ok(false);
        }
        // Before the transaction: reading a large plan must not keep others from writing.
        self.names.get_or_insert_with(|| names(self.name, self.folder));
        let transaction = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Read again: another process may have been faster.
        let mut run = match rows::read_run(&transaction, self.name)? {
            Some(there) => there,
            None => {
                transaction.prepare_cached("INSERT INTO runs (name) VALUES (?1)")?.execute([self.name])?;
                self.anew(transaction.last_insert_rowid())
            }
        };
        let shrunk = run.journal_bytes > length(&self.journal) || run.records_bytes > length(&self.records);
        if shrunk || tail(&self.journal, run.journal_bytes).map_err(reading(&self.journal))? != run.tail {
            rows::remove(&transaction, run.run)?;
            run = self.anew(run.run);
        }
        let before = (run.journal_bytes, run.records_bytes);
        let mut changes = Changes::new(&transaction, run);
        let reached = self.take_journal(&transaction, &mut changes, synced)?;
        let mut more = reached == Reached::Portion || self.take_records(&mut changes, synced)?;
        changes.run.tail = tail(&self.journal, changes.run.journal_bytes).map_err(reading(&self.journal))?;
        let names = self.names.as_ref().and_then(|names| names.as_deref());
        changes.write(names)?;
        if !more && let Some(names) = names {
            add_waiting(&transaction, &mut changes.run, names)?;
        }
        rows::write_run(&transaction, &changes.run)?;
        // Half a line at the end is left for the next sync.
        more &= before != (changes.run.journal_bytes, changes.run.records_bytes);
        drop(changes);
        transaction.commit()?;
        Ok(more)
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
                Ok(event) => changes.event(line.at, event)?,
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

    /// Whether there may be more of them.
    fn take_records(&self, changes: &mut Changes<'_>, synced: &mut Synced) -> Result<bool, Trouble> {
        let mut lines = match Lines::open(&self.records, changes.run.records_bytes) {
            Ok(lines) => lines,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(cause) => return Err(reading(&self.records)(cause)),
        };
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
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whole lines from an offset on.
struct Lines {
    reader: BufReader<File>,
    buffer: Vec<u8>,
    /// Of the end of the last line given out.
    offset: i64,
    count: u64,
}

impl Lines {
    fn open(path: &Path, offset: i64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset.unsigned_abs()))?;
        Ok(Self { reader: BufReader::with_capacity(1 << 20, file), buffer: Vec::new(), offset, count: 0 })
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.clear();
        let read = self.reader.read_until(b'\n', &mut self.buffer)?;
        if self.buffer.pop() != Some(b'\n') {
            return Ok(None);
        }
        self.offset += signed(read as u64);
        self.count += 1;
        Ok(Some(&self.buffer))
    }
}

/// The last bytes before an offset, which hold the checksum of the line that ends there.
fn tail(journal: &Path, offset: i64) -> io::Result<String> {
    const LENGTH: u64 = 24;
    let offset = offset.unsigned_abs();
    let start = offset.saturating_sub(LENGTH);
    let mut file = File::open(journal)?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(offset - start).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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

/// Jobs of the plan that no event has mentioned yet.
fn add_waiting(sql: &Connection, run: &mut RunRow, names: &dyn JobNames) -> rusqlite::Result<()> {
    let mut insert = sql.prepare_cached(
        "INSERT OR IGNORE INTO jobs (run, job, name, task_set, state) VALUES (?1, ?2, ?3, ?4, 'waiting')",
    )?;
    for job in run.jobs..names.count() {
        insert.execute(params![run.run, job, names.name(JobId(job)), names.set(JobId(job))])?;
    }
    run.jobs = run.jobs.max(names.count());
    Ok(())
}
