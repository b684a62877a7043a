//! Results that are taken as they come: when a batch of them is due, and when it never will be.
//!
//! Which results a batch has follows from the order of recorded ends, and is kept by the graph. Here is only who is
//! told, and what becomes of the last batches when some tasks of the source end otherwise.

use super::{Counts, JobState, RunState, State};
use crate::ids::{JobId, SetId};
use crate::plan::Batch;

/// How the source of batches ended.
enum Source {
    Open,
    /// Nothing more will come, and this one is missing without excuse.
    Spoiled(JobId),
    /// Nothing more will come; one that is missing, if any is.
    Closed(Option<JobId>),
}

impl RunState {
    /// A job has ended, well or not: batches of its results may be complete, or never will be.
    pub(super) fn arrived(&mut self, job: JobId, set: SetId) {
        let good = self.state(job) == State::Done;
        if good && self.graph.arrive(job) {
            self.ask_again(set);
        }
        let takers = self.graph.takers(set).to_vec();
        let arrived = self.graph.arrived(set).len() as u32;
        for taker in takers.iter().copied().filter(|_| good) {
            let by = self.batch_size(taker);
            if arrived.is_multiple_of(by) {
                self.release(taker, arrived / by - 1);
            }
        }
        if !takers.is_empty() && self.counts_of(set).settled() == self.counts_of(set).total() {
            takers.into_iter().for_each(|taker| self.close(taker, set));
        }
    }

    /// What came before the taker was there, or before its counters were set back.
    pub(super) fn take_arrivals(&mut self, taker: SetId) {
        let Some((source, by)) = self.plan().task(taker).arrivals() else { return };
        if self.graph.count_of(taker).is_none() {
            return;
        }
        for number in 0..self.graph.arrived(source).len() as u32 / by {
            self.release(taker, number);
        }
        self.close(taker, source);
    }

    /// True when nothing is missing from the batch that a job is for: it is full, or all that is left.
    pub(in crate::engine) fn is_complete(&self, batch: Batch) -> bool {
        batch.is_full() || batch.arrived > 0 && matches!(self.source(batch.source), Source::Closed(_))
    }

    pub(in crate::engine) fn counts_of(&self, set: SetId) -> Counts {
        self.sets[set.index()].counts
    }

    fn batch_size(&self, taker: SetId) -> u32 {
        self.plan().task(taker).arrivals().map_or(1, |(_, by)| by.max(1))
    }

    fn release(&mut self, taker: SetId, number: u32) {
        for job in self.graph.jobs_of_batch(taker, number) {
            self.one_less(job);
        }
    }

    fn source(&self, set: SetId) -> Source {
        let counts = self.counts_of(set);
        if counts.settled() < counts.total() || self.graph.count_of(set).is_none() {
            return Source::Open;
        }
        if counts.of(State::Done) == counts.total() {
            return Source::Closed(None);
        }
        let missing = |job: &JobId| self.state(*job) != State::Done;
        let mut jobs = self.graph.jobs_of(set).into_iter().flatten().filter(missing);
        let first = jobs.clone().next();
        match jobs.find(|job| !self.is_excused(*job)) {
            Some(bad) => Source::Spoiled(bad),
            None => Source::Closed(first),
        }
    }

    /// When nothing more comes, the last batch has what is left, and those behind it have nothing to do. When something
    /// is missing that should be there, what is not full waits for another run.
    fn close(&mut self, taker: SetId, source: SetId) {
        let (by, arrived) = (self.batch_size(taker), self.graph.arrived(source).len() as u32);
        let open = arrived / by..self.graph.batches(taker);
        let (rest, cause) = match self.source(source) {
            Source::Open => return,
            Source::Spoiled(bad) => (None, Some(bad)),
            Source::Closed(missing) => ((!arrived.is_multiple_of(by)).then_some(arrived / by), missing),
        };
        for number in open {
            if rest == Some(number) {
                self.release(taker, number);
            } else if let Some(cause) = cause {
                for job in self.graph.jobs_of_batch(taker, number) {
                    self.doom(job, cause);
                }
            }
        }
    }

    /// A newer result is there: conditions that look at it are asked again of what has not started.
    fn ask_again(&mut self, source: SetId) {
        let sets: Vec<SetId> = self.ready_late.keys().copied().collect();
        for set in sets {
            if self.plan().task(set).latest().any(|(_, other)| other == source) {
                for job in self.ready_late[&set].clone() {
                    self.set(job, JobState::Lookup);
                }
            }
        }
    }
}
