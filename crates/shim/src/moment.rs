//! All clocks at one moment, so that times of one can be said in another.

use std::time::{SystemTime, UNIX_EPOCH};

/// All clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) real: u64,
    pub(crate) monotonic: u64,
    pub(crate) ticks: Option<u64>,
}

impl Moment {
    pub(crate) fn now() -> Moment {
        let real = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: fills the structure.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has it.
        let ticks = Some(unsafe { core::arch::x86_64::_rdtsc() });
        #[cfg(not(target_arch = "x86_64"))]
        let ticks = None;
        Moment { real, monotonic: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, ticks }
    }
}
