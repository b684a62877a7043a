//! The engine: what a run does next, as a pure function of what it was told.
//!
//! `step` turns inputs into events and actions; `apply` is the only thing that changes state, live and
//! in replay. It reads no clock and waits for nothing: time is an argument, lateness is an input.

mod apply;
mod arrivals;
mod asking;
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
mod searches;
mod stages;
mod step;
mod suitability;
mod views;

pub use check::Violation;
pub use explain::{BatchProgress, Explanation, NodeShortage};
pub use policy::{Mode, Order, Packing, Policy};
pub use rollout::Forecast;

use crate::event::{Action, Because, Event, Outcome, Placement, Stopping, Way};
use crate::ids::{AttemptId, JobId, SearchId, SetId};
use crate::job::OutputFile;
use crate::plan::{Cycle, Graph, Plan};
use crate::resources::Request;
use crate::units::Timestamp;
use crate::workflow::Operand;
use asking::Asking;
use nodes::Nodes;
use ranks::Ranks;
use ready::{ReadyQueues, Wants};
use reserve::Reservation;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use stages::{Iterations, Stages};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tulpar_hpo::Decision;

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
    variant: u32,
    since: Timestamp,
}

impl Live {
    /// Of all its nodes together.
    fn milli_gpus(&self) -> u128 {
        u128::from(self.request.milli_gpus()) * u128::from(self.request.nodes)
    }

    /// Of all its devices together, until then.
    fn gpu_time(&self, now: Timestamp) -> Duration {
        Duration::from_micros((now.since(self.since).as_micros() * self.milli_gpus() / 1000) as u64)
    }
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

/// A set whose condition is asked just before its tasks start.
#[derive(Clone, Debug, Default)]
struct AskedLate {
    /// To be asked, the first first.
    queue: BTreeSet<JobId>,
    /// Asked, and ready to start.
    ready: BTreeSet<JobId>,
}

fn asked_late(plan: &Plan) -> BTreeMap<SetId, AskedLate> {
    let tasks = plan.workflow.tasks.iter().enumerate();
    let late = tasks.filter(|(_, task)| {
        let mut found = false;
        if let Some(when) = &task.when {
            crate::workflow::condition::operands(when, &mut |operand| {
                if let Operand::Field { input, .. } = operand {
                    found |= task.latest().any(|(position, _)| task.inputs[position as usize].name == *input);
                }
            });
        }
        found
    });
    late.map(|(set, _)| (SetId::from(set), AskedLate::default())).collect()
}

#[derive(Clone)]
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
    /// Nodes kept for blocked classes. What a replay lacks of them is found again.
    reservations: BTreeMap<u32, Reservation>,
    ranks: Ranks,
    /// How the run goes on: what the policy says, or what rollouts found better.
    way: Way,
    iterations: Iterations,
    /// In modes with barriers.
    stages: Option<Stages>,
    /// Jobs that have not ended and use GPUs, by what they want of a node for each device.
    gpu_cpus: BTreeMap<u32, u32>,
    gpu_memory: BTreeMap<u64, u32>,
    /// How many workflows share the run, and what each holds: thousandths of cores, bytes, thousandths of devices.
    members: usize,
    held: Vec<(u64, u64, u64)>,
    /// When the run began or was resumed.
    began: Option<Timestamp>,
    /// When something was last recorded.
    last: Timestamp,
    /// What the study said of the number that was recorded last.
    verdict: Decision,
    asking: Asking,
    /// Something is known that may make another order better.
    doubt: bool,
    /// Jobs that rollouts have played through so far.
    rolled_out: u64,
    /// This is a rollout: nothing is really done.
    imagined: bool,
    /// Jobs that entered `Looking` and whose look is still to be asked for.
    due: VecDeque<JobId>,
    /// Of sets whose conditions look at the newest result of another: who is still to be asked.
    asked_late: BTreeMap<SetId, AskedLate>,
    /// Jobs that can no longer run, and because of whom.
    doomed: VecDeque<(JobId, Because)>,
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
        let nodes = Nodes::new(&plan.site);
        let order = policy.order.unwrap_or(match policy.mode {
            Mode::Adaptive => Order::CriticalPath,
            Mode::Sequential | Mode::Staggered => Order::Oldest,
        });
        let way = Way { mode: policy.mode, order, packing: policy.packing };
        let ranks = Ranks::new(&graph, order, nodes.totals());
        let members = plan.workflow.members.len().max(1);
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
            nodes,
            reservations: BTreeMap::new(),
            ranks,
            way,
            iterations: Iterations::default(),
            stages: None,
            gpu_cpus: BTreeMap::new(),
            gpu_memory: BTreeMap::new(),
            members,
            held: vec![(0, 0, 0); members],
            began: None,
            last: Timestamp::default(),
            verdict: Decision::Continue,
            asking: Asking::default(),
            doubt: true,
            rolled_out: 0,
            imagined: false,
            due: VecDeque::new(),
            asked_late: asked_late(&plan),
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

    /// Of one search, where a task set has several.
    pub fn search_counts(&self, search: SearchId) -> Counts {
        self.asking.of(search).counts
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
        let more = !self.due.is_empty() || !self.doomed.is_empty() || !self.graft_candidates.is_empty();
        if more || self.can_ask_late() {
            return Some(Timestamp(0));
        }
        let backoff = self.backoff.first().map(|(until, _)| *until);
        let interrupt = self.interrupt_at().filter(|_| !self.live.is_empty());
        [backoff, interrupt].into_iter().flatten().min()
    }

    /// What the job asks for, after what retries have learned.
    pub fn request(&self, job: JobId) -> &Request {
        self.requests.get(&job).unwrap_or_else(|| &self.plan().task(self.graph.set_of(job)).settings.request)
    }

    /// What an attempt of the job asks for, done in this way.
    fn request_of(&self, job: JobId, variant: u32) -> Request {
        match variant.checked_sub(1) {
            None => self.request(job).clone(),
            Some(index) => self.plan().task(self.graph.set_of(job)).variants[index as usize].request.clone(),
        }
    }

    /// How long a task of the set takes, done in this way, as far as anybody knows.
    fn expected_of(&self, set: SetId, variant: u32) -> Option<Duration> {
        let own = variant.checked_sub(1).and_then(|index| self.plan().task(set).variants.get(index as usize)?.runtime);
        own.or_else(|| self.ranks.expected(set))
    }

    fn expected(&self, job: JobId, variant: u32) -> Option<Duration> {
        self.expected_of(self.graph.set_of(job), variant)
    }

    fn guessed(&self, job: JobId, variant: u32) -> Duration {
        let set = self.graph.set_of(job);
        self.expected_of(set, variant).unwrap_or_else(|| self.ranks.guessed(set))
    }

    /// How long a task of the set is expected to take, from what was declared, seen before, or seen in this run.
    pub fn expected_duration(&self, set: SetId) -> Option<Duration> {
        self.ranks.expected(set)
    }

    /// How the run goes on now.
    pub fn way(&self) -> Way {
        self.way
    }

    fn wants(&self, job: JobId) -> Wants {
        let set = self.graph.set_of(job);
        let bare = |request: &Request| Request { time: None, ..request.clone() };
        let others = self.plan().task(set).variants.iter().map(|variant| bare(&variant.request));
        let ways = std::iter::once(bare(self.request(job))).chain(others).collect();
        Wants { ways, member: self.member_of(set) }
    }

    fn member_of(&self, set: SetId) -> u16 {
        let members = &self.plan().workflow.members;
        members.partition_point(|member| member.first <= set).saturating_sub(1) as u16
    }

    /// How much of the site a workflow holds against what it may: the less, the sooner its jobs start.
    fn fairness(&self, member: u16) -> u64 {
        let (milli_cpus, memory, milli_gpus) = self.held[usize::from(member)];
        let (cpus, bytes, gpus) = self.nodes.totals();
        let part = |holds: u64, has: u64| (u128::from(holds) * 1_000_000 / u128::from(has.max(1))) as u64;
        let share = part(milli_cpus, cpus).max(part(memory, bytes)).max(part(milli_gpus, gpus));
        let weight = self.plan().workflow.members.get(usize::from(member)).map_or(1, |member| member.weight.max(1));
        share / u64::from(weight)
    }

    /// When the run must be over.
    fn walltime_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.policy.walltime.map(|walltime| self.began.unwrap_or(now).plus(walltime))
    }

    /// When what still runs is ended, so that it can save its state before the wall time is over.
    fn interrupt_at(&self) -> Option<Timestamp> {
        let walltime = self.policy.walltime?;
        let grace = (walltime / 20).min(Duration::from_secs(30));
        self.began.map(|began| began.plus(walltime - grace))
    }
}
