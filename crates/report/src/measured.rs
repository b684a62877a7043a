//! What was measured of a run as a whole, as plain figures.

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// From the start of the run to its end.
    pub makespan_seconds: f64,
    /// From the first start of a task to the last end of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_seconds: Option<f64>,
    /// From the start of the run to the first start of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_start_seconds: Option<f64>,
    pub cpu: Utilisation,
    /// Absent when the site has no GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Utilisation>,
    /// I = 1 − t / t of the sequential mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub improvement: Option<f64>,
    /// What that sequential time is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub improvement_against: Option<String>,
}

/// What tasks held of one resource: what they had asked for, while they ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Utilisation {
    pub capacity: f64,
    /// The integral over time.
    pub held_seconds: f64,
    pub of_makespan: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_execution: Option<f64>,
}

pub(crate) fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
