//! Searches of a run in figures: every trial, the best, how it came about, what mattered and what it cost.
//!
//! What parameters explain and what more trials would bring is `hpo`'s to say; here it is put beside what the
//! trials took. How it looks is for the files beside this one.

mod axis;
mod charts;
mod contour;
mod marks;
mod panels;
mod parallel;
mod words;

pub use charts::{Drawing, drawings};
pub(crate) use words::{best, trials};
pub use words::{best_first, search_line, search_lines, search_sentences};

use crate::gather::Gathered;
use axis::Axis;
use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::hpo::analysis::{self, Importance, Outlook};
use tulpar_core::hpo::{Direction, Domain, State, Study, Trial, Value};
use tulpar_core::ids::SearchId;
use tulpar_core::plan::Graph;
use tulpar_core::units::Timestamp;

/// One search of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchReport {
    /// The entry under `tasks:`.
    pub task: String,
    pub objectives: Vec<Goal>,
    /// How many trials it may have.
    pub wanted: u32,
    /// How many are in each state.
    pub states: BTreeMap<&'static str, u32>,
    /// The place of the best trial among `trials`, counted from 1; with several objectives see `front`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<u32>,
    /// With several objectives: the trials that no other beats in all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub front: Vec<u32>,
    /// For the first objective, the most important first.
    pub importances: Vec<Importance>,
    /// What `more` further trials would likely bring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Outlook>,
    pub more: usize,
    /// From the first trial to the last, by the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_seconds: Option<f64>,
    /// Of all attempts of all trials.
    pub wall_seconds: f64,
    pub gpu_hours: f64,
    pub trials: Vec<TrialRow>,
    /// For each objective, complete trials and their values.
    #[serde(skip)]
    pub(crate) progress: Vec<Vec<(u32, f64)>>,
    #[serde(skip)]
    pub(crate) axes: Vec<Axis>,
}

impl SearchReport {
    /// The names of the parameters, in the order of the workflow.
    pub fn parameters(&self) -> Vec<String> {
        self.axes.iter().map(|axis| axis.name.clone()).collect()
    }
}

/// A number that is to become small or large.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    pub name: String,
    pub maximize: bool,
}

impl Goal {
    /// Smaller is better.
    pub(crate) fn loss(&self, value: f64) -> f64 {
        if self.maximize { -value } else { value }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialRow {
    /// Its place among all trials that are known, those of others included, counted from 1.
    pub trial: u32,
    /// What it is called: the number that `{trial}` is; of one that somebody else ran, where it is kept.
    pub name: String,
    /// The task that it is; none where somebody else ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    pub state: &'static str,
    /// One for each objective, once it is complete.
    pub values: Vec<f64>,
    pub parameters: BTreeMap<String, Value>,
    /// Of all its attempts.
    pub seconds: f64,
    pub gpu_hours: f64,
    /// Numbers on the way, of the first objective, by step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<(u64, f64)>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// It is complete, and breaks a constraint.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub infeasible: bool,
    #[serde(skip)]
    pub(crate) point: Vec<Option<f64>>,
}

impl TrialRow {
    /// The same without the numbers on the way.
    pub fn without_steps(&self) -> Self {
        TrialRow {
            steps: Vec::new(),
            name: self.name.clone(),
            values: self.values.clone(),
            parameters: self.parameters.clone(),
            reason: self.reason.clone(),
            point: self.point.clone(),
            ..*self
        }
    }

    /// The first objective; of one that was ended early the last that it said.
    pub(crate) fn value(&self) -> Option<f64> {
        let said = self.values.first().copied().or_else(|| self.steps.last().map(|(_, value)| *value));
        said.filter(|value| value.is_finite())
    }

    pub(crate) fn is_complete(&self) -> bool {
        !self.values.is_empty()
    }

    /// Complete, and all constraints are kept.
    pub(crate) fn is_feasible(&self) -> bool {
        self.is_complete() && !self.infeasible
    }

    /// Whether it is a task of this run, and not of somebody else.
    pub(crate) fn is_own(&self) -> bool {
        self.job.is_some()
    }

    /// Its state in a table.
    pub(crate) fn standing(&self) -> String {
        if self.infeasible { format!("{}, breaks a constraint", self.state) } else { self.state.to_owned() }
    }
}

/// The word of tables and of SQL.
pub(crate) fn word(state: State) -> &'static str {
    state.word()
}

/// The searches of a run, in the order of the workflow.
pub fn searches(graph: &Graph, gathered: &Gathered) -> Vec<SearchReport> {
    graph.searches().filter_map(|search| searched(graph, gathered, search)).collect()
}

fn searched(graph: &Graph, gathered: &Gathered, search: SearchId) -> Option<SearchReport> {
    let task = graph.plan().task(search.set);
    let took = |number: u32| {
        let job = graph.task_of_trial(search, number);
        let took = job.and_then(|job| gathered.trials.get(&job)).copied().unwrap_or_default();
        Took {
            job: job.map(|job| job.0),
            count: graph.count_of_trial(search, number),
            seconds: crate::measured::seconds(took.wall_us),
            gpu_hours: took.milli_gpu_us as f64 / 3.6e12,
            span: took.span,
        }
    };
    Some(SearchReport::new(&graph.search_name(search), task.search()?.trials, graph.study(search)?, took))
}

/// What the attempts of a trial took together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Took {
    pub job: Option<u32>,
    /// The number that `{trial}` is; none where somebody else ran it.
    pub count: Option<u32>,
    pub seconds: f64,
    pub gpu_hours: f64,
    /// When the first attempt began and the last ended.
    pub span: Option<(Timestamp, Timestamp)>,
}

impl SearchReport {
    /// A study as it stands; `took` is asked for what each of its trials took, by their numbers from 0.
    pub fn new(task: &str, wanted: u32, study: &Study, took: impl Fn(u32) -> Took) -> Self {
        let goal = |one: &tulpar_core::hpo::Objective| Goal {
            name: one.name.clone(),
            maximize: one.direction == Direction::Maximize,
        };
        let objectives: Vec<Goal> = study.settings().objectives.iter().map(goal).collect();
        let spent: Vec<Took> = study.trials().iter().map(|trial| took(trial.number)).collect();
        let spans = || spent.iter().filter_map(|took| took.span);
        let (began, ended) = (spans().map(|(began, _)| began).min(), spans().map(|(_, ended)| ended).max());
        let elapsed = began.zip(ended).map(|(began, ended)| ended.since(began).as_secs_f64());
        let trials: Vec<TrialRow> =
            study.trials().iter().zip(&spent).map(|(trial, took)| row(study, trial, *took)).collect();
        let mut states = BTreeMap::new();
        trials.iter().for_each(|trial| *states.entry(trial.state).or_insert(0) += 1);
        let several = objectives.len() > 1;
        let complete = trials.iter().filter(|trial| trial.is_complete()).count();
        let more = (complete / 2).max(10);
        let progress = (0..objectives.len()).map(|objective| {
            let all = analysis::progress(study, objective);
            all.into_iter().map(|one| (one.number + 1, one.value)).collect()
        });
        let front = if several { analysis::front(study) } else { Vec::new() };
        SearchReport {
            task: task.to_owned(),
            wanted,
            best: if several { None } else { study.best().map(|trial| trial.number + 1) },
            front: front.into_iter().map(|number| number + 1).collect(),
            importances: analysis::importances(study, 0),
            outlook: analysis::outlook(study, more),
            more,
            elapsed_seconds: elapsed,
            wall_seconds: trials.iter().map(|trial| trial.seconds).sum(),
            gpu_hours: trials.iter().map(|trial| trial.gpu_hours).sum(),
            progress: progress.collect(),
            axes: study.space().parameters().iter().map(|one| Axis::of_domain(&one.name, &one.domain)).collect(),
            objectives,
            states,
            trials,
        }
    }
}

fn row(study: &Study, trial: &Trial, took: Took) -> TrialRow {
    TrialRow {
        trial: trial.number + 1,
        name: match (took.count, &trial.source) {
            (Some(count), _) => count.to_string(),
            (None, Some(source)) => source.clone(),
            (None, None) => (trial.number + 1).to_string(),
        },
        job: took.job,
        state: word(trial.state),
        values: trial.values.clone(),
        parameters: study.values(trial.number).unwrap_or_default(),
        seconds: took.seconds,
        gpu_hours: took.gpu_hours,
        steps: trial.reports.clone(),
        reason: trial.reason.clone(),
        infeasible: trial.state == State::Complete && !trial.is_feasible(),
        point: trial.point.clone(),
    }
}

/// For an axis: the names of choices, or nothing.
fn choices(domain: &Domain) -> Vec<String> {
    match domain {
        Domain::Choice(values) => values.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}
