//! Where a job can stand, and how many jobs stand where.

use serde::{Deserialize, Serialize};

/// Where a job stands. The normal way is from top to bottom until `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Something above it has not ended.
    Waiting,
    /// Everything above it ended well; the cache is asked, or its condition.
    Looking,
    /// It will run as soon as its resources are free.
    Ready,
    /// Handed to the site.
    Submitted,
    Running,
    /// Stopped by the site until a person releases it.
    Held,
    /// Pausing before another attempt.
    Backoff,
    /// A trial that waits at its rung until it is among the best there. Nothing but its search wakes it.
    Paused,
    /// Its outputs are committed.
    Done,
    /// Tried, and will not be tried again.
    Failed,
    /// Not needed: something above failed, its condition was not true, or other trials were better.
    Skipped,
    Cancelled,
}

pub const STATES: [State; 12] = [
    State::Waiting,
    State::Looking,
    State::Ready,
    State::Submitted,
    State::Running,
    State::Held,
    State::Backoff,
    State::Paused,
    State::Done,
    State::Failed,
    State::Skipped,
    State::Cancelled,
];

impl State {
    /// True when nothing more happens to the job in this run.
    pub fn is_settled(self) -> bool {
        matches!(self, State::Done | State::Failed | State::Skipped | State::Cancelled)
    }

    /// True while an attempt is in the hands of a site.
    pub fn is_live(self) -> bool {
        matches!(self, State::Submitted | State::Running | State::Held)
    }
}

/// How many jobs are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub(super) [u32; STATES.len()]);

impl Counts {
    pub fn of(&self, state: State) -> u32 {
        self.0[state as usize]
    }

    pub fn total(&self) -> u32 {
        self.0.iter().sum()
    }

    pub fn settled(&self) -> u32 {
        STATES.iter().filter(|state| state.is_settled()).map(|state| self.of(*state)).sum()
    }
}
