//! The changes of one run's rows by events, records and samples, gathered in memory and written together.
//!
//! States come from the transitions that `RunState::apply` returns (`states.rs`). This file copies the data that events and
//! records carry: it knows no rule by which a job moves from one state to another.

use crate::blocks::Blocks;
use crate::cursor::Cursor;
use crate::page::letter;
use crate::rows::{self, AttemptRow, JobRow, RunRow, signed};
use crate::seen::{self, Looks};
use crate::tallies::Tallies;
use crate::trials::Trials;
use rusqlite::Connection;
use std::collections::{HashMap, HashSet};
use tulpar_core::event::{Consequence, Event, Outcome, Placement, Stopping};
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{Ending, OutputFile, Record, Sample, Told, Usage};
use tulpar_core::live::{LiveLine, Seen};
use tulpar_core::units::Timestamp;

/// The rows of one run that changed since they were last written.
pub(crate) struct Changes<'a> {
    pub(crate) sql: &'a Connection,
    pub(crate) run: RunRow,
    /// The state of the run. None when no event is to be taken in, and where the plan does not read.
    pub(crate) cursor: Option<&'a mut Cursor>,
    /// The jobs of this run that are in the tables, where that is known: no need to look for others.
    met: Option<HashSet<u32>>,
    pub(crate) jobs: HashMap<u32, JobRow>,
    /// Jobs that an expansion of the plan added.
    pub(crate) added: Vec<u32>,
    attempts: HashMap<(u32, u32), AttemptRow>,
    /// Attempts that have ended since.
    ended: Vec<(AttemptId, Usage)>,
    looks: Looks,
    pub(crate) tallies: Tallies,
    pub(crate) blocks: Blocks,
    pub(crate) trials: Trials,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(
        sql: &'a Connection,
        run: RunRow,
        cursor: Option<&'a mut Cursor>,
        met: Option<HashSet<u32>>,
    ) -> Self {
        Self {
            sql,
            run,
            cursor,
            met,
            jobs: HashMap::new(),
            added: Vec::new(),
            attempts: HashMap::new(),
            ended: Vec::new(),
            looks: Looks::default(),
            tallies: Tallies::default(),
            blocks: Blocks::default(),
            trials: Trials::default(),
        }
    }

    pub(crate) fn event(&mut self, seq: u64, at: Timestamp, event: Event) -> rusqlite::Result<()> {
        if let Event::Asked { job, values, origin } = &event {
            self.trials.asked(self.sql, self.run.run, (*job, signed(at.0)), values, origin)?;
        }
        self.apply(seq, at, &event)?;
        self.copy(signed(at.0), event)
    }

    /// The data of an event.
    fn copy(&mut self, at: i64, event: Event) -> rusqlite::Result<()> {
        match event {
            Event::RunStarted { version, plan, seed, provenance, simulated, .. } => {
                self.run.simulated = simulated;
                self.run.metadata = json(&provenance.metadata);
                self.run.parameters = json(&provenance.parameters);
                self.run.environments = json(&provenance.environments);
                self.run.git_dirty = provenance.code.as_ref().map(|code| code.dirty);
                self.run.git_commit = provenance.code.map(|code| code.commit);
                self.run.version = Some(version);
                self.run.plan = Some(plan.hex());
                self.run.seed = Some(seed.to_string());
                self.run.started = Some(at);
            }
            Event::RunResumed { version, .. } => {
                self.run.version = Some(version);
                self.run.resumed += 1;
                self.run.ended = None;
                self.run.outcome = None;
                self.run.stopping = None;
            }
            Event::Missed { job, key, reason } => {
                let row = self.job(job)?;
                row.key = key.map(|key| key.hex());
                row.why = json(&reason);
            }
            Event::Reused { job, key, run, outputs, told, .. } => {
                self.told(job, told.as_deref(), true)?;
                let row = self.job(job)?;
                row.key = Some(key.hex());
                row.reused_from = Some(run);
                self.outputs(job, None, &outputs)?;
            }
            Event::Submitted { attempt, request, placement, .. } => {
                self.job(attempt.job)?.started = None;
                let row = self.attempt(attempt)?;
                row.submitted = Some(at);
                row.request = json(&request);
                row.placement = json(&placement);
                row.site = Some(placement.site);
            }
            Event::Started { attempt } => {
                self.job(attempt.job)?.started = Some(at);
                let row = self.attempt(attempt)?;
                row.started.get_or_insert(at);
                row.waiting = None;
            }
            Event::Held { attempt, reason } => self.attempt(attempt)?.held = Some(reason),
            Event::Released { attempt } => self.attempt(attempt)?.held = None,
            Event::Ended { attempt, report, then } => {
                let job = self.job(attempt.job)?;
                job.started = Some(signed(report.started.0));
                let usage = &report.usage;
                job.wall_us = Some(signed(usage.wall_us)).filter(|wall| *wall > 0);
                job.cpu_us = usage.is_measured().then(|| signed(usage.user_us + usage.system_us));
                job.peak_rss = Some(signed(report.usage.peak_rss)).filter(|bytes| *bytes > 0);
                self.end(attempt, report.started, report.ended, report.usage, &[])?;
                let row = self.attempt(attempt)?;
                row.started = Some(signed(report.started.0));
                row.ended = Some(signed(report.ended.0));
                row.waiting = None;
                row.stderr_tail = (!report.stderr_tail.is_empty()).then(|| report.stderr_tail.clone());
                row.end(&report.ending);
                let transfers = report.script.iter().flat_map(|script| &script.transfers);
                for (number, transfer) in (0..).zip(transfers) {
                    rows::write_transfer(self.sql, self.run.run, (attempt.job.0, attempt.n, number), transfer)?;
                }
                let done = then == Consequence::Done;
                self.told(attempt.job, report.told.as_deref(), done)?;
                if done {
                    self.outputs(attempt.job, Some(attempt.n), &report.outputs)?;
                }
            }
            Event::Reported { job, step, value } => {
                self.trials.step(self.sql, self.run.run, job, step, value)?;
            }
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
            // These change states, and carry no other data that has a table. Trials of others are in the study.
            Event::HeldBack { .. }
            | Event::Due { .. }
            | Event::Failed { .. }
            | Event::Skipped { .. }
            | Event::Cancelled { .. }
            | Event::Grafted { .. }
            | Event::Asked { .. }
            | Event::Added { .. }
            | Event::Curtailed { .. }
            | Event::Continued { .. }
            | Event::Node { .. }
            | Event::Ordered { .. } => {}
        }
        Ok(())
    }

    /// The numbers that a task reported: of a trial always, else once the task is done.
    fn told(&mut self, job: JobId, told: Option<&Told>, done: bool) -> rusqlite::Result<()> {
        let Some(told) = told else { return Ok(()) };
        self.trials.said(self.sql, self.run.run, job, told)?;
        if done {
            rows::write_metrics(self.sql, self.run.run, job.0, &told.values)?;
        }
        Ok(())
    }

    pub(crate) fn record(&mut self, record: Record) -> rusqlite::Result<()> {
        self.attempt(record.attempt)?.gpus = if record.gpus.is_empty() { None } else { json(&record.gpus) };
        self.end(record.attempt, record.started, record.ended, record.usage, &record.samples)?;
        if self.run.samples_bytes > 0 {
            seen::forget(self.sql, self.run.run, record.attempt)?;
        }
        let row = self.attempt(record.attempt)?;
        row.host = Some(record.host);
        row.node = Some(record.node);
        row.command = json(&record.command);
        row.input_files = Some(signed(record.input_files));
        row.input_bytes = Some(signed(record.input_bytes));
        row.samples = if record.samples.is_empty() { None } else { json(&record.samples) };
        // The journal says how the attempt ended; where the driver died first, the record knows.
        row.started.get_or_insert(signed(record.started.0));
        row.ended.get_or_insert(signed(record.ended.0));
        if row.ending.is_none() {
            row.end(&record.ending);
        }
        Ok(())
    }

    /// What was seen of an attempt before its end.
    pub(crate) fn seen(&mut self, line: LiveLine) -> rusqlite::Result<()> {
        let attempt = line.attempt();
        match line.seen {
            Seen::Waiting { waiting } => {
                let at = signed(line.at.0);
                let row = self.attempt(attempt)?;
                // Said before it started, and read afterwards; one that was evicted waits again.
                if row.usage.is_none() && row.started.is_none_or(|started| at > started) {
                    row.waiting = Some(waiting);
                }
            }
            Seen::Said { .. } => {}
            Seen::Running(sample) => self.looks.look(self.sql, self.run.run, attempt, signed(line.at.0), sample)?,
        }
        Ok(())
    }

    /// Counts what an attempt used, once: by its record or by the journal, whichever is read first.
    fn end(
        &mut self,
        attempt: AttemptId,
        started: Timestamp,
        ended: Timestamp,
        usage: Usage,
        samples: &[Sample],
    ) -> rusqlite::Result<()> {
        let row = self.attempt(attempt)?;
        if row.usage.is_some() {
            return Ok(());
        }
        row.usage = Some(usage);
        let gpus = if usage.gpu_utilisation > 0 || usage.peak_gpu_memory > 0 { row.count_gpus() } else { 0 };
        self.ended.push((attempt, usage));
        let times = (signed(started.0), signed(ended.0));
        self.looks.end(self.sql, self.run.run, attempt, times, &usage, samples, gpus, self.run.samples_bytes > 0)
    }

    /// The row of a job, to be changed.
    pub(crate) fn job(&mut self, job: JobId) -> rusqlite::Result<&mut JobRow> {
        use std::collections::hash_map::Entry;
        match self.jobs.entry(job.0) {
            Entry::Occupied(there) => Ok(there.into_mut()),
            Entry::Vacant(place) => {
                let is_new = self.met.as_ref().is_some_and(|met| !met.contains(&job.0));
                let known = if is_new { None } else { rows::read_job(self.sql, self.run.run, job.0)? };
                let cursor = self.cursor.as_deref();
                Ok(place.insert(known.unwrap_or_else(|| {
                    let state = cursor.and_then(|cursor| cursor.state_of(job.0)).map_or(rows::UNKNOWN, rows::word);
                    JobRow { state, ..JobRow::default() }
                })))
            }
        }
    }

    fn attempt(&mut self, attempt: AttemptId) -> rusqlite::Result<&mut AttemptRow> {
        use std::collections::hash_map::Entry;
        match self.attempts.entry((attempt.job.0, attempt.n)) {
            Entry::Occupied(there) => Ok(there.into_mut()),
            Entry::Vacant(place) => {
                let is_new = self.met.as_ref().is_some_and(|met| !met.contains(&attempt.job.0));
                let known =
                    if is_new { None } else { rows::read_attempt(self.sql, self.run.run, attempt.job.0, attempt.n)? };
                Ok(place.insert(known.unwrap_or_default()))
            }
        }
    }

    fn outputs(&self, job: JobId, attempt: Option<u32>, outputs: &[OutputFile]) -> rusqlite::Result<()> {
        outputs.iter().try_for_each(|output| rows::write_output(self.sql, self.run.run, job.0, attempt, output))
    }

    /// Writes what changed, in the order of the tables. `complete`: the journal was read to its end. Gives the jobs that
    /// are in the tables, if that is known.
    pub(crate) fn write(&mut self, complete: bool) -> rusqlite::Result<Option<HashSet<u32>>> {
        let run = self.run.run;
        let mut met = self.met.take();
        // Records are read before the journal: attempts of added jobs may be in the tables already.
        let mut added = std::mem::take(&mut self.added);
        added.retain(|job| met.as_ref().is_none_or(|met| met.contains(job)));
        if let Some(met) = &mut met {
            met.extend(self.jobs.keys());
            met.extend(self.attempts.keys().map(|(job, _)| *job));
        }
        let cursor = self.cursor.as_deref();
        let mut jobs: Vec<_> = std::mem::take(&mut self.jobs).into_iter().collect();
        jobs.sort_unstable_by_key(|(job, _)| *job);
        for (job, row) in &mut jobs {
            if let (None, Some(cursor)) = (&row.name, cursor) {
                row.name = cursor.name(*job);
                row.task_set = cursor.set(*job).map(str::to_owned);
                self.blocks.text(self.sql, run, *job, row.task_set.as_deref(), row.name.as_deref())?;
            }
            rows::write_job(self.sql, run, *job, row)?;
            self.blocks.state(self.sql, run, *job, letter(row.state, row.reused_from.is_some()))?;
            self.tallies.job(*job, row.counted.as_ref(), row.to_count());
        }
        for job in added {
            let set = cursor.and_then(|cursor| cursor.set(job)).unwrap_or_default();
            for usage in rows::read_usages(self.sql, run, job)? {
                self.tallies.attempt(set, job, &usage);
            }
        }
        let mut attempts: Vec<_> = std::mem::take(&mut self.attempts).into_iter().collect();
        attempts.sort_unstable_by_key(|(attempt, _)| *attempt);
        for ((job, n), row) in attempts {
            rows::write_attempt(self.sql, run, job, n, &row)?;
        }
        for (AttemptId { job, .. }, usage) in std::mem::take(&mut self.ended) {
            if let Some(set) = self.set_of(job.0)? {
                self.tallies.attempt(&set, job.0, &usage);
            }
        }
        if complete {
            self.add_rest()?;
        }
        self.blocks.write(self.sql, run)?;
        self.trials.write(self.sql, run, self.cursor.as_deref())?;
        self.tallies.write(self.sql, run)?;
        self.looks.write(self.sql, &mut self.run)?;
        if let Some(cursor) = &self.cursor {
            self.run.applied = Some(signed(cursor.seq()));
        }
        rows::write_run(self.sql, &self.run)?;
        Ok(met.filter(|_| !complete))
    }

    /// The task set of a job, empty where no plan says it. None for a job that a later event adds.
    fn set_of(&self, job: u32) -> rusqlite::Result<Option<String>> {
        if let Some(set) = self.cursor.as_deref().and_then(|cursor| cursor.set(job)) {
            return Ok(Some(set.to_owned()));
        }
        let row = rows::read_job(self.sql, self.run.run, job)?;
        let has_plan = self.cursor.is_some() || self.run.applied.is_some();
        match row {
            Some(row) => Ok(Some(row.task_set.unwrap_or_default())),
            None => Ok((!has_plan).then(String::new)),
        }
    }
}

impl AttemptRow {
    /// Those it has, as far as anybody said.
    fn count_gpus(&self) -> usize {
        #[derive(serde::Deserialize)]
        struct Devices(Vec<serde::de::IgnoredAny>);
        let devices = |text: &String| serde_json::from_str::<Devices>(text).ok().map(|devices| devices.0.len());
        let placed = |text: &String| {
            let placement: Placement = serde_json::from_str(text).ok()?;
            Some(placement.nodes.iter().map(|share| share.gpus.len()).sum())
        };
        let devices = self.gpus.as_ref().and_then(devices);
        devices.or_else(|| self.placement.as_ref().and_then(placed)).unwrap_or(0).max(1)
    }

    fn end(&mut self, ending: &Ending) {
        let (word, code, detail) = match ending {
            Ending::Exit(code) => ("exit", Some(*code), None),
            Ending::Signal(signal) => ("signal", Some(*signal), None),
            Ending::Walltime => ("walltime", None, None),
            Ending::Memory => ("memory", None, None),
            Ending::Checkpointed => ("checkpointed", None, None),
            Ending::Preempted => ("preempted", None, None),
            Ending::NodeLost => ("node_lost", None, None),
            Ending::DriverLost => ("driver_lost", None, None),
            Ending::NoRoom(why) => ("no_room", None, Some(why.clone())),
            Ending::Cancelled => ("cancelled", None, None),
            Ending::Incomplete(missing) => ("incomplete", None, json(missing)),
            Ending::InputsChanged(paths) => ("inputs_changed", None, json(paths)),
            Ending::Refused(why) => ("refused", None, Some(why.clone())),
        };
        self.ending = Some(word.to_owned());
        self.code = code;
        self.detail = detail;
    }
}

pub(crate) fn json(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}
