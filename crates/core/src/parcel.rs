//! What travels to a worker and comes back: the job, how its files come, and the names of things in its folder.
//!
//! Plain data. Whoever sends it (HTCondor, Slurm, a pilot's connection) is none of its business.

use crate::ids::Digest;
use crate::job::{InputFiles, JobSpec};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Of parcels: who packs and who unpacks must mean the same. A new number for every change that an older reader would
/// not understand.
pub const FORMAT: u32 = 3;
/// The parcel in the folder of a job.
pub const PARCEL: &str = "parcel.json";
/// The folder that comes back. It is there from the start, since a site may want it at any moment.
pub const OUT: &str = "tulpar-out";
/// In `OUT`: how the attempt ended. It is written last.
pub const REPORT: &str = "report.json";
/// In `OUT`: the outputs, each named by its digest.
pub const OBJECTS: &str = "objects";
/// In `OUT`: the records of the attempt.
pub const RECORDS: &str = "records.jsonl";
/// In `OUT`: what the job saved of its state.
pub const CHECKPOINTS: &str = "checkpoints";
/// In `OUT`, from its start: when and where the task really started.
pub const STARTED: &str = "started.json";
/// In `OUT`, where it is shared: the last look at the task while it runs, one line as in `samples.jsonl` of the run.
pub const SEEN: &str = "seen.json";
/// What it said on the way, as a trial of a search; a line each.
pub const SAID: &str = "said.jsonl";
/// Beside the parcel, at the submitting side: a trial is to save its state, leave a report and end.
pub const STOP: &str = "tulpar-stop";
/// Values of secrets by name, readable by the job alone.
pub const SECRETS: &str = "tulpar-secrets.json";
/// Inputs that came as one file.
pub const PACK: &str = "tulpar-pack";
/// What is what in that file: [`PackedInputs`]. Jobs with the same inputs share both.
pub const INPUTS: &str = "tulpar-inputs.json";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parcel {
    /// Names the run, for the marks that processes carry.
    pub run: String,
    /// Its inputs are objects, or are pulled by the job itself.
    pub spec: JobSpec,
    /// Its inputs stand in [`INPUTS`], not here, and came as one file; else they lie beside the parcel, each named by its digest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packed: bool,
    /// The folders of the run, where the worker sees them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedFolders>,
    /// A task that saved its state and wants to go on: leave with its exit code, the site starts it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackedInputs {
    pub inputs: Vec<InputFiles>,
    /// In the order in which they stand in [`PACK`].
    pub objects: Vec<Packed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    pub digest: Digest,
    pub size: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedFolders {
    pub project: PathBuf,
    pub attempts: PathBuf,
    pub objects: PathBuf,
    pub checkpoints: PathBuf,
}

/// What the program on workers says of itself.
pub fn version_line() -> String {
    format!("tulpar-launch {}, parcels {FORMAT}", env!("CARGO_PKG_VERSION"))
}

/// The format of parcels that it reads, by what it said.
pub fn format_in(line: &str) -> Option<u32> {
    line.trim_end().rsplit_once(", parcels ")?.1.parse().ok()
}
