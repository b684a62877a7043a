//! Finished searches of earlier runs: an unchanged search asks for the same trials again, in the same order, whatever the
//! order in which its trials ended.
//!
//! Complete trials come from the cache, pruned ones stay pruned, and failed ones run again with the same parameters.

use super::SpecContext;
use crate::ids::{Digest, SearchId};
use crate::workflow::{AxisValues, Task};
use serde::{Deserialize, Serialize};
use tulpar_hpo::{Origin, State, Values};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastSearch {
    /// The digest of its definition, inputs and programs.
    pub key: Digest,
    pub trials: Vec<PastTrial>,
    /// Its time or GPU hours were spent before all of its trials were asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastTrial {
    pub values: Values,
    pub origin: Origin,
    /// Of a pruned trial, its intermediate values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Vec<(u64, f64)>>,
}

/// The digest of what a task says of its search: all keys of its searches, whatever their inputs and programs, belong to it.
pub fn search_definition(task: &Task) -> Option<Digest> {
    let search = task.search()?;
    let outputs: Vec<_> = task.outputs.iter().map(|output| (&output.name, &output.path, &output.kind)).collect();
    let definition = (&task.name, &task.run, outputs, &search.study, search.time, search.gpu_time, &search.constraints);
    Some(Digest::of(&serde_json::to_vec(&definition).ok()?))
}

impl SpecContext<'_> {
    /// The digest of everything that makes a search the same search. Its number of trials, its parallelism and the request of
    /// each trial do not count, and neither does the rest of the workflow: comments, other tasks, parameters that only these use.
    pub fn search_key(&self, search: SearchId) -> Option<Digest> {
        let plan = self.graph.plan();
        let task = plan.task(search.set);
        let settings = task.search()?;
        let first = self.graph.jobs_of_search(search).next()?;
        let inputs: Vec<(String, Digest)> = self.input_digests(first).collect();
        let axes = task.scatter.iter().filter(|axis| !matches!(axis.values, AxisValues::Trials(_)));
        let element =
            axes.flat_map(|axis| &axis.names).map(|name| Some((name, self.graph.variable(first, name)?.label())));
        let outputs: Vec<_> = task.outputs.iter().map(|output| (&output.name, &output.path, &output.kind)).collect();
        let environment = &task.settings.environment;
        let software = [&environment.container, &environment.venv, &environment.conda];
        let software: Vec<_> = software.into_iter().flatten().map(|name| (name, plan.environments.get(name))).collect();
        let definition = (
            (self.graph.search_name(search), element.collect::<Vec<_>>(), &task.run, outputs, inputs),
            (self.graph.study(search)?.settings(), settings.time, settings.gpu_time, &settings.constraints),
            (environment, software, &task.settings.checkpoint),
        );
        let definition = serde_json::to_string(&definition).ok()?;
        let is_used = |name: &str| {
            [format!("{{{name}}}"), format!("{{{name}.")].iter().any(|reference| definition.contains(reference))
        };
        let params: Vec<_> = plan.workflow.params_of(search.set).iter().filter(|(name, _)| is_used(name)).collect();
        Some(Digest::of(&serde_json::to_vec(&(&definition, params)).ok()?))
    }

    /// The trials that a later run may replay; nothing unless it is finished. Where others add trials, the search goes on.
    pub fn past(&self, search: SearchId) -> Option<PastSearch> {
        let settings = self.graph.plan().task(search.set).search()?;
        let study = self.graph.study(search)?;
        let own: Vec<_> = self.graph.own_trials(search).collect();
        if settings.storage.is_some() || own.is_empty() || own.iter().any(|trial| !trial.state.is_ended()) {
            return None;
        }
        let budget = settings.time.is_some() || settings.gpu_time.is_some();
        let trials = own.iter().map(|trial| PastTrial {
            values: study.space().values(&trial.point),
            origin: if trial.origin == Origin::Start { Origin::Start } else { Origin::Sampled },
            pruned: (trial.state == State::Pruned).then(|| trial.reports.clone()),
        });
        let spent = budget && own.len() < settings.trials as usize;
        Some(PastSearch { key: self.search_key(search)?, trials: trials.collect(), spent })
    }
}
