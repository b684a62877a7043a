//! What the event log says becomes of jobs, and what the queue says where the log is silent.

use super::super::tools::{self, Queued};
use super::rounds::Rounds;
use super::{ASK_AFTER, ASK_WHY_EVERY, MOST_MISSES, REMIND_EVERY, Work};
use crate::condor::text::hold::{self, Hold};
use crate::condor::text::log::{Entry, Event, TransferPhase};
use crate::live::take_said;
use crate::local::now;
use std::collections::HashMap;
use std::time::Instant;
use tulpar_core::event::Input;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::Ending;
use tulpar_core::live::{LiveLine, Seen};

/// `JobStatus` of a job that waits.
const IDLE: i64 = 1;

impl Work {
    pub(super) fn look(&mut self) {
        loop {
            match self.log.news() {
                Ok(None) => break,
                Ok(Some(entries)) => {
                    // What jobs say of themselves does not say that the log is complete.
                    if entries.iter().any(|entry| !matches!(entry.event, Event::Generic { .. })) {
                        self.heard = Instant::now();
                    }
                    entries.iter().for_each(|entry| self.take(entry));
                }
                Err(error) => {
                    let path = self.log.path().display().to_string();
                    self.driver.warn(format!("HTCondor's log {path} cannot be read: {error}"));
                    self.heard = Instant::now() - ASK_AFTER;
                    return;
                }
            }
        }
        self.hold_loops();
    }

    fn take(&mut self, entry: &Entry) {
        let id = (entry.cluster, entry.proc);
        if let Event::Submit { notes, .. } = &entry.event {
            let named = notes.iter().find_map(|note| note.trim().strip_prefix("tulpar:")?.parse().ok());
            if let Some(attempt) = named {
                self.know(attempt, id);
                if let Some(tracked) = self.tracked.get_mut(&attempt) {
                    tracked.logged = true;
                }
            }
            return;
        }
        let Some(attempt) = self.jobs.get(&id).copied() else { return };
        let Some(tracked) = self.tracked.get_mut(&attempt) else { return };
        tracked.misses = 0;
        match &entry.event {
            Event::Execute { .. } => {
                (tracked.running, tracked.waits) = (true, None);
                tracked.rounds.started();
                self.driver.input(Input::Started { attempt });
            }
            Event::Evicted { .. } => {
                tracked.running = false;
                tracked.rounds.started();
                self.driver.input(Input::Released { attempt });
            }
            Event::Generic { text } => {
                let mut lines: Vec<LiveLine> = LiveLine::from_word(attempt, text).into_iter().collect();
                take_said(&mut lines, |said| self.driver.input(said));
                self.live.append(&lines);
            }
            Event::FileTransfer { phase, .. } => {
                if *phase == TransferPhase::InputStarted {
                    tracked.rounds.started();
                }
                tracked.moves.note(entry.time, *phase);
            }
            Event::Terminated { exit, bytes, .. } => self.harvest(attempt, Some((exit, bytes))),
            Event::Aborted { reason, .. } => {
                let told = tracked.told.clone();
                self.forget(attempt);
                match told {
                    Some(ending) => self.end(attempt, ending),
                    None => {
                        let why = reason.as_deref().unwrap_or("HTCondor gives no reason");
                        self.end_with(attempt, Ending::Cancelled, format!("removed from HTCondor's queue: {why}"));
                    }
                }
            }
            Event::Held { reason, code, subcode } => {
                tracked.rounds = Rounds::default();
                self.looping.remove(&attempt);
                self.held(attempt, *code, *subcode, reason);
            }
            Event::Released { .. } => {
                tracked.rounds = Rounds::default();
                self.driver.input(Input::Released { attempt });
            }
            Event::RemoteError { critical, text, .. } => {
                if let Some(reason) = tracked.rounds.failed(entry.time, *critical, text) {
                    self.looping.insert(attempt, reason);
                }
            }
            Event::Disconnected { reason, .. } => {
                if let Some(reason) = tracked.rounds.disconnected(entry.time, reason) {
                    self.looping.insert(attempt, reason);
                }
            }
            _ => {}
        }
    }

    /// They would go on for ever: a person must look. What the log says was held since is left alone.
    fn hold_loops(&mut self) {
        if self.again.is_some() {
            return;
        }
        while let Some((attempt, reason)) = self.looping.pop_first() {
            let Some(id) = self.tracked.get(&attempt).and_then(|tracked| tracked.id) else { continue };
            if let Err(error) = tools::hold(id, &reason.replace('\n', " ")) {
                // They go on meanwhile, and are held when it answers again.
                self.looping.insert(attempt, reason);
                return self.wait_for(&error);
            }
        }
    }

    pub(super) fn held(&mut self, attempt: AttemptId, code: i32, subcode: i32, reason: &str) {
        let id = self.tracked.get(&attempt).and_then(|tracked| tracked.id);
        let ending = match hold::read(code, subcode, reason) {
            Hold::Person(words) => return self.driver.input(Input::Held { attempt, reason: words }),
            Hold::Memory => Ending::Memory,
            Hold::Time => Ending::Walltime,
        };
        self.removing.extend(id);
        self.forget(attempt);
        self.end_with(attempt, ending, reason.to_owned());
    }

    /// Says of jobs that wait why they do, when that is new.
    fn tell_why(&mut self, queued: &[Queued]) {
        let mut lines = Vec::new();
        for job in queued.iter().filter(|job| job.status == IDLE) {
            let Some(tracked) = self.tracked.get_mut(&job.attempt).filter(|tracked| !tracked.running) else { continue };
            let why = match &job.rejected {
                Some(reason) => format!("HTCondor says `{reason}`"),
                None => "HTCondor has not looked for a machine for it yet".to_owned(),
            };
            if tracked.waits.as_ref() != Some(&why) {
                tracked.waits = Some(why.clone());
                lines.push(LiveLine::new(now(), job.attempt, Seen::Waiting { waiting: why }));
            }
        }
        self.live.append(&lines);
    }

    /// A schedd whose claim was refused may forget the job that it was for (seen with 23.9): no machine is looked for again
    /// until its list of jobs that wait is made anew. Setting the priority of one to what it is does that.
    fn remind(&mut self, queued: &[Queued]) {
        let waiting = queued.iter().find(|job| job.status == IDLE);
        if let Some(job) = waiting.filter(|_| self.reminded.is_none_or(|at| at.elapsed() >= REMIND_EVERY)) {
            self.reminded = Some(Instant::now());
            // If it fails, jobs wait as they would have.
            let _ = tools::touch(job.id);
        }
    }

    /// The log is what counts; the queue is asked when it has been silent, in case an entry got lost.
    pub(super) fn ask_when_silent(&mut self) {
        let asks_why = Instant::now() >= self.ask_why && self.tracked.values().any(|tracked| !tracked.running);
        if self.tracked.is_empty() || (self.heard.elapsed() < ASK_AFTER && !asks_why) || self.again.is_some() {
            return;
        }
        let asked = Instant::now();
        let was_silent = self.heard.elapsed() >= ASK_AFTER / 2;
        self.heard = asked;
        let queued = match tools::queue(&self.run_tag()) {
            Ok(queued) => queued,
            Err(error) => return self.wait_for(&error),
        };
        self.ask_why = Instant::now() + ASK_WHY_EVERY.max(asked.elapsed() * 20);
        self.answered();
        self.look();
        self.tell_why(&queued);
        if was_silent {
            self.remind(&queued);
        }
        let there: HashMap<AttemptId, _> = queued.into_iter().map(|job| (job.attempt, job)).collect();
        let mut gone = Vec::new();
        for (attempt, tracked) in &mut self.tracked {
            match there.get(attempt) {
                Some(_) => tracked.misses = 0,
                None if tracked.id.is_some() => {
                    tracked.misses += 1;
                    if tracked.misses >= MOST_MISSES {
                        gone.push(*attempt);
                    }
                }
                None => {}
            }
        }
        self.harvest_gone(&gone);
    }
}
