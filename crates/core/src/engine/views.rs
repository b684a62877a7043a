//! What the scheduler sees of the run, kept true by `apply`: stages, what workflows hold, what was learned, what devices
//! still need. It decides nothing.

use super::stages::{Parked, Stages};
use super::{Engine, Live, State};
use crate::event::Way;
use crate::ids::{JobId, SetId};

impl Engine {
    /// What a workflow that shares the run holds of the site.
    pub(super) fn hold(&mut self, job: JobId, live: &Live, more: bool) {
        if self.members < 2 {
            return;
        }
        let member = usize::from(self.member_of(self.graph.set_of(job)));
        let nodes = live.placement.nodes.len() as u64;
        let of_each = (u64::from(live.request.milli_cpus), live.request.memory.0, live.request.milli_gpus());
        let held = &mut self.held[member];
        for (held, part) in [(&mut held.0, of_each.0), (&mut held.1, of_each.1), (&mut held.2, of_each.2)] {
            *held = if more { *held + part * nodes } else { *held - part * nodes };
        }
    }

    pub(super) fn learn(&mut self, job: JobId, wall_us: u64) {
        let set = self.graph.set_of(job);
        if !self.imagined && self.ranks.learn(set, wall_us) {
            self.ranks.compute(&self.graph);
            self.ready.rerank(&self.ranks);
            self.doubt = true;
        }
    }

    /// From here on in this mode, this order, packed in this way.
    pub(super) fn go(&mut self, way: Way) {
        let barriers = way.mode != self.way.mode;
        self.way = way;
        self.ranks.set_order(way.order);
        self.ready.rerank(&self.ranks);
        self.nodes.forget_releases();
        if barriers {
            self.restage();
        }
    }

    /// Stages from the states as they are; what has not been started waits for its stage, and nothing else does.
    pub(super) fn restage(&mut self) {
        let parked = self.stages.as_mut().map(Stages::all_parked).unwrap_or_default();
        let states = &self.states;
        let unsettled = |job: JobId| !states[job.index()].is_settled();
        self.stages = Stages::new(&self.graph, &self.iterations, self.way.mode, &unsettled);
        for parked in parked {
            self.unpark(parked);
        }
        if let Some(stages) = &self.stages {
            let early =
                |job: &JobId| self.state(*job) == State::Ready && stages.is_ahead(&self.graph, &self.iterations, *job);
            let early: Vec<JobId> = (0..self.states.len()).map(JobId::from).filter(early).collect();
            for job in early {
                self.set(job, State::Waiting);
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
            self.set(job, State::Waiting);
            self.park(Parked { job, looked: true });
        } else {
            self.set(job, State::Ready);
        }
    }

    pub(super) fn count_gpu_need(&mut self, set: SetId, more: bool) {
        let request = &self.plan().task(set).settings.request;
        if request.gpus == 0 {
            return;
        }
        // Tasks that share a device share its cores too.
        let devices = request.milli_gpus().max(1);
        let cpus = (u64::from(request.milli_cpus) * 1000 / devices) as u32;
        let memory = request.memory.0 * 1000 / devices;
        let change = |count: &mut u32| *count = if more { *count + 1 } else { *count - 1 };
        change(self.gpu_cpus.entry(cpus).or_default());
        change(self.gpu_memory.entry(memory).or_default());
        let kinds = (self.gpu_cpus.len(), self.gpu_memory.len());
        self.gpu_cpus.retain(|_, count| *count > 0);
        self.gpu_memory.retain(|_, count| *count > 0);
        if kinds != (self.gpu_cpus.len(), self.gpu_memory.len()) {
            // Less is kept for devices now: what was kept out for them looks everywhere again.
            self.nodes.forget_releases();
        }
    }
}
