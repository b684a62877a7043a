//! What the planner puts into a workflow that a user never writes: values that are fixed already, tasks that share a
//! job, and work on files. A planned workflow is still a workflow, so the engine runs it like any other.

use super::{FileSource, Run, Task, Value};
use crate::job::InputFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    pub work: Work,
    /// What scatter variables stand for; `name.index` too, where the variable is a file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Value>,
    /// Of inputs by position: where files come from beside their first source, in order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub further: BTreeMap<u32, Vec<FileSource>>,
    /// Where its inputs are pulled from and its outputs pushed to; `None`: files are linked where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staging: Option<Staging>,
    /// Container images that are sent along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<SentImage>,
}

impl Planned {
    pub fn new(work: Work) -> Self {
        Self { work, values: BTreeMap::new(), further: BTreeMap::new(), staging: None, images: Vec::new() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// One task, with what it runs.
    Task(Box<Run>),
    Cluster(Cluster),
    Operation(Operation),
}

/// The directory of a run at a staging site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staging {
    pub url: String,
    pub threads: u32,
    /// The name of that site.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub site: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentImage {
    /// What tasks call it.
    pub name: String,
    pub file: InputFile,
    /// Kept on the node for the jobs that follow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

/// Tasks that one job runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// Each after those it needs.
    pub members: Vec<Member>,
    /// For each output of the job, the member and its output.
    pub exports: Vec<(u32, u32)>,
    /// So many of them are needed elsewhere; the others are kept only to be remembered.
    pub needed: u32,
    /// Members that do not need each other may run at once, this many milli-cores together; 0: one after another.
    #[serde(default)]
    pub milli_cpus: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// As it stands in the plan without clusters; where its files come from is said below instead.
    pub task: Task,
    pub values: BTreeMap<String, Value>,
    pub inputs: Vec<MemberInput>,
    /// Members that must have ended well first, beside those that make its inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberInput {
    pub name: String,
    pub from: Vec<MemberSource>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberSource {
    /// An input of the job, by position.
    Input(u32),
    /// What an earlier member made.
    Made { member: u32, output: u32 },
}

/// Work on files that needs no program of the user's. Files are the job's inputs unless said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    MakeDirectory {
        url: String,
    },
    /// Copies the inputs to below the staging directory; the name of an input is the folder that its files go into.
    StageIn {
        below: String,
    },
    /// Pulls the inputs and leaves them as its outputs, one output an input; copies them to a place elsewhere too.
    StageOut {
        to: Option<String>,
    },
    /// The same from one staging site to another: its outputs are pushed like those of a task.
    Transfer,
    /// Enters the inputs into the replica catalogue of the project.
    Register {
        site: String,
    },
    /// Removes the inputs from where they are staged.
    Remove,
    RemoveDirectory {
        url: String,
    },
}

/// Where a file that exists before the run lies below a staging directory.
pub fn staged_data(data: usize, path: &str) -> String {
    format!("in/{data}/{}", escape(path))
}

/// Where a result lies below a staging directory.
pub fn staged_result(job: &str, output: u32, path: &str) -> String {
    format!("{}/{output}/{}", job_folder(job), escape(path))
}

/// A path as part of a URL: what has a meaning there is written as `%xx`.
pub fn escape(path: &str) -> String {
    use std::fmt::Write;
    let mut escaped = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~' | b'+' | b'=' | b',' | b'@')
        {
            escaped.push(byte as char);
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// The folder of a job's results below a staging directory: its name, as far as every server and file system takes it.
pub fn job_folder(job: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if job.chars().all(plain) && job.len() <= 100 {
        return format!("out/{job}");
    }
    let kept: String = job.chars().map(|letter| if plain(letter) { letter } else { '_' }).take(60).collect();
    format!("out/{kept}-{}", &crate::ids::Digest::of(job.as_bytes()).hex()[..12])
}
