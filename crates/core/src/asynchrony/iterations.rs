//! Workflows that repeat: the stages of an iteration, the edges that stagger iterations, and Eq. 6 and 7.

use super::allocation::{Allocation, Demand};
use super::model::{Model, TaskSet};
use super::packing::rounds;
use super::times::longest;
use serde::Serialize;
use std::collections::BTreeMap;

/// A stage that pushes aside at most this part of the first stage still counts as masked by it: one training task
/// beside 96 simulations on 96 GPUs.
const ASIDE: f64 = 0.05;

/// More stagger edges than this between two iterations, and each set waits for two of the sets before, not for all.
const MOST_EDGES: usize = 10_000;

/// A workflow of n equal iterations, as Eq. 6 and 7 see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Iterated {
    pub iterations: usize,
    /// t_iter: the stages one after another; the mean over the iterations.
    pub seconds: f64,
    pub stages: Vec<Stage>,
    /// n·t_iter less what is masked: the first masked stage n − 1 times, the second n − 2 times, and so on.
    pub equation_6: f64,
    /// Stages counted n − k times: those that are not masked together with k = 0, then the masked ones, last first.
    pub equation_7: f64,
    /// The longest path once iterations are staggered: with any resources, staggering takes so long.
    pub structural: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// Its task sets in the first iteration that has it.
    pub sets: Vec<String>,
    /// TX of the longest of them; the mean over the iterations.
    pub seconds: f64,
    /// It runs beside the first stage of the next iteration and costs no time.
    pub masked: bool,
}

/// Eq. 6 for n iterations of `iteration` seconds, in which these stages are masked.
pub fn equation_6(n: usize, iteration: f64, masked: &[f64]) -> f64 {
    let saved: f64 = masked.iter().zip(1..n).map(|(seconds, k)| (n - k) as f64 * seconds).sum();
    n as f64 * iteration - saved
}

/// Eq. 7: the time number k counts n − k times.
pub fn equation_7(n: usize, times: &[f64]) -> f64 {
    times.iter().take(n).enumerate().map(|(k, seconds)| (n - k) as f64 * seconds).sum()
}

impl Model {
    /// The sets of each iteration by stage: the rank that they have when only their own iteration counts. Sets without
    /// an iteration come first, together.
    pub(super) fn stages(&self) -> BTreeMap<Option<u32>, Vec<Vec<usize>>> {
        let mut ranks = vec![0usize; self.sets().len()];
        let mut stages: BTreeMap<Option<u32>, Vec<Vec<usize>>> = BTreeMap::new();
        for set in self.order() {
            let TaskSet { iteration, needs, .. } = &self.sets()[set];
            let inside = needs.iter().filter(|need| self.sets()[**need].iteration == *iteration);
            ranks[set] = inside.map(|need| ranks[*need] + 1).max().unwrap_or(0);
        }
        for (set, rank) in ranks.into_iter().enumerate() {
            let stages = stages.entry(self.sets()[set].iteration).or_default();
            if stages.len() <= rank {
                stages.resize(rank + 1, Vec::new());
            }
            stages[rank].push(set);
        }
        stages
    }

    /// The same model with stagger edges: the first sets of an iteration wait for the first sets of the one before.
    /// `None` without iterations, and when data flows against their order.
    pub fn staggered(&self) -> Option<Model> {
        let stages = self.stages();
        let firsts: Vec<&Vec<usize>> = stages
            .iter()
            .filter(|(iteration, _)| iteration.is_some())
            .filter_map(|(_, stages)| stages.first())
            .collect();
        if firsts.len() < 2 {
            return None;
        }
        let mut sets = self.clone().into_sets();
        for pair in firsts.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let deepest = before.iter().copied().max_by_key(|set| self.rank(*set))?;
            for (position, set) in after.iter().enumerate() {
                if before.len() * after.len() <= MOST_EDGES {
                    sets[*set].needs.extend(before);
                } else {
                    sets[*set].needs.extend([before[position % before.len()], deepest]);
                }
            }
        }
        Model::new(sets).ok()
    }

    /// `None` for a workflow without iterations.
    pub fn iterated(&self, allocation: &Allocation) -> Option<Iterated> {
        let staggered = self.staggered()?;
        let stages: Vec<Vec<Vec<usize>>> =
            self.stages().into_iter().filter(|(iteration, _)| iteration.is_some()).map(|(_, stages)| stages).collect();
        let iterations = stages.len();
        let depth = stages.iter().map(Vec::len).max().unwrap_or(0);
        let durations = self.durations();
        let limit = allocation.limit();
        let mut found: Vec<Stage> = Vec::with_capacity(depth);
        let mut first = Demand::default();
        let mut masked = 0.0;
        for number in 0..depth {
            let members: Vec<&Vec<usize>> = stages.iter().filter_map(|stages| stages.get(number)).collect();
            let seconds = members.iter().map(|sets| longest(sets, &durations)).sum::<f64>() / iterations as f64;
            let sets = members.first().map_or(&[][..], |sets| sets);
            let demand = self.first_round(sets, limit);
            let masks = if number == 0 {
                first = demand;
                false
            } else {
                // The condition of the paper: the first stage outlasts all that it masks.
                masked + seconds <= found[0].seconds && aside(first, demand, limit) <= ASIDE
            };
            if masks {
                masked += seconds;
            }
            let sets = sets.iter().map(|set| self.sets()[*set].name.clone()).collect();
            found.push(Stage { sets, seconds, masked: masks });
        }
        let seconds: f64 = found.iter().map(|stage| stage.seconds).sum();
        let hidden: Vec<f64> = found.iter().filter(|stage| stage.masked).map(|stage| stage.seconds).collect();
        let mut times = vec![seconds - hidden.iter().sum::<f64>()];
        times.extend(hidden.iter().rev());
        let structural = staggered.ends(&durations).into_iter().fold(0.0, f64::max);
        Some(Iterated {
            iterations,
            seconds,
            equation_6: equation_6(iterations, seconds, &hidden),
            equation_7: equation_7(iterations, &times),
            stages: found,
            structural,
        })
    }

    /// What a stage holds while as much of it runs as fits.
    fn first_round(&self, sets: &[usize], limit: Demand) -> Demand {
        let demands: Vec<Demand> = sets.iter().map(|set| self.sets()[*set].demand().at_most(limit)).collect();
        let rounds = rounds(demands.iter().copied(), limit);
        let first = demands.iter().zip(rounds).filter(|(_, round)| *round == 0);
        first.fold(Demand::default(), |sum, (demand, _)| sum.plus(*demand))
    }
}

/// The part of the first demand that must wait so that the other one can be met beside it.
fn aside(first: Demand, other: Demand, limit: Demand) -> f64 {
    let both = first.plus(other);
    let parts = both.0.iter().zip(limit.0).zip(first.0).map(|((both, limit), first)| {
        let over = both.saturating_sub(limit);
        if over == 0 { 0.0 } else { over as f64 / first.max(1) as f64 }
    });
    parts.fold(0.0, f64::max)
}
