//! What is simulated: a workflow file of any format, or the plan of an earlier run; and how long its tasks take.

use crate::choices::{PlanningChoice, ResourceChoice, Several, WorkflowChoice};
use crate::executable::{executable, lay_out};
use crate::failure::Failure;
use crate::findings::{self, Text};
use crate::messages::Messages;
use crate::prepare::{self, Surveyed};
use crate::{earlier, planning, replay, settings};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tulpar_core::catalogue::{Catalogue, LOCAL};
use tulpar_core::diagnostic::{Diagnostic, MORE, Severity};
use tulpar_core::engine::Policy;
use tulpar_core::event::Event;
use tulpar_core::plan::Plan;
use tulpar_core::planner::{Known, Options};
use tulpar_core::site::Site;
use tulpar_core::workflow::{self, Workflow};
use tulpar_exec::folder::{Project, RunFolder};

pub struct Source {
    pub project: Project,
    pub workflow_file: String,
    /// Its site is still to be said.
    pub plan: Plan,
    pub catalogue: Catalogue,
    /// The site that was named, or else the one at hand.
    pub site: Site,
    /// Of each task set what is known.
    pub runtimes: Vec<Option<Duration>>,
}

/// The choice of a source.
pub struct Wanted<'a> {
    pub workflow: &'a WorkflowChoice,
    pub several: &'a Several,
    pub planning: &'a PlanningChoice,
    pub resources: &'a ResourceChoice,
}

/// Findings that matter only when the workflow runs.
const ONLY_TO_RUN: [&str; 1] = ["P001"];

/// All that were named, as one plan.
pub fn source(folder: Option<&Path>, arguments: &Wanted<'_>, messages: &dyn Messages) -> Result<Source, Failure> {
    let several = arguments.several;
    if several.more.is_empty() {
        return one(folder, arguments.workflow, arguments, messages);
    }
    if arguments.planning.any() {
        return Err(Failure::usage_with(
            "several workflows cannot be planned together in a simulation",
            "leave out what is said about planning, or simulate each by itself",
        ));
    }
    if !several.weights.is_empty() && several.weights.len() != several.more.len() + 1 {
        return Err(Failure::usage_with(
            format!("`--weights` has {} numbers for {} workflows", several.weights.len(), several.more.len() + 1),
            "write one number for each workflow, in their order",
        ));
    }
    let wanted = &arguments.workflow.params;
    let first = settings::workflow_file(folder, arguments.workflow).ok();
    let first = arguments.workflow.file.clone().or(first.and_then(|file| Some(file.file_name()?.into())));
    let files = first.iter().chain(&several.more);
    let mut sources = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for file in files {
        let path = folder.unwrap_or(Path::new(".")).join(file);
        let own = match path.is_file() {
            true => workflow::parameters(&settings::read(&path)?),
            false => Vec::new(),
        };
        let params = wanted.iter().filter(|(name, _)| own.contains(name)).cloned().collect();
        known.extend(own);
        let choice = WorkflowChoice { file: Some(file.clone()), params, ..arguments.workflow.clone() };
        sources.push(one(folder, &choice, arguments, messages)?);
    }
    if let Some((name, _)) = wanted.iter().find(|(name, _)| !known.contains(name)) {
        return Err(Failure::usage(format!("none of the workflows has a parameter `{name}`")));
    }
    let runtimes: Vec<Option<Duration>> = sources.iter().flat_map(|source| source.runtimes.iter().copied()).collect();
    let workflow_file = sources.iter().map(|source| source.workflow_file.as_str()).collect::<Vec<_>>().join(" ");
    let mut plans = Vec::new();
    let mut whole: Option<Source> = None;
    for mut source in sources {
        plans.push(std::mem::replace(&mut source.plan, Plan::new(Workflow::default(), Vec::new(), Site::default())));
        whole.get_or_insert(source);
    }
    let expected = expected_of(&plans);
    let mut plan = Plan::join(plans, &several.weights);
    plan.expected = expected;
    match whole {
        Some(first) => Ok(Source { workflow_file, plan, runtimes, ..first }),
        None => Err(Failure::usage("no workflow was named")),
    }
}

/// What earlier runs say of the tasks of several plans, in their order.
fn expected_of(plans: &[Plan]) -> Vec<Option<Duration>> {
    let of = |plan: &Plan| {
        let more = std::iter::repeat(None);
        plan.expected.iter().copied().chain(more).take(plan.workflow.tasks.len()).collect::<Vec<_>>()
    };
    plans.iter().flat_map(of).collect()
}

/// A file, or a run of this folder.
fn one(
    folder: Option<&Path>,
    choice: &WorkflowChoice,
    arguments: &Wanted<'_>,
    messages: &dyn Messages,
) -> Result<Source, Failure> {
    if let Some(file) = &choice.file
        && !folder.unwrap_or(Path::new(".")).join(file).exists()
        && let Some(name) = file.to_str()
        && let Ok(project) = replay::project(folder)
        && let Ok(run) = project.run(Some(name))
    {
        return of_run(project, run, arguments, messages);
    }
    of_file(prepare::survey(folder, choice, choice.site.as_deref(), messages)?, arguments, messages)
}

fn of_file(surveyed: Surveyed, arguments: &Wanted<'_>, messages: &dyn Messages) -> Result<Source, Failure> {
    let Surveyed { project, file, text, plan, findings, catalogue, .. } = surveyed;
    let is_later = |code: &str| ONLY_TO_RUN.contains(&code);
    let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
    let alike = findings.iter().filter(is_error).all(|finding| finding.code == MORE || is_later(finding.code));
    let now: Vec<Diagnostic> =
        findings.into_iter().filter(|finding| !(is_later(finding.code) || alike && finding.code == MORE)).collect();
    messages.findings(&Text { name: file.display().to_string(), text: &text }, &now);
    let mut plan = plan.filter(|_| !findings::any_error(&now)).ok_or(Failure::Findings)?;
    let site = chosen(arguments, &catalogue)?;
    if arguments.planning.any() {
        plan.site = super::site::site(&site, arguments.resources)?;
        plan = planned(&project, plan, &catalogue, arguments, messages)?;
    }
    earlier::expect(&project, &mut plan);
    let runtimes = tulpar_sim::declared(&plan);
    let workflow_file = file.display().to_string();
    Ok(Source { project, workflow_file, plan, catalogue, site, runtimes })
}

/// The site that was named; for an invented one any will do.
fn chosen(arguments: &Wanted<'_>, catalogue: &Catalogue) -> Result<Site, Failure> {
    if arguments.resources.cpus.is_some() && arguments.workflow.site.is_none() {
        return Ok(Site::default());
    }
    settings::site(arguments.workflow, catalogue)
}

/// Jobs as the planner would make them for a run.
fn planned(
    project: &Project,
    plan: Plan,
    catalogue: &Catalogue,
    arguments: &Wanted<'_>,
    messages: &dyn Messages,
) -> Result<Plan, Failure> {
    let sites: Vec<String> = arguments.workflow.site.iter().cloned().collect();
    // The planner chooses among the sites that it knows: the one that was said takes the place of the one at hand.
    let mut catalogue = catalogue.clone();
    let name = sites.first().map_or(LOCAL, String::as_str);
    if let Some(known) = catalogue.sites.iter_mut().find(|site| site.name == name) {
        known.nodes = plan.site.nodes.clone();
    }
    let options = arguments.planning.options(Options::default(), &sites);
    let known = Known { runtimes: earlier::runtimes(project), images: earlier::image_sizes(project, &plan) };
    let policy = Policy { cache: false, ..Policy::default() };
    let name = plan.workflow.name.clone();
    let laid_out = lay_out(project, plan, policy, &catalogue, &options, &known)?;
    messages.note(&format!("planned with {}", planning::words(&options).join(", ")));
    executable(project, &name, laid_out, &catalogue, &options)
}

/// A run once more: its own plan, and its tasks as long as they took.
fn of_run(
    project: Project,
    run: RunFolder,
    arguments: &Wanted<'_>,
    messages: &dyn Messages,
) -> Result<Source, Failure> {
    let mut sums: Vec<(Duration, u32)> = Vec::new();
    let replayed = replay::open_with(messages, run.clone(), |engine, entry| {
        if let Event::Ended { attempt, report, .. } = &entry.event
            && report.ending.is_success()
        {
            let set = engine.graph().set_of(attempt.job).index();
            sums.resize(sums.len().max(set + 1), (Duration::ZERO, 0));
            sums[set].0 += report.ended.since(report.started);
            sums[set].1 += 1;
        }
    })?;
    let mut plan = run.load()?.plan;
    let catalogue = settings::catalogue(&arguments.workflow.catalogue, project.root(), messages)?;
    let site = match arguments.workflow.site {
        Some(_) => settings::site(arguments.workflow, &catalogue)?,
        None => plan.site.clone(),
    };
    plan.forced.clear();
    let mut runtimes = tulpar_sim::declared(&plan);
    for (runtime, (sum, count)) in runtimes.iter_mut().zip(sums) {
        if count > 0 {
            *runtime = Some(sum / count);
        }
    }
    plan.expected.clone_from(&runtimes);
    Ok(Source { project, workflow_file: replayed.workflow_file, plan, catalogue, site, runtimes })
}
