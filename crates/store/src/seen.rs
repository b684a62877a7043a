//! What was seen of attempts while they ran: their rows in `samples`, and the run's use of resources over time.
//!
//! A row stays until its attempt has ended and its record, which has all samples, was read.

use crate::rows::{RunRow, signed};
use crate::usage::{self, Point, Stretch};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::HashMap;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Sample, Usage};

pub(crate) const SAMPLE_COLUMNS: &str =
    "at, ms, processes, rss, cpu_us, read_bytes, write_bytes, gpu_percent, gpu_memory";

/// From a row of [`SAMPLE_COLUMNS`] that begin at this column.
pub(crate) fn sample_from(row: &Row<'_>, first: usize) -> rusqlite::Result<Point> {
    let unsigned = |column: usize| Ok::<u64, rusqlite::Error>(row.get::<_, i64>(first + column)?.unsigned_abs());
    Ok(Point {
        at: row.get(first)?,
        sample: Sample {
            ms: unsigned(1)?,
            processes: row.get(first + 2)?,
            rss: unsigned(3)?,
            cpu_us: unsigned(4)?,
            read_bytes: unsigned(5)?,
            write_bytes: unsigned(6)?,
            gpu_percent: row.get(first + 7)?,
            gpu_memory: row.get::<_, Option<i64>>(first + 8)?.map(i64::unsigned_abs),
        },
    })
}

/// Of one attempt: the last look, or that it is over.
#[derive(Clone, Copy)]
enum Known {
    Last(Option<Point>),
    Over,
}

#[derive(Default)]
pub(crate) struct Looks {
    known: HashMap<AttemptId, Known>,
    stretches: Vec<Stretch>,
}

impl Looks {
    /// One look at a running attempt.
    pub(crate) fn look(
        &mut self,
        sql: &Connection,
        run: i64,
        attempt: AttemptId,
        at: i64,
        sample: Sample,
    ) -> rusqlite::Result<()> {
        let Known::Last(last) = self.known(sql, run, attempt)? else { return Ok(()) };
        let started = Point::start(at.saturating_sub(signed(sample.ms).saturating_mul(1000)));
        let last = last.unwrap_or(started);
        // Read a second time, or out of order: an earlier look adds nothing.
        if at <= last.at {
            return Ok(());
        }
        let now = Point { at, sample };
        let gpus = if sample.gpu_percent.is_some() { gpus(sql, run, attempt)? } else { 0 };
        self.stretches.push(last.until(&now, gpus));
        self.known.insert(attempt, Known::Last(Some(now)));
        sql.prepare_cached(
            "INSERT OR REPLACE INTO samples VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            run,
            attempt.job.0,
            attempt.n,
            at,
            signed(sample.ms),
            sample.processes,
            signed(sample.rss),
            signed(sample.cpu_us),
            signed(sample.read_bytes),
            signed(sample.write_bytes),
            sample.gpu_percent,
            sample.gpu_memory.map(signed)
        ])?;
        Ok(())
    }

    /// The end of an attempt, told once: what it used since the last look. `sampled`: there may be rows of it.
    #[expect(clippy::too_many_arguments, reason = "all of it is what is known of one end")]
    pub(crate) fn end(
        &mut self,
        sql: &Connection,
        run: i64,
        attempt: AttemptId,
        (started, ended): (i64, i64),
        usage: &Usage,
        samples: &[Sample],
        gpus: usize,
        sampled: bool,
    ) -> rusqlite::Result<()> {
        let last = match self.known.get(&attempt) {
            Some(Known::Last(last)) => *last,
            None if sampled => last_look(sql, run, attempt)?,
            _ => None,
        };
        let mut last = last.unwrap_or(Point::start(started));
        for sample in samples {
            let now = Point { at: started.saturating_add(signed(sample.ms).saturating_mul(1000)), sample: *sample };
            if now.at > last.at && sample.ms > last.sample.ms {
                self.stretches.push(last.until(&now, gpus));
                last = now;
            }
        }
        self.stretches.push(last.until_end(ended, usage, gpus));
        self.known.insert(attempt, Known::Over);
        Ok(())
    }

    fn known(&mut self, sql: &Connection, run: i64, attempt: AttemptId) -> rusqlite::Result<Known> {
        if let Some(known) = self.known.get(&attempt) {
            return Ok(*known);
        }
        let which = params![run, attempt.job.0, attempt.n];
        let over = sql
            .prepare_cached("SELECT 1 FROM attempts WHERE run = ?1 AND job = ?2 AND n = ?3 AND wall_us IS NOT NULL")?
            .exists(which)?;
        let known = if over { Known::Over } else { Known::Last(last_look(sql, run, attempt)?) };
        self.known.insert(attempt, known);
        Ok(known)
    }

    pub(crate) fn write(&mut self, sql: &Connection, run: &mut RunRow) -> rusqlite::Result<()> {
        let stretches = std::mem::take(&mut self.stretches);
        if !stretches.is_empty() {
            usage::add(sql, run, &stretches)?;
        }
        Ok(())
    }
}

fn last_look(sql: &Connection, run: i64, attempt: AttemptId) -> rusqlite::Result<Option<Point>> {
    let query =
        format!("SELECT {SAMPLE_COLUMNS} FROM samples WHERE run = ?1 AND job = ?2 AND n = ?3 ORDER BY at DESC LIMIT 1");
    let which = params![run, attempt.job.0, attempt.n];
    sql.prepare_cached(&query)?.query_row(which, |row| sample_from(row, 0)).optional()
}

/// Those that a running attempt has, as far as the journal was read.
fn gpus(sql: &Connection, run: i64, attempt: AttemptId) -> rusqlite::Result<usize> {
    let count = sql
        .prepare_cached(
            "SELECT sum(json_array_length(node.value, '$.gpus')) FROM attempts, \
             json_each(attempts.placement, '$.nodes') AS node WHERE run = ?1 AND job = ?2 AND n = ?3",
        )?
        .query_row(params![run, attempt.job.0, attempt.n], |row| row.get::<_, Option<i64>>(0))?;
    Ok(usize::try_from(count.unwrap_or(1)).unwrap_or(1).max(1))
}

/// The record has all of them.
pub(crate) fn forget(sql: &Connection, run: i64, attempt: AttemptId) -> rusqlite::Result<()> {
    sql.prepare_cached("DELETE FROM samples WHERE run = ?1 AND job = ?2 AND n = ?3")?.execute(params![
        run,
        attempt.job.0,
        attempt.n
    ])?;
    Ok(())
}
