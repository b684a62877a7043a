//! A study and its image in a journal file: what must be written so that the file says what the study says, and what
//! others added there.
//!
//! Our trials carry their number as a system attribute, trials of others carry the file's number as their source in the
//! study: after a restart the file and the study alone say which belongs to which.

use super::distribution::{choice, written};
use super::journal::{Journal, JournalError, StoredState, StoredTrial};
use crate::space::Values;
use crate::study::{Direction, Study};
use crate::trial::{Origin, Outcome, State, Trial};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const MARK: &str = "tulpar:trial";

/// Something that others put into the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Foreign {
    /// They ran it: give it to [`Study::add_from`] with this source.
    Ended { source: String, values: Values, reports: Vec<(u64, f64)>, outcome: Outcome },
    /// They want it run: give it to [`Study::begin_requested`] with this source.
    Requested { source: String, values: Values },
    /// It does not fit this study; it stays in the file.
    Unfit { source: String, reason: String },
}

/// How far a trial of ours is written.
#[derive(Debug, Clone, Copy)]
struct Written {
    id: u64,
    reports: usize,
}

#[derive(Debug, Clone)]
pub struct Projection {
    journal: Journal,
    name: String,
    worker: String,
    study: Option<u64>,
    /// Trials of the study that are in the file and not yet at their end there.
    open: BTreeMap<u32, Written>,
    /// Trials of the study below this number are in the file, or are the file's.
    next: u32,
    /// Sources that the study has already: trials that others ran, and those that they asked for.
    known: BTreeSet<u64>,
    asked: BTreeSet<u64>,
    /// How many ends of the file were looked at, and how many trials that wait.
    seen: usize,
    seen_waiting: usize,
}

impl Projection {
    /// Of a study by its name in the file; `worker` tells this process from the others.
    pub fn new(name: &str, worker: &str) -> Self {
        Self {
            journal: Journal::default(),
            name: name.to_owned(),
            worker: worker.to_owned(),
            study: None,
            open: BTreeMap::new(),
            next: 0,
            known: BTreeSet::new(),
            asked: BTreeSet::new(),
            seen: 0,
            seen_waiting: 0,
        }
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Takes in what was appended to the file since the last time, ours excepted; the answer is how many bytes of it are
    /// whole lines.
    pub fn read(&mut self, text: &str) -> Result<usize, JournalError> {
        self.journal.read(text)
    }

    /// What brings the file up to date, line by line; empty when it is. Everything in the file must have been read. The
    /// times of a trial are its begin and its end, as ISO 8601 with a zone.
    pub fn lines(&mut self, study: &Study, times: impl Fn(u32) -> (String, String)) -> Result<String, JournalError> {
        let mut text = String::new();
        let id = match self.study.or_else(|| self.journal.study(&self.name)) {
            Some(id) => id,
            None => {
                let directions: Vec<u8> =
                    study.settings().objectives.iter().map(|one| direction_code(one.direction)).collect();
                let line =
                    json!({"op_code": 0, "worker_id": self.worker, "study_name": self.name, "directions": directions});
                self.push(&mut text, &line)?;
                self.journal.study(&self.name).unwrap_or_default()
            }
        };
        if self.study.is_none() {
            self.adopt(study, id)?;
        }
        let open: Vec<u32> = self.open.keys().copied().collect();
        for number in open {
            self.change(&mut text, study, number, &times)?;
        }
        while (self.next as usize) < study.trials().len() {
            let trial = &study.trials()[self.next as usize];
            self.next += 1;
            match (trial.origin, self.waiting(trial)) {
                (Origin::Outside, _) if trial.source.is_some() => {}
                (Origin::Requested, Some(stored)) => self.take_over(&mut text, study, stored, trial, &times)?,
                _ => self.create(&mut text, study, id, trial, &times)?,
            }
        }
        Ok(text)
    }

    /// What others added and the study does not have.
    pub fn foreign(&mut self, study: &Study) -> Vec<Foreign> {
        let Some(id) = self.study.or_else(|| self.journal.study(&self.name)) else { return Vec::new() };
        if self.study.is_none() && self.adopt(study, id).is_err() {
            return Vec::new();
        }
        let ended: Vec<u64> = self.journal.ended[self.seen..].to_vec();
        self.seen = self.journal.ended.len();
        let mut found = Vec::new();
        for at in ended {
            let trial = &self.journal.trials[at as usize];
            if trial.study == id && !trial.system_attributes.contains_key(MARK) && self.known.insert(at) {
                found.push(told(study, trial));
            }
        }
        for trial in &self.journal.trials[self.seen_waiting..] {
            if trial.study == id && trial.state == StoredState::Waiting && !self.asked.contains(&trial.id) {
                found.push(requested(study, trial));
            }
        }
        self.seen_waiting = self.journal.trials.len();
        found
    }

    /// The trial of the file that this one is, while nobody else runs it.
    fn waiting(&self, trial: &Trial) -> Option<u64> {
        let id = source_id(trial)?;
        self.journal.trials.get(id as usize).filter(|stored| stored.state == StoredState::Waiting).map(|_| id)
    }

    /// Finds out what of the study is in the file already.
    fn adopt(&mut self, study: &Study, id: u64) -> Result<(), JournalError> {
        let directions: Vec<Direction> = study.settings().objectives.iter().map(|one| one.direction).collect();
        if self.journal.studies[id as usize].directions != directions {
            return Err(JournalError::OtherObjectives { name: self.name.clone() });
        }
        self.study = Some(id);
        for trial in study.trials() {
            if let Some(source) = source_id(trial) {
                let kept = if trial.origin == Origin::Outside { &mut self.known } else { &mut self.asked };
                kept.insert(source);
            }
        }
        for stored in self.journal.trials(id) {
            let Some(number) = stored.system_attributes.get(MARK).and_then(Json::as_u64) else { continue };
            let number = number as u32;
            self.next = self.next.max(number + 1);
            if !stored.state.is_ended() {
                self.open.insert(number, Written { id: stored.id, reports: stored.reports.len() });
            }
        }
        Ok(())
    }

    fn create(
        &mut self,
        text: &mut String,
        study: &Study,
        id: u64,
        trial: &Trial,
        times: &impl Fn(u32) -> (String, String),
    ) -> Result<(), JournalError> {
        let (mut params, mut distributions) = (Map::new(), Map::new());
        for (parameter, number) in study.space().parameters().iter().zip(&trial.point) {
            if let Some(number) = number {
                params.insert(parameter.name.clone(), json!(number));
                distributions.insert(parameter.name.clone(), json!(written(&parameter.domain)));
            }
        }
        let origin = match trial.origin {
            Origin::Sampled => study.settings().sampler.name(),
            Origin::Start => "start",
            Origin::Requested => "requested",
            Origin::Outside => "outside",
        };
        let stored = self.journal.trials.len() as u64;
        let line = json!({
            "op_code": 4, "worker_id": self.worker, "study_id": id, "datetime_start": times(trial.number).0,
            "state": StoredState::Running.code(), "value": null, "values": null, "distributions": distributions,
            "params": params, "user_attrs": {"origin": origin}, "system_attrs": {MARK: trial.number},
            "intermediate_values": {},
        });
        self.push(text, &line)?;
        self.open.insert(trial.number, Written { id: stored, reports: 0 });
        self.change(text, study, trial.number, times)
    }

    /// A trial that waited in the file runs: it is ours from now on.
    fn take_over(
        &mut self,
        text: &mut String,
        study: &Study,
        id: u64,
        trial: &Trial,
        times: &impl Fn(u32) -> (String, String),
    ) -> Result<(), JournalError> {
        let worker = self.worker.clone();
        let begun = times(trial.number).0;
        let line = json!({
            "op_code": 6, "worker_id": worker, "trial_id": id, "state": StoredState::Running.code(), "values": null,
            "datetime_start": begun,
        });
        self.push(text, &line)?;
        let mark = json!({MARK: trial.number});
        self.push(text, &json!({"op_code": 9, "worker_id": worker, "trial_id": id, "system_attr": mark}))?;
        for (parameter, number) in study.space().parameters().iter().zip(&trial.point) {
            if let Some(number) = number {
                let line = json!({
                    "op_code": 5, "worker_id": worker, "trial_id": id, "param_name": parameter.name,
                    "param_value_internal": number, "distribution": written(&parameter.domain),
                });
                self.push(text, &line)?;
            }
        }
        self.open.insert(trial.number, Written { id, reports: 0 });
        self.change(text, study, trial.number, times)
    }

    /// Reports and the end of a trial, as far as they are not written.
    fn change(
        &mut self,
        text: &mut String,
        study: &Study,
        number: u32,
        times: &impl Fn(u32) -> (String, String),
    ) -> Result<(), JournalError> {
        let (Some(written), Some(trial)) = (self.open.get(&number).copied(), study.trial(number)) else {
            return Ok(());
        };
        let worker = self.worker.clone();
        let id = written.id;
        for (step, value) in &trial.reports[written.reports.min(trial.reports.len())..] {
            let line =
                json!({"op_code": 7, "worker_id": worker, "trial_id": id, "step": step, "intermediate_value": value});
            self.push(text, &line)?;
        }
        self.open.insert(number, Written { id, reports: trial.reports.len() });
        if !trial.state.is_ended() {
            return Ok(());
        }
        if !trial.constraints.is_empty() {
            let attribute = json!({"constraints": trial.constraints});
            self.push(text, &json!({"op_code": 9, "worker_id": worker, "trial_id": id, "system_attr": attribute}))?;
        }
        if let Some(reason) = &trial.reason {
            let attribute = json!({"reason": reason});
            self.push(text, &json!({"op_code": 8, "worker_id": worker, "trial_id": id, "user_attr": attribute}))?;
        }
        let (state, values) = match trial.state {
            State::Complete => (StoredState::Complete, json!(trial.values)),
            State::Pruned => {
                (StoredState::Pruned, trial.reports.last().map_or(Json::Null, |(_, value)| json!([value])))
            }
            _ => (StoredState::Failed, Json::Null),
        };
        let line = json!({
            "op_code": 6, "worker_id": worker, "trial_id": id, "state": state.code(), "values": values,
            "datetime_complete": times(number).1,
        });
        self.push(text, &line)?;
        self.open.remove(&number);
        Ok(())
    }

    /// What we write we have read.
    fn push(&mut self, text: &mut String, line: &Json) -> Result<(), JournalError> {
        let from = text.len();
        let _ = writeln!(text, "{line}");
        self.journal.read(&text[from..])?;
        Ok(())
    }
}

fn direction_code(direction: Direction) -> u8 {
    match direction {
        Direction::Minimize => 1,
        Direction::Maximize => 2,
    }
}

fn source_id(trial: &Trial) -> Option<u64> {
    trial.source.as_deref()?.strip_prefix("optuna:")?.parse().ok()
}

fn requested(study: &Study, trial: &StoredTrial) -> Foreign {
    let source = format!("optuna:{}", trial.id);
    let fixed = trial.system_attributes.get("fixed_params").and_then(Json::as_object);
    let values: Values = fixed.into_iter().flatten().map(|(name, value)| (name.clone(), choice(value))).collect();
    match study.space().point(&values) {
        Ok(_) => Foreign::Requested { source, values },
        Err(error) => Foreign::Unfit { source, reason: error.to_string() },
    }
}

fn told(study: &Study, trial: &StoredTrial) -> Foreign {
    let source = format!("optuna:{}", trial.id);
    if let Err(error) = study.space().point(&trial.parameters) {
        return Foreign::Unfit { source, reason: error.to_string() };
    }
    let objectives = study.settings().objectives.len();
    let outcome = match trial.state {
        StoredState::Complete if trial.values.len() != objectives => {
            let reason = format!("it has {} values for {objectives} objectives", trial.values.len());
            return Foreign::Unfit { source, reason };
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
