//! The plan: a workflow with the files and the site of one run, immutable once made.
//!
//! It is symbolic: a scatter of a million tasks is one entry. [`Graph`] unfolds it into jobs and grows
//! when a dynamic task set learns its tasks. It knows nothing of states, attempts or time.

mod arrivals;
mod graph;
mod join;
mod outputs;
mod outside;
mod past;
mod scatter;
mod searches;
mod spec;

pub use arrivals::Batch;
pub use graph::{Graph, Producers, Target};
pub use outputs::Outputs;
pub use past::{PastSearch, PastTrial, search_definition};
pub use scatter::{Bound, ResolvedAxis, ResolvedValues};
pub(crate) use spec::number_name;
pub use spec::{SpecContext, member_spec};

use crate::ids::{Digest, SetId};
use crate::job::{InputFile, Source};
use crate::site::Site;
use crate::workflow::{AxisValues, DataFile, FileSource, Task, Workflow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub workflow: Workflow,
    /// The files of each data entry as they were found when the plan was made.
    pub files: Vec<Arc<[InputFile]>>,
    pub site: Site,
    /// Content of container images and Python environments, by the name that tasks give them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environments: BTreeMap<String, Digest>,
    /// How long tasks of each set took in earlier runs; shorter than the task sets when nothing more is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Option<Duration>>,
    /// Task sets to run again even though their results are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced: Vec<SetId>,
    /// Only these task sets and what they need; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<SetId>,
    /// Finished searches of earlier runs, each with a key of its own: one that is the same is replayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<PastSearch>,
}

/// The workflow cannot be put in an order: these task sets wait for each other.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("tasks wait for each other in a circle: {}", .0.join(" → "))]
pub struct Cycle(pub Vec<String>);

impl Plan {
    pub fn new(workflow: Workflow, files: Vec<Vec<DataFile>>, site: Site) -> Self {
        let files = files
            .into_iter()
            .map(|files| {
                files
                    .into_iter()
                    .map(|file| InputFile {
                        path: file.path,
                        source: Source::Path(file.from),
                        size: file.size,
                        digest: file.digest,
                    })
                    .collect()
            })
            .collect();
        let environments = BTreeMap::new();
        Self {
            workflow,
            files,
            site,
            environments,
            expected: Vec::new(),
            forced: Vec::new(),
            until: Vec::new(),
            past: Vec::new(),
        }
    }

    pub fn task(&self, set: SetId) -> &Task {
        &self.workflow.tasks[set.index()]
    }

    pub fn set_named(&self, name: &str) -> Option<SetId> {
        self.workflow.tasks.iter().position(|task| task.name == name).map(SetId::from)
    }

    /// What makes two plans the same plan: everything in it.
    pub fn digest(&self) -> Digest {
        let mut hasher = HashWriter(blake3::Hasher::new());
        serde_json::to_writer(&mut hasher, self).expect("a plan is plain data");
        Digest(*hasher.0.finalize().as_bytes())
    }

    /// The task sets that a task set waits for, each once, in order. Of what it takes the newest of, it waits for nothing.
    pub fn producers(&self, set: SetId) -> Vec<SetId> {
        let task = self.task(set);
        let mut producers = task.after.clone();
        producers.extend(task.inputs.iter().filter_map(|input| input.source.awaited()));
        if let Some(planned) = task.run.planned() {
            producers.extend(planned.further.values().flatten().filter_map(FileSource::awaited));
        }
        producers.extend(self.dynamic_sources(set));
        producers.extend(task.arrivals().map(|(source, _)| source));
        producers.sort_unstable();
        producers.dedup();
        producers
    }

    /// The task sets whose results decide how many tasks this one has.
    pub fn dynamic_sources(&self, set: SetId) -> impl Iterator<Item = SetId> + '_ {
        self.task(set).scatter.iter().filter_map(|axis| match axis.values {
            AxisValues::Files { source: FileSource::Output { task, .. }, .. } => Some(task),
            _ => None,
        })
    }

    /// Task sets in an order in which everything comes after what it needs; ties by position in the file.
    pub fn order(&self) -> Result<Vec<SetId>, Cycle> {
        let count = self.workflow.tasks.len();
        let mut waiting = vec![0u32; count];
        let mut edges: Vec<(SetId, SetId)> = Vec::new();
        for set in (0..count).map(SetId::from) {
            for producer in self.producers(set) {
                waiting[set.index()] += 1;
                edges.push((producer, set));
            }
        }
        edges.sort_unstable();
        let mut queue: std::collections::VecDeque<SetId> =
            (0..count).map(SetId::from).filter(|set| waiting[set.index()] == 0).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(set) = queue.pop_front() {
            order.push(set);
            let from = edges.partition_point(|edge| edge.0 < set);
            for &(_, consumer) in edges[from..].iter().take_while(|edge| edge.0 == set) {
                waiting[consumer.index()] -= 1;
                if waiting[consumer.index()] == 0 {
                    queue.push_back(consumer);
                }
            }
        }
        if order.len() == count { Ok(order) } else { Err(self.cycle(&waiting)) }
    }

    fn cycle(&self, waiting: &[u32]) -> Cycle {
        let stuck = |set: &SetId| waiting[set.index()] > 0;
        let mut path: Vec<SetId> = Vec::new();
        let mut here = (0..waiting.len()).map(SetId::from).find(stuck);
        while let Some(set) = here {
            if let Some(start) = path.iter().position(|seen| *seen == set) {
                let mut names: Vec<String> =
                    path[start..].iter().rev().map(|set| self.task(*set).name.clone()).collect();
                names.push(names[0].clone());
                return Cycle(names);
            }
            path.push(set);
            here = self.producers(set).into_iter().find(stuck);
        }
        Cycle(Vec::new())
    }

    /// Which task sets take part, given `until`.
    pub fn wanted(&self) -> Vec<bool> {
        let mut wanted = vec![self.until.is_empty(); self.workflow.tasks.len()];
        let mut todo = self.until.clone();
        while let Some(set) = todo.pop() {
            if !std::mem::replace(&mut wanted[set.index()], true) {
                todo.extend(self.producers(set));
            }
        }
        wanted
    }
}

struct HashWriter(blake3::Hasher);

impl std::io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
