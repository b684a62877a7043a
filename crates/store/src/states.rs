//! The states of jobs and trials, from the transitions that `RunState::apply` returns.
//!
//! Nothing else writes a state. Where an event cannot be applied (no plan, or a damaged line before it), the job that it speaks
//! of is `unknown` rather than guessed.

use crate::page::letter;
use crate::project::{Changes, json};
use crate::rows::{self, Counted, JobRow, UNKNOWN, signed, word};
use rusqlite::params;
use tulpar_core::engine::{RunState, State, Transition};
use tulpar_core::event::{Blame, Event};
use tulpar_core::hpo::State as Trial;
use tulpar_core::ids::JobId;
use tulpar_core::units::Timestamp;

impl Changes<'_> {
    pub(crate) fn apply(&mut self, seq: u64, at: Timestamp, event: &Event) -> rusqlite::Result<()> {
        let Some(cursor) = self.cursor.take() else { return self.lose(seq, at, event) };
        let outcome = match cursor.take(seq, at, event) {
            Some(transitions) => self.follow(cursor.state(), (seq, at), event, &transitions.jobs),
            None => self.lose(seq, at, event),
        };
        self.cursor = Some(cursor);
        outcome
    }

    fn follow(
        &mut self,
        run: &RunState,
        (seq, at): (u64, Timestamp),
        event: &Event,
        moves: &[Transition],
    ) -> rusqlite::Result<()> {
        for moved in moves {
            if moved.from.is_none() {
                self.added.push(moved.job.0);
            }
            let attempts = run.attempts(moved.job);
            self.enter(moved.job, (seq, at), word(moved.to))?.stand(moved, attempts, event);
            self.trial(run, moved.job, at)?;
        }
        // A trial that got its parameters may still wait for its inputs.
        if let Event::Asked { job, .. } = event {
            self.trial(run, *job, at)?;
        }
        Ok(())
    }

    /// The event stays in the story of the job, whose state nobody knows.
    fn lose(&mut self, seq: u64, at: Timestamp, event: &Event) -> rusqlite::Result<()> {
        let Some(job) = event.job() else { return Ok(()) };
        let row = self.enter(job, (seq, at), UNKNOWN)?;
        (row.blame, row.because) = (None, None);
        row.attempts = row.attempts.max(event.attempt().map_or(0, |attempt| attempt.n));
        self.trials.state(self.sql, self.run.run, (job, signed(at.0)), UNKNOWN, false, None)
    }

    fn enter(&mut self, job: JobId, (seq, at): (u64, Timestamp), state: &'static str) -> rusqlite::Result<&mut JobRow> {
        rows::write_transition(self.sql, self.run.run, seq, job.0, state)?;
        let row = self.job(job)?;
        row.state = state;
        row.since = Some(signed(at.0));
        Ok(row)
    }

    /// As the study says; nothing for a job that is no trial.
    fn trial(&mut self, run: &RunState, job: JobId, at: Timestamp) -> rusqlite::Result<()> {
        let Some(trial) = run.graph().trial(job) else { return Ok(()) };
        let blame = self.jobs.get(&job.0).and_then(|row| row.blame);
        let reason = (trial.state == Trial::Failed).then(|| match run.state(job) {
            State::Cancelled => "cancelled",
            // One that is done, and has failed, has not reported all of its numbers.
            _ => blame.unwrap_or("task"),
        });
        let (word, over) = (trial.state.word(), trial.state.is_ended());
        self.trials.state(self.sql, self.run.run, (job, signed(at.0)), word, over, reason)
    }

    /// Jobs that no event has moved: they stand as the plan begins.
    pub(crate) fn add_rest(&mut self) -> rusqlite::Result<()> {
        let Some(cursor) = self.cursor.as_deref() else { return Ok(()) };
        let count = cursor.state().jobs() as u32;
        let mut insert = self.sql.prepare_cached(
            "INSERT OR IGNORE INTO jobs (run, job, name, task_set, state) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for job in self.run.jobs..count {
            let (set, name) = (cursor.set(job), cursor.name(job));
            let state = word(cursor.state().state(JobId(job)));
            if insert.execute(params![self.run.run, job, name, set, state])? > 0 {
                self.blocks.state(self.sql, self.run.run, job, letter(state, false))?;
                self.blocks.text(self.sql, self.run.run, job, set, name.as_deref())?;
                let counted = Counted { set: set.unwrap_or_default().to_owned(), state, reused: false };
                self.tallies.job(job, None, counted);
            }
        }
        self.run.jobs = self.run.jobs.max(count);
        Ok(())
    }
}

impl JobRow {
    /// The reasons of an earlier state do not outlive it.
    fn stand(&mut self, moved: &Transition, attempts: u32, event: &Event) {
        self.attempts = attempts;
        let failed = event.failure().filter(|(job, _)| *job == moved.job && moved.to == State::Failed);
        self.blame = failed.map(|(_, blame)| blame_word(blame));
        let skipped = event.skip().filter(|(job, _)| *job == moved.job && moved.to == State::Skipped);
        self.because = skipped.and_then(|(_, because)| json(because));
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
