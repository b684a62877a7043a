//! The engine: what a run does next, as a pure function of what it was told.
//!
//! `step` turns inputs into events and actions; `apply` is the only thing that changes state, live and
//! in replay. It reads no clock and waits for nothing: time is an argument, lateness is an input.

mod agenda;
mod check;
mod devices;
mod explain;
mod nodes;
mod policy;
mod ranks;
mod ready;
mod reserve;
mod retry;
mod rollout;
mod schedule;
mod scheduler;
mod searches;
mod state;
mod step;
mod suitability;
pub mod virtual_time;

pub use explain::{BatchProgress, Explanation, KeptFor, NodeShortage};
pub use policy::{Mode, Order, Packing, Policy};
pub use rollout::Forecast;
pub use state::{Counts, RunState, STATES, State, Transition, Transitions, Violation};

use crate::event::{Action, Event, Outcome, Placement, Way};
use crate::ids::{AttemptId, JobId, SearchId, SetId};
use crate::job::OutputFile;
use crate::plan::{Cycle, Graph, Plan};
use crate::resources::Request;
use crate::units::Timestamp;
use agenda::Agenda;
use scheduler::Scheduler;
use std::sync::Arc;
use std::time::Duration;

/// What one step brought forth.
#[derive(Debug, Default)]
pub struct Step {
    pub events: Vec<Event>,
    /// To be performed once the events are durable.
    pub actions: Vec<Action>,
}

/// How much an engine works out about each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// All that a site and a search need.
    Full,
    /// When and where it runs. There are no job specifications and no parameters of trials, and nothing is learned; a condition that
    /// reads a result is taken to hold.
    Times,
}

#[derive(Clone)]
pub struct Engine {
    /// The state that the events describe.
    run: RunState,
    /// Derived from the state, for the next decision.
    scheduler: Scheduler,
    agenda: Agenda,
    detail: Detail,
}

impl Engine {
    pub fn new(plan: Arc<Plan>, policy: Policy) -> Result<Self, Cycle> {
        let (run, mut transitions) = RunState::new(&plan, policy)?;
        let (mut scheduler, mut agenda) = (Scheduler::new(&run), Agenda::new(&run));
        scheduler.follow(&run, None, &transitions);
        agenda.follow(&run, None, &mut transitions);
        Ok(Self { run, scheduler, agenda, detail: Detail::Full })
    }

    /// Takes in what was recorded, live and in replay.
    pub fn apply(&mut self, at: Timestamp, event: &Event) -> Transitions {
        let mut transitions = self.run.apply(at, event);
        if self.detail == Detail::Full {
            self.scheduler.learn(&self.run, event, &transitions);
        }
        self.scheduler.follow(&self.run, Some(event), &transitions);
        self.agenda.follow(&self.run, Some(event), &mut transitions);
        transitions
    }

    /// The event that goes on with a run of which everything recorded so far was applied.
    pub fn resume(&self, version: String) -> Event {
        self.run.resume(version)
    }

    pub fn run(&self) -> &RunState {
        &self.run
    }

    pub fn graph(&self) -> &Graph {
        self.run.graph()
    }

    pub fn plan(&self) -> &Arc<Plan> {
        self.run.plan()
    }

    pub fn policy(&self) -> &Policy {
        self.run.policy()
    }

    pub fn state(&self, job: JobId) -> State {
        self.run.state(job)
    }

    pub fn counts(&self) -> Counts {
        self.run.counts()
    }

    pub fn set_counts(&self, set: SetId) -> Counts {
        self.run.set_counts(set)
    }

    /// Of one search, where a task set has several.
    pub fn search_counts(&self, search: SearchId) -> Counts {
        self.run.standing(search).counts
    }

    /// How many jobs of a task set were taken from earlier runs.
    pub fn set_reused(&self, set: SetId) -> u32 {
        self.run.set_reused(set)
    }

    /// The number of the job's last attempt; 0 before the first.
    pub fn attempts(&self, job: JobId) -> u32 {
        self.run.attempts(job)
    }

    pub fn outputs(&self, job: JobId) -> Option<&Arc<[OutputFile]>> {
        self.run.outputs(job)
    }

    /// Attempts in the hands of a site, and since when.
    pub fn live(&self) -> impl Iterator<Item = (AttemptId, &Placement, Timestamp)> {
        self.run.all_live().map(|(job, live)| (AttemptId { job, n: live.n }, &live.placement, live.since))
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.run.outcome()
    }

    /// True for a failure or skip that the workflow tolerates.
    pub fn is_excused(&self, job: JobId) -> bool {
        self.run.is_excused(job)
    }

    /// When the engine wants to be stepped even if nothing is told to it.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if self.run.stopping().is_some() {
            return None;
        }
        if self.agenda.is_open(&self.run) {
            return Some(Timestamp(0));
        }
        let backoff = self.run.next_backoff().map(|(until, _)| until);
        let interrupt = self.interrupt_at().filter(|_| self.run.any_live());
        [backoff, interrupt].into_iter().flatten().min()
    }

    /// What the job asks for, after what retries have learned.
    pub fn request(&self, job: JobId) -> &Request {
        self.run.request(job)
    }

    /// What an attempt of the job asks for, done in this way.
    fn request_of(&self, job: JobId, variant: u32) -> Request {
        match variant.checked_sub(1) {
            None => self.request(job).clone(),
            Some(index) => self.plan().task(self.graph().set_of(job)).variants[index as usize].request.clone(),
        }
    }

    /// How long a task of the set takes, done in this way, as far as anybody knows.
    fn expected_of(&self, set: SetId, variant: u32) -> Option<Duration> {
        let own = variant.checked_sub(1).and_then(|index| self.plan().task(set).variants.get(index as usize)?.runtime);
        own.or_else(|| self.scheduler.ranks.expected(set))
    }

    fn expected(&self, job: JobId, variant: u32) -> Option<Duration> {
        self.expected_of(self.graph().set_of(job), variant)
    }

    fn guessed(&self, job: JobId, variant: u32) -> Duration {
        let set = self.graph().set_of(job);
        self.expected_of(set, variant).unwrap_or_else(|| self.scheduler.ranks.guessed(set))
    }

    /// How long a task of the set is expected to take, from what was declared, seen before, or seen in this run.
    pub fn expected_duration(&self, set: SetId) -> Option<Duration> {
        self.scheduler.ranks.expected(set)
    }

    /// How the run goes on now.
    pub fn way(&self) -> Way {
        self.run.way()
    }

    /// When the run must be over.
    fn walltime_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.policy().walltime.map(|walltime| self.run.began().unwrap_or(now).plus(walltime))
    }

    /// When what still runs is ended, so that it can save its state before the wall time is over.
    fn interrupt_at(&self) -> Option<Timestamp> {
        let walltime = self.policy().walltime?;
        let grace = (walltime / 20).min(Duration::from_secs(30));
        self.run.began().map(|began| began.plus(walltime - grace))
    }
}
