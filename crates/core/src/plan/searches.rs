//! The studies of a run: which trial each task of a search is, its parameters, and what was found.
//!
//! It is told of trials in the order of the recorded events, and so is the same live and in replay.

use super::Plan;
use super::graph::Graph;
use super::outside::Outside;
use crate::event::{Added, Curtailment};
use crate::ids::{Digest, JobId, SearchId, SetId};
use crate::job::{InputFile, Source, Told};
use crate::provenance::Metric;
use crate::units::Timestamp;
use crate::workflow::{Constraint, FileSource, Finding, Search, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tulpar_hpo::{Decision, Origin, Outcome, Pruner, State, Study, Trial, Values, analysis};

/// More numbers on the way would be a slip of the program.
const MOST_STEPS: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Searches {
    all: BTreeMap<SearchId, Searching>,
    /// By task set, how many trials each of its searches has; 0 where it is none.
    trials: Vec<u32>,
    /// Metrics of tasks that are no trials.
    reported: BTreeMap<JobId, Arc<BTreeMap<String, f64>>>,
}

#[derive(Clone, Debug, PartialEq)]
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
        let trials = plan.workflow.tasks.iter().map(|task| task.search().map_or(0, |search| search.trials));
        Self { all: BTreeMap::new(), trials: trials.collect(), reported: BTreeMap::new() }
    }

    /// A task set has its tasks: one search for every element of its `for:`, whose trials follow each other.
    pub(super) fn unfold(&mut self, set: SetId, search: &Search, count: u32) {
        for part in 0..count / search.trials.max(1) {
            let mut settings = search.study.clone();
            // Searches of the same space are to look at different places.
            settings.seed = settings.seed.wrapping_add(u64::from(part));
            // One that makes no sense was refused when the workflow was read.
            if let Ok(study) = Study::new(settings) {
                self.all.insert(SearchId { set, part }, Searching::new(study));
            }
        }
    }
}

impl Graph {
    /// All searches whose tasks are known, in the order of the workflow.
    pub fn searches(&self) -> impl Iterator<Item = SearchId> + '_ {
        self.searches.all.keys().copied()
    }

    /// The searches of a task set; none where it is no search.
    pub fn searches_of(&self, set: SetId) -> impl Iterator<Item = SearchId> + '_ {
        let all = SearchId { set, part: 0 }..=SearchId { set, part: u32::MAX };
        self.searches.all.range(all).map(|(search, _)| *search)
    }

    /// The search that a task is a trial of.
    #[inline]
    pub fn search_of(&self, job: JobId) -> Option<SearchId> {
        let set = self.set_of(job);
        match self.searches.trials[set.index()] {
            0 => None,
            trials => Some(SearchId { set, part: self.index_of(job) / trials }),
        }
    }

    /// `search`, or `search[part=3]` where there is one for each element.
    pub fn search_name(&self, search: SearchId) -> String {
        let task = &self.plan().task(search.set).name;
        let Some(first) = self.jobs_of_search(search).next() else { return task.clone() };
        let name = self.name(first);
        match name.rfind(",trial=") {
            Some(at) => format!("{}]", &name[..at]),
            None => task.clone(),
        }
    }

    /// The tasks of a search, in the order in which they are asked for.
    pub fn jobs_of_search(&self, search: SearchId) -> impl Iterator<Item = JobId> + use<> {
        let trials = self.searches.trials.get(search.set.index()).copied().unwrap_or(0);
        let first = self.trial_at(search, 0).map_or(0..0, |first| first.0..first.0 + trials);
        first.map(JobId)
    }

    /// One of the tasks of a search, by its position.
    pub(crate) fn trial_at(&self, search: SearchId, position: u32) -> Option<JobId> {
        let trials = *self.searches.trials.get(search.set.index())?;
        let place = search.part.checked_mul(trials)?.checked_add(position)?;
        self.job_at(search.set, place).filter(|_| position < trials)
    }

    /// The searches of a task set whose findings a task takes.
    pub fn searches_for(&self, job: JobId, producer: SetId) -> Vec<SearchId> {
        let mut found: Vec<SearchId> = match self.searches_of(producer).nth(1) {
            None => self.searches_of(producer).collect(),
            Some(_) => self.selected(job, producer).into_iter().filter_map(|trial| self.search_of(trial)).collect(),
        };
        found.dedup();
        found
    }

    pub fn study(&self, search: impl Into<SearchId>) -> Option<&Study> {
        Some(&self.searches.all.get(&search.into())?.study)
    }

    fn searching(&self, job: JobId) -> Option<&Searching> {
        self.searches.all.get(&self.search_of(job)?)
    }

    /// The trial that a task is, once it was asked for.
    pub fn trial(&self, job: JobId) -> Option<&Trial> {
        let searching = self.searching(job)?;
        searching.study.trial(*searching.trials.get(&job)?)
    }

    /// The parameters of the trial that a task is, once it was asked for.
    pub fn parameters(&self, job: JobId) -> Option<Values> {
        let searching = self.searching(job)?;
        searching.study.values(*searching.trials.get(&job)?)
    }

    /// The task that a trial is.
    pub fn task_of_trial(&self, search: SearchId, number: u32) -> Option<JobId> {
        *self.searches.all.get(&search)?.tasks.get(number as usize)?
    }

    /// The trials of a search that are tasks here, in the order of their numbers.
    pub fn own_trials(&self, search: SearchId) -> impl Iterator<Item = &Trial> {
        let trials = self.study(search).map(Study::trials).unwrap_or_default();
        trials.iter().filter(move |trial| self.task_of_trial(search, trial.number).is_some())
    }

    /// How many of the set's tasks were asked for: they are asked for in their order.
    pub fn asked(&self, search: SearchId) -> u32 {
        self.searches.all.get(&search).map_or(0, |searching| searching.asked)
    }

    /// A task becomes a trial with these parameters.
    pub(crate) fn begin_trial(&mut self, at: Timestamp, job: JobId, values: &Values, origin: Origin) {
        let Some(searching) = self.search_of(job).and_then(|search| self.searches.all.get_mut(&search)) else { return };
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
    pub(crate) fn fits(&self, search: SearchId, added: &Added) -> bool {
        self.searches.all.get(&search).is_some_and(|searching| searching.outside.fits(&searching.study, added))
    }

    pub(crate) fn add_trial(&mut self, search: SearchId, added: &Added) {
        if let Some(searching) = self.searches.all.get_mut(&search) {
            searching.outside.add(&mut searching.study, added);
        }
    }

    /// The parameters of the next trial, where others want one to be run.
    pub(crate) fn requested(&self, search: SearchId) -> Option<Values> {
        self.searches.all.get(&search)?.outside.next().cloned()
    }

    fn of_trial(&mut self, job: JobId) -> Option<(&mut Searching, u32)> {
        let searching = self.searches.all.get_mut(&self.search_of(job)?)?;
        let number = *searching.trials.get(&job)?;
        Some((searching, number))
    }

    /// A number on the way, and what to do about it.
    pub(crate) fn report(&mut self, job: JobId, step: u64, value: f64) -> Decision {
        let Some((searching, number)) = self.of_trial(job) else { return Decision::Continue };
        searching.study.report(number, step, value).unwrap_or(Decision::Continue)
    }

    /// Whether a number of a trial was not recorded before. One that is not finite is for the pruner alone.
    pub(crate) fn is_news(&self, job: JobId, step: u64, value: f64) -> bool {
        let Some(trial) = self.trial(job) else { return false };
        if !value.is_finite() {
            return self.searching(job).is_some_and(|searching| searching.study.settings().pruner != Pruner::None);
        }
        match trial.reports.binary_search_by_key(&step, |(step, _)| *step) {
            Ok(at) => trial.reports[at].1 != value,
            Err(_) => trial.reports.len() < MOST_STEPS,
        }
    }

    /// What was recorded while the trial ran need not be recorded again with its end.
    pub(crate) fn leave_out_known(&self, job: JobId, told: &mut Told) {
        told.steps.retain(|(step, value)| value.is_finite() && self.is_news(job, *step, *value));
    }

    pub(crate) fn curtail(&mut self, job: JobId, how: Curtailment) {
        if let Some((searching, _)) = self.of_trial(job) {
            searching.curtailed.insert(job, how);
        }
    }

    pub(crate) fn curtailed(&self, job: JobId) -> Option<Curtailment> {
        self.searching(job)?.curtailed.get(&job).copied()
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

    pub(crate) fn paused_trials(&self, search: SearchId) -> Vec<JobId> {
        self.searches.all.get(&search).into_iter().flat_map(|searching| searching.paused.iter().copied()).collect()
    }

    /// A paused trial that has earned to go on.
    pub(crate) fn promotion(&self, search: SearchId) -> Option<JobId> {
        let searching = self.searches.all.get(&search).filter(|searching| !searching.paused.is_empty())?;
        *searching.tasks.get(searching.study.promotion()? as usize)?
    }

    /// When a search began, and what its ended attempts have used of GPUs.
    pub(crate) fn spent(&self, search: SearchId) -> (Option<Timestamp>, Duration) {
        self.searches.all.get(&search).map_or((None, Duration::ZERO), |searching| (searching.began, searching.gpu_time))
    }

    pub(crate) fn spend(&mut self, job: JobId, gpu_time: Duration) {
        if let Some(searching) = self.search_of(job).and_then(|search| self.searches.all.get_mut(&search)) {
            searching.gpu_time += gpu_time;
        }
    }

    /// The run was interrupted for so long, which no search is charged for.
    pub(crate) fn shift_searches(&mut self, by: Duration) {
        for searching in self.searches.all.values_mut() {
            searching.began = searching.began.map(|began| began.plus(by));
        }
    }

    /// A trial ended well, with what it said.
    pub(crate) fn complete_trial(&mut self, job: JobId, told: Option<&Told>) {
        let search = self.plan().task(self.set_of(job)).search().cloned();
        if search.is_none()
            && let Some(told) = told
        {
            self.searches.reported.insert(job, Arc::new(told.values.clone()));
        }
        let Some(told) = told else {
            // Only a simulation says nothing: without its numbers no real trial ends well.
            self.end_trial(job, Outcome::Simulated);
            return;
        };
        let (Some(search), Some((searching, number))) = (search, self.of_trial(job)) else { return };
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

    /// The values that a complete trial, or a task that reported metrics, would report again.
    pub(crate) fn told(&self, job: JobId) -> Option<Told> {
        if let Some(values) = self.searches.reported.get(&job) {
            return Some(Told { values: (**values).clone(), steps: Vec::new() });
        }
        let trial = self.trial(job).filter(|trial| trial.state == State::Complete)?;
        let search = self.plan().task(self.set_of(job)).search()?;
        let limits = search.constraints.iter().zip(&trial.constraints);
        let mut values: BTreeMap<String, f64> =
            limits.map(|(limit, violation)| (limit.name.clone(), limit.value(*violation))).collect();
        let objectives = search.study.objectives.iter().zip(&trial.values);
        values.extend(objectives.map(|(objective, value)| (objective.name.clone(), *value)));
        Some(Told { values, steps: trial.reports.clone() })
    }

    /// The metrics that tasks reported, each over the tasks of its set.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut found: BTreeMap<(SetId, String), Metric> = BTreeMap::new();
        let trials = self.searches.all.values().flat_map(|searching| searching.trials.keys());
        for job in self.searches.reported.keys().chain(trials) {
            let set = self.set_of(*job);
            for (name, value) in self.told(*job).into_iter().flat_map(|told| told.values) {
                let new = || Metric::new(&self.plan().task(set).name, &name);
                found.entry((set, name.clone())).or_insert_with(new).add(value);
            }
        }
        found.into_values().collect()
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

    /// A task that had failed or was cancelled is run again, and so is its trial.
    pub(crate) fn reopen_trial(&mut self, job: JobId) {
        if let Some((searching, number)) = self.of_trial(job) {
            let _ = searching.study.reopen(number);
        }
    }

    /// The value of a parameter of a search. One that is inactive beside the others of the trial has none.
    pub(super) fn sampled(&self, job: JobId, name: &str) -> Option<Value> {
        let values = self.parameters(job)?;
        Some(match values.get(name)? {
            tulpar_hpo::Value::Bool(value) => Value::Bool(*value),
            tulpar_hpo::Value::Int(value) => Value::Integer(*value),
            tulpar_hpo::Value::Text(text) => Value::Text(text.clone()),
            number => Value::Written { number: number.number().unwrap_or(f64::NAN), text: number.to_string() },
        })
    }

    /// What a search found, as a file: `best.json` or `trials.csv` of the task. Outputs of the best trial are files of
    /// their own.
    pub(super) fn found(&self, search: SearchId, finding: Finding) -> Option<InputFile> {
        let study = self.study(search)?;
        let name = file_name(&self.search_name(search), search.part);
        let (path, text) = match finding {
            Finding::Best => (format!("{name}.best.json"), self.best_text(search)?),
            Finding::Trials => (format!("{name}.trials.csv"), self.table(search, study)),
            Finding::Output(_) | Finding::Top { .. } | Finding::Front(_) => return None,
        };
        let (size, digest) = (text.len() as u64, Digest::of(text.as_bytes()));
        Some(InputFile { path, source: Source::Text(text.into()), size, digest })
    }

    /// Whether a task takes what no search found: trials are complete, and none of them keeps the constraints.
    pub(crate) fn is_infeasible(&self, job: JobId) -> bool {
        if self.searches.all.is_empty() {
            return false;
        }
        let task = self.plan().task(self.set_of(job));
        let further = task.run.planned().into_iter().flat_map(|planned| planned.further.values().flatten());
        task.inputs.iter().map(|input| &input.source).chain(further).any(|source| match source {
            FileSource::Search { task, finding } => {
                let searches = self.searches_for(job, *task);
                searches.iter().any(|search| self.breaks_constraints(*search))
                    && !searches.iter().any(|search| self.has_found(*search, *finding))
            }
            _ => false,
        })
    }

    fn breaks_constraints(&self, search: SearchId) -> bool {
        let trials = self.study(search).map(Study::trials).unwrap_or_default();
        trials.iter().any(|trial| trial.state == State::Complete && !trial.is_feasible())
    }

    fn has_found(&self, search: SearchId, finding: Finding) -> bool {
        match finding {
            Finding::Trials => true,
            Finding::Best => self.study(search).is_some_and(|study| best_trial(study).is_some()),
            Finding::Output(_) | Finding::Top { .. } | Finding::Front(_) => self.best(search).is_some(),
        }
    }

    /// The task that was the best trial of a search, among those that ran here.
    pub fn best(&self, search: SearchId) -> Option<JobId> {
        self.top(search, 1).first().copied()
    }

    /// The tasks that were the best trials, the best first; with several objectives, of the front those that lie farthest
    /// apart.
    pub fn top(&self, search: SearchId, most: usize) -> Vec<JobId> {
        let Some(study) = self.study(search) else { return Vec::new() };
        let mut best = if study.settings().objectives.len() == 1 {
            study.top(study.trials().len())
        } else {
            analysis::spread(study, &self.own_front(search))
        };
        if best.is_empty() {
            best = simulated(study).map(|trial| trial.number).collect();
        }
        best.into_iter().filter_map(|number| self.task_of_trial(search, number)).take(most).collect()
    }

    /// Trials that ran here and that no other of these is better than in every objective: what others ran left no files.
    fn own_front(&self, search: SearchId) -> Vec<u32> {
        let own = |trial: &Trial| self.task_of_trial(search, trial.number).is_some();
        self.study(search).map(|study| analysis::front_among(study, own)).unwrap_or_default()
    }

    /// The tasks of these trials.
    pub fn front(&self, search: SearchId) -> Vec<JobId> {
        let mut front = self.own_front(search);
        if front.is_empty() {
            front = self
                .study(search)
                .and_then(|study| simulated(study).next())
                .map(|trial| trial.number)
                .into_iter()
                .collect();
        }
        front.into_iter().filter_map(|number| self.task_of_trial(search, number)).collect()
    }

    /// A trial as its task counts it, from 1; none where somebody else ran it.
    pub fn count_of_trial(&self, search: SearchId, number: u32) -> Option<u32> {
        let job = self.task_of_trial(search, number)?;
        Some(self.index_of(job) % self.searches.trials[search.set.index()] + 1)
    }

    /// As the task counts its trials; those of others are called by where they are kept.
    fn trial_name(&self, search: SearchId, trial: &Trial) -> serde_json::Value {
        match self.count_of_trial(search, trial.number) {
            Some(count) => count.into(),
            None => trial.source.clone().unwrap_or_default().into(),
        }
    }

    /// The best trial in words. Where trials leave files, it is one whose files are here.
    fn best_text(&self, search: SearchId) -> Option<String> {
        let study = self.study(search)?;
        let here = self.best(search).filter(|_| !self.plan().task(search.set).outputs.is_empty());
        let trial = here.and_then(|job| self.trial(job)).or_else(|| best_trial(study))?;
        let objectives = study.settings().objectives.iter().zip(&trial.values);
        let values: BTreeMap<&str, f64> =
            objectives.map(|(objective, value)| (objective.name.as_str(), *value)).collect();
        let best = serde_json::json!({
            "trial": self.trial_name(search, trial),
            "params": study.values(trial.number)?,
            "values": values,
        });
        Some(format!("{best:#}\n"))
    }

    fn table(&self, search: SearchId, study: &Study) -> String {
        let names: Vec<&str> = study.space().parameters().iter().map(|parameter| parameter.name.as_str()).collect();
        let objectives: Vec<&str> =
            study.settings().objectives.iter().map(|objective| objective.name.as_str()).collect();
        let limits =
            self.plan().task(search.set).search().map(|search| search.constraints.as_slice()).unwrap_or_default();
        let constrained = constrained(limits, &objectives);
        let head = ["trial", "state"].into_iter().chain(objectives.iter().copied());
        let head = head.chain(constrained.iter().map(|(_, limit)| limit.name.as_str()));
        let head = head.chain((!limits.is_empty()).then_some("feasible")).chain(names.iter().copied());
        let mut text = head.map(cell).collect::<Vec<_>>().join(",");
        text.push('\n');
        for trial in study.trials() {
            let state = trial.state.word();
            let name = self.trial_name(search, trial);
            let _ = write!(text, "{},{state}", name.as_str().map_or_else(|| name.to_string(), cell));
            for objective in 0..objectives.len() {
                let value = trial.values.get(objective).map(ToString::to_string).unwrap_or_default();
                let _ = write!(text, ",{value}");
            }
            for (at, limit) in &constrained {
                let value = trial.constraints.get(*at).map(|violation| limit.value(*violation).to_string());
                let _ = write!(text, ",{}", value.unwrap_or_default());
            }
            if !limits.is_empty() {
                let complete = trial.state == State::Complete;
                let _ = write!(text, ",{}", if complete { trial.is_feasible().to_string() } else { String::new() });
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

/// The numbers that only constraints are about, each once, with the constraint that says it.
fn constrained<'a>(limits: &'a [Constraint], objectives: &[&str]) -> Vec<(usize, &'a Constraint)> {
    let new = |(at, limit): &(usize, &Constraint)| {
        !objectives.contains(&limit.name.as_str()) && !limits[..*at].iter().any(|other| other.name == limit.name)
    };
    limits.iter().enumerate().filter(new).collect()
}

/// With several objectives, the first of those that no other is better than in all of them.
fn best_trial(study: &Study) -> Option<&Trial> {
    let front = || study.trial(*analysis::front(study).first()?);
    study.best().or_else(front).or_else(|| simulated(study).next())
}

/// In a simulation no trial is better than another: those that come first stand for the best.
fn simulated(study: &Study) -> impl Iterator<Item = &Trial> {
    study.trials().iter().filter(|trial| trial.state == State::Simulated)
}

/// The name of a search as that of a file, different for each. `search[part=3]` becomes `search.part=3`.
fn file_name(name: &str, part: u32) -> String {
    let Some((task, element)) = name.strip_suffix(']').and_then(|name| name.split_once('[')) else {
        return name.to_owned();
    };
    let fits = |letter: char| letter.is_alphanumeric() || "-_.=,+".contains(letter);
    match element.chars().all(fits) {
        true => format!("{task}.{element}"),
        // What cannot be in a name may be all that tells two elements from each other.
        false => {
            let element: String = element.chars().map(|letter| if fits(letter) { letter } else { '-' }).collect();
            format!("{task}.{element}.{}", part + 1)
        }
    }
}

fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
