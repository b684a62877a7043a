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

    /// How long the tasks of each set took that ran in this run and ended well, in seconds, on average. Attempts that
    /// failed say nothing of it.
    pub fn durations(&self, run: &str) -> Result<BTreeMap<String, f64>, StoreError> {
        let run = self.row(run)?.run;
        self.answer(|sql| {
            sql.prepare_cached(
                "SELECT task_set, avg(last_wall_us) / 1e6 FROM jobs WHERE run = ?1 AND state = 'done' \
                 AND task_set IS NOT NULL AND last_wall_us IS NOT NULL AND reused_from IS NULL GROUP BY task_set",
            )?
            .query_map([run], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
        })
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
        "SELECT task_set, attempts, timed, measured, sized, wall_us, max_wall_us, cpu_us, max_cpu_us, peak_rss, \
         max_peak_rss, read_bytes, max_read_bytes, write_bytes, max_write_bytes FROM task_sets WHERE run = ?1 ORDER BY first_job",
    )?;
    let mut sets = Vec::new();
    let mut found = statement.query([run])?;
    while let Some(row) = found.next()? {
        let name: String = row.get(0)?;
        let Some((jobs, reused)) = counts.remove(&name) else { continue };
        let attempts = unsigned(row, 1)?;
        let (timed, measured, sized) = (unsigned(row, 2)?, unsigned(row, 3)?, unsigned(row, 4)?);
        let spread = |column: usize, count: u64| {
            if count == 0 {
                return Ok(Spread { mean: 0.0, max: 0, total: 0 });
            }
            let total = unsigned(row, column)?;
            let mean = total as f64 / count as f64;
            Ok::<_, rusqlite::Error>(Spread { mean, max: unsigned(row, column + 1)?, total })
        };
        sets.push(SetSummary {
            jobs,
            reused,
            attempts,
            timed,
            measured,
            wall_us: spread(5, timed)?,
            cpu_us: spread(7, measured)?,
            peak_rss: spread(9, sized)?,
            read_bytes: spread(11, measured)?,
            write_bytes: spread(13, measured)?,
            set: (!name.is_empty()).then_some(name),
        });
    }
    Ok(sets)
}
