//! Which searches may have a trial to ask for, and what is needed to say so without looking at all of their trials: how many
//! are in which state, and what those that run use of GPUs.
//!
//! Views over the states of jobs, kept true by the engine wherever these change. What to try is not known here.

use super::{Counts, State};
use crate::ids::SearchId;
use crate::units::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub(super) struct Asking {
    searches: BTreeMap<SearchId, Standing>,
    /// Those of which something changed since they were asked.
    changed: BTreeSet<SearchId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) counts: Counts,
    /// Of attempts in the hands of a site: thousandths of devices, and these times the moment since when.
    milli_gpus: u128,
    since: u128,
}

impl Standing {
    /// What attempts that have not ended use of GPUs, all devices together.
    pub(super) fn gpu_time(&self, now: Timestamp) -> Duration {
        let until_now = (self.milli_gpus * u128::from(now.0)).saturating_sub(self.since);
        Duration::from_micros((until_now / 1000) as u64)
    }
}

impl Asking {
    pub(super) fn entered(&mut self, search: SearchId, state: State) {
        self.searches.entry(search).or_default().counts.0[state as usize] += 1;
        self.changed.insert(search);
    }

    pub(super) fn left(&mut self, search: SearchId, state: State) {
        self.searches.entry(search).or_default().counts.0[state as usize] -= 1;
    }

    /// An attempt with so many thousandths of devices is in the hands of a site since then, or no longer.
    pub(super) fn holds(&mut self, search: SearchId, milli_gpus: u128, since: Timestamp, holds: bool) {
        let standing = self.searches.entry(search).or_default();
        let moment = milli_gpus * u128::from(since.0);
        if holds {
            standing.milli_gpus += milli_gpus;
            standing.since += moment;
        } else {
            standing.milli_gpus -= milli_gpus;
            standing.since -= moment;
        }
    }

    pub(super) fn of(&self, search: SearchId) -> Standing {
        self.searches.get(&search).cloned().unwrap_or_default()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&SearchId, &Standing)> {
        self.searches.iter()
    }

    pub(super) fn change(&mut self, search: SearchId) {
        self.changed.insert(search);
    }

    pub(super) fn change_all(&mut self) {
        self.changed.extend(self.searches.keys().copied());
    }

    pub(super) fn is_changed(&self, search: SearchId) -> bool {
        self.changed.contains(&search)
    }

    /// Those that are to be asked, which then are not any more.
    pub(super) fn take(&mut self) -> BTreeSet<SearchId> {
        std::mem::take(&mut self.changed)
    }
}
