//! One change of a setting, and the setting that it gives.

use crate::model::Runtimes;
use crate::setting::Setting;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tulpar_core::engine::{Mode, Order, Packing};
use tulpar_core::ids::SetId;
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::site::Node;
use tulpar_core::units::Bytes;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Mode(Mode),
    Order(Order),
    Packing(Packing),
    NoWalltime,
    /// Tasks run as long as they take, whatever they asked for.
    NoTimeLimits,
    /// The site adds nothing: tasks start at once, and what needs them hears of it at once.
    NoOverhead,
    /// As many tasks of the set at once as there is room for.
    NoLimit {
        of: String,
        #[serde(skip)]
        set: SetId,
    },
    /// More nodes like this one of the site, or fewer.
    Nodes {
        like: String,
        by: i64,
    },
    Twice(Resource),
    Request(RequestChange),
}

/// Other requests of tasks that ask for the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestChange {
    /// The task set, or the program of several.
    pub of: String,
    #[serde(skip)]
    pub(super) sets: Arc<[SetId]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milli_cpus: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Its run time is multiplied by this.
    pub runtime: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    Cores,
    Gpus,
    Memory,
}

impl Resource {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::Gpus => "GPUs",
            Self::Memory => "memory",
        }
    }

    /// Those that tasks of the plan ask for.
    pub(super) fn in_use(graph: &Graph) -> Vec<Self> {
        let tasks = || graph.plan().workflow.tasks.iter().map(|task| &task.settings.request);
        let mut used = vec![Self::Cores];
        if tasks().any(|request| request.gpus > 0) {
            used.push(Self::Gpus);
        }
        if tasks().any(|request| request.memory.0 > 0) {
            used.push(Self::Memory);
        }
        used
    }
}

impl Change {
    /// `None` when it cannot be.
    pub(super) fn applied(&self, base: &Setting) -> Option<Setting> {
        let mut setting = base.clone();
        match self {
            Self::Mode(mode) => setting.policy.mode = *mode,
            Self::Order(order) => setting.policy.order = Some(*order),
            Self::Packing(packing) => setting.policy.packing = *packing,
            Self::NoWalltime => setting.policy.walltime = None,
            Self::NoTimeLimits => setting.model.limits_hold = false,
            Self::NoOverhead => {
                setting.model.launch_rate = None;
                setting.model.dependency_latency = Duration::ZERO;
                setting.model.queue_wait = Duration::ZERO;
                setting.model.network = None;
            }
            Self::NoLimit { set, .. } => {
                let mut plan = Plan::clone(&setting.plan);
                Arc::make_mut(&mut plan.workflow.tasks[set.index()].settings).at_most = None;
                setting.plan = Arc::new(plan);
            }
            Self::Nodes { like, by } => {
                let mut plan = Plan::clone(&setting.plan);
                let alike = plan.site.nodes.iter().find(|node| node.name == *like)?.capacity.clone();
                if *by < 0 {
                    for _ in 0..by.unsigned_abs() {
                        let last = plan.site.nodes.iter().rposition(|node| node.capacity == alike)?;
                        plan.site.nodes.remove(last);
                    }
                }
                for number in 1..=*by {
                    plan.site.nodes.push(Node::new(format!("{like}-more{number}"), alike.clone()));
                }
                if plan.site.nodes.is_empty() {
                    return None;
                }
                setting.plan = Arc::new(plan);
            }
            Self::Twice(resource) => {
                let mut plan = Plan::clone(&setting.plan);
                for Node { capacity, .. } in &mut plan.site.nodes {
                    match resource {
                        Resource::Cores => capacity.milli_cpus = capacity.milli_cpus.saturating_mul(2),
                        Resource::Memory => capacity.memory = Bytes(capacity.memory.0.saturating_mul(2)),
                        Resource::Gpus => {
                            let twins: Vec<_> = capacity.gpus.clone();
                            let first = twins.len();
                            let renamed = twins.into_iter().enumerate().map(|(position, mut device)| {
                                device.id = (first + position).to_string();
                                device
                            });
                            capacity.gpus.extend(renamed);
                        }
                    }
                }
                setting.plan = Arc::new(plan);
            }
            Self::Request(change) => change.apply(&mut setting),
        }
        Some(setting)
    }
}

impl RequestChange {
    fn apply(&self, setting: &mut Setting) {
        let mut plan = Plan::clone(&setting.plan);
        let times = |runtime: Duration| runtime.mul_f64(self.runtime);
        for set in self.sets.iter() {
            let task = &mut plan.workflow.tasks[set.index()];
            let settings = Arc::make_mut(&mut task.settings);
            if let Some(milli_cpus) = self.milli_cpus {
                settings.request.milli_cpus = milli_cpus;
            }
            if let Some(memory) = self.memory {
                settings.request.memory = memory;
            }
            settings.hints.runtime = settings.hints.runtime.map(times);
            if let Some(Some(expected)) = plan.expected.get_mut(set.index()) {
                *expected = times(*expected);
            }
            if let Runtimes::Expected { by_set, otherwise, .. } = &mut setting.model.runtimes {
                if by_set.len() <= set.index() {
                    by_set.resize(set.index() + 1, None);
                }
                let now = by_set[set.index()].unwrap_or(*otherwise);
                by_set[set.index()] = Some(times(now));
            }
        }
        setting.plan = Arc::new(plan);
    }
}
