//! Which tasks share a job. Strategies come one after another, each taking what those before left by itself.
//!
//! It decides and says why. What a job then costs is the estimate's business, which files move the staging pass's.

mod auto;
mod contracted;
mod horizontal;
mod label;
#[cfg(test)]
mod tests;

use super::abstraction::{Abstract, NONE, TaskId};
use super::estimate::{Estimate, runtime_of};
use super::layout::{Decision, Pass, SiteId};
use super::options::{Clustering, Options};
use super::partition::Partition;
use contracted::Contracted;
use std::collections::BTreeMap;

/// What the strategies have to know besides the workflow.
pub struct Given<'a> {
    pub graph: &'a Abstract,
    pub site_of: &'a dyn Fn(TaskId) -> SiteId,
    /// Of each task: its results exist, so no job runs it.
    pub done: &'a [bool],
    pub options: &'a Options,
    /// How many tasks of one CPU a site runs at once; `None` when nothing limits that. Only auto asks.
    pub slots: &'a dyn Fn(SiteId) -> Option<u64>,
    /// What a partition would cost; only [`Clustering::Auto`] asks.
    pub estimate: &'a dyn Fn(&Partition) -> Estimate,
}

/// Applies the strategies of the options in their order. The result is sound.
pub fn cluster(given: &Given<'_>, decisions: &mut Vec<Decision>) -> Partition {
    let mut draft = Draft::new(given);
    if given.options.clustering.is_empty() {
        return draft.partition();
    }
    draft.say_who_stays_alone(decisions);
    for strategy in &given.options.clustering {
        match strategy {
            Clustering::Horizontal(hint) => horizontal::by_number(&mut draft, *hint, decisions),
            Clustering::Runtime(hint) => horizontal::by_runtime(&mut draft, *hint, decisions),
            Clustering::Label => label::by_label(&mut draft, decisions),
            Clustering::Whole => label::whole(&mut draft, decisions),
            Clustering::Auto => auto::auto(&mut draft, decisions),
        }
    }
    draft.partition()
}

fn decision(about: impl Into<String>, what: impl Into<String>, why: impl Into<String>) -> Decision {
    Decision { pass: Pass::Cluster, about: about.into(), what: what.into(), why: why.into() }
}

/// A partition in the making.
#[derive(Clone)]
struct Draft<'a> {
    given: &'a Given<'a>,
    /// Of each task, the cluster that it is in.
    wanted: Vec<Option<u32>>,
    /// Of each cluster.
    names: Vec<String>,
    /// How many clusters have a name with this stem.
    stems: BTreeMap<String, u32>,
}

impl<'a> Draft<'a> {
    fn new(given: &'a Given<'a>) -> Self {
        let wanted = vec![None; given.graph.tasks.len()];
        Self { given, wanted, names: Vec::new(), stems: BTreeMap::new() }
    }

    fn site(&self, task: TaskId) -> SiteId {
        (self.given.site_of)(task)
    }

    fn runtime(&self, task: TaskId) -> f64 {
        runtime_of(&self.given.graph.tasks[task.index()], self.given.options)
    }

    /// True when a strategy may put the task into a cluster.
    fn is_free(&self, task: TaskId) -> bool {
        let done = self.given.done.get(task.index()).copied().unwrap_or(false);
        self.wanted[task.index()].is_none() && self.given.graph.tasks[task.index()].alone.is_none() && !done
    }

    /// In topological order.
    fn free(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.given.graph.order().iter().copied().filter(|task| self.is_free(*task))
    }

    /// Two or more tasks become a cluster; fewer stay as they are. The caller vouches that it is sound.
    fn join(&mut self, tasks: &[TaskId], stem: &str) -> bool {
        if tasks.len() < 2 {
            return false;
        }
        let stem = stem.replace(|letter: char| !(letter.is_alphanumeric() || "-_.".contains(letter)), "_");
        let count = self.stems.entry(stem.clone()).or_default();
        *count += 1;
        let number = self.names.len() as u32;
        self.names.push(format!("merge_{stem}_{count}"));
        tasks.iter().for_each(|task| self.wanted[task.index()] = Some(number));
        true
    }

    fn partition(&self) -> Partition {
        Partition::new(self.given.graph, &self.wanted, |number| self.names[number as usize].clone())
    }

    /// Joins free tasks with equal numbers (`NONE`: by itself) into clusters with the stems that `stem` gives, and
    /// splits numbers that would make a circle. Answers which numbers became how many parts.
    fn join_sound(&mut self, numbers: &[u32], stem: impl Fn(u32) -> String) -> Vec<(u32, usize)> {
        let partition = self.partition();
        let contracted = Contracted::new(self.given.graph, &partition);
        let mut wanted = vec![NONE; contracted.len()];
        for task in self.given.graph.ids().filter(|task| numbers[task.index()] != NONE) {
            wanted[partition.cluster_of(task)] = numbers[task.index()];
        }
        let splits = contracted.split_circles(&mut wanted);
        let mut members: BTreeMap<u32, (u32, Vec<TaskId>)> = BTreeMap::new();
        for task in self.free().filter(|task| numbers[task.index()] != NONE) {
            let number = wanted[partition.cluster_of(task)];
            members.entry(number).or_insert((numbers[task.index()], Vec::new())).1.push(task);
        }
        members.into_values().for_each(|(number, tasks)| {
            self.join(&tasks, &stem(number));
        });
        splits.into_iter().map(|(number, parts)| (number, parts.len())).collect()
    }

    fn say_who_stays_alone(&self, decisions: &mut Vec<Decision>) {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for task in &self.given.graph.tasks {
            if let Some(reason) = task.alone {
                reasons.entry(reason).or_default().push(&task.name);
            }
        }
        for (reason, tasks) in reasons {
            let more = match tasks.len() {
                0..=3 => String::new(),
                many => format!(" and {} more", many - 3),
            };
            let about = format!("{}{more}", tasks[..tasks.len().min(3)].join(", "));
            decisions.push(decision(about, "not put together with other tasks", reason));
        }
    }
}
