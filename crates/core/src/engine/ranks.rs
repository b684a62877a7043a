//! How urgent the jobs of each task set are: how long its tasks take, as declared, as earlier runs say, or as this run
//! has learned; and from that the longest way to the end of the workflow.

use super::policy::Order;
use crate::ids::{JobId, SetId};
use crate::plan::{Graph, Plan};
use crate::resources::Request;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::time::Duration;

/// Smaller is more urgent: larger user priority, then what the order says, then the older job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Urgency {
    pub(super) priority: Reverse<i32>,
    first: u64,
    second: u64,
    pub(super) job: JobId,
}

/// What is known about the duration of tasks of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Learned {
    tasks: u32,
    /// Microseconds, later tasks counting more.
    mean: f64,
    /// The mean when ranks were last computed.
    ranked: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Ranks {
    order: Order,
    /// By task set, in microseconds: what was declared or seen in earlier runs.
    declared: Vec<Option<u64>>,
    kind_of: Vec<u32>,
    learned: Vec<Learned>,
    /// Its tasks are many: what was measured of some holds for the others.
    many: Vec<bool>,
    /// In use now, by task set.
    duration: Vec<u64>,
    known: Vec<bool>,
    upward: Vec<u64>,
    depth: Vec<u32>,
    size: Vec<u64>,
    priority: Vec<i32>,
    successes: u64,
    rank_again_at: u64,
    stale: bool,
}

/// What a task is taken to last when nothing is known about any.
const UNKNOWN: u64 = 1_000_000;
/// Later measurements weigh at least this much.
const LEAST_WEIGHT: f64 = 0.1;

impl Ranks {
    pub(super) fn new(graph: &Graph, order: Order, totals: (u64, u64, u64)) -> Self {
        let plan = graph.plan();
        let count = plan.workflow.tasks.len();
        let mut kinds: FxHashMap<&str, u32> = FxHashMap::default();
        let mut kind_of = Vec::with_capacity(count);
        for (number, task) in plan.workflow.tasks.iter().enumerate() {
            kind_of.push(match &task.settings.hints.program {
                Some(program) => *kinds.entry(program).or_insert(number as u32),
                None => number as u32,
            });
        }
        let mut depth = vec![0u32; count];
        for set in graph.order().iter() {
            let above = graph.producers().of(*set).iter().map(|producer| depth[producer.index()] + 1);
            depth[set.index()] = above.max().unwrap_or(0);
        }
        let tasks = &plan.workflow.tasks;
        let mut ranks = Self {
            order,
            declared: (0..count).map(|set| declared(plan, SetId::from(set))).collect(),
            kind_of,
            learned: vec![Learned::default(); count],
            many: tasks.iter().map(|task| !task.scatter.is_empty()).collect(),
            duration: vec![UNKNOWN; count],
            known: vec![false; count],
            upward: vec![0; count],
            depth,
            size: tasks.iter().map(|task| dominant_share(&task.settings.request, totals)).collect(),
            priority: tasks.iter().map(|task| task.settings.priority).collect(),
            successes: 0,
            rank_again_at: 1,
            stale: false,
        };
        ranks.compute(graph);
        ranks
    }

    pub(super) fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    pub(super) fn urgency(&self, set: SetId, iteration: u32, job: JobId) -> Urgency {
        let index = set.index();
        let iteration = u64::from(iteration);
        let (first, second) = match self.order {
            Order::CriticalPath => (u64::MAX - self.upward[index], iteration),
            Order::Oldest => (iteration, 0),
            Order::Breadth => (u64::from(self.depth[index]), 0),
            Order::Depth => (u64::MAX - u64::from(self.depth[index]), iteration),
            Order::Longest => (u64::MAX - self.duration[index], iteration),
            Order::Largest => (u64::MAX - self.size[index], u64::MAX - self.upward[index]),
        };
        Urgency { priority: Reverse(self.priority[index]), first, second, job }
    }

    /// How long a task of this set takes, as far as anybody knows.
    pub(super) fn expected(&self, set: SetId) -> Option<Duration> {
        self.known[set.index()].then(|| Duration::from_micros(self.duration[set.index()]))
    }

    /// The same, or a guess.
    pub(super) fn guessed(&self, set: SetId) -> Duration {
        Duration::from_micros(self.duration[set.index()])
    }

    /// The longest way from the start of such a task to the end of the workflow.
    pub(super) fn upward(&self, set: SetId) -> Duration {
        Duration::from_micros(self.upward[set.index()])
    }

    /// Takes note of what a task took; true when the ranks ought to be computed again.
    pub(super) fn learn(&mut self, set: SetId, wall_us: u64) -> bool {
        self.successes += 1;
        let matters = self.many[set.index()] || self.declared[set.index()].is_none();
        if matters {
            let learned = &mut self.learned[self.kind_of[set.index()] as usize];
            learned.tasks += 1;
            let weight = (1.0 / f64::from(learned.tasks)).max(LEAST_WEIGHT);
            learned.mean += (wall_us as f64 - learned.mean) * weight;
            let known = if learned.ranked > 0.0 { learned.ranked } else { self.duration[set.index()] as f64 };
            self.stale |= (learned.mean - known).abs() > 0.1 * known;
        }
        self.stale && self.successes >= self.rank_again_at
    }

    /// Ranks from what is known by now. Done again after every doubling of what has ended, so it costs log n times.
    pub(super) fn compute(&mut self, graph: &Graph) {
        self.stale = false;
        self.rank_again_at = (self.successes * 2).max(1);
        let count = self.duration.len();
        let (mut sum, mut number) = (0u128, 0u64);
        for set in 0..count {
            let learned = self.learned[self.kind_of[set] as usize];
            let measured = (learned.tasks > 0 && (self.many[set] || self.declared[set].is_none()))
                .then_some(learned.mean.max(1.0) as u64);
            let best = measured.or(self.declared[set]);
            self.known[set] = best.is_some();
            if let Some(best) = best {
                self.duration[set] = best;
                sum += u128::from(best);
                number += 1;
            }
        }
        let typical = if number == 0 { UNKNOWN } else { (sum / u128::from(number)) as u64 };
        for set in (0..count).filter(|set| !self.known[*set]) {
            self.duration[set] = typical;
        }
        for learned in &mut self.learned {
            learned.ranked = learned.mean;
        }
        self.upward.clone_from(&self.duration);
        for set in graph.order().iter().rev() {
            let below = self.upward[set.index()];
            for producer in graph.producers().of(*set) {
                let above = &mut self.upward[producer.index()];
                *above = (*above).max(self.duration[producer.index()].saturating_add(below));
            }
        }
    }
}

fn declared(plan: &Plan, set: SetId) -> Option<u64> {
    // A measured time is better than a stated one.
    let measured = plan.expected.get(set.index()).copied().flatten();
    let known = measured.or(plan.task(set).settings.hints.runtime)?;
    Some(u64::try_from(known.as_micros()).unwrap_or(u64::MAX >> 8).min(u64::MAX >> 8))
}

/// The largest part of the site that a request takes in any resource, in millionths.
pub(super) fn dominant_share(request: &Request, (cpus, memory, gpus): (u64, u64, u64)) -> u64 {
    let nodes = u64::from(request.nodes);
    let part = |wants: u64, has: u64| (u128::from(wants * nodes) * 1_000_000 / u128::from(has.max(1))) as u64;
    part(u64::from(request.milli_cpus), cpus).max(part(request.memory.0, memory)).max(part(request.milli_gpus(), gpus))
}
