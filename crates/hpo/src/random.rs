//! Streams of numbers that belong to one trial and one purpose: what is drawn for one trial moves no other, so that a
//! study needs no state of a generator, only its seed.

use crate::math::normal_quantile;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Suggest = 1,
    Scramble = 2,
    Fit = 3,
    Bracket = 4,
    Forest = 5,
}

pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose, whose: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(purpose as u64).to_le_bytes());
        key[16..24].copy_from_slice(&whose.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// From 0 up to, not including, 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    pub(crate) fn normal(&mut self) -> f64 {
        normal_quantile((self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64) + 0.5 / (1u64 << 53) as f64)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count.saturating_sub(1))
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
