//! Memory of trees whose processes share pages: workers that were forked from a large parent, libraries that all have mapped.
//!
//! Resident sizes count what is shared once for each process, which can be many times too much. The kernel knows better, but
//! counts page by page to say so. It is asked as often as a small part of a core allows, and what it says holds, as a ratio,
//! until the tree has changed.

use crate::process;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Below this nothing that is shared matters.
const MATTERS: u64 = 32 << 20;
/// Of a core, at most.
const ONE_IN: u32 = 200;
const MOST_SAVED: Duration = Duration::from_millis(50);
const HOLDS: Duration = Duration::from_secs(30);

pub(crate) struct Sharing {
    known: HashMap<u32, Known>,
    /// CPU time that may be spent on asking.
    saved: Duration,
    since: Instant,
}

struct Known {
    /// Of what is held to what is resident.
    ratio: f64,
    resident: u64,
    at: Instant,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { known: HashMap::new(), saved: MOST_SAVED, since: Instant::now() }
    }
}

impl Sharing {
    pub(crate) fn keep_only(&mut self, lives: impl Fn(u32) -> bool) {
        self.known.retain(|serial, _| lives(*serial));
        let now = Instant::now();
        self.saved = (self.saved + now.duration_since(self.since) / ONE_IN).min(MOST_SAVED);
        self.since = now;
    }

    /// What the processes of a tree hold together, and whether that is more than an estimate. `resident` is the sum of
    /// their sizes.
    pub(crate) fn held(
        &mut self,
        serial: u32,
        resident: u64,
        largest: u64,
        pids: &[i32],
        buffer: &mut Vec<u8>,
    ) -> (u64, bool) {
        if resident - largest < MATTERS {
            return (resident, true);
        }
        let is_right =
            |known: &&Known| known.resident.abs_diff(resident) <= resident / 20 && known.at.elapsed() < HOLDS;
        let mut known = self.known.get(&serial).filter(is_right).is_some();
        if !known && !self.saved.is_zero() {
            let before = process::thread_time();
            // One that cannot be asked, because it is gone or another user's, makes the sum worthless.
            let sizes: Option<Vec<u64>> = pids.iter().map(|pid| process::proportional_size(*pid, buffer)).collect();
            self.saved = self.saved.saturating_sub(process::thread_time().saturating_sub(before));
            let held = sizes.map(|sizes| sizes.iter().sum::<u64>()).filter(|held| *held > 0);
            let ratio = held.map_or(1.0, |held| (held as f64 / resident as f64).min(1.0));
            self.known.insert(serial, Known { ratio, resident, at: Instant::now() });
            known = true;
        }
        let ratio = self.known.get(&serial).map_or(1.0, |known| known.ratio);
        // Whatever is shared, the largest process has all of its own.
        (((resident as f64 * ratio) as u64).max(largest), known)
    }
}
