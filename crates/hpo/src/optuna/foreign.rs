//! Trials that others put into a storage, in the words of a study.

use super::distribution::choice;
use super::journal::{StoredState, StoredTrial};
use crate::space::Values;
use crate::study::Settings;
use crate::trial::{Outcome, Trial};
use serde_json::Value as Json;

/// Something that others put into the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Foreign {
    /// They ran it: give it to [`crate::Study::add_from`] with this source.
    Ended { source: String, values: Values, reports: Vec<(u64, f64)>, outcome: Outcome },
    /// They run it now, or somebody who died did: it is known where, and not what will come of it. Give it to
    /// [`crate::Study::begin_elsewhere`] with this source.
    Running { source: String, values: Values },
    /// They want it run: give it to [`crate::Study::begin_requested`] with this source.
    Requested { source: String, values: Values },
    /// It does not fit this study; it stays in the file.
    Unfit { source: String, reason: String },
}

pub(super) fn source_id(trial: &Trial) -> Option<u64> {
    trial.source.as_deref()?.strip_prefix("optuna:")?.parse().ok()
}

pub fn requested(settings: &Settings, trial: &StoredTrial) -> Foreign {
    let source = format!("optuna:{}", trial.id);
    let fixed = trial.system_attributes.get("fixed_params").and_then(Json::as_object);
    let values: Values = fixed.into_iter().flatten().map(|(name, value)| (name.clone(), choice(value))).collect();
    match settings.space.point(&values) {
        Ok(_) => Foreign::Requested { source, values },
        Err(error) => Foreign::Unfit { source, reason: error.to_string() },
    }
}

/// Nothing before all of its parameters are known: Optuna's come one by one.
pub fn running(settings: &Settings, trial: &StoredTrial) -> Option<Foreign> {
    settings.space.point(&trial.parameters).ok()?;
    Some(Foreign::Running { source: format!("optuna:{}", trial.id), values: trial.parameters.clone() })
}

pub fn told(settings: &Settings, trial: &StoredTrial) -> Foreign {
    let source = format!("optuna:{}", trial.id);
    if let Err(error) = settings.space.point(&trial.parameters) {
        return Foreign::Unfit { source, reason: error.to_string() };
    }
    let objectives = settings.objectives.len();
    let outcome = match trial.state {
        StoredState::Complete if trial.values.len() != objectives => {
            let reason = format!("it has {} values for {objectives} objectives", trial.values.len());
            return Foreign::Unfit { source, reason };
        }
        StoredState::Complete if trial.values.iter().any(|value| !value.is_finite()) => {
            Outcome::Failed { reason: "it ended with a value that is no number".to_owned() }
        }
        StoredState::Complete => Outcome::Complete { values: trial.values.clone(), constraints: constraints(trial) },
        StoredState::Pruned => Outcome::Pruned,
        _ => {
            let reason = trial
                .user_attributes
                .get("reason")
                .map_or("it failed in Optuna".to_owned(), |reason| choice(reason).to_string());
            Outcome::Failed { reason }
        }
    };
    let reports = trial.reports.iter().map(|(step, value)| (*step, *value)).collect();
    Foreign::Ended { source, values: trial.parameters.clone(), reports, outcome }
}

/// A list under one name, or, since Optuna 5, one number a name.
fn constraints(trial: &StoredTrial) -> Vec<f64> {
    if let Some(list) = trial.system_attributes.get("constraints").and_then(Json::as_array) {
        return list.iter().filter_map(Json::as_f64).collect();
    }
    let named = trial.system_attributes.iter().filter(|(name, _)| name.starts_with("constraints:"));
    named.filter_map(|(_, value)| value.as_f64()).collect()
}
