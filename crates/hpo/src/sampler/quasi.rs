//! Halton's sequence with digits permuted by the seed: any number of trials fills the space evenly, and trials need not
//! know of each other.

use crate::random::{Purpose, Stream};

#[derive(Debug, Clone)]
pub(crate) struct Halton {
    /// For each dimension a permutation of the digits for each place; their length is the base, a prime.
    digits: Vec<Vec<Vec<u32>>>,
}

impl Halton {
    pub(crate) fn new(dimensions: usize, seed: u64) -> Self {
        let permuted = |(dimension, base): (usize, u32)| {
            let mut stream = Stream::new(seed, Purpose::Scramble, dimension as u64);
            // Finer than any number of trials.
            let places = (36.0 / f64::from(base.ilog2() + 1)).ceil() as usize;
            let one = |_| {
                let mut digits: Vec<u32> = (0..base).collect();
                stream.shuffle(&mut digits);
                digits
            };
            (0..places).map(one).collect()
        };
        Self { digits: primes(dimensions).into_iter().enumerate().map(permuted).collect() }
    }

    /// The point with this number, in the unit cube.
    pub(crate) fn units(&self, number: u64) -> Vec<f64> {
        self.digits.iter().map(|places| coordinate(places, number)).collect()
    }
}

fn coordinate(places: &[Vec<u32>], mut number: u64) -> f64 {
    let (mut sum, mut weight) = (0.0, 1.0);
    for digits in places {
        let base = digits.len() as u64;
        weight /= base as f64;
        sum += weight * f64::from(digits[(number % base) as usize]);
        number /= base;
    }
    (sum + 0.5 * weight).min(1.0 - f64::EPSILON / 2.0)
}

fn primes(count: usize) -> Vec<u32> {
    let mut primes: Vec<u32> = Vec::with_capacity(count);
    let mut next = 2;
    while primes.len() < count {
        if primes.iter().take_while(|prime| *prime * *prime <= next).all(|prime| next % prime != 0) {
            primes.push(next);
        }
        next += 1;
    }
    primes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_third_and_fifth_gets_its_share() {
        let halton = Halton::new(3, 7);
        let points: Vec<Vec<f64>> = (0..30).map(|number| halton.units(number)).collect();
        for (dimension, parts) in [(0, 2), (1, 3), (2, 5)] {
            let mut counts = vec![0; parts];
            points.iter().for_each(|point| counts[(point[dimension] * parts as f64) as usize] += 1);
            assert_eq!(counts, vec![30 / parts; parts], "dimension {dimension}");
        }
    }
}
