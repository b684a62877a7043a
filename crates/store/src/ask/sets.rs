//! Task sets at a glance, from the sums that are kept while events are taken in.

use super::unsigned;
use crate::answers::{SetSummary, Spread};
use crate::{Store, StoreError};
use rusqlite::Connection;
use std::collections::BTreeMap;

impl Store {
    /// The task sets of a run, in the order of their first jobs.
    pub fn sets(&self, run: &str) -> Result<Vec<SetSummary>, StoreError> {
        let run = self.row(run)?.run;
        self.answer(|sql| summaries(sql, run))
    }
}

fn summaries(sql: &Connection, run: i64) -> rusqlite::Result<Vec<SetSummary>> {
    let mut counts: BTreeMap<String, (BTreeMap<String, u64>, u64)> = BTreeMap::new();
    let mut statement =
        sql.prepare_cached("SELECT task_set, state, jobs, reused FROM job_counts WHERE run = ?1 AND jobs > 0")?;
    let mut counted = statement.query([run])?;
    while let Some(row) = counted.next()? {
        let (jobs, reused) = counts.entry(row.get(0)?).or_default();
        jobs.insert(row.get(1)?, unsigned(row, 2)?);
        *reused += unsigned(row, 3)?;
    }
    let mut statement = sql.prepare_cached(
        "SELECT task_set, attempts, wall_us, max_wall_us, cpu_us, max_cpu_us, peak_rss, max_peak_rss, read_bytes, \
         max_read_bytes, write_bytes, max_write_bytes FROM task_sets WHERE run = ?1 ORDER BY first_job",
    )?;
    let mut sets = Vec::new();
    let mut found = statement.query([run])?;
    while let Some(row) = found.next()? {
        let name: String = row.get(0)?;
        let Some((jobs, reused)) = counts.remove(&name) else { continue };
        let attempts = unsigned(row, 1)?;
        let spread = |column: usize| {
            let total = unsigned(row, column)?;
            let mean = if attempts == 0 { 0.0 } else { total as f64 / attempts as f64 };
            Ok::<_, rusqlite::Error>(Spread { mean, max: unsigned(row, column + 1)?, total })
        };
        sets.push(SetSummary {
            jobs,
            reused,
            attempts,
            wall_us: spread(2)?,
            cpu_us: spread(4)?,
            peak_rss: spread(6)?,
            read_bytes: spread(8)?,
            write_bytes: spread(10)?,
            set: (!name.is_empty()).then_some(name),
        });
    }
    Ok(sets)
}
