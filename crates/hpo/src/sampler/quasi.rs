//! Halton's sequence with digits permuted by the seed: any number of trials fills the space evenly, and trials need not
//! know of each other.

use crate::random::{Purpose, Stream};

#[derive(Debug, Clone)]
pub(crate) struct Halton {
    /// A permutation of the digits for each dimension; its length is the base, a prime.
    digits: Vec<Vec<u32>>,
}

impl Halton {
    pub(crate) fn new(dimensions: usize, seed: u64) -> Self {
        let permuted = |(dimension, base): (usize, u32)| {
            let mut digits: Vec<u32> = (0..base).collect();
            Stream::new(seed, Purpose::Scramble, dimension as u64).shuffle(&mut digits);
            digits
        };
        Self { digits: primes(dimensions).into_iter().enumerate().map(permuted).collect() }
    }

    /// The point with this number, in the unit cube.
    pub(crate) fn units(&self, number: u64) -> Vec<f64> {
        self.digits.iter().map(|digits| coordinate(digits, number)).collect()
    }
}

fn coordinate(digits: &[u32], mut number: u64) -> f64 {
    let base = digits.len() as u64;
    let (mut sum, mut weight) = (0.0, 1.0);
    while number > 0 {
        weight /= base as f64;
        sum += weight * f64::from(digits[(number % base) as usize]);
        number /= base;
    }
    // The zeros that follow for ever are permuted too.
    (sum + weight * f64::from(digits[0]) / (base as f64 - 1.0)).min(1.0 - f64::EPSILON / 2.0)
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
