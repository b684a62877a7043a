//! `tulpar run` and `tulpar resume`.

use super::drive::{VERSION, drive};
use super::dry_run::dry_run;
use super::executable::{LaidOut, executable, lay_out};
use super::prepare::sets_named;
use super::together::{Together, together};
use crate::arguments::{LaunchArguments, ResumeArguments, RunArguments, WorkflowChoice};
use crate::failure::{Exit, Failure};
use crate::{earlier, executors, forecast, planning, print, queueing, recall, repository, watch};
use clap::ValueEnum;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use tulpar_core::catalogue::{Catalogue, DataConfiguration};
use tulpar_core::engine::Policy;
use tulpar_core::plan::Plan;
use tulpar_core::planner::{JobKind, Known, Options};
use tulpar_exec::folder::{Project, RunFolder, SavedRun};

pub(crate) fn run(folder: Option<&Path>, arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let choice = WorkflowChoice { fetch_anew: arguments.no_cache, ..arguments.workflow.clone() };
    run_together(together(folder, &choice, &arguments.several)?, arguments)
}

/// Runs workflows that were read already.
pub(crate) fn run_together(read: Together, arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let Together { project, files, mut plan, mut catalogue } = read;
    plan.until = sets_named(&plan, &arguments.until)?;
    plan.forced = sets_named(&plan, &arguments.force)?;
    let policy = Policy { cache: !arguments.no_cache, fail_fast: arguments.fail_fast, ..arguments.scheduling.policy() };
    if arguments.watch {
        watch::possible()?;
    }
    recall::recall(&project, &mut plan);
    if arguments.dry_run {
        return dry_run(&project, plan, policy, arguments.json);
    }
    for site in catalogue.sites.iter_mut().filter(|site| sites_of(arguments).contains(&site.name)) {
        executors::find_nodes(site)?;
    }
    arguments.pilots.check(&plan.workflow, &plan.site)?;
    let planned = planned(&project, &mut plan, &policy, &catalogue, arguments)?;
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
    plan.site = arguments.pilots.site(&plan.site)?;
    start(&project, &run, &files, plan, policy)?;
    go(&project, &run, &arguments.launch, Manner::new(arguments.detach, arguments.watch, arguments.json))
}

/// Writes down what is needed to drive a run.
pub(super) fn start(
    project: &Project,
    run: &RunFolder,
    files: &[PathBuf],
    mut plan: Plan,
    policy: Policy,
) -> Result<(), Failure> {
    earlier::expect(project, &mut plan);
    let workflow_file = files.iter().map(|file| match file.canonicalize() {
        Ok(file) => file.strip_prefix(project.root()).unwrap_or(&file).display().to_string(),
        Err(_) => file.display().to_string(),
    });
    let workflow_file = workflow_file.collect::<Vec<_>>().join(" + ");
    let plan = Arc::new(plan);
    for words in queueing::choices(&plan.workflow, &plan.site) {
        print::note(&words);
    }
    forecast::keep(run, &plan, &policy);
    let plan = Arc::unwrap_or_clone(plan);
    let code = repository::code(project.root(), files);
    run.save(&SavedRun { version: VERSION.into(), workflow_file, code, policy, plan })?;
    Ok(())
}

fn sites_of(arguments: &RunArguments) -> Vec<String> {
    arguments.workflow.site.iter().flat_map(|sites| sites.split(',')).map(|site| site.trim().to_owned()).collect()
}

/// The jobs of a run for which something was said about planning.
fn planned(
    project: &Project,
    plan: &mut Plan,
    policy: &Policy,
    catalogue: &Catalogue,
    arguments: &RunArguments,
) -> Result<Option<(LaidOut, Options)>, Failure> {
    let sites = sites_of(arguments);
    let staged =
        |name: &String| catalogue.site(name).is_some_and(|site| site.data == Some(DataConfiguration::NonSharedFs));
    if !arguments.planning.any() && sites.len() < 2 && !sites.iter().any(staged) {
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
    let options = arguments.planning.options(Options::default(), &sites);
    let known = Known { runtimes: earlier::runtimes(project), images: earlier::image_sizes(project, plan) };
    let laid_out = lay_out(project, plan.clone(), policy.clone(), catalogue, &options, &known)?;
    let jobs = laid_out.layout.count(JobKind::Compute);
    print::note(&format!(
        "{} in {}, {}",
        crate::view::count(laid_out.graph.tasks.len(), "task"),
        crate::view::count(jobs, "job"),
        planning::words(&options).join(", ")
    ));
    Ok(Some((laid_out, options)))
}

pub(crate) fn resume(folder: Option<&Path>, arguments: &ResumeArguments) -> Result<ExitCode, Failure> {
    let project = Project::new(folder.unwrap_or(Path::new(".")))?;
    let run = project.real_run(arguments.run.run.as_deref())?;
    if arguments.watch {
        watch::possible()?;
    }
    if let Some(next) = super::mended::instead(&project, &run)? {
        return go(&project, &next, &arguments.launch, Manner::new(arguments.detach, arguments.watch, arguments.json));
    }
    super::revised::check(&project, &run, arguments.as_planned)?;
    go(&project, &run, &arguments.launch, Manner::new(arguments.detach, arguments.watch, arguments.json))
}

/// How a run is to be driven.
enum Manner {
    Here { json: bool },
    Detached,
    Watched,
}

impl Manner {
    fn new(detach: bool, watch: bool, json: bool) -> Self {
        match (detach, watch) {
            (true, _) => Self::Detached,
            (_, true) => Self::Watched,
            _ => Self::Here { json },
        }
    }
}

fn go(project: &Project, run: &RunFolder, launch: &LaunchArguments, manner: Manner) -> Result<ExitCode, Failure> {
    match manner {
        Manner::Here { json } => drive(project, run, launch, json),
        Manner::Detached => {
            let log = detach(project, run, launch)?;
            print::line(&run.name);
            print::note(&format!(
                "Running in the background. `tulpar watch {0}` shows it, `tulpar cancel --run {0}` ends it; its words are in {1}",
                run.name,
                log.display()
            ));
            Ok(Exit::Done.into())
        }
        Manner::Watched => {
            detach(project, run, launch)?;
            Ok(watch::exit(watch::watch(Some(project.root()), Some(&run.name))?).into())
        }
    }
}

/// The process that `--detach` leaves behind.
pub(crate) fn drive_detached(folder: Option<&Path>, run: &str, launch: &LaunchArguments) -> Result<ExitCode, Failure> {
    let project = Project::new(folder.unwrap_or(Path::new(".")))?;
    let run = project.run(Some(run))?;
    drive(&project, &run, launch, false)
}

/// Starts the driver in a session of its own, with its words in a file, and returns at once.
fn detach(project: &Project, run: &RunFolder, launch: &LaunchArguments) -> Result<PathBuf, Failure> {
    let log = run.path.join("driver.log");
    let file = File::options().create(true).append(true).open(&log);
    let file = file.map_err(|source| Failure::Write { path: log.clone(), source })?;
    let program = std::env::current_exe().map_err(Failure::Launch)?;
    let keep = launch.keep.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let mut command = Command::new(program);
    command
        .arg("-C")
        .arg(project.root())
        .args(["__drive", &run.name, "--sample", &launch.sample, "--keep", &keep])
        .args(launch.link_large.then_some("--link-large"))
        .args(launch.cache_quota.iter().flat_map(|size| ["--cache-quota", size.as_str()]))
        .args(launch.hooks.words())
        .stdin(Stdio::null())
        .stdout(file.try_clone().map_err(Failure::Launch)?)
        .stderr(file);
    // SAFETY: setsid is async-signal-safe and touches nothing that the parent shares.
    unsafe {
        command.pre_exec(|| rustix::process::setsid().map(|_| ()).map_err(std::io::Error::from));
    }
    command.spawn().map_err(Failure::Launch)?;
    Ok(log)
}
