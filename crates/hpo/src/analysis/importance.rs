//! Which parameters mattered: the share of the variance of the objective that each explains alone (fANOVA). A forest
//! of trees is grown over the unit cube; a tree is made of boxes, so its mean along one parameter, over all values of the
//! others, is exact. What is explained only by parameters together is told apart.
//!
//! A parameter that is not active counts as the middle of its domain.

use crate::random::{Purpose, Stream};
use crate::study::Study;
use serde::Serialize;

const TREES: u64 = 24;
/// So many trials at most, evenly taken from all.
const MOST: usize = 512;
const LEAST_LEAF: usize = 2;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Importance {
    /// None is what parameters explain only together.
    pub parameter: Option<String>,
    /// Of 1.
    pub share: f64,
}

/// The shares of the parameters for one objective, the most important first, and last what they explain together only.
/// Empty for fewer than eight trials or where all had the same value.
pub fn importances(study: &Study, objective: usize) -> Vec<Importance> {
    let Some(direction) = study.settings().objectives.get(objective).map(|one| one.direction) else {
        return Vec::new();
    };
    let complete: Vec<_> = study.trials().iter().filter(|trial| !trial.values.is_empty()).collect();
    let stride = complete.len().div_ceil(MOST).max(1);
    let chosen: Vec<_> = complete.iter().step_by(stride).collect();
    let mut losses: Vec<f64> = chosen.iter().map(|trial| direction.loss(trial.values[objective])).collect();
    tame(&mut losses);
    let first = losses.first().copied().unwrap_or(0.0);
    if losses.len() < 8 || losses.iter().all(|loss| *loss == first) {
        return Vec::new();
    }
    let places: Vec<Vec<f64>> =
        chosen.iter().map(|trial| crate::sampler::filled(&study.space().to_units(&trial.point))).collect();
    let dimensions = study.space().len();
    let (mut alone, mut trees) = (vec![0.0; dimensions], 0.0);
    for tree in 0..TREES {
        let mut stream = Stream::new(study.settings().seed, Purpose::Forest, tree);
        let sample: Vec<usize> = (0..losses.len()).map(|_| stream.below(losses.len())).collect();
        let mut leaves = Vec::new();
        let whole = vec![(0.0, 1.0); dimensions];
        grow(&places, &losses, sample, whole, &mut stream, &mut leaves);
        let mean: f64 = leaves.iter().map(|leaf| leaf.value * leaf.volume).sum();
        let variance: f64 = leaves.iter().map(|leaf| leaf.volume * (leaf.value - mean) * (leaf.value - mean)).sum();
        if variance <= 0.0 {
            continue;
        }
        trees += 1.0;
        for (parameter, share) in alone.iter_mut().enumerate() {
            *share += variance_along(&leaves, parameter, mean) / variance;
        }
    }
    if trees == 0.0 {
        return Vec::new();
    }
    let mut shares: Vec<Importance> = study
        .space()
        .parameters()
        .iter()
        .zip(&alone)
        .map(|(one, sum)| Importance { parameter: Some(one.name.clone()), share: (sum / trees).clamp(0.0, 1.0) })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    let sum: f64 = shares.iter().map(|one| one.share).sum();
    shares.push(Importance { parameter: None, share: (1.0 - sum).max(0.0) });
    shares
}

/// One hopeless trial must not be all that is explained.
fn tame(losses: &mut [f64]) {
    let mut sorted = losses.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(middle) = sorted.get(sorted.len() / 2).copied() else { return };
    let ceiling = middle + 4.0 * (middle - sorted[0]).max(sorted[sorted.len() * 3 / 4] - middle);
    losses.iter_mut().for_each(|loss| *loss = loss.min(ceiling));
}

struct Leaf {
    sides: Vec<(f64, f64)>,
    volume: f64,
    value: f64,
}

/// Splits where the squares fall most, among half of the parameters, until few are left.
fn grow(
    places: &[Vec<f64>],
    losses: &[f64],
    sample: Vec<usize>,
    sides: Vec<(f64, f64)>,
    stream: &mut Stream,
    leaves: &mut Vec<Leaf>,
) {
    let mut parameters: Vec<usize> = (0..sides.len()).collect();
    stream.shuffle(&mut parameters);
    let tried = sides.len().div_ceil(2).max(sides.len().min(3));
    let mut best: Option<(f64, usize, f64)> = None;
    for &parameter in &parameters[..tried] {
        let mut sorted = sample.clone();
        sorted.sort_by(|a, b| places[*a][parameter].total_cmp(&places[*b][parameter]));
        let total: f64 = sorted.iter().map(|at| losses[*at]).sum();
        let mut left = 0.0;
        for count in 1..sorted.len() {
            left += losses[sorted[count - 1]];
            let (below, above) = (places[sorted[count - 1]][parameter], places[sorted[count]][parameter]);
            if count < LEAST_LEAF || sorted.len() - count < LEAST_LEAF || above - below < 1e-12 {
                continue;
            }
            let right = total - left;
            let score = left * left / count as f64 + right * right / (sorted.len() - count) as f64
                - total * total / sorted.len() as f64;
            if score > 1e-15 && best.is_none_or(|(highest, _, _)| score > highest) {
                best = Some((score, parameter, 0.5 * (below + above)));
            }
        }
    }
    let Some((_, parameter, border)) = best else {
        let value = sample.iter().map(|at| losses[*at]).sum::<f64>() / sample.len() as f64;
        let volume = sides.iter().map(|(low, high)| high - low).product();
        leaves.push(Leaf { sides, volume, value });
        return;
    };
    let (low, high): (Vec<usize>, Vec<usize>) = sample.into_iter().partition(|at| places[*at][parameter] < border);
    let mut below = sides.clone();
    below[parameter].1 = border;
    let mut above = sides;
    above[parameter].0 = border;
    grow(places, losses, low, below, stream, leaves);
    grow(places, losses, high, above, stream, leaves);
}

/// The variance of the mean along one parameter, over all values of the others.
fn variance_along(leaves: &[Leaf], parameter: usize, mean: f64) -> f64 {
    let mut borders: Vec<f64> = leaves.iter().map(|leaf| leaf.sides[parameter].0).collect();
    borders.push(1.0);
    borders.sort_by(f64::total_cmp);
    borders.dedup();
    // Each leaf adds its height to the stretch that it covers.
    let mut changes = vec![0.0; borders.len() + 1];
    for leaf in leaves {
        let (low, high) = leaf.sides[parameter];
        let weight = leaf.value * leaf.volume / (high - low).max(1e-300);
        changes[borders.partition_point(|border| *border < low)] += weight;
        changes[borders.partition_point(|border| *border < high)] -= weight;
    }
    let (mut level, mut variance) = (0.0, 0.0);
    for (at, stretch) in borders.windows(2).enumerate() {
        level += changes[at];
        variance += (stretch[1] - stretch[0]) * (level - mean) * (level - mean);
    }
    variance
}
