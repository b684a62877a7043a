//! Nanoseconds since the epoch that never go back: the wall clock is read once, the rest is the monotonic clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    begun: Instant,
    /// Nanoseconds since the epoch at `begun`.
    epoch: u64,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        // The wall clock is read between two readings of the other one: their middle is what it belongs to.
        let before = Instant::now();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let begun = before + before.elapsed() / 2;
        Clock { begun, epoch: wall.as_nanos() as u64 }
    }

    pub(crate) fn now(&self) -> u64 {
        self.epoch + self.begun.elapsed().as_nanos() as u64
    }
}

pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
