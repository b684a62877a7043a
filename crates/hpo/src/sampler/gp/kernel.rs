//! How alike two places are, and the fit of that to data: the most likely lengths, height and noise under mild priors.

use super::Data;
use crate::descent::minimise;
use crate::linear::{Cholesky, dot};
use crate::math::{exp, log};
use crate::random::{Purpose, Stream};

/// Noise, as a share of the variance of the losses, is at least this.
const LEAST_NOISE: f64 = 1e-6;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Smoothness {
    /// 1/length² for each parameter.
    pub(super) weights: Vec<f64>,
    pub(super) height: f64,
    pub(super) noise: f64,
}

/// Weighted squared distance; choices differ or do not.
pub(super) fn distance(weights: &[f64], kinds: &[bool], one: &[f64], other: &[f64]) -> f64 {
    let mut sum = 0.0;
    for at in 0..weights.len() {
        let apart = one[at] - other[at];
        sum += weights[at] * if kinds[at] { f64::from(u8::from(apart.abs() > 1e-9)) } else { apart * apart };
    }
    sum
}

/// Matérn 5/2 of a squared distance, and its derivative by it.
pub(super) fn matern(squared: f64) -> (f64, f64) {
    let a = (5.0 * squared).sqrt();
    let fall = exp(-a);
    ((1.0 + a + a * a / 3.0) * fall, -(5.0 / 6.0) * (1.0 + a) * fall)
}

/// The best of two starts: everything matters much, and everything matters little.
pub(super) fn fit(kinds: &[bool], data: &Data, seed: u64) -> Smoothness {
    let dimensions = kinds.len();
    let mut bounds = vec![(log(1e-3), log(1e4)); dimensions];
    bounds.push((log(1e-2), log(1e2)));
    bounds.push((log(LEAST_NOISE), log(1.0)));
    let mut stream = Stream::new(seed, Purpose::Fit, data.losses.len() as u64);
    let squares = squares(kinds, data);
    let mut best: Option<(f64, Vec<f64>)> = None;
    for (weight, noise) in [(4.0, 1e-4), (0.5, 1e-2)] {
        let mut from: Vec<f64> = (0..dimensions).map(|_| log(weight) + 0.2 * stream.normal()).collect();
        from.push(0.0);
        from.push(log(noise));
        let cost = |x: &[f64], gradient: &mut [f64]| unlikeliness(data, &squares, x, gradient);
        let (x, value) = minimise(cost, &from, &bounds, 40, 1e-3);
        if value.is_finite() && best.as_ref().is_none_or(|(lowest, _)| value < *lowest) {
            best = Some((value, x));
        }
    }
    let x = best.map_or_else(|| vec![0.0; dimensions + 2], |(_, x)| x);
    Smoothness {
        weights: x[..dimensions].iter().map(|weight| exp(*weight)).collect(),
        height: exp(x[dimensions]),
        noise: exp(x[dimensions + 1]),
    }
}

/// Squared distances of every pair (rows of the lower triangle without its diagonal), for each parameter.
fn squares(kinds: &[bool], data: &Data) -> Vec<Vec<f64>> {
    let pairs = |dimension: usize| {
        let mut squares = Vec::with_capacity(data.places.len() * data.places.len() / 2);
        for row in 0..data.places.len() {
            for column in 0..row {
                let apart = data.places[row][dimension] - data.places[column][dimension];
                squares.push(if kinds[dimension] { f64::from(u8::from(apart.abs() > 1e-9)) } else { apart * apart });
            }
        }
        squares
    };
    (0..kinds.len()).map(pairs).collect()
}

/// Middles and spreads of the logarithms of weights, height and noise.
fn priors(dimensions: usize) -> impl Iterator<Item = (f64, f64)> {
    let weights = std::iter::repeat_n((1.7, 1.0), dimensions);
    weights.chain([(0.0, 1.0), (-9.2, 2.0)])
}

/// The negative logarithm of likelihood and priors, by the logarithms of weights, height and noise.
fn unlikeliness(data: &Data, squares: &[Vec<f64>], x: &[f64], gradient: &mut [f64]) -> f64 {
    let (size, dimensions) = (data.losses.len(), squares.len());
    let weights: Vec<f64> = x[..dimensions].iter().map(|weight| exp(*weight)).collect();
    let (height, noise) = (exp(x[dimensions]), exp(x[dimensions + 1]));
    let mut together = vec![0.0; size * (size - 1) / 2];
    for (weight, squares) in weights.iter().zip(squares) {
        for (sum, square) in together.iter_mut().zip(squares) {
            *sum += weight * square;
        }
    }
    let likeness: Vec<(f64, f64)> = together.iter().map(|squared| matern(*squared)).collect();
    let mut factor = Cholesky::default();
    let mut at = 0;
    let mut matrix_row = Vec::with_capacity(size);
    for row in 0..size {
        matrix_row.clear();
        matrix_row.extend(likeness[at..at + row].iter().map(|(value, _)| height * value));
        matrix_row.push(height + noise);
        factor.push(&matrix_row);
        at += row;
    }
    let alpha = factor.solve(&data.losses);
    let mut cost = 0.5 * dot(&alpha, &data.losses) + 0.5 * factor.log_determinant();
    let inverse = factor.inverse();
    // dcost/dK = (K⁻¹ - ααᵀ)/2, off the diagonal twice.
    gradient.fill(0.0);
    let mut slopes = vec![0.0; likeness.len()];
    let (mut pair, mut cell) = (0, 0);
    for row in 0..size {
        for column in 0..row {
            let pull = inverse[cell] - alpha[row] * alpha[column];
            let (value, slope) = likeness[pair];
            gradient[dimensions] += pull * height * value;
            slopes[pair] = pull * height * slope;
            pair += 1;
            cell += 1;
        }
        let pull = 0.5 * (inverse[cell] - alpha[row] * alpha[row]);
        gradient[dimensions] += pull * height;
        gradient[dimensions + 1] += pull * noise;
        cell += 1;
    }
    for dimension in 0..dimensions {
        gradient[dimension] = weights[dimension] * dot(&slopes, &squares[dimension]);
    }
    // Weights may be anything within reason, the height is near that of the data, and noise is small unless the data
    // insist: a process that calls everything noise explores corners for ever.
    for (at, (middle, spread)) in priors(dimensions).enumerate() {
        let away = (x[at] - middle) / spread;
        cost += 0.5 * away * away;
        gradient[at] += away / spread;
    }
    if cost.is_finite() { cost } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_that_of_the_cost() {
        let places: Vec<Vec<f64>> =
            (0..9u8).map(|at| vec![f64::from(at) / 9.0, f64::from(at * 5 % 9) / 9.0, f64::from(at % 2)]).collect();
        let losses = places.iter().map(|place| place[0] * 2.0 - place[1] * place[1] + 0.3 * place[2]).collect();
        let (data, kinds) = (Data { places, losses }, [false, false, true]);
        let squares = squares(&kinds, &data);
        let x = [0.3, -0.5, 0.1, 0.2, -3.0];
        let mut gradient = [0.0; 5];
        unlikeliness(&data, &squares, &x, &mut gradient);
        for at in 0..5 {
            let (mut low, mut high, mut unused) = (x, x, [0.0; 5]);
            low[at] -= 1e-6;
            high[at] += 1e-6;
            let slope = (unlikeliness(&data, &squares, &high, &mut unused)
                - unlikeliness(&data, &squares, &low, &mut unused))
                / 2e-6;
            assert!((slope - gradient[at]).abs() < 1e-4 * (1.0 + slope.abs()), "{at}: {slope} {}", gradient[at]);
        }
    }
}
