//! What must be true of the state after every event, and what two states disagree about.

use super::{JobState, RunState, STATES, Standing, State};
use crate::ids::{JobId, NodeId, SearchId};
use crate::plan::Target;
use std::collections::BTreeMap;
use tulpar_hpo::State as Trial;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("{count} jobs are {state:?}, but the count says {counted}")]
    Count { state: State, count: u32, counted: u32 },
    #[error("job {0:?} is {1:?}, and the index of {2} says otherwise")]
    Index(JobId, State, &'static str),
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
    #[error("job {0:?} is {1:?}, but its trial is {2}")]
    Trial(JobId, State, &'static str),
    #[error("the search {0:?} could ask for a trial, and is forgotten")]
    Forgotten(SearchId),
}

impl RunState {
    pub(in crate::engine) fn check(&self) -> Result<(), Violation> {
        self.check_counts()?;
        self.check_indexes()?;
        self.check_arrivals()?;
        self.check_searches()?;
        self.check_dependencies()
    }

    fn check_counts(&self) -> Result<(), Violation> {
        for state in STATES {
            let count = self.states.iter().filter(|other| other.word() == state).count() as u32;
            let counted = self.counts.of(state);
            let by_set: u32 = self.sets.iter().map(|set| set.counts.of(state)).sum();
            if count != counted || by_set != counted {
                return Err(Violation::Count { state, count, counted });
            }
        }
        Ok(())
    }

    fn check_searches(&self) -> Result<(), Violation> {
        let mut found: BTreeMap<SearchId, Standing> = BTreeMap::new();
        for job in (0..self.states.len()).map(JobId::from) {
            let Some(search) = self.graph.search_of(job) else { continue };
            let state = self.state(job);
            let standing = found.entry(search).or_default();
            standing.counts.0[state as usize] += 1;
            if let Some(live) = self.live(job) {
                standing.holds(live.milli_gpus(), live.since, true);
            }
            if let Some(trial) = self.graph.trial(job).map(|trial| trial.state) {
                let ended = matches!(state, State::Done | State::Failed | State::Cancelled);
                if (state == State::Paused) != (trial == Trial::Paused) || ended && !trial.is_ended() {
                    return Err(Violation::Trial(job, state, trial.word()));
                }
            }
        }
        match found.iter().find(|(search, standing)| self.standing(**search) != **standing) {
            Some((search, _)) => Err(Violation::Search(*search)),
            None => Ok(()),
        }
    }

    /// The first part in which two states are not equal, to be named by a test.
    pub(in crate::engine) fn difference(&self, other: &Self) -> Option<&'static str> {
        let parts = [
            ("states", self.states == other.states),
            ("dependencies", self.unmet == other.unmet && self.gate_unmet == other.gate_unmet),
            ("retries", self.requests == other.requests && self.tries == other.tries),
            ("reservations", self.held_back == other.held_back),
            ("the graph, arrivals or studies", self.graph == other.graph),
            ("another field", self == other),
        ];
        parts.into_iter().find(|(_, equal)| !equal).map(|(name, _)| name)
    }

    fn check_indexes(&self) -> Result<(), Violation> {
        let mut backoff = 0;
        for job in (0..self.states.len()).map(JobId::from) {
            let state = self.state(job);
            if self.live(job).is_some() != self.live.contains(&job) {
                return Err(Violation::Index(job, state, "live attempts"));
            }
            if let JobState::Backoff { until } = self.job(job) {
                backoff += 1;
                if !self.backoff.contains(&(*until, job)) {
                    return Err(Violation::Index(job, state, "back-offs"));
                }
            }
        }
        match self.backoff.first().filter(|_| self.backoff.len() != backoff) {
            Some((_, job)) => Err(Violation::Index(*job, self.state(*job), "back-offs")),
            None => Ok(()),
        }
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
