//! The studies of a run: which trial each task of a search is, its parameters, and what was found.
//!
//! It is told of trials in the order of the recorded events, and so is the same live and in replay.

use super::Plan;
use super::graph::Graph;
use super::outside::Outside;
use crate::event::{Added, Curtailment};
use crate::ids::{Digest, JobId, SetId};
use crate::job::{InputFile, Source, Told};
use crate::units::Timestamp;
use crate::workflow::{Finding, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;
use tulpar_hpo::{Decision, Origin, Outcome, State, Study, Trial, Values, analysis};

/// More numbers on the way would be a slip of the program.
const MOST_STEPS: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Searches {
    by_set: BTreeMap<SetId, Searching>,
}

#[derive(Clone, Debug)]
struct Searching {
    study: Study,
    /// By the numbers of trials, which task of the set each is; none where somebody else ran it.
    tasks: Vec<Option<JobId>>,
    trials: BTreeMap<JobId, u32>,
    /// How many tasks were asked for, in their order.
    asked: u32,
    outside: Outside,
    /// Told to end early, and not seen to end.
    curtailed: BTreeMap<JobId, Curtailment>,
    paused: BTreeSet<JobId>,
    /// When the first trial was asked for; later by as long as the run was interrupted.
    began: Option<Timestamp>,
    /// What attempts that ended have used of GPUs, together.
    gpu_time: Duration,
}

impl Searching {
    fn new(study: Study) -> Self {
        Self {
            study,
            tasks: Vec::new(),
            trials: BTreeMap::new(),
            asked: 0,
            outside: Outside::default(),
            curtailed: BTreeMap::new(),
            paused: BTreeSet::new(),
            began: None,
            gpu_time: Duration::ZERO,
        }
    }
}

impl Searches {
    pub(super) fn new(plan: &Plan) -> Self {
        let tasks = plan.workflow.tasks.iter().enumerate();
        let searches = tasks.filter_map(|(set, task)| {
            // One that makes no sense was refused when the workflow was read.
            let study = Study::new(task.search()?.study.clone()).ok()?;
            Some((SetId::from(set), Searching::new(study)))
        });
        Self { by_set: searches.collect() }
    }
}

impl Graph {
    /// The sets that are searches.
    pub fn searches(&self) -> impl Iterator<Item = SetId> + '_ {
        self.searches.by_set.keys().copied()
    }

    pub fn study(&self, set: SetId) -> Option<&Study> {
        Some(&self.searches.by_set.get(&set)?.study)
    }

    pub(crate) fn study_mut(&mut self, set: SetId) -> Option<&mut Study> {
        Some(&mut self.searches.by_set.get_mut(&set)?.study)
    }

    /// The trial that a task is, once it was asked for.
    pub fn trial(&self, job: JobId) -> Option<&Trial> {
        let searching = self.searches.by_set.get(&self.set_of(job))?;
        searching.study.trial(*searching.trials.get(&job)?)
    }

    /// The task that a trial is.
    pub fn task_of_trial(&self, set: SetId, number: u32) -> Option<JobId> {
        *self.searches.by_set.get(&set)?.tasks.get(number as usize)?
    }

    /// How many of the set's tasks were asked for: they are asked for in their order.
    pub fn asked(&self, set: SetId) -> u32 {
        self.searches.by_set.get(&set).map_or(0, |searching| searching.asked)
    }

    /// A task becomes a trial with these parameters.
    pub(crate) fn begin_trial(&mut self, at: Timestamp, job: JobId, values: &Values, origin: Origin) {
        let set = self.set_of(job);
        let Some(searching) = self.searches.by_set.get_mut(&set) else { return };
        searching.asked += 1;
        searching.began.get_or_insert(at);
        let begun = searching.outside.begin(&mut searching.study, values, origin);
        // The study proposed it, now or when the journal was written by a Tulpar whose spaces were the same.
        if let Ok(number) = begun {
            searching.tasks.resize(number as usize, None);
            searching.tasks.push(Some(job));
            searching.trials.insert(job, number);
        }
    }

    /// Whether a trial from outside is one of this search, and new.
    pub(crate) fn fits(&self, set: SetId, added: &Added) -> bool {
        self.searches.by_set.get(&set).is_some_and(|searching| searching.outside.fits(&searching.study, added))
    }

    pub(crate) fn add_trial(&mut self, set: SetId, added: &Added) {
        if let Some(searching) = self.searches.by_set.get_mut(&set) {
            searching.outside.add(&mut searching.study, added);
        }
    }

    /// The parameters of the next trial, where others want one to be run.
    pub(crate) fn requested(&self, set: SetId) -> Option<Values> {
        self.searches.by_set.get(&set)?.outside.next().cloned()
    }

    fn of_trial(&mut self, job: JobId) -> Option<(&mut Searching, u32)> {
        let set = self.set_of(job);
        let searching = self.searches.by_set.get_mut(&set)?;
        let number = *searching.trials.get(&job)?;
        Some((searching, number))
    }

    /// A number on the way, and what to do about it.
    pub(crate) fn report(&mut self, job: JobId, step: u64, value: f64) -> Decision {
        let Some((searching, number)) = self.of_trial(job) else { return Decision::Continue };
        searching.study.report(number, step, value).unwrap_or(Decision::Continue)
    }

    /// Whether a number of a trial was not recorded before.
    pub(crate) fn is_news(&self, job: JobId, step: u64, value: f64) -> bool {
        let Some(trial) = self.trial(job).filter(|_| value.is_finite()) else { return false };
        match trial.reports.binary_search_by_key(&step, |(step, _)| *step) {
            Ok(at) => trial.reports[at].1 != value,
            Err(_) => trial.reports.len() < MOST_STEPS,
        }
    }

    /// What was recorded while the trial ran need not be recorded again with its end.
    pub(crate) fn leave_out_known(&self, job: JobId, told: &mut Told) {
        told.steps.retain(|(step, value)| self.is_news(job, *step, *value));
    }

    pub(crate) fn curtail(&mut self, job: JobId, how: Curtailment) {
        if let Some((searching, _)) = self.of_trial(job) {
            searching.curtailed.insert(job, how);
        }
    }

    pub(crate) fn curtailed(&self, job: JobId) -> Option<Curtailment> {
        self.searches.by_set.get(&self.set_of(job))?.curtailed.get(&job).copied()
    }

    pub(crate) fn pause_trial(&mut self, job: JobId) {
        if let Some((searching, number)) = self.of_trial(job) {
            searching.curtailed.remove(&job);
            searching.paused.insert(job);
            let _ = searching.study.pause(number);
        }
    }

    pub(crate) fn continue_trial(&mut self, job: JobId) {
        if let Some((searching, number)) = self.of_trial(job) {
            searching.paused.remove(&job);
            let _ = searching.study.resume(number);
        }
    }

    /// How many trials of a search wait at their rungs.
    pub(crate) fn paused(&self, set: SetId) -> u32 {
        self.searches.by_set.get(&set).map_or(0, |searching| searching.paused.len() as u32)
    }

    pub(crate) fn paused_trials(&self, set: SetId) -> Vec<JobId> {
        self.searches.by_set.get(&set).into_iter().flat_map(|searching| searching.paused.iter().copied()).collect()
    }

    /// True for a trial that waits at its rung.
    pub fn is_paused(&self, job: JobId) -> bool {
        self.searches.by_set.get(&self.set_of(job)).is_some_and(|searching| searching.paused.contains(&job))
    }

    /// A paused trial that has earned to go on.
    pub(crate) fn promotion(&self, set: SetId) -> Option<JobId> {
        let searching = self.searches.by_set.get(&set).filter(|searching| !searching.paused.is_empty())?;
        *searching.tasks.get(searching.study.promotion()? as usize)?
    }

    /// When a search began, and what its ended attempts have used of GPUs.
    pub(crate) fn spent(&self, set: SetId) -> (Option<Timestamp>, Duration) {
        self.searches.by_set.get(&set).map_or((None, Duration::ZERO), |searching| (searching.began, searching.gpu_time))
    }

    pub(crate) fn spend(&mut self, job: JobId, gpu_time: Duration) {
        let set = self.set_of(job);
        if let Some(searching) = self.searches.by_set.get_mut(&set) {
            searching.gpu_time += gpu_time;
        }
    }

    /// The run was interrupted for so long, which no search is charged for.
    pub(crate) fn shift_searches(&mut self, by: Duration) {
        for searching in self.searches.by_set.values_mut() {
            searching.began = searching.began.map(|began| began.plus(by));
        }
    }

    /// A trial ended well, with what it said.
    pub(crate) fn complete_trial(&mut self, job: JobId, told: Option<&Told>) {
        let search = self.plan().task(self.set_of(job)).search().cloned();
        let (Some(search), Some((searching, number)), Some(told)) = (search, self.of_trial(job), told) else { return };
        let study = &mut searching.study;
        for (step, value) in &told.steps {
            let _ = study.report(number, *step, *value);
        }
        let objectives = &study.settings().objectives;
        let values: Option<Vec<f64>> =
            objectives.iter().map(|objective| told.values.get(&objective.name).copied()).collect();
        let constraints: Option<Vec<f64>> = search.constraints.iter().map(|limit| limit.violation(told)).collect();
        let outcome = match values.zip(constraints) {
            Some((values, constraints)) => Outcome::Complete { values, constraints },
            None => Outcome::Failed { reason: "it did not say all of its numbers".into() },
        };
        self.end_trial(job, outcome);
    }

    /// What a complete trial said, as it would say it again.
    pub(crate) fn told(&self, job: JobId) -> Option<Told> {
        let trial = self.trial(job).filter(|trial| trial.state == State::Complete)?;
        let search = self.plan().task(self.set_of(job)).search()?;
        let limits = search.constraints.iter().zip(&trial.constraints);
        let mut values: BTreeMap<String, f64> =
            limits.map(|(limit, violation)| (limit.name.clone(), limit.value(*violation))).collect();
        let objectives = search.study.objectives.iter().zip(&trial.values);
        values.extend(objectives.map(|(objective, value)| (objective.name.clone(), *value)));
        Some(Told { values, steps: trial.reports.clone() })
    }

    /// Whether these numbers are all that a task must say; one that is no trial need not say any.
    pub(crate) fn is_answered(&self, job: JobId, told: Option<&Told>) -> bool {
        let Some(search) = self.plan().task(self.set_of(job)).search() else { return true };
        told.is_some_and(|told| search.numbers().iter().all(|name| told.values.contains_key(name)))
    }

    /// One that ended before stays as it ended.
    pub(crate) fn end_trial(&mut self, job: JobId, outcome: Outcome) {
        if let Some((searching, number)) = self.of_trial(job) {
            searching.curtailed.remove(&job);
            searching.paused.remove(&job);
            let _ = searching.study.tell(number, outcome);
        }
    }

    /// The value of a parameter of a search. One that means nothing beside the others of the trial is empty.
    pub(super) fn sampled(&self, job: JobId, name: &str) -> Option<Value> {
        let searching = self.searches.by_set.get(&self.set_of(job))?;
        let values = searching.study.values(*searching.trials.get(&job)?)?;
        Some(match values.get(name)? {
            tulpar_hpo::Value::Bool(value) => Value::Bool(*value),
            tulpar_hpo::Value::Int(value) => Value::Integer(*value),
            tulpar_hpo::Value::Text(text) => Value::Text(text.clone()),
            number => Value::Written { number: number.number().unwrap_or(f64::NAN), text: number.to_string() },
        })
    }

    /// What a search found, as a file: `best.json` or `trials.csv` of the task. Outputs of the best trial are files of
    /// their own.
    pub(super) fn found(&self, set: SetId, finding: Finding) -> Option<InputFile> {
        let study = self.study(set)?;
        let name = &self.plan().task(set).name;
        let (path, text) = match finding {
            Finding::Best => (format!("{name}.best.json"), self.best_text(set)?),
            Finding::Trials => (format!("{name}.trials.csv"), self.table(set, study)),
            Finding::Output(_) | Finding::Top { .. } | Finding::Front(_) => return None,
        };
        let (size, digest) = (text.len() as u64, Digest::of(text.as_bytes()));
        Some(InputFile { path, source: Source::Text(text.into()), size, digest })
    }

    /// The task that was the best trial of a search, among those that ran here.
    pub fn best(&self, set: SetId) -> Option<JobId> {
        self.top(set, 1).first().copied()
    }

    /// The tasks that were the best trials, the best first; with several objectives, of the front.
    pub fn top(&self, set: SetId, most: usize) -> Vec<JobId> {
        let Some(study) = self.study(set) else { return Vec::new() };
        let best = if study.settings().objectives.len() == 1 {
            study.top(study.trials().len())
        } else {
            analysis::front(study)
        };
        best.into_iter().filter_map(|number| self.task_of_trial(set, number)).take(most).collect()
    }

    /// The tasks of all trials that no other is better than in every objective.
    pub fn front(&self, set: SetId) -> Vec<JobId> {
        let front = self.study(set).map(analysis::front).unwrap_or_default();
        front.into_iter().filter_map(|number| self.task_of_trial(set, number)).collect()
    }

    /// As the task counts its trials; those of others are called by where they are kept.
    fn trial_name(&self, set: SetId, trial: &Trial) -> serde_json::Value {
        match (self.task_of_trial(set, trial.number), self.job_at(set, 0)) {
            (Some(job), Some(first)) => (job.0 - first.0 + 1).into(),
            _ => trial.source.clone().unwrap_or_default().into(),
        }
    }

    /// The best trial in words. Where trials leave files, it is one whose files are here.
    fn best_text(&self, set: SetId) -> Option<String> {
        let study = self.study(set)?;
        let here = self.best(set).filter(|_| !self.plan().task(set).outputs.is_empty());
        let trial = here.and_then(|job| self.trial(job)).or_else(|| best_trial(study))?;
        let objectives = study.settings().objectives.iter().zip(&trial.values);
        let values: BTreeMap<&str, f64> =
            objectives.map(|(objective, value)| (objective.name.as_str(), *value)).collect();
        let best = serde_json::json!({
            "trial": self.trial_name(set, trial),
            "params": study.values(trial.number)?,
            "values": values,
        });
        Some(format!("{best:#}\n"))
    }

    fn table(&self, set: SetId, study: &Study) -> String {
        let names: Vec<&str> = study.space().parameters().iter().map(|parameter| parameter.name.as_str()).collect();
        let objectives: Vec<&str> =
            study.settings().objectives.iter().map(|objective| objective.name.as_str()).collect();
        let head = ["trial", "state"].into_iter().chain(objectives.iter().copied()).chain(names.iter().copied());
        let mut text = head.map(cell).collect::<Vec<_>>().join(",");
        text.push('\n');
        for trial in study.trials() {
            let state = match trial.state {
                State::Running => "running",
                State::Paused => "paused",
                State::Complete => "complete",
                State::Pruned => "pruned",
                State::Failed => "failed",
            };
            let name = self.trial_name(set, trial);
            let _ = write!(text, "{},{state}", name.as_str().map_or_else(|| name.to_string(), cell));
            for objective in 0..objectives.len() {
                let value = trial.values.get(objective).map(ToString::to_string).unwrap_or_default();
                let _ = write!(text, ",{value}");
            }
            let values = study.values(trial.number).unwrap_or_default();
            for name in &names {
                let value = values.get(*name).map(ToString::to_string).unwrap_or_default();
                let _ = write!(text, ",{}", cell(&value));
            }
            text.push('\n');
        }
        text
    }
}

/// With several objectives, the first of those that no other is better than in all of them.
fn best_trial(study: &Study) -> Option<&Trial> {
    study.best().or_else(|| study.trial(*analysis::front(study).first()?))
}

fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
