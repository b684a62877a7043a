//! A mixture of truncated kernels over the whole space: one component a trial, and one that is uniform. Densities are
//! relative to the uniform one, so a parameter that a component does not have, or a candidate does not have, adds nothing.

use crate::history::History;
use crate::math::{log, log_sum_exp, normal_below, normal_between, normal_quantile};
use crate::random::Stream;
use crate::space::{Point, Space};
use std::cell::RefCell;
use std::collections::BTreeMap;

const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_7;
/// No kernel is narrower than this share of what evenly spread trials would leave each.
const NARROWEST: f64 = 0.5;

/// Kernels of one parameter, one for each component.
#[derive(Default)]
struct Kernels {
    middles: Vec<f64>,
    /// 1/width; 0 where the component has no such parameter.
    sharpness: Vec<f64>,
    /// The logarithm of what makes the truncated kernel a density.
    scales: Vec<f64>,
    /// Of choices: the choice of each component, none where it has no such parameter.
    choices: Vec<Option<u32>>,
    narrowest: f64,
    /// Of cells that were asked for, what each component has there: candidates share few cells.
    cells: RefCell<BTreeMap<u64, Vec<f64>>>,
    /// How many choices there are, and how often a component keeps its own without looking at the others.
    count: f64,
    keeps: f64,
    /// Logarithms of the share of the own choice and of any other.
    own: f64,
    other: f64,
}

pub(super) struct Mixture {
    kernels: Vec<Kernels>,
    /// The last is the uniform component.
    log_weights: Vec<f64>,
    weights: Vec<f64>,
    total: f64,
}

impl Mixture {
    pub(super) fn new(space: &Space, history: &History, trials: &[(u32, f64)]) -> Self {
        let mut weights: Vec<f64> = trials.iter().map(|(_, weight)| *weight).collect();
        weights.push(1.0);
        let total: f64 = weights.iter().sum();
        let narrowest = NARROWEST / (trials.len() as f64 + 2.0).min(100.0);
        let kernels = (0..space.len()).map(|parameter| {
            let domain = space.domain(parameter);
            let units: Vec<f64> = trials.iter().map(|(number, _)| history.units(*number)[parameter]).collect();
            if domain.is_choice() {
                Kernels::of_choices(&units, domain.cells().unwrap_or(1) as f64)
            } else {
                // A kernel narrower than a cell would see nothing but its own value.
                let cell = domain.cells().map_or(0.0, |cells| 0.5 / cells as f64);
                Kernels::of_numbers(&units, narrowest.max(cell))
            }
        });
        let log_weights = weights.iter().map(|weight| log(weight / total)).collect();
        Self { kernels: kernels.collect(), log_weights, weights, total }
    }

    pub(super) fn sample(&self, space: &Space, stream: &mut Stream) -> Point {
        let component = self.pick(stream);
        let mut point = vec![None; space.len()];
        for &parameter in space.order() {
            if space.active(parameter, &point) {
                let unit = self.kernels[parameter].sample(component, stream);
                point[parameter] = Some(space.domain(parameter).at_unit(unit));
            }
        }
        point
    }

    fn pick(&self, stream: &mut Stream) -> usize {
        let mut left = stream.uniform() * self.total;
        for (component, weight) in self.weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return component;
            }
        }
        self.weights.len() - 1
    }

    pub(super) fn log_density(&self, space: &Space, point: &Point, units: &[f64]) -> f64 {
        let mut sums = self.log_weights.clone();
        for (parameter, kernels) in self.kernels.iter().enumerate() {
            if let Some(number) = point[parameter] {
                kernels.add_log_densities(space.domain(parameter).cell(number), number, units[parameter], &mut sums);
            }
        }
        log_sum_exp(&sums)
    }
}

impl Kernels {
    fn of_choices(units: &[f64], count: f64) -> Self {
        let index = |unit: &f64| (!unit.is_nan()).then_some((unit * count) as u32);
        let prior = 1.0 / (units.len() as f64 + 1.0);
        let whole = 1.0 + prior * count;
        Self {
            choices: units.iter().map(index).collect(),
            count,
            keeps: 1.0 / whole,
            own: log((1.0 + prior) / whole * count),
            other: log(prior / whole * count),
            ..Self::default()
        }
    }

    /// A kernel is as wide as the gap to its farther neighbour: narrow where good trials agree, wide where they do not.
    fn of_numbers(units: &[f64], narrowest: f64) -> Self {
        let mut order: Vec<usize> = (0..units.len()).filter(|at| !units[*at].is_nan()).collect();
        order.sort_by(|a, b| units[*a].total_cmp(&units[*b]));
        let mut widths = vec![0.0; units.len()];
        for (place, &at) in order.iter().enumerate() {
            let before = place.checked_sub(1).map(|place| units[at] - units[order[place]]);
            let after = order.get(place + 1).map(|other| units[*other] - units[at]);
            let gap = match (before, after) {
                (Some(before), Some(after)) => before.max(after),
                (Some(gap), None) | (None, Some(gap)) => gap,
                (None, None) => units[at].max(1.0 - units[at]),
            };
            widths[at] = gap.clamp(narrowest, 1.0);
        }
        let mut kernels = Self::default();
        for (unit, width) in units.iter().zip(widths) {
            if unit.is_nan() {
                kernels.middles.push(0.5);
                kernels.sharpness.push(0.0);
                kernels.scales.push(0.0);
            } else {
                // Seven widths from the walls nothing is cut off.
                let wall = unit.min(1.0 - unit) / width;
                let inside = if wall > 7.0 { 1.0 } else { normal_between(-unit / width, (1.0 - unit) / width) };
                kernels.middles.push(*unit);
                kernels.sharpness.push(1.0 / width);
                kernels.scales.push(-log(width * inside) - LN_SQRT_TAU);
            }
        }
        kernels.narrowest = narrowest;
        kernels
    }

    fn sample(&self, component: usize, stream: &mut Stream) -> f64 {
        if let Some(choice) = self.choices.get(component) {
            return match choice {
                Some(choice) if stream.uniform() < self.keeps => (f64::from(*choice) + 0.5) / self.count,
                _ => stream.uniform(),
            };
        }
        match self.sharpness.get(component) {
            Some(sharpness) if *sharpness > 0.0 => {
                let middle = self.middles[component];
                let low = normal_below(-middle * sharpness);
                let high = normal_below((1.0 - middle) * sharpness);
                let drawn = normal_quantile(low + stream.uniform() * (high - low));
                (middle + drawn / sharpness).clamp(0.0, 1.0)
            }
            _ => stream.uniform(),
        }
    }

    /// The logarithm of the density of each component in a cell.
    fn in_cell(&self, low: f64, high: f64) -> Vec<f64> {
        let components = self.middles.iter().zip(&self.sharpness).zip(&self.scales);
        let density = |((middle, sharpness), scale): ((&f64, &f64), &f64)| {
            if *sharpness <= 0.0 {
                return 0.0;
            }
            let share = normal_between((low - middle) * sharpness, (high - middle) * sharpness) / (high - low);
            // The scale holds 1/width, which a probability does not need.
            log(share.max(1e-300) / sharpness) + scale + LN_SQRT_TAU
        };
        components.map(density).collect()
    }

    fn add_log_densities(&self, cell: Option<(f64, f64)>, number: f64, unit: f64, sums: &mut [f64]) {
        if !self.choices.is_empty() {
            for (sum, choice) in sums.iter_mut().zip(&self.choices) {
                *sum += match choice {
                    Some(choice) if f64::from(*choice) == number => self.own,
                    Some(_) => self.other,
                    None => 0.0,
                };
            }
            return;
        }
        // Narrow cells are as good as points.
        if let Some((low, high)) = cell.filter(|(low, high)| high - low > 0.3 * self.narrowest) {
            let mut cells = self.cells.borrow_mut();
            let known = cells.entry(number.to_bits()).or_insert_with(|| self.in_cell(low, high));
            sums.iter_mut().zip(known).for_each(|(sum, density)| *sum += *density);
            return;
        }
        let components = self.middles.iter().zip(&self.sharpness).zip(&self.scales);
        for (sum, ((middle, sharpness), scale)) in sums.iter_mut().zip(components) {
            let away = (unit - middle) * sharpness;
            *sum += scale - 0.5 * away * away;
        }
    }
}
