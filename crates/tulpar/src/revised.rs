//! The inputs of a run that have changed since it was planned, looked at before it is resumed.

use crate::failure::Failure;
use crate::messages::Messages;
use crate::prepare::list_data;
use crate::replay;
use std::collections::{BTreeMap, BTreeSet};
use tulpar_core::engine::{Engine, State};
use tulpar_core::ids::{DataId, JobId, SetId};
use tulpar_core::job::{InputFile, Source};
use tulpar_core::workflow::{AxisValues, FileSource, Task};
use tulpar_exec::folder::{Project, RunFolder};

/// How many files a message names.
const NAMED: usize = 3;

/// Refuses to resume when a task that is not finished would read other content than the plan names, unless the run is to
/// go on as it was planned.
pub(crate) fn check(
    project: &Project,
    run: &RunFolder,
    as_planned: bool,
    messages: &dyn Messages,
) -> Result<(), Failure> {
    let replayed = replay::open(messages, project, Some(&run.name))?;
    let engine = &replayed.engine;
    let changed = changed_data(project, engine, messages);
    let environments = changed_environments(project, engine);
    if changed.is_empty() && environments.is_empty() {
        return Ok(());
    }
    let unfinished = unfinished_sets(engine);
    let mut told = Vec::new();
    // Of files the run kept copies; of environments nobody has the old content.
    let mut is_lost = false;
    for (data, Revised { changed, new }) in &changed {
        for (files, verb) in [(changed, "changed"), (new, "appeared")] {
            if files.is_empty() {
                continue;
            }
            let readers = unfinished.iter().find_map(|(set, job)| reader(engine, *set, *job, *data, files));
            let Some(job) = readers else { continue };
            told.push(format!("{} {verb} since {}", named(files), since(engine, job, &run.name)));
        }
    }
    for (environment, sets) in &environments {
        let Some(job) = sets.iter().find_map(|set| unfinished.get(set)) else { continue };
        told.push(format!("the environment `{environment}` changed since {}", since(engine, *job, &run.name)));
        is_lost = true;
    }
    if told.is_empty() {
        let files: Vec<String> = changed.values().flat_map(|revised| &revised.changed).cloned().collect();
        if !files.is_empty() {
            messages.note(&format!(
                "{} changed since {} began. Only finished tasks read it; `tulpar run` runs them again.",
                named(&files),
                run.name
            ));
        }
        let new: Vec<String> = changed.values().flat_map(|revised| &revised.new).cloned().collect();
        if !new.is_empty() {
            messages.note(&format!(
                "{} appeared since {} began. No unfinished task of that run reads it; `tulpar run` takes it in.",
                named(&new),
                run.name
            ));
        }
        return Ok(());
    }
    if is_lost {
        return Err(Failure::usage_with(
            told.join("; "),
            "nothing keeps the old content of an environment: restore it to go on with this run, or start a new run with `tulpar run`, which reuses every result that the change does not affect",
        ));
    }
    if as_planned {
        told.iter()
            .for_each(|words| messages.note(&format!("{words}; {} goes on with the content it began with.", run.name)));
        return Ok(());
    }
    Err(Failure::usage_with(
        told.join("; "),
        format!(
            "`tulpar run` starts a new run with the new content and reuses every result that it does not affect; `tulpar resume {} --as-planned` goes on with the old content",
            run.name
        ),
    ))
}

/// The files of a data entry that are not as planned.
struct Revised {
    /// Other content, or gone.
    changed: Vec<String>,
    /// Not planned at all.
    new: Vec<String>,
}

/// By data entry, the files that are not as planned.
fn changed_data(project: &Project, engine: &Engine, messages: &dyn Messages) -> BTreeMap<DataId, Revised> {
    let plan = engine.plan();
    let now = list_data(project, &plan.workflow, messages);
    let mut changed = BTreeMap::new();
    for (index, (planned, found)) in plan.files.iter().zip(&now.files).enumerate() {
        let known: BTreeSet<&str> = planned.iter().map(|file| file.path.as_str()).collect();
        let is_own = !planned.iter().any(|file| matches!(file.source, Source::Remote(_)));
        let new = found.iter().filter(|file| is_own && !known.contains(file.path.as_str()));
        let new: Vec<String> = new.map(|file| file.from.clone()).collect();
        let found: BTreeMap<&str, _> = found.iter().map(|file| (file.path.as_str(), file.digest)).collect();
        // Files of the staging area are Tulpar's own.
        let is_other = |file: &&InputFile| {
            !matches!(file.source, Source::Remote(_)) && found.get(file.path.as_str()) != Some(&file.digest)
        };
        let others: Vec<String> = planned.iter().filter(is_other).map(place).collect();
        if !others.is_empty() || !new.is_empty() {
            changed.insert(DataId::from(index), Revised { changed: others, new });
        }
    }
    changed
}

fn place(file: &InputFile) -> String {
    match &file.source {
        Source::Path(path) | Source::Remote(path) => path.clone(),
        Source::Object | Source::Text(_) => file.path.clone(),
    }
}

/// By the name of an environment whose packages are other ones now, the task sets that use it.
fn changed_environments(project: &Project, engine: &Engine) -> BTreeMap<String, BTreeSet<SetId>> {
    let plan = engine.plan();
    if plan.environments.is_empty() {
        return BTreeMap::new();
    }
    let now = tulpar_exec::environments::environments(project.root(), &project.cache(), &plan.workflow);
    let other = plan.environments.iter().filter(|(name, digest)| now.get(*name) != Some(digest));
    let users = |name: &String| {
        let uses = |task: &Task| {
            let environment = &task.settings.environment;
            [&environment.container, &environment.venv, &environment.conda]
                .into_iter()
                .flatten()
                .any(|used| used == name)
        };
        plan.workflow.tasks.iter().enumerate().filter(|(_, task)| uses(task)).map(|(set, _)| SetId::from(set)).collect()
    };
    other.map(|(name, _)| (name.clone(), users(name))).collect()
}

/// The task sets with work left, each with a task of it: one that was tried, if any was.
fn unfinished_sets(engine: &Engine) -> BTreeMap<SetId, JobId> {
    let mut sets = BTreeMap::new();
    let graph = engine.graph();
    for job in (0..graph.len()).map(JobId::from) {
        if engine.state(job) == State::Done {
            continue;
        }
        let kept = sets.entry(graph.set_of(job)).or_insert(job);
        if engine.attempts(*kept) == 0 && engine.attempts(job) > 0 {
            *kept = job;
        }
    }
    // Sets whose number of tasks is not known yet have no job.
    for set in (0..engine.plan().workflow.tasks.len()).map(SetId::from) {
        if graph.jobs_of(set).is_none() {
            sets.entry(set).or_insert(JobId(u32::MAX));
        }
    }
    sets
}

/// An unfinished task of the set that reads one of the changed files of a data entry, `any` where all of them do.
fn reader(engine: &Engine, set: SetId, any: JobId, data: DataId, changed: &[String]) -> Option<JobId> {
    let task = engine.plan().task(set);
    if task.inputs.iter().any(|input| input.source == FileSource::Data(data)) {
        return Some(any);
    }
    if !scatters_over(task, data) {
        return None;
    }
    let Some(jobs) = engine.graph().jobs_of(set) else { return Some(any) };
    let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
    let context = engine.spec_context();
    let reads = |job: &JobId| {
        let inputs = context.inputs(*job);
        inputs.iter().flat_map(|input| input.files.iter()).any(|file| changed.contains(place(file).as_str()))
    };
    let unfinished = jobs.filter(|job| engine.state(*job) != State::Done);
    unfinished.filter(reads).min_by_key(|job| engine.attempts(*job) == 0)
}

fn scatters_over(task: &Task, data: DataId) -> bool {
    let is_it =
        |values: &AxisValues| matches!(values, AxisValues::Files { source, .. } if *source == FileSource::Data(data));
    task.scatter.iter().any(|axis| is_it(&axis.values))
}

fn since(engine: &Engine, job: JobId, run: &str) -> String {
    if job.index() < engine.graph().len() && engine.attempts(job) > 0 {
        format!("attempt {} of `{}`", engine.attempts(job), engine.graph().name(job))
    } else {
        format!("{run} was planned")
    }
}

fn named(files: &[String]) -> String {
    let first = files.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
