//! Pages of jobs, and attempts that somebody will want to look at.
//!
//! A page is found in the index `jobs_by_state`, which has all that lists are filtered and sorted by; only the rows that
//! are shown are read.

use super::{JOB_COLUMNS, attempt_answer, job_from};
use crate::answers::{AttemptAnswer, JobAnswer, JobFilter, JobSort};
use crate::rows::{self, signed};
use crate::{Store, StoreError};
use rusqlite::params_from_iter;
use rusqlite::types::Value as Sql;
use tulpar_core::ids::JobId;

impl Store {
    pub fn jobs(&self, run: &str, filter: &JobFilter) -> Result<Vec<JobAnswer>, StoreError> {
        let run = self.row(run)?.run;
        let (which, mut values) = condition(run, filter);
        let columns = JOB_COLUMNS;
        let by = sorted_by(filter);
        let page = "LIMIT ? OFFSET ?";
        values.push(Sql::Integer(filter.limit.map_or(-1, signed)));
        values.push(Sql::Integer(signed(filter.offset)));
        let query = if filter.name.is_some() || (filter.sort == JobSort::Job && is_all(filter)) {
            format!("SELECT {columns} FROM jobs WHERE {which} ORDER BY {by} {page}")
        } else if filter.sort == JobSort::Wall && filter.descending && is_all(filter) {
            format!("SELECT {columns} FROM jobs INDEXED BY jobs_by_wall WHERE {which} ORDER BY {by} {page}")
        } else {
            values.push(Sql::Integer(run));
            format!(
                "WITH page (page_job) AS MATERIALIZED \
                 (SELECT job FROM jobs INDEXED BY jobs_by_state WHERE {which} ORDER BY {by} {page}) \
                 SELECT {columns} FROM page CROSS JOIN jobs ON run = ? AND job = page_job ORDER BY {by}"
            )
        };
        self.answer(|sql| sql.prepare_cached(&query)?.query_map(params_from_iter(values), job_from)?.collect())
    }

    /// How many jobs a list without its limit would have.
    pub fn count_jobs(&self, run: &str, filter: &JobFilter) -> Result<u64, StoreError> {
        let run = self.row(run)?.run;
        let (which, values) = condition(run, filter);
        let query = if filter.name.is_some() {
            format!("SELECT count(*) FROM jobs WHERE {which}")
        } else if filter.contains.is_some() {
            format!("SELECT count(*) FROM jobs INDEXED BY jobs_by_state WHERE {which}")
        } else {
            format!("SELECT coalesce(sum(jobs), 0) FROM job_counts WHERE {which}")
        };
        let count = self.answer(|sql| {
            sql.prepare_cached(&query)?.query_row(params_from_iter(values), |row| row.get::<_, i64>(0))
        })?;
        Ok(count.unsigned_abs())
    }

    /// Attempts that did not end well, the newest first.
    pub fn failed_attempts(&self, run: &str, limit: u64) -> Result<Vec<AttemptAnswer>, StoreError> {
        let run = self.row(run)?.run;
        let query = format!(
            "SELECT {}, job FROM attempts INDEXED BY attempts_that_failed WHERE run = ?1 AND ending IS NOT NULL \
             AND NOT (ending = 'exit' AND code = 0) ORDER BY ended DESC LIMIT ?2",
            rows::ATTEMPT_COLUMNS
        );
        self.answer(|sql| {
            sql.prepare_cached(&query)?
                .query_map([run, signed(limit)], |row| {
                    let (n, attempt) = rows::attempt_from(row)?;
                    Ok(attempt_answer(JobId(row.get("job")?), n, attempt))
                })?
                .collect()
        })
    }

    /// The jobs whose last attempts took the longest.
    pub fn slowest(&self, run: &str, limit: u64) -> Result<Vec<JobAnswer>, StoreError> {
        let filter = JobFilter { sort: JobSort::Wall, descending: true, limit: Some(limit), ..JobFilter::default() };
        let mut jobs = self.jobs(run, &filter)?;
        jobs.retain(|job| job.wall_us.is_some());
        Ok(jobs)
    }
}

/// Whether all jobs are meant: then the table, or an index, has them in their order.
fn is_all(filter: &JobFilter) -> bool {
    filter.states.is_empty() && filter.set.is_none() && filter.sets.is_none() && filter.contains.is_none()
}

fn condition(run: i64, filter: &JobFilter) -> (String, Vec<Sql>) {
    let mut which = "run = ?".to_owned();
    let mut values = vec![Sql::Integer(run)];
    // In the index, task sets come below states: with all of them named, only the jobs of the set are read.
    let all = || rows::STATES.map(str::to_owned).to_vec();
    let states = if filter.states.is_empty() && filter.set.is_some() { all() } else { filter.states.clone() };
    if !states.is_empty() {
        which += &format!(" AND state IN ({})", vec!["?"; states.len()].join(", "));
        values.extend(states.into_iter().map(Sql::Text));
    }
    if let Some(set) = &filter.set {
        which += " AND task_set = ?";
        values.push(Sql::Text(set.clone()));
    }
    if let Some(sets) = &filter.sets {
        which += " AND task_set IN (SELECT value FROM json_each(?))";
        values.push(Sql::Text(serde_json::to_string(sets).unwrap_or_default()));
    }
    if let Some(name) = &filter.name {
        which += " AND name = ?";
        values.push(Sql::Text(name.clone()));
    }
    if let Some(part) = &filter.contains {
        which += " AND name LIKE ? ESCAPE '\\'";
        let part = part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        values.push(Sql::Text(format!("%{part}%")));
    }
    (which, values)
}

fn sorted_by(filter: &JobFilter) -> String {
    let column = match filter.sort {
        JobSort::Job if filter.descending => return "job DESC".into(),
        JobSort::Job => return "job".into(),
        JobSort::Name => "name",
        JobSort::Set => "task_set",
        JobSort::State => "state",
        JobSort::Since => "since",
        JobSort::Attempts => "attempts",
        JobSort::Started => "last_started",
        JobSort::Wall => "last_wall_us",
        JobSort::Cpu => "last_cpu_us",
        JobSort::Memory => "last_peak_rss",
    };
    format!("{column} {} NULLS LAST, job", if filter.descending { "DESC" } else { "ASC" })
}
