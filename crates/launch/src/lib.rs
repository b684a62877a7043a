//! Runs attempts: sandbox, process, watching, measuring, outputs, record.
//!
//! One [`Launcher`] a driver. It takes [`JobSpec`]s, says [`Notice`]s, and leaves for every attempt one line in
//! the records and its outputs in the content-addressed store, all of them or none. It knows no plan, no
//! engine, no journal and no retry: what it is told to run it runs once.
//!
//! A few threads do everything: a small pool prepares, starts and finishes attempts; one thread waits for exits,
//! deadlines and samples; one makes outputs durable. Linux 5.4 or newer (pidfd).

mod capture;
mod checkpoint;
mod chirp;
mod collect;
mod command;
mod commit;
mod container;
mod environment;
mod finish;
mod gpu;
mod guard;
mod inputs;
mod launcher;
mod marker;
pub mod objects;
mod originals;
pub mod pilot;
mod prepare;
mod process;
mod queue;
mod readonly;
mod records;
mod redact;
mod refusal;
mod sample;
mod sandbox;
mod script;
mod shares;
mod sharing;
mod shown;
mod signals;
mod spawn;
mod spoiled;
mod stamps;
mod table;
mod told;
mod watch;
mod worker;

pub use container::service::answers as service_answers;
pub use environment::travels;
pub use guard::{guard_main, kill_leftovers};
pub use launcher::Launcher;
pub use originals::READ_AT_REUSE;
pub use redact::Redaction;
pub use sandbox::remove_from_nodes;
pub use script::{script_main, staging_secrets, uses_containers};
pub use signals::StopSignals;
pub use spoiled::Spoiled;
pub use stamps::{Stamp, StatCache};
pub use worker::{WorkerError, worker_main};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tulpar_core::ids::{AttemptId, JobId};
#[cfg(doc)]
use tulpar_core::job::JobSpec;
use tulpar_core::job::Report;
use tulpar_core::live::LiveLine;

/// The folder of an attempt below the folder of all: `stdout`, `stderr` and the sandbox `work/`.
pub fn attempt_folder(attempts: &std::path::Path, attempt: AttemptId) -> PathBuf {
    sandbox::folder_of(attempts, attempt)
}

/// The folder for the attempts of what a job runs that is more than a command.
pub fn inside_folder(attempts: &std::path::Path, job: JobId) -> PathBuf {
    attempts.join(sandbox::INSIDE).join((job.0 / 1000).to_string()).join(job.0.to_string())
}

/// Where things lie. Absolute, or relative to the current folder at the start.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Of the workflow: relative sources, virtual environments and images are meant from here.
    pub project: PathBuf,
    /// One folder an attempt, see `sandbox`.
    pub attempts: PathBuf,
    /// The content-addressed store: `ab/cdef…`.
    pub objects: PathBuf,
    /// The file that records are appended to.
    pub records: PathBuf,
    /// One folder a job, carried between its attempts.
    pub checkpoints: PathBuf,
}

/// Looks up the value of a secret by its name.
pub type Secrets = dyn Fn(&str) -> Option<String> + Send + Sync;

pub struct Options {
    /// Names the run among all runs on this machine, now and after a crash: best with its folder.
    pub run: String,
    pub sample_every: Duration,
    /// Of the pool that prepares, starts and finishes. The tasks' own cores are not counted.
    pub threads: usize,
    pub keep_sandboxes: Keep,
    pub secrets: Box<Secrets>,
    /// Arguments with which this very program runs [`guard_main`]; `None` goes without a guard.
    pub guard: Option<Vec<String>>,
    /// Arguments with which this very program runs [`script_main`]; without, jobs that are more than a command are refused.
    pub script: Option<Vec<String>>,
    /// Words before every command, outside its container: what starts one process of a task on each of its nodes.
    pub around: Vec<String>,
    /// Inside a job: processes carry the mark of that job and write into its streams.
    pub inside: bool,
    /// Nodes that are played with a folder of their own, by name: their attempts run there, and what they fetch once stays there.
    pub node_folders: BTreeMap<String, PathBuf>,
    /// What is recorded of reads and writes is moved here, for a log of all tasks; without, each task has its log.
    pub recordings: Option<PathBuf>,
    /// It runs one attempt: no other one wants copies of inputs.
    pub alone: bool,
    /// Inputs were sent to this place for one attempt, which may change them.
    pub arrived: bool,
    /// Tasks may get a link to the user's own file where there is no room for a copy; without, they are refused.
    pub link_large: bool,
    /// Outputs survive a power cut before they are reported. A worker goes without: whoever gets them makes them durable.
    pub durable: bool,
    /// Gets the records, each a line, before the end of its attempt is told; without, they go into the file.
    pub records: Option<Box<RecordTaker>>,
    /// Gets what is seen of running attempts, every now and then, less often the longer they run. It must not wait.
    pub looks: Option<Box<LookTaker>>,
}

/// Takes the record of an attempt, a whole line.
pub type RecordTaker = dyn Fn(AttemptId, Vec<u8>) + Send + Sync;

/// Takes what one look at all running attempts saw.
pub type LookTaker = dyn Fn(Vec<LiveLine>) + Send + Sync;

impl Options {
    pub fn new(run: impl Into<String>) -> Self {
        Self {
            run: run.into(),
            sample_every: Duration::from_secs(1),
            threads: std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8),
            keep_sandboxes: Keep::Failed,
            secrets: Box::new(|_| None),
            guard: None,
            script: None,
            around: Vec::new(),
            inside: false,
            node_folders: BTreeMap::new(),
            recordings: None,
            alone: false,
            arrived: false,
            link_large: false,
            durable: true,
            records: None,
            looks: None,
        }
    }
}

/// Whose sandboxes stay after the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Of attempts that failed by themselves: somebody will want to look.
    Failed,
    Always,
    Never,
}

/// What a launcher says about an attempt. `Started` is missing when it never started.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    Started(AttemptId),
    Ended(AttemptId, Box<Report>),
}
