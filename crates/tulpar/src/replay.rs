//! A run as its journal tells it: the engine with every event applied, and whether a driver lives.
//!
//! Reads without any lock, while the run goes on or after it ended. It warns of a damaged journal, and computes nothing
//! that the engine knows.

use crate::failure::Failure;
use crate::messages::{Messages, Silent};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tulpar_core::diagnostic::did_you_mean;
use tulpar_core::engine::Engine;
use tulpar_core::event::{Event, Outcome};
use tulpar_core::ids::{JobId, SetId};
use tulpar_core::provenance::Provenance;
use tulpar_core::units::Timestamp;
use tulpar_exec::folder::{Project, RunFolder, SavedRun};
use tulpar_exec::journal::{self, Entry, Follow};
use tulpar_store::RunAnswer;

/// How a run stands, seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Planned; no event was written yet.
    Starting,
    Running,
    /// Its driver went away without a goodbye.
    Stopped,
    Done,
    Failed,
    Cancelled,
    Interrupted,
}

impl Standing {
    pub fn word(self) -> &'static str {
        match self {
            Standing::Starting => "not started",
            Standing::Running => "running",
            Standing::Stopped => "stopped",
            Standing::Done => "done",
            Standing::Failed => "failed",
            Standing::Cancelled => "cancelled",
            Standing::Interrupted => "interrupted",
        }
    }
}

/// How a run stands, from what the store says and whether a driver lives.
pub fn standing(answer: Option<&RunAnswer>, driver: Option<u32>) -> Standing {
    match (answer.and_then(|answer| answer.outcome.as_deref()), driver) {
        (Some("done"), _) => Standing::Done,
        (Some("failed"), _) => Standing::Failed,
        (Some("cancelled"), _) => Standing::Cancelled,
        (Some("interrupted"), _) => Standing::Interrupted,
        (_, Some(_)) => Standing::Running,
        (_, None) if answer.and_then(|answer| answer.started).is_none() => Standing::Starting,
        (_, None) => Standing::Stopped,
    }
}

/// A run with everything that its journal says.
pub struct Replayed {
    pub folder: RunFolder,
    /// The version of Tulpar that planned it.
    pub version: String,
    pub workflow_file: String,
    pub provenance: Provenance,
    pub engine: Engine,
    /// The process of its driver, while one lives.
    pub driver: Option<u32>,
    pub started: Option<Timestamp>,
    /// The time of the last event.
    pub last: Option<Timestamp>,
    /// How long it was driven, without the pauses before each resume.
    driven: Duration,
    driven_since: Option<Timestamp>,
    pub resumed: u32,
    /// Of the journal, what was read.
    offset: u64,
    /// The number of the next event.
    expected: u64,
    /// Events that came out of order, and lines that are none.
    left_out: u64,
}

impl Replayed {
    pub fn standing(&self) -> Standing {
        match (self.engine.outcome(), self.driver, self.started) {
            (Some(Outcome::Done), ..) => Standing::Done,
            (Some(Outcome::Failed), ..) => Standing::Failed,
            (Some(Outcome::Cancelled), ..) => Standing::Cancelled,
            (Some(Outcome::Interrupted), ..) => Standing::Interrupted,
            (None, Some(_), _) => Standing::Running,
            (None, None, None) => Standing::Starting,
            (None, None, Some(_)) => Standing::Stopped,
        }
    }

    /// How long it was driven, until now if it is.
    pub fn took(&self) -> Duration {
        self.took_until(now())
    }

    pub fn took_until(&self, now: Timestamp) -> Duration {
        let until = if self.standing() == Standing::Running { Some(now) } else { self.last };
        let open = until.zip(self.driven_since).map(|(until, since)| until.since(since));
        self.driven + open.unwrap_or_default()
    }

    pub fn name(&self, job: JobId) -> String {
        self.engine.graph().name(job)
    }

    /// Takes in what the journal says since the last look; whether there was anything. Every event is looked at after
    /// it was applied.
    pub fn advance(&mut self, mut each: impl FnMut(&Engine, &Entry)) -> Result<bool, Failure> {
        // As in `open_with`: asked first.
        self.driver = journal::writer(&self.folder.journal());
        if !self.folder.journal().exists() {
            return Ok(false);
        }
        let mut follow = Follow::new(&self.folder.journal(), self.offset);
        let before = self.expected;
        loop {
            let entries = follow.poll()?;
            if follow.take_restarted() {
                // A resume cut what had been applied here.
                *self = open_with(&Silent, self.folder.clone(), each)?;
                return Ok(true);
            }
            if entries.is_empty() {
                break;
            }
            entries.iter().for_each(|entry| self.take(entry, &mut each));
        }
        self.offset = follow.offset();
        Ok(self.expected != before)
    }

    fn take(&mut self, entry: &Entry, each: &mut impl FnMut(&Engine, &Entry)) {
        // What follows a gap may speak of jobs that only the lost events made known.
        if entry.seq != self.expected {
            self.left_out += 1;
            return;
        }
        self.expected += 1;
        self.engine.apply(entry.at, &entry.event);
        self.note(entry);
        each(&self.engine, entry);
    }

    fn note(&mut self, entry: &Entry) {
        match entry.event {
            Event::RunStarted { .. } => {
                self.started.get_or_insert(entry.at);
                self.driven_since = Some(entry.at);
            }
            Event::RunResumed { .. } => {
                if let Some((last, since)) = self.last.zip(self.driven_since) {
                    self.driven += last.since(since);
                }
                self.driven_since = Some(entry.at);
                self.resumed += 1;
            }
            _ => {}
        }
        self.last = Some(entry.at);
    }
}

/// Opens a run: the one with this name, or the latest.
pub fn open(messages: &dyn Messages, project: &Project, run: Option<&str>) -> Result<Replayed, Failure> {
    open_with(messages, project.run(run)?, |_, _| {})
}

/// The same, looking at every event after it was applied.
pub fn open_with(
    messages: &dyn Messages,
    folder: RunFolder,
    mut each: impl FnMut(&Engine, &Entry),
) -> Result<Replayed, Failure> {
    let SavedRun { version, workflow_file, code, policy, plan } = folder.load()?;
    let provenance = Provenance::of(&plan, code);
    let engine = Engine::new(Arc::new(plan), policy).map_err(|cycle| Failure::usage(cycle.to_string()))?;
    // Asked before the journal is read: a driver that ends meanwhile has written its last event.
    let driver = journal::writer(&folder.journal());
    let mut replayed = Replayed {
        folder,
        version,
        workflow_file,
        provenance,
        engine,
        driver,
        started: None,
        last: None,
        driven: Duration::ZERO,
        driven_since: None,
        resumed: 0,
        offset: 0,
        expected: 1,
        left_out: 0,
    };
    let path = replayed.folder.journal();
    if !path.exists() {
        return Ok(replayed);
    }
    let read = journal::read_in_portions(&path, |entry| replayed.take(&entry, &mut each))?;
    replayed.offset = read.offset;
    replayed.left_out += read.skipped.bad_lines + read.skipped.unknown;
    if replayed.left_out > 0 {
        messages.warning(&format!(
            "the journal of {} does not read on after event {}; this is how things stood then",
            replayed.folder.name,
            replayed.expected - 1
        ));
    }
    Ok(replayed)
}

pub fn project(folder: Option<&Path>) -> Result<Project, Failure> {
    Ok(Project::new(folder.unwrap_or(Path::new(".")))?)
}

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// What a name on the command line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    Job(JobId),
    /// All tasks of a set that has several, or none.
    Set(SetId),
    /// A set whose tasks are not known yet.
    Pending(SetId),
}

/// Names of a set are compared with a misspelt one only up to here.
const MOST_COMPARED: usize = 20_000;

/// Finds a task: `train`, `preprocess[part=3]`, or `preprocess[3]` for short.
pub fn find(replayed: &Replayed, name: &str) -> Result<Named, Failure> {
    let graph = replayed.engine.graph();
    // In a planned run each task is a set of its own, with the brackets in its name.
    let whole = graph.plan().set_named(name).map(|_| name);
    let bare = whole.or_else(|| name.split('[').next()).unwrap_or(name);
    // Of a planned search of one element.
    if graph.plan().set_named(bare).is_none()
        && let Some(job) = graph.job_named(name)
    {
        return Ok(Named::Job(job));
    }
    let Some(set) = graph.plan().set_named(bare) else {
        let known = graph.plan().workflow.tasks.iter().map(|task| task.name.as_str());
        let message = format!("the workflow of {} has no task `{name}`", replayed.folder.name);
        return Err(match did_you_mean(bare, known) {
            Some(near) => Failure::usage_with(message, format!("did you mean `{near}`?")),
            None => Failure::usage_with(message, "`tulpar status` lists its tasks"),
        });
    };
    let Some(mut jobs) = graph.jobs_of(set) else { return Ok(Named::Pending(set)) };
    if bare.len() == name.len() {
        return Ok(match (jobs.next(), jobs.next()) {
            (Some(job), None) => Named::Job(job),
            _ => Named::Set(set),
        });
    }
    if let Some(job) = jobs.clone().find(|job| graph.name(*job) == name || short_name(graph, *job) == name) {
        return Ok(Named::Job(job));
    }
    let names: Vec<String> = jobs.take(MOST_COMPARED).map(|job| graph.name(job)).collect();
    let near = did_you_mean(name, names.iter().map(String::as_str)).or(names.first().map(String::as_str));
    let message = format!("no task of {} is called `{name}`", replayed.folder.name);
    Err(match near {
        Some(near) => Failure::usage_with(message, format!("did you mean `{near}`?")),
        None => Failure::usage_with(message, format!("`{bare}` has no tasks in this run")),
    })
}

/// `preprocess[3]` for `preprocess[part=3]`.
fn short_name(graph: &tulpar_core::plan::Graph, job: JobId) -> String {
    let set = graph.set_of(job);
    let labels: Vec<String> = graph
        .axes_of(set)
        .iter()
        .flat_map(|axis| &axis.names)
        .filter_map(|variable| graph.variable(job, variable))
        .map(|bound| bound.label())
        .collect();
    format!("{}[{}]", graph.plan().task(set).name, labels.join(","))
}

/// The jobs that a name stands for.
pub fn jobs(replayed: &Replayed, named: Named) -> Vec<JobId> {
    match named {
        Named::Job(job) => vec![job],
        Named::Set(set) => replayed.engine.graph().jobs_of(set).into_iter().flatten().collect(),
        Named::Pending(_) => Vec::new(),
    }
}
