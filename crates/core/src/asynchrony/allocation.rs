//! What there is to run on, and how many waves a task set takes there.
//!
//! Fitting together is judged by totals, as in the paper; waves are judged node by node, because a task does not
//! span nodes unless it says so.

use super::model::{Model, TaskSet};
use crate::site::Site;
use serde::Serialize;

pub(super) const DIMENSIONS: usize = 3;
/// As messages name them, in the order of [`Demand`].
pub(super) const NAMES: [&str; DIMENSIONS] = ["cores", "GPUs", "memory"];

/// Thousandths of cores and of GPUs, bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand(pub(super) [u64; DIMENSIONS]);

impl Demand {
    pub(super) fn plus(self, other: Demand) -> Demand {
        let mut sum = self;
        sum.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        sum
    }

    pub(super) fn fits(self, limit: Demand) -> bool {
        self.0.iter().zip(limit.0).all(|(wanted, limit)| *wanted <= limit)
    }

    /// A task set that is larger than the machine fills it.
    pub(super) fn at_most(self, limit: Demand) -> Demand {
        let mut clipped = self;
        clipped.0.iter_mut().zip(limit.0).for_each(|(wanted, limit)| *wanted = (*wanted).min(limit));
        clipped
    }
}

/// The nodes that a workflow has to itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Allocation {
    pub groups: Vec<NodeGroup>,
}

/// Equal nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NodeGroup {
    pub count: u64,
    pub milli_cpus: u64,
    pub milli_gpus: u64,
    /// `None`: it is not known, and does not limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// How a task set runs when it has an allocation to itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Waves {
    /// How many of its tasks run at once; 0: not even one fits.
    pub at_once: u64,
    pub waves: u64,
    /// Waves times TX; where tasks differ, no more than their work spread over the places, and the longest of them.
    pub seconds: f64,
}

impl Allocation {
    /// One big node: nothing is known but totals.
    pub fn totals(cpus: u64, gpus: u64) -> Self {
        Self::equal_nodes(1, cpus, gpus)
    }

    pub fn equal_nodes(count: u64, cpus: u64, gpus: u64) -> Self {
        let group = NodeGroup { count, milli_cpus: cpus * 1000, milli_gpus: gpus * 1000, memory: None };
        Self { groups: vec![group] }
    }

    pub fn of_site(site: &Site) -> Self {
        let mut groups: Vec<NodeGroup> = Vec::new();
        for node in &site.nodes {
            let capacity = &node.capacity;
            let one = NodeGroup {
                count: 1,
                milli_cpus: u64::from(capacity.milli_cpus),
                milli_gpus: capacity.gpus.len() as u64 * 1000,
                memory: Some(capacity.memory.0),
            };
            match groups.last_mut() {
                Some(last) if NodeGroup { count: 1, ..*last } == one => last.count += 1,
                _ => groups.push(one),
            }
        }
        Self { groups }
    }

    pub fn milli_cpus(&self) -> u64 {
        self.limit().0[0]
    }

    pub fn milli_gpus(&self) -> u64 {
        self.limit().0[1]
    }

    /// `None` when it is not known of all nodes.
    pub fn memory(&self) -> Option<u64> {
        self.groups
            .iter()
            .map(|group| Some(group.memory?.saturating_mul(group.count)))
            .try_fold(0u64, |sum, memory| Some(sum.saturating_add(memory?)))
    }

    pub(super) fn limit(&self) -> Demand {
        let total = |one: fn(&NodeGroup) -> u64| {
            self.groups.iter().fold(0u64, |sum, group| sum.saturating_add(one(group).saturating_mul(group.count)))
        };
        let memory = self.memory().unwrap_or(u64::MAX);
        Demand([total(|group| group.milli_cpus), total(|group| group.milli_gpus), memory])
    }

    /// The time of a task set that has all of the allocation to itself.
    pub fn waves(&self, set: &TaskSet) -> Waves {
        let mut places = 0u64;
        let mut nodes = 0u64;
        for group in &self.groups {
            let of = |have: u64, want: u64| have.checked_div(want).unwrap_or(u64::MAX);
            let memory = group.memory.map_or(u64::MAX, |memory| of(memory, set.memory));
            let a_node = of(group.milli_cpus, set.milli_cpus).min(of(group.milli_gpus, set.milli_gpus)).min(memory);
            if a_node > 0 {
                places = places.saturating_add(a_node.saturating_mul(group.count));
                nodes += group.count;
            }
        }
        let gang = set.nodes.max(1);
        let room = if nodes < gang { 0 } else { places / gang };
        let at_once = room.min(set.tasks).min(set.at_most.unwrap_or(u64::MAX));
        let waves = if at_once == 0 { u64::from(set.tasks > 0) } else { set.tasks.div_ceil(at_once) };
        let by_waves = waves as f64 * set.seconds;
        let by_work = set.total_seconds / at_once.max(1) as f64 + set.seconds;
        let seconds = if waves <= 1 || at_once == 0 { by_waves } else { by_waves.min(by_work) };
        Waves { at_once, waves, seconds }
    }

    /// The time of each set of a model, when it runs alone.
    pub(super) fn durations(&self, model: &Model) -> Vec<f64> {
        model.sets().iter().map(|set| self.waves(set).seconds).collect()
    }
}
