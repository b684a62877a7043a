//! What an event or a record changes in the rows of its run, gathered in memory and written together.
//!
//! The states are those of the engine's `apply`; nothing is decided here, only noted.

use crate::JobNames;
use crate::rows::{self, AttemptRow, JobRow, RunRow, signed};
use rusqlite::Connection;
use std::collections::HashMap;
use tulpar_core::event::{Blame, Event, Outcome, Stopping};
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{Ending, OutputFile, Record};
use tulpar_core::units::Timestamp;

/// The rows of one run that changed since they were last written.
pub(crate) struct Changes<'a> {
    sql: &'a Connection,
    pub run: RunRow,
    /// Nothing of this run is in the tables yet: no need to look.
    fresh: bool,
    jobs: HashMap<u32, JobRow>,
    attempts: HashMap<(u32, u32), AttemptRow>,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(sql: &'a Connection, run: RunRow) -> Self {
        let fresh = run.journal_bytes == 0 && run.records_bytes == 0;
        Self { sql, run, fresh, jobs: HashMap::new(), attempts: HashMap::new() }
    }

    pub(crate) fn event(&mut self, at: Timestamp, event: Event) -> rusqlite::Result<()> {
        let at = signed(at.0);
        match event {
            Event::RunStarted { version, plan, seed, .. } => {
                self.run.version = Some(version);
                self.run.plan = Some(plan.hex());
                self.run.seed = Some(seed.to_string());
                self.run.started = Some(at);
            }
            Event::RunResumed { version } => {
                self.run.version = Some(version);
                self.run.resumed += 1;
                self.run.ended = None;
                self.run.outcome = None;
                self.run.stopping = None;
            }
            Event::Missed { job, key, reason } => {
                let row = self.enter(job, "ready", at)?;
                row.key = key.map(|key| key.hex());
                row.why = json(&reason);
            }
            Event::Reused { job, key, run, outputs } => {
                let row = self.enter(job, "done", at)?;
                row.key = Some(key.hex());
                row.reused_from = Some(run);
                self.outputs(job, None, &outputs)?;
            }
            Event::Submitted { attempt, request, placement, .. } => {
                self.enter(attempt.job, "submitted", at)?.attempts = attempt.n;
                let row = self.attempt(attempt)?;
                row.submitted = Some(at);
                row.request = json(&request);
                row.placement = json(&placement);
                row.site = Some(placement.site);
            }
            Event::Started { attempt } => {
                self.enter(attempt.job, "running", at)?;
                self.attempt(attempt)?.started.get_or_insert(at);
            }
            Event::Held { attempt, reason } => {
                self.enter(attempt.job, "held", at)?;
                self.attempt(attempt)?.held = Some(reason);
            }
            Event::Released { attempt } => {
                self.enter(attempt.job, "submitted", at)?;
                self.attempt(attempt)?.held = None;
            }
            Event::Ended { attempt, report } => {
                let well = report.ending.is_success();
                self.enter(attempt.job, if well { "done" } else { "backoff" }, at)?;
                let row = self.attempt(attempt)?;
                row.started = Some(signed(report.started.0));
                row.ended = Some(signed(report.ended.0));
                row.usage = Some(report.usage);
                row.stderr_tail = (!report.stderr_tail.is_empty()).then(|| report.stderr_tail.clone());
                row.end(&report.ending);
                if well {
                    self.outputs(attempt.job, Some(attempt.n), &report.outputs)?;
                }
            }
            Event::Retrying { job, .. } => drop(self.enter(job, "backoff", at)?),
            Event::Due { job } => drop(self.enter(job, "ready", at)?),
            Event::Failed { job, blame } => {
                self.enter(job, "failed", at)?.blame = Some(match blame {
                    Blame::Task => "task",
                    Blame::Resources => "resources",
                    Blame::Site => "site",
                });
            }
            Event::Skipped { job, because } => self.enter(job, "skipped", at)?.because = json(&because),
            Event::Cancelled { job } => drop(self.enter(job, "cancelled", at)?),
            Event::Node { .. } | Event::Ordered { .. } | Event::Grafted { .. } => {}
            Event::Stopping { how } => {
                let how = match how {
                    Stopping::Drain => "drain",
                    Stopping::Interrupt => "interrupt",
                    Stopping::Cancel => "cancel",
                };
                self.run.stopping = Some(how.to_owned());
            }
            Event::RunEnded { outcome } => {
                self.run.ended = Some(at);
                let outcome = match outcome {
                    Outcome::Done => "done",
                    Outcome::Failed => "failed",
                    Outcome::Cancelled => "cancelled",
                    Outcome::Interrupted => "interrupted",
                };
                self.run.outcome = Some(outcome.to_owned());
            }
        }
        Ok(())
    }

    pub(crate) fn record(&mut self, record: Record) -> rusqlite::Result<()> {
        let row = self.attempt(record.attempt)?;
        row.host = Some(record.host);
        row.node = Some(record.node);
        row.gpus = if record.gpus.is_empty() { None } else { json(&record.gpus) };
        row.command = json(&record.command);
        row.input_files = Some(signed(record.input_files));
        row.input_bytes = Some(signed(record.input_bytes));
        row.samples = if record.samples.is_empty() { None } else { json(&record.samples) };
        // The journal says how the attempt ended; where the driver died first, the record knows.
        row.started.get_or_insert(signed(record.started.0));
        row.ended.get_or_insert(signed(record.ended.0));
        row.usage.get_or_insert(record.usage);
        if row.ending.is_none() {
            row.end(&record.ending);
        }
        Ok(())
    }

    fn enter(&mut self, job: JobId, state: &'static str, at: i64) -> rusqlite::Result<&mut JobRow> {
        use std::collections::hash_map::Entry;
        let row = match self.jobs.entry(job.0) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(place) => {
                let known = if self.fresh { None } else { rows::read_job(self.sql, self.run.run, job.0)? };
                place.insert(known.unwrap_or_default())
            }
        };
        row.state = state;
        row.since = Some(at);
        Ok(row)
    }

    fn attempt(&mut self, attempt: AttemptId) -> rusqlite::Result<&mut AttemptRow> {
        use std::collections::hash_map::Entry;
        match self.attempts.entry((attempt.job.0, attempt.n)) {
            Entry::Occupied(there) => Ok(there.into_mut()),
            Entry::Vacant(place) => {
                let known = if self.fresh {
                    None
                } else {
                    rows::read_attempt(self.sql, self.run.run, attempt.job.0, attempt.n)?
                };
                Ok(place.insert(known.unwrap_or_default()))
            }
        }
    }

    fn outputs(&self, job: JobId, attempt: Option<u32>, outputs: &[OutputFile]) -> rusqlite::Result<()> {
        outputs.iter().try_for_each(|output| rows::write_output(self.sql, self.run.run, job.0, attempt, output))
    }

    /// Writes what changed, in the order of the tables.
    pub(crate) fn write(&mut self, names: Option<&dyn JobNames>) -> rusqlite::Result<()> {
        let mut jobs: Vec<_> = std::mem::take(&mut self.jobs).into_iter().collect();
        jobs.sort_unstable_by_key(|(job, _)| *job);
        for (job, mut row) in jobs {
            if let (None, Some(names)) = (&row.name, names) {
                row.name = names.name(JobId(job));
                row.task_set = names.set(JobId(job));
            }
            rows::write_job(self.sql, self.run.run, job, &row)?;
        }
        let mut attempts: Vec<_> = std::mem::take(&mut self.attempts).into_iter().collect();
        attempts.sort_unstable_by_key(|(attempt, _)| *attempt);
        for ((job, n), row) in attempts {
            rows::write_attempt(self.sql, self.run.run, job, n, &row)?;
        }
        self.fresh = false;
        Ok(())
    }
}

impl AttemptRow {
    fn end(&mut self, ending: &Ending) {
        let (word, code, detail) = match ending {
            Ending::Exit(code) => ("exit", Some(*code), None),
            Ending::Signal(signal) => ("signal", Some(*signal), None),
            Ending::Walltime => ("walltime", None, None),
            Ending::Memory => ("memory", None, None),
            Ending::Checkpointed => ("checkpointed", None, None),
            Ending::Preempted => ("preempted", None, None),
            Ending::NodeLost => ("node_lost", None, None),
            Ending::Cancelled => ("cancelled", None, None),
            Ending::Incomplete(missing) => ("incomplete", None, json(missing)),
            Ending::Refused(why) => ("refused", None, Some(why.clone())),
        };
        self.ending = Some(word.to_owned());
        self.code = code;
        self.detail = detail;
    }
}

fn json(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}
