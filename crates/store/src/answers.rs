//! What the store answers: plain data for tables, `--json` and reports. Times are microseconds since 1970.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tulpar_core::ids::{Digest, JobId};
use tulpar_core::job::{Sample, Usage};
use tulpar_core::provenance::{Metric, Provenance};
use tulpar_core::units::Timestamp;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunAnswer {
    pub name: String,
    /// The Tulpar that wrote the last part of it.
    pub version: Option<String>,
    pub plan: Option<String>,
    pub seed: Option<String>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// Absent while it runs, or after a crash.
    pub outcome: Option<String>,
    pub stopping: Option<String>,
    pub resumed: u64,
    /// Jobs by state.
    pub jobs: BTreeMap<String, u64>,
    /// Of the jobs that are done, those that came from the cache.
    pub reused: u64,
    pub events: u64,
    /// Of the last event.
    pub last_at: Option<Timestamp>,
    pub bad_lines: u64,
    pub unknown_events: u64,
    pub provenance: Provenance,
    /// Metrics that tasks reported, each over the tasks of its set.
    pub metrics: Vec<Metric>,
}

/// Which jobs to list. Everything absent means all of them.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    pub states: Vec<String>,
    pub set: Option<String>,
    /// Of any of these task sets.
    pub sets: Option<Vec<String>>,
    /// The whole name.
    pub name: Option<String>,
    /// Part of the name, small and large letters alike.
    pub contains: Option<String>,
    pub sort: JobSort,
    /// The largest, or the last of the alphabet, first. What has no value comes last either way.
    pub descending: bool,
    pub offset: u64,
    pub limit: Option<u64>,
}

/// What a list of jobs is sorted by; jobs that are alike come in the order of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobSort {
    #[default]
    Job,
    Name,
    Set,
    State,
    /// When it came into its state.
    Since,
    Attempts,
    /// When its last attempt started.
    Started,
    /// Of the last attempt that ended, as the next two.
    Wall,
    Cpu,
    Memory,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobAnswer {
    pub job: JobId,
    pub name: Option<String>,
    pub set: Option<String>,
    pub state: String,
    /// When it came into this state.
    pub since: Option<Timestamp>,
    pub attempts: u32,
    /// Why it was not reused.
    pub why: Option<Value>,
    pub key: Option<String>,
    pub reused_from: Option<String>,
    pub blame: Option<String>,
    pub because: Option<Value>,
    /// Of the last attempt.
    pub started: Option<Timestamp>,
    /// Of the last attempt that ended, as the next two.
    pub wall_us: Option<u64>,
    pub cpu_us: Option<u64>,
    pub peak_rss: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptAnswer {
    pub job: JobId,
    pub n: u32,
    pub site: Option<String>,
    pub host: Option<String>,
    pub node: Option<String>,
    pub gpus: Option<Value>,
    pub request: Option<Value>,
    pub placement: Option<Value>,
    pub command: Option<Value>,
    pub submitted: Option<Timestamp>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub held: Option<String>,
    /// Why it does not start yet, in the words of its site.
    pub waiting: Option<String>,
    /// `exit`, `signal`, `memory`, …
    pub ending: Option<String>,
    /// Exit code or signal.
    pub code: Option<i32>,
    pub detail: Option<String>,
    pub stderr_tail: Option<String>,
    pub input_files: Option<u64>,
    pub input_bytes: Option<u64>,
    pub usage: Option<Usage>,
    pub samples: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputAnswer {
    pub job: JobId,
    pub name: Option<String>,
    pub set: Option<String>,
    /// Position of its declaration among the task's outputs.
    pub output: u32,
    pub path: String,
    pub size: u64,
    pub digest: String,
    pub executable: bool,
    /// Absent when it came from the cache.
    pub attempt: Option<u32>,
}

/// Files that went one way together, for one attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransferAnswer {
    pub job: JobId,
    pub n: u32,
    /// Among the transfers of the attempt, from 0.
    pub number: u32,
    /// `pull`, `push` or `remove`.
    pub what: String,
    /// The folder or URL; absent: the node of the attempt.
    pub from: Option<String>,
    pub to: Option<String>,
    pub files: u64,
    pub bytes: u64,
    pub started: Option<Timestamp>,
    pub wall_us: u64,
    pub retries: u64,
}

/// One event that touched a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoryEvent {
    pub seq: u64,
    pub at: Timestamp,
    pub kind: String,
    pub attempt: Option<u32>,
    pub data: Value,
}

/// What lineage is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    Digest(Digest),
    /// As declared by the task, relative to `results/`.
    Path(String),
}

/// A job that gave a file, made or reused.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Producer {
    pub run: String,
    /// When the run started.
    pub started: Option<Timestamp>,
    pub version: Option<String>,
    pub plan: Option<String>,
    pub output: OutputAnswer,
    pub key: Option<String>,
    /// The run that made it, when this one reused it.
    pub reused_from: Option<String>,
    /// The attempt that made it.
    pub attempt: Option<AttemptAnswer>,
}

/// Mean and largest of something over the attempts of a task set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    pub mean: f64,
    pub max: u64,
    pub total: u64,
}

/// A task set at a glance. Resources are those of the attempts that ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetSummary {
    pub set: Option<String>,
    /// Jobs by state.
    pub jobs: BTreeMap<String, u64>,
    pub reused: u64,
    pub attempts: u64,
    /// Of the attempts, those whose wall time is known, and those whose CPU time, reads and writes are.
    pub timed: u64,
    pub measured: u64,
    pub wall_us: Spread,
    /// User and system together.
    pub cpu_us: Spread,
    pub peak_rss: Spread,
    pub read_bytes: Spread,
    pub write_bytes: Spread,
}

/// A running attempt as it was last seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveAnswer {
    pub job: JobId,
    pub n: u32,
    pub name: Option<String>,
    pub set: Option<String>,
    pub site: Option<String>,
    pub started: Option<Timestamp>,
    /// When it was seen; absent, as the rest, while nobody has looked.
    pub at: Option<Timestamp>,
    pub sample: Option<Sample>,
    /// Since the look before: CPUs kept busy, bytes a second.
    pub cpus: Option<f64>,
    pub read_rate: Option<f64>,
    pub write_rate: Option<f64>,
}

/// What a run used in a stretch of time, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UsageColumn {
    pub from: Timestamp,
    pub to: Timestamp,
    /// Attempts that ran.
    pub running: f64,
    /// CPUs kept busy.
    pub cpus: f64,
    /// Bytes; of attempts that were never looked at, their peak.
    pub memory: f64,
    /// Bytes a second.
    pub read_rate: f64,
    pub write_rate: f64,
    /// GPUs kept busy: two at 50 % are one.
    pub gpus: f64,
    pub gpu_memory: f64,
}
