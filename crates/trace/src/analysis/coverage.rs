//! Which bytes of a file were touched, each once, in bounded memory: exact while the ranges are few, from a sample of the
//! file's blocks when they are many. Does not know who touched them.

use crate::interval::Union;

const BLOCK: i64 = 64 << 10;
/// A request that spans more blocks than this is taken whole: nothing is saved by sampling it.
const MANY_BLOCKS: i64 = 1 << 14;
/// With this many ranges of one file the sample is good to a percent.
pub(super) const MOST: usize = 1 << 15;
const FEWEST: usize = 16;

/// Bytes that were touched.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Coverage {
    ranges: Union,
    /// One block in 2^sampling counts.
    sampling: u32,
}

impl Coverage {
    /// `limit`: ranges that may be held.
    pub(super) fn add(&mut self, offset: i64, length: i64, limit: usize) {
        let (Some(end), 0..) = (offset.checked_add(length), offset) else { return };
        if self.sampling == 0 || length / BLOCK > MANY_BLOCKS {
            self.ranges.add(offset as f64, end as f64);
        } else {
            let mut at = offset;
            while at < end {
                let next = (at / BLOCK + 1).saturating_mul(BLOCK).min(end);
                if is_sampled(at / BLOCK, self.sampling) {
                    self.ranges.add(at as f64, next as f64);
                }
                at = next;
            }
        }
        if self.ranges.held() > limit.max(FEWEST) {
            self.thin(limit);
        }
    }

    fn thin(&mut self, limit: usize) {
        self.ranges.settle();
        while self.ranges.held() > limit.max(FEWEST) / 2 && self.sampling < 40 {
            self.sample(self.sampling + 1);
        }
    }

    fn sample(&mut self, sampling: u32) {
        self.sampling = sampling;
        let mut kept = Union::new();
        for (start, end) in self.ranges.pieces() {
            let (mut at, end) = (*start as i64, *end as i64);
            if (end - at) / BLOCK > MANY_BLOCKS {
                kept.add(at as f64, end as f64);
                continue;
            }
            while at < end {
                let next = ((at / BLOCK + 1) * BLOCK).min(end);
                if is_sampled(at / BLOCK, sampling) {
                    kept.add(at as f64, next as f64);
                }
                at = next;
            }
        }
        kept.settle();
        self.ranges = kept;
    }

    /// Adds what another one has.
    pub(super) fn extend(&mut self, other: &mut Coverage, limit: usize) {
        if other.sampling > self.sampling {
            self.sample(other.sampling);
        }
        let sampling = self.sampling;
        for (start, end) in other.ranges.pieces() {
            if sampling == other.sampling {
                self.ranges.add(*start, *end);
            } else {
                self.add(*start as i64, (*end - *start) as i64, usize::MAX);
            }
        }
        if self.ranges.held() > limit.max(FEWEST) {
            self.thin(limit);
        }
    }

    /// How many bytes; an estimate if [`Coverage::is_sampled`].
    pub fn length(&mut self) -> f64 {
        self.ranges.length() * f64::from(self.sampling).exp2()
    }

    pub fn is_sampled(&self) -> bool {
        self.sampling > 0
    }
}

fn is_sampled(block: i64, sampling: u32) -> bool {
    // The finalizer of a well-known hash: neighbouring blocks are independent.
    let mut mixed = block.cast_unsigned().wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    sampling == 0 || mixed >> (64 - sampling) == 0
}

#[cfg(test)]
mod tests {
    use super::{Coverage, MOST};

    #[test]
    fn bytes_count_once() {
        let mut bytes = Coverage::default();
        for (offset, length) in [(0, 100), (50, 100), (1000, 10), (-5, 3), (i64::MAX, 2)] {
            bytes.add(offset, length, MOST);
        }
        assert_eq!(bytes.length(), 160.0);
        let mut other = Coverage::default();
        other.add(140, 20, MOST);
        bytes.extend(&mut other, MOST);
        assert_eq!(bytes.length(), 170.0);
    }

    #[test]
    fn a_million_scattered_ranges_are_estimated_in_little_memory() {
        let mut bytes = Coverage::default();
        for index in 0..1_000_000i64 {
            // Every third slot of 4,096 bytes, twice over, in an order that is none.
            let slot = (index * 387_420_489) % 500_000 * 3;
            bytes.add(slot * 4096, 4096, 4096);
        }
        assert!(bytes.is_sampled());
        assert!(bytes.ranges.held() <= 3 * 4096 + 1024);
        let truth = 500_000.0 * 4096.0;
        assert!((bytes.length() / truth - 1.0).abs() < 0.1, "{}", bytes.length() / truth);
    }
}
