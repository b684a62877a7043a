//! What is told to the engine (inputs), recorded (events) and to be done (actions).
//!
//! Events are what the journal keeps and what every report is made of. An event carries its consequence: no job waits in a
//! state that only a later event explains. From the first release on their meaning never changes: new fields get defaults,
//! new kinds get new names; frozen journals are replayed in the tests.

use crate::engine::{Mode, Order, Packing};
use crate::ids::{AttemptId, Digest, JobId, NodeId, SetId};
use crate::job::{Ending, JobSpec, OutputFile, Report, Told};
use crate::provenance::Provenance;
use crate::resources::Request;
use crate::units::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the world said.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The driver is ready: begin, or go on after a restart.
    Begin,
    /// The answer to [`Action::Look`].
    Looked {
        job: JobId,
        answer: Answer,
    },
    Started {
        attempt: AttemptId,
    },
    Ended {
        attempt: AttemptId,
        report: Box<Report>,
    },
    /// The site stopped the attempt until a person releases it.
    Held {
        attempt: AttemptId,
        reason: String,
    },
    /// It waits in the site's queue again: a person released it, or it was evicted.
    Released {
        attempt: AttemptId,
    },
    /// A trial said a number on the way.
    Said {
        attempt: AttemptId,
        step: u64,
        value: f64,
    },
    /// A node that comes and goes is there, or no longer.
    Node {
        node: NodeId,
        present: bool,
    },
    /// Others put a trial of a search into its storage.
    Added {
        set: SetId,
        /// Which of its searches, where it has one for each element.
        part: u32,
        added: Box<Added>,
    },
    /// A person cancels one job and what hangs on it.
    Cancel {
        job: JobId,
    },
    /// A person stops the run.
    Stop {
        how: Stopping,
    },
    /// Nothing happened but the time passed.
    Clock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// Start nothing more; let what runs end.
    Drain,
    /// End what runs (checkpoints are kept); the run can be resumed.
    Interrupt,
    /// End what runs; the run is over.
    Cancel,
}

/// What was found for a job before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub cached: Cached,
    /// Values that the job's `when:` asked for, by input name and pointer; absent when not there.
    pub fields: BTreeMap<(String, String), serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Cached {
    /// With the numbers that it said, where it was a trial of a search.
    Hit {
        outputs: Vec<OutputFile>,
        run: String,
        told: Option<Box<Told>>,
    },
    /// An attempt with the same key but for its declared outputs ended with exit code 0 and without one of them. These are the files
    /// that it made.
    Made {
        files: Vec<OutputFile>,
        run: String,
        attempt: u32,
        told: Option<Box<Told>>,
    },
    Miss(Reason),
}

/// Why a job runs instead of being reused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Nothing with this name was ever run here.
    New,
    /// These parts of the key differ from the last run of the same job.
    Changed(Vec<Change>),
    /// The key is known but its outputs are gone from the cache.
    OutputsGone,
    Forced,
    /// `cache: off`
    CacheOff,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub part: KeyPart,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub now: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyPart {
    Command,
    Environment,
    Outputs,
    Input(String),
}

/// What decides whether a result may be reused. The digest over it is the cache key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The command with every value in place.
    pub command: String,
    /// Container, Python environment, variables; secrets by name only.
    pub environment: String,
    /// The declared outputs.
    pub outputs: String,
    /// Of each input its content, whatever the order of its files.
    pub inputs: BTreeMap<String, Digest>,
}

/// Where an attempt runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    pub site: String,
    /// One entry a node; more than one for a gang.
    pub nodes: Vec<Share>,
}

/// What an attempt holds of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    pub node: NodeId,
    /// Positions of its GPUs in the node's list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u16>,
    /// The cores that are its own, when it asked for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u16>,
}

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum Event {
    RunStarted {
        run: String,
        version: String,
        plan: Digest,
        seed: u64,
        #[serde(default, skip_serializing_if = "is_unknown")]
        provenance: Box<Provenance>,
        /// Nothing of it really ran; its times are virtual.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        simulated: bool,
    },
    RunResumed {
        version: String,
        /// In order, the jobs that get another chance: they failed, were skipped or were cancelled, and the workflow does not tolerate it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reopened: Vec<JobId>,
    },
    /// The job will run, and this is why it is not reused.
    Missed {
        job: JobId,
        key: Option<Digest>,
        reason: Reason,
    },
    Reused {
        job: JobId,
        key: Digest,
        run: String,
        outputs: Vec<OutputFile>,
        /// The numbers that it said then, as a trial of a search.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<Box<Told>>,
        /// The attempt of that run whose files are accepted, since the declaration of its outputs was mended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accepted: Option<u32>,
    },
    /// There is room for a ready job, but it is kept for a more urgent one. Recorded once for all jobs that ask for the same, until
    /// the more urgent one is submitted.
    HeldBack {
        job: JobId,
        by: JobId,
        /// When the more urgent one is expected to start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    Submitted {
        attempt: AttemptId,
        request: Request,
        placement: Placement,
        /// Which way of doing it was taken, where the task has several.
        #[serde(default, skip_serializing_if = "is_zero")]
        variant: u32,
        /// Of inputs that are the newest result of a task set, by their names, whose result it is.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        versions: BTreeMap<String, JobId>,
    },
    Started {
        attempt: AttemptId,
    },
    Held {
        attempt: AttemptId,
        reason: String,
    },
    Released {
        attempt: AttemptId,
    },
    /// The attempt is over, and so stands its job from now on.
    Ended {
        attempt: AttemptId,
        report: Box<Report>,
        then: Consequence,
    },
    /// The pause before another attempt is over.
    Due {
        job: JobId,
    },
    /// A job that has no attempt in the hands of a site cannot run.
    Failed {
        job: JobId,
        blame: Blame,
    },
    /// A job that has no attempt in the hands of a site is not needed, or has lost what it needs.
    Skipped {
        job: JobId,
        because: Because,
    },
    /// A person cancelled a job that has no attempt in the hands of a site.
    Cancelled {
        job: JobId,
    },
    /// A dynamic task set got its tasks from the files that its sources left.
    Grafted {
        set: SetId,
        tasks: u32,
    },
    /// A trial of a search got its parameters.
    Asked {
        job: JobId,
        values: tulpar_hpo::Values,
        origin: tulpar_hpo::Origin,
    },
    /// Others ran a trial of a search, or want one to be run.
    Added {
        set: SetId,
        /// Which of its searches, where it has one for each element.
        #[serde(default, skip_serializing_if = "is_zero")]
        part: u32,
        added: Box<Added>,
    },
    /// A trial said a number of its first objective while it runs; one that is not finite where that ends the trial.
    Reported {
        job: JobId,
        step: u64,
        #[serde(deserialize_with = "crate::job::number_or_nan")]
        value: f64,
    },
    /// A trial is told to end before it is complete; its end says what became of it.
    Curtailed {
        attempt: AttemptId,
        how: Curtailment,
    },
    /// A paused trial goes on.
    Continued {
        job: JobId,
    },
    /// A node that comes and goes is there, or no longer.
    Node {
        node: NodeId,
        present: bool,
    },
    /// From here on what is ready starts in this order: rollouts of the rest of the run said which ends first.
    Ordered {
        chosen: Way,
        /// What was tried, and after how many microseconds each would end.
        tried: Vec<(Way, u64)>,
    },
    Stopping {
        how: Stopping,
    },
    RunEnded {
        outcome: Outcome,
    },
}

/// What the end of an attempt leads to for its job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consequence {
    /// The outputs of the attempt are the results of the job.
    Done,
    /// Another attempt follows, not before `until`.
    Retry {
        until: Timestamp,
        /// What the job asks for from now on, where that changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Box<Request>>,
    },
    /// No other attempt follows.
    Failed {
        blame: Blame,
    },
    /// The trial is over: other trials were better at that step.
    Pruned,
    /// The trial waits at its rung, with its checkpoint, until it is among the best there.
    Paused,
    Cancelled,
}

/// Why a trial does not run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Curtailment {
    /// Others were better at that step.
    Prune,
    /// It may go on later.
    Pause,
}

/// A trial that did not begin here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Added {
    /// Where it is kept, by which it is known.
    pub source: String,
    pub values: tulpar_hpo::Values,
    /// Numbers on the way, by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<(u64, f64)>,
    /// What came of it; where nothing is said, it is to be run, unless somebody runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<tulpar_hpo::Outcome>,
    /// Others run it now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub running: bool,
}

/// One way to go on: what a rollout tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Way {
    pub mode: Mode,
    pub order: Order,
    pub packing: Packing,
}

fn is_unknown(provenance: &Provenance) -> bool {
    provenance.is_empty()
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The task's own program or what was written about it.
    Task,
    /// It asked for too little memory or time, and more tries were not allowed.
    Resources,
    /// It asks for more than any node of the site has.
    TooMuch,
    /// The site or its nodes.
    Site,
    /// A change of its inputs while the run went on.
    Inputs,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// This job, above it, did not end well.
    Upstream(JobId),
    /// Its `when:` is not true.
    Condition,
    /// Not needed for what was asked with `--until`.
    NotWanted,
    /// The search has nothing more to try.
    Exhausted,
    /// The time or the GPU hours of the search are spent.
    Spent,
    /// A trial that was ended early, because others were better.
    Pruned,
    /// It takes what a search found, and no trial there kept the constraints.
    Infeasible,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    Failed,
    Cancelled,
    /// Stopped half-way; `resume` continues.
    Interrupted,
}

/// What is to be done, after the events of the same step are durable.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Look into the cache, and read the fields that a condition needs.
    Look {
        job: JobId,
        name: String,
        key: Option<Box<Key>>,
        fields: Vec<FieldQuery>,
    },
    Submit(Box<JobSpec>),
    /// End these attempts; they shall report this ending.
    Cancel {
        attempts: Vec<AttemptId>,
        ending: Ending,
    },
    /// Show these outputs under `results/`, and remember them under the key.
    Publish(Box<Publication>),
    /// Remember what an attempt made that misses a declared output: a mended declaration may accept it.
    Keep(Box<Made>),
    /// Nothing more will come of this run, unless it is resumed.
    Finish(Outcome),
}

/// The files of an attempt that misses a declared output.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    pub name: String,
    pub attempt: u32,
    pub key: Key,
    pub files: Vec<OutputFile>,
    pub told: Option<Box<Told>>,
}

/// A job's results, ready to be shown and to be reused.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    pub job: JobId,
    pub name: String,
    /// Absent when the task is not to be cached, or came from the cache itself.
    pub key: Option<Box<Key>>,
    /// It came from the cache.
    pub reused: bool,
    /// The numbers that it said, as a trial of a search, to be remembered with its results.
    pub told: Option<Box<Told>>,
    pub outputs: Arc<[OutputFile]>,
    /// Positions of outputs that are not to be shown.
    pub temporary: Vec<u32>,
    /// The folder below the results that shows them, when several workflows share the run.
    pub below: Option<String>,
    /// Of a cluster, what each of its tasks left, to be remembered for runs with other clusters.
    pub members: Vec<MemberPublication>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MemberPublication {
    pub name: String,
    pub key: Key,
    pub outputs: Vec<OutputFile>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FieldQuery {
    pub input: String,
    pub pointer: String,
    /// The JSON file that holds it.
    pub file: crate::job::InputFile,
}
