//! What the plan of a run says and no event changes: its workflow, its site, which kinds of tasks there are.

use super::{Trouble, lock};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use tulpar_core::ids::Digest;
use tulpar_core::plan::Plan;
use tulpar_core::provenance;
use tulpar_core::site::{Node, NodeKind};
use tulpar_exec::folder::{Project, RunFolder, SavedRun};
use tulpar_report::live::{self, SetGraph};

/// So many runs are remembered.
const MOST: usize = 16;
/// More nodes than this are not listed.
const MOST_NODES: usize = 2000;

pub(super) struct Facts {
    project: Project,
    known: Mutex<Vec<(String, Arc<RunFacts>)>>,
}

pub(super) struct RunFacts {
    pub(super) workflow: String,
    pub(super) workflow_file: String,
    pub(super) version: String,
    pub(super) mode: String,
    pub(super) site: SiteFacts,
    pub(super) graph: SetGraph,
    /// The content of each data entry.
    pub(super) inputs: BTreeMap<String, Digest>,
    /// How many of its tasks are searches.
    pub(super) searches: usize,
    /// The kind of each task set, by the set's name.
    kinds: HashMap<String, u32>,
}

#[derive(Serialize)]
pub(super) struct SiteFacts {
    pub(super) name: String,
    pub(super) nodes: Vec<NodeFacts>,
    pub(super) more_nodes: usize,
    #[serde(skip)]
    pub(super) all: Vec<Node>,
}

#[derive(Serialize)]
pub(super) struct NodeFacts {
    pub(super) name: String,
    pub(super) kind: &'static str,
    cpus: f64,
    memory: u64,
    gpus: usize,
}

impl SiteFacts {
    /// Cores, memory and GPUs of all nodes together; nothing where another system has them.
    pub(super) fn size(&self) -> (f64, u64, usize) {
        let own = || self.nodes.iter().filter(|node| node.kind != "queue");
        (own().map(|node| node.cpus).sum(), own().map(|node| node.memory).sum(), own().map(|node| node.gpus).sum())
    }
}

impl Facts {
    pub(super) fn new(project: Project) -> Self {
        Facts { project, known: Mutex::default() }
    }

    pub(super) fn of(&self, folder: &RunFolder) -> Result<Arc<RunFacts>, Trouble> {
        if let Some((_, facts)) = lock(&self.known).iter().find(|(run, _)| *run == folder.name) {
            return Ok(facts.clone());
        }
        let facts = Arc::new(RunFacts::new(&self.project.folder_of(&folder.name).load()?));
        let mut known = lock(&self.known);
        known.push((folder.name.clone(), facts.clone()));
        if known.len() > MOST {
            known.remove(0);
        }
        Ok(facts)
    }
}

impl RunFacts {
    fn new(saved: &SavedRun) -> Self {
        let plan: &Plan = &saved.plan;
        let graph = live::set_graph(plan);
        let names = plan.workflow.tasks.iter().map(|task| task.name.clone());
        let kinds = names.zip(graph.of.iter().copied()).collect();
        let node = |node: &Node| NodeFacts {
            name: node.name.clone(),
            kind: match node.kind {
                NodeKind::Queue(_) => "queue",
                NodeKind::Pilot => "pilot",
                NodeKind::Fixed => "node",
            },
            cpus: f64::from(node.capacity.milli_cpus) / 1000.0,
            memory: node.capacity.memory.0,
            gpus: node.capacity.gpus.len(),
        };
        RunFacts {
            workflow: plan.workflow.name.clone(),
            workflow_file: saved.workflow_file.clone(),
            version: saved.version.clone(),
            mode: saved.policy.mode.name().to_owned(),
            site: SiteFacts {
                name: plan.site.name.clone(),
                nodes: plan.site.nodes.iter().take(MOST_NODES).map(node).collect(),
                more_nodes: plan.site.nodes.len().saturating_sub(MOST_NODES),
                all: plan.site.nodes.clone(),
            },
            graph,
            inputs: provenance::inputs(plan),
            searches: plan.workflow.tasks.iter().filter(|task| task.search().is_some()).count(),
            kinds,
        }
    }

    /// The position of a task set's kind in the graph.
    pub(super) fn kind(&self, set: Option<&str>) -> Option<u32> {
        self.kinds.get(set?).copied()
    }

    pub(super) fn kind_name(&self, set: Option<&str>) -> Option<&str> {
        self.kind(set).map(|kind| self.graph.nodes[kind as usize].name.as_str())
    }

    /// The task sets of a kind.
    pub(super) fn sets_of(&self, kind: &str) -> Vec<String> {
        let Some(kind) = self.graph.nodes.iter().position(|node| node.name == kind) else { return Vec::new() };
        self.kinds.iter().filter(|(_, of)| **of as usize == kind).map(|(set, _)| set.clone()).collect()
    }

    /// Where an attempt is: the machine that it told, or the node that was chosen for it.
    pub(super) fn place(&self, node: Option<u32>, host: Option<&str>) -> Option<String> {
        let chosen = node.and_then(|node| self.site.nodes.get(node as usize));
        match (chosen, host) {
            (Some(chosen), Some(host)) if chosen.kind == "queue" => Some(host.to_owned()),
            (Some(chosen), _) => Some(chosen.name.clone()),
            (None, host) => host.map(str::to_owned),
        }
    }
}
