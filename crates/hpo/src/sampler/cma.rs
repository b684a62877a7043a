//! CMA-ES over the numbers that are always active; choices and conditional parameters come from TPE. It is asynchronous:
//! whenever as many trials ended as a generation has, whoever asked for them, the distribution is updated.

use super::quasi::Halton;
use super::tpe::Tpe;
use super::{CmaSettings, Context, TpeSettings};
use crate::history::History;
use crate::linear::{dot, symmetric_eigen};
use crate::math::{exp, log};
use crate::random::Stream;
use crate::space::{Point, Space};
use crate::trial::{State, Trial};

#[derive(Debug, Clone)]
pub(crate) struct Cma {
    settings: CmaSettings,
    halton: Halton,
    others: Tpe,
    /// Which parameters it moves.
    numbers: Vec<usize>,
    rates: Rates,
    mean: Vec<f64>,
    width: f64,
    covariance: Vec<f64>,
    /// Lengths and directions of the axes of the covariance.
    axes: (Vec<f64>, Vec<f64>),
    path: Vec<f64>,
    path_of_width: Vec<f64>,
    generations: i32,
    seen: usize,
    best_start: f64,
    batch: Vec<(f64, Vec<f64>)>,
}

/// The constants of Hansen's tutorial.
#[derive(Debug, Clone)]
struct Rates {
    population: usize,
    weights: Vec<f64>,
    effective: f64,
    c_width: f64,
    damping: f64,
    c_path: f64,
    c_one: f64,
    c_rank: f64,
    expected_norm: f64,
}

impl Rates {
    fn new(dimensions: usize) -> Self {
        let n = dimensions.max(1) as f64;
        let population = 4 + (3.0 * log(n)) as usize;
        let raw: Vec<f64> =
            (0..population / 2).map(|at| log((population as f64 + 1.0) / 2.0) - log(at as f64 + 1.0)).collect();
        let sum: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|weight| weight / sum).collect();
        let effective = 1.0 / dot(&weights, &weights);
        let c_width = (effective + 2.0) / (n + effective + 5.0);
        let c_one = 2.0 / ((n + 1.3) * (n + 1.3) + effective);
        let c_rank = (2.0 * (effective - 2.0 + 1.0 / effective) / ((n + 2.0) * (n + 2.0) + effective)).min(1.0 - c_one);
        Self {
            population,
            weights,
            effective,
            c_width,
            damping: 1.0 + 2.0 * (((effective - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0) + c_width,
            c_path: (4.0 + effective / n) / (n + 4.0 + 2.0 * effective / n),
            c_one,
            c_rank,
            expected_norm: n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n)),
        }
    }
}

impl Cma {
    pub(crate) fn new(settings: CmaSettings, space: &Space, halton: Halton) -> Self {
        let movable = |at: &usize| !space.domain(*at).is_choice() && !space.is_conditional(*at);
        let numbers: Vec<usize> = (0..space.len()).filter(movable).collect();
        let n = numbers.len();
        let mut covariance = vec![0.0; n * n];
        (0..n).for_each(|at| covariance[at * n + at] = 1.0);
        Self {
            others: Tpe::new(TpeSettings::default(), space, halton.clone()),
            halton,
            rates: Rates::new(n),
            mean: vec![0.5; n],
            width: settings.width,
            axes: (vec![1.0; n], covariance.clone()),
            covariance,
            path: vec![0.0; n],
            path_of_width: vec![0.0; n],
            generations: 0,
            seen: 0,
            best_start: f64::INFINITY,
            batch: Vec::new(),
            numbers,
            settings,
        }
    }

    pub(crate) fn begun(&mut self, trial: &Trial) {
        self.others.begun(trial);
    }

    pub(crate) fn ended(&mut self, _space: &Space, history: &History, trial: &Trial) {
        if !trial.state.is_informative() {
            return;
        }
        self.seen += 1;
        if self.numbers.is_empty() {
            return;
        }
        let units = history.units(trial.number);
        let place: Vec<f64> = self.numbers.iter().map(|at| units[*at]).collect();
        let feasible = trial.state == State::Pruned || trial.is_feasible();
        let loss = if feasible { history.loss(trial.number) } else { f64::MAX };
        if self.seen <= self.settings.startup {
            if loss < self.best_start {
                self.best_start = loss;
                self.mean = place;
            }
            return;
        }
        self.batch.push((loss, place));
        if self.batch.len() >= self.rates.population {
            self.update();
        }
    }

    pub(crate) fn suggest(&self, context: &Context<'_>, stream: &mut Stream) -> Point {
        if self.seen < self.settings.startup {
            return context.space.at_units(&self.halton.units(context.number));
        }
        let mut units = if self.numbers.len() == context.space.len() {
            vec![0.5; context.space.len()]
        } else {
            super::gp::filled(&context.space.to_units(&self.others.suggest(context, stream)))
        };
        let mut place = self.draw(stream);
        for _ in 0..20 {
            if place.iter().all(|unit| (0.0..=1.0).contains(unit)) {
                break;
            }
            place = self.draw(stream);
        }
        self.numbers.iter().zip(place).for_each(|(at, unit)| units[*at] = unit.clamp(0.0, 1.0));
        context.space.at_units(&units)
    }

    fn draw(&self, stream: &mut Stream) -> Vec<f64> {
        let n = self.numbers.len();
        let (lengths, directions) = &self.axes;
        let drawn: Vec<f64> = lengths.iter().map(|length| length * stream.normal()).collect();
        (0..n).map(|row| self.mean[row] + self.width * dot(&directions[row * n..(row + 1) * n], &drawn)).collect()
    }

    fn update(&mut self) {
        let n = self.numbers.len();
        let mut batch = std::mem::take(&mut self.batch);
        batch.sort_by(|a, b| a.0.total_cmp(&b.0));
        let rates = &self.rates;
        let (lengths, directions) = &self.axes;
        // C^(-1/2) y
        let whitened = |y: &[f64]| {
            let along: Vec<f64> = (0..n)
                .map(|axis| (0..n).map(|row| directions[row * n + axis] * y[row]).sum::<f64>() / lengths[axis])
                .collect();
            (0..n).map(|row| dot(&directions[row * n..(row + 1) * n], &along)).collect::<Vec<f64>>()
        };
        // A trial of somebody else may lie far out; it pulls no more than a far draw would.
        let farthest = (n as f64).sqrt() + 2.0 * n as f64 / (n as f64 + 2.0);
        let steps: Vec<Vec<f64>> = batch
            .iter()
            .take(rates.weights.len())
            .map(|(_, place)| {
                let step: Vec<f64> = place.iter().zip(&self.mean).map(|(x, m)| (x - m) / self.width).collect();
                let white = whitened(&step);
                let norm = dot(&white, &white).sqrt();
                let shrink = if norm > farthest { farthest / norm } else { 1.0 };
                step.iter().map(|value| value * shrink).collect()
            })
            .collect();
        let mut moved = vec![0.0; n];
        for (weight, step) in rates.weights.iter().zip(&steps) {
            moved.iter_mut().zip(step).for_each(|(sum, value)| *sum += weight * value);
        }
        let white = whitened(&moved);
        for (mean, step) in self.mean.iter_mut().zip(&moved) {
            *mean = (*mean + self.width * step).clamp(0.0, 1.0);
        }
        self.generations += 1;
        let keep = (rates.c_width * (2.0 - rates.c_width) * rates.effective).sqrt();
        for (path, white) in self.path_of_width.iter_mut().zip(&white) {
            *path = (1.0 - rates.c_width) * *path + keep * white;
        }
        let norm = dot(&self.path_of_width, &self.path_of_width).sqrt();
        let settled = (1.0 - (1.0 - rates.c_width).powi(2 * self.generations)).sqrt();
        let goes_on = norm / settled < (1.4 + 2.0 / (n as f64 + 1.0)) * rates.expected_norm;
        let keep = (rates.c_path * (2.0 - rates.c_path) * rates.effective).sqrt();
        for (path, step) in self.path.iter_mut().zip(&moved) {
            *path = (1.0 - rates.c_path) * *path + if goes_on { keep * step } else { 0.0 };
        }
        let lost = if goes_on { 0.0 } else { rates.c_one * rates.c_path * (2.0 - rates.c_path) };
        for row in 0..n {
            for column in 0..n {
                let at = row * n + column;
                let rank: f64 =
                    rates.weights.iter().zip(&steps).map(|(weight, step)| weight * step[row] * step[column]).sum();
                self.covariance[at] = (1.0 - rates.c_one - rates.c_rank + lost) * self.covariance[at]
                    + rates.c_one * self.path[row] * self.path[column]
                    + rates.c_rank * rank;
            }
        }
        let change = rates.c_width / rates.damping * (norm / rates.expected_norm - 1.0);
        self.width = (self.width * exp(change.min(1.0))).clamp(1e-8, 1.0);
        let (values, vectors) = symmetric_eigen(&self.covariance, n);
        self.axes = (values.iter().map(|value| value.max(1e-16).sqrt()).collect(), vectors);
    }
}
