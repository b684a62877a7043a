//! Which jobs a barrier keeps from going on: a part of `apply`.

use super::stages::{Parked, Stages};
use super::{JobState, RunState, State};
use crate::event::Way;
use crate::ids::JobId;

impl RunState {
    /// From here on in this mode, this order, packed in this way.
    pub(super) fn go(&mut self, way: Way) {
        let barriers = way.mode != self.way.mode;
        self.way = way;
        if barriers {
            self.restage();
        }
    }

    /// Stages from the states as they are; what has not been started waits for its stage, and nothing else does.
    pub(super) fn restage(&mut self) {
        let parked = self.stages.as_mut().map(Stages::all_parked).unwrap_or_default();
        let states = &self.states;
        let unsettled = |job: JobId| !states[job.index()].word().is_settled();
        self.stages = Stages::new(&self.graph, &self.iterations, self.way.mode, &unsettled);
        for parked in parked {
            self.unpark(parked);
        }
        if let Some(stages) = &self.stages {
            let early =
                |job: &JobId| self.state(*job) == State::Ready && stages.is_ahead(&self.graph, &self.iterations, *job);
            let early: Vec<JobId> = (0..self.states.len()).map(JobId::from).filter(early).collect();
            for job in early {
                self.set(job, JobState::Waiting);
                self.park(Parked { job, looked: true });
            }
        }
    }

    pub(super) fn park(&mut self, parked: Parked) {
        if let Some(stages) = &mut self.stages {
            stages.park(&self.graph, &self.iterations, parked);
        }
    }

    pub(super) fn is_ahead(&self, job: JobId) -> bool {
        self.stages.as_ref().is_some_and(|stages| stages.is_ahead(&self.graph, &self.iterations, job))
    }

    pub(super) fn unpark(&mut self, parked: Parked) {
        if self.state(parked.job) != State::Waiting {
            return;
        }
        if parked.looked {
            self.ready_or_parked(parked.job);
        } else {
            self.become_due(parked.job);
        }
    }

    /// The cache was asked: nothing but its stage can keep the job back.
    pub(super) fn ready_or_parked(&mut self, job: JobId) {
        if self.is_ahead(job) {
            self.set(job, JobState::Waiting);
            self.park(Parked { job, looked: true });
        } else {
            self.set(job, JobState::Ready);
        }
    }
}
