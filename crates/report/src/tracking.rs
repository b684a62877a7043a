//! Searches as other tools keep them: runs of MLflow's file store, sessions of TensorBoard's HParams,
//! offline runs of Weights & Biases, and plain JSON.
//!
//! It gives the files by name; whoever calls writes them.

mod hparams;
mod mlflow;
mod wandb;

pub use hparams::hparams;
pub use mlflow::mlflow;
pub use wandb::wandb;

use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::event::Event;
use tulpar_core::hpo::{Study, Trial, Values};
use tulpar_core::ids::{JobId, SearchId};
use tulpar_core::plan::Graph;
use tulpar_core::units::Timestamp;

/// When the trials of a run began and ended.
#[derive(Clone, Debug, Default)]
pub struct TrialTimes(BTreeMap<JobId, (Timestamp, Timestamp)>);

impl TrialTimes {
    pub fn note(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::Asked { job, .. } => drop(self.0.insert(*job, (at, at))),
            event => {
                if let Some((_, end)) = event.job().and_then(|job| self.0.get_mut(&job)) {
                    *end = at;
                }
            }
        }
    }
}

/// A search of a run with its trials.
pub struct Searched<'a> {
    pub task: String,
    /// Nothing of the run really ran.
    pub simulated: bool,
    pub study: &'a Study,
    pub trials: Vec<TrialFacts<'a>>,
}

pub struct TrialFacts<'a> {
    /// As the task is called, or where a trial of others is kept.
    pub name: String,
    pub trial: &'a Trial,
    pub begin: Timestamp,
    pub end: Timestamp,
}

/// All searches of a run. Trials of others have the time of the run's first event.
pub fn searched<'a>(graph: &'a Graph, times: &TrialTimes, first: Timestamp, simulated: bool) -> Vec<Searched<'a>> {
    let one = |search: SearchId| {
        let study = graph.study(search)?;
        let trials = study.trials().iter().map(|trial| {
            let job = graph.task_of_trial(search, trial.number);
            let (begin, end) = job.and_then(|job| times.0.get(&job).copied()).unwrap_or((first, first));
            let name = match (job, &trial.source) {
                (Some(job), _) => graph.name(job),
                (None, Some(source)) => source.clone(),
                (None, None) => format!("trial {}", trial.number),
            };
            TrialFacts { name, trial, begin, end }
        });
        Some(Searched { task: graph.search_name(search), simulated, study, trials: trials.collect() })
    };
    graph.searches().filter_map(one).collect()
}

impl Searched<'_> {
    /// A name that tells a simulated run from a real one.
    fn marked(&self, name: &str) -> String {
        if self.simulated { format!("{name} (simulated)") } else { name.to_owned() }
    }

    fn parameters(&self, trial: &Trial) -> Values {
        self.study.values(trial.number).unwrap_or_default()
    }

    /// The numbers that it ended with, by the names of the objectives.
    fn values<'s>(&'s self, trial: &'s Trial) -> impl Iterator<Item = (&'s str, f64)> {
        let names = self.study.settings().objectives.iter().map(|objective| objective.name.as_str());
        names.zip(trial.values.iter().copied())
    }

    /// The numbers on the way, which are those of the first objective.
    fn curve<'s>(&'s self, trial: &'s Trial) -> (&'s str, &'s [(u64, f64)]) {
        (self.study.settings().objectives[0].name.as_str(), &trial.reports)
    }
}

/// How a trial stands, in a word.
pub fn trial_state(trial: &Trial) -> &'static str {
    trial.state.word()
}

#[derive(Serialize)]
struct Row<'a> {
    search: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
    state: &'static str,
    values: BTreeMap<&'a str, f64>,
    params: Values,
    steps: &'a [(u64, f64)],
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    seconds: f64,
}

/// One line of JSON a trial.
pub fn trials_json(searches: &[Searched]) -> String {
    let mut text = String::new();
    for search in searches {
        for facts in &search.trials {
            let row = Row {
                search: &search.task,
                name: &facts.name,
                simulated: search.simulated,
                state: trial_state(facts.trial),
                values: search.values(facts.trial).collect(),
                params: search.parameters(facts.trial),
                steps: &facts.trial.reports,
                reason: facts.trial.reason.as_deref(),
                seconds: facts.end.since(facts.begin).as_secs_f64(),
            };
            text.push_str(&serde_json::to_string(&row).expect("trials are plain data"));
            text.push('\n');
        }
    }
    text
}

/// A name that is one folder.
fn folder(name: &str) -> String {
    name.chars().map(|letter| if letter.is_alphanumeric() || "-_.=".contains(letter) { letter } else { '-' }).collect()
}

#[cfg(test)]
mod tests;
