//! The times of Eq. 2 to 5: one stage after another, and branches beside each other; and what masks what.
//!
//! Eq. 3 is an estimate by task sets, not a schedule: what a rank cannot run at once is added to the longest path. How
//! tasks of several sets interleave only a simulation tells.

use super::allocation::{Allocation, Demand};
use super::model::Model;
use super::packing::rounds;
use serde::Serialize;

/// Eq. 2: iterations one after another, and in each of them its stages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sequential {
    /// t_seq on the allocation: TX times waves, and what does not fit into a stage together is added up.
    pub seconds: f64,
    /// t_seq as Eq. 2 says it: the longest TX of each stage, added up.
    pub unlimited: f64,
    /// Without iterations, one entry for everything.
    pub iterations: Vec<IterationTime>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IterationTime {
    pub iteration: Option<u32>,
    /// On the allocation.
    pub seconds: f64,
    /// Of each stage, the longest TX.
    pub stages: Vec<f64>,
}

/// Eq. 3: the longest path, and what resources add to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asynchronous {
    /// t_async on the allocation: `before_fork + longest_branch + serialised_seconds`, never below the lower bound and
    /// never above t_seq.
    pub seconds: f64,
    /// The longest path when all fits at once.
    pub unlimited: f64,
    /// What the longest path spends in sets that lead to every sink.
    pub before_fork: f64,
    /// What it spends in others.
    pub longest_branch: f64,
    pub serialised_seconds: f64,
    /// Sets that do not fit beside the others of their rank.
    pub serialised: Vec<Serialised>,
    pub longest_path: Vec<String>,
    /// Sets that run beside the longest path and do not lengthen it.
    pub masked: Vec<Masked>,
    /// Eq. 4, the longest first; empty when there is one branch only.
    pub branches: Vec<Branch>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Serialised {
    pub set: String,
    /// What it adds: nothing when a longer one is added together with it.
    pub seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Masked {
    pub set: String,
    /// The set of the longest path that runs beside it longest.
    pub by: String,
}

/// Eq. 4: a branch from the fork to its sink.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Branch {
    pub sink: String,
    /// tt_H: the longest way through its sets that do not lead to every sink.
    pub seconds: f64,
}

/// Eq. 5: what part of the sequential time asynchronous execution saves.
pub fn improvement(sequential: f64, asynchronous: f64) -> f64 {
    if sequential > 0.0 { 1.0 - asynchronous / sequential } else { 0.0 }
}

/// The longest TX of some sets.
pub(super) fn longest(sets: &[usize], durations: &[f64]) -> f64 {
    sets.iter().map(|set| durations[*set]).fold(0.0, f64::max)
}

/// Durations on an allocation, and which sets go first where not all fit.
struct Precedence {
    limit: Demand,
    durations: Vec<f64>,
    tails: Vec<f64>,
    path: Vec<usize>,
    on_path: Vec<bool>,
}

impl Precedence {
    fn new(model: &Model, allocation: &Allocation) -> Self {
        let durations = allocation.durations(model);
        let tails = model.tails(&durations);
        let path = model.longest_path(&tails);
        let mut on_path = vec![false; durations.len()];
        path.iter().for_each(|set| on_path[*set] = true);
        Self { limit: allocation.limit(), durations, tails, path, on_path }
    }

    /// Sets that run at the same time, round after round: first the one of the longest path, then by the way to the end.
    fn rounds(&self, model: &Model, sets: &[usize]) -> Vec<Vec<usize>> {
        let mut sets = sets.to_vec();
        sets.sort_by(|one, other| {
            let path = self.on_path[*other].cmp(&self.on_path[*one]);
            path.then(self.tails[*other].total_cmp(&self.tails[*one]))
                .then(self.durations[*other].total_cmp(&self.durations[*one]))
                .then(one.cmp(other))
        });
        let numbers = rounds(sets.iter().map(|set| model.sets()[*set].demand()), self.limit);
        let mut rounds: Vec<Vec<usize>> = Vec::new();
        for (set, round) in sets.into_iter().zip(numbers) {
            if rounds.len() <= round {
                rounds.resize(round + 1, Vec::new());
            }
            rounds[round].push(set);
        }
        rounds
    }
}

impl Model {
    /// t_seq.
    pub fn sequential(&self, allocation: &Allocation) -> Sequential {
        let precedence = Precedence::new(self, allocation);
        let durations = self.durations();
        let iterations: Vec<IterationTime> = self
            .stages()
            .into_iter()
            .map(|(iteration, stages)| {
                let on_allocation = |sets: &Vec<usize>| -> f64 {
                    let rounds = precedence.rounds(self, sets);
                    rounds.iter().map(|round| longest(round, &precedence.durations)).sum()
                };
                IterationTime {
                    iteration,
                    seconds: stages.iter().map(on_allocation).sum(),
                    stages: stages.iter().map(|sets| longest(sets, &durations)).collect(),
                }
            })
            .collect();
        Sequential {
            seconds: iterations.iter().map(|iteration| iteration.seconds).sum(),
            unlimited: iterations.iter().flat_map(|iteration| &iteration.stages).sum(),
            iterations,
        }
    }

    /// t_async of this graph, stagger edges included if it has them. `most` is t_seq, which it never exceeds.
    pub fn asynchronous(&self, allocation: &Allocation, most: f64) -> Asynchronous {
        let precedence = Precedence::new(self, allocation);
        let name = |set: usize| self.sets()[set].name.clone();
        let shared = self.before_fork();
        let (before, after): (Vec<usize>, Vec<usize>) = precedence.path.iter().partition(|set| shared[**set]);
        let total = |sets: &[usize]| sets.iter().map(|set| precedence.durations[*set]).sum::<f64>();
        let (before_fork, longest_branch) = (total(&before), total(&after));
        let mut serialised = Vec::new();
        let mut waits = vec![false; self.sets().len()];
        for sets in self.ranks() {
            for round in precedence.rounds(self, &sets).into_iter().skip(1) {
                let mut adds = longest(&round, &precedence.durations);
                for set in round {
                    waits[set] = true;
                    // The first that is as long as the round takes all of its time upon itself.
                    let seconds = if precedence.durations[set] == adds { std::mem::take(&mut adds) } else { 0.0 };
                    serialised.push(Serialised { set: name(set), seconds });
                }
            }
        }
        let serialised_seconds: f64 = serialised.iter().map(|set| set.seconds).sum();
        Asynchronous {
            seconds: (before_fork + longest_branch + serialised_seconds).max(self.bounds(allocation).seconds).min(most),
            unlimited: self.ends(&self.durations()).into_iter().fold(0.0, f64::max),
            before_fork,
            longest_branch,
            serialised_seconds,
            serialised,
            longest_path: precedence.path.iter().map(|set| name(*set)).collect(),
            masked: self.masked(&precedence, &waits),
            branches: self.branches(&precedence.durations, &shared),
        }
    }

    fn branches(&self, durations: &[f64], shared: &[bool]) -> Vec<Branch> {
        let mut ends = vec![0.0_f64; durations.len()];
        for set in self.order().filter(|set| !shared[*set]) {
            let start = self.sets()[set].needs.iter().map(|need| ends[*need]).fold(0.0, f64::max);
            ends[set] = start + durations[set];
        }
        let sinks = self.sinks().filter(|sink| !shared[*sink]);
        let mut branches: Vec<Branch> =
            sinks.map(|sink| Branch { sink: self.sets()[sink].name.clone(), seconds: ends[sink] }).collect();
        branches.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        branches
    }

    /// Sets beside the longest path that fit beside it. When each runs is judged by its needs alone.
    fn masked(&self, precedence: &Precedence, waits: &[bool]) -> Vec<Masked> {
        let ends = self.ends(&precedence.durations);
        let path: Vec<(usize, f64, f64)> =
            precedence.path.iter().map(|set| (*set, ends[*set] - precedence.durations[*set], ends[*set])).collect();
        let masked = |set: usize| -> Option<Masked> {
            let (start, end) = (ends[set] - precedence.durations[set], ends[set]);
            let from = path.partition_point(|(_, _, other_end)| *other_end <= start);
            // Chains of thousands of short sets may run beside one long set: the first of them stand for all.
            let beside = path[from..].iter().take(64).take_while(|(_, other_start, _)| *other_start < end);
            let overlap =
                |(set, other_start, other_end): &(usize, f64, f64)| (*set, other_end.min(end) - other_start.max(start));
            let (by, _) = beside.map(overlap).fold(None, |best: Option<(usize, f64)>, one| match best {
                Some(best) if best.1 >= one.1 => Some(best),
                _ => Some(one),
            })?;
            Some(Masked { set: self.sets()[set].name.clone(), by: self.sets()[by].name.clone() })
        };
        (0..self.sets().len())
            .filter(|set| !precedence.on_path[*set] && !waits[*set] && precedence.durations[*set] > 0.0)
            .filter_map(masked)
            .collect()
    }
}
