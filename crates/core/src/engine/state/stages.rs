//! Barriers: in `sequential` and `staggered` mode a job may not start before all jobs of earlier stages have ended.
//!
//! A stage is a rank of one iteration (sequential), or one rank over all iterations, each iteration one rank behind the
//! one before it (staggered). What a job needs is always in an earlier stage, so a barrier never waits for itself.

use crate::engine::policy::Mode;
use crate::ids::{JobId, SetId};
use crate::plan::{Bound, Graph};
use crate::workflow::{Iteration, Value};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Which iteration each job belongs to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::engine) struct Iterations {
    /// By task set; empty when no task says anything about iterations.
    of: Vec<Of>,
}

#[derive(Clone, Debug, PartialEq)]
enum Of {
    Fixed(u32),
    Variable(String),
}

impl Iterations {
    /// A task that does not say to which iteration it belongs is in the latest of those that it needs something from.
    pub(super) fn new(graph: &Graph) -> Self {
        let tasks = &graph.plan().workflow.tasks;
        if tasks.iter().all(|task| task.settings.iteration.is_none()) {
            return Self::default();
        }
        let mut of: Vec<Of> = vec![Of::Fixed(0); tasks.len()];
        let mut latest = vec![0u32; tasks.len()];
        for set in graph.order().iter() {
            let task = &tasks[set.index()];
            let own = match &task.settings.iteration {
                Some(Iteration::Number(number)) => Of::Fixed(*number),
                Some(Iteration::Variable(name)) => Of::Variable(name.clone()),
                None => inherited(graph, *set, &of, &latest),
            };
            latest[set.index()] = match &own {
                Of::Fixed(number) => *number,
                Of::Variable(name) => values(graph, *set, name).into_iter().max().unwrap_or(0),
            };
            of[set.index()] = own;
        }
        Self { of }
    }

    pub(in crate::engine) fn are_used(&self) -> bool {
        !self.of.is_empty()
    }

    pub(in crate::engine) fn of_job(&self, graph: &Graph, job: JobId) -> u32 {
        if self.of.is_empty() {
            return 0;
        }
        match &self.of[graph.set_of(job).index()] {
            Of::Fixed(number) => *number,
            Of::Variable(name) => graph.variable(job, name).map_or(0, |bound| number(&bound)),
        }
    }

    /// The iterations that have tasks of this set.
    fn of_set(&self, graph: &Graph, set: SetId) -> BTreeSet<u32> {
        match self.of.get(set.index()) {
            None => BTreeSet::from([0]),
            Some(Of::Fixed(number)) => BTreeSet::from([*number]),
            Some(Of::Variable(name)) => values(graph, set, name),
        }
    }
}

fn inherited(graph: &Graph, set: SetId, of: &[Of], latest: &[u32]) -> Of {
    let producers = graph.producers().of(set);
    let shared = producers.iter().find_map(|producer| match &of[producer.index()] {
        Of::Variable(name) => {
            let axes = &graph.plan().task(set).scatter;
            axes.iter().any(|axis| axis.names.contains(name)).then(|| name.clone())
        }
        Of::Fixed(_) => None,
    });
    match shared {
        Some(name) => Of::Variable(name),
        None => Of::Fixed(producers.iter().map(|producer| latest[producer.index()]).max().unwrap_or(0)),
    }
}

/// The values of a scatter variable as numbers; none before the set is unfolded.
fn values(graph: &Graph, set: SetId, name: &str) -> BTreeSet<u32> {
    if graph.count_of(set).is_none() {
        return BTreeSet::new();
    }
    let axes = graph.axes_of(set).iter();
    let mut found = BTreeSet::new();
    for axis in axes {
        if let Some(column) = axis.names.iter().position(|known| known == name) {
            found.extend((0..axis.len()).map(|row| number(&axis.bound(column, row))));
        }
    }
    found
}

fn number(bound: &Bound<'_>) -> u32 {
    match bound {
        Bound::Value(Value::Integer(value)) => u32::try_from(*value).unwrap_or(0),
        Bound::Value(value) => value.number().unwrap_or(0.0).max(0.0) as u32,
        Bound::Batch(_, number) => *number,
        Bound::File(_) => 0,
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stages {
    of: FxHashMap<(SetId, u32), u32>,
    /// By stage: its iteration (sequential only) and rank, how many jobs have not ended, which wait for nothing but it.
    names: Vec<(Option<u32>, u32)>,
    unsettled: Vec<u32>,
    parked: Vec<Vec<Parked>>,
    current: usize,
}

/// A job that only a barrier keeps from going on, and whether the cache was asked for it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parked {
    pub(super) job: JobId,
    pub(super) looked: bool,
}

impl Stages {
    /// Every stage with the number of jobs that have not ended; nothing in a mode without barriers.
    pub(super) fn new(
        graph: &Graph,
        iterations: &Iterations,
        mode: Mode,
        unsettled: &dyn Fn(JobId) -> bool,
    ) -> Option<Self> {
        if mode == Mode::Adaptive {
            return None;
        }
        let keys = match mode {
            Mode::Staggered => staggered(graph, iterations),
            _ => one_after_another(graph, iterations),
        };
        let distinct: BTreeSet<(Option<u32>, u32)> = keys.values().copied().collect();
        let numbers: BTreeMap<(Option<u32>, u32), u32> = distinct.iter().copied().zip(0..).collect();
        let mut stages = Self {
            of: keys.into_iter().map(|(node, key)| (node, numbers[&key])).collect(),
            unsettled: vec![0; distinct.len()],
            parked: vec![Vec::new(); distinct.len()],
            names: distinct.into_iter().collect(),
            current: 0,
        };
        for job in (0..graph.len()).map(JobId::from).filter(|job| unsettled(*job)) {
            let stage = stages.stage(graph, iterations, job);
            stages.unsettled[stage] += 1;
        }
        stages.advance();
        Some(stages)
    }

    fn stage(&self, graph: &Graph, iterations: &Iterations, job: JobId) -> usize {
        let node = (graph.set_of(job), iterations.of_job(graph, job));
        self.of.get(&node).copied().unwrap_or(0) as usize
    }

    /// True when the job must wait for a stage before its own.
    pub(super) fn is_ahead(&self, graph: &Graph, iterations: &Iterations, job: JobId) -> bool {
        self.stage(graph, iterations, job) > self.current
    }

    pub(super) fn park(&mut self, graph: &Graph, iterations: &Iterations, parked: Parked) {
        let stage = self.stage(graph, iterations, parked.job);
        self.parked[stage].push(parked);
    }

    /// One job less; what may go on when that was the last of its stage.
    pub(super) fn settled(&mut self, graph: &Graph, iterations: &Iterations, job: JobId) -> Vec<Parked> {
        let stage = self.stage(graph, iterations, job);
        self.unsettled[stage] -= 1;
        if stage != self.current || self.unsettled[stage] > 0 {
            return Vec::new();
        }
        self.advance();
        self.parked.get_mut(self.current).map(std::mem::take).unwrap_or_default()
    }

    fn advance(&mut self) {
        while self.unsettled.get(self.current) == Some(&0) {
            self.current += 1;
        }
    }

    /// What was kept back, to be looked at again.
    pub(super) fn all_parked(&mut self) -> Vec<Parked> {
        self.parked.iter_mut().flat_map(std::mem::take).collect()
    }

    /// The stage that all wait for: its iteration, its rank, and how many jobs of it have not ended.
    pub(super) fn now(&self) -> Option<(Option<u32>, u32, u32)> {
        let (iteration, rank) = *self.names.get(self.current)?;
        Some((iteration, rank, self.unsettled[self.current]))
    }
}

type Nodes = BTreeMap<(SetId, u32), (Option<u32>, u32)>;

/// (iteration, rank in it): the longest way within the iteration; never before what it needs.
fn one_after_another(graph: &Graph, iterations: &Iterations) -> Nodes {
    let mut found: Nodes = BTreeMap::new();
    for set in graph.order().iter().copied().filter(|set| graph.count_of(*set).is_some()) {
        for iteration in iterations.of_set(graph, set) {
            let needed = needed(graph, iterations, set, iteration);
            let above = needed.iter().filter_map(|node| found.get(node));
            let latest = above.clone().filter_map(|key| key.0).max().unwrap_or(0).max(iteration);
            let rank = above.filter(|key| key.0 == Some(latest)).map(|key| key.1 + 1).max().unwrap_or(0);
            found.insert((set, iteration), (Some(latest), rank));
        }
    }
    found
}

/// The longest way over data, where the first tasks of an iteration also wait for the first of the one before.
fn staggered(graph: &Graph, iterations: &Iterations) -> Nodes {
    let within = one_after_another(graph, iterations);
    let all: BTreeSet<u32> = within.keys().map(|(_, iteration)| *iteration).collect();
    let position: FxHashMap<u32, u32> = all.into_iter().zip(0..).collect();
    let mut found: Nodes = BTreeMap::new();
    for set in graph.order().iter().copied().filter(|set| graph.count_of(*set).is_some()) {
        for iteration in iterations.of_set(graph, set) {
            let needed = needed(graph, iterations, set, iteration);
            let above = needed.iter().filter_map(|node| found.get(node)).map(|key| key.1 + 1).max().unwrap_or(0);
            let behind = position.get(&iteration).copied().unwrap_or(0);
            let rank = within.get(&(set, iteration)).map_or(0, |key| key.1);
            found.insert((set, iteration), (None, above.max(behind + rank)));
        }
    }
    found
}

/// What tasks of a set in one iteration wait for: of a set with the same variable the same iteration, of others all.
fn needed(graph: &Graph, iterations: &Iterations, set: SetId, iteration: u32) -> Vec<(SetId, u32)> {
    let same = |producer: SetId| match (iterations.of.get(set.index()), iterations.of.get(producer.index())) {
        (Some(Of::Variable(ours)), Some(Of::Variable(theirs))) => ours == theirs,
        _ => false,
    };
    let mut needed = Vec::new();
    for producer in graph.producers().of(set).iter().copied() {
        if same(producer) {
            needed.push((producer, iteration));
        } else {
            needed.extend(iterations.of_set(graph, producer).into_iter().map(|other| (producer, other)));
        }
    }
    needed
}
