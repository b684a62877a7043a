//! `tulpar export dagman|slurm`: a folder in which another system runs the workflow.

use crate::failure::Exit;
use crate::print;
use crate::reporting::{ExportSystem, HandOverArguments};
use crate::terminal::Terminal;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tulpar::Failure;
use tulpar::prepare::{self, project_of};
use tulpar::replay;
use tulpar::{settings, view};
use tulpar_core::diagnostic::IMPOSSIBLE_REQUEST;
use tulpar_core::plan::{Graph, Plan};
use tulpar_formats::export::{self, Bundle};

pub(crate) fn hand_over(folder: Option<&Path>, system: &ExportSystem) -> Result<ExitCode, Failure> {
    let (arguments, write): (_, fn(&Graph) -> _) = match system {
        ExportSystem::Dagman(arguments) => (arguments, export::dagman),
        ExportSystem::Slurm(arguments) => (arguments, export::slurm),
    };
    let (root, plan) = chosen(folder, arguments)?;
    let graph = Graph::new(Arc::new(plan)).map_err(|cycle| Failure::usage(cycle.to_string()))?;
    let bundle = write(&graph).map_err(|error| {
        Failure::usage_with(error.to_string(), "`tulpar run --site` runs it on HTCondor or Slurm as it is")
    })?;
    let to = folder.unwrap_or(Path::new("")).join(&arguments.to);
    let taken = std::fs::read_dir(&to).is_ok_and(|mut entries| entries.next().is_some());
    if taken || to.is_file() {
        let message = format!("{} is there already, and is not overwritten", to.display());
        return Err(Failure::usage_with(message, "choose another folder, or remove it"));
    }
    place(&bundle, &to, &root)?;
    for note in &bundle.notes {
        print::warning(note);
    }
    let start = match system {
        ExportSystem::Dagman(_) => "condor_submit_dag workflow.dag",
        ExportSystem::Slurm(_) => "./submit.sh",
    };
    let jobs = view::count(bundle.jobs, "job");
    print::note(&format!("{jobs} written to {}; start them there with `{start}`", to.display()));
    Ok(Exit::Done.into())
}

/// The plan of a file, or of a run that has that name.
fn chosen(folder: Option<&Path>, arguments: &HandOverArguments) -> Result<(PathBuf, Plan), Failure> {
    let here = folder.unwrap_or(Path::new(""));
    if let Some(name) = &arguments.workflow.file
        && !here.join(name).exists()
        && let Ok(project) = replay::project(folder)
        && let Ok(run) = project.run(name.to_str())
    {
        let replayed = replay::open_with(&Terminal, run, |_, _| {})?;
        return Ok((project.root().to_owned(), Plan::clone(replayed.engine.graph().plan())));
    }
    let mut prepared = prepare::prepare(folder, &arguments.workflow.choice(), &Terminal)?;
    if arguments.workflow.site.is_none() {
        // It is written for another place than this machine.
        prepared.findings.retain(|finding| finding.code != IMPOSSIBLE_REQUEST);
    }
    let plan = prepared.plan_or_findings(&Terminal)?;
    let root = project_of(&settings::workflow_file(folder, &arguments.workflow.choice())?)?.root().to_owned();
    Ok((root, plan))
}

fn place(bundle: &Bundle, to: &Path, root: &Path) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Failure::Write { path, source }
    };
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    for folder in &bundle.folders {
        let path = to.join(folder);
        std::fs::create_dir_all(&path).map_err(failed(&path))?;
    }
    let beside = |path: &Path| path.parent().map(std::fs::create_dir_all).unwrap_or(Ok(()));
    for file in &bundle.files {
        let path = to.join(&file.path);
        beside(&path).map_err(failed(&path))?;
        std::fs::write(&path, &file.text).map_err(failed(&path))?;
        if file.executable {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, mode).map_err(failed(&path))?;
        }
    }
    for link in &bundle.links {
        let path = to.join(&link.path);
        beside(&path).map_err(failed(&path))?;
        std::os::unix::fs::symlink(root.join(&link.target), &path).map_err(failed(&path))?;
    }
    Ok(())
}
