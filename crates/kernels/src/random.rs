//! Seeded random numbers (SplitMix64): the same seed gives the same data set and the same order on every machine.

#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Random {
    /// One of many independent streams of a seed.
    pub(crate) fn new(seed: u64, stream: &[u64]) -> Random {
        Random(
            stream.iter().fold(mix(seed ^ 0x9e37_79b9_7f4a_7c15), |state, part| mix(state ^ mix(part.wrapping_add(1)))),
        )
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Less than `bound`, which must not be zero. The bias is below one in 2^32 for any bound that occurs here.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Around `mean`, at most `spread` (a share of it) away.
    pub(crate) fn around(&mut self, mean: u64, spread: f64) -> u64 {
        let reach = (mean as f64 * spread.clamp(0.0, 1.0)) as u64;
        mean - reach + self.below(2 * reach + 1)
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        let (words, rest) = bytes.as_chunks_mut::<8>();
        for word in words {
            *word = self.next().to_le_bytes();
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&self.next().to_le_bytes()[..rest.len()]);
        }
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_same_seed_and_stream_give_the_same_numbers() {
        let (mut a, mut b) = (Random::new(7, &[1, 2]), Random::new(7, &[1, 2]));
        assert_eq!([a.next(), a.next()], [b.next(), b.next()]);
        assert_ne!(Random::new(7, &[1, 2]).next(), Random::new(7, &[2, 1]).next());
    }

    #[test]
    fn numbers_around_a_mean_stay_within_the_spread() {
        let mut random = Random::new(1, &[]);
        let numbers: Vec<u64> = (0..1000).map(|_| random.around(1000, 0.25)).collect();
        assert!(numbers.iter().all(|number| (750..=1250).contains(number)));
        assert!(numbers.iter().any(|number| *number < 800) && numbers.iter().any(|number| *number > 1200));
        assert_eq!(random.around(1000, 0.0), 1000);
    }
}
