//! The work of the pool, the most urgent first: ends make room for others, starts fill it, tidying can wait.

use crate::sandbox::Leftover;
use crate::table::Running;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use tulpar_core::job::JobSpec;

pub(crate) enum Work {
    Finish(Box<Running>),
    Prepare(Box<JobSpec>),
    Tidy(Leftover),
}

#[derive(Default)]
struct Waiting {
    finish: VecDeque<Box<Running>>,
    prepare: VecDeque<Box<JobSpec>>,
    tidy: VecDeque<Leftover>,
    idle: usize,
    closed: bool,
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    more: Condvar,
}

impl Queue {
    pub(crate) fn push(&self, work: impl IntoIterator<Item = Work>) {
        let mut waiting = self.waiting.lock().expect("no panic while held");
        let mut added = 0;
        for work in work {
            match work {
                Work::Finish(running) => waiting.finish.push_back(running),
                Work::Prepare(spec) => waiting.prepare.push_back(spec),
                Work::Tidy(left) => waiting.tidy.push_back(left),
            }
            added += 1;
        }
        let wake = added.min(waiting.idle);
        drop(waiting);
        (0..wake).for_each(|_| self.more.notify_one());
    }

    /// Waits for work; `None` when the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<Work> {
        let mut waiting = self.waiting.lock().expect("no panic while held");
        loop {
            if let Some(running) = waiting.finish.pop_front() {
                return Some(Work::Finish(running));
            }
            if let Some(spec) = waiting.prepare.pop_front() {
                return Some(Work::Prepare(spec));
            }
            if let Some(left) = waiting.tidy.pop_front() {
                return Some(Work::Tidy(left));
            }
            if waiting.closed {
                return None;
            }
            waiting.idle += 1;
            waiting = self.more.wait(waiting).expect("no panic while held");
            waiting.idle -= 1;
        }
    }

    pub(crate) fn close(&self) {
        self.waiting.lock().expect("no panic while held").closed = true;
        self.more.notify_all();
    }
}
