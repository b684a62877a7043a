//! Requests by size and by latency, on logarithmic scales, in fixed memory.

use crate::darshan::counters::SIZE_BOUNDS;

/// Requests by size: Darshan's ten buckets (comparable with its counters), each with its bytes and its time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sizes {
    pub requests: [u64; 10],
    pub bytes: [u64; 10],
    pub seconds: [f64; 10],
}

impl Sizes {
    /// Upper bounds of the buckets, in bytes, inclusive; the last has none.
    pub const BOUNDS: [i64; 9] = SIZE_BOUNDS;

    pub fn bucket(length: i64) -> usize {
        // Sizes of requests are hard to foretell: all comparisons at once beat a search with branches.
        SIZE_BOUNDS.iter().map(|bound| usize::from(*bound < length)).sum()
    }

    pub(super) fn add(&mut self, length: i64, seconds: f64) {
        let bucket = Sizes::bucket(length);
        self.requests[bucket] += 1;
        self.bytes[bucket] = self.bytes[bucket].saturating_add(u64::try_from(length).unwrap_or(0));
        self.seconds[bucket] += seconds;
    }
}

/// Sixteen buckets for each doubling: percentiles are right within 3.2 %.
const STEPS: usize = 16;
const DOUBLINGS: usize = 48;

/// The bucket is read off the number itself: its exponent, and the first four bits behind the point.
fn bucket(nanoseconds: f64) -> usize {
    const SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - STEPS.ilog2();
    let ahead = nanoseconds.to_bits() >> SHIFT;
    ahead.saturating_sub(1.0f64.to_bits() >> SHIFT).min((STEPS * DOUBLINGS) as u64 - 1) as usize
}

/// How numbers from 1 on are spread.
#[derive(Debug, Clone, PartialEq)]
struct Spread {
    counts: Vec<u64>,
    total: u64,
    least: f64,
    greatest: f64,
}

impl Default for Spread {
    fn default() -> Spread {
        Spread { counts: vec![0; STEPS * DOUBLINGS], total: 0, least: f64::INFINITY, greatest: 0.0 }
    }
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.counts[bucket(value.max(1.0))] += 1;
        self.total += 1;
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// The number that the given share does not exceed; `within`: which part of its bucket stands for the bucket.
    fn percentile(&self, share: f64, within: f64) -> Option<f64> {
        let wanted = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        let doubling = ((bucket / STEPS) as f64).exp2();
        let value = doubling * (1.0 + ((bucket % STEPS) as f64 + within) / STEPS as f64);
        (self.total > 0).then(|| value.clamp(self.least, self.greatest))
    }
}

/// Latencies from a nanosecond to three days.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Latencies(Spread);

impl Latencies {
    pub(super) fn add(&mut self, seconds: f64) {
        self.0.add(seconds * 1e9);
    }

    pub fn count(&self) -> u64 {
        self.0.total
    }

    /// The latency that the given share of requests does not exceed, in seconds.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        self.0.percentile(share, 0.5).map(|nanoseconds| nanoseconds / 1e9)
    }
}

/// Lengths of requests in bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lengths(Spread);

impl Lengths {
    pub(super) fn add(&mut self, length: i64) {
        self.0.add(length as f64);
    }

    pub fn least(&self) -> Option<i64> {
        (self.0.total > 0).then_some(self.0.least as i64)
    }

    /// The length that half of the requests do not exceed, or up to 6 % less: powers of two, which are what most programs
    /// ask for, come out as they are.
    pub fn median(&self) -> Option<i64> {
        self.0.percentile(0.5, 0.0).map(|length| length as i64)
    }

    pub fn greatest(&self) -> Option<i64> {
        (self.0.total > 0).then_some(self.0.greatest as i64)
    }
}
