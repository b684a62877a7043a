//! Why a job is not running: rendered from the state, never computed a second time.

use super::state::{JobState, Live};
use super::{Engine, Mode, State};
use crate::event::Because;
use crate::ids::{JobId, NodeId};
use crate::units::Timestamp;
use serde::Serialize;

/// The reason why a job stands where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Explanation {
    /// Waits for these (at most a hundred are listed), of `total` it depends on.
    Waiting {
        unmet: Vec<(String, State)>,
        total: usize,
        /// It is for a batch of results that is not complete.
        #[serde(skip_serializing_if = "Option::is_none")]
        batch: Option<BatchProgress>,
    },
    Looking,
    /// Everything it needs is there, but the mode of the run keeps it until an earlier stage has ended.
    Barrier {
        mode: Mode,
        /// Of the stage that all wait for, in `sequential` mode.
        #[serde(skip_serializing_if = "Option::is_none")]
        iteration: Option<u32>,
        rank: u32,
        /// Jobs of that stage that have not ended.
        unsettled: u32,
    },
    /// Waits for resources: what each node lacks. `ahead` more urgent jobs are ready too.
    Ready {
        ready: usize,
        nodes: Vec<NodeShortage>,
        could_ever_run: bool,
        /// As many tasks of its set run as may.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_most: Option<u32>,
        /// Where there is room, it is kept for this job, which is more urgent.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept_for: Option<KeptFor>,
    },
    Live {
        state: State,
        node: String,
        since: Timestamp,
        attempt: u32,
        reason: Option<String>,
    },
    Backoff {
        until: Timestamp,
        attempt: u32,
    },
    /// A trial that waits at its rung, with its checkpoint, until it is among the best there.
    Paused {
        attempt: u32,
    },
    Settled {
        state: State,
        excused: bool,
        attempts: u32,
        /// Why it was skipped.
        #[serde(skip_serializing_if = "Option::is_none")]
        because: Option<Because>,
        /// The job above that did not end well, where it was skipped because of that one.
        #[serde(skip_serializing_if = "Option::is_none")]
        upstream: Option<String>,
    },
}

/// How far a batch of results is that is taken as they come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BatchProgress {
    /// The task set that makes them.
    pub of: String,
    pub arrived: u32,
    pub by: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptFor {
    pub job: String,
    /// When that is expected to start, as was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeShortage {
    pub node: String,
    /// In words: `needs 4 cpus, 1.5 are free`; empty where there is room.
    pub lacks: Vec<String>,
}

const MOST_LISTED: usize = 100;

impl Engine {
    pub fn explain(&self, job: JobId) -> Explanation {
        let state = self.state(job);
        match self.run.job(job) {
            JobState::Waiting
                if self.run.unmet(job) == 0
                    && let Some((iteration, rank, unsettled)) = self.run.barrier() =>
            {
                Explanation::Barrier { mode: self.way().mode, iteration, rank, unsettled }
            }
            JobState::Waiting => {
                let parents = self.graph().parents(job);
                let unmet = parents
                    .iter()
                    .filter(|parent| self.state(**parent) != State::Done)
                    .take(MOST_LISTED)
                    .map(|parent| (self.graph().name(*parent), self.state(*parent)))
                    .collect();
                let batch = self.graph().batch(job).filter(|batch| !self.run.is_complete(*batch));
                let batch = batch.map(|batch| BatchProgress {
                    of: self.plan().task(batch.source).name.clone(),
                    arrived: batch.arrived,
                    by: batch.by,
                });
                Explanation::Waiting { unmet, total: parents.len(), batch }
            }
            JobState::Lookup => Explanation::Looking,
            JobState::Ready => {
                let nodes = (0..self.scheduler.nodes.len().min(MOST_LISTED))
                    .map(|node| self.shortage(job, NodeId::from(node)))
                    .collect();
                let could_ever_run = self.scheduler.nodes.could_ever_run(self.request(job));
                let set = self.graph().set_of(job);
                let most = self.plan().task(set).settings.at_most;
                let at_most = most.filter(|_| self.scheduler.ready.is_full(set));
                let held = self.run.held_back(&self.run.wants(job));
                let kept_for = held.map(|held| KeptFor { job: self.graph().name(held.by), until: held.until });
                Explanation::Ready { ready: self.scheduler.ready.len(), nodes, could_ever_run, at_most, kept_for }
            }
            JobState::Submitted(live) | JobState::Running(live) => self.explain_live(state, live, None),
            JobState::Held(held) => self.explain_live(state, &held.live, Some(&held.reason)),
            JobState::Backoff { until } => Explanation::Backoff { until: *until, attempt: self.attempts(job) },
            JobState::Paused => Explanation::Paused { attempt: self.attempts(job) },
            JobState::Skipped { because, tolerated } => {
                let upstream = match because {
                    Because::Upstream(above) => Some(self.graph().name(*above)),
                    _ => None,
                };
                let (excused, attempts, because) = (*tolerated, self.attempts(job), Some(because.clone()));
                Explanation::Settled { state, excused, attempts, because, upstream }
            }
            JobState::Done { .. } | JobState::Failed { .. } | JobState::Cancelled => {
                let (excused, attempts) = (self.is_excused(job), self.attempts(job));
                Explanation::Settled { state, excused, attempts, because: None, upstream: None }
            }
        }
    }

    fn explain_live(&self, state: State, live: &Live, reason: Option<&String>) -> Explanation {
        let node = live.placement.nodes[0].node;
        Explanation::Live {
            state,
            node: self.plan().site.nodes[node.index()].name.clone(),
            since: live.since,
            attempt: live.n,
            reason: reason.cloned(),
        }
    }

    fn shortage(&self, job: JobId, node: NodeId) -> NodeShortage {
        let request = self.request(job);
        let mut lacks = Vec::new();
        let name = self.plan().site.nodes[node.index()].name.clone();
        if self.scheduler.nodes.is_queue(node) || self.scheduler.nodes.is_absent(node) {
            if self.scheduler.nodes.is_absent(node) {
                lacks.push("is not there yet".to_owned());
            } else if !self.scheduler.nodes.fits(node, request) {
                lacks.push("has as many jobs of this run as it may have".to_owned());
            }
            return NodeShortage { node: name, lacks };
        }
        let (milli_cpus, memory, disk, gpus) = self.scheduler.nodes.available(node);
        if milli_cpus < request.milli_cpus {
            let (needs, free) = (f64::from(request.milli_cpus) / 1000.0, f64::from(milli_cpus) / 1000.0);
            lacks.push(format!("needs {needs} cpus, {free} are free"));
        }
        if memory < request.memory.0 {
            lacks.push(format!("needs {} of memory, {} are free", request.memory, crate::units::Bytes(memory)));
        }
        if disk < request.disk.0 {
            lacks.push(format!("needs {} of disk, {} are free", request.disk, crate::units::Bytes(disk)));
        }
        if u64::from(gpus) < request.milli_gpus() {
            let (needs, free) = (request.milli_gpus() as f64 / 1000.0, f64::from(gpus) / 1000.0);
            lacks.push(format!("needs {needs} GPUs, {free} are free"));
        }
        for (name, amount) in &request.named {
            let free = self.scheduler.nodes.available_named(node, name);
            if free < *amount {
                let (needs, free) = (f64::from(*amount) / 1000.0, f64::from(free) / 1000.0);
                lacks.push(format!("needs {needs} of `{name}`, {free} are free"));
            }
        }
        if lacks.is_empty() && self.scheduler.nodes.share(node, request).is_none() {
            lacks.push("has free GPUs, but not of the memory or capability asked for".to_owned());
        }
        if lacks.is_empty() && !self.would_take(node, request) {
            lacks.push("keeps its free cores and memory for tasks with GPUs (packing `strict`)".to_owned());
        }
        NodeShortage { node: name, lacks }
    }
}
