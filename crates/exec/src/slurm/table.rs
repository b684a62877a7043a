//! Where every attempt stands: batches and their tasks.

use super::endings;
use super::follow::Follower;
use crate::live::LiveReader;
use crate::slurm::text::state::Over;
use std::time::Instant;
use tulpar_core::event::Input;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::Ending;
use tulpar_core::units::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Waiting,
    Held,
    Running,
    Over,
}

pub(crate) struct Task {
    pub(crate) attempt: AttemptId,
    pub(crate) stage: Stage,
    pub(super) restarts: u32,
    /// The listing before which what is known here was already known.
    pub(super) changed: u64,
    pub(super) seen: u64,
    pub(super) started: Option<Timestamp>,
    pub(crate) keeps_checkpoint: bool,
    pub(super) cancelled: Option<Ending>,
    /// `launch` left with this code, without a report that could be found.
    pub(super) left: Option<i32>,
    /// Since when Slurm no longer lists it, and how it says that it ended.
    pub(super) gone: Option<(Instant, Option<Over>)>,
    /// What was last told of why it waits, and when.
    pub(super) waits: Option<(String, Instant)>,
    /// When it was last seen running, by its own clock.
    pub(super) looked: Timestamp,
    /// What it says on the way, as a trial of a search.
    pub(super) said: Option<LiveReader>,
}

impl Task {
    pub(crate) fn new(attempt: AttemptId, keeps_checkpoint: bool) -> Self {
        Self {
            attempt,
            stage: Stage::Waiting,
            restarts: 0,
            changed: 0,
            seen: 0,
            started: None,
            keeps_checkpoint,
            cancelled: None,
            left: None,
            gone: None,
            waits: None,
            looked: Timestamp(0),
            said: None,
        }
    }
}

pub(crate) struct Batch {
    pub(crate) array: Option<u64>,
    /// The listing that was under way when its array became known: only later ones must show it.
    pub(crate) known: u64,
    pub(crate) tasks: Vec<Task>,
    pub(crate) live: usize,
    pub(crate) from_earlier: bool,
}

impl Follower {
    pub(crate) fn task(&mut self, number: u32, index: u32) -> Option<&mut Task> {
        let task = self.table.get_mut(&number)?.tasks.get_mut((index as usize).checked_sub(1)?)?;
        (task.stage != Stage::Over).then_some(task)
    }

    pub(crate) fn live_of(&self, number: u32) -> Vec<u32> {
        let Some(batch) = self.table.get(&number) else { return Vec::new() };
        batch.tasks.iter().zip(1..).filter(|(task, _)| task.stage != Stage::Over).map(|(_, index)| index).collect()
    }

    pub(crate) fn end(&mut self, number: u32, index: u32, ending: Ending, words: String) {
        let Some(task) = self.task(number, index) else { return };
        let (attempt, started) = (task.attempt, task.started);
        // Whoever takes a report in removes them; here nobody does.
        self.remote.forget_secrets(attempt);
        self.over(number, index);
        self.driver.input(Input::Ended { attempt, report: endings::report(ending, started, words) });
    }

    pub(crate) fn end_unsent(&self, attempt: AttemptId, ending: Ending) {
        self.driver.input(Input::Ended { attempt, report: endings::report(ending, None, String::new()) });
    }

    pub(super) fn over(&mut self, number: u32, index: u32) {
        let Some(task) = self.task(number, index) else { return };
        task.stage = Stage::Over;
        let attempt = task.attempt;
        self.where_is.remove(&attempt);
        self.lost.remove(&(number, index));
        let Some(batch) = self.table.get_mut(&number) else { return };
        batch.live -= 1;
        // While the submitter has it, its files are needed.
        if batch.live == 0 && (batch.array.is_some() || batch.from_earlier) {
            if let Some(array) = batch.array {
                self.arrays.remove(&array);
            }
            self.table.remove(&number);
            self.batches.close(number);
        }
    }
}
