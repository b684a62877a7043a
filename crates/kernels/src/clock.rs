//! Nanoseconds since the epoch that never go back: the wall clock is read once, the rest is the monotonic clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const READINGS: usize = 101;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    begun: Instant,
    /// Nanoseconds since the epoch at `begun`.
    epoch: u64,
    /// Nanoseconds that a reading takes: as much of it is in every time between two of them.
    pub(crate) cost: u64,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        // The wall clock is read between two readings of the other one: their middle is what it belongs to.
        let before = Instant::now();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let begun = before + before.elapsed() / 2;
        let clock = Clock { begun, epoch: wall.as_nanos() as u64, cost: 0 };
        let mut costs: Vec<u64> = (0..READINGS).map(|_| clock.now().abs_diff(clock.now())).collect();
        costs.sort_unstable();
        Clock { cost: costs[READINGS / 2], ..clock }
    }

    pub(crate) fn now(&self) -> u64 {
        self.epoch + self.begun.elapsed().as_nanos() as u64
    }
}

pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
