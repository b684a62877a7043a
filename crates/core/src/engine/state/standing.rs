//! How each search stands, so that nobody has to look at all of its trials: how many are in which state, and what those that
//! run use of GPUs.
//!
//! Views over the states of jobs, kept true by `apply`. What to try is not known here.

use super::{Counts, Live, RunState};
use crate::ids::{JobId, SearchId};
use crate::units::Timestamp;
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Standing {
    pub(in crate::engine) counts: Counts,
    /// Of attempts in the hands of a site: thousandths of devices, and these times the moment since when.
    milli_gpus: u128,
    since: u128,
}

impl Standing {
    /// What attempts that have not ended use of GPUs, all devices together.
    pub(in crate::engine) fn gpu_time(&self, now: Timestamp) -> Duration {
        let until_now = (self.milli_gpus * u128::from(now.0)).saturating_sub(self.since);
        Duration::from_micros((until_now / 1000) as u64)
    }

    /// An attempt with so many thousandths of devices is in the hands of a site since then, or no longer.
    pub(super) fn holds(&mut self, milli_gpus: u128, since: Timestamp, holds: bool) {
        let moment = milli_gpus * u128::from(since.0);
        if holds {
            self.milli_gpus += milli_gpus;
            self.since += moment;
        } else {
            self.milli_gpus -= milli_gpus;
            self.since -= moment;
        }
    }
}

impl RunState {
    pub(in crate::engine) fn standing(&self, search: SearchId) -> Standing {
        self.standings.get(&search).cloned().unwrap_or_default()
    }

    pub(super) fn standing_mut(&mut self, search: SearchId) -> &mut Standing {
        self.standings.entry(search).or_default()
    }

    /// An attempt is in the hands of a site, or no longer.
    pub(super) fn count_gpus(&mut self, job: JobId, live: &Live, holds: bool) {
        if let Some(search) = self.graph.search_of(job) {
            self.standing_mut(search).holds(live.milli_gpus(), live.since, holds);
        }
    }
}
