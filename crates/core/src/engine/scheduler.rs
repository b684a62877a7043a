//! What the scheduler knows beside the state: free room, ready jobs in their order, what it keeps for whom. All of it follows
//! the state and can be built again from the events; it decides nothing.

use super::State;
use super::nodes::Nodes;
use super::ranks::Ranks;
use super::ready::ReadyQueues;
use super::reserve::Reservation;
use super::state::{Live, RunState, Transitions};
use crate::event::{Consequence, Event};
use crate::ids::{JobId, SetId};
use std::collections::BTreeMap;

#[derive(Clone)]
pub(super) struct Scheduler {
    pub(super) nodes: Nodes,
    pub(super) ready: ReadyQueues,
    pub(super) ranks: Ranks,
    /// Nodes kept for blocked classes. What a replay lacks of them is found again.
    pub(super) reservations: BTreeMap<u32, Reservation>,
    /// Jobs that have not ended and use GPUs, by what they want of a node for each device.
    pub(super) gpu_cpus: BTreeMap<u32, u32>,
    pub(super) gpu_memory: BTreeMap<u64, u32>,
    /// How many workflows share the run, and what each holds: thousandths of cores, bytes, thousandths of devices.
    pub(super) members: usize,
    pub(super) held: Vec<(u64, u64, u64)>,
    /// Something is known that may make another order better.
    pub(super) doubt: bool,
    /// Jobs that rollouts have played through so far.
    pub(super) rolled_out: u64,
}

impl Scheduler {
    pub(super) fn new(run: &RunState) -> Self {
        let plan = run.plan();
        let nodes = Nodes::new(&plan.site);
        let members = plan.workflow.members.len().max(1);
        Self {
            ranks: Ranks::new(run.graph(), run.way().order, nodes.totals()),
            nodes,
            ready: ReadyQueues::default(),
            reservations: BTreeMap::new(),
            gpu_cpus: BTreeMap::new(),
            gpu_memory: BTreeMap::new(),
            members,
            held: vec![(0, 0, 0); members],
            doubt: true,
            rolled_out: 0,
        }
    }

    /// An event was applied; without one, the state is new.
    pub(super) fn follow(&mut self, run: &RunState, event: Option<&Event>, transitions: &Transitions) {
        match event {
            Some(Event::RunResumed { .. }) => self.nodes.all_pilots_gone(),
            Some(Event::Node { node, present }) => self.nodes.set_present(*node, *present),
            Some(Event::Submitted { attempt, request, placement, .. }) => {
                self.nodes.take(attempt.job, placement, request);
                if let Some(live) = run.live(attempt.job) {
                    self.hold(run, attempt.job, live, true);
                }
            }
            Some(Event::Ended { attempt, .. }) => {
                if let Some(live) = &transitions.ended {
                    self.nodes.release(attempt.job, &live.placement, &live.request);
                    self.hold(run, attempt.job, live, false);
                }
            }
            Some(Event::Ordered { chosen, .. }) => {
                self.ranks.set_order(chosen.order);
                self.ready.rerank(&self.ranks);
                self.nodes.forget_releases();
            }
            _ => {}
        }
        for moved in &transitions.jobs {
            self.follow_job(run, moved.job, moved.from, moved.to);
        }
    }

    fn follow_job(&mut self, run: &RunState, job: JobId, from: Option<State>, to: State) {
        let set = run.graph().set_of(job);
        let was_settled = from.is_none_or(State::is_settled);
        if was_settled != to.is_settled() {
            self.count_gpu_need(run, set, was_settled);
        }
        self.doubt |= from.is_none();
        if from == Some(State::Ready) {
            let class = self.class_of(run, job, set);
            self.ready.remove(&self.ranks, class, set, run.iteration(job), job);
        }
        if to == State::Ready {
            let class = self.class_of(run, job, set);
            self.ready.insert(&self.ranks, class, set, run.iteration(job), job);
        }
        if let Some(most) = run.plan().task(set).settings.at_most
            && (from.is_some_and(State::is_live) || to.is_live())
        {
            let counts = run.set_counts(set);
            let live = counts.of(State::Submitted) + counts.of(State::Running) + counts.of(State::Held);
            self.ready.set_full(&self.ranks, set, live >= most);
        }
    }

    fn class_of(&mut self, run: &RunState, job: JobId, set: SetId) -> u32 {
        let changed = run.has_changed_request(job);
        if !changed && let Some(class) = self.ready.usual_class(set) {
            return class;
        }
        let class = self.ready.class_of(run.wants(job));
        if !changed {
            self.ready.set_usual_class(set, class);
        }
        class
    }

    /// What a workflow that shares the run holds of the site.
    fn hold(&mut self, run: &RunState, job: JobId, live: &Live, more: bool) {
        if self.members < 2 {
            return;
        }
        let member = usize::from(run.member_of(run.graph().set_of(job)));
        let nodes = live.placement.nodes.len() as u64;
        let of_each = (u64::from(live.request.milli_cpus), live.request.memory.0, live.request.milli_gpus());
        let held = &mut self.held[member];
        for (held, part) in [(&mut held.0, of_each.0), (&mut held.1, of_each.1), (&mut held.2, of_each.2)] {
            *held = if more { *held + part * nodes } else { *held - part * nodes };
        }
    }

    /// Takes note of how long an attempt took that ended with this event.
    pub(super) fn learn(&mut self, run: &RunState, event: &Event, transitions: &Transitions) {
        let Event::Ended { attempt, report, then: Consequence::Done } = event else { return };
        if transitions.ended.as_ref().is_none_or(|live| live.variant > 0) {
            return;
        }
        let set = run.graph().set_of(attempt.job);
        if self.ranks.learn(set, report.usage.wall_us) {
            self.ranks.compute(run.graph());
            self.ready.rerank(&self.ranks);
            self.doubt = true;
        }
    }

    fn count_gpu_need(&mut self, run: &RunState, set: SetId, more: bool) {
        let request = &run.plan().task(set).settings.request;
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

    /// How much of the site a workflow holds against what it may: the less, the sooner its jobs start.
    pub(super) fn fairness(&self, run: &RunState, member: u16) -> u64 {
        let (milli_cpus, memory, milli_gpus) = self.held[usize::from(member)];
        let (cpus, bytes, gpus) = self.nodes.totals();
        let part = |holds: u64, has: u64| (u128::from(holds) * 1_000_000 / u128::from(has.max(1))) as u64;
        let share = part(milli_cpus, cpus).max(part(memory, bytes)).max(part(milli_gpus, gpus));
        let weight = run.plan().workflow.members.get(usize::from(member)).map_or(1, |member| member.weight.max(1));
        share / u64::from(weight)
    }
}
