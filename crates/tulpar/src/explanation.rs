//! Why a task waits, failed, was skipped, was reused or ran again, in a structure and in words.
//!
//! It renders what the engine explains and what the journal recorded; it computes no reason of its own. The verb, the
//! terminal view and the page show the same.

mod words;

pub use words::{Words, lines, set_lines, short};

use crate::changes::{self, FileChanges};
use crate::conditions;
use crate::failure::Failure;
use crate::history::{self, History};
use crate::replay::{Replayed, Standing};
use crate::undeclared::{self, Undeclared};
use crate::view::{AttemptView, state_word};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tulpar_core::engine::{Engine, Explanation, STATES, State};
use tulpar_core::event::{Because, Blame, Event, Reason};
use tulpar_core::ids::{AttemptId, JobId, SetId};
use tulpar_core::planner::Decision;
use tulpar_exec::folder::{Project, RunFolder};

/// Why tasks were skipped, from the events as they come.
#[derive(Debug, Default)]
pub struct Causes(BTreeMap<JobId, Because>);

impl Causes {
    pub fn note(&mut self, event: &Event) {
        if let Some((job, because)) = event.skip() {
            self.0.insert(job, because.clone());
        }
        if let Event::RunResumed { reopened, .. } = event {
            self.0.retain(|job, _| reopened.binary_search(job).is_err());
        }
    }
}

#[derive(Serialize)]
pub struct ExplainView {
    pub run: String,
    pub task: String,
    pub state: &'static str,
    pub standing: Standing,
    /// Absent where the engine of the run cannot be asked yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// Why it was run and not reused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_because: Option<Reason>,
    /// Of inputs that changed, the files that did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<FileChanges>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<String>,
    /// The attempt of that run whose files were accepted, since the declaration of its outputs was mended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_attempt: Option<u32>,
    /// Images and environments of which only the name was compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named_only: Vec<String>,
    /// The files that it read beside its inputs, as far as they were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undeclared: Option<Undeclared>,
    /// The declarations to write in place of missing outputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub declare: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
    /// Why it was skipped, from itself to the root of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Link>,
    /// Metadata that the author of the workflow wrote.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// What the planner decided about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<Decision>,
    /// Why its site does not run it yet, in the words of the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_says: Option<String>,
    pub attempts: Vec<AttemptView>,
    /// Where the files of its last attempt are, unless it ended well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<PathBuf>,
}

#[derive(Serialize)]
pub struct Link {
    pub task: String,
    pub state: &'static str,
    pub why: String,
}

#[derive(Serialize)]
pub struct SetExplainView {
    pub run: String,
    pub set: String,
    pub standing: Standing,
    pub tasks: Option<u32>,
    /// The run was asked to stop before it, after these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known_when: Vec<String>,
    pub states: Vec<StateOfSet>,
}

#[derive(Serialize)]
pub struct StateOfSet {
    pub state: &'static str,
    pub tasks: u32,
    pub first: String,
}

pub fn view(project: &Project, replayed: &Replayed, job: JobId, causes: &Causes) -> Result<ExplainView, Failure> {
    history::of(replayed, job).map(|history| view_with(project, replayed, job, causes, history))
}

/// The same, where what happened to it was looked up already.
pub fn view_with(project: &Project, replayed: &Replayed, job: JobId, causes: &Causes, history: History) -> ExplainView {
    let History { reason, reused, accepted, attempts, blame, .. } = history;
    let engine = &replayed.engine;
    let state = engine.state(job);
    let last = attempts.last().map(|last| AttemptId { job, n: last.attempt });
    let sandbox = last.and_then(|attempt| sandbox(&replayed.folder, attempt, state));
    let ran_because = reason.or_else(|| without_look(replayed, job)).filter(|_| reused.is_none());
    let changed_files = match &ran_because {
        Some(reason) => changes::of(project, replayed, job, reason),
        None => Vec::new(),
    };
    let made = attempts.last().map(|last| last.made.as_slice()).unwrap_or_default();
    let declared = engine.spec_context().outputs(job);
    let mut declare = match made {
        [] => Vec::new(),
        made => crate::declared::advice(&declared, made),
    };
    declare.extend(attempts.last().and_then(|last| crate::declared::made_in_advance(&declared, &last.stderr_tail)));
    ExplainView {
        run: replayed.folder.name.clone(),
        task: replayed.name(job),
        state: state_word(state, replayed.standing() == Standing::Running),
        standing: replayed.standing(),
        explanation: Some(engine.explain(job)),
        ran_because,
        changed_files,
        undeclared: read_undeclared(project, replayed, job, reused.as_deref()),
        reused_from: reused,
        accepted_attempt: accepted,
        named_only: named_only(engine, job),
        declare,
        blame: blame.filter(|_| state == State::Failed),
        metadata: metadata(engine, job),
        planned: decisions(&replayed.folder, &replayed.name(job)),
        chain: if state == State::Skipped { chain(project, replayed, job, causes) } else { Vec::new() },
        site_says: last
            .filter(|_| state == State::Submitted)
            .and_then(|attempt| tulpar_exec::live::why_it_waits(&replayed.folder.samples(), attempt)),
        attempts,
        sandbox,
    }
}

/// The files that a task read when it did its work, in this run or in the one that it was reused from.
fn read_undeclared(project: &Project, replayed: &Replayed, job: JobId, reused: Option<&str>) -> Option<Undeclared> {
    let engine = &replayed.engine;
    let worked = match reused {
        Some(run) => &project.run(Some(run)).ok()?,
        None => &replayed.folder,
    };
    let set = engine.graph().set_of(job);
    let found = undeclared::of_task(project, worked, engine.plan(), set, &replayed.name(job));
    (!found.files.is_empty()).then_some(found)
}

fn named_only(engine: &Engine, job: JobId) -> Vec<String> {
    let plan = engine.plan();
    let environment = &plan.task(engine.graph().set_of(job)).settings.environment;
    let names = [&environment.container, &environment.venv, &environment.conda].into_iter().flatten();
    names.filter(|name| !plan.environments.contains_key(*name)).cloned().collect()
}

fn metadata(engine: &Engine, job: JobId) -> BTreeMap<String, String> {
    let plan = engine.plan();
    let name = &plan.task(engine.graph().set_of(job)).name;
    plan.workflow.metadata.tasks.get(name).cloned().unwrap_or_default()
}

/// What is recorded of one task.
pub struct Recorded {
    pub job: JobId,
    pub name: String,
    pub state: State,
    pub history: History,
    /// Why it was skipped, from itself to the root of it.
    pub chain: Vec<Link>,
}

/// What records say by themselves, while there is no engine to be asked: all about a task that is settled, but of one that
/// is not no reason.
pub fn recorded(folder: &RunFolder, standing: Standing, recorded: Recorded) -> ExplainView {
    let Recorded { job, name, state, history, chain } = recorded;
    let History { reason, reused, accepted, attempts, blame, .. } = history;
    let last = attempts.last().map(|last| AttemptId { job, n: last.attempt });
    let attempt_count = attempts.len() as u32;
    let settled =
        Explanation::Settled { state, excused: false, attempts: attempt_count, because: None, upstream: None };
    ExplainView {
        run: folder.name.clone(),
        state: state_word(state, standing == Standing::Running),
        standing,
        explanation: state.is_settled().then_some(settled),
        ran_because: reason.filter(|_| reused.is_none()),
        changed_files: Vec::new(),
        undeclared: None,
        reused_from: reused,
        accepted_attempt: accepted,
        named_only: Vec::new(),
        declare: Vec::new(),
        blame: blame.filter(|_| state == State::Failed),
        metadata: BTreeMap::new(),
        planned: decisions(folder, &name),
        chain,
        site_says: None,
        sandbox: last.and_then(|attempt| sandbox(folder, attempt, state)),
        attempts,
        task: name,
    }
}

fn sandbox(folder: &RunFolder, attempt: AttemptId, state: State) -> Option<PathBuf> {
    let path = history::attempt_folder(folder, attempt).join("work");
    (state != State::Done && path.is_dir()).then(|| newest_inside(folder, attempt.job).unwrap_or(path))
}

/// The sandbox of the command that failed last inside of a job that is more than a command: the files are there.
fn newest_inside(folder: &RunFolder, job: JobId) -> Option<PathBuf> {
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let buckets = entries(tulpar_launch::inside_folder(&folder.attempts(), job));
    let works = buckets.flat_map(entries).map(|attempt| attempt.join("work")).filter(|work| work.is_dir());
    works.max_by_key(|work| std::fs::metadata(work).and_then(|about| about.modified()).ok())
}

/// What was recorded when the run was planned.
fn decisions(folder: &RunFolder, name: &str) -> Vec<Decision> {
    let Ok(bytes) = std::fs::read(folder.decisions()) else { return Vec::new() };
    let all: Vec<Decision> = serde_json::from_slice(&bytes).unwrap_or_default();
    all.into_iter().filter(|decision| decision.about == name).collect()
}

/// A task that never asks the cache has no event that says why: it is the user's choice, in the plan.
fn without_look(replayed: &Replayed, job: JobId) -> Option<Reason> {
    let engine = &replayed.engine;
    let forced = engine.plan().forced.contains(&engine.graph().set_of(job));
    (engine.attempts(job) > 0).then_some(if forced { Reason::Forced } else { Reason::CacheOff })
}

/// Why a task was skipped; `cause` is the name of the task above that is the reason.
pub fn because_words(because: Option<&Because>, cause: Option<&str>) -> String {
    match because {
        Some(Because::Upstream(job)) => match cause {
            Some(cause) => format!("because of {cause}"),
            None => format!("because of job {}", job.0),
        },
        Some(Because::Condition) => "its condition is not true".to_owned(),
        Some(Because::Exhausted) => "the search has nothing more to try".to_owned(),
        Some(Because::Spent) => "the time or the GPU hours of the search were spent".to_owned(),
        Some(Because::Pruned) => "it was pruned: other trials were better at that step".to_owned(),
        Some(Because::Infeasible) => "no trial of the search kept the constraints".to_owned(),
        Some(Because::NotWanted) => "not needed for what was asked with --until".to_owned(),
        None => String::new(),
    }
}

/// From a skipped task to what did not end well first.
fn chain(project: &Project, replayed: &Replayed, job: JobId, causes: &Causes) -> Vec<Link> {
    let mut links = Vec::new();
    let mut here = job;
    let driven = replayed.standing() == Standing::Running;
    // No task is above itself: the way up ends.
    loop {
        let state = replayed.engine.state(here);
        let because = causes.0.get(&here);
        let next = match because {
            Some(Because::Upstream(cause)) => Some(*cause),
            _ => None,
        };
        let mut why = because_words(because, next.map(|next| replayed.name(next)).as_deref());
        if let Some(Because::Condition) = because {
            why += &format!(": {}", conditions::words(project, replayed, here).unwrap_or_default());
        }
        links.push(Link { task: replayed.name(here), state: state_word(state, driven), why });
        match next {
            Some(next) => here = next,
            None => return links,
        }
    }
}

pub fn set_view(replayed: &Replayed, set: SetId) -> SetExplainView {
    let engine = &replayed.engine;
    let driven = replayed.standing() == Standing::Running;
    let counts = engine.set_counts(set);
    let mut first: BTreeMap<State, JobId> = BTreeMap::new();
    for job in engine.graph().jobs_of(set).into_iter().flatten() {
        first.entry(engine.state(job)).or_insert(job);
    }
    let states = STATES
        .iter()
        .filter_map(|state| {
            let first = first.get(state)?;
            Some(StateOfSet {
                state: state_word(*state, driven),
                tasks: counts.of(*state),
                first: replayed.name(*first),
            })
        })
        .collect();
    let tasks = engine.graph().count_of(set);
    let plan = engine.plan();
    let names = |sets: Vec<SetId>| sets.into_iter().map(|set| plan.task(set).name.clone()).collect();
    let wanted = plan.wanted()[set.index()];
    let known_when = if tasks.is_none() && wanted { names(plan.producers(set)) } else { Vec::new() };
    let until = if wanted { Vec::new() } else { names(plan.until.clone()) };
    SetExplainView {
        run: replayed.folder.name.clone(),
        set: plan.task(set).name.clone(),
        standing: replayed.standing(),
        tasks,
        until,
        known_when,
        states,
    }
}
