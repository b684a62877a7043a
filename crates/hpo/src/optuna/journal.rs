//! What a journal file holds: its studies and trials, as Optuna would replay them.
//!
//! Trials are numbered through all studies of a file, so every line counts. A line that cannot be understood is an error
//! and not skipped: what follows would be counted wrongly.

use super::distribution;
use crate::objective::Direction;
use crate::space::{Value, Values};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("line {line} of the journal is no operation of Optuna's: {error}; was it written by another program?")]
    Line { line: usize, error: String },
    #[error("the journal holds a study `{name}` with other objectives; give the study another name or another file")]
    OtherObjectives { name: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredState {
    Running,
    Complete,
    Pruned,
    Failed,
    Waiting,
}

impl StoredState {
    fn of(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Running,
            1 => Self::Complete,
            2 => Self::Pruned,
            3 => Self::Failed,
            4 => Self::Waiting,
            _ => return None,
        })
    }

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Running => 0,
            Self::Complete => 1,
            Self::Pruned => 2,
            Self::Failed => 3,
            Self::Waiting => 4,
        }
    }

    pub fn is_ended(self) -> bool {
        matches!(self, Self::Complete | Self::Pruned | Self::Failed)
    }
}

#[derive(Debug, Clone)]
pub struct StoredTrial {
    /// Within the file.
    pub id: u64,
    /// Within its study.
    pub number: u32,
    pub study: u64,
    pub state: StoredState,
    pub parameters: Values,
    pub values: Vec<f64>,
    pub reports: BTreeMap<u64, f64>,
    pub user_attributes: BTreeMap<String, Json>,
    pub system_attributes: BTreeMap<String, Json>,
}

impl StoredTrial {
    /// What became of it is known elsewhere; there may be millions.
    pub(super) fn forget(&mut self) {
        self.parameters = Values::new();
        self.values = Vec::new();
        self.reports = BTreeMap::new();
        self.user_attributes = BTreeMap::new();
        self.system_attributes = BTreeMap::new();
    }
}

#[derive(Debug, Clone)]
pub(super) struct StoredStudy {
    pub(super) name: String,
    pub(super) directions: Vec<Direction>,
    trials: u32,
    deleted: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Journal {
    pub(super) studies: Vec<StoredStudy>,
    pub(super) trials: Vec<StoredTrial>,
    lines: usize,
    /// Trials that ended, in the order of the lines that say so.
    pub(super) ended: Vec<u64>,
}

/// Any operation: the fields that it has.
#[derive(Deserialize)]
struct Operation {
    op_code: u8,
    study_name: Option<String>,
    directions: Option<Vec<u8>>,
    study_id: Option<u64>,
    trial_id: Option<u64>,
    param_name: Option<String>,
    param_value_internal: Option<f64>,
    distribution: Option<String>,
    state: Option<u8>,
    value: Option<f64>,
    values: Option<Vec<Option<f64>>>,
    step: Option<u64>,
    intermediate_value: Option<f64>,
    user_attr: Option<BTreeMap<String, Json>>,
    system_attr: Option<BTreeMap<String, Json>>,
    distributions: Option<BTreeMap<String, String>>,
    params: Option<BTreeMap<String, f64>>,
    user_attrs: Option<BTreeMap<String, Json>>,
    system_attrs: Option<BTreeMap<String, Json>>,
    intermediate_values: Option<BTreeMap<String, Option<f64>>>,
}

impl Journal {
    /// Takes in whole lines; the answer is how many bytes they are. What stands after the last line end is not yet
    /// written to its end: hand it in again with what follows.
    pub fn read(&mut self, text: &str) -> Result<usize, JournalError> {
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        for line in text[..whole].lines() {
            self.lines += 1;
            self.apply(line).map_err(|error| JournalError::Line { line: self.lines, error })?;
        }
        Ok(whole)
    }

    /// The study with a name.
    pub fn study(&self, name: &str) -> Option<u64> {
        self.studies.iter().position(|study| study.name == name && !study.deleted).map(|at| at as u64)
    }

    pub fn trials(&self, study: u64) -> impl Iterator<Item = &StoredTrial> {
        self.trials.iter().filter(move |trial| trial.study == study)
    }

    fn apply(&mut self, line: &str) -> Result<(), String> {
        let operation: Operation =
            serde_json::from_str(&without_odd_numbers(line)).map_err(|error| error.to_string())?;
        let missing = |field: &str| format!("operation {} has no {field}", operation.op_code);
        match operation.op_code {
            0 => {
                let name = operation.study_name.ok_or_else(|| missing("study_name"))?;
                let direction = |code: u8| if code == 2 { Direction::Maximize } else { Direction::Minimize };
                let directions = operation.directions.unwrap_or_default().into_iter().map(direction).collect();
                // Two processes may have created it at once; the first one counts.
                if self.study(&name).is_none() {
                    self.studies.push(StoredStudy { name, directions, trials: 0, deleted: false });
                }
            }
            1 => {
                let at = operation.study_id.ok_or_else(|| missing("study_id"))? as usize;
                if let Some(study) = self.studies.get_mut(at) {
                    study.deleted = true;
                }
            }
            2 | 3 | 10 => {}
            4 => self.create_trial(operation)?,
            5..=9 => self.change_trial(operation)?,
            code => return Err(format!("there is no operation {code}")),
        }
        Ok(())
    }

    fn create_trial(&mut self, operation: Operation) -> Result<(), String> {
        let study = operation.study_id.ok_or("a trial without study_id")?;
        let Some(stored) = self.studies.get_mut(study as usize).filter(|study| !study.deleted) else { return Ok(()) };
        let number = stored.trials;
        stored.trials += 1;
        let state = operation.state.map_or(Some(StoredState::Running), StoredState::of).ok_or("an unknown state")?;
        let distributions = operation.distributions.unwrap_or_default();
        let parameters = operation.params.unwrap_or_default().into_iter().filter_map(|(name, internal)| {
            let value = distribution::value(distributions.get(&name)?, internal)?;
            Some((name, value))
        });
        let values = operation.values.unwrap_or_else(|| operation.value.map(Some).into_iter().collect());
        let reports = operation.intermediate_values.unwrap_or_default();
        let id = self.trials.len() as u64;
        self.trials.push(StoredTrial {
            id,
            number,
            study,
            state,
            parameters: parameters.collect(),
            values: values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect(),
            reports: reports.into_iter().filter_map(|(step, value)| Some((step.parse().ok()?, value?))).collect(),
            user_attributes: operation.user_attrs.unwrap_or_default(),
            system_attributes: operation.system_attrs.unwrap_or_default(),
        });
        if state.is_ended() {
            self.ended.push(id);
        }
        Ok(())
    }

    fn change_trial(&mut self, operation: Operation) -> Result<(), String> {
        let id = operation.trial_id.ok_or("a change without trial_id")?;
        let Some(trial) = self.trials.get_mut(id as usize) else { return Ok(()) };
        if trial.state.is_ended() {
            return Ok(());
        }
        match operation.op_code {
            5 => {
                let name = operation.param_name.ok_or("a parameter without name")?;
                let distribution = operation.distribution.ok_or("a parameter without distribution")?;
                let internal = operation.param_value_internal.unwrap_or(f64::NAN);
                let value = distribution::value(&distribution, internal).unwrap_or(Value::Float(internal));
                trial.parameters.insert(name, value);
            }
            6 => {
                trial.state = operation.state.and_then(StoredState::of).ok_or("an unknown state")?;
                if let Some(values) = operation.values {
                    trial.values = values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
                }
                if trial.state.is_ended() {
                    self.ended.push(id);
                }
            }
            7 => {
                if let (Some(step), Some(value)) = (operation.step, operation.intermediate_value) {
                    trial.reports.insert(step, value);
                }
            }
            8 => trial.user_attributes.extend(operation.user_attr.unwrap_or_default()),
            _ => trial.system_attributes.extend(operation.system_attr.unwrap_or_default()),
        }
        Ok(())
    }
}

/// Python writes `NaN` and `Infinity`, C `nan` and `inf`, which JSON does not have; here they are nothing.
pub fn without_odd_numbers(line: &str) -> std::borrow::Cow<'_, str> {
    const ODD: [&str; 7] = ["-Infinity", "Infinity", "-inf", "inf", "NaN", "-nan", "nan"];
    if !ODD.iter().any(|odd| line.contains(odd)) {
        return line.into();
    }
    let mut cleaned = String::with_capacity(line.len());
    let (mut rest, mut quoted) = (line, false);
    while let Some(first) = rest.chars().next() {
        if !quoted && let Some(odd) = ODD.iter().find(|odd| rest.starts_with(**odd)) {
            cleaned.push_str("null");
            rest = &rest[odd.len()..];
            continue;
        }
        let mut taken = first.len_utf8();
        match first {
            '"' => quoted = !quoted,
            '\\' if quoted => taken += rest[taken..].chars().next().map_or(0, char::len_utf8),
            _ => {}
        }
        cleaned.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    cleaned.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_numbers_become_nothing_except_in_words() {
        assert_eq!(
            without_odd_numbers(r#"{"a":NaN,"b":[-Infinity,Infinity,-nan],"c":"NaN \" Infinity","d":"\\"}"#),
            r#"{"a":null,"b":[null,null,null],"c":"NaN \" Infinity","d":"\\"}"#
        );
    }
}
