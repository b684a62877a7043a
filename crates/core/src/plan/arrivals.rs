//! What only the run decides about who takes what: results in the order in which they came, the batches that they make,
//! and which version each job was given.
//!
//! It is told of ends in the order of the recorded events, and so is the same live and in replay. It knows nothing of
//! states: whether a batch is complete although it is small is for the engine to say.

use super::Plan;
use super::graph::Graph;
use super::scatter::{self, ResolvedValues};
use crate::ids::{JobId, SetId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Arrivals {
    /// Of each set whose order matters, the jobs that ended well, as they did.
    order: FxHashMap<SetId, Vec<JobId>>,
    /// Whether each set takes the newest result of another.
    latest: Vec<bool>,
    /// The sets that take results of a set as they come.
    takers: FxHashMap<SetId, Vec<SetId>>,
    /// Of a job's input, by its position, whose result it was given; `None`: there was none yet.
    versions: FxHashMap<(JobId, u32), Option<JobId>>,
}

/// What a task that takes results as they come is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    pub source: SetId,
    /// Counted from 0.
    pub number: u32,
    pub by: u32,
    /// How many of its results are there.
    pub arrived: u32,
}

impl Batch {
    pub fn is_full(&self) -> bool {
        self.arrived == self.by
    }
}

impl Arrivals {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut arrivals = Self::default();
        for (set, task) in plan.workflow.tasks.iter().enumerate() {
            if let Some((source, _)) = task.arrivals() {
                arrivals.order.entry(source).or_default();
                arrivals.takers.entry(source).or_default().push(SetId::from(set));
            }
            arrivals.latest.push(task.latest().next().is_some());
            for (_, source) in task.latest() {
                arrivals.order.entry(source).or_default();
            }
        }
        arrivals
    }
}

impl Graph {
    /// A job ended well. True when somebody cares about the order.
    pub fn arrive(&mut self, job: JobId) -> bool {
        let set = self.set_of(job);
        let order = self.arrivals.order.get_mut(&set);
        order.map(|order| order.push(job)).is_some()
    }

    /// The jobs of a set that ended well, in their order; empty where nobody asks for it.
    pub fn arrived(&self, set: SetId) -> &[JobId] {
        self.arrivals.order.get(&set).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether a set takes the newest result of another.
    pub fn takes_latest(&self, set: SetId) -> bool {
        self.arrivals.latest[set.index()]
    }

    /// The sets that take results of this one as they come.
    pub fn takers(&self, source: SetId) -> &[SetId] {
        self.arrivals.takers.get(&source).map(Vec::as_slice).unwrap_or_default()
    }

    /// Every set that takes results as they come.
    pub fn all_takers(&self) -> Vec<SetId> {
        let mut takers: Vec<SetId> = self.arrivals.takers.values().flatten().copied().collect();
        takers.sort_unstable();
        takers
    }

    /// The batch that a job is for, if it takes results as they come.
    pub fn batch(&self, job: JobId) -> Option<Batch> {
        let set = self.set_of(job);
        let (source, by) = self.plan().task(set).arrivals()?;
        let axes = self.axes_of(set);
        let axis = axes.iter().position(|axis| matches!(axis.values, ResolvedValues::Arrivals { .. }))?;
        let number = scatter::rows(axes, self.index_of(job))[axis];
        let before = number as usize * by as usize;
        let arrived = self.arrived(source).len().saturating_sub(before).min(by as usize) as u32;
        Some(Batch { source, number, by, arrived })
    }

    /// How many batches a set makes of the results it takes.
    pub fn batches(&self, taker: SetId) -> u32 {
        let axes = self.count_of(taker).map(|_| self.axes_of(taker)).unwrap_or_default();
        axes.iter().find(|axis| matches!(axis.values, ResolvedValues::Arrivals { .. })).map_or(0, |axis| axis.len())
    }

    /// The jobs of a set that are for one batch: several where it has other variables too.
    pub fn jobs_of_batch(&self, taker: SetId, number: u32) -> Vec<JobId> {
        let Some(first) = self.jobs_of(taker).and_then(|mut jobs| jobs.next()) else { return Vec::new() };
        let axes = self.axes_of(taker);
        let is_batch = |axis: &super::ResolvedAxis| matches!(axis.values, ResolvedValues::Arrivals { .. });
        let Some(position) = axes.iter().position(is_batch) else { return Vec::new() };
        let outer: u32 = axes[..position].iter().map(|axis| axis.len()).product();
        let inner: u32 = axes[position + 1..].iter().map(|axis| axis.len()).product();
        let batches = axes[position].len();
        let starts = (0..outer).map(move |outer| first.0 + (outer * batches + number) * inner);
        starts.flat_map(move |start| (start..start + inner).map(JobId)).collect()
    }

    /// The jobs whose results a batch has, in the order of their numbers: equal batches are equal tasks.
    pub(super) fn members(&self, batch: Batch) -> Vec<JobId> {
        let from = batch.number as usize * batch.by as usize;
        let order = self.arrived(batch.source);
        let mut members: Vec<JobId> = order.iter().skip(from).take(batch.by as usize).copied().collect();
        members.sort_unstable();
        members
    }

    /// Whose result the job was given for the input at a position; before it was given any, the newest there is.
    pub fn version(&self, job: JobId, position: u32, source: SetId) -> Option<JobId> {
        let given = self.arrivals.versions.get(&(job, position)).copied();
        given.unwrap_or_else(|| self.arrived(source).last().copied())
    }

    /// Whose results the job was given, where it takes the newest; none before it was handed over.
    pub fn given(&self, job: JobId) -> Vec<JobId> {
        let positions = self.plan().task(self.set_of(job)).latest().map(|(position, _)| position);
        positions.filter_map(|position| *self.arrivals.versions.get(&(job, position))?).collect()
    }

    /// What a job would be given now, by the names of its inputs.
    pub fn newest(&self, job: JobId) -> BTreeMap<String, JobId> {
        if !self.takes_latest(self.set_of(job)) {
            return BTreeMap::new();
        }
        let task = self.plan().task(self.set_of(job));
        let newest = |(position, source): (u32, SetId)| {
            Some((task.inputs[position as usize].name.clone(), *self.arrived(source).last()?))
        };
        task.latest().filter_map(newest).collect()
    }

    /// From here on the job has these versions; inputs that are not named have none.
    pub fn give(&mut self, job: JobId, versions: &BTreeMap<String, JobId>) {
        if !self.takes_latest(self.set_of(job)) {
            return;
        }
        let plan = self.plan().clone();
        let task = plan.task(self.set_of(job));
        for (position, _) in task.latest() {
            let version = versions.get(&task.inputs[position as usize].name).copied();
            self.arrivals.versions.insert((job, position), version);
        }
    }

    /// Another attempt will take what is newest then.
    pub fn take_back(&mut self, job: JobId) {
        if !self.takes_latest(self.set_of(job)) {
            return;
        }
        let plan = self.plan().clone();
        for (position, _) in plan.task(self.set_of(job)).latest() {
            self.arrivals.versions.remove(&(job, position));
        }
    }
}
