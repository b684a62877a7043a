//! `tulpar run` and `tulpar resume`.

use super::drive::drive;
use super::dry_run;
use crate::arguments::{LaunchArguments, ResumeArguments, RunArguments};
use crate::failure::Exit;
use crate::terminal::Terminal;
use crate::{print, watch};
use clap::ValueEnum;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use tulpar::running;
use tulpar::together::Together;
use tulpar::{Begun, Failure, RunRequest};
use tulpar_exec::folder::{Project, RunFolder};

pub(crate) fn run(folder: Option<&Path>, arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let request = arguments.request(folder)?;
    let read = running::read(&request, &Terminal)?;
    if arguments.dry_run {
        return dry_run::show(&running::dry_run(read, &request)?, arguments.json);
    }
    let manner = Manner::new(arguments.detach, arguments.watch, arguments.json);
    run_read(read, &request, &arguments.launch, manner)
}

/// Runs workflows that were read already.
pub(super) fn run_read(
    read: Together,
    request: &RunRequest,
    launch: &LaunchArguments,
    manner: Manner,
) -> Result<ExitCode, Failure> {
    if matches!(manner, Manner::Watched) {
        watch::possible()?;
    }
    let Begun { project, run } = running::start_read(read, request, &Terminal)?;
    go(&project, &run, launch, manner)
}

pub(crate) fn resume(folder: Option<&Path>, arguments: &ResumeArguments) -> Result<ExitCode, Failure> {
    if arguments.watch {
        watch::possible()?;
    }
    let Begun { project, run } = tulpar::resume(&arguments.request(folder), &Terminal)?;
    go(&project, &run, &arguments.launch, Manner::new(arguments.detach, arguments.watch, arguments.json))
}

/// How a run is to be driven.
pub(super) enum Manner {
    Here { json: bool },
    Detached,
    Watched,
}

impl Manner {
    pub(super) fn new(detach: bool, watch: bool, json: bool) -> Self {
        match (detach, watch) {
            (true, _) => Self::Detached,
            (_, true) => Self::Watched,
            _ => Self::Here { json },
        }
    }
}

fn go(project: &Project, run: &RunFolder, launch: &LaunchArguments, manner: Manner) -> Result<ExitCode, Failure> {
    match manner {
        Manner::Here { json } => Ok(drive(project, run, &launch.choice()?, json)?.into()),
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
    Ok(drive(&project, &run, &launch.choice()?, false)?.into())
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
