//! Trials of searches, and the numbers that they said on the way: rows that follow the events about them.

use crate::JobNames;
use crate::rows::signed;
use rusqlite::{Connection, OptionalExtension, params};
use tulpar_core::ids::JobId;
use tulpar_core::job::Told;

/// Those of one run that events spoke of since they were last written.
#[derive(Default)]
pub(crate) struct Trials {
    /// Not numbered yet: which task set they are of is known when the jobs are written.
    new: Vec<u32>,
    /// Whether the run has any; most runs have none, and then no event costs anything here.
    any: Option<bool>,
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
            "INSERT OR REPLACE INTO trials (run, job, origin, state, parameters, asked) VALUES (?1, ?2, ?3, 'running', ?4, ?5)",
        )?
        .execute(params![run, job.0, word, serde_json::to_string(parameters).ok(), at])?;
        self.new.push(job.0);
        self.any = Some(true);
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

    /// An attempt of a job ended; `told` is what it said, if it is a trial. `well`: so did the job.
    pub(crate) fn ended(
        &mut self,
        sql: &Connection,
        run: i64,
        (job, at): (JobId, i64),
        told: Option<&Told>,
        well: bool,
    ) -> rusqlite::Result<()> {
        if let Some(told) = told {
            for (step, value) in &told.steps {
                self.step(sql, run, job, *step, *value)?;
            }
            sql.prepare_cached("UPDATE trials SET said = ?3 WHERE run = ?1 AND job = ?2")?.execute(params![
                run,
                job.0,
                serde_json::to_string(&told.values).ok()
            ])?;
        }
        if well {
            // Only a simulated trial ends well and says nothing.
            let state = if told.is_some() { "complete" } else { "simulated" };
            self.state(sql, run, (job, at), state, None)?;
        }
        Ok(())
    }

    /// A trial came into a state; nothing happens to a job that is no trial.
    pub(crate) fn state(
        &mut self,
        sql: &Connection,
        run: i64,
        (job, at): (JobId, i64),
        state: &str,
        reason: Option<&str>,
    ) -> rusqlite::Result<()> {
        if !self.has_any(sql, run)? {
            return Ok(());
        }
        let over = matches!(state, "complete" | "pruned" | "failed" | "simulated");
        sql.prepare_cached(
            "UPDATE trials SET state = ?3, ended = ?4, reason = ?5 WHERE run = ?1 AND job = ?2 AND state IN ('running', 'paused')",
        )?
        .execute(params![run, job.0, state, over.then_some(at), reason])?;
        Ok(())
    }

    /// One that had failed, or was cancelled, is run again after a resume.
    pub(crate) fn again(&mut self, sql: &Connection, run: i64, job: JobId) -> rusqlite::Result<()> {
        if self.has_any(sql, run)? {
            sql.prepare_cached(
                "UPDATE trials SET state = 'running', ended = NULL, reason = NULL WHERE run = ?1 AND job = ?2 AND state = 'failed'",
            )?
            .execute(params![run, job.0])?;
        }
        Ok(())
    }

    fn has_any(&mut self, sql: &Connection, run: i64) -> rusqlite::Result<bool> {
        if let Some(any) = self.any {
            return Ok(any);
        }
        let any = sql.prepare_cached("SELECT 1 FROM trials WHERE run = ?1 LIMIT 1")?.exists([run])?;
        self.any = Some(any);
        Ok(any)
    }

    /// Numbers those that are new as their tasks are called, each search from 1; where names are not known, in the order in
    /// which they were asked for. After the jobs were written.
    pub(crate) fn write(&mut self, sql: &Connection, run: i64, names: Option<&dyn JobNames>) -> rusqlite::Result<()> {
        for job in std::mem::take(&mut self.new) {
            let known = || {
                sql.prepare_cached("SELECT task_set, name FROM jobs WHERE run = ?1 AND job = ?2")?
                    .query_row(params![run, job], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()
            };
            let named = names.and_then(|names| Some((names.set(JobId(job))?, names.name(JobId(job))?)));
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
