//! Instances of WfCommons' WfFormat, 1.0 to 1.6: what ran once, with its files, run times and machines.
//!
//! Texts in, an [`Instance`] and findings out; and back, as 1.5. It reads no file, and knows nothing of gzip.

mod abstraction;
mod codes;
mod convert;
mod graph;
mod kind;
mod raw;
mod read;
mod write;

pub use abstraction::from_wfformat;
pub use codes::CODES;
pub use convert::{convert, words};
pub use read::read;
pub use write::write;

/// What runs of Tulpar say under `runtimeSystem`.
pub const OURS: &str = "Tulpar";

/// A recorded workflow. Tasks, files and machines refer to each other by position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    pub name: String,
    pub description: Option<String>,
    /// The version that the text claims, e.g. `1.5`.
    pub version: String,
    pub created_at: Option<String>,
    /// Who ran it: Pegasus, Nextflow, Makeflow.
    pub system: Option<System>,
    /// As written, which is often not ISO 8601.
    pub executed_at: Option<String>,
    /// Seconds, with queueing and staging in them: no yardstick for a scheduler.
    pub makespan: Option<f64>,
    pub tasks: Vec<Task>,
    pub files: Vec<File>,
    pub machines: Vec<Machine>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    pub name: String,
    pub version: Option<String>,
    pub url: Option<String>,
}

/// What is `None` was not recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    pub id: String,
    pub name: String,
    /// What tasks that do the same have in common.
    pub kind: String,
    /// By position in [`Instance::tasks`], each once.
    pub parents: Vec<u32>,
    pub children: Vec<u32>,
    /// By position in [`Instance::files`], each once.
    pub inputs: Vec<u32>,
    pub outputs: Vec<u32>,
    /// Seconds; may be zero.
    pub runtime: Option<f64>,
    /// 1 when nothing is recorded; may be a fraction.
    pub cores: f64,
    /// `gpuCount`, which is not in the standard.
    pub gpus: f64,
    /// Bytes in memory at most.
    pub memory: Option<u64>,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    /// Percent of one core: above 100 for several threads.
    pub average_cpu: Option<f64>,
    pub energy_kwh: Option<f64>,
    pub average_watts: Option<f64>,
    pub priority: Option<f64>,
    /// A program, or with Nextflow a whole script.
    pub program: Option<String>,
    pub arguments: Vec<String>,
    pub started_at: Option<String>,
    /// By position in [`Instance::machines`].
    pub machines: Vec<u32>,
}

impl Task {
    /// Zero when nothing is recorded.
    pub fn seconds(&self) -> f64 {
        self.runtime.unwrap_or(0.0)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    pub id: String,
    pub size: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    pub name: String,
    pub system: Option<String>,
    pub architecture: Option<String>,
    pub release: Option<String>,
    pub memory: Option<u64>,
    pub cores: Option<u64>,
    pub megahertz: Option<u64>,
    pub vendor: Option<String>,
}

impl Instance {
    pub fn edges(&self) -> usize {
        self.tasks.iter().map(|task| task.parents.len()).sum()
    }

    /// Positions of tasks, parents before their children. Reading refuses cycles, so nothing is missing.
    pub fn order(&self) -> Vec<u32> {
        graph::order(&self.tasks)
    }

    /// Of each file, the first task that makes it.
    pub fn makers(&self) -> Vec<Option<u32>> {
        graph::makers(&self.tasks, self.files.len())
    }
}

/// True for JSON whose `workflow` is a map: in Tulpar's own language it is a name.
pub fn is_wfformat(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with('{')
        && text.match_indices("\"workflow\"").any(|(at, key)| {
            let rest = text[at + key.len()..].trim_start();
            rest.strip_prefix(':').is_some_and(|rest| rest.trim_start().starts_with('{'))
        })
}
