//! What an event or a record changes in the rows of its run, gathered in memory and written together.
//!
//! The states are those of the engine's `apply`; nothing is decided here, only noted.

use crate::JobNames;
use crate::blocks::Blocks;
use crate::page::letter;
use crate::rows::{self, AttemptRow, JobRow, RunRow, signed};
use crate::seen::{self, Looks};
use crate::tallies::Tallies;
use crate::trials::Trials;
use rusqlite::{Connection, params};
use std::collections::{HashMap, HashSet};
use tulpar_core::event::{Because, Blame, Consequence, Event, Outcome, Placement, Stopping};
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{Ending, OutputFile, Record, Sample, Told, Usage};
use tulpar_core::live::{LiveLine, Seen};
use tulpar_core::units::Timestamp;

/// The rows of one run that changed since they were last written.
pub(crate) struct Changes<'a> {
    sql: &'a Connection,
    pub run: RunRow,
    /// The jobs of this run that are in the tables, where that is known: no need to look for others.
    met: Option<HashSet<u32>>,
    jobs: HashMap<u32, JobRow>,
    attempts: HashMap<(u32, u32), AttemptRow>,
    /// Attempts that have ended since.
    ended: Vec<(AttemptId, Usage)>,
    looks: Looks,
    tallies: Tallies,
    blocks: Blocks,
    trials: Trials,
    grafted: bool,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(sql: &'a Connection, run: RunRow, met: Option<HashSet<u32>>) -> Self {
        Self {
            sql,
            run,
            met,
            jobs: HashMap::new(),
            attempts: HashMap::new(),
            ended: Vec::new(),
            looks: Looks::default(),
            tallies: Tallies::default(),
            blocks: Blocks::default(),
            trials: Trials::default(),
            grafted: false,
        }
    }

    pub(crate) fn event(&mut self, at: Timestamp, event: Event) -> rusqlite::Result<()> {
        let at = signed(at.0);
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
            Event::RunResumed { version, reopened } => {
                self.run.version = Some(version);
                self.run.resumed += 1;
                self.run.ended = None;
                self.run.outcome = None;
                self.run.stopping = None;
                for job in reopened {
                    self.trials.again(self.sql, self.run.run, job)?;
                    let row = self.enter(job, "waiting", at)?;
                    row.blame = None;
                    row.because = None;
                }
            }
            Event::Missed { job, key, reason } => {
                let row = self.enter(job, "ready", at)?;
                row.key = key.map(|key| key.hex());
                row.why = json(&reason);
            }
            Event::Reused { job, key, run, outputs, told, .. } => {
                self.trials.again(self.sql, self.run.run, job)?;
                self.trials.ended(self.sql, self.run.run, (job, at), told.as_deref(), true)?;
                self.metrics(job, told.as_deref())?;
                let row = self.enter(job, "done", at)?;
                row.key = Some(key.hex());
                row.reused_from = Some(run);
                self.outputs(job, None, &outputs)?;
            }
            Event::Submitted { attempt, request, placement, .. } => {
                self.trials.again(self.sql, self.run.run, attempt.job)?;
                let job = self.enter(attempt.job, "submitted", at)?;
                job.attempts = attempt.n;
                job.started = None;
                let row = self.attempt(attempt)?;
                row.submitted = Some(at);
                row.request = json(&request);
                row.placement = json(&placement);
                row.site = Some(placement.site);
            }
            Event::Started { attempt } => {
                self.enter(attempt.job, "running", at)?.started = Some(at);
                let row = self.attempt(attempt)?;
                row.started.get_or_insert(at);
                row.waiting = None;
            }
            Event::Held { attempt, reason } => {
                self.enter(attempt.job, "held", at)?;
                self.attempt(attempt)?.held = Some(reason);
            }
            Event::Released { attempt } => {
                self.enter(attempt.job, "submitted", at)?;
                self.attempt(attempt)?.held = None;
            }
            Event::Ended { attempt, report, then } => {
                let well = then == Consequence::Done;
                let job = self.stand(attempt.job, at, &then)?;
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
                self.trials.ended(self.sql, self.run.run, (attempt.job, at), report.told.as_deref(), well)?;
                if well {
                    self.metrics(attempt.job, report.told.as_deref())?;
                    self.outputs(attempt.job, Some(attempt.n), &report.outputs)?;
                }
                self.trial_stands(attempt.job, at, &then)?;
            }
            Event::Due { job } => drop(self.enter(job, "ready", at)?),
            Event::Failed { job, blame } => {
                let failed = Consequence::Failed { blame };
                self.stand(job, at, &failed)?;
                self.trial_stands(job, at, &failed)?;
            }
            Event::Skipped { job, because } => {
                if because == Because::Pruned {
                    self.trial_stands(job, at, &Consequence::Pruned)?;
                }
                self.enter(job, "skipped", at)?.because = json(&because);
            }
            Event::Cancelled { job } => {
                self.stand(job, at, &Consequence::Cancelled)?;
                self.trial_stands(job, at, &Consequence::Cancelled)?;
            }
            Event::Asked { job, values, origin } => {
                self.trials.asked(self.sql, self.run.run, (job, at), &values, &origin)?;
            }
            Event::Reported { job, step, value } => {
                self.trials.step(self.sql, self.run.run, job, step, value)?;
            }
            // It has no job: what others ran is in their storage, and in the study.
            Event::Added { .. } | Event::Curtailed { .. } => {}
            Event::Continued { job } => {
                self.enter(job, "ready", at)?;
                self.trials.state(self.sql, self.run.run, (job, at), "running", None)?;
            }
            Event::Grafted { .. } => self.grafted = true,
            Event::HeldBack { .. } | Event::Node { .. } | Event::Ordered { .. } => {}
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

    /// The plan has to be asked.
    pub(crate) fn needs_names(&self) -> bool {
        self.grafted || self.jobs.values().any(|row| row.name.is_none())
    }

    fn enter(&mut self, job: JobId, state: &'static str, at: i64) -> rusqlite::Result<&mut JobRow> {
        use std::collections::hash_map::Entry;
        let row = match self.jobs.entry(job.0) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(place) => {
                let is_new = self.met.as_ref().is_some_and(|met| !met.contains(&job.0));
                let known = if is_new { None } else { rows::read_job(self.sql, self.run.run, job.0)? };
                place.insert(known.unwrap_or_default())
            }
        };
        row.state = state;
        row.since = Some(at);
        Ok(row)
    }

    /// The job stands as the end of its attempt says.
    fn stand(&mut self, job: JobId, at: i64, then: &Consequence) -> rusqlite::Result<&mut JobRow> {
        let state = match then {
            Consequence::Done => "done",
            Consequence::Retry { .. } => "backoff",
            Consequence::Failed { .. } => "failed",
            Consequence::Pruned => "skipped",
            Consequence::Paused => "paused",
            Consequence::Cancelled => "cancelled",
        };
        let row = self.enter(job, state, at)?;
        match then {
            Consequence::Failed { blame } => row.blame = Some(blame_word(*blame)),
            Consequence::Pruned => row.because = json(&Because::Pruned),
            _ => {}
        }
        Ok(row)
    }

    /// And so does its trial; one that is complete has said so with its numbers.
    fn trial_stands(&mut self, job: JobId, at: i64, then: &Consequence) -> rusqlite::Result<()> {
        let (state, reason) = match then {
            Consequence::Done | Consequence::Retry { .. } => return Ok(()),
            Consequence::Failed { blame } => ("failed", Some(blame_word(*blame))),
            Consequence::Pruned => ("pruned", None),
            Consequence::Paused => ("paused", None),
            Consequence::Cancelled => ("failed", Some("cancelled")),
        };
        self.trials.state(self.sql, self.run.run, (job, at), state, reason)
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

    fn metrics(&self, job: JobId, told: Option<&Told>) -> rusqlite::Result<()> {
        told.map_or(Ok(()), |told| rows::write_metrics(self.sql, self.run.run, job.0, &told.values))
    }

    fn outputs(&self, job: JobId, attempt: Option<u32>, outputs: &[OutputFile]) -> rusqlite::Result<()> {
        outputs.iter().try_for_each(|output| rows::write_output(self.sql, self.run.run, job.0, attempt, output))
    }

    /// Writes what changed, in the order of the tables. `complete`: the journal was read to its end. Gives the jobs that
    /// are in the tables, if that is known.
    pub(crate) fn write(
        &mut self,
        names: Option<&dyn JobNames>,
        complete: bool,
    ) -> rusqlite::Result<Option<HashSet<u32>>> {
        let run = self.run.run;
        let mut met = self.met.take();
        if let Some(met) = &mut met {
            met.extend(self.jobs.keys());
            met.extend(self.attempts.keys().map(|(job, _)| *job));
        }
        let mut jobs: Vec<_> = std::mem::take(&mut self.jobs).into_iter().collect();
        jobs.sort_unstable_by_key(|(job, _)| *job);
        for (job, row) in &mut jobs {
            if let (None, Some(names)) = (&row.name, names) {
                row.name = names.name(JobId(*job));
                row.task_set = names.set(JobId(*job));
                self.blocks.text(self.sql, run, *job, row.task_set.as_deref(), row.name.as_deref())?;
            }
            rows::write_job(self.sql, run, *job, row)?;
            self.blocks.state(self.sql, run, *job, letter(row.state, row.reused_from.is_some()))?;
            self.tallies.job(*job, row.counted.as_ref(), row.to_count());
        }
        let mut attempts: Vec<_> = std::mem::take(&mut self.attempts).into_iter().collect();
        attempts.sort_unstable_by_key(|(attempt, _)| *attempt);
        for ((job, n), row) in attempts {
            rows::write_attempt(self.sql, run, job, n, &row)?;
        }
        for (AttemptId { job, .. }, usage) in std::mem::take(&mut self.ended) {
            let here = jobs.binary_search_by_key(&job.0, |(job, _)| *job).ok();
            let set = match (here, names) {
                (Some(here), _) => jobs[here].1.task_set.clone(),
                (None, Some(names)) => names.set(job),
                (None, None) => rows::read_job(self.sql, run, job.0)?.and_then(|row| row.task_set),
            };
            self.tallies.attempt(&set.unwrap_or_default(), job.0, &usage);
        }
        if complete && let Some(names) = names {
            self.add_waiting(names)?;
        }
        self.blocks.write(self.sql, run)?;
        self.trials.write(self.sql, run, names)?;
        self.tallies.write(self.sql, run)?;
        self.looks.write(self.sql, &mut self.run)?;
        rows::write_run(self.sql, &self.run)?;
        Ok(met.filter(|_| !complete))
    }

    /// Jobs of the plan that no event has mentioned yet.
    fn add_waiting(&mut self, names: &dyn JobNames) -> rusqlite::Result<()> {
        let mut insert = self.sql.prepare_cached(
            "INSERT OR IGNORE INTO jobs (run, job, name, task_set, state) VALUES (?1, ?2, ?3, ?4, 'waiting')",
        )?;
        for job in self.run.jobs..names.count() {
            let (set, name) = (names.set(JobId(job)), names.name(JobId(job)));
            if insert.execute(params![self.run.run, job, name, set])? > 0 {
                self.blocks.state(self.sql, self.run.run, job, letter("waiting", false))?;
                self.blocks.text(self.sql, self.run.run, job, set.as_deref(), name.as_deref())?;
                let waits = rows::Counted { set: set.unwrap_or_default(), state: "waiting", reused: false };
                self.tallies.job(job, None, waits);
            }
        }
        self.run.jobs = self.run.jobs.max(names.count());
        Ok(())
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

fn blame_word(blame: Blame) -> &'static str {
    match blame {
        Blame::Task => "task",
        Blame::Resources => "resources",
        Blame::TooMuch => "too_much",
        Blame::Site => "site",
        Blame::Inputs => "inputs",
    }
}

fn json(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}
