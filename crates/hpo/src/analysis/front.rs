//! With several objectives: the trials that no other beats in all of them, and the volume that they dominate.

use crate::sampler::{by_front, dominates};
use crate::study::Study;
use crate::trial::Trial;

fn losses(study: &Study, trial: &Trial) -> Vec<f64> {
    trial.values.iter().zip(&study.settings().objectives).map(|(value, one)| one.direction.loss(*value)).collect()
}

/// Complete trials that keep the constraints and that no other beats in every objective, by number. With one objective
/// these are the best trial and those that equal it.
pub fn front(study: &Study) -> Vec<u32> {
    front_among(study, |_| true)
}

/// The same as if there were only some of the trials.
pub fn front_among(study: &Study, counts: impl Fn(&Trial) -> bool) -> Vec<u32> {
    let mut sorted: Vec<(Vec<f64>, u32)> = study
        .trials()
        .iter()
        .filter(|trial| trial.is_feasible() && counts(trial))
        .map(|trial| (losses(study, trial), trial.number))
        .collect();
    // After this order nobody is beaten by a later one, so the front so far is all there is to compare with.
    sorted.sort_by(|a, b| {
        let lexical = a.0.iter().zip(&b.0).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
        lexical.unwrap_or(std::cmp::Ordering::Equal).then(a.1.cmp(&b.1))
    });
    let mut front: Vec<(Vec<f64>, u32)> = Vec::new();
    for one in sorted {
        if !front.iter().rev().any(|other| dominates(&other.0, &one.0)) {
            front.push(one);
        }
    }
    let mut numbers: Vec<u32> = front.into_iter().map(|(_, number)| number).collect();
    numbers.sort_unstable();
    numbers
}

/// Trials of one front in another order: those first whose neighbours are farthest from them, and so the ends of the front.
pub fn spread(study: &Study, front: &[u32]) -> Vec<u32> {
    by_front(study.trials(), study.history(), front)
}

/// How much of the space of objectives the front dominates, up to a reference: a point that is as bad as can be
/// accepted, in the order and the units of the objectives. Nothing is counted beyond it.
pub fn hypervolume(study: &Study, reference: &[f64]) -> f64 {
    let directions = study.settings().objectives.iter().map(|one| one.direction);
    let reference: Vec<f64> = reference.iter().zip(directions).map(|(value, one)| one.loss(*value)).collect();
    let trials = front(study).into_iter().filter_map(|number| study.trial(number));
    let mut points: Vec<Vec<f64>> = trials.map(|trial| losses(study, trial)).collect();
    points.retain(|point| point.len() == reference.len() && point.iter().zip(&reference).all(|(a, b)| a < b));
    volume(points, &reference)
}

/// Slices along the last objective, each with the volume of what reaches it in the others.
fn volume(mut points: Vec<Vec<f64>>, reference: &[f64]) -> f64 {
    let Some((limit, others)) = reference.split_last() else { return 1.0 };
    if points.is_empty() {
        return 0.0;
    }
    if others.is_empty() {
        let lowest = points.iter().map(|point| point[0]).fold(f64::INFINITY, f64::min);
        return limit - lowest;
    }
    let last = others.len();
    points.sort_by(|a, b| a[last].total_cmp(&b[last]));
    let mut sum = 0.0;
    let mut reached: Vec<Vec<f64>> = Vec::new();
    for at in 0..points.len() {
        let one = points[at][..last].to_vec();
        if !reached.iter().any(|other| other == &one || dominates(other, &one)) {
            reached.retain(|other| !dominates(&one, other));
            reached.push(one);
        }
        let top = points.get(at + 1).map_or(*limit, |next| next[last]);
        if top > points[at][last] {
            sum += (top - points[at][last]) * volume(reached.clone(), others);
        }
    }
    sum
}
