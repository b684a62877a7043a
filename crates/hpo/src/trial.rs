//! One evaluation of the objectives, from its birth to its end.

use crate::space::Point;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Running,
    /// Stopped at a rung with its checkpoint; it may go on later.
    Paused,
    Complete,
    Pruned,
    Failed,
    /// It ended in a simulation: nothing was measured.
    Simulated,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Complete => "complete",
            Self::Pruned => "pruned",
            Self::Failed => "failed",
            Self::Simulated => "simulated",
        }
    }

    /// It says something about the objectives.
    pub(crate) fn is_informative(self) -> bool {
        matches!(self, Self::Complete | Self::Pruned)
    }

    pub fn is_ended(self) -> bool {
        matches!(self, Self::Complete | Self::Pruned | Self::Failed | Self::Simulated)
    }
}

/// Who chose the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    Sampled,
    /// One of the starting points of the settings.
    Start,
    /// Somebody asked for this point while the study ran.
    Requested,
    /// Somebody else ran it and told us.
    Outside,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A constraint is kept where its number is at most 0.
    Complete {
        values: Vec<f64>,
        constraints: Vec<f64>,
    },
    Pruned,
    Failed {
        reason: String,
    },
    /// In a simulation, which measures nothing.
    Simulated,
}

impl Outcome {
    pub fn value(value: f64) -> Self {
        Self::Complete { values: vec![value], constraints: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub number: u32,
    pub point: Point,
    pub origin: Origin,
    pub state: State,
    /// As told, one for each objective.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<f64>,
    /// Intermediate values by step, rising.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<(u64, f64)>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where a trial of others is kept, for whoever brought it; never looked into here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Trial {
    pub(crate) fn new(number: u32, point: Point, origin: Origin) -> Self {
        Self {
            number,
            point,
            origin,
            state: State::Running,
            values: Vec::new(),
            constraints: Vec::new(),
            reports: Vec::new(),
            reason: None,
            source: None,
        }
    }

    /// By how much constraints are broken, in sum.
    pub fn violation(&self) -> f64 {
        self.constraints.iter().map(|constraint| constraint.max(0.0)).sum()
    }

    pub fn is_feasible(&self) -> bool {
        self.state == State::Complete && self.constraints.iter().all(|constraint| *constraint <= 0.0)
    }
}
