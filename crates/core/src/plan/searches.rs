//! The studies of a run: which trial each task of a search is, its parameters, and what was found.
//!
//! It is told of trials in the order of the recorded events, and so is the same live and in replay.

use super::Plan;
use super::graph::Graph;
use crate::ids::{Digest, JobId, SetId};
use crate::job::{InputFile, Source, Told};
use crate::workflow::{Finding, Value};
use std::collections::BTreeMap;
use std::fmt::Write;
use tulpar_hpo::{Origin, Outcome, State, Study, Trial, Values};

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
}

impl Searches {
    pub(super) fn new(plan: &Plan) -> Self {
        let tasks = plan.workflow.tasks.iter().enumerate();
        let searches = tasks.filter_map(|(set, task)| {
            // One that makes no sense was refused when the workflow was read.
            let study = Study::new(task.search()?.study.clone()).ok()?;
            Some((SetId::from(set), Searching { study, tasks: Vec::new(), trials: BTreeMap::new(), asked: 0 }))
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
    pub(crate) fn begin_trial(&mut self, job: JobId, values: &Values, origin: Origin) {
        let set = self.set_of(job);
        let Some(searching) = self.searches.by_set.get_mut(&set) else { return };
        searching.asked += 1;
        let begun = searching.study.space().point(values).map(|point| searching.study.begin(point, origin));
        // The study proposed it, now or when the journal was written by a Tulpar whose spaces were the same.
        if let Ok(Ok(number)) = begun {
            searching.tasks.resize(number as usize, None);
            searching.tasks.push(Some(job));
            searching.trials.insert(job, number);
        }
    }

    /// A trial ended with what it said, or otherwise.
    pub(crate) fn end_trial(&mut self, job: JobId, told: Result<&Told, String>) {
        let set = self.set_of(job);
        let Some(searching) = self.searches.by_set.get_mut(&set) else { return };
        let Some(number) = searching.trials.get(&job).copied() else { return };
        let study = &mut searching.study;
        let outcome = match told {
            Ok(told) => {
                for (step, value) in &told.steps {
                    let _ = study.report(number, *step, *value);
                }
                let objectives = &study.settings().objectives;
                let values: Option<Vec<f64>> =
                    objectives.iter().map(|objective| told.values.get(&objective.name).copied()).collect();
                match values {
                    Some(values) => Outcome::Complete { values, constraints: Vec::new() },
                    None => Outcome::Failed { reason: "it did not say all of its numbers".into() },
                }
            }
            Err(reason) => Outcome::Failed { reason },
        };
        // One that ended before stays as it ended.
        let _ = study.tell(number, outcome);
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
            Finding::Best => (format!("{name}.best.json"), best(study)?),
            Finding::Trials => (format!("{name}.trials.csv"), table(study)),
            Finding::Output(_) => return None,
        };
        let (size, digest) = (text.len() as u64, Digest::of(text.as_bytes()));
        Some(InputFile { path, source: Source::Text(text.into()), size, digest })
    }

    /// The task that was the best trial of a search.
    pub fn best(&self, set: SetId) -> Option<JobId> {
        self.task_of_trial(set, best_trial(self.study(set)?)?.number)
    }
}

/// With several objectives, the first of those that no other is better than in all of them.
fn best_trial(study: &Study) -> Option<&Trial> {
    study.best().or_else(|| study.trials().iter().find(|trial| trial.is_feasible()))
}

fn best(study: &Study) -> Option<String> {
    let trial = best_trial(study)?;
    let objectives = study.settings().objectives.iter().zip(&trial.values);
    let values: BTreeMap<&str, f64> = objectives.map(|(objective, value)| (objective.name.as_str(), *value)).collect();
    let best = serde_json::json!({
        "trial": trial.number + 1,
        "params": study.values(trial.number)?,
        "values": values,
    });
    Some(format!("{best:#}\n"))
}

fn table(study: &Study) -> String {
    let names: Vec<&str> = study.space().parameters().iter().map(|parameter| parameter.name.as_str()).collect();
    let objectives: Vec<&str> = study.settings().objectives.iter().map(|objective| objective.name.as_str()).collect();
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
        let _ = write!(text, "{},{state}", trial.number + 1);
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

fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
