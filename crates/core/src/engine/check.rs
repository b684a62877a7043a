//! What must be true after every step; tests call it, so that a wrong view is found where it goes wrong.

use super::asking::Asking;
use super::{Engine, STATES, State};
use crate::event::Placement;
use crate::ids::{JobId, NodeId, SearchId};
use crate::plan::Target;
use crate::resources::Request;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("{count} jobs are {state:?}, but the count says {counted}")]
    Count { state: State, count: u32, counted: u32 },
    #[error("job {0:?} is {1:?} and {2} a live attempt")]
    Live(JobId, State, &'static str),
    #[error("job {job:?} is {state:?}, but its parent {parent:?} is {parent_state:?}")]
    TooEarly { job: JobId, state: State, parent: JobId, parent_state: State },
    #[error("job {job:?} waits for {counted}, but the graph says {found}")]
    Unmet { job: JobId, counted: u32, found: u32 },
    #[error("node {0:?} has {1} in use and free together, not what it has")]
    Resources(NodeId, &'static str),
    #[error("{0} jobs of a set ended well, {1} have arrived")]
    Arrivals(usize, usize),
    #[error("{0} jobs are ready, {1} are queued")]
    Ready(u32, usize),
    #[error("what is counted of the search {0:?} is not what its trials say")]
    Search(SearchId),
    #[error("the search {0:?} could ask for a trial, and is forgotten")]
    Forgotten(SearchId),
}

impl Engine {
    pub fn check(&self) -> Result<(), Violation> {
        self.check_counts()?;
        self.check_live()?;
        self.check_resources()?;
        self.check_arrivals()?;
        self.check_searches()?;
        self.check_dependencies()
    }

    fn check_searches(&self) -> Result<(), Violation> {
        let mut found = Asking::default();
        for job in (0..self.states.len()).map(JobId::from) {
            let Some(search) = self.graph.search_of(job) else { continue };
            found.entered(search, self.state(job));
            if let Some(live) = self.live.get(&job) {
                found.holds(search, live.milli_gpus(), live.since, true);
            }
        }
        if let Some((search, _)) = found.all().find(|(search, standing)| self.asking.of(**search) != **standing) {
            return Err(Violation::Search(*search));
        }
        let ends = self.stopping.is_some() || self.outcome.is_some();
        let forgotten = |search: &SearchId| !self.asking.is_changed(*search) && self.could_ask(*search);
        match self.graph.searches().find(forgotten).filter(|_| !ends) {
            Some(search) => Err(Violation::Forgotten(search)),
            None => Ok(()),
        }
    }

    /// What two engines disagree about: a run and its replay must agree on everything.
    pub fn difference(&self, other: &Engine) -> Option<&'static str> {
        let live = |engine: &Engine| {
            let all = engine.live.iter();
            all.map(|(job, live)| (*job, live.n, live.placement.clone(), live.since)).collect::<Vec<_>>()
        };
        let free = |engine: &Engine| {
            (0..engine.nodes.len()).map(|node| engine.nodes.available(NodeId::from(node))).collect::<Vec<_>>()
        };
        if self.states != other.states {
            return Some("states");
        }
        if self.graph.difference(&other.graph) {
            return Some("what came when");
        }
        if self.unmet != other.unmet || self.gate_unmet != other.gate_unmet {
            return Some("what is waited for");
        }
        if self.attempts != other.attempts {
            return Some("attempts");
        }
        if self.outputs != other.outputs {
            return Some("outputs");
        }
        if live(self) != live(other) || free(self) != free(other) {
            return Some("what runs where");
        }
        if self.backoff != other.backoff || self.requests != other.requests {
            return Some("retries");
        }
        if self.way != other.way || self.held != other.held || self.gpu_cpus != other.gpu_cpus {
            return Some("how it goes on");
        }
        if self.excused != other.excused || self.hard_failures != other.hard_failures {
            return Some("failures");
        }
        (self.stopping != other.stopping || self.outcome != other.outcome).then_some("the outcome")
    }

    fn check_counts(&self) -> Result<(), Violation> {
        for state in STATES {
            let count = self.states.iter().filter(|other| **other == state).count() as u32;
            let counted = self.counts.of(state);
            let by_set: u32 = self.sets.iter().map(|set| set.counts.of(state)).sum();
            if count != counted || by_set != counted {
                return Err(Violation::Count { state, count, counted });
            }
        }
        let ready = self.counts.of(State::Ready);
        if ready as usize != self.ready.len() {
            return Err(Violation::Ready(ready, self.ready.len()));
        }
        Ok(())
    }

    fn check_live(&self) -> Result<(), Violation> {
        for job in (0..self.states.len()).map(JobId::from) {
            let state = self.state(job);
            match (state.is_live(), self.live.contains_key(&job)) {
                (true, false) => return Err(Violation::Live(job, state, "lacks")),
                (false, true) => return Err(Violation::Live(job, state, "has")),
                _ => {}
            }
        }
        Ok(())
    }

    fn check_resources(&self) -> Result<(), Violation> {
        for node in (0..self.nodes.len()).map(NodeId::from) {
            if self.nodes.is_queue(node) {
                continue;
            }
            let capacity = self.nodes.capacity(node);
            let (mut milli_cpus, mut memory, mut disk, mut gpus) = self.nodes.available(node);
            let shares = self.live.values().flat_map(|live| on_node(&live.placement, &live.request, node));
            for (request, devices) in shares {
                milli_cpus += request.milli_cpus;
                memory += request.memory.0;
                disk += request.disk.0;
                gpus += devices * request.of_each_gpu();
            }
            if milli_cpus != capacity.milli_cpus {
                return Err(Violation::Resources(node, "cores"));
            }
            if memory != capacity.memory.0 || disk != capacity.disk.0 {
                return Err(Violation::Resources(node, "memory or disk"));
            }
            if gpus as usize != 1000 * capacity.gpus.len() {
                return Err(Violation::Resources(node, "GPUs"));
            }
        }
        Ok(())
    }

    /// Whoever ended well has arrived, once.
    fn check_arrivals(&self) -> Result<(), Violation> {
        for taker in self.graph.all_takers() {
            let Some((source, _)) = self.plan().task(taker).arrivals() else { continue };
            let mut arrived = self.graph.arrived(source).to_vec();
            arrived.sort_unstable();
            let jobs = self.graph.jobs_of(source).into_iter().flatten();
            let done: Vec<JobId> = jobs.filter(|job| self.state(*job) == State::Done).collect();
            if arrived != done {
                return Err(Violation::Arrivals(done.len(), arrived.len()));
            }
        }
        Ok(())
    }

    /// Nothing runs before its parents, and the counters say what the graph says.
    fn check_dependencies(&self) -> Result<(), Violation> {
        let mut found = vec![0u32; self.states.len()];
        for job in (0..self.states.len()).map(JobId::from) {
            if self.state(job) != State::Done {
                for child in self.graph.children(job) {
                    if let Target::Job(child) = child {
                        found[child.index()] += 1;
                    }
                }
            }
        }
        for gate in 0..self.gate_unmet.len() as u32 {
            if self.gate_unmet[gate as usize] > 0 || self.gate_spoiled[gate as usize].is_some() {
                for child in self.graph.gate_children(gate) {
                    if let Target::Job(child) = child {
                        found[child.index()] += 1;
                    }
                }
            }
        }
        for taker in self.graph.all_takers() {
            for job in self.graph.jobs_of(taker).into_iter().flatten() {
                let complete = self.graph.batch(job).is_some_and(|batch| self.is_complete(batch));
                found[job.index()] += u32::from(!complete);
            }
        }
        for search in self.graph.searches() {
            for job in self.graph.jobs_of_search(search).skip(self.graph.asked(search) as usize) {
                found[job.index()] += 1;
            }
        }
        for job in (0..self.states.len()).map(JobId::from) {
            let counted = self.unmet[job.index()];
            if counted != found[job.index()] {
                return Err(Violation::Unmet { job, counted, found: found[job.index()] });
            }
            let state = self.state(job);
            if matches!(state, State::Waiting | State::Skipped | State::Cancelled) {
                continue;
            }
            for parent in self.graph.parents(job) {
                let parent_state = self.state(parent);
                let gone = self.is_excused(parent) && parent_state.is_settled();
                if parent_state != State::Done && !gone {
                    return Err(Violation::TooEarly { job, state, parent, parent_state });
                }
            }
        }
        Ok(())
    }
}

fn on_node<'a>(
    placement: &'a Placement,
    request: &'a Request,
    node: NodeId,
) -> impl Iterator<Item = (&'a Request, u32)> {
    placement.nodes.iter().filter(move |share| share.node == node).map(move |share| (request, share.gpus.len() as u32))
}
