//! The process, given data: what is predicted at a place, how surely, and how both change from there.

use super::Data;
use super::kernel::{Smoothness, distance, matern};
use crate::linear::{Cholesky, dot};

#[derive(Debug, Clone)]
pub(super) struct Model {
    smoothness: Smoothness,
    pub(super) kinds: Vec<bool>,
    /// Whose rows the factor holds, in order.
    numbers: Vec<u32>,
    pub(super) places: Vec<Vec<f64>>,
    pub(super) losses: Vec<f64>,
    factor: Cholesky,
    alpha: Vec<f64>,
}

pub(super) struct Prediction {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Model {
    pub(super) fn new(smoothness: Smoothness, kinds: Vec<bool>) -> Self {
        Self {
            smoothness,
            kinds,
            numbers: Vec::new(),
            places: Vec::new(),
            losses: Vec::new(),
            factor: Cholesky::default(),
            alpha: Vec::new(),
        }
    }

    /// Whether its rows are the first of these.
    pub(super) fn begins(&self, numbers: &[u32]) -> bool {
        numbers.starts_with(&self.numbers)
    }

    /// Takes in what is new; what is believed of trials on the way is forgotten.
    pub(super) fn observe(&mut self, numbers: &[u32], data: Data) {
        self.factor.truncate(self.numbers.len());
        self.places.truncate(self.numbers.len());
        for place in &data.places[self.numbers.len()..] {
            self.push(place.clone());
        }
        self.numbers = numbers.to_vec();
        self.losses = data.losses;
        self.alpha = self.factor.solve(&self.losses);
    }

    fn push(&mut self, place: Vec<f64>) {
        let mut row = self.likeness(&place);
        row.push(self.smoothness.height + self.smoothness.noise);
        self.factor.push(&row);
        self.places.push(place);
    }

    /// A trial on the way gives what is predicted: the mean stays, the doubt goes.
    pub(super) fn believe(&mut self, place: &[f64]) {
        let mean = dot(&self.likeness(place), &self.alpha);
        self.push(place.to_vec());
        self.losses.push(mean);
        self.alpha.push(0.0);
    }

    fn likeness(&self, place: &[f64]) -> Vec<f64> {
        let Smoothness { weights, height, .. } = &self.smoothness;
        self.places.iter().map(|other| height * matern(distance(weights, &self.kinds, place, other)).0).collect()
    }

    pub(super) fn predict(&self, place: &[f64]) -> Prediction {
        let likeness = self.likeness(place);
        let solved = self.factor.solve_lower(&likeness);
        let variance = (self.smoothness.height - dot(&solved, &solved)).max(1e-12);
        Prediction { mean: dot(&likeness, &self.alpha), variance }
    }

    /// Also how mean and variance change along every parameter; not along choices.
    pub(super) fn predict_with_slopes(&self, place: &[f64]) -> (Prediction, Vec<f64>, Vec<f64>) {
        let Smoothness { weights, height, .. } = &self.smoothness;
        let both: Vec<(f64, f64)> =
            self.places.iter().map(|other| matern(distance(weights, &self.kinds, place, other))).collect();
        let likeness: Vec<f64> = both.iter().map(|(value, _)| height * value).collect();
        let solved = self.factor.solve_lower(&likeness);
        let variance = (height - dot(&solved, &solved)).max(1e-12);
        let pulls = self.factor.solve_upper(&solved);
        let (mut of_mean, mut of_variance) = (vec![0.0; place.len()], vec![0.0; place.len()]);
        for (at, other) in self.places.iter().enumerate() {
            let slope = 2.0 * height * both[at].1;
            for dimension in 0..place.len() {
                if !self.kinds[dimension] {
                    let change = slope * weights[dimension] * (place[dimension] - other[dimension]);
                    of_mean[dimension] += self.alpha[at] * change;
                    of_variance[dimension] -= 2.0 * pulls[at] * change;
                }
            }
        }
        (Prediction { mean: dot(&likeness, &self.alpha), variance }, of_mean, of_variance)
    }
}
