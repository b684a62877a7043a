//! Where things lie: the project folder, its `.tulpar`, and the folder of one run.
//!
//! Only names and creation; what is inside the files is for those who write them.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use tulpar_core::engine::Policy;
use tulpar_core::plan::Plan;
use tulpar_core::provenance::Code;

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("no run is called `{0}`")]
    NoSuchRun(String),
    #[error("`{0}` was simulated: nothing of it ran, and it made nothing")]
    Simulated(String),
    #[error("there is no run here yet")]
    NoRuns,
    #[error("there is no run here yet, only simulated ones; the latest of these is `{0}`")]
    OnlySimulated(String),
    #[error("{} is not a plan of this Tulpar: {source}", .path.display())]
    Plan { path: PathBuf, source: serde_json::Error },
}

/// The folder that holds the workflow; everything of Tulpar's is in `.tulpar` beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
    /// Runs, cache and store.
    own: PathBuf,
    results: PathBuf,
}

impl Project {
    pub fn new(root: &Path) -> Result<Self, FolderError> {
        let root = root.canonicalize().map_err(|source| FolderError::Io {
            doing: "open the folder",
            path: root.to_owned(),
            source,
        })?;
        Ok(Self { own: root.join(".tulpar"), results: root.join("results"), root })
    }

    /// The same workflow with runs, cache and results elsewhere: what is done there changes nothing here.
    pub fn apart(&self, folder: &Path) -> Self {
        Self { root: self.root.clone(), own: folder.to_owned(), results: folder.join("results") }
    }

    /// Tulpar's own folder.
    pub fn own(&self) -> &Path {
        &self.own
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn runs(&self) -> PathBuf {
        self.own.join("runs")
    }

    pub fn cache(&self) -> PathBuf {
        self.own.join("cache")
    }

    pub fn objects(&self) -> PathBuf {
        self.cache().join("objects")
    }

    pub fn store(&self) -> PathBuf {
        self.own.join("store.sqlite")
    }

    /// Remembers which files under `results/` are ours.
    pub fn shown(&self) -> PathBuf {
        self.own.join("shown")
    }

    pub fn results(&self) -> PathBuf {
        self.results.clone()
    }

    /// Makes the folder of a new run: `<workflow>-<n>` with the next free number.
    pub fn new_run(&self, workflow: &str) -> Result<RunFolder, FolderError> {
        let runs = self.runs();
        fs::create_dir_all(&runs).map_err(io_error("create", &runs))?;
        let mut number = self.numbered(workflow)?.last().map_or(1, |last| last + 1);
        loop {
            let name = format!("{workflow}-{number}");
            let path = runs.join(&name);
            match fs::create_dir(&path) {
                Ok(()) => {
                    sync_folder(&runs)?;
                    return Ok(RunFolder { name, path });
                }
                // Another run was started at the same moment.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(io_error("create", &path)(error)),
            }
        }
    }

    /// The runs of a workflow, the oldest first.
    pub fn runs_of(&self, workflow: &str) -> Result<Vec<RunFolder>, FolderError> {
        let numbers = self.numbered(workflow)?.into_iter();
        Ok(numbers.map(|number| self.folder_of(&format!("{workflow}-{number}"))).collect())
    }

    fn numbered(&self, workflow: &str) -> Result<Vec<u64>, FolderError> {
        let mut numbers: Vec<u64> = self
            .run_names()?
            .iter()
            .filter_map(|name| name.strip_prefix(workflow)?.strip_prefix('-')?.parse().ok())
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn run_names(&self) -> Result<Vec<String>, FolderError> {
        let runs = self.runs();
        let entries = match fs::read_dir(&runs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("list", &runs)(error)),
        };
        Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    /// Where the run with this name lies, if there is one.
    pub fn folder_of(&self, name: &str) -> RunFolder {
        RunFolder { name: name.to_owned(), path: self.runs().join(name) }
    }

    /// All runs, the oldest first.
    pub fn all_runs(&self) -> Result<Vec<RunFolder>, FolderError> {
        let mut found: Vec<(std::time::SystemTime, RunFolder)> = self
            .run_names()?
            .into_iter()
            .filter_map(|name| {
                let path = self.runs().join(&name);
                let created = fs::metadata(path.join("plan.json")).ok()?.modified().ok()?;
                Some((created, RunFolder { name, path }))
            })
            .collect();
        found.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
        Ok(found.into_iter().map(|(_, run)| run).collect())
    }

    /// The run of a workflow inside a run: `outer-1/sub/task.1`.
    fn inner_run(&self, name: &str) -> Option<RunFolder> {
        let inside = name.contains("/sub/") && name.split('/').all(|part| !part.is_empty() && part != "..");
        let path = self.runs().join(name);
        (inside && path.join("plan.json").is_file()).then(|| RunFolder { name: name.to_owned(), path })
    }

    /// The same, of a run that was not simulated.
    pub fn real_run(&self, name: Option<&str>) -> Result<RunFolder, FolderError> {
        let run = self.run(name)?;
        if run.is_simulated() { Err(FolderError::Simulated(run.name)) } else { Ok(run) }
    }

    /// The run with this name, or the latest of those that were not simulated.
    pub fn run(&self, name: Option<&str>) -> Result<RunFolder, FolderError> {
        let runs = self.all_runs()?;
        match name {
            None => match runs.iter().rfind(|run| !run.is_simulated()) {
                Some(latest) => Ok(latest.clone()),
                None => {
                    Err(runs.last().map_or(FolderError::NoRuns, |run| FolderError::OnlySimulated(run.name.clone())))
                }
            },
            Some(name) => runs
                .into_iter()
                .find(|run| run.name == name)
                .or_else(|| self.inner_run(name))
                .ok_or_else(|| FolderError::NoSuchRun(name.to_owned())),
        }
    }
}

/// The folder of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    pub name: String,
    pub path: PathBuf,
}

/// What is needed to go on with a run: written once, before the first event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedRun {
    /// The version of Tulpar that made the plan.
    pub version: String,
    /// The workflow's file, relative to the project where it is inside.
    pub workflow_file: String,
    /// The repository of the workflow when the plan was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    pub policy: Policy,
    pub plan: Plan,
}

impl RunFolder {
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    pub fn records(&self) -> PathBuf {
        self.path.join("records.jsonl")
    }

    /// What is seen of attempts while they run, and of those that wait: see `live`.
    pub fn samples(&self) -> PathBuf {
        self.path.join("samples.jsonl")
    }

    pub fn attempts(&self) -> PathBuf {
        self.path.join("attempts")
    }

    pub fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// Sandboxes shall be made in this directory, which all nodes see, instead of beside the journal.
    pub fn put_sandboxes_in(&self, scratch: &Path) -> Result<(), FolderError> {
        let there = scratch.join(&self.name);
        fs::create_dir_all(&there).map_err(io_error("create", &there))?;
        let link = self.attempts();
        std::os::unix::fs::symlink(&there, &link).map_err(io_error("create", &link))
    }

    /// What other processes ask of the driver: one job name a line, or `*` for the whole run.
    pub fn cancellations(&self) -> PathBuf {
        self.path.join("cancel")
    }

    /// What the planner decided, when there was something to plan.
    pub fn decisions(&self) -> PathBuf {
        self.path.join("decisions.json")
    }

    /// What a simulation came to: only simulated runs have it.
    pub fn simulation(&self) -> PathBuf {
        self.path.join("simulation.json")
    }

    /// Nothing of it really ran.
    pub fn is_simulated(&self) -> bool {
        self.simulation().is_file()
    }

    /// What was expected of the run before it started, when someone worked that out.
    pub fn forecast(&self) -> PathBuf {
        self.path.join("forecast.json")
    }

    pub fn plan(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    pub fn save(&self, saved: &SavedRun) -> Result<(), FolderError> {
        let path = self.plan();
        let temporary = self.path.join("plan.json.new");
        let file = File::create(&temporary).map_err(io_error("create", &temporary))?;
        let mut writer = BufWriter::new(file);
        serde_json::to_writer(&mut writer, saved).map_err(|error| io_error("write", &temporary)(error.into()))?;
        let file = writer.into_inner().map_err(|error| io_error("write", &temporary)(error.into_error()))?;
        file.sync_all().map_err(io_error("write", &temporary))?;
        fs::rename(&temporary, &path).map_err(io_error("create", &path))?;
        sync_folder(&self.path)
    }

    pub fn load(&self) -> Result<SavedRun, FolderError> {
        let path = self.plan();
        let file = File::open(&path).map_err(io_error("open", &path))?;
        serde_json::from_reader(BufReader::new(file)).map_err(|source| FolderError::Plan { path, source })
    }

    /// The runs of workflows that are tasks of this one, the oldest first.
    pub fn inner_runs(&self) -> Vec<RunFolder> {
        let mut found: Vec<(std::time::SystemTime, RunFolder)> = fs::read_dir(self.path.join("sub"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = format!("{}/sub/{}", self.name, entry.file_name().into_string().ok()?);
                let created = fs::metadata(entry.path().join("plan.json")).ok()?.modified().ok()?;
                Some((created, RunFolder { name, path: entry.path() }))
            })
            .collect();
        found.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
        found.into_iter().map(|(_, run)| run).collect()
    }

    /// Asks the driver, if one lives, to cancel these jobs; `*` is the run.
    pub fn ask_to_cancel(&self, jobs: &[String]) -> Result<(), FolderError> {
        let path = self.cancellations();
        let mut lines = jobs.join("\n");
        lines.push('\n');
        let mut file = File::options().append(true).create(true).open(&path).map_err(io_error("open", &path))?;
        file.write_all(lines.as_bytes()).map_err(io_error("write", &path))
    }
}

fn sync_folder(path: &Path) -> Result<(), FolderError> {
    let result = File::open(path).and_then(|folder| folder.sync_all());
    result.map_err(io_error("make durable", path))
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError + use<> {
    let path = path.to_owned();
    move |source| FolderError::Io { doing, path, source }
}
