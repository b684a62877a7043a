//! From a workflow file to a plan: read, list the data, check, and say everything that is wrong.

use crate::choices::WorkflowChoice;
use crate::failure::Failure;
use crate::findings::{self, Text};
use crate::foreign::{self, Format};
use crate::messages::Messages;
use crate::pegasus;
use crate::queueing;
use crate::settings;
use crate::view::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tulpar_core::catalogue::{Catalogue, LOCAL};
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::ids::{Digest, SetId};
use tulpar_core::plan::Plan;
use tulpar_core::site::Site;
use tulpar_core::workflow::{self, DataSource, FileSource, Run, Workflow};
use tulpar_exec::data::{self, How, Resolved};
use tulpar_exec::folder::Project;
use tulpar_formats::pegasus::Planning;

/// A workflow that was read, with its findings; errors among them mean that it cannot run.
pub struct Prepared {
    pub project: Project,
    pub file: PathBuf,
    pub text: String,
    pub plan: Option<Plan>,
    pub findings: Vec<Diagnostic>,
    pub catalogue: Catalogue,
}

impl Prepared {
    pub fn text(&self) -> Text<'_> {
        Text { name: self.file.display().to_string(), text: &self.text }
    }

    /// The plan, after the caller was told all findings; an error ends it.
    pub fn plan_or_findings(&mut self, messages: &dyn Messages) -> Result<Plan, Failure> {
        messages.findings(&self.text(), &self.findings);
        match self.plan.take() {
            Some(plan) if !findings::any_error(&self.findings) => Ok(plan),
            _ => Err(Failure::Findings),
        }
    }
}

pub fn prepare(folder: Option<&Path>, choice: &WorkflowChoice, messages: &dyn Messages) -> Result<Prepared, Failure> {
    let file = settings::workflow_file(folder, choice)?;
    let text = settings::read(&file)?;
    prepare_text(folder, choice, file, text, &settings::overrides(choice), messages)
}

/// Reads a workflow with these parameters, whatever `choice` says of files and parameters.
pub fn prepare_text(
    folder: Option<&Path>,
    choice: &WorkflowChoice,
    file: PathBuf,
    mut text: String,
    params: &BTreeMap<String, String>,
    messages: &dyn Messages,
) -> Result<Prepared, Failure> {
    let project = project_of(&file)?;
    let catalogue = settings::catalogue(&choice.catalogue, project.root(), messages)?;
    let site = settings::site(choice, &catalogue)?;
    let format = Format::of(&text);
    let is_foreign = format != Format::Native;
    let (read, mut findings) = if is_foreign {
        if let Some((name, value)) = params.first_key_value() {
            let message = format!("`--param {name}={value}`: a {} workflow has no parameters", format.name());
            return Err(Failure::usage_with(message, "`tulpar import` writes it as a workflow that can have some"));
        }
        let conf = choice.conf.as_ref().map(|conf| folder.unwrap_or(Path::new("")).join(conf));
        let name = file.display().to_string();
        let site_name = choice.site.as_deref();
        let converted = foreign::read(format, project.root(), &name, &text, conf.as_deref(), site_name)?;
        text = converted.text;
        let mut workflow = converted.workflow;
        if let Some(workflow) = &mut workflow {
            pegasus::give_nodes(workflow, &site);
        }
        (workflow, converted.findings)
    } else {
        workflow::read(&text, params)
    };
    let mut plan = None;
    if let Some(mut workflow) = read {
        if let Some(image) = &choice.container {
            contain(&mut workflow, image);
        }
        findings.extend(tulpar_core::catalogue::bind(&mut workflow, &catalogue, &site.name));
        let resolved = list_data_with(&project, &workflow, choice.fetch_anew, messages);
        findings.extend(data_findings(&workflow, &resolved));
        findings.extend(workflow::check(&workflow, Some(&resolved.files), Some(&site)));
        // What the catalogue lists may only come later: the pool as it is now is no measure of it.
        let listed = catalogue.site(&site.name).is_some_and(|written| !written.nodes.is_empty());
        findings.extend(queueing::findings(&workflow, &site, listed)?);
        // The tasks of other systems declare in full what is sent along.
        if !is_foreign {
            findings.extend(unseen_files(project.root(), &workflow));
            findings.extend(crate::imports::undeclared(project.root(), &workflow, &resolved.files));
        }
        findings.extend(crate::reached::undeclared(project.root(), &workflow, &resolved.files, is_foreign));
        let environments = tulpar_exec::environments::environments(project.root(), &project.cache(), &workflow);
        findings.extend(unknown_environments(&workflow, &environments));
        let mut made = Plan::new(workflow, resolved.files, site);
        made.environments = environments;
        plan = Some(made);
    }
    Ok(Prepared { project, file, text, plan, findings, catalogue })
}

/// Conda environments whose folder is not known, so that nobody sees when their packages change.
fn unknown_environments(workflow: &Workflow, known: &BTreeMap<String, Digest>) -> Vec<Diagnostic> {
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    for task in &workflow.tasks {
        let Some(name) = &task.settings.environment.conda else { continue };
        if !name.contains('/') && !known.contains_key(name) && told.insert(name) {
            let message = format!("the conda environment `{name}` is not found here");
            found.push(
                Diagnostic::warning("W044", task.span, message)
                    .label("it counts by its name alone: an old result is reused although its packages changed")
                    .help("give its folder, such as `conda: /home/me/miniconda3/envs/NAME`"),
            );
        }
    }
    found
}

/// Gives an image to every task that says nothing about where its programs come from.
fn contain(workflow: &mut Workflow, image: &str) {
    for task in &mut workflow.tasks {
        let environment = &task.settings.environment;
        if environment.container.is_none() && environment.venv.is_none() && environment.conda.is_none() {
            Arc::make_mut(&mut task.settings).environment.container = Some(image.to_owned());
        }
    }
}

/// A workflow that was read to be planned: its data files are listed, not read.
pub struct Surveyed {
    pub project: Project,
    pub file: PathBuf,
    pub text: String,
    pub plan: Option<Plan>,
    pub findings: Vec<Diagnostic>,
    pub catalogue: Catalogue,
    /// Of a Pegasus workflow, what its properties say and the site whose programs count.
    pub pegasus: Option<(Planning, String)>,
    /// Data files that are not here.
    pub unseen: u64,
}

/// Reads a workflow for a plan. It need not be able to run: files may be missing.
pub fn survey(
    folder: Option<&Path>,
    choice: &WorkflowChoice,
    site: Option<&str>,
    messages: &dyn Messages,
) -> Result<Surveyed, Failure> {
    let file = settings::workflow_file(folder, choice)?;
    let mut text = settings::read(&file)?;
    let project = project_of(&file)?;
    let mut catalogue = settings::catalogue(&choice.catalogue, project.root(), messages)?;
    let mut pegasus = None;
    let format = Format::of(&text);
    let (workflow, mut findings) = if format != Format::Native {
        let conf = choice.conf.as_ref().map(|conf| folder.unwrap_or(Path::new("")).join(conf));
        let name = file.display().to_string();
        let converted = foreign::read(format, project.root(), &name, &text, conf.as_deref(), site)?;
        text = converted.text;
        if let Some(mut world) = converted.world {
            let ours = catalogue.sites.iter_mut().find(|site| site.name == LOCAL && site.scratch.is_none());
            let theirs = world.catalogue.sites.iter_mut().find(|site| site.name == LOCAL);
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                // Its catalogue knows the directories of this machine, and we its nodes.
                let nodes = std::mem::take(&mut ours.nodes);
                *ours = Site { nodes, ..std::mem::take(theirs) };
            }
            world.catalogue.merge(catalogue);
            catalogue = world.catalogue;
            pegasus = Some((world.planning, world.execution_site));
        }
        (converted.workflow, converted.findings)
    } else {
        workflow::read(&text, &settings::overrides(choice))
    };
    let (mut plan, mut unseen) = (None, 0);
    if let Some(mut workflow) = workflow {
        let target = site.or(pegasus.as_ref().map(|(_, site)| site.as_str())).unwrap_or(LOCAL);
        findings.extend(tulpar_core::catalogue::bind(&mut workflow, &catalogue, target));
        let listed = data::survey(project.root(), &workflow.data);
        unseen = listed.unseen;
        let resolved = Resolved { files: listed.files, problems: listed.problems, ..Resolved::default() };
        findings.extend(data_findings(&workflow, &resolved));
        findings.extend(workflow::check(&workflow, Some(&resolved.files), None));
        let local = catalogue.site(LOCAL).cloned().unwrap_or_default();
        plan = Some(Plan::new(workflow, resolved.files, local));
    }
    Ok(Surveyed { project, file, text, plan, findings, catalogue, pegasus, unseen })
}

/// The folder of a workflow file.
pub fn project_of(file: &Path) -> Result<Project, Failure> {
    let parent = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    Ok(Project::new(parent)?)
}

pub(crate) fn list_data(project: &Project, workflow: &Workflow, messages: &dyn Messages) -> Resolved {
    list_data_with(project, workflow, false, messages)
}

/// The same; with `anew`, what is behind URLs is fetched again.
fn list_data_with(project: &Project, workflow: &Workflow, anew: bool, messages: &dyn Messages) -> Resolved {
    let reading = messages.reading();
    let resolved = data::resolve_with(project.root(), &project.cache(), &workflow.data, anew, &|progress| {
        reading.progress(progress);
    });
    drop(reading);
    for (url, how) in &resolved.fetched {
        say_fetched(url, how, messages);
    }
    if let Some(error) = &resolved.forgotten {
        messages.warning(&format!("{error}; the data will be hashed again next time"));
    }
    resolved
}

/// Whether a file behind a URL has changed.
fn say_fetched(url: &str, how: &How, messages: &dyn Messages) {
    match how {
        How::Fetched => messages.note(&format!("{url}: fetched")),
        How::Unchanged { since } => messages.note(&format!("{url}: unchanged since {}", Moment(*since))),
        How::Changed { since } => messages.note(&format!("{url}: changed since {}, fetched again", Moment(*since))),
        How::Unreachable { copied, cause } => {
            messages.warning(&format!("{url} cannot be fetched ({cause}); the copy of {} is used", Moment(*copied)))
        }
        How::NotAsked { copied } => messages.note(&format!(
            "{url}: the copy of {} is used; whether it has changed since was not asked",
            Moment(*copied)
        )),
        How::Pinned => {}
    }
}

pub fn data_findings(workflow: &Workflow, resolved: &Resolved) -> Vec<Diagnostic> {
    resolved
        .problems
        .iter()
        .map(|problem| {
            let entry = &workflow.data[problem.data.index()];
            let more = match problem.more {
                0 => String::new(),
                more => format!(" (and {more} more of this entry)"),
            };
            Diagnostic::error("W040", entry.span, format!("data `{}`: {}{more}", entry.name, problem.error))
        })
        .collect()
}

/// A task sees only its inputs: `python train.py` needs `train.py` declared. Said before it fails.
fn unseen_files(project: &Path, workflow: &Workflow) -> Vec<Diagnostic> {
    const MOST_TASKS: usize = 1000;
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut seen = BTreeSet::new();
    for task in workflow.tasks.iter().take(MOST_TASKS) {
        let others = task.variants.iter().filter_map(|variant| variant.run.as_ref());
        let texts = std::iter::once(&task.run).chain(others).flat_map(|run| -> Vec<&str> {
            match run {
                Run::Shell(line) => line.0.split_whitespace().collect(),
                Run::Arguments(words) => words.iter().map(|word| &*word.0).collect(),
                Run::Planned(_) => Vec::new(),
            }
        });
        for word in texts {
            let plain = !word.starts_with(['/', '-', '.']) && word.contains('.') && !word.contains(['{', '$', '*']);
            let inputs = task.inputs.iter().filter_map(|input| match input.source {
                FileSource::Data(data) => Some(&workflow.data[data.index()].source),
                FileSource::Output { .. } | FileSource::Latest { .. } | FileSource::Search { .. } => None,
            });
            let covered = inputs.into_iter().any(|source| match source {
                DataSource::File(path) => path == word,
                DataSource::Directory(path) => word.starts_with(path.as_str()),
                _ => true,
            });
            if plain && !covered && seen.insert((task.name.as_str(), word)) && project.join(word).is_file() {
                let name = crate::reached::free_name(workflow, word);
                found.push(
                    Diagnostic::warning("W041", task.span, format!("task `{}` will not see `{word}`", task.name))
                        .label("a task sees only its declared inputs")
                        .help(format!(
                            "declare it under `data:` as `{name}: {word}` and write `in: [{name}]` and `{{{name}}}`"
                        )),
                );
            }
        }
    }
    found
}

/// The task sets with these names.
pub fn sets_named(plan: &Plan, names: &[String]) -> Result<Vec<SetId>, Failure> {
    names
        .iter()
        .map(|name| {
            plan.set_named(name).ok_or_else(|| {
                let known = plan.workflow.tasks.iter().map(|task| task.name.as_str());
                let near = tulpar_core::diagnostic::did_you_mean(name, known);
                let message = format!("the workflow has no task `{name}`");
                match near {
                    Some(near) => Failure::usage_with(message, format!("did you mean `{near}`?")),
                    None => Failure::usage(message),
                }
            })
        })
        .collect()
}
