//! A study and its image in a journal file: what must be written so that the file says what the study says, and what
//! others added there.
//!
//! Our trials carry their number and the name of whoever wrote them as system attributes, trials of others carry the
//! file's number as their source in the study: after a restart the file and the study alone say which belongs to which.

use super::distribution::written;
use super::foreign::{Foreign, requested, running, source_id, told};
use super::journal::{Journal, JournalError, StoredState, StoredTrial};
use super::recent::{Seen, Times};
use crate::objective::Direction;
use crate::study::Settings;
use crate::trial::{Origin, State, Trial};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// System attributes of our trials.
pub const TRIAL: &str = "tulpar:trial";
pub const WRITER: &str = "tulpar:run";

/// Who chose the point of a trial, in a word.
pub fn origin_of(settings: &Settings, trial: &Trial) -> &'static str {
    match trial.origin {
        Origin::Sampled => settings.sampler.name(),
        Origin::Start => "start",
        Origin::Requested => "requested",
        Origin::Outside => "outside",
    }
}

/// How a trial that ended is kept. One that was pruned has the last value that it said, as Optuna's have.
pub fn end_of(trial: &Trial) -> (StoredState, Vec<f64>) {
    match trial.state {
        State::Complete => (StoredState::Complete, trial.values.clone()),
        State::Pruned => (StoredState::Pruned, trial.reports.last().map(|(_, value)| *value).into_iter().collect()),
        _ => (StoredState::Failed, Vec::new()),
    }
}

/// How far a trial of ours is written.
#[derive(Debug, Clone)]
struct Written {
    id: u64,
    reports: Vec<(u64, f64)>,
}

/// What a trial says otherwise than it was written, or says anew: steps come in any order, and again after a restart. Both
/// are sorted by step.
pub fn unwritten(reports: &[(u64, f64)], written: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let same = reports.iter().zip(written).take_while(|(one, other)| one == other).count();
    let (reports, written) = (&reports[same..], &written[same..]);
    let known = |(step, value): &(u64, f64)| {
        written.binary_search_by_key(step, |(step, _)| *step).is_ok_and(|at| written[at].1 == *value)
    };
    reports.iter().filter(|report| !known(report)).copied().collect()
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
    /// Of those, the ones that failed: a trial that is run again is another one in the file, where an end is final.
    failed: BTreeSet<u32>,
    /// What of the file the study has already: trials of ours that ended, those that others ran, and those that they
    /// asked for.
    known: BTreeSet<u64>,
    asked: BTreeSet<u64>,
    /// Trials that were told to be waiting there: others may take them up before the study does.
    waiting: BTreeSet<u64>,
    /// Trials of others that run there, and whether the study knows.
    elsewhere: BTreeMap<u64, bool>,
    /// How many ends of the file were looked at, and how many trials that wait.
    seen: usize,
    seen_waiting: usize,
}

impl Projection {
    /// Of a study by its name in the file; `worker` tells us from others, and must be the same after a restart.
    pub fn new(name: &str, worker: &str) -> Self {
        Self {
            journal: Journal::default(),
            name: name.to_owned(),
            worker: worker.to_owned(),
            study: None,
            open: BTreeMap::new(),
            next: 0,
            failed: BTreeSet::new(),
            known: BTreeSet::new(),
            asked: BTreeSet::new(),
            waiting: BTreeSet::new(),
            elsewhere: BTreeMap::new(),
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
    pub fn lines(&mut self, study: &impl Seen, times: impl Fn(u32) -> Times) -> Result<String, JournalError> {
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
        let again = self.failed.iter().filter_map(|number| study.trial(*number));
        let again: Vec<Trial> = again.filter(|trial| trial.state != State::Failed).cloned().collect();
        for trial in again {
            self.failed.remove(&trial.number);
            self.create(&mut text, study, id, &trial, &times)?;
        }
        while let Some(trial) = study.trial(self.next) {
            self.next += 1;
            match (trial.origin, self.waiting(trial)) {
                (Origin::Outside, _) if trial.source.is_some() => {}
                (Origin::Requested, Some(stored)) => self.take_over(&mut text, study, stored, trial, &times)?,
                _ => self.create(&mut text, study, id, trial, &times)?,
            }
        }
        Ok(text)
    }

    /// Whether the file can be that of the study.
    pub fn check(&mut self, study: &impl Seen) -> Result<(), JournalError> {
        match self.journal.study(&self.name) {
            Some(id) if self.study.is_none() => self.adopt(study, id),
            _ => Ok(()),
        }
    }

    /// What others added and the study does not have.
    pub fn foreign(&mut self, study: &impl Seen) -> Vec<Foreign> {
        if self.check(study).is_err() {
            return Vec::new();
        }
        let Some(id) = self.study else { return Vec::new() };
        let ended: Vec<u64> = self.journal.ended[self.seen..].to_vec();
        self.seen = self.journal.ended.len();
        let mut found = Vec::new();
        for at in ended {
            let trial = &self.journal.trials[at as usize];
            if trial.study == id && self.own(trial).is_none() && self.known.insert(at) {
                self.elsewhere.remove(&at);
                found.push(told(study.settings(), trial));
            }
        }
        for trial in &self.journal.trials[self.seen_waiting..] {
            if trial.study == id && trial.state == StoredState::Waiting && !self.asked.contains(&trial.id) {
                self.waiting.insert(trial.id);
                found.push(requested(study.settings(), trial));
            }
            if trial.study == id && trial.state == StoredState::Running && self.own(trial).is_none() {
                self.elsewhere.entry(trial.id).or_insert(false);
            }
        }
        let trials = &self.journal.trials;
        let over = |at: &u64| trials[*at as usize].state != StoredState::Waiting;
        for at in self.waiting.extract_if(.., over) {
            let trial = &self.journal.trials[at as usize];
            let writer = trial.system_attributes.get(WRITER).and_then(Json::as_str);
            if trial.state == StoredState::Running && writer != Some(self.worker.as_str()) {
                self.elsewhere.entry(at).or_insert(false);
            }
        }
        for (at, known) in self.elsewhere.iter_mut().filter(|(_, known)| !**known) {
            if let Some(begun) = running(study.settings(), &self.journal.trials[*at as usize]) {
                *known = true;
                found.push(begun);
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
    fn adopt(&mut self, study: &impl Seen, id: u64) -> Result<(), JournalError> {
        let directions: Vec<Direction> = study.settings().objectives.iter().map(|one| one.direction).collect();
        if self.journal.studies[id as usize].directions != directions {
            return Err(JournalError::OtherObjectives { name: self.name.clone() });
        }
        self.study = Some(id);
        for trial in study.trials() {
            if let Some(source) = source_id(trial) {
                match trial.origin {
                    Origin::Outside if trial.state.is_ended() => drop(self.known.insert(source)),
                    Origin::Outside => drop(self.elsewhere.insert(source, true)),
                    _ => drop(self.asked.insert(source)),
                }
            }
        }
        let own: Vec<(u32, u64)> =
            self.journal.trials(id).filter_map(|stored| Some((self.own(stored)?, stored.id))).collect();
        for (number, id) in own {
            self.next = self.next.max(number + 1);
            let stored = &mut self.journal.trials[id as usize];
            // Of several that are the same trial the last one counts.
            self.failed.remove(&number);
            if stored.state.is_ended() {
                if stored.state == StoredState::Failed {
                    self.failed.insert(number);
                }
                stored.forget();
                self.known.insert(id);
            } else {
                let reports = stored.reports.iter().map(|(step, value)| (*step, *value)).collect();
                self.open.insert(number, Written { id, reports });
            }
        }
        Ok(())
    }

    /// The number of a trial that we wrote.
    fn own(&self, stored: &StoredTrial) -> Option<u32> {
        let writer = stored.system_attributes.get(WRITER).and_then(Json::as_str)?;
        let number = stored.system_attributes.get(TRIAL).and_then(Json::as_u64)?;
        (writer == self.worker).then_some(number as u32)
    }

    fn mark(&self, number: u32) -> Json {
        json!({TRIAL: number, WRITER: self.worker})
    }

    fn create(
        &mut self,
        text: &mut String,
        study: &impl Seen,
        id: u64,
        trial: &Trial,
        times: &impl Fn(u32) -> Times,
    ) -> Result<(), JournalError> {
        let (mut params, mut distributions) = (Map::new(), Map::new());
        for (parameter, number) in study.settings().space.parameters().iter().zip(&trial.point) {
            if let Some(number) = number {
                params.insert(parameter.name.clone(), json!(number));
                distributions.insert(parameter.name.clone(), json!(written(&parameter.domain)));
            }
        }
        let origin = origin_of(study.settings(), trial);
        let stored = self.journal.trials.len() as u64;
        let line = json!({
            "op_code": 4, "worker_id": self.worker, "study_id": id, "datetime_start": times(trial.number).begin,
            "state": StoredState::Running.code(), "value": null, "values": null, "distributions": distributions,
            "params": params, "user_attrs": {"origin": origin}, "system_attrs": self.mark(trial.number),
            "intermediate_values": {},
        });
        self.push(text, &line)?;
        self.open.insert(trial.number, Written { id: stored, reports: Vec::new() });
        self.change(text, study, trial.number, times)
    }

    /// A trial that waited in the file runs: it is ours from now on.
    fn take_over(
        &mut self,
        text: &mut String,
        study: &impl Seen,
        id: u64,
        trial: &Trial,
        times: &impl Fn(u32) -> Times,
    ) -> Result<(), JournalError> {
        let worker = self.worker.clone();
        let begun = times(trial.number).begin;
        let line = json!({
            "op_code": 6, "worker_id": worker, "trial_id": id, "state": StoredState::Running.code(), "values": null,
            "datetime_start": begun,
        });
        self.push(text, &line)?;
        // Optuna takes one attribute a line.
        for attribute in [json!({TRIAL: trial.number}), json!({WRITER: self.worker})] {
            self.push(text, &json!({"op_code": 9, "worker_id": worker, "trial_id": id, "system_attr": attribute}))?;
        }
        for (parameter, number) in study.settings().space.parameters().iter().zip(&trial.point) {
            if let Some(number) = number {
                let line = json!({
                    "op_code": 5, "worker_id": worker, "trial_id": id, "param_name": parameter.name,
                    "param_value_internal": number, "distribution": written(&parameter.domain),
                });
                self.push(text, &line)?;
            }
        }
        self.open.insert(trial.number, Written { id, reports: Vec::new() });
        self.change(text, study, trial.number, times)
    }

    /// Reports and the end of a trial, as far as they are not written.
    fn change(
        &mut self,
        text: &mut String,
        study: &impl Seen,
        number: u32,
        times: &impl Fn(u32) -> Times,
    ) -> Result<(), JournalError> {
        let (Some(written), Some(trial)) = (self.open.get_mut(&number), study.trial(number)) else {
            return Ok(());
        };
        let worker = self.worker.clone();
        let id = written.id;
        let news = unwritten(&trial.reports, &written.reports);
        if !news.is_empty() {
            written.reports.clone_from(&trial.reports);
        }
        for (step, value) in news {
            let line =
                json!({"op_code": 7, "worker_id": worker, "trial_id": id, "step": step, "intermediate_value": value});
            self.push(text, &line)?;
        }
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
        let (state, values) = end_of(trial);
        if state == StoredState::Failed {
            self.failed.insert(number);
        }
        let values = if values.is_empty() { Json::Null } else { json!(values) };
        let line = json!({
            "op_code": 6, "worker_id": worker, "trial_id": id, "state": state.code(), "values": values,
            "datetime_complete": times(number).end,
        });
        self.push(text, &line)?;
        self.journal.trials[id as usize].forget();
        self.known.insert(id);
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
