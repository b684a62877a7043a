//! The contract between the engine and whoever runs one attempt: what to run, and what came of it.
//!
//! Plain data that travels as JSON to a worker and back. It knows no plan and no scheduler.

use crate::ids::{AttemptId, Digest};
use crate::resources::Request;
use crate::units::Timestamp;
use crate::workflow::Value;
use crate::workflow::planned::{Cluster, Operation, SentImage};
use crate::workflow::{Checkpoint, IoCapture, Limits, OutputKind};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything that is needed to run one attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    pub attempt: AttemptId,
    /// For people: `preprocess[part=3]`.
    pub name: String,
    pub command: CommandLine,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Names of secrets; whoever launches the task looks their values up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub venv: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conda: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputFiles>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    pub limits: Limits,
    /// What is recorded of its reads and writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<IoCapture>,
    pub milli_cpus: u32,
    /// Devices this attempt may use, as `CUDA_VISIBLE_DEVICES` names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    /// Cores of the node that are its own, counted from 0 among those that Tulpar may use there; none: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u16>,
    /// Name of the node that the scheduler chose, or of the queue.
    pub node: String,
    #[serde(default, skip_serializing_if = "Place::is_owned")]
    pub place: Place,
    /// More than one command: files to be pulled and pushed, several tasks, or work on files alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Box<Script>>,
    /// The numbers that it must say, as a trial of a search; intermediate ones are of the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<String>,
}

impl JobSpec {
    /// The resources requested from the queue; none on a site whose nodes Tulpar packs itself.
    pub fn queued(&self) -> Option<&Request> {
        match &self.place {
            Place::Owned => None,
            Place::Queued(request) => Some(request),
        }
    }
}

/// Who finds the node of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The scheduler, which packs the nodes itself.
    #[default]
    Owned,
    /// The queue of the site, which is asked for this.
    Queued(Box<Request>),
}

impl Place {
    fn is_owned(&self) -> bool {
        *self == Place::Owned
    }
}

/// What a job does beside, or instead of, running its command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    pub work: ScriptWork,
    /// Where outputs are copied to when they are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
    /// Of transfers.
    pub threads: u32,
    /// Container images that come with the job, or once to its node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<SentImage>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptWork {
    /// The command of the spec.
    Command,
    Cluster {
        cluster: Cluster,
        params: BTreeMap<String, Value>,
    },
    Operation(Operation),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLine {
    Arguments(Vec<String>),
    /// Run as `SHELL -e -c LINE`.
    Shell {
        shell: String,
        line: String,
    },
}

/// The files of one named input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFiles {
    pub name: String,
    pub files: Arc<[InputFile]>,
    /// Write the paths, one a line, to this file in the sandbox (`{name.list}` is used).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Where the sandbox shows it, relative.
    pub path: String,
    pub source: Source,
    pub size: u64,
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file of the user's: absolute, or relative to the folder of the workflow.
    Path(String),
    /// A result in the content-addressed store, found by the digest beside it.
    Object,
    /// A copy at a staging site.
    Remote(String),
    /// These words. Whoever hands the job over puts them into the store first.
    Text(Arc<str>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSpec {
    pub name: String,
    /// Path, pattern or directory (no trailing slash) in the sandbox.
    pub path: String,
    pub kind: OutputKind,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// One file that a task left, committed to the content-addressed store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Position of its declaration among the task's outputs.
    pub output: u32,
    pub path: String,
    pub size: u64,
    pub digest: Digest,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// How an attempt ended. Structural from the executor to the retry policy to the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The program left by itself. Code 0 with every declared output there is success.
    Exit(i32),
    Signal(i32),
    /// Ended by us: it ran longer than its wall time.
    Walltime,
    /// Ended by us or by the kernel: it used more memory than it asked for.
    Memory,
    /// It saved its state and asked to be continued (exit code 85).
    Checkpointed,
    /// Taken off its place by the site.
    Preempted,
    /// The node, or the process that watched the task, went away.
    NodeLost,
    /// The driver of the run went away, and the attempt with it or before it was submitted.
    DriverLost,
    /// It never started: its place has no room for its files, or too many are open. Not its fault.
    NoRoom(String),
    /// A person said so.
    Cancelled,
    /// Exit code 0, but these declared outputs are missing.
    Incomplete(Vec<String>),
    /// These inputs did not hold, before or after, the content that its key names. Its outputs are not kept.
    InputsChanged(Vec<String>),
    /// It never started: no such program, no such container, sandbox trouble.
    Refused(String),
}

impl Ending {
    pub fn is_success(&self) -> bool {
        *self == Ending::Exit(0)
    }

    /// As people say it.
    pub fn words(&self) -> String {
        match self {
            Ending::Exit(0) => "ended well".into(),
            Ending::Exit(code) => format!("exit code {code}"),
            Ending::Signal(signal) => format!("killed by signal {signal}"),
            Ending::Walltime => "ran longer than its time limit".into(),
            Ending::Memory => "used more memory than it asked for".into(),
            Ending::Checkpointed => "saved a checkpoint to be continued".into(),
            Ending::Preempted => "taken off its place".into(),
            Ending::NodeLost => "lost with the process that watched it".into(),
            Ending::DriverLost => "lost with the driver of the run".into(),
            Ending::NoRoom(why) => format!("no room on its place: {why}"),
            Ending::Cancelled => "cancelled".into(),
            Ending::Incomplete(missing) => format!("did not write {}", missing.join(", ")),
            Ending::InputsChanged(paths) => format!("its input changed: {}", paths.join(", ")),
            Ending::Refused(why) => format!("could not start: {why}"),
        }
    }
}

/// What `launch` measured of one attempt. One a line in `records.jsonl` of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub attempt: AttemptId,
    pub name: String,
    pub host: String,
    pub node: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    pub command: CommandLine,
    pub started: Timestamp,
    pub ended: Timestamp,
    pub ending: Ending,
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
    /// Files and bytes shown to the task.
    pub input_files: u64,
    pub input_bytes: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputFile>,
    /// What was recorded of its reads and writes, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<Box<IoRecord>>,
}

/// Reads and writes of files of an attempt, in short. The whole is in its log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoRecord {
    /// The name of the Darshan log in the folder of the attempt; none where it could not be written, and `problem` says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    pub processes: u64,
    pub files: u64,
    pub reads: u64,
    pub writes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Programs that were started and could not be seen into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_seen: Vec<String>,
    /// Records for which there was no room.
    pub lost: u64,
    /// Files that were read outside of the sandbox, of the system and of installations of Python: at most
    /// [`IoRecord::MOST_ELSEWHERE`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_elsewhere: Vec<String>,
}

impl IoRecord {
    /// What the log is called, beside `stdout` and `stderr`.
    pub const LOG: &str = "io.darshan";
    pub const MOST_ELSEWHERE: usize = 1000;
}

/// Totals over the process tree of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub wall_us: u64,
    pub user_us: u64,
    pub system_us: u64,
    /// Largest resident size of the tree that was seen, in bytes; 0 when it was over before anyone could look.
    pub peak_rss: u64,
    /// Bytes and calls of read- and write-like system calls: cache, pipes and sockets included.
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub read_calls: u64,
    pub write_calls: u64,
    /// Bytes that really went to or came from a device.
    pub device_read_bytes: u64,
    pub device_write_bytes: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    #[serde(default)]
    pub peak_gpu_memory: u64,
    /// Mean utilisation of the attempt's devices, in hundredths of a percent.
    #[serde(default)]
    pub gpu_utilisation: u32,
}

impl Usage {
    /// Whether anybody measured it. Nobody did where the driver was lost; a process that ran at all has page faults.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        (Usage { wall_us: 0, ..*self }) != Usage::default()
    }

    /// The largest memory, where anybody saw it.
    #[must_use]
    pub fn peak_memory(&self) -> Option<u64> {
        (self.peak_rss > 0).then_some(self.peak_rss)
    }

    /// Of an attempt that ran in two pieces.
    #[must_use]
    pub fn and(self, other: Usage) -> Usage {
        let wall_us = self.wall_us + other.wall_us;
        let busy = |usage: Usage| u128::from(usage.gpu_utilisation) * u128::from(usage.wall_us);
        Usage {
            wall_us,
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
            peak_rss: self.peak_rss.max(other.peak_rss),
            read_bytes: self.read_bytes + other.read_bytes,
            write_bytes: self.write_bytes + other.write_bytes,
            read_calls: self.read_calls + other.read_calls,
            write_calls: self.write_calls + other.write_calls,
            device_read_bytes: self.device_read_bytes + other.device_read_bytes,
            device_write_bytes: self.device_write_bytes + other.device_write_bytes,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
            peak_gpu_memory: self.peak_gpu_memory.max(other.peak_gpu_memory),
            gpu_utilisation: ((busy(self) + busy(other)) / u128::from(wall_us.max(1))) as u32,
        }
    }
}

/// The process tree of an attempt at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Milliseconds since the attempt started.
    pub ms: u64,
    pub processes: u32,
    pub rss: u64,
    /// CPU time used so far, microseconds.
    pub cpu_us: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_percent: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<u64>,
}

/// What an executor says when an attempt is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub ending: Ending,
    pub started: Timestamp,
    pub ended: Timestamp,
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputFile>,
    /// The last lines of stderr, only when the attempt did not succeed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    /// What a script did, member by member and transfer by transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Box<ScriptReport>>,
    /// The numbers that a trial said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Box<Told>>,
    /// What lay in its output folders and is no file, so that it is not kept: empty folders, pipes, sockets, devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Report {
    /// Of an attempt that has no process to tell of.
    pub fn unstarted(ending: Ending, at: Timestamp) -> Self {
        let (outputs, stderr_tail) = (Vec::new(), String::new());
        let usage = Usage::default();
        let left_out = Vec::new();
        Self { ending, started: at, ended: at, usage, outputs, stderr_tail, script: None, told: None, left_out }
    }

    /// What it and the tasks in it left out of their output folders.
    pub fn all_left_out(&self) -> Vec<String> {
        let members = self.script.iter().flat_map(|script| &script.members).flat_map(|member| &member.left_out);
        self.left_out.iter().chain(members).cloned().collect()
    }
}

/// What a trial of a search said of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The last number for each objective.
    #[serde(deserialize_with = "values_or_nan")]
    pub values: BTreeMap<String, f64>,
    /// Numbers on the way, of the first objective, by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "steps_or_nan")]
    pub steps: Vec<(u64, f64)>,
}

/// What JSON has no word for is written as `null`, and read as not a number.
pub(crate) fn number_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

fn values_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let values = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?.into_iter();
    Ok(values.map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
}

fn steps_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u64, f64)>, D::Error> {
    let steps = Vec::<(u64, Option<f64>)>::deserialize(deserializer)?.into_iter();
    Ok(steps.map(|(step, value)| (step, value.unwrap_or(f64::NAN))).collect())
}

/// What a script did, as far as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptReport {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberReport>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<TransferReport>,
}

/// One task of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberReport {
    pub name: String,
    pub ending: Ending,
    pub started: Timestamp,
    pub ended: Timestamp,
    pub usage: Usage,
    /// An earlier attempt did it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub earlier: bool,
    /// As in [`Report::left_out`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// Files that went one way together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferReport {
    pub what: TransferKind,
    pub files: u64,
    pub bytes: u64,
    pub wall_us: u64,
    /// Tries beyond the first, of all files together.
    #[serde(default)]
    pub retries: u64,
    /// When the first of them began.
    pub started: Timestamp,
    /// The folder or URL that all of them came from; empty: the node that the job ran on, or unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The same of where they went.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferKind {
    Pull,
    Push,
    Remove,
}
