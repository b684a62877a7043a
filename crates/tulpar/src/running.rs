//! Starting and resuming runs: from a request to a folder with everything that a driver needs.

use crate::choices::{PilotChoice, PlanningChoice, Several, WorkflowChoice};
use crate::dry_run::{self, DryRunView};
use crate::executable::{LaidOut, executable, lay_out};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::prepare::sets_named;
use crate::together::{Together, together};
use crate::{earlier, executors, forecast, mended, pilots, planning, queueing, recall, repository, revised};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tulpar_core::catalogue::{Catalogue, DataConfiguration};
use tulpar_core::engine::Policy;
use tulpar_core::plan::Plan;
use tulpar_core::planner::{JobKind, Known, Options};
use tulpar_exec::folder::{Project, RunFolder, SavedRun};

/// The version of Tulpar that plans and drives.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that a run can be asked for. A default value runs `workflow.yaml` of the current folder on this machine.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// The folder from which paths are meant; none is the current one.
    pub folder: Option<PathBuf>,
    pub workflow: WorkflowChoice,
    pub several: Several,
    /// Tasks after which the run stops, with all that they need.
    pub until: Vec<String>,
    /// Tasks that run even though their results are known.
    pub force: Vec<String>,
    pub policy: Policy,
    pub pilots: Option<PilotChoice>,
    pub planning: PlanningChoice,
}

/// Which run is resumed, and how strictly.
#[derive(Clone, Debug, Default)]
pub struct ResumeRequest {
    pub folder: Option<PathBuf>,
    /// The name of the run; none is the latest.
    pub run: Option<String>,
    /// Go on with the inputs as they were when the run began.
    pub as_planned: bool,
}

/// A run that waits for a driver.
#[derive(Clone, Debug)]
pub struct Begun {
    pub project: Project,
    pub run: RunFolder,
}

/// Reads the workflows of a request. Errors among their findings end it.
pub fn read(request: &RunRequest, messages: &dyn Messages) -> Result<Together, Failure> {
    let choice = WorkflowChoice { fetch_anew: !request.policy.cache, ..request.workflow.clone() };
    together(request.folder.as_deref(), &choice, &request.several, messages)
}

/// Plans a run and writes it down. [`driving::drive`](crate::driving::drive) runs it.
pub fn start(request: &RunRequest, messages: &dyn Messages) -> Result<Begun, Failure> {
    start_read(read(request, messages)?, request, messages)
}

/// The same with workflows that were read already; the files of the request do not count.
pub fn start_read(read: Together, request: &RunRequest, messages: &dyn Messages) -> Result<Begun, Failure> {
    let Together { project, files, mut plan, mut catalogue } = read;
    choose_tasks(&project, &mut plan, request)?;
    for site in catalogue.sites.iter_mut().filter(|site| sites_of(request).contains(&site.name)) {
        executors::find_nodes(site)?;
    }
    if let Some(pilots) = &request.pilots {
        pilots::check(pilots, &plan.workflow, &plan.site)?;
    }
    let policy = request.policy.clone();
    let planned = planned(&project, &mut plan, &policy, &catalogue, request, messages)?;
    let run = project.new_run(&plan.workflow.name)?;
    if let Some((laid_out, options)) = planned {
        let decisions = serde_json::to_vec(&laid_out.decisions).expect("decisions are plain data");
        let path = run.decisions();
        std::fs::write(&path, decisions).map_err(|source| Failure::Write { path, source })?;
        plan = executable(&project, &run.name, laid_out, &catalogue, &options)?;
        // The shared file system holds scratch too: tasks work where all nodes see it.
        let shared = options.data.or(plan.site.data) == Some(DataConfiguration::SharedFs);
        if let Some(scratch) = plan.site.scratch.as_ref().filter(|scratch| shared && scratch.shared) {
            run.put_sandboxes_in(&project.root().join(&scratch.path))?;
        }
    }
    // Before the forecast, which is made for the nodes that the run will have.
    plan.site = pilots::site(&plan.site, request.pilots.as_ref());
    write_down(&project, &run, &files, plan, policy, messages)?;
    Ok(Begun { project, run })
}

/// What a run of these workflows would do. Nothing is started, and nothing is written.
pub fn dry_run(read: Together, request: &RunRequest) -> Result<DryRunView, Failure> {
    let Together { project, mut plan, .. } = read;
    choose_tasks(&project, &mut plan, request)?;
    dry_run::decide(&project, plan, request.policy.clone())
}

/// A run that was interrupted, killed or failed, ready for a driver; or the run that takes its place because declarations of
/// outputs were mended.
pub fn resume(request: &ResumeRequest, messages: &dyn Messages) -> Result<Begun, Failure> {
    let project = Project::new(request.folder.as_deref().unwrap_or(Path::new(".")))?;
    let run = project.real_run(request.run.as_deref())?;
    if let Some(next) = mended::instead(&project, &run, messages)? {
        return Ok(Begun { project, run: next });
    }
    revised::check(&project, &run, request.as_planned, messages)?;
    Ok(Begun { project, run })
}

fn choose_tasks(project: &Project, plan: &mut Plan, request: &RunRequest) -> Result<(), Failure> {
    plan.until = sets_named(plan, &request.until)?;
    plan.forced = sets_named(plan, &request.force)?;
    recall::recall(project, plan);
    Ok(())
}

/// Writes down what is needed to drive a run.
pub(crate) fn write_down(
    project: &Project,
    run: &RunFolder,
    files: &[PathBuf],
    mut plan: Plan,
    policy: Policy,
    messages: &dyn Messages,
) -> Result<(), Failure> {
    earlier::expect(project, &mut plan);
    let workflow_file = files.iter().map(|file| match file.canonicalize() {
        Ok(file) => file.strip_prefix(project.root()).unwrap_or(&file).display().to_string(),
        Err(_) => file.display().to_string(),
    });
    let workflow_file = workflow_file.collect::<Vec<_>>().join(" + ");
    let plan = Arc::new(plan);
    for words in queueing::choices(&plan.workflow, &plan.site) {
        messages.note(&words);
    }
    forecast::keep(run, &plan, &policy, messages);
    let plan = Arc::unwrap_or_clone(plan);
    let code = repository::code(project.root(), files);
    run.save(&SavedRun { version: VERSION.into(), workflow_file, code, policy, plan })?;
    Ok(())
}

fn sites_of(request: &RunRequest) -> Vec<String> {
    request.workflow.site.iter().flat_map(|sites| sites.split(',')).map(|site| site.trim().to_owned()).collect()
}

/// The jobs of a run for which something was said about planning.
fn planned(
    project: &Project,
    plan: &mut Plan,
    policy: &Policy,
    catalogue: &Catalogue,
    request: &RunRequest,
    messages: &dyn Messages,
) -> Result<Option<(LaidOut, Options)>, Failure> {
    let sites = sites_of(request);
    let staged =
        |name: &String| catalogue.site(name).is_some_and(|site| site.data == Some(DataConfiguration::NonSharedFs));
    if !request.planning.any() && sites.len() < 2 && !sites.iter().any(staged) {
        return Ok(None);
    }
    if !plan.workflow.members.is_empty() {
        return Err(Failure::usage_with(
            "several workflows in one run cannot be combined with clusters, staging and several sites",
            "leave out what is said about planning, or start a run for each workflow",
        ));
    }
    if !plan.until.is_empty() {
        return Err(Failure::usage_with(
            "`--until` cannot be combined with clusters and staging",
            "leave out what is said about planning, or take the tasks behind it out of the workflow",
        ));
    }
    let options = request.planning.options(Options::default(), &sites);
    let known = Known { runtimes: earlier::runtimes(project), images: earlier::image_sizes(project, plan) };
    let laid_out = lay_out(project, plan.clone(), policy.clone(), catalogue, &options, &known)?;
    let jobs = laid_out.layout.count(JobKind::Compute);
    messages.note(&format!(
        "{} in {}, {}",
        crate::view::count(laid_out.graph.tasks.len(), "task"),
        crate::view::count(jobs, "job"),
        planning::words(&options).join(", ")
    ));
    Ok(Some((laid_out, options)))
}
