//! What jobs tell by files, and what becomes of those that told nothing.

use super::PATIENCE;
use super::batches::Told;
use super::endings::{self, Remains};
use super::follow::Follower;
use super::table::{Stage, Task};
use crate::local::now;
use crate::remote::{Files, HarvestError};
use crate::slurm::text::state::Over;
use std::time::{Duration, Instant};
use tulpar_core::event::Input;
use tulpar_core::job::Ending;

/// For a report to be seen on a file system that is shared, after Slurm said that the job is over.
const REPORT_WAIT: Duration = Duration::from_secs(10);
/// For a job that Slurm has forgotten and that nobody else remembers.
const FORGOTTEN_WAIT: Duration = Duration::from_secs(5);

impl Follower {
    pub(super) fn look(&mut self) {
        match self.batches.told() {
            Ok(told) => told.into_iter().for_each(|told| self.take_told(told)),
            Err(error) => {
                if self.away.is_none() {
                    self.driver.warn(format!("the folder {} cannot be read: {error}", self.batches.events().display()));
                    self.away = Some((Instant::now(), error.to_string(), true));
                }
            }
        }
        for (number, index) in self.lost.clone() {
            self.settle(number, index);
        }
        self.watch();
        self.give_up_after_patience();
    }

    fn take_told(&mut self, told: Told) {
        let generation = self.generation;
        let Some(batch) = self.table.get_mut(&told.batch) else {
            // Of an earlier driver's job that nobody waits for.
            if !self.unconfirmed.contains_key(&told.batch) {
                self.batches.forget(told);
            }
            return;
        };
        let confirmed = batch.array.is_some();
        let index = told.task;
        let Some(task) = batch.tasks.get_mut((index as usize).wrapping_sub(1)) else { return };
        let attempt = task.attempt;
        let stale = task.stage == Stage::Over || told.restarts < task.restarts;
        match told.code {
            _ if stale => {}
            None => {
                let again = task.stage == Stage::Running && told.restarts > task.restarts;
                let new = task.stage != Stage::Running || again;
                task.restarts = told.restarts;
                task.stage = Stage::Running;
                task.changed = generation;
                if new {
                    task.left = None;
                    task.gone = None;
                    task.started = Some(now());
                    self.lost.remove(&(told.batch, index));
                    if again {
                        self.driver.input(Input::Released { attempt });
                    }
                    self.driver.input(Input::Started { attempt });
                }
            }
            Some(code) => {
                let cancelled = task.cancelled.clone();
                let first = task.left.replace(code).is_none();
                if !self.harvest(told.batch, index) {
                    if let Some(ending) = cancelled {
                        self.end(told.batch, index, ending, String::new());
                    } else if first {
                        // Stopped, and to be started again or not: Slurm knows.
                        self.hurry(Duration::ZERO);
                    }
                }
            }
        }
        if confirmed {
            self.batches.forget(told);
        }
    }

    /// Takes a report in, if there is one.
    pub(crate) fn harvest(&mut self, number: u32, index: u32) -> bool {
        let Some(task) = self.task(number, index) else { return false };
        let attempt = task.attempt;
        // What is taken in is over; what has no report may yet be started again, with all that it was sent.
        if !self.remote.has_report(attempt) {
            return false;
        }
        match self.remote.harvest(attempt, Files::Shared) {
            Ok(report) => {
                self.over(number, index);
                self.driver.input(Input::Ended { attempt, report: Box::new(report) });
                true
            }
            Err(HarvestError::NoReport(_)) => false,
            Err(error) => {
                self.end(number, index, Ending::NodeLost, error.to_string());
                true
            }
        }
    }

    /// Decides how something ended that is over without a report, when nothing more is to be expected.
    pub(super) fn settle(&mut self, number: u32, index: u32) {
        let Some(task) = self.task(number, index) else {
            self.lost.remove(&(number, index));
            return;
        };
        let Some((since, over)) = task.gone else { return };
        let (attempt, code, keeps_checkpoint) = (task.attempt, task.left, task.keeps_checkpoint);
        let wait = match over {
            Some(Over::Completed | Over::Failed) => REPORT_WAIT,
            Some(_) => Duration::ZERO,
            None => FORGOTTEN_WAIT,
        };
        let may_be_told = over.is_none() && self.database_away.is_some_and(|away| away.elapsed() < PATIENCE);
        if self.harvest(number, index) || since.elapsed() < wait || may_be_told {
            return;
        }
        let (ending, words) = match over {
            None => (Ending::NodeLost, "its job left Slurm's queue, and nobody knows how it ended".to_owned()),
            Some(over) => {
                let log = std::fs::read(self.remote.attempt_folder(attempt).join("launch.log")).unwrap_or_default();
                let words = String::from_utf8_lossy(&log[log.len().saturating_sub(2000)..]).into_owned();
                endings::ending(Remains { over, code, keeps_checkpoint, words: &words })
            }
        };
        self.end(number, index, ending, words);
    }

    /// After so long without the controller, what has not started shall not start any more.
    fn give_up_after_patience(&mut self) {
        let Some((since, text, _)) = &self.away else { return };
        if since.elapsed() < PATIENCE {
            return;
        }
        let words = format!("Slurm did not answer for {} minutes: {text}", PATIENCE.as_secs() / 60);
        let waits = |task: &Task| matches!(task.stage, Stage::Waiting | Stage::Held);
        let stuck: Vec<u32> = self
            .table
            .iter()
            .filter(|(_, batch)| batch.array.is_some() && batch.tasks.iter().any(waits))
            .map(|(number, _)| *number)
            .collect();
        for number in stuck {
            if self.batches.void(number).is_err() {
                continue;
            }
            self.batches.told().unwrap_or_default().into_iter().for_each(|told| self.take_told(told));
            for index in self.live_of(number) {
                if self.task(number, index).is_some_and(|task| waits(task)) {
                    self.end(number, index, Ending::NodeLost, words.clone());
                }
            }
        }
    }
}
