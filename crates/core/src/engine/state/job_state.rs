//! The state of one job with the data that belong to it, so that a job cannot be held without a reason or pause without a
//! time. It does not know the other jobs: counts and indexes over all of them belong to `RunState`.

use super::State;
use crate::event::{Because, Blame, Placement};
use crate::job::OutputFile;
use crate::resources::Request;
use crate::units::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// An attempt in the hands of a site.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::engine) struct Live {
    pub(in crate::engine) n: u32,
    pub(in crate::engine) request: Request,
    pub(in crate::engine) placement: Placement,
    pub(in crate::engine) variant: u32,
    pub(in crate::engine) since: Timestamp,
}

impl Live {
    /// Of all its nodes together.
    pub(in crate::engine) fn milli_gpus(&self) -> u128 {
        u128::from(self.request.milli_gpus()) * u128::from(self.request.nodes)
    }

    /// Of all its devices together, until then.
    pub(super) fn gpu_time(&self, now: Timestamp) -> Duration {
        Duration::from_micros((now.since(self.since).as_micros() * self.milli_gpus() / 1000) as u64)
    }
}

/// An attempt that the site holds.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::engine) struct HeldAttempt {
    pub(in crate::engine) live: Live,
    pub(in crate::engine) reason: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::engine) enum JobState {
    #[default]
    Waiting,
    Lookup,
    Ready,
    Submitted(Box<Live>),
    Running(Box<Live>),
    Held(Box<HeldAttempt>),
    Backoff {
        until: Timestamp,
    },
    Paused,
    Done {
        outputs: Arc<[OutputFile]>,
    },
    /// `tolerated`: jobs that gather the results of many go on without this one.
    Failed {
        blame: Blame,
        tolerated: bool,
    },
    Skipped {
        because: Because,
        tolerated: bool,
    },
    Cancelled,
}

/// A run has a million of these.
const _: () = assert!(size_of::<JobState>() <= 24);

impl JobState {
    pub(in crate::engine) fn word(&self) -> State {
        match self {
            JobState::Waiting => State::Waiting,
            JobState::Lookup => State::Looking,
            JobState::Ready => State::Ready,
            JobState::Submitted(_) => State::Submitted,
            JobState::Running(_) => State::Running,
            JobState::Held(_) => State::Held,
            JobState::Backoff { .. } => State::Backoff,
            JobState::Paused => State::Paused,
            JobState::Done { .. } => State::Done,
            JobState::Failed { .. } => State::Failed,
            JobState::Skipped { .. } => State::Skipped,
            JobState::Cancelled => State::Cancelled,
        }
    }

    pub(in crate::engine) fn live(&self) -> Option<&Live> {
        match self {
            JobState::Submitted(live) | JobState::Running(live) => Some(live),
            JobState::Held(held) => Some(&held.live),
            _ => None,
        }
    }

    pub(super) fn into_live(self) -> Option<Box<Live>> {
        match self {
            JobState::Submitted(live) | JobState::Running(live) => Some(live),
            JobState::Held(held) => Some(Box::new(held.live)),
            _ => None,
        }
    }

    /// Another state of the same attempt. A job without an attempt stays as it is.
    pub(super) fn with_live(self, to: impl FnOnce(Box<Live>) -> JobState) -> JobState {
        match self {
            JobState::Submitted(live) | JobState::Running(live) => to(live),
            JobState::Held(held) => to(Box::new(held.live)),
            other => other,
        }
    }

    pub(super) fn is_tolerated(&self) -> bool {
        matches!(self, JobState::Failed { tolerated: true, .. } | JobState::Skipped { tolerated: true, .. })
    }
}
