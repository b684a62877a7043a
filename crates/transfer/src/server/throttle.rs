//! A rate that all connections share: for tests and benchmarks of placement, where a slow server is needed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(super) struct Throttle {
    bytes_a_second: f64,
    /// When all that was promised so far will have passed.
    free: Mutex<Instant>,
}

impl Throttle {
    pub(super) fn new(bytes_a_second: u64) -> Self {
        Throttle { bytes_a_second: bytes_a_second.max(1) as f64, free: Mutex::new(Instant::now()) }
    }

    /// Waits until the bytes may have passed.
    pub(super) fn pass(&self, bytes: usize) {
        let until = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            *free = (*free).max(Instant::now()) + Duration::from_secs_f64(bytes as f64 / self.bytes_a_second);
            *free
        };
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}
