//! Random numbers that depend on nothing but a seed, a purpose and a number: the tenth galaxy is the same whether nine
//! were made before it or none, and whoever makes it.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The generator for one thing among many made with one seed.
pub fn generator(seed: u64, purpose: &str, number: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&number.to_le_bytes());
    key[16..24].copy_from_slice(&fnv(purpose).to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// A number drawn from `low` to `high`.
pub fn between(random: &mut impl Rng, low: f32, high: f32) -> f32 {
    low + (high - low) * random.random::<f32>()
}

/// A number drawn from the normal distribution with mean 0 and deviation 1.
pub fn normal(random: &mut impl Rng) -> f32 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    (radius * (std::f64::consts::TAU * random.random::<f64>()).cos()) as f32
}

/// The numbers below `count` in a random order.
pub fn shuffled(random: &mut impl Rng, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.random_range(0..=last));
    }
    order
}

fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_purpose_and_number_give_the_same_numbers() {
        let draw = |seed, purpose, number| generator(seed, purpose, number).random::<u64>();
        assert_eq!(draw(1, "galaxy", 7), draw(1, "galaxy", 7));
        assert_ne!(draw(1, "galaxy", 7), draw(2, "galaxy", 7));
        assert_ne!(draw(1, "galaxy", 7), draw(1, "lung", 7));
        assert_ne!(draw(1, "galaxy", 7), draw(1, "galaxy", 8));
    }

    #[test]
    fn a_shuffled_order_has_every_number_once() {
        let mut order = shuffled(&mut generator(3, "order", 0), 100);
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
