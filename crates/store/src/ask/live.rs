//! What attempts use while they run, and what the run used over time.

use super::timestamp;
use crate::answers::{LiveAnswer, UsageColumn};
use crate::seen::{SAMPLE_COLUMNS, sample_from};
use crate::usage::Point;
use crate::{Store, StoreError};
use rusqlite::{OptionalExtension, params};
use tulpar_core::ids::JobId;
use tulpar_core::job::Sample;

impl Store {
    /// The samples of an attempt: of its record when it has ended, else those that were seen so far.
    pub fn samples(&self, run: &str, job: JobId, n: u32) -> Result<Vec<Sample>, StoreError> {
        let run = self.row(run)?.run;
        self.answer(|sql| {
            let recorded: Option<Option<String>> = sql
                .prepare_cached("SELECT samples FROM attempts WHERE run = ?1 AND job = ?2 AND n = ?3")?
                .query_row(params![run, job.0, n], |row| row.get(0))
                .optional()?;
            if let Some(text) = recorded.flatten() {
                return Ok(serde_json::from_str(&text).unwrap_or_default());
            }
            let query =
                format!("SELECT {SAMPLE_COLUMNS} FROM samples WHERE run = ?1 AND job = ?2 AND n = ?3 ORDER BY at");
            let mut statement = sql.prepare_cached(&query)?;
            let found = statement.query_map(params![run, job.0, n], |row| Ok(sample_from(row, 0)?.sample))?;
            found.collect()
        })
    }

    /// The attempts that run now, with the newest look at each, in the order of their jobs.
    pub fn latest_samples(&self, run: &str) -> Result<Vec<LiveAnswer>, StoreError> {
        let run = self.row(run)?.run;
        self.answer(|sql| {
            let mut running = sql.prepare_cached(
                "SELECT jobs.job, attempts.n, jobs.name, jobs.task_set, attempts.site, attempts.started \
                 FROM jobs INDEXED BY jobs_by_state JOIN attempts \
                 ON attempts.run = jobs.run AND attempts.job = jobs.job AND attempts.n = jobs.attempts \
                 WHERE jobs.run = ?1 AND state = 'running' ORDER BY jobs.job",
            )?;
            let mut looks = sql.prepare_cached(&format!(
                "SELECT {SAMPLE_COLUMNS} FROM samples WHERE run = ?1 AND job = ?2 AND n = ?3 ORDER BY at DESC LIMIT 2"
            ))?;
            let mut answers = Vec::new();
            let mut found = running.query([run])?;
            while let Some(row) = found.next()? {
                let (job, n): (u32, u32) = (row.get(0)?, row.get(1)?);
                let looks: Vec<Point> =
                    looks.query_map(params![run, job, n], |row| sample_from(row, 0))?.collect::<Result<_, _>>()?;
                let now = looks.first();
                let rate = |of: fn(&Sample) -> u64| {
                    let now = now?;
                    let before = looks.get(1).map_or((0, 0), |before| (before.sample.ms, of(&before.sample)));
                    let ms = now.sample.ms.checked_sub(before.0).filter(|ms| *ms > 0)?;
                    Some(of(&now.sample).saturating_sub(before.1) as f64 * 1000.0 / ms as f64)
                };
                answers.push(LiveAnswer {
                    job: JobId(job),
                    n,
                    name: row.get(2)?,
                    set: row.get(3)?,
                    site: row.get(4)?,
                    started: row.get::<_, Option<i64>>(5)?.map(timestamp),
                    at: now.map(|now| timestamp(now.at)),
                    sample: now.map(|now| now.sample),
                    cpus: rate(|sample| sample.cpu_us).map(|micros| micros / 1e6),
                    read_rate: rate(|sample| sample.read_bytes),
                    write_rate: rate(|sample| sample.write_bytes),
                });
            }
            Ok(answers)
        })
    }

    /// What the run used from its beginning until it was last seen, in at most so many columns of the same width.
    pub fn usage_over_time(&self, run: &str, columns: usize) -> Result<Vec<UsageColumn>, StoreError> {
        let run = self.row(run)?;
        let rows: Vec<(i64, [f64; 7])> = self.answer(|sql| {
            let mut statement = sql.prepare_cached(
                "SELECT at, running_us, cpu_us, rss_us, read_bytes, write_bytes, gpu_us, gpu_memory_us \
                 FROM usage_over_time WHERE run = ?1 ORDER BY at",
            )?;
            let found = statement.query_map([run.run], |row| {
                let mut amounts = [0.0; 7];
                for (index, amount) in amounts.iter_mut().enumerate() {
                    *amount = row.get(index + 1)?;
                }
                Ok((row.get(0)?, amounts))
            })?;
            found.collect()
        })?;
        let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else { return Ok(Vec::new()) };
        let narrow = run.usage_width.max(1);
        let count = (last - first) / narrow + 1;
        let most = i64::try_from(columns.max(1)).unwrap_or(i64::MAX);
        let width = narrow * ((count + most - 1) / most);
        let mut sums = vec![[0.0; 7]; ((last - first) / width + 1) as usize];
        for (at, amounts) in &rows {
            let sum = &mut sums[((at - first) / width) as usize];
            sum.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += amount);
        }
        // Of the first and the last column only the part that is of the run.
        let begin = run.started.filter(|started| (*first..first + width).contains(started)).unwrap_or(*first);
        let columns = sums.into_iter().enumerate().map(|(index, sums)| {
            let end = (first + (index as i64 + 1) * width).min(run.usage_until);
            let from = (first + index as i64 * width).max(begin);
            let to = end.max(from + 1);
            let long = (to - from) as f64;
            let [running, cpus, memory, read, write, gpus, gpu_memory] = sums.map(|sum| sum / long);
            UsageColumn {
                from: timestamp(from),
                to: timestamp(to),
                running,
                cpus,
                memory,
                read_rate: read * 1e6,
                write_rate: write * 1e6,
                gpus,
                gpu_memory,
            }
        });
        Ok(columns.collect())
    }
}
