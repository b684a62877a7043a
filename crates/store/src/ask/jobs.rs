//! Pages of jobs, and attempts that somebody will want to look at.
//!
//! A page is found in the index `jobs_by_state`, which has all that lists are filtered and sorted by; only the rows that
//! are shown are read.

use super::{JOB_COLUMNS, attempt_answer, job_from};
use crate::answers::{AttemptAnswer, JobAnswer, JobFilter, JobSort};
use crate::blocks;
use crate::page::letter;
use crate::rows::{self, signed};
use crate::{Store, StoreError};
use rusqlite::params_from_iter;
use rusqlite::types::Value as Sql;
use tulpar_core::ids::JobId;

/// So many jobs that were found by a part of their names are sorted by themselves; more of them in the index.
const FEW: usize = 2000;

impl Store {
    pub fn jobs(&self, run: &str, filter: &JobFilter) -> Result<Vec<JobAnswer>, StoreError> {
        let run = self.row(run)?.run;
        if let Some(found) = self.found(run, filter)? {
            if filter.sort == JobSort::Job {
                return self.numbered(run, filter, found);
            }
            if found.len() <= FEW {
                return self.sorted(run, filter, &found);
            }
        }
        let (which, mut values) = condition(run, filter);
        let columns = JOB_COLUMNS;
        let by = sorted_by(filter);
        let page = "LIMIT ? OFFSET ?";
        values.extend(page_of(filter));
        let query = if filter.name.is_some() || (filter.sort == JobSort::Job && is_all(filter)) {
            format!("SELECT {columns} FROM jobs WHERE {which} ORDER BY {by} {page}")
        } else {
            let longest = filter.sort == JobSort::Wall && filter.descending && is_all(filter);
            let index = if longest { "jobs_by_wall" } else { "jobs_by_state" };
            values.push(Sql::Integer(run));
            format!(
                "WITH page (page_job) AS MATERIALIZED \
                 (SELECT job FROM jobs INDEXED BY {index} WHERE {which} ORDER BY {by} {page}) \
                 SELECT {columns} FROM page CROSS JOIN jobs ON run = ? AND job = page_job ORDER BY {by}"
            )
        };
        self.answer(|sql| sql.prepare_cached(&query)?.query_map(params_from_iter(values), job_from)?.collect())
    }

    /// How many jobs a list without its limit would have.
    pub fn count_jobs(&self, run: &str, filter: &JobFilter) -> Result<u64, StoreError> {
        let run = self.row(run)?.run;
        if let Some(found) = self.found(run, filter)? {
            return Ok(found.len() as u64);
        }
        let (which, values) = condition(run, filter);
        let query = match filter.name {
            Some(_) => format!("SELECT count(*) FROM jobs WHERE {which}"),
            None => format!("SELECT coalesce(sum(jobs), 0) FROM job_counts WHERE {which}"),
        };
        let count = self.answer(|sql| {
            sql.prepare_cached(&query)?.query_row(params_from_iter(values), |row| row.get::<_, i64>(0))
        })?;
        Ok(count.unsigned_abs())
    }

    /// The jobs that a filter means, in their order, where it names a part of their names: looked for in the blocks.
    fn found(&self, run: i64, filter: &JobFilter) -> Result<Option<Vec<u32>>, StoreError> {
        let (Some(part), None) = (part_of(filter), &filter.name) else { return Ok(None) };
        let part = blocks::plain(part);
        let letters: Vec<u8> =
            filter.states.iter().flat_map(|state| [letter(state, false), letter(state, true)]).collect();
        let is_state = |letter: u8| letter != blocks::NOBODY && (letters.is_empty() || letters.contains(&letter));
        let is_set = |set: Option<&str>| {
            let one = filter.set.as_deref().is_none_or(|wanted| set == Some(wanted));
            let any = filter.sets.as_ref().is_none_or(|all| set.is_some_and(|set| all.iter().any(|one| one == set)));
            one && any
        };
        let any_set = filter.set.is_none() && filter.sets.is_none();
        let query = "SELECT block, states, sets, names FROM job_names JOIN job_states USING (run, block) WHERE run = ?1 \
             ORDER BY block";
        let found = self.answer(|sql| {
            let mut found = Vec::new();
            let mut statement = sql.prepare_cached(query)?;
            let mut rows = statement.query([run])?;
            while let Some(row) = rows.next()? {
                let first = row.get::<_, u32>(0)?.saturating_mul(blocks::JOBS);
                let states = row.get_ref(1)?.as_str()?.as_bytes();
                let mut sets: Vec<bool> = Vec::new();
                if !any_set {
                    for (set, count) in blocks::sets_read(row.get_ref(2)?.as_str()?) {
                        sets.resize(sets.len() + count as usize, is_set(set.as_deref()));
                    }
                }
                blocks::lines_with(row.get_ref(3)?.as_str()?, &part, |line| {
                    let at = line as usize;
                    let of_state = states.get(at).is_some_and(|letter| is_state(*letter));
                    if of_state && (any_set || sets.get(at) == Some(&true)) {
                        found.push(first + line);
                    }
                });
            }
            Ok(found)
        })?;
        Ok(Some(found))
    }

    fn numbered(&self, run: i64, filter: &JobFilter, mut found: Vec<u32>) -> Result<Vec<JobAnswer>, StoreError> {
        if filter.descending {
            found.reverse();
        }
        let offset = usize::try_from(filter.offset).unwrap_or(usize::MAX);
        let limit = filter.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let query = format!("SELECT {JOB_COLUMNS} FROM jobs WHERE run = ?1 AND job = ?2");
        self.answer(|sql| {
            let mut statement = sql.prepare_cached(&query)?;
            found
                .into_iter()
                .skip(offset)
                .take(limit)
                .map(|job| statement.query_row([run, job.into()], job_from))
                .collect()
        })
    }

    fn sorted(&self, run: i64, filter: &JobFilter, found: &[u32]) -> Result<Vec<JobAnswer>, StoreError> {
        let by = sorted_by(filter);
        let query = format!(
            "SELECT {JOB_COLUMNS} FROM jobs WHERE run = ? AND job IN (SELECT value FROM json_each(?)) ORDER BY {by} \
             LIMIT ? OFFSET ?"
        );
        let mut values = vec![Sql::Integer(run), Sql::Text(serde_json::to_string(found).unwrap_or_default())];
        values.extend(page_of(filter));
        self.answer(|sql| sql.prepare_cached(&query)?.query_map(params_from_iter(values), job_from)?.collect())
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
    filter.states.is_empty() && filter.set.is_none() && filter.sets.is_none() && part_of(filter).is_none()
}

/// The part of a name that is looked for; nothing is in every name.
fn part_of(filter: &JobFilter) -> Option<&str> {
    filter.contains.as_deref().filter(|part| !part.is_empty())
}

fn page_of(filter: &JobFilter) -> [Sql; 2] {
    [Sql::Integer(filter.limit.map_or(-1, signed)), Sql::Integer(signed(filter.offset))]
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
    if let Some(part) = part_of(filter) {
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
