//! Does a file still follow from what is recorded?
//!
//! Its content, the content of every input above it that the cache still has, the user's files and the environments are
//! read again and compared with the recorded digests. Nothing is run: that is an audit.

use crate::Failure;
use crate::lineage;
use crate::messages::Messages;
use crate::replay::{self, Replayed};
use crate::subworkflow;
use crate::view::count;
use crate::{ancestry, projection};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{InputFile, InputFiles, Source};
use tulpar_core::workflow::Task;
use tulpar_core::workflow::planned::Work;
use tulpar_exec::cache::object_path;
use tulpar_exec::environments::{conda_folder, packages_digest};
use tulpar_exec::folder::Project;
use tulpar_store::{Producer, Store, Wanted};

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything that could be checked agrees.
    Agrees,
    Differs,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The file that was asked about.
    Result,
    /// A result of another task, in the cache.
    Intermediate,
    /// A file of the user's.
    File,
    /// The copy of it that was kept when the run was planned.
    KeptCopy,
    /// A container image or a Python environment.
    Environment,
    /// A task above the file.
    Task,
}

#[derive(Serialize)]
pub struct VerifyView {
    pub file: PathBuf,
    pub verdict: Verdict,
    pub digest: Digest,
    pub task: String,
    pub run: String,
    /// Tasks above the file, its own included.
    pub tasks: usize,
    /// Contents that were read and agree.
    pub agree: usize,
    pub differences: Vec<Note>,
    /// Results of tasks above the file, of which these are no longer in the cache.
    pub intermediates: usize,
    pub gone_from_cache: Vec<Note>,
    /// Everything else that could not be checked, and why.
    pub cannot_be_checked: Vec<Note>,
    /// A later run that made something else under this path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<String>,
}

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    pub kind: Kind,
    pub path: String,
    /// A task that uses it.
    pub task: String,
    pub says: String,
}

/// One content to be read again.
pub struct Check {
    pub kind: Kind,
    /// As people know it.
    pub path: String,
    pub at: PathBuf,
    pub digest: Digest,
    pub job: JobId,
}

pub enum Found {
    Same,
    Other(Digest),
    Gone,
    Unreadable(std::io::Error),
}

/// The run that tells where the file came from, and what it says of it.
pub struct Origin {
    pub producer: Producer,
    /// The content that it made, when the file holds another one.
    pub made: Option<Digest>,
    pub later: Option<String>,
}

/// A file under `results/` is what was made under its path; any other file is known by its content. The latest run with
/// the content tells: if it reused the file, its plan names what the file follows from now. A run that contains another one
/// tells more than that: it goes up to the user's files.
fn origin(project: &Project, store: &Store, digest: Digest, shown: Option<&str>) -> Result<Option<Origin>, Failure> {
    let is_outer = |run: &str| !run.contains("/sub/");
    let latest =
        |found: Vec<Producer>| found.into_iter().max_by_key(|producer| (is_outer(&producer.run), producer.started));
    let made = |producer: &Producer| Digest::parse(&producer.output.digest);
    let holds = |producer: &Producer| made(producer) == Some(digest);
    let here = match shown {
        Some(shown) => lineage::makers_of_path(project, store, shown)?,
        None => Vec::new(),
    };
    if here.is_empty() {
        let producer = latest(lineage::really(project, store, &Wanted::Digest(digest))?);
        return Ok(producer.map(|producer| Origin { producer, made: None, later: None }));
    }
    let (same, other): (Vec<Producer>, Vec<Producer>) = here.into_iter().partition(holds);
    let other = latest(other);
    Ok(match (latest(same), other) {
        (Some(producer), other) => {
            let later = other.filter(|other| other.started > producer.started).map(|other| other.run);
            Some(Origin { producer, made: None, later })
        }
        (None, Some(producer)) => Some(Origin { made: made(&producer), producer, later: None }),
        (None, None) => None,
    })
}

/// Every task above a result, once, and what is to be compared.
pub struct Walk<'a> {
    pub project: &'a Project,
    pub replayed: &'a Replayed,
    pub jobs: HashSet<JobId>,
    pub seen: HashSet<(Kind, String, Digest)>,
    pub checks: Vec<Check>,
    pub unknown: Vec<Note>,
}

impl<'a> Walk<'a> {
    pub fn new(project: &'a Project, replayed: &'a Replayed) -> Self {
        let (jobs, seen) = (HashSet::new(), HashSet::new());
        Self { project, replayed, jobs, seen, checks: Vec::new(), unknown: Vec::new() }
    }

    pub fn climb(&mut self, from: JobId) -> Result<(), Failure> {
        let engine = &self.replayed.engine;
        // Thousands of tasks may read the same list of data files.
        let shared: HashSet<*const InputFile> = engine.plan().files.iter().map(|files| files.as_ptr()).collect();
        let (mut lists, mut software, mut originals) = (HashSet::new(), HashSet::new(), None);
        let mut left = vec![from];
        self.jobs.insert(from);
        while let Some(job) = left.pop() {
            let task = engine.plan().task(engine.graph().set_of(job));
            if subworkflow::is_workflow(task) {
                self.cannot(
                    Kind::Task,
                    task.name.clone(),
                    job,
                    "it is a workflow: the tasks inside it are not checked",
                );
            }
            let first = AttemptId { job, n: 1 };
            let spec = engine
                .spec_context()
                .spec(first, 0, engine.request(job), "", Vec::new())
                .map_err(|error| Failure::Bug(format!("a job that ran has no command: {error}")))?;
            for input in &spec.inputs {
                let list = input.files.as_ptr();
                if !shared.contains(&list) || lists.insert(list) {
                    input.files.iter().for_each(|file| self.note(job, file));
                }
                if input.files.iter().any(|file| matches!(&file.source, Source::Path(from) if !self.is_users(from))) {
                    let says = "the run around this one gave it: what is above it there is not checked";
                    self.cannot(Kind::Task, input.name.clone(), job, says);
                }
                let makers = ancestry::makers(engine, job, input);
                if makers.is_empty() && is_made(input) {
                    let originals = originals.get_or_insert_with(|| ancestry::originals(engine.plan()));
                    self.note_staged(job, input, originals);
                }
                left.extend(makers.into_iter().filter(|maker| self.jobs.insert(*maker)));
            }
            self.note_software(job, task, &mut software);
        }
        Ok(())
    }

    /// A workflow inside a run takes files from the folder of its task, which is gone when the task has ended.
    pub fn is_users(&self, from: &str) -> bool {
        !self.project.root().join(from).starts_with(self.project.runs())
    }

    pub fn note(&mut self, job: JobId, file: &InputFile) {
        let InputFile { path, digest, .. } = file;
        let object = object_path(&self.project.cache(), digest);
        match &file.source {
            Source::Path(from) if self.is_users(from) => {
                self.check(Kind::File, from, self.project.root().join(from), *digest, job);
                // Only small files are kept: that there is no copy says nothing.
                if object.exists() {
                    self.check(Kind::KeptCopy, from, object, *digest, job);
                }
            }
            Source::Object | Source::Remote(_) | Source::Path(_) => {
                self.check(Kind::Intermediate, path, object, *digest, job);
            }
            // The plan and the journal hold these words themselves.
            Source::Text(_) => {}
        }
    }

    /// Of data that the run copied to another place, the user's files.
    pub fn note_staged(&mut self, job: JobId, input: &InputFiles, originals: &HashMap<Digest, &InputFile>) {
        let mut is_unknown = false;
        for file in input.files.iter() {
            match originals.get(&file.digest) {
                Some(original) => self.note(job, original),
                None => is_unknown = true,
            }
        }
        if is_unknown {
            self.cannot(Kind::Task, input.name.clone(), job, "the task that made this input is not recorded");
        }
    }

    pub fn note_software(&mut self, job: JobId, task: &Task, known: &mut HashSet<String>) {
        let environment = &task.settings.environment;
        let recorded = &self.replayed.engine.plan().environments;
        let root = self.project.root();
        let images = environment.container.iter().map(|name| (name, Some(root.join(name)), true));
        let folders = environment.venv.iter().map(|name| (name, Some(root.join(name)), false));
        let condas = environment.conda.iter().filter(|name| !known.contains(*name));
        let condas: Vec<_> = condas.map(|name| (name, conda_folder(root, name), false)).collect();
        for (name, at, is_image) in images.chain(folders).chain(condas) {
            if !known.insert(name.clone()) {
                continue;
            }
            match recorded.get(name) {
                None => {
                    let says = "only its name is recorded: what it holds is not known to be the same";
                    self.cannot(Kind::Environment, name.clone(), job, says);
                }
                Some(digest) => {
                    let kind = if is_image { Kind::File } else { Kind::Environment };
                    match at {
                        Some(at) => self.check(kind, name, at, *digest, job),
                        None => {
                            let says = "conda does not know an environment of this name here";
                            self.cannot(kind, name.clone(), job, says);
                        }
                    }
                }
            }
        }
        if let Some(Work::Cluster(cluster)) = task.run.planned().map(|planned| &planned.work) {
            cluster.members.iter().for_each(|member| self.note_software(job, &member.task, known));
        }
    }

    pub fn check(&mut self, kind: Kind, path: &str, at: PathBuf, digest: Digest, job: JobId) {
        // One object may be an input under several names.
        let name = if matches!(kind, Kind::Intermediate) { "" } else { path };
        if self.seen.insert((kind, name.to_owned(), digest)) {
            self.checks.push(Check { kind, path: path.to_owned(), at, digest, job });
        }
    }

    pub fn cannot(&mut self, kind: Kind, path: String, job: JobId, says: &str) {
        self.unknown.push(Note { kind, path, task: self.replayed.name(job), says: says.to_owned() });
    }

    pub fn compare(&self, view: &mut VerifyView, messages: &dyn Messages) {
        view.intermediates = self.checks.iter().filter(|check| check.kind == Kind::Intermediate).count();
        for (check, found) in self.checks.iter().zip(read_again(&self.checks, messages)) {
            let (kind, path) = (check.kind, check.path.clone());
            let note = |says: String| Note { kind, path, task: self.replayed.name(check.job), says };
            let then = check.digest.short();
            match (found, kind) {
                (Found::Same, _) => view.agree += 1,
                (Found::Other(now), Kind::Intermediate | Kind::KeptCopy) => view.differences.push(note(format!(
                    "its copy in the cache is damaged: {} holds {}, not {then}",
                    check.at.display(),
                    now.short()
                ))),
                (Found::Other(now), _) => {
                    view.differences
                        .push(note(format!("changed since: it holds {} now, and held {then}", now.short())));
                }
                (Found::Gone, Kind::Intermediate) => {
                    view.gone_from_cache.push(note("it is no longer in the cache".to_owned()));
                }
                (Found::Gone, _) => view.differences.push(note(format!("it is gone; it held {then}"))),
                (Found::Unreadable(error), _) => {
                    view.cannot_be_checked.push(note(format!("it cannot be read: {error}")));
                }
            }
        }
    }
}

/// Some files of the input are results of tasks.
fn is_made(input: &InputFiles) -> bool {
    input.files.iter().any(|file| matches!(file.source, Source::Object | Source::Remote(_)))
}

/// How often long work says how far it is.
const SAID_EVERY: Duration = Duration::from_secs(5);

/// Reads every content once more, with a few threads.
fn read_again(checks: &[Check], messages: &dyn Messages) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let said = Mutex::new(Instant::now());
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(1, 8).min(checks.len().max(1));
    let work = || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(check) = checks.get(index) else { return found };
            found.push((index, look(check)));
            if let Ok(mut said) = said.try_lock()
                && said.elapsed() >= SAID_EVERY
            {
                *said = Instant::now();
                messages.note(&format!("compared {} of {}", index + 1, count(checks.len(), "file")));
            }
        }
    };
    let mut all: Vec<(usize, Found)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("reading does not panic")).collect()
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, found)| found).collect()
}

fn look(check: &Check) -> Found {
    let found = match check.kind {
        // The packages, and the digests that were recorded of their files, as for the cache key.
        Kind::Environment => packages_digest(&check.at).ok_or_else(|| std::io::ErrorKind::NotFound.into()),
        _ => {
            File::open(&check.at).and_then(|mut file| tulpar_exec::data::hash_file(&mut file)).map(|(digest, _)| digest)
        }
    };
    match found {
        Ok(digest) if digest == check.digest => Found::Same,
        Ok(digest) => Found::Other(digest),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Found::Gone,
        Err(error) => Found::Unreadable(error),
    }
}

/// Reads everything again that a file followed from.
pub fn verify(project: &Project, file: &Path, messages: &dyn Messages) -> Result<VerifyView, Failure> {
    let path = lineage::place(project, file)?;
    let Some((digest, _)) = lineage::content(&path)? else {
        return Err(Failure::usage_with(
            format!("there is no {}", file.display()),
            "`tulpar outputs RUN --to DIR` writes the results of any run, as far as the cache still has them",
        ));
    };
    let store = projection::open(project)?;
    let shown = path.strip_prefix(project.results()).ok().map(|path| path.to_string_lossy().into_owned());
    let Some(origin) = origin(project, &store, digest, shown.as_deref())? else {
        return Err(Failure::usage_with(
            format!("no run of this folder made {}", file.display()),
            "`tulpar lineage FILE` says whether it is data of a run; -C DIR says which folder is meant",
        ));
    };
    let replayed = replay::open(messages, project, Some(&origin.producer.run))?;
    let job = origin.producer.output.job;
    let mut walk = Walk::new(project, &replayed);
    walk.climb(job)?;
    let mut view = VerifyView {
        file: file.to_owned(),
        verdict: Verdict::Agrees,
        digest,
        task: replayed.name(job),
        run: origin.producer.run.clone(),
        tasks: walk.jobs.len(),
        agree: 0,
        intermediates: 0,
        gone_from_cache: Vec::new(),
        differences: Vec::new(),
        cannot_be_checked: std::mem::take(&mut walk.unknown),
        later: origin.later,
    };
    match origin.made {
        None => view.agree += 1,
        Some(made) => view.differences.push(Note {
            kind: Kind::Result,
            path: file.display().to_string(),
            task: view.task.clone(),
            says: format!("it holds {} now, and {} made {}", digest.short(), view.run, made.short()),
        }),
    }
    walk.compare(&mut view, messages);
    for notes in [&mut view.differences, &mut view.gone_from_cache, &mut view.cannot_be_checked] {
        notes.sort();
    }
    if !view.differences.is_empty() {
        view.verdict = Verdict::Differs;
    }
    Ok(view)
}
