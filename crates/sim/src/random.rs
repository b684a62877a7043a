//! Streams of numbers that belong to one task, attempt or node and to one purpose: no draw moves another.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Runtime,
    QueueWait,
    Fate,
    Files,
    Eviction,
    NodeLoss,
}

pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose, whose: [u32; 3]) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..12].copy_from_slice(&(purpose as u32).to_le_bytes());
        for (part, bytes) in whose.iter().zip(key[12..].chunks_exact_mut(4)) {
            bytes.copy_from_slice(&part.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// From 0 up to, not including, 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    /// With mean 0 and deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// With mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    pub(crate) fn between(&mut self, least: u32, most: u32) -> u32 {
        least + self.0.next_u32() % (most.saturating_sub(least) + 1)
    }
}
