//! What whoever watches is told of jobs that have not ended: why they wait, and how they do while they run.
//!
//! A running job keeps its last look at itself in a file of its folder; a few of them are read every second, in turn.
//! Jobs that have ended are never looked at.

use super::follow::Follower;
use super::table::Stage;
use crate::live::{LiveFile, LiveReader, take_said};
use crate::local::now;
use crate::remote::Remote;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tulpar_core::ids::AttemptId;
use tulpar_core::live::{LiveLine, Seen};
use tulpar_core::parcel;

/// How often files of running jobs are read, and how many of them.
const EVERY: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 32;
/// Tasks that are passed by while looking for some that run.
const PASSED: usize = 10_000;
/// A reason that changes to and fro is not told more often.
const WHY_EVERY: Duration = Duration::from_secs(60);

pub(crate) struct Watching {
    file: LiveFile,
    next: Instant,
    /// The batch and the task that are to be read next.
    at: (u32, u32),
    lines: Vec<LiveLine>,
}

impl Watching {
    pub(crate) fn new(remote: &Remote) -> Self {
        Self { file: LiveFile::at(remote.run().samples()), next: Instant::now(), at: (0, 0), lines: Vec::new() }
    }

    /// What has come together.
    pub(crate) fn tell(&mut self) {
        self.file.append(&self.lines);
        self.lines.clear();
    }
}

impl Follower {
    /// Slurm's reason for that a task waits, told when it is another.
    pub(super) fn why(&mut self, number: u32, index: u32, reason: &str) {
        if reason.is_empty() || reason == "None" {
            return;
        }
        let Some(task) = self.task(number, index) else { return };
        let is_told = task.waits.as_ref().is_some_and(|(told, at)| told == reason || at.elapsed() < WHY_EVERY);
        if is_told {
            return;
        }
        task.waits = Some((reason.to_owned(), Instant::now()));
        let waiting = format!("Slurm says `{reason}`");
        let line = LiveLine::new(now(), task.attempt, Seen::Waiting { waiting });
        self.live.lines.push(line);
    }

    /// Reads what some of the running jobs say of themselves.
    pub(super) fn watch(&mut self) {
        if Instant::now() < self.live.next {
            return;
        }
        self.live.next = Instant::now() + EVERY;
        for (number, index, attempt) in self.next_running() {
            let out = self.remote.attempt_folder(attempt).join(parcel::OUT);
            self.hear(number, index, attempt, &out.join(parcel::SAID));
            let path = out.join(parcel::SEEN);
            let Ok(text) = fs::read(path) else { continue };
            // It is written while we read: half a line is no line.
            let Some(line) = text.strip_suffix(b"\n").and_then(LiveLine::read) else { continue };
            let Some(task) = self.task(number, index) else { continue };
            if line.attempt() == attempt && line.at > task.looked {
                task.looked = line.at;
                self.live.lines.push(line);
            }
        }
        self.live.tell();
    }

    /// What a trial has said since its last turn.
    fn hear(&mut self, number: u32, index: u32, attempt: AttemptId, path: &Path) {
        let Some(task) = self.task(number, index).filter(|task| task.said.is_some() || path.exists()) else { return };
        let reader = task.said.get_or_insert_with(|| LiveReader::at(path.to_owned()));
        let mut lines = reader.news().unwrap_or_default();
        lines.retain(|line| line.attempt() == attempt);
        take_said(&mut lines, |said| self.driver.input(said));
    }

    /// The running tasks whose turn it is.
    fn next_running(&mut self) -> Vec<(u32, u32, AttemptId)> {
        let (mut found, mut passed) = (Vec::new(), 0);
        let from = self.live.at;
        let mut next = (0, 0);
        let batches = self.table.range(from.0..).chain(self.table.range(..=from.0));
        'all: for (turn, (number, batch)) in batches.enumerate() {
            let first = if turn == 0 && *number == from.0 { from.1 } else { 0 };
            for (task, index) in batch.tasks.iter().zip(0..).skip(first as usize) {
                if found.len() == AT_ONCE || passed == PASSED {
                    next = (*number, index);
                    break 'all;
                }
                passed += 1;
                // Around the circle once.
                if found.first().is_some_and(|(first, at, _)| (*first, *at) == (*number, index + 1)) {
                    break 'all;
                }
                if task.stage == Stage::Running {
                    found.push((*number, index + 1, task.attempt));
                }
            }
        }
        self.live.at = next;
        found
    }
}
