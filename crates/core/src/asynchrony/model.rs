//! Task sets and the graph of them: order, ranks, sinks. It knows nothing of plans, nodes or durations that depend on
//! them.

use super::allocation::Demand;
use crate::ids::SetId;
use serde::Serialize;

/// Equal tasks that may run at the same time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskSet {
    pub name: String,
    /// What equal tasks of several sets have in common; see [`Model::merged`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub tasks: u64,
    /// Thousandths of cores of one task, on each of its nodes.
    pub milli_cpus: u64,
    /// Thousandths of GPUs of one task, on each of its nodes.
    pub milli_gpus: u64,
    /// Bytes of one task, on each of its nodes.
    pub memory: u64,
    /// How many nodes one task takes at once.
    pub nodes: u64,
    /// No more of them at once, whatever there is room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
    /// TX: of the longest task, when they differ.
    pub seconds: f64,
    /// Of all its tasks together.
    pub total_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// By position in [`Model::sets`].
    pub needs: Vec<usize>,
    /// The task set of the plan that it comes from.
    #[serde(skip)]
    pub from: Option<SetId>,
}

impl TaskSet {
    /// Whole cores and GPUs; the fields say the rest.
    pub fn new(name: &str, tasks: u64, cpus: u64, gpus: u64, seconds: f64) -> Self {
        Self {
            name: name.to_owned(),
            kind: None,
            tasks,
            milli_cpus: cpus * 1000,
            milli_gpus: gpus * 1000,
            memory: 0,
            nodes: 1,
            at_most: None,
            seconds,
            total_seconds: seconds * tasks as f64,
            iteration: None,
            needs: Vec::new(),
            from: None,
        }
    }

    pub fn after(mut self, needs: &[usize]) -> Self {
        self.needs.extend_from_slice(needs);
        self
    }

    pub fn of_iteration(mut self, iteration: u32) -> Self {
        self.iteration = Some(iteration);
        self
    }

    /// What all of its tasks hold when they run at once.
    pub(super) fn demand(&self) -> Demand {
        let all = |one: u64| one.saturating_mul(self.nodes).saturating_mul(self.tasks);
        Demand([all(self.milli_cpus), all(self.milli_gpus), all(self.memory)])
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("task set `{set}` needs number {need}, but there are only {count} task sets")]
    NoSuchSet { set: String, need: usize, count: usize },
    #[error("task sets wait for each other in a circle, `{0}` among them")]
    Cycle(String),
    #[error("task set `{0}` cannot take a negative or unknown time")]
    BadSeconds(String),
}

/// A graph of task sets without cycles.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Model {
    sets: Vec<TaskSet>,
    /// Positions, each after those it needs.
    #[serde(skip)]
    order: Vec<u32>,
    #[serde(skip)]
    ranks: Vec<u32>,
    /// Who needs each set: `children[first[s]..first[s + 1]]`.
    #[serde(skip)]
    first: Vec<usize>,
    #[serde(skip)]
    children: Vec<u32>,
}

impl Model {
    pub fn new(mut sets: Vec<TaskSet>) -> Result<Self, ModelError> {
        let count = sets.len();
        let mut first = vec![0; count + 1];
        for set in &mut sets {
            let good = |seconds: f64| seconds.is_finite() && seconds >= 0.0;
            if !good(set.seconds) || !good(set.total_seconds) {
                return Err(ModelError::BadSeconds(set.name.clone()));
            }
            set.needs.sort_unstable();
            set.needs.dedup();
            if let Some(need) = set.needs.last().copied().filter(|need| *need >= count) {
                return Err(ModelError::NoSuchSet { set: set.name.clone(), need, count });
            }
            set.needs.iter().for_each(|need| first[need + 1] += 1);
        }
        for index in 0..count {
            first[index + 1] += first[index];
        }
        let mut next = first.clone();
        let mut children = vec![0; first[count]];
        for (index, set) in sets.iter().enumerate() {
            for need in &set.needs {
                children[next[*need]] = index as u32;
                next[*need] += 1;
            }
        }
        let mut unmet: Vec<usize> = sets.iter().map(|set| set.needs.len()).collect();
        let mut order: Vec<u32> = (0..count as u32).filter(|set| unmet[*set as usize] == 0).collect();
        let mut ranks = vec![0; count];
        let mut done = 0;
        while let Some(set) = order.get(done).map(|set| *set as usize) {
            done += 1;
            for child in &children[first[set]..first[set + 1]] {
                let index = *child as usize;
                ranks[index] = ranks[index].max(ranks[set] + 1);
                unmet[index] -= 1;
                if unmet[index] == 0 {
                    order.push(*child);
                }
            }
        }
        if let Some(stuck) = unmet.iter().position(|unmet| *unmet > 0) {
            return Err(ModelError::Cycle(sets[stuck].name.clone()));
        }
        Ok(Self { sets, order, ranks, first, children })
    }

    pub fn sets(&self) -> &[TaskSet] {
        &self.sets
    }

    /// 0 without needs, else one more than the highest of what it needs.
    pub fn rank(&self, set: usize) -> usize {
        self.ranks[set] as usize
    }

    /// How many ranks there are.
    pub fn depth(&self) -> usize {
        self.ranks.iter().max().map_or(0, |highest| *highest as usize + 1)
    }

    /// The sets of each rank, in their order.
    pub fn ranks(&self) -> Vec<Vec<usize>> {
        let mut ranks = vec![Vec::new(); self.depth()];
        self.ranks.iter().enumerate().for_each(|(set, rank)| ranks[*rank as usize].push(set));
        ranks
    }

    /// The most tasks that one rank has.
    pub fn level_width(&self) -> u64 {
        let mut widths = vec![0u64; self.depth()];
        for (set, rank) in self.sets.iter().zip(&self.ranks) {
            widths[*rank as usize] += set.tasks;
        }
        widths.into_iter().max().unwrap_or(0)
    }

    pub fn tasks(&self) -> u64 {
        self.sets.iter().map(|set| set.tasks).sum()
    }

    /// Who needs this set.
    pub fn children(&self, set: usize) -> &[u32] {
        &self.children[self.first[set]..self.first[set + 1]]
    }

    /// Sets that nobody needs: each is the end of one branch.
    pub fn sinks(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.sets.len()).filter(|set| self.children(*set).is_empty())
    }

    pub(super) fn order(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.order.iter().map(|set| *set as usize)
    }

    /// TX of each set.
    pub(super) fn durations(&self) -> Vec<f64> {
        self.sets.iter().map(|set| set.seconds).collect()
    }

    /// When each set ends at the earliest, if nothing but its needs holds it up.
    pub(super) fn ends(&self, durations: &[f64]) -> Vec<f64> {
        let mut ends = vec![0.0_f64; self.sets.len()];
        for set in self.order() {
            let start = self.sets[set].needs.iter().map(|need| ends[*need]).fold(0.0, f64::max);
            ends[set] = start + durations[set];
        }
        ends
    }

    /// The time from the start of each set to the end of everything that waits for it.
    pub(super) fn tails(&self, durations: &[f64]) -> Vec<f64> {
        let mut tails = vec![0.0_f64; self.sets.len()];
        for set in self.order().rev() {
            let below = self.children(set).iter().map(|child| tails[*child as usize]).fold(0.0, f64::max);
            tails[set] = durations[set] + below;
        }
        tails
    }

    /// The longest chain of sets; of equally long ones the one that comes first.
    pub(super) fn longest_path(&self, tails: &[f64]) -> Vec<usize> {
        let longest = |sets: &mut dyn Iterator<Item = usize>| {
            sets.fold(None, |best: Option<usize>, set| match best {
                Some(best) if tails[best] >= tails[set] => Some(best),
                _ => Some(set),
            })
        };
        let mut path = Vec::new();
        let mut next = longest(&mut (0..self.sets.len()).filter(|set| self.sets[*set].needs.is_empty()));
        while let Some(set) = next {
            path.push(set);
            next = longest(&mut self.children(set).iter().map(|child| *child as usize));
        }
        path
    }

    pub(super) fn into_sets(self) -> Vec<TaskSet> {
        self.sets
    }
}
