//! What a task says beside its data flow: resources, software, retries, checkpoints, tolerance, hooks, and hints to
//! the planner. Part of the model; how layers of settings are read and merged is `settings`' matter.

use super::Template;
use crate::resources::Request;
use crate::units::micros_if_any;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Set for tasks that are workflows; `node` when they get a whole node, `cores` when they ask for cores themselves.
pub const SUB_WORKFLOW_VARIABLE: &str = "TULPAR_SUBWORKFLOW";

/// Everything a task says beside its data flow. Interned: a million tasks share a handful.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Settings {
    pub request: Request,
    /// `sh` unless the user chose another, e.g. `bash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    #[serde(default)]
    pub environment: Environment,
    #[serde(default)]
    pub retry: Retry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// How much of a scatter may fail without failing the workflow.
    #[serde(default)]
    pub tolerate: Tolerance,
    /// `cache: off` always runs the task.
    #[serde(default)]
    pub cache: Caching,
    /// Higher runs first; 0 unless the user says otherwise.
    #[serde(default)]
    pub priority: i32,
    /// Time between SIGTERM and SIGKILL; `None` means ten seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Duration>,
    /// What is recorded of its reads and writes. It is no part of what the task computes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<IoCapture>,
    #[serde(default, skip_serializing_if = "Hints::is_empty")]
    pub hints: Hints,
    /// Which iteration of the workflow it belongs to. It matters to modes with barriers, not to what is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<Iteration>,
    /// At most this many tasks of the set at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// Commands for when an attempt begins and ends. They are no part of what the task computes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
}

/// How much of the reads and writes of a task is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoCapture {
    /// Counters and histograms a file.
    Count,
    /// Every read and write too.
    Trace,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Iteration {
    Number(u32),
    /// The number that this variable of the task's scatter has.
    Variable(String),
}

/// A command that runs beside the driver when something happens, whatever comes of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hook {
    pub on: Occasion,
    /// A line for `sh`.
    pub run: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    Start,
    /// However it ends.
    End,
    Success,
    Error,
    /// Start and end.
    All,
}

impl Occasion {
    pub const ALL: [(&'static str, Self); 5] = [
        ("start", Self::Start),
        ("end", Self::End),
        ("success", Self::Success),
        ("error", Self::Error),
        ("all", Self::All),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, value)| *value == self).expect("all values are listed").0
    }

    pub fn from_name(name: &str) -> Option<Self> {
        let other = (name == "failure").then_some(Self::Error);
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).or(other)
    }
}

/// What a task says to the planner. None of it changes what the task computes, so none of it is in its key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hints {
    /// How long it is expected to run; not a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Duration>,
    /// Tasks with one label go into one cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The program that it runs, when several task sets run the same one; otherwise the task set counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The site that the user wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterHint>,
}

impl Hints {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How equal tasks of one level are to be put together. With several of them the last one counts, as in Pegasus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClusterHint {
    /// At most this many tasks a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// This many clusters a level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Clusters that are expected to run no longer than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caching {
    #[default]
    On,
    Off,
    /// Results are kept for other runs, but the task runs: whoever planned has looked already.
    Keep,
}

/// The software and variables that a task sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Environment {
    /// An Apptainer image file or `docker://…` reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// A Python virtual environment's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub venv: Option<String>,
    /// A conda environment, by name or folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conda: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, Template>,
    /// Programs of the catalogue that its command names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// Names only. The values never reach a plan, a key, a journal or an argument.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// A program that the catalogue knows, as one site has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Program {
    /// What `{name}` in the command means.
    pub name: String,
    /// Where it is installed. `None` before the catalogue was asked, and for one that is sent along, which is an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// When to try again, and with what.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Retry {
    /// Tries after the first.
    pub times: u32,
    pub on: Vec<RetryOn>,
    /// The pause before the second try; it doubles each time.
    pub pause: Duration,
    /// Factor on memory after running out of it, in hundredths: 200 doubles.
    pub memory_percent: u32,
    /// Factor on wall time after running out of it, in hundredths.
    pub time_percent: u32,
    /// What to ask for instead, before each further try. They win over the factors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expressions: Vec<RetryExpression>,
}

/// `memory.expr = memory * 2`: what the next try asks for, in the units of Pegasus' profiles.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RetryExpression {
    pub what: Quantity,
    /// See [`super::expression`]. It may name all quantities, and `attempt`, the number of the try that failed.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// In MiB.
    Memory,
    /// In MiB.
    Disk,
    Cores,
    Gpus,
    /// In seconds.
    Time,
}

impl Quantity {
    /// With our name or with Pegasus'.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "memory" => Self::Memory,
            "disk" | "diskspace" => Self::Disk,
            "cpus" | "cores" => Self::Cores,
            "gpus" => Self::Gpus,
            "time" | "runtime" => Self::Time,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Cores => "cpus",
            Self::Gpus => "gpus",
            Self::Time => "time",
        }
    }

    /// With the names that Pegasus' profiles have.
    pub const ALL: [(&'static str, Self); 5] = [
        ("memory", Self::Memory),
        ("diskspace", Self::Disk),
        ("cores", Self::Cores),
        ("gpus", Self::Gpus),
        ("runtime", Self::Time),
    ];
}

impl Default for Retry {
    /// A user's error stops at once; lack of memory or time gets two more tries with more of it.
    fn default() -> Self {
        Self {
            times: 2,
            on: vec![RetryOn::Memory, RetryOn::Time, RetryOn::Evicted],
            pause: Duration::from_secs(1),
            memory_percent: 200,
            time_percent: 200,
            expressions: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    /// `out_of_memory`
    Memory,
    /// `out_of_time`
    Time,
    /// `evicted`: pre-empted, node lost. Does not use up `times`.
    Evicted,
    /// `failure`: any other ending, the task's own errors included.
    Failure,
    /// `exit_75`: this exit code.
    Exit(i32),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Paths or patterns in the sandbox, carried from attempt to attempt.
    pub files: Vec<String>,
    /// Keep only this many of the files; `None` keeps all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
    #[serde(default)]
    pub best: Best,
    /// After so long it is told to save its state and is continued by another attempt: shorter jobs find more places.
    #[serde(default, with = "micros_if_any", skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
}

/// Which checkpoint files are worth keeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Best {
    #[default]
    Newest,
    /// By the last number in the file's name, e.g. a validation loss.
    Smallest,
    Largest,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    #[default]
    None,
    Tasks(u32),
    Percent(u32),
    /// Any number: what failed is left out of what is gathered.
    Any,
}
