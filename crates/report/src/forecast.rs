//! What was expected of a run before it started: recorded then, shown beside what was measured.
//!
//! Whoever starts a run writes it to `forecast.json` in the run's folder. Nothing here predicts or simulates.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// The asynchronicity that the run was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// By the model's formulas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Figures>,
    /// By the engine in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Figures>,
    /// The same for every mode that was looked at, that of the run among them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_mode: BTreeMap<String, ModeForecast>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModeForecast {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Figures>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Figures>,
}

/// What is `None` was not worked out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub makespan_seconds: f64,
    /// A share of all cores over the whole makespan: 1 is all of them all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_utilisation: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_utilisation: Option<f64>,
    /// I = 1 − t / t of the sequential mode, both found the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub improvement: Option<f64>,
}

pub(crate) const SEQUENTIAL: &str = "sequential";

impl Forecast {
    /// How long the sequential mode would take: simulated where that is known, else predicted.
    pub fn sequential_seconds(&self) -> Option<f64> {
        let mode = self.by_mode.get(SEQUENTIAL)?;
        Some(mode.simulated.or(mode.predicted)?.makespan_seconds)
    }
}
