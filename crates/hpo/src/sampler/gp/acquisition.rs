//! Where the expected improvement is highest: places spread over the space and around the best, then a climb from the
//! most promising of them, along slopes for numbers and by trying neighbours for whole numbers and choices.

use super::filled;
use super::model::{Model, Prediction};
use crate::descent::minimise;
use crate::math::{log, normal_below, normal_density};
use crate::random::Stream;
use crate::space::{Point, Space};

const CLIMBS: usize = 5;

/// The logarithm of the expected improvement of a normal prediction below a level, and its slopes by mean and deviation.
fn log_improvement(prediction: &Prediction, level: f64) -> (f64, f64, f64) {
    let deviation = prediction.variance.sqrt();
    let z = (level - prediction.mean) / deviation;
    if z > -25.0 {
        let (below, density) = (normal_below(z), normal_density(z));
        let gain = (density + z * below).max(1e-300);
        return (log(gain) + log(deviation), -below / (deviation * gain), density / (deviation * gain));
    }
    // Far out φ(z) + zΦ(z) tends to φ(z)/z².
    let value = -0.5 * z * z - 0.918_938_533_204_672_7 - 2.0 * log(-z) + log(deviation);
    (value, (z + 2.0 / z) / deviation, (z * z + 3.0) / deviation)
}

pub(super) fn best(space: &Space, model: &mut Model, pending: &[Vec<f64>], stream: &mut Stream) -> Point {
    pending.iter().for_each(|place| model.believe(place));
    let level = model.losses.iter().copied().fold(f64::INFINITY, f64::min);
    let size = model.places.len();
    let spread = (4_000_000 / (size * size).max(1)).clamp(96, 1000);
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|a, b| model.losses[*a].total_cmp(&model.losses[*b]));
    let mut candidates: Vec<Point> = (0..spread).map(|_| super::super::random(space, stream)).collect();
    for &near in order.iter().take(5) {
        for at in 0..spread / 20 {
            let width = [0.1, 0.02, 0.004][at % 3];
            let units: Vec<f64> = model.places[near]
                .iter()
                .map(
                    |unit| {
                        if stream.uniform() < 0.8 { (unit + width * stream.normal()).clamp(0.0, 1.0) } else { *unit }
                    },
                )
                .collect();
            candidates.push(space.at_units(&units));
        }
        candidates.push(space.at_units(&model.places[near]));
    }
    let score =
        |model: &Model, point: &Point| log_improvement(&model.predict(&filled(&space.to_units(point))), level).0;
    let mut scored: Vec<(f64, Point)> = candidates.into_iter().map(|point| (score(model, &point), point)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    // Starts that lie at the same hill would climb to the same top.
    let mut starts: Vec<Point> = Vec::new();
    for (_, point) in &scored {
        if starts.len() < CLIMBS && starts.iter().all(|start| apart(space, start, point) > 0.05) {
            starts.push(point.clone());
        }
    }
    let mut tops: Vec<(f64, Point)> = starts.into_iter().map(|start| climb(space, model, level, start)).collect();
    tops.sort_by(|a, b| b.0.total_cmp(&a.0));
    tops.extend(scored);
    let fresh = tops.iter().find(|(_, point)| {
        let place = filled(&space.to_units(point));
        model.places.iter().all(|other| other.iter().zip(&place).any(|(a, b)| (a - b).abs() > 1e-7))
    });
    fresh.map_or_else(|| super::super::random(space, stream), |(_, point)| point.clone())
}

fn apart(space: &Space, one: &Point, other: &Point) -> f64 {
    let (one, other) = (filled(&space.to_units(one)), filled(&space.to_units(other)));
    one.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn climb(space: &Space, model: &Model, level: f64, start: Point) -> (f64, Point) {
    let mut point = start;
    let mut height = f64::NEG_INFINITY;
    for _ in 0..3 {
        let (value, next) = climb_slopes(space, model, level, &point);
        let (value, next, moved) = try_neighbours(space, model, level, value, next);
        point = next;
        if !moved || value <= height + 1e-6 {
            return (value.max(height), point);
        }
        height = value;
    }
    (height, point)
}

/// Along the numbers without cells that are active.
fn climb_slopes(space: &Space, model: &Model, level: f64, point: &Point) -> (f64, Point) {
    let place = filled(&space.to_units(point));
    let free: Vec<usize> =
        (0..space.len()).filter(|at| point[*at].is_some() && space.domain(*at).cells().is_none()).collect();
    let mut whole = place.clone();
    let cost = |x: &[f64], gradient: &mut [f64]| {
        free.iter().zip(x).for_each(|(at, x)| whole[*at] = *x);
        let (prediction, of_mean, of_variance) = model.predict_with_slopes(&whole);
        let (value, by_mean, by_deviation) = log_improvement(&prediction, level);
        let deviation = prediction.variance.sqrt();
        for (slope, &at) in gradient.iter_mut().zip(&free) {
            *slope = -(by_mean * of_mean[at] + by_deviation * of_variance[at] / (2.0 * deviation));
        }
        -value
    };
    let from: Vec<f64> = free.iter().map(|at| place[*at]).collect();
    if free.is_empty() {
        return (log_improvement(&model.predict(&place), level).0, point.clone());
    }
    let (x, value) = minimise(cost, &from, &vec![(0.0, 1.0); free.len()], 25, 1e-3);
    let mut units = place;
    free.iter().zip(&x).for_each(|(at, x)| units[*at] = *x);
    (-value, space.at_units(&units))
}

fn try_neighbours(space: &Space, model: &Model, level: f64, value: f64, point: Point) -> (f64, Point, bool) {
    let (mut best, mut height, mut moved) = (point, value, false);
    for parameter in 0..space.len() {
        let domain = space.domain(parameter);
        let (Some(cells), Some(number)) = (domain.cells(), best[parameter]) else { continue };
        let all: Vec<f64> = if domain.is_choice() || cells <= 12 {
            (0..cells).map(|cell| domain.cell_number(cell)).collect()
        } else {
            let unit = domain.to_unit(number);
            let step = 1.0 / cells as f64;
            let steps = [-0.2, -0.05, -2.0 * step, -step, step, 2.0 * step, 0.05, 0.2];
            steps.iter().map(|step| domain.at_unit((unit + step).clamp(0.0, 1.0))).collect()
        };
        for other in all {
            if best[parameter] == Some(other) {
                continue;
            }
            let mut units = filled(&space.to_units(&best));
            units[parameter] = domain.to_unit(other);
            let next = space.at_units(&units);
            let value = log_improvement(&model.predict(&filled(&space.to_units(&next))), level).0;
            if value > height {
                (best, height, moved) = (next, value, true);
            }
        }
    }
    (height, best, moved)
}
