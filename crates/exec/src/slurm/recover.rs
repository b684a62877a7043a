//! After a crash of the driver: what became of attempts that it had submitted.
//!
//! Reports that lie there are taken in; arrays are found by their numbers, or by their names when the driver died before
//! it could write the number down. A batch that Slurm does not know is made void, so that an `sbatch` that is still
//! under way somewhere can start nothing. Jobs that nobody waits for any more are cancelled.

use super::ask::{ASK, Ask};
use super::follow::Follower;
use super::table::{Batch, Stage, Task};
use crate::remote::Files;
use crate::slurm::text::state::Phase;
use crate::slurm::text::table::Row;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use tulpar_core::event::Input;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::Ending;

/// How often a batch is looked for whose jobs have told of a start while Slurm does not show it.
const ROUNDS: u32 = 5;
/// The database knows the number of a job that was cancelled before it started at once, and its name only seconds later
/// (four, with 22.05).
const NAMES_ARE_LATE: Duration = Duration::from_secs(15);

impl Follower {
    pub(crate) fn reconcile(&mut self, attempts: &[AttemptId]) {
        let earlier = match self.batches.earlier() {
            Ok(earlier) => earlier,
            Err(error) => {
                self.driver.warn(format!("what was submitted before cannot be read: {error}"));
                BTreeMap::new()
            }
        };
        self.has_earlier |= !earlier.is_empty();
        let mut place: HashMap<AttemptId, (u32, u32)> = HashMap::new();
        for (number, found) in &earlier {
            place.extend(found.attempts.iter().zip(1..).map(|(attempt, index)| (*attempt, (*number, index))));
        }
        let mut live: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for attempt in attempts {
            match place.get(attempt) {
                Some((number, index)) => live.entry(*number).or_default().push(*index),
                // It was never announced, or its batch is over and its end was not written down.
                None => match self.remote.harvest(*attempt, Files::Shared) {
                    Ok(report) => self.driver.input(Input::Ended { attempt: *attempt, report: Box::new(report) }),
                    Err(_) => self.end_unsent(*attempt, Ending::DriverLost),
                },
            }
        }
        for (number, found) in earlier {
            let Some(wanted) = live.get(&number) else {
                if found.array.is_none() && !found.void {
                    let _ = self.batches.void(number);
                }
                continue;
            };
            let mut tasks: Vec<Task> = found.attempts.iter().map(|attempt| Task::new(*attempt, true)).collect();
            for (task, index) in tasks.iter_mut().zip(1..) {
                match wanted.contains(&index) {
                    true => task.keeps_checkpoint = self.remote.saves(task.attempt),
                    false => task.stage = Stage::Over,
                }
            }
            for index in wanted {
                self.where_is.insert(tasks[*index as usize - 1].attempt, (number, *index));
            }
            let batch = Batch { array: None, known: 0, tasks, live: wanted.len(), from_earlier: true };
            self.table.insert(number, batch);
            match found.array {
                Some(array) => self.confirm(number, array),
                None => {
                    self.unconfirmed.insert(number, (0, Instant::now()));
                }
            }
            for index in wanted {
                self.harvest(number, *index);
            }
        }
        self.hurry(Duration::ZERO);
    }

    /// A job that nobody waits for: an earlier driver's whose attempt the engine no longer holds, or one that Slurm
    /// put back into the queue after it had told how it ended. What still runs of our own is merely late to leave.
    pub(crate) fn is_nobodys(&self, number: u32, phase: Phase) -> bool {
        match phase {
            Phase::Waiting | Phase::Held => true,
            Phase::Running => self.is_closing() || !self.batches.is_own(number),
            Phase::Leaving | Phase::Over(_) => false,
        }
    }

    /// A listing shows a batch whose number nobody had written down.
    pub(crate) fn found_unconfirmed(&mut self, number: u32, array: u64) {
        self.unconfirmed.remove(&number);
        if let Err(error) = self.batches.confirm(number, array) {
            self.driver.warn(format!("the number {array} of a job cannot be written down: {error}"));
        }
        self.confirm(number, array);
    }

    /// What no listing shows is asked for by name: it may be over already.
    pub(crate) fn after_listing(&mut self) {
        if self.unconfirmed.is_empty() || self.named_asked {
            return;
        }
        self.unconfirmed.retain(|number, _| self.table.contains_key(number));
        let names: Vec<String> = self.unconfirmed.keys().map(|number| self.batches.name(*number)).collect();
        if !names.is_empty() {
            self.named_asked = true;
            let _ = self.asks.send(Ask::Named(names, self.accounting()));
        }
    }

    pub(crate) fn take_named(&mut self, names: &[String], rows: &[Row]) {
        for name in names {
            let Some(number) = self.batches.batch_of(name).filter(|number| self.unconfirmed.contains_key(number))
            else {
                continue;
            };
            match rows.iter().find(|row| row.name == *name) {
                Some(row) => self.found_unconfirmed(number, row.array),
                None => self.give_up_unconfirmed(number),
            }
        }
        self.hurry(if self.unconfirmed.is_empty() { Duration::ZERO } else { ASK });
    }

    /// First the mark that stops jobs, then the look for jobs that started before it: one of both sees the other.
    fn give_up_unconfirmed(&mut self, number: u32) {
        if let Err(error) = self.batches.void(number) {
            self.driver.warn(format!("a batch that Slurm does not know cannot be marked: {error}"));
            return;
        }
        let told = self.batches.told().unwrap_or_default();
        let started = told.iter().any(|told| told.batch == number);
        let (rounds, since) = self.unconfirmed.entry(number).or_insert((0, Instant::now()));
        *rounds += 1;
        let may_be_late = self.cluster.configuration.accounting && since.elapsed() < NAMES_ARE_LATE;
        if may_be_late || (started && *rounds < ROUNDS) {
            return;
        }
        self.unconfirmed.remove(&number);
        for index in self.live_of(number) {
            if !self.harvest(number, index) {
                self.end(number, index, Ending::DriverLost, "it was never submitted, or Slurm has forgotten it".into());
            }
        }
    }
}
