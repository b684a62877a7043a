//! What made a result and what made its inputs, as a tree: for `lineage`.

use crate::failure::Failure;
use crate::messages::Messages;
use crate::replay::{self, Replayed};
use crate::view::Moment;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use tulpar_core::engine::Engine;
use tulpar_core::ids::{AttemptId, Digest, JobId, SetId};
use tulpar_core::job::{CommandLine, InputFile, InputFiles, JobSpec, Source};
use tulpar_core::plan::Plan;
use tulpar_core::workflow::{AxisValues, FileSource, Finding, Task, Template, template};
use tulpar_exec::folder::Project;
use tulpar_store::{AttemptAnswer, Producer, Store, Wanted};

/// How many levels of tasks above the result are told in full.
#[derive(Clone, Copy)]
pub struct Depth(pub u32);

/// A task that made something.
#[derive(Serialize)]
pub struct Made {
    pub task: String,
    /// The run that really ran it.
    pub run: String,
    /// The run that took its results from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused_by: Option<String>,
    /// Why it is not told in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub how: Option<How>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    SeeAbove,
    TooDeep,
}

#[derive(Serialize)]
pub struct How {
    pub command: CommandLine,
    /// The values that the command and the outputs were made with.
    pub parameters: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub venv: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conda: Option<String>,
    /// The content of the container or of the environment's description.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub software: BTreeMap<String, Digest>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Moment>,
    pub inputs: Vec<InputView>,
}

#[derive(Serialize)]
pub struct InputView {
    pub name: String,
    pub files: usize,
    pub bytes: u64,
    /// Over all its files, or the content of the only one.
    pub digest: Digest,
    /// The first few.
    pub paths: Vec<String>,
    /// The entry under `data:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub made_by: Vec<Made>,
    /// Tasks that made files of this input and are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

const MOST_PATHS: usize = 3;
const MOST_MAKERS: usize = 4;

struct Walk<'a> {
    store: &'a Store,
    replayed: Replayed,
    seen: HashSet<JobId>,
}

/// What made the file of a producer, `depth` levels up.
pub fn made(
    project: &Project,
    store: &Store,
    producer: &Producer,
    depth: Depth,
    messages: &dyn Messages,
) -> Result<Made, Failure> {
    let replayed = replay::open(messages, project, Some(&producer.run))?;
    let mut walk = Walk { store, replayed, seen: HashSet::new() };
    walk.made(producer.output.job, depth.0)
}

impl Walk<'_> {
    fn made(&mut self, job: JobId, depth: u32) -> Result<Made, Failure> {
        let here = self.replayed.folder.name.clone();
        let task = self.replayed.name(job);
        let origin = self.origin(job)?;
        let run = origin.as_ref().map_or(here.clone(), |origin| origin.run.clone());
        let reused_by = (run != here).then_some(here);
        let left_out = if !self.seen.insert(job) {
            Some(LeftOut::SeeAbove)
        } else if depth == 0 {
            Some(LeftOut::TooDeep)
        } else {
            None
        };
        let how = match left_out {
            Some(_) => None,
            None => Some(self.how(job, origin.as_ref(), depth)?),
        };
        Ok(Made { task, run, reused_by, left_out, how })
    }

    /// Who really ran it: this run, or the one that it was reused from.
    fn origin(&self, job: JobId) -> Result<Option<Origin>, Failure> {
        let here = self.replayed.folder.name.as_str();
        let Some(answer) = self.store.job(here, job)? else { return Ok(None) };
        let Some(from) = answer.reused_from else {
            let attempt = self.store.attempts(here, job)?.pop();
            let version = self.store.run(here)?.version;
            return Ok(Some(Origin { run: here.to_owned(), version, attempt }));
        };
        // The other run may have been removed, or numbered the task differently: its results tell.
        let first = self.replayed.engine.outputs(job).and_then(|outputs| outputs.first().cloned());
        if let Some(output) = first {
            let made = self.store.producer_of(&Wanted::Digest(output.digest))?;
            let name = self.replayed.name(job);
            let same = |producer: &&Producer| producer.run == from && producer.output.name.as_deref() == Some(&name);
            if let Some(producer) = made.iter().find(same) {
                let (version, attempt) = (producer.version.clone(), producer.attempt.clone());
                return Ok(Some(Origin { run: from, version, attempt }));
            }
        }
        Ok(Some(Origin { run: from, version: None, attempt: None }))
    }

    /// Which way of doing it made what the run has of a job; its own if it was not done here.
    fn variant(&self, job: JobId) -> Result<u32, Failure> {
        let engine = &self.replayed.engine;
        if engine.plan().task(engine.graph().set_of(job)).variants.is_empty() {
            return Ok(0);
        }
        let history = crate::history::of(&self.replayed, job)?;
        Ok(history.attempts.last().map_or(0, |attempt| attempt.variant))
    }

    fn how(&mut self, job: JobId, origin: Option<&Origin>, depth: u32) -> Result<How, Failure> {
        let attempt = origin.and_then(|origin| origin.attempt.as_ref());
        let engine = &self.replayed.engine;
        let first = AttemptId { job, n: 1 };
        let spec: JobSpec = engine
            .spec_context()
            .spec(first, self.variant(job)?, engine.request(job), "", Vec::new())
            .map_err(|error| Failure::Bug(format!("a job that ran has no command: {error}")))?;
        let plan = engine.plan();
        let software = [&spec.container, &spec.venv, &spec.conda]
            .into_iter()
            .flatten()
            .filter_map(|name| Some((name.clone(), *plan.environments.get(name)?)))
            .collect();
        let parameters = self.parameters(job);
        let mut inputs = Vec::new();
        for input in &spec.inputs {
            inputs.push(self.input(job, input, depth)?);
        }
        Ok(How {
            command: spec.command,
            parameters,
            container: spec.container,
            venv: spec.venv,
            conda: spec.conda,
            software,
            variables: spec.variables,
            secrets: spec.secrets,
            version: origin.and_then(|origin| origin.version.clone()),
            attempt: attempt.map(|attempt| attempt.n),
            node: attempt.and_then(|attempt| attempt.node.clone()),
            host: attempt.and_then(|attempt| attempt.host.clone()),
            started: attempt.and_then(|attempt| attempt.started).map(Moment),
            ended: attempt.and_then(|attempt| attempt.ended).map(Moment),
            inputs,
        })
    }

    /// The variables of its scatter, and the parameters that its templates name.
    fn parameters(&self, job: JobId) -> BTreeMap<String, String> {
        let engine = &self.replayed.engine;
        let graph = engine.graph();
        let task = engine.plan().task(graph.set_of(job));
        let context = engine.spec_context();
        let variables = task.scatter.iter().flat_map(|axis| axis.names.iter().cloned());
        let params = engine.plan().workflow.params_of(graph.set_of(job));
        variables
            .chain(templates(task).flat_map(|text| template::names(&text.0)).map(|reference| reference.name.to_owned()))
            .filter(|name| graph.variable(job, name).is_some() || params.contains_key(name))
            .filter_map(|name| Some((name.clone(), context.value(job, &name)?.to_string())))
            .collect()
    }

    fn input(&mut self, job: JobId, input: &InputFiles, depth: u32) -> Result<InputView, Failure> {
        let engine = &self.replayed.engine;
        let task = engine.plan().task(engine.graph().set_of(job));
        let data = match source(task, &input.name) {
            Some(FileSource::Data(id)) => Some(engine.plan().workflow.data[id.index()].name.clone()),
            _ => None,
        };
        let mut makers = makers(engine, job, input);
        let more = makers.len().saturating_sub(MOST_MAKERS);
        makers.truncate(MOST_MAKERS);
        let made_by = makers.into_iter().map(|maker| self.made(maker, depth - 1)).collect::<Result<_, _>>()?;
        Ok(InputView {
            name: input.name.clone(),
            files: input.files.len(),
            bytes: input.files.iter().map(|file| file.size).sum(),
            digest: digest(&input.files),
            paths: input.files.iter().take(MOST_PATHS).map(|file| file.path.clone()).collect(),
            data,
            made_by,
            more,
        })
    }
}

/// The jobs that left the files of an input; none for data.
pub fn makers(engine: &Engine, job: JobId, input: &InputFiles) -> Vec<JobId> {
    let graph = engine.graph();
    let task = engine.plan().task(graph.set_of(job));
    let position = task.inputs.iter().position(|other| other.name == input.name).map(|position| position as u32);
    let planned = task.run.planned();
    let further = position.and_then(|position| planned?.further.get(&position)).into_iter().flatten().copied();
    let from = |source: FileSource| match source {
        FileSource::Data(_) => Vec::new(),
        FileSource::Output { task, output } => left_by(engine, job, task, output, &input.files),
        FileSource::Latest { task: set, .. } => {
            position.and_then(|position| graph.version(job, position, set)).into_iter().collect()
        }
        FileSource::Search { task: set, finding } => {
            let searches = graph.searches_for(job, set).into_iter();
            match finding {
                Finding::Top { trials, .. } => searches.flat_map(|search| graph.top(search, trials as usize)).collect(),
                Finding::Front(_) => searches.flat_map(|search| graph.front(search)).collect(),
                Finding::Best | Finding::Trials | Finding::Output(_) => {
                    searches.filter_map(|search| graph.best(search)).collect()
                }
            }
        }
    };
    source(task, &input.name).into_iter().chain(further).flat_map(from).collect()
}

/// The user's files by their content: where what a run staged came from.
pub fn originals(plan: &Plan) -> HashMap<Digest, &InputFile> {
    let files = plan.files.iter().flat_map(|files| files.iter());
    files.filter(|file| matches!(file.source, Source::Path(_))).map(|file| (file.digest, file)).collect()
}

/// The jobs of `set` that left these files.
fn left_by(engine: &Engine, job: JobId, set: SetId, output: u32, files: &[InputFile]) -> Vec<JobId> {
    let wanted: HashSet<(&str, Digest)> = files.iter().map(|file| (file.path.as_str(), file.digest)).collect();
    let left_one = |maker: &JobId| {
        engine.outputs(*maker).is_some_and(|outputs| {
            outputs.iter().any(|file| file.output == output && wanted.contains(&(file.path.as_str(), file.digest)))
        })
    };
    let selected = engine.graph().selected(job, set);
    // A task over one file of a dynamic source selects nothing: any task of the source may have left it.
    let all = || engine.graph().jobs_of(set).into_iter().flatten().filter(left_one).collect();
    let found: Vec<JobId> = selected.into_iter().filter(left_one).collect();
    if found.is_empty() { all() } else { found }
}

struct Origin {
    run: String,
    version: Option<String>,
    attempt: Option<AttemptAnswer>,
}

fn source(task: &Task, input: &str) -> Option<FileSource> {
    let declared = task.inputs.iter().find(|other| other.name == input).map(|input| input.source);
    declared.or_else(|| {
        task.scatter.iter().find(|axis| axis.names.iter().any(|name| name == input)).and_then(|axis| {
            match axis.values {
                AxisValues::Files { source, .. } => Some(source),
                AxisValues::Arrivals { task, output, .. } => Some(FileSource::Output { task, output }),
                _ => None,
            }
        })
    })
}

fn templates(task: &Task) -> impl Iterator<Item = &Template> {
    let command: Vec<&Template> = task.run.templates().iter().collect();
    let variables = task.settings.environment.variables.values();
    command.into_iter().chain(variables).chain(task.outputs.iter().map(|output| &output.path))
}

fn digest(files: &[InputFile]) -> Digest {
    if let [only] = files {
        return only.digest;
    }
    let mut lines: Vec<String> = files.iter().map(|file| format!("{}\0{}\n", file.path, file.digest)).collect();
    lines.sort_unstable();
    Digest::of(lines.concat().as_bytes())
}
