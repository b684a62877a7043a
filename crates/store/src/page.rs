//! Questions of a page that shows large runs: jobs with their last attempts, columns instead of rows, only what changed.
//!
//! What has to be asked about every job is asked in one statement and given as columns, because a page refetches it
//! while the run goes on.

use crate::bars::{CHANGED, Names, Placed, parsed};
use crate::blocks;
use crate::{Store, StoreError};
use rusqlite::{Row, params};
use serde::Serialize;
use tulpar_core::ids::JobId;
use tulpar_core::units::Timestamp;

/// A job with its last attempt, as a row of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobLine {
    pub job: JobId,
    pub name: Option<String>,
    pub set: Option<String>,
    pub state: String,
    pub since: Option<Timestamp>,
    pub attempts: u32,
    pub reused_from: Option<String>,
    pub blame: Option<String>,
    pub site: Option<String>,
    pub host: Option<String>,
    pub node: Option<String>,
    /// The position at the site of the first node that was chosen for it.
    #[serde(skip)]
    pub placed: Option<u32>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub held: Option<String>,
    pub ending: Option<String>,
    pub code: Option<i32>,
    pub detail: Option<String>,
    pub wall_us: Option<u64>,
    pub cpu_us: Option<u64>,
    pub peak_rss: Option<u64>,
    pub read_bytes: Option<u64>,
    pub write_bytes: Option<u64>,
    /// Only where jobs that failed are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
}

const LINE: &str = "jobs.job, jobs.name, jobs.task_set, jobs.state, jobs.since, jobs.attempts, jobs.reused_from, \
     jobs.blame, attempts.site, attempts.host, attempts.node, attempts.started, attempts.ended, attempts.held, \
     attempts.ending, attempts.code, attempts.detail, attempts.wall_us, attempts.user_us + attempts.system_us, \
     attempts.peak_rss, attempts.read_bytes, attempts.write_bytes, attempts.placement";
const WITH_LAST: &str = "jobs LEFT JOIN attempts ON attempts.run = jobs.run AND attempts.job = jobs.job \
     AND attempts.n = jobs.attempts";

/// Jobs whose state is asked for in one go: columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    /// Of the last event that is in the answer.
    pub seq: u64,
    pub jobs: Vec<u32>,
    /// One letter each: [`letter`].
    pub states: String,
    /// Positions in `names`.
    pub sets: Vec<u32>,
    /// Task sets; none where the plan does not say.
    pub names: Vec<Option<String>>,
}

/// One letter for a state: those of the table `jobs`, and `u` for what was reused.
pub fn letter(state: &str, reused: bool) -> u8 {
    match state {
        "done" if reused => b'u',
        "waiting" => b'w',
        "looking" => b'l',
        "ready" => b'y',
        "submitted" => b'q',
        "running" => b'r',
        "held" => b'h',
        "backoff" => b'b',
        "paused" => b'p',
        "done" => b'd',
        "failed" => b'f',
        "skipped" => b's',
        "cancelled" => b'c',
        _ => b'?',
    }
}

impl Store {
    /// These jobs with their last attempts, in this order; with the last lines of stderr where that is wanted.
    pub fn job_lines(&self, run: &str, jobs: &[JobId], with_stderr: bool) -> Result<Vec<JobLine>, StoreError> {
        let run = self.number_of(run)?;
        let query =
            format!("SELECT {LINE}, attempts.stderr_tail FROM {WITH_LAST} WHERE jobs.run = ?1 AND jobs.job = ?2");
        self.answer(|sql| {
            let mut statement = sql.prepare_cached(&query)?;
            let mut lines = Vec::with_capacity(jobs.len());
            for job in jobs {
                let mut found = statement.query_map(params![run, job.0], |row| {
                    let stderr_tail = if with_stderr { row.get(23)? } else { None };
                    Ok(JobLine { stderr_tail, ..line_from(row)? })
                })?;
                lines.extend(found.next().transpose()?);
            }
            Ok(lines)
        })
    }

    /// The state of every job; or, after an event, of those that it and later ones touched and of those from the number
    /// `known` on.
    pub fn cells(&self, run: &str, after: Option<u64>, known: u32) -> Result<Cells, StoreError> {
        let (run, seq) = self.number_and_seq(run)?;
        let mut cells = Cells { seq, ..Cells::default() };
        let mut names = Names::default();
        match after {
            None => self.every_cell(run, &mut cells, &mut names)?,
            Some(after) => self.changed_cells(run, after, known, &mut cells, &mut names)?,
        }
        cells.names = names.list;
        Ok(cells)
    }

    fn every_cell(&self, run: i64, cells: &mut Cells, names: &mut Names) -> Result<(), StoreError> {
        self.answer(|sql| {
            let mut statement = sql.prepare_cached(
                "SELECT block, states, sets FROM job_states LEFT JOIN job_names USING (run, block) WHERE run = ?1 \
                 ORDER BY block",
            )?;
            let mut rows = statement.query([run])?;
            while let Some(row) = rows.next()? {
                let first = row.get::<_, u32>(0)?.saturating_mul(blocks::JOBS);
                let sets = blocks::sets_read(row.get_ref(2)?.as_str_or_null()?.unwrap_or_default());
                let sets = sets.iter().flat_map(|(set, count)| {
                    let place = names.place(set.as_deref());
                    std::iter::repeat_n(place, *count as usize)
                });
                let mut sets: Vec<u32> = sets.collect();
                let states = row.get_ref(1)?.as_str()?;
                if sets.len() < states.len() {
                    sets.resize(states.len(), names.place(None));
                }
                for ((job, letter), set) in (first..).zip(states.bytes()).zip(sets) {
                    if letter != blocks::NOBODY {
                        cells.jobs.push(job);
                        cells.states.push(char::from(letter));
                        cells.sets.push(set);
                    }
                }
            }
            Ok(())
        })
    }

    fn changed_cells(
        &self,
        run: i64,
        after: u64,
        known: u32,
        cells: &mut Cells,
        names: &mut Names,
    ) -> Result<(), StoreError> {
        let query = format!(
            "SELECT job, state, reused_from IS NOT NULL, task_set FROM jobs WHERE run = ?1 AND job IN \
             ({CHANGED} UNION SELECT job FROM jobs WHERE run = ?1 AND job >= ?3) ORDER BY job"
        );
        self.answer(|sql| {
            let mut statement = sql.prepare_cached(&query)?;
            let mut rows = statement.query(params![run, signed(after), known])?;
            while let Some(row) = rows.next()? {
                cells.jobs.push(row.get(0)?);
                cells.states.push(char::from(letter(row.get_ref(1)?.as_str()?, row.get(2)?)));
                cells.sets.push(names.place(row.get_ref(3)?.as_str_or_null()?));
            }
            Ok(())
        })
    }

    /// Files, bytes, microseconds and repeated tries of all transfers of a run; none when nothing was moved.
    pub fn transfer_totals(&self, run: &str) -> Result<Option<[u64; 4]>, StoreError> {
        let run = self.number_of(run)?;
        self.answer(|sql| {
            let query =
                "SELECT count(*), sum(files), sum(bytes), sum(wall_us), sum(retries) FROM transfers WHERE run = ?1";
            sql.prepare_cached(query)?.query_row([run], |row| {
                let sum = |column: usize| Ok::<_, rusqlite::Error>(unsigned(row, column)?.unwrap_or(0));
                Ok(if sum(0)? == 0 { None } else { Some([sum(1)?, sum(2)?, sum(3)?, sum(4)?]) })
            })
        })
    }

    fn number_of(&self, name: &str) -> Result<i64, StoreError> {
        self.number_and_seq(name).map(|(run, _)| run)
    }

    pub(crate) fn number_and_seq(&self, name: &str) -> Result<(i64, u64), StoreError> {
        let row = self.row(name)?;
        Ok((row.run, row.last_seq.unsigned_abs()))
    }
}

fn signed(value: u64) -> i64 {
    crate::rows::signed(value)
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(i64::unsigned_abs))
}

fn line_from(row: &Row<'_>) -> rusqlite::Result<JobLine> {
    let time = |column: usize| Ok::<_, rusqlite::Error>(unsigned(row, column)?.map(Timestamp));
    Ok(JobLine {
        job: JobId(row.get(0)?),
        name: row.get(1)?,
        set: row.get(2)?,
        state: row.get(3)?,
        since: time(4)?,
        attempts: row.get(5)?,
        reused_from: row.get(6)?,
        blame: row.get(7)?,
        site: row.get(8)?,
        host: row.get(9)?,
        node: row.get(10)?,
        placed: parsed::<Placed>(row.get_ref(22)?).nodes.first().map(|share| share.node),
        started: time(11)?,
        ended: time(12)?,
        held: row.get(13)?,
        ending: row.get(14)?,
        code: row.get(15)?,
        detail: row.get(16)?,
        wall_us: unsigned(row, 17)?,
        cpu_us: unsigned(row, 18)?,
        peak_rss: unsigned(row, 19)?,
        read_bytes: unsigned(row, 20)?,
        write_bytes: unsigned(row, 21)?,
        stderr_tail: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::STATES;

    #[test]
    fn every_state_has_a_letter_of_its_own() {
        let letters: std::collections::BTreeSet<u8> = STATES.iter().map(|state| letter(state, false)).collect();
        assert_eq!(letters.len(), STATES.len());
        let spelt = |state| serde_json::to_value(state).unwrap();
        assert!(tulpar_core::engine::STATES.iter().all(|state| spelt(*state) == crate::rows::word(*state)));
        assert_eq!(letter(crate::rows::UNKNOWN, false), b'?');
        assert!(!letters.contains(&letter("done", true)));
    }
}
