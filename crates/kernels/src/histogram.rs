//! Counts on a log scale, in bounded memory: latencies with their percentiles, and sizes of requests.

use std::collections::BTreeMap;

/// Buckets an octave: a percentile is at most 1/32 off.
const PARTS: u32 = 5;

/// Latencies in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    pub(crate) sum: u64,
    pub(crate) longest: u64,
}

fn bucket(value: u64) -> usize {
    let value = value.max(1);
    let octave = value.ilog2();
    if octave <= PARTS {
        return value as usize;
    }
    let within = (value >> (octave - PARTS)) & ((1 << PARTS) - 1);
    (((octave - PARTS + 1) as usize) << PARTS) + within as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> f64 {
    if bucket < 2 << PARTS {
        return bucket as f64;
    }
    let octave = (bucket >> PARTS) - 1;
    let within = bucket & ((1 << PARTS) - 1);
    (((1 << PARTS) + within) as f64 + 0.5) * (octave as f64).exp2()
}

impl Latencies {
    pub(crate) fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum += value;
        self.longest = self.longest.max(value);
    }

    pub(crate) fn extend(&mut self, other: &Latencies) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }

    /// In nanoseconds; zero where nothing was counted.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let target = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= target {
                return middle(bucket).min(self.longest as f64);
            }
        }
        0.0
    }
}

/// How often which number of bytes was moved by one call. Past [`Sizes::MANY`] different sizes, further ones are
/// rounded down to a power of two.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sizes(BTreeMap<u64, u64>);

impl Sizes {
    const MANY: usize = 4096;

    pub(crate) fn add(&mut self, size: u64, count: u64) {
        if let Some(known) = self.0.get_mut(&size) {
            *known += count;
        } else if self.0.len() < Sizes::MANY || size == 0 {
            self.0.insert(size, count);
        } else {
            *self.0.entry(1 << size.ilog2()).or_default() += count;
        }
    }

    pub(crate) fn extend(&mut self, other: &Sizes) {
        for (size, count) in &other.0 {
            self.add(*size, *count);
        }
    }

    /// The most frequent, most frequent first.
    pub(crate) fn common(&self, many: usize) -> Vec<(u64, u64)> {
        let mut sizes: Vec<(u64, u64)> = self.0.iter().map(|(size, count)| (*size, *count)).collect();
        sizes.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
        sizes.truncate(many);
        sizes
    }

    /// Counts by the bounds that Darshan uses: below 100, 1 K, 10 K, 100 K, 1 M, 4 M, 10 M, 100 M, 1 G, and above.
    pub(crate) fn ranges(&self) -> [u64; 10] {
        const BOUNDS: [u64; 9] = [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30];
        let mut ranges = [0; 10];
        for (size, count) in &self.0 {
            ranges[BOUNDS.partition_point(|bound| bound < size)] += count;
        }
        ranges
    }

    /// The size up to which half of all weight lies.
    pub(crate) fn median(&self, weight: impl Fn(u64) -> u64) -> u64 {
        let weights = || self.0.iter().map(|(size, count)| u128::from(weight(*size)) * u128::from(*count));
        let half = weights().sum::<u128>().div_ceil(2);
        let mut seen = 0;
        for (size, weight) in self.0.keys().zip(weights()) {
            seen += weight;
            if seen >= half {
                return *size;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::{Latencies, Sizes, bucket, middle};

    #[test]
    fn a_percentile_is_within_a_few_percent() {
        let mut latencies = Latencies::default();
        for value in 1..=100_000 {
            latencies.add(value * 10);
        }
        for (share, truth) in [(0.5, 500_000.0), (0.95, 950_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            assert!((latencies.percentile(share) / truth - 1.0).abs() < 0.02, "{share}");
        }
        assert_eq!(Latencies::default().percentile(0.5), 0.0);
    }

    #[test]
    fn buckets_are_in_the_order_of_their_values() {
        for value in [1_u64, 31, 32, 63, 64, 65, 1000, 1 << 40, (1 << 40) + (1 << 35)] {
            assert!(bucket(value) <= bucket(value + 1));
            assert!((middle(bucket(value)) / value as f64 - 1.0).abs() < 0.04, "{value}");
        }
    }

    #[test]
    fn sizes_are_counted_by_the_bounds_of_darshan() {
        let mut sizes = Sizes::default();
        for size in [0, 100, 101, 1024, 1025, 262_144, 4 << 20, 2 << 30] {
            sizes.add(size, 1);
        }
        assert_eq!(sizes.ranges(), [2, 2, 1, 0, 1, 1, 0, 0, 0, 1]);
        assert_eq!((sizes.median(|_| 1), sizes.median(|size| size)), (1024, 2 << 30));
    }
}
