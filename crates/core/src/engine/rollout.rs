//! Rollouts: the rest of the run in virtual time, with this very engine, once for each way to go on. The way that ends
//! first is taken and recorded. Nothing here reads a clock: how much is tried is counted in jobs, so it is repeatable.

use super::virtual_time::{self, Oracle};
use super::{Detail, Engine, Mode, Order, Packing, Policy, State, Step};
use crate::event::{Answer, Cached, Event, Input, Reason, Way};
use crate::ids::{AttemptId, JobId};
use crate::job::{Ending, Report};
use crate::units::Timestamp;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;
use std::time::Duration;

/// Jobs that all rollouts of one decision may play through together: about a quarter of a second.
const MOST_JOBS: usize = 60_000;
/// Jobs that all rollouts of a run may play through, for each job of the run: what they cost stays in proportion.
const MOST_FOR_EACH: u64 = 10;
/// A plan that is mostly done is still copied whole.
const LARGEST_PLAN: usize = 200_000;

const fn way(mode: Mode, order: Order, packing: Packing) -> Way {
    Way { mode, order, packing }
}

/// What is tried, the first being what is done when nothing is better. The modes with barriers are among them, so that
/// `adaptive` does not end later than they would.
const WAYS: [Way; 10] = [
    way(Mode::Adaptive, Order::CriticalPath, Packing::Protect),
    way(Mode::Adaptive, Order::Breadth, Packing::Protect),
    way(Mode::Adaptive, Order::Largest, Packing::Protect),
    way(Mode::Adaptive, Order::Longest, Packing::Protect),
    way(Mode::Adaptive, Order::Oldest, Packing::Protect),
    way(Mode::Adaptive, Order::Depth, Packing::Protect),
    way(Mode::Adaptive, Order::CriticalPath, Packing::Strict),
    way(Mode::Adaptive, Order::CriticalPath, Packing::FirstFit),
    way(Mode::Staggered, Order::Oldest, Packing::Protect),
    way(Mode::Sequential, Order::Oldest, Packing::Protect),
];

/// When a run will be over, if tasks last as expected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    pub end: Timestamp,
    /// No order and no placement can end before this.
    pub bound: Timestamp,
}

impl Engine {
    /// What is still to come, played through as the engine would go on now. `None` when too little is known about
    /// durations, or the rest is too large to be played.
    pub fn forecast(&self, now: Timestamp) -> Option<Forecast> {
        if !self.can_roll_out(1) {
            return None;
        }
        let bound = self.bound(now);
        if self.outcome().is_some() || self.counts().settled() == self.counts().total() {
            return Some(Forecast { end: now, bound: now });
        }
        Some(Forecast { end: self.roll_out(now, self.way(), Timestamp(u64::MAX))?, bound })
    }

    fn can_roll_out(&self, ways: usize) -> bool {
        let left = (self.counts().total() - self.counts().settled()) as usize;
        // How a queue orders its jobs is not known here.
        !self.scheduler.nodes.any_queue()
            && left * ways <= MOST_JOBS
            && self.run.jobs() <= LARGEST_PLAN
            && self.unknown_durations() == 0
    }

    /// Task sets with something left to do of which nobody knows how long they take.
    fn unknown_durations(&self) -> usize {
        let sets = self.run.sets().iter().enumerate();
        sets.filter(|(set, progress)| {
            progress.counts.settled() < progress.counts.total()
                && self.scheduler.ranks.expected(crate::ids::SetId::from(*set)).is_none()
        })
        .count()
    }

    /// Decides anew in which order to go on, when something is known now that was not before.
    pub(super) fn reconsider(&mut self, now: Timestamp, step: &mut Step) {
        let free = self.policy().mode == Mode::Adaptive
            && self.policy().order.is_none()
            && self.policy().packing == Packing::default();
        if !self.scheduler.doubt || !free || self.scheduler.ready.len() == 0 {
            return;
        }
        self.scheduler.doubt = false;
        if !self.can_roll_out(2) || !self.orders_differ() {
            return;
        }
        let bound = self.bound(now);
        let left = (self.counts().total() - self.counts().settled()) as usize;
        let budget = (MOST_FOR_EACH * self.run.jobs() as u64).saturating_sub(self.scheduler.rolled_out);
        let affordable = MOST_JOBS.min(budget as usize) / left.max(1);
        if affordable < 2 {
            return;
        }
        let mut tried: Vec<(Way, Timestamp)> = Vec::new();
        let now_in = self.way();
        let others = WAYS.iter().copied().filter(|way| *way != now_in);
        for way in std::iter::once(now_in).chain(others).take(affordable) {
            let best = tried.iter().map(|(_, end)| *end).min().unwrap_or(Timestamp(u64::MAX));
            self.scheduler.rolled_out += left as u64;
            if let Some(end) = self.roll_out(now, way, best) {
                tried.push((way, end));
            }
            // Nothing can be better than a bound that is met.
            if tried.last().is_some_and(|(_, end)| end.0 <= bound.0 + bound.since(now).as_micros() as u64 / 1000) {
                break;
            }
        }
        let Some((chosen, _)) = tried.iter().copied().min_by_key(|(_, end)| *end) else { return };
        if chosen != self.way() {
            let tried = tried.into_iter().map(|(way, end)| (way, end.since(now).as_micros() as u64)).collect();
            self.record(now, Event::Ordered { chosen, tried }, step);
        }
    }

    /// Jobs of one task set alone are all the same.
    fn orders_differ(&self) -> bool {
        let open = self.run.sets().iter().filter(|progress| progress.counts.settled() < progress.counts.total());
        open.take(2).count() > 1 || self.run.uses_iterations()
    }

    /// No way can end before this: the longest way to the end, and the work left over all of each resource.
    fn bound(&self, now: Timestamp) -> Timestamp {
        let (cpus, _, gpus) = self.scheduler.nodes.totals();
        let (mut longest, mut cpu_time, mut gpu_time) = (Duration::ZERO, 0u128, 0u128);
        for (set, progress) in self.run.sets().iter().enumerate() {
            let open = progress.counts.total() - progress.counts.settled();
            if open == 0 {
                continue;
            }
            let set = crate::ids::SetId::from(set);
            let task = self.plan().task(set);
            let waiting = open
                - [State::Submitted, State::Running, State::Held].map(|s| progress.counts.of(s)).iter().sum::<u32>();
            if waiting > 0 {
                longest = longest.max(self.scheduler.ranks.upward(set));
            }
            if task.variants.is_empty() {
                let request = &task.settings.request;
                let work =
                    self.scheduler.ranks.guessed(set).as_micros() * u128::from(waiting) * u128::from(request.nodes);
                cpu_time += work * u128::from(request.milli_cpus);
                gpu_time += work * u128::from(request.milli_gpus());
            }
        }
        let by = |time: u128, has: u64| Duration::from_micros((time / u128::from(has.max(1))) as u64);
        now.plus(longest.max(by(cpu_time, cpus)).max(by(gpu_time, if gpus == 0 { u64::MAX } else { gpus })))
    }

    /// Plays the rest through in one way; `None` when it would end later than `best`, or never.
    fn roll_out(&self, now: Timestamp, way: Way, best: Timestamp) -> Option<Timestamp> {
        let mut engine = self.copy_for_rollout();
        engine.apply(now, &Event::Ordered { chosen: way, tried: Vec::new() });
        let ends = self.live().map(|(attempt, _, since)| {
            let variant = self.run.live(attempt.job).map_or(0, |live| live.variant);
            Reverse((since.plus(self.guessed(attempt.job, variant)).max(now), attempt))
        });
        let mut oracle = Expected { ends: ends.collect() };
        let stopped = virtual_time::run(&mut engine, &mut oracle, now, self.open_lookups(), best);
        stopped.outcome.map(|_| stopped.at)
    }

    /// It asks no cache, works towards no wall time and, since its order is chosen, plays no rollouts of its own.
    fn copy_for_rollout(&self) -> Self {
        let order = Some(self.way().order);
        let run = self.run.under(Policy { cache: false, walltime: None, order, ..self.policy().clone() });
        Self { run, scheduler: self.scheduler.clone(), agenda: self.agenda.clone(), detail: Detail::Times }
    }

    /// All cache lookups under way miss.
    fn open_lookups(&self) -> Vec<Input> {
        if self.counts().of(State::Looking) == 0 {
            return vec![Input::Clock];
        }
        let jobs = (0..self.run.jobs()).map(JobId::from).filter(|job| self.state(*job) == State::Looking);
        let miss = || Answer { cached: Cached::Miss(Reason::CacheOff), fields: BTreeMap::new() };
        jobs.map(|job| Input::Looked { job, answer: miss() }).collect()
    }
}

/// Each attempt starts at once, takes as long as is expected, and ends well.
struct Expected {
    ends: BinaryHeap<Reverse<(Timestamp, AttemptId)>>,
}

impl Oracle for Expected {
    fn perform(&mut self, now: Timestamp, engine: &Engine, step: Step) -> ControlFlow<()> {
        for event in &step.events {
            if let Event::Submitted { attempt, variant, .. } = event {
                self.ends.push(Reverse((now.plus(engine.guessed(attempt.job, *variant)), *attempt)));
            }
        }
        ControlFlow::Continue(())
    }

    fn next_time(&self) -> Option<Timestamp> {
        self.ends.peek().map(|Reverse((end, _))| *end)
    }

    fn take_until(&mut self, now: Timestamp) -> Vec<Input> {
        let mut inputs = Vec::new();
        while let Some(Reverse((end, attempt))) = self.ends.peek().copied().filter(|Reverse((end, _))| *end <= now) {
            self.ends.pop();
            let report = Report::unstarted(Ending::Exit(0), end);
            inputs.push(Input::Ended { attempt, report: Box::new(report) });
        }
        inputs
    }
}
