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

/// Latencies from a nanosecond to three days.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies {
    counts: Vec<u64>,
    total: u64,
    least: f64,
    greatest: f64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { counts: vec![0; STEPS * DOUBLINGS], total: 0, least: f64::INFINITY, greatest: 0.0 }
    }
}

impl Latencies {
    pub(super) fn add(&mut self, seconds: f64) {
        self.counts[bucket((seconds * 1e9).max(1.0))] += 1;
        self.total += 1;
        self.least = self.least.min(seconds);
        self.greatest = self.greatest.max(seconds);
    }

    pub fn count(&self) -> u64 {
        self.total
    }

    /// The latency that the given share of requests does not exceed, in seconds.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let wanted = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        let doubling = ((bucket / STEPS) as f64).exp2();
        let middle = doubling * (1.0 + ((bucket % STEPS) as f64 + 0.5) / STEPS as f64) / 1e9;
        (self.total > 0).then(|| middle.clamp(self.least, self.greatest))
    }
}
