//! A job that is more than one command: files that are pulled and pushed, several tasks in one job, work on files alone.
//!
//! It runs in a process of its own inside the job's sandbox, on this machine or on a worker, so that to the launcher it
//! is one command like any other. It reads `script.json` and leaves `result.json`. Every task in it is run by a launcher
//! of its own, whose processes carry the mark of the job. It knows no plan and no retry of jobs.

mod files;
mod images;
mod logins;
mod members;
mod node;
mod operation;
mod register;

use crate::capture::{self, Capture};
use crate::collect::Found;
use crate::objects::Objects;
use crate::signals::StopSignals;
use crate::{Keep, Secrets};
use files::Files;
pub(crate) use logins::names as staging_names;
pub use logins::staging_secrets;
pub(crate) use node::NODE_FOLDER;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tulpar_core::job::{Ending, IoRecord, JobSpec, OutputFile, Script, ScriptReport, ScriptWork};

const TOLD: &str = "script.json";
const RESULT: &str = "result.json";

/// What the script is told.
#[derive(Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) spec: JobSpec,
    pub(crate) project: PathBuf,
    pub(crate) objects: PathBuf,
    pub(crate) checkpoints: PathBuf,
    /// Where its tasks get their sandboxes: the same for every attempt of the job.
    pub(crate) attempts: PathBuf,
    /// The folder of the node that it runs on, where that node is played with one.
    #[serde(default)]
    pub(crate) node: Option<PathBuf>,
    pub(crate) run: String,
    pub(crate) keep: KeepSandboxes,
    #[serde(default)]
    pub(crate) link_large: bool,
}

/// [`Keep`], written down.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeepSandboxes {
    Failed,
    Always,
    Never,
}

impl From<Keep> for KeepSandboxes {
    fn from(keep: Keep) -> Self {
        match keep {
            Keep::Failed => Self::Failed,
            Keep::Always => Self::Always,
            Keep::Never => Self::Never,
        }
    }
}

impl From<KeepSandboxes> for Keep {
    fn from(keep: KeepSandboxes) -> Self {
        match keep {
            KeepSandboxes::Failed => Self::Failed,
            KeepSandboxes::Always => Self::Always,
            KeepSandboxes::Never => Self::Never,
        }
    }
}

/// What it leaves for the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ScriptResult {
    pub(crate) ending: Ending,
    pub(crate) outputs: Vec<OutputFile>,
    /// What its command said, as a trial of a search.
    #[serde(default)]
    pub(crate) told: Option<Box<tulpar_core::job::Told>>,
    pub(crate) report: ScriptReport,
    /// What was recorded of the reads and writes of all its tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) io: Option<IoRecord>,
    pub(crate) input_files: u64,
    pub(crate) input_bytes: u64,
}

#[derive(Debug, thiserror::Error)]
enum ScriptError {
    #[error("{0}")]
    Moving(String),
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
    /// A task of it did not end well; what it said is in the streams already.
    #[error("{name} did not end well")]
    Member { name: String, ending: Ending },
}

impl ScriptError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |error| Self::Io { what, error }
    }
}

/// Puts the script into the sandbox. Its words are this very program's with `arguments`.
pub(crate) fn write(work: &Path, told: &Told) -> io::Result<()> {
    std::fs::write(work.join(TOLD), serde_json::to_vec(told).expect("a script is plain data"))
}

/// Whether something of a job runs in a container that the job itself starts.
pub fn uses_containers(spec: &JobSpec) -> bool {
    let members = spec.script.iter().flat_map(|script| match &script.work {
        ScriptWork::Cluster { cluster, .. } => &cluster.members[..],
        _ => &[],
    });
    spec.container.is_some() || members.into_iter().any(|member| member.task.settings.environment.container.is_some())
}

/// Whether a task of it asks for a record of its reads and writes.
fn records_io(spec: &JobSpec, script: &Script) -> bool {
    match &script.work {
        ScriptWork::Command => spec.io.is_some(),
        ScriptWork::Cluster { cluster, .. } => cluster.members.iter().any(|member| member.task.settings.io.is_some()),
        ScriptWork::Operation(_) => false,
    }
}

pub(crate) fn result(work: &Path) -> Option<ScriptResult> {
    serde_json::from_slice(&std::fs::read(work.join(RESULT)).ok()?).ok()
}

/// The process of a script: everything is in the current folder. Gives its exit code.
#[allow(clippy::print_stderr, reason = "its stderr is the log of the job")]
pub fn script_main(secrets: Box<Secrets>) -> i32 {
    let stop = StopSignals::block();
    let told: Told = match std::fs::read(TOLD)
        .map_err(|error| error.to_string())
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()))
    {
        Ok(told) => told,
        Err(problem) => {
            eprintln!("{TOLD}: {problem}");
            return 2;
        }
    };
    let stopped = Arc::new(AtomicBool::new(false));
    let result = match Running::new(told, stopped, secrets) {
        Ok(running) => running.run(stop),
        Err(error) => {
            eprintln!("{error}");
            return 2;
        }
    };
    let code = match &result.ending {
        Ending::Exit(code) => *code,
        _ => 1,
    };
    let bytes = serde_json::to_vec(&result).expect("a result is plain data");
    let part = format!("{RESULT}.part");
    if let Err(error) = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, RESULT)) {
        eprintln!("{RESULT}: {error}");
        return 2;
    }
    code
}

/// One script under way.
struct Running {
    told: Told,
    script: Script,
    work: PathBuf,
    files: Files,
    stopped: Arc<AtomicBool>,
    secrets: Arc<Secrets>,
    report: ScriptReport,
    capture: Option<Capture>,
    /// The numbers that its command said, as a trial of a search.
    said: Option<Box<tulpar_core::job::Told>>,
    pulled: (u64, u64),
}

impl Running {
    fn new(mut told: Told, stopped: Arc<AtomicBool>, secrets: Box<Secrets>) -> Result<Self, ScriptError> {
        let script = *told.spec.script.take().expect("only jobs with a script come here");
        let work = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let secrets: Arc<Secrets> = Arc::from(secrets);
        let files = Files::new(&work, &told, script.threads, stopped.clone(), &secrets)?;
        let capture = records_io(&told.spec, &script).then(|| capture::together(&work));
        let report = ScriptReport::default();
        Ok(Self { told, script, work, files, stopped, secrets, report, capture, said: None, pulled: (0, 0) })
    }

    fn run(mut self, stop: StopSignals) -> ScriptResult {
        let done = self.perform(stop);
        let (ending, outputs) = match done {
            Ok(outputs) => (Ending::Exit(0), outputs),
            Err(ScriptError::Member { ending, .. }) => (ending, Vec::new()),
            Err(error) => {
                say(&error.to_string());
                (Ending::Refused(error.to_string()), Vec::new())
            }
        };
        self.report.transfers = std::mem::take(&mut self.files.done);
        // A job that ended well leaves no folder behind: a hundred thousand of them would stay for nothing.
        if ending.is_success() && !matches!(self.told.keep, KeepSandboxes::Always) {
            crate::sandbox::remove_from_nodes(&self.told.attempts);
            crate::sandbox::remove_tree(&self.told.attempts);
        }
        // Beside what the job says, where the log of a job that is one command is.
        let io = self.capture.map(|capture| capture::finish(capture, &self.told.spec.command, Path::new("..")));
        let (input_files, input_bytes) = self.pulled;
        ScriptResult { ending, outputs, told: self.said, report: self.report, io, input_files, input_bytes }
    }

    fn perform(&mut self, stop: StopSignals) -> Result<Vec<OutputFile>, ScriptError> {
        match self.script.work.clone() {
            ScriptWork::Operation(operation) => {
                let stopped = self.stopped.clone();
                stop.then(move || stopped.store(true, Ordering::Relaxed));
                self.operate(&operation)
            }
            ScriptWork::Command => {
                self.pull_inputs()?;
                let spec = self.told.spec.clone();
                let outputs = self.run_command(spec, stop)?;
                self.push(&outputs)?;
                Ok(outputs)
            }
            ScriptWork::Cluster { cluster, params } => {
                self.pull_inputs()?;
                let outputs = self.run_cluster(&cluster, &params, stop)?;
                let needed = outputs.partition_point(|output| output.output < cluster.needed);
                self.push(&outputs[..needed])?;
                Ok(outputs)
            }
        }
    }

    /// Everything that is at a staging site comes into the pool, once whoever needs it, and is found there from now on.
    fn pull_inputs(&mut self) -> Result<(), ScriptError> {
        let mut inputs = std::mem::take(&mut self.told.spec.inputs);
        for input in &mut inputs {
            let mut files = input.files.to_vec();
            self.files.want(&mut files);
            input.files = files.into();
        }
        let mut kept = (0, 0);
        for image in &self.script.images {
            let (file, pulled) = self.files.bring_image(image.file.clone(), image.once)?;
            self.files.images.insert(image.name.clone(), file);
            kept = (kept.0 + pulled.0, kept.1 + pulled.1);
        }
        self.pulled = self.files.pull()?;
        self.pulled = (self.pulled.0 + kept.0, self.pulled.1 + kept.1);
        self.told.spec.inputs = inputs;
        Ok(())
    }

    fn push(&mut self, outputs: &[OutputFile]) -> Result<(), ScriptError> {
        let Some(below) = self.script.push.clone() else { return Ok(()) };
        self.files.push(&below, outputs)
    }

    /// Keeps files that came from elsewhere as outputs of the job.
    fn keep(&self, mut found: Vec<Found>) -> Result<Vec<OutputFile>, ScriptError> {
        let objects =
            Objects::open(&self.told.objects, true).map_err(ScriptError::io("opening the store of results"))?;
        objects.stage(&mut found).map_err(|error| ScriptError::Moving(error.to_string()))?;
        for result in objects.commit(&[&found]) {
            result.map_err(|error| ScriptError::Moving(error.to_string()))?;
        }
        Ok(found.into_iter().map(|found| found.file).collect())
    }
}

#[allow(clippy::print_stderr, reason = "its stderr is the log of the job")]
fn say(text: &str) {
    eprintln!("{text}");
}
