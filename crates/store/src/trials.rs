//! Trials of searches, and the numbers that they reported on the way.
//!
//! It knows no study: `states.rs` says which state a trial is in.

use crate::cursor::Cursor;
use crate::rows::{UNKNOWN, signed};
use rusqlite::{Connection, OptionalExtension, params};
use tulpar_core::ids::JobId;
use tulpar_core::job::Told;

/// Those of one run that events spoke of since they were last written.
#[derive(Default)]
pub(crate) struct Trials {
    /// Not numbered yet: which task set they are of is known when the jobs are written.
    new: Vec<u32>,
}

impl Trials {
    pub(crate) fn asked(
        &mut self,
        sql: &Connection,
        run: i64,
        (job, at): (JobId, i64),
        parameters: &impl serde::Serialize,
        origin: &impl serde::Serialize,
    ) -> rusqlite::Result<()> {
        let word = serde_json::to_value(origin).ok().and_then(|origin| origin.as_str().map(str::to_owned));
        sql.prepare_cached(
            "INSERT OR REPLACE INTO trials (run, job, origin, state, parameters, asked) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![run, job.0, word, UNKNOWN, serde_json::to_string(parameters).ok(), at])?;
        self.new.push(job.0);
        Ok(())
    }

    /// A number on the way, for a step.
    pub(crate) fn step(
        &mut self,
        sql: &Connection,
        run: i64,
        job: JobId,
        step: u64,
        value: f64,
    ) -> rusqlite::Result<()> {
        // What is no number is in the events; here it would be nothing at all.
        if !value.is_finite() {
            return Ok(());
        }
        sql.prepare_cached("INSERT OR REPLACE INTO trial_steps (run, job, step, value) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![run, job.0, signed(step), value])?;
        Ok(())
    }

    /// The numbers that a job reported with its end; nothing happens to a job that is no trial.
    pub(crate) fn said(&mut self, sql: &Connection, run: i64, job: JobId, told: &Told) -> rusqlite::Result<()> {
        let update = "UPDATE trials SET said = ?3 WHERE run = ?1 AND job = ?2";
        let said = serde_json::to_string(&told.values).ok();
        if sql.prepare_cached(update)?.execute(params![run, job.0, said])? > 0 {
            for (step, value) in &told.steps {
                self.step(sql, run, job, *step, *value)?;
            }
        }
        Ok(())
    }

    /// A trial is in a state; nothing happens to a job that is no trial.
    pub(crate) fn state(
        &mut self,
        sql: &Connection,
        run: i64,
        (job, at): (JobId, i64),
        state: &str,
        over: bool,
        reason: Option<&str>,
    ) -> rusqlite::Result<()> {
        sql.prepare_cached(
            "UPDATE trials SET state = ?3, ended = ?4, reason = ?5 WHERE run = ?1 AND job = ?2 AND state <> ?3",
        )?
        .execute(params![run, job.0, state, over.then_some(at), reason])?;
        Ok(())
    }

    /// Numbers those that are new as their tasks are called, each search from 1; where names are not known, in the order in
    /// which they were asked for. After the jobs were written.
    pub(crate) fn write(&mut self, sql: &Connection, run: i64, cursor: Option<&Cursor>) -> rusqlite::Result<()> {
        for job in std::mem::take(&mut self.new) {
            let known = || {
                sql.prepare_cached("SELECT task_set, name FROM jobs WHERE run = ?1 AND job = ?2")?
                    .query_row(params![run, job], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()
            };
            let named = cursor.and_then(|cursor| Some((cursor.set(job)?.to_owned(), cursor.name(job)?)));
            let (set, name): (Option<String>, Option<String>) = match named {
                Some((set, name)) => (Some(set), Some(name)),
                None => known()?.unwrap_or_default(),
            };
            let trial = name.as_deref().and_then(number);
            sql.prepare_cached(
                "UPDATE trials SET task_set = ?3, trial = coalesce(?4, 1 + (SELECT coalesce(max(trial), 0) FROM trials \
                 WHERE run = ?1 AND task_set = ?3)) WHERE run = ?1 AND job = ?2 AND trial IS NULL",
            )?
            .execute(params![run, job, set.unwrap_or_default(), trial])?;
        }
        Ok(())
    }
}

/// The number of a trial from the name of its task, `search[trial=3]` or `search[part=1,trial=3]`.
fn number(name: &str) -> Option<u32> {
    name.strip_suffix(']')?.rsplit_once("trial=")?.1.parse().ok()
}
