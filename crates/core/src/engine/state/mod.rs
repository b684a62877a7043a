//! The state of a run: what its events say, and nothing else. Only `apply` changes it, so a replay has the same state.
//!
//! It decides nothing and knows no free room: what runs next is for the scheduler to say, which can be built again
//! from this at any time.

mod apply;
mod arrivals;
mod barriers;
mod check;
mod endings;
mod job_state;
mod stages;
mod standing;
mod states;

pub use check::Violation;
pub(super) use job_state::{JobState, Live};
pub(super) use standing::Standing;
pub use states::{Counts, STATES, State};

use super::policy::{Mode, Order, Policy};
use crate::event::{Because, Blame, Outcome, Stopping, Way};
use crate::ids::{AttemptId, JobId, NodeId, SearchId, SetId};
use crate::job::OutputFile;
use crate::plan::{Cycle, Graph, Outputs, Plan};
use crate::resources::Request;
use crate::units::Timestamp;
use crate::workflow::Operand;
use rustc_hash::FxHashMap;
use stages::{Iterations, Stages};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tulpar_hpo::Decision;

/// Why ready jobs that want the same do not start although there is room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldBack {
    wants: Wants,
    pub(super) by: JobId,
    pub(super) until: Option<Timestamp>,
}

/// What jobs of one class have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wants {
    /// What it asks for, then what it would ask for done in another way. Wall times do not matter for packing.
    pub(super) ways: Arc<[Request]>,
    /// Which of several workflows that share the run it belongs to.
    pub(super) member: u16,
}

/// What earlier attempts of a job have used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tries {
    /// Endings that count against `retry: times`.
    pub(super) counted: u32,
    pub(super) evictions: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SetProgress {
    pub(super) counts: Counts,
    /// Failures so far, excused or not.
    failed: u32,
    reused: u32,
}

/// A job came into a state; a new job came from none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    pub job: JobId,
    pub from: Option<State>,
    pub to: State,
}

/// What an event has changed, for those who keep views of the state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transitions {
    /// In their order.
    pub jobs: Vec<Transition>,
    /// The attempt that ended with it.
    pub(super) ended: Option<Box<Live>>,
    /// Jobs that can no longer run, and because of whom.
    pub(super) doomed: Vec<(JobId, Because)>,
    /// Dynamic task sets whose sources may have ended.
    pub(super) grafts: BTreeSet<SetId>,
    /// Searches that may ask for a trial now.
    pub(super) searches: BTreeSet<SearchId>,
    /// What the study says of the number that a trial reported.
    pub(super) verdict: Option<Decision>,
}

#[derive(Clone, PartialEq)]
pub struct RunState {
    graph: Graph,
    policy: Policy,
    // By job.
    states: Vec<JobState>,
    unmet: Vec<u32>,
    attempts: Vec<u32>,
    // By gate: members that have not ended, members that ended well, the member that spoiled it.
    gate_unmet: Vec<u32>,
    gate_good: Vec<u32>,
    gate_spoiled: Vec<Option<JobId>>,
    // Indexes over the states, which `change_state` keeps.
    live: BTreeSet<JobId>,
    backoff: BTreeSet<(Timestamp, JobId)>,
    // Of the few jobs that were tried before.
    tries: FxHashMap<JobId, Tries>,
    /// Requests that a retry has changed.
    requests: FxHashMap<JobId, Request>,
    // By task set.
    sets: Vec<SetProgress>,
    forced: Vec<bool>,
    dynamic_consumers: FxHashMap<SetId, Vec<SetId>>,
    /// Of sets whose condition is asked just before the start: what was asked, and is ready to start.
    ready_late: BTreeMap<SetId, BTreeSet<JobId>>,
    counts: Counts,
    standings: BTreeMap<SearchId, Standing>,
    held_back: Vec<HeldBack>,
    /// Of nodes that come and go, those that are there.
    present: BTreeSet<NodeId>,
    /// How the run goes on: what the policy says, or what rollouts found better.
    way: Way,
    iterations: Iterations,
    /// In modes with barriers.
    stages: Option<Stages>,
    /// When the run began or was resumed.
    began: Option<Timestamp>,
    /// When something was last recorded.
    last: Timestamp,
    /// Failures that nothing excuses.
    hard_failures: u32,
    cancellations: u32,
    stopping: Option<Stopping>,
    outcome: Option<Outcome>,
    /// Of the event that is being applied; empty between events.
    transitions: Transitions,
}

impl RunState {
    /// The state before the first event, and the jobs that are in it.
    pub fn new(plan: &Arc<Plan>, policy: Policy) -> Result<(Self, Transitions), Cycle> {
        let graph = Graph::new(plan.clone())?;
        let order = policy.order.unwrap_or(match policy.mode {
            Mode::Adaptive => Order::CriticalPath,
            Mode::Sequential | Mode::Staggered => Order::Oldest,
        });
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
        let mut state = Self {
            way: Way { mode: policy.mode, order, packing: policy.packing },
            graph,
            policy,
            states: Vec::new(),
            unmet: Vec::new(),
            attempts: Vec::new(),
            gate_unmet: Vec::new(),
            gate_good: Vec::new(),
            gate_spoiled: Vec::new(),
            live: BTreeSet::new(),
            backoff: BTreeSet::new(),
            tries: FxHashMap::default(),
            requests: FxHashMap::default(),
            sets: vec![SetProgress::default(); sets],
            forced,
            dynamic_consumers,
            ready_late: asked_late(plan).map(|set| (set, BTreeSet::new())).collect(),
            counts: Counts::default(),
            standings: BTreeMap::new(),
            held_back: Vec::new(),
            present: BTreeSet::new(),
            iterations: Iterations::default(),
            stages: None,
            began: None,
            last: Timestamp::default(),
            hard_failures: 0,
            cancellations: 0,
            stopping: None,
            outcome: None,
            transitions: Transitions::default(),
        };
        state.adopt_new_jobs(Vec::new());
        state.transitions.grafts.extend(state.graph.pending().iter().copied());
        let transitions = state.take_transitions();
        Ok((state, transitions))
    }

    /// A copy that goes on under another policy: what a rollout begins with.
    pub(super) fn under(&self, policy: Policy) -> Self {
        Self { policy, ..self.clone() }
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
        self.states[job.index()].word()
    }

    pub(super) fn job(&self, job: JobId) -> &JobState {
        &self.states[job.index()]
    }

    /// How many jobs there are by now.
    pub fn jobs(&self) -> usize {
        self.states.len()
    }

    pub(super) fn unmet(&self, job: JobId) -> u32 {
        self.unmet[job.index()]
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn sets(&self) -> &[SetProgress] {
        &self.sets
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

    /// The outputs of a job that ended well.
    pub fn outputs(&self, job: JobId) -> Option<&Arc<[OutputFile]>> {
        match self.job(job) {
            JobState::Done { outputs } => Some(outputs),
            _ => None,
        }
    }

    /// Why a job was skipped.
    pub fn skip_reason(&self, job: JobId) -> Option<&Because> {
        match self.job(job) {
            JobState::Skipped { because, .. } => Some(because),
            _ => None,
        }
    }

    /// Whose fault the failure of a job was.
    pub fn blame(&self, job: JobId) -> Option<Blame> {
        match self.job(job) {
            JobState::Failed { blame, .. } => Some(*blame),
            _ => None,
        }
    }

    /// The attempt of a job that is in the hands of a site.
    pub(super) fn live(&self, job: JobId) -> Option<&Live> {
        self.job(job).live()
    }

    /// All of them, in the order of their jobs.
    pub(super) fn all_live(&self) -> impl Iterator<Item = (JobId, &Live)> {
        self.live.iter().filter_map(|job| Some((*job, self.live(*job)?)))
    }

    pub(super) fn any_live(&self) -> bool {
        !self.live.is_empty()
    }

    /// A report about any other attempt is stale: late or repeated, and of no consequence.
    pub(super) fn holds_attempt(&self, attempt: AttemptId) -> bool {
        self.live(attempt.job).is_some_and(|live| live.n == attempt.n)
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    pub(super) fn stopping(&self) -> Option<Stopping> {
        self.stopping
    }

    pub(super) fn hard_failures(&self) -> u32 {
        self.hard_failures
    }

    pub(super) fn cancellations(&self) -> u32 {
        self.cancellations
    }

    /// True for a failure or skip that the workflow tolerates.
    pub fn is_excused(&self, job: JobId) -> bool {
        self.job(job).is_tolerated()
    }

    pub(super) fn is_forced(&self, set: SetId) -> bool {
        self.forced[set.index()]
    }

    /// The job whose pause before another attempt ends first.
    pub(super) fn next_backoff(&self) -> Option<(Timestamp, JobId)> {
        self.backoff.first().copied()
    }

    /// What the job asks for, after what retries have learned.
    pub fn request(&self, job: JobId) -> &Request {
        self.requests.get(&job).unwrap_or_else(|| &self.plan().task(self.graph.set_of(job)).settings.request)
    }

    pub(super) fn has_changed_request(&self, job: JobId) -> bool {
        self.requests.contains_key(&job)
    }

    pub(super) fn wants(&self, job: JobId) -> Wants {
        let set = self.graph.set_of(job);
        let bare = |request: &Request| Request { time: None, ..request.clone() };
        let others = self.plan().task(set).variants.iter().map(|variant| bare(&variant.request));
        let ways = std::iter::once(bare(self.request(job))).chain(others).collect();
        Wants { ways, member: self.member_of(set) }
    }

    /// Which of several workflows that share the run a task set belongs to.
    pub(super) fn member_of(&self, set: SetId) -> u16 {
        let members = &self.plan().workflow.members;
        members.partition_point(|member| member.first <= set).saturating_sub(1) as u16
    }

    /// For whom the room is kept that jobs which want this do not get, as far as that was recorded.
    pub(super) fn held_back(&self, wants: &Wants) -> Option<&HeldBack> {
        self.held_back.iter().find(|held| held.wants == *wants)
    }

    /// Task sets whose condition looks at the newest result of another: it is asked just before the start.
    pub(super) fn late_sets(&self) -> impl Iterator<Item = SetId> {
        self.ready_late.keys().copied()
    }

    pub(super) fn asks_latest(&self, set: SetId) -> bool {
        self.ready_late.contains_key(&set)
    }

    /// How the run goes on now.
    pub fn way(&self) -> Way {
        self.way
    }

    pub(super) fn iteration(&self, job: JobId) -> u32 {
        self.iterations.of_job(&self.graph, job)
    }

    pub(super) fn uses_iterations(&self) -> bool {
        self.iterations.are_used()
    }

    /// The stage that all wait for: its iteration, its rank, and how many jobs of it have not ended.
    pub(super) fn barrier(&self) -> Option<(Option<u32>, u32, u32)> {
        self.stages.as_ref().and_then(Stages::now)
    }

    pub(super) fn began(&self) -> Option<Timestamp> {
        self.began
    }
}

impl Outputs for RunState {
    fn left_by(&self, job: JobId) -> Option<&Arc<[OutputFile]>> {
        self.outputs(job)
    }
}

fn asked_late(plan: &Plan) -> impl Iterator<Item = SetId> {
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
    late.map(|(set, _)| SetId::from(set))
}
