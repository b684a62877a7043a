//! The engine: what a run does next, as a pure function of what it was told.
//!
//! `step` turns inputs into events and actions; `apply` is the only thing that changes state, live and
//! in replay. It reads no clock and waits for nothing: time is an argument, lateness is an input.

mod apply;
mod check;
mod explain;
mod nodes;
mod policy;
mod ready;
mod retry;
mod schedule;
mod step;

pub use check::Violation;
pub use explain::{Explanation, NodeShortage};
pub use policy::{Mode, Order, Packing, Policy};

use crate::event::{Action, Event, Outcome, Placement, Stopping};
use crate::ids::{AttemptId, JobId, SetId};
use crate::job::OutputFile;
use crate::plan::{Cycle, Graph, Plan};
use crate::resources::Request;
use crate::units::Timestamp;
use nodes::Nodes;
use ready::ReadyQueues;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Where a job stands. The normal way is from top to bottom until `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Something above it has not ended.
    Waiting,
    /// Everything above it ended well; the cache is asked, or its condition.
    Looking,
    /// It will run as soon as its resources are free.
    Ready,
    /// Handed to the site.
    Submitted,
    Running,
    /// Stopped by the site until a person releases it.
    Held,
    /// Pausing before another attempt.
    Backoff,
    /// Its outputs are committed.
    Done,
    /// Tried, and will not be tried again.
    Failed,
    /// Never tried, because something above failed or its condition was not true.
    Skipped,
    Cancelled,
}

pub const STATES: [State; 11] = [
    State::Waiting,
    State::Looking,
    State::Ready,
    State::Submitted,
    State::Running,
    State::Held,
    State::Backoff,
    State::Done,
    State::Failed,
    State::Skipped,
    State::Cancelled,
];

impl State {
    /// True when nothing more happens to the job in this run.
    pub fn is_settled(self) -> bool {
        matches!(self, State::Done | State::Failed | State::Skipped | State::Cancelled)
    }

    /// True while an attempt is in the hands of a site.
    pub fn is_live(self) -> bool {
        matches!(self, State::Submitted | State::Running | State::Held)
    }
}

/// How many jobs are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u32; STATES.len()]);

impl Counts {
    pub fn of(&self, state: State) -> u32 {
        self.0[state as usize]
    }

    pub fn total(&self) -> u32 {
        self.0.iter().sum()
    }

    pub fn settled(&self) -> u32 {
        STATES.iter().filter(|state| state.is_settled()).map(|state| self.of(*state)).sum()
    }
}

/// What one step brought forth.
#[derive(Debug, Default)]
pub struct Step {
    pub events: Vec<Event>,
    /// To be performed once the events are durable.
    pub actions: Vec<Action>,
}

/// An attempt in the hands of a site.
#[derive(Clone, Debug)]
struct Live {
    n: u32,
    request: Request,
    placement: Placement,
    since: Timestamp,
}

/// What earlier attempts of a job have used up.
#[derive(Clone, Copy, Debug, Default)]
struct Tries {
    /// Endings that count against `retry: times`.
    counted: u32,
    evictions: u32,
}

#[derive(Clone, Debug, Default)]
struct SetProgress {
    counts: Counts,
    /// Failures so far, excused or not.
    failed: u32,
    reused: u32,
}

pub struct Engine {
    graph: Graph,
    policy: Policy,
    // By job.
    states: Vec<State>,
    unmet: Vec<u32>,
    attempts: Vec<u32>,
    outputs: Vec<Option<Arc<[OutputFile]>>>,
    /// A failure or skip that the workflow tolerates: what gathers goes on without it.
    excused: Vec<bool>,
    // By gate: members that have not ended, members that ended well, the member that spoiled it.
    gate_unmet: Vec<u32>,
    gate_good: Vec<u32>,
    gate_spoiled: Vec<Option<JobId>>,
    // Only for the few that need it.
    live: BTreeMap<JobId, Live>,
    tries: FxHashMap<JobId, Tries>,
    /// Requests that a retry has changed.
    requests: FxHashMap<JobId, Request>,
    backoff: BTreeSet<(Timestamp, JobId)>,
    backoff_until: FxHashMap<JobId, Timestamp>,
    holds: FxHashMap<JobId, String>,
    // By task set.
    sets: Vec<SetProgress>,
    // Views over the states, kept true by `set`.
    counts: Counts,
    ready: ReadyQueues,
    nodes: Nodes,
    /// Jobs that entered `Looking` and whose look is still to be asked for.
    due: VecDeque<JobId>,
    /// Jobs that can no longer run, and because of whom.
    doomed: VecDeque<(JobId, JobId)>,
    /// Dynamic task sets whose sources may have ended.
    graft_candidates: BTreeSet<SetId>,
    dynamic_consumers: FxHashMap<SetId, Vec<SetId>>,
    forced: Vec<bool>,
    /// Failures that nothing excuses.
    hard_failures: u32,
    cancellations: u32,
    stopping: Option<Stopping>,
    outcome: Option<Outcome>,
}

impl Engine {
    pub fn new(plan: Arc<Plan>, policy: Policy) -> Result<Self, Cycle> {
        let graph = Graph::new(plan.clone())?;
        let sets = plan.workflow.tasks.len();
        let mut forced = vec![false; sets];
        for set in &plan.forced {
            forced[set.index()] = true;
        }
        let mut dynamic_consumers: FxHashMap<SetId, Vec<SetId>> = FxHashMap::default();
        for set in graph.pending().to_vec() {
            for source in plan.dynamic_sources(set) {
                dynamic_consumers.entry(source).or_default().push(set);
            }
        }
        let mut engine = Self {
            graph,
            policy,
            states: Vec::new(),
            unmet: Vec::new(),
            attempts: Vec::new(),
            outputs: Vec::new(),
            excused: Vec::new(),
            gate_unmet: Vec::new(),
            gate_good: Vec::new(),
            gate_spoiled: Vec::new(),
            live: BTreeMap::new(),
            tries: FxHashMap::default(),
            requests: FxHashMap::default(),
            backoff: BTreeSet::new(),
            backoff_until: FxHashMap::default(),
            holds: FxHashMap::default(),
            sets: vec![SetProgress::default(); sets],
            counts: Counts::default(),
            ready: ReadyQueues::default(),
            nodes: Nodes::new(&plan.site),
            due: VecDeque::new(),
            doomed: VecDeque::new(),
            graft_candidates: BTreeSet::new(),
            dynamic_consumers,
            forced,
            hard_failures: 0,
            cancellations: 0,
            stopping: None,
            outcome: None,
        };
        engine.adopt_new_jobs(Vec::new());
        engine.graft_candidates.extend(engine.graph.pending().iter().copied());
        Ok(engine)
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub fn plan(&self) -> &Arc<Plan> {
        self.graph.plan()
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub fn state(&self, job: JobId) -> State {
        self.states[job.index()]
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    pub fn set_counts(&self, set: SetId) -> Counts {
        self.sets[set.index()].counts
    }

    /// How many jobs of a task set were taken from earlier runs.
    pub fn set_reused(&self, set: SetId) -> u32 {
        self.sets[set.index()].reused
    }

    /// The number of the job's last attempt; 0 before the first.
    pub fn attempts(&self, job: JobId) -> u32 {
        self.attempts[job.index()]
    }

    pub fn outputs(&self, job: JobId) -> Option<&Arc<[OutputFile]>> {
        self.outputs[job.index()].as_ref()
    }

    /// Attempts in the hands of a site, and since when.
    pub fn live(&self) -> impl Iterator<Item = (AttemptId, &Placement, Timestamp)> {
        self.live.iter().map(|(job, live)| (AttemptId { job: *job, n: live.n }, &live.placement, live.since))
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// True for a failure or skip that the workflow tolerates.
    pub fn is_excused(&self, job: JobId) -> bool {
        self.excused[job.index()]
    }

    /// When the engine wants to be stepped even if nothing is told to it.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if self.stopping.is_some() {
            return None;
        }
        if !self.due.is_empty() {
            return Some(Timestamp(0));
        }
        self.backoff.first().map(|(until, _)| *until)
    }

    /// What the job asks for, after what retries have learned.
    pub fn request(&self, job: JobId) -> &Request {
        self.requests.get(&job).unwrap_or_else(|| &self.plan().task(self.graph.set_of(job)).settings.request)
    }
}
