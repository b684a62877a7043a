//! Which executors a run needs, and starting them.

use crate::failure::Failure;
use crate::settings;
use crossbeam_channel::Receiver;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tulpar_core::catalogue::DataConfiguration;
use tulpar_core::engine::Engine;
use tulpar_core::ids::{AttemptId, NodeId};
use tulpar_core::parcel::{FORMAT, format_in};
use tulpar_core::plan::Plan;
use tulpar_core::resources::USUAL_GRACE;
use tulpar_core::site::{Node, NodeKind, Queue, Site, System};
use tulpar_core::workflow::Task;
use tulpar_exec::both::Both;
use tulpar_exec::condor::text::pool::Pool;
use tulpar_exec::condor::{self, Condor, CondorError};
use tulpar_exec::executor::{Executor, FromExecutor};
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_exec::local::{self, Local};
use tulpar_exec::pilots::{self, LocalSupply, PilotNode, Pilots, Supply};
use tulpar_exec::remote::{Files, Remote};
use tulpar_exec::slurm::{self, Slurm, SlurmError};

pub type Started = (Box<dyn Executor>, Receiver<FromExecutor>);

pub fn start(
    project: &Project,
    folder: &RunFolder,
    engine: &Engine,
    mut options: tulpar_launch::Options,
) -> Result<Started, Failure> {
    let site = &engine.plan().site;
    // Sandboxes that all nodes see are on no node.
    if !folder.attempts().is_symlink() {
        let own = |node: &Node| Some((node.name.clone(), project.root().join(node.folder.as_ref()?)));
        options.node_folders = site.nodes.iter().filter_map(own).collect();
    }
    if site.nodes.iter().any(|node| node.kind == NodeKind::Pilot) {
        return start_pilots(project, folder, engine.plan());
    }
    let (local, observations) = Local::start(local::folders(project, folder), options).map_err(Failure::Launch)?;
    let here: Started = (Box::new(local), observations);
    let Some(queue) = &site.queue else { return Ok(here) };
    let is_queue =
        |node: &NodeId| site.nodes.get(node.index()).is_some_and(|node| matches!(node.kind, NodeKind::Queue(_)));
    let queued: BTreeSet<AttemptId> = engine
        .live()
        .filter(|(_, placement, _)| placement.nodes.iter().any(|share| is_queue(&share.node)))
        .map(|(attempt, ..)| attempt)
        .collect();
    let remote = Remote::new(project.clone(), folder.clone(), Box::new(settings::secret));
    let queue = start_queue(remote, queue.clone(), site)?;
    let (both, observations) = Both::new(here, queue, queued);
    Ok((Box::new(both), observations))
}

fn start_pilots(project: &Project, folder: &RunFolder, plan: &Plan) -> Result<Started, Failure> {
    let site = &plan.site;
    let remote = Remote::new(project.clone(), folder.clone(), Box::new(settings::secret));
    let launch = launch_program()?;
    let supply: Box<dyn Supply> = match &site.queue {
        None => {
            let folder = pilots::folder(&folder.path).join("local");
            Box::new(LocalSupply::new(launch, Vec::new(), &folder, project.root()).map_err(Failure::Launch)?)
        }
        Some(queue) => match queue.system {
            System::Htcondor => Box::new(condor::CondorSupply::new(queue.clone(), launch, &folder.path)?),
            System::Slurm => Box::new(slurm::SlurmSupply::new(queue.clone(), launch, &folder.path)?),
        },
    };
    let nodes = site.nodes.iter().enumerate().map(|(index, node)| PilotNode {
        id: NodeId::from(index),
        name: node.name.clone(),
        capacity: pilots::real(&node.capacity),
    });
    let tasks = &plan.workflow.tasks;
    let grace = tasks.iter().filter_map(|task| task.settings.grace).max().unwrap_or(USUAL_GRACE);
    let options = pilots::Options {
        wall: site.pilot_time,
        grace: grace.max(USUAL_GRACE),
        starts_containers: tasks.iter().any(Task::starts_containers),
        supply: Some(supply),
        ..crate::pilots::options(site.pilot_address.as_ref())
    };
    let started = Pilots::start(remote, nodes.collect(), options);
    let failed = |error| crate::pilots::not_started(&error, site.pilot_address.as_ref());
    let (pilots, observations) = started.map_err(failed)?;
    Ok((Box::new(pilots), observations))
}

fn start_queue(remote: Remote, queue: Queue, site: &Site) -> Result<Started, Failure> {
    let launch = launch_program()?;
    let files = match site.data {
        Some(DataConfiguration::SharedFs) => Files::Shared,
        _ => Files::Sent,
    };
    match queue.system {
        System::Htcondor => {
            let (condor, observations) = Condor::start(remote, condor::Options { queue, files, launch })?;
            Ok((Box::new(condor), observations))
        }
        System::Slurm => {
            let (slurm, observations) = Slurm::start(remote, &queue, launch)?;
            Ok((Box::new(slurm), observations))
        }
    }
}

/// The program that runs jobs on workers.
const LAUNCH: &str = "tulpar-launch";

/// It is named by `TULPAR_LAUNCH`, or lies beside this program. One that reads other parcels than are sent is none.
fn launch_program() -> Result<PathBuf, Failure> {
    let candidates = match std::env::var_os("TULPAR_LAUNCH") {
        Some(named) => vec![PathBuf::from(named)],
        None => beside_us()?,
    };
    let mut problem = None;
    for path in candidates {
        match check_launch(&path) {
            Ok(()) => return Ok(path),
            Err(said) => drop(problem.get_or_insert(said)),
        }
    }
    Err(Failure::Site {
        message: problem
            .unwrap_or_else(|| format!("{LAUNCH}, the program that travels to workers, is not beside this one")),
        hint: Some("build it with `cargo launch` in Tulpar's source, or say where it is with TULPAR_LAUNCH".to_owned()),
    })
}

fn beside_us() -> Result<Vec<PathBuf>, Failure> {
    let here = std::env::current_exe().map_err(Failure::Launch)?;
    let folder = here.parent().unwrap_or(Path::new("/"));
    // In the folder of a build it lies below the name of the machine that it was built for.
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let built = folder.parent().map(|target| target.join(host).join("launch").join(LAUNCH));
    Ok([Some(folder.join(LAUNCH)), built].into_iter().flatten().filter(|path| path.is_file()).collect())
}

/// What is wrong with it, if anything.
fn check_launch(path: &Path) -> Result<(), String> {
    match Command::new(path).arg("--version").output() {
        Ok(said) if format_in(&String::from_utf8_lossy(&said.stdout)) == Some(FORMAT) => Ok(()),
        Ok(_) => Err(format!(
            "{} belongs to another version of Tulpar than this ({}): it would not understand its jobs",
            path.display(),
            env!("CARGO_PKG_VERSION")
        )),
        // One for machines of another kind than this cannot be asked here.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => Ok(()),
        Err(error) => Err(format!("{}, the program that travels to workers: {error}", path.display())),
    }
}

/// What a pool offers beside its nodes, where that is known.
pub fn pool(queue: &Queue) -> Result<Option<Pool>, Failure> {
    match queue.system {
        System::Htcondor => Ok(Some(condor::pool()?)),
        System::Slurm => Ok(None),
    }
}

/// Whether some machine of HTCondor's pool meets this now.
pub fn any_machine(constraint: &str) -> Result<bool, Failure> {
    Ok(condor::any_machine(constraint)?)
}

/// The nodes of a site that does not list them: its own system knows.
pub fn find_nodes(site: &mut Site) -> Result<(), Failure> {
    let Some(queue) = &site.queue else { return Ok(()) };
    if site.nodes.is_empty() {
        site.nodes = match queue.system {
            System::Htcondor => condor::pool()?.into_nodes(),
            System::Slurm => slurm::nodes(queue)?,
        };
    }
    Ok(())
}

impl From<SlurmError> for Failure {
    fn from(error: SlurmError) -> Self {
        Failure::Site { message: error.to_string(), hint: None }
    }
}

impl From<CondorError> for Failure {
    fn from(error: CondorError) -> Self {
        let hint = match &error {
            CondorError::NoCommand(_) => None,
            CondorError::Away(_) => Some("`condor_status` and `condor_q` show whether the pool is there".to_owned()),
            _ => None,
        };
        Failure::Site { message: error.to_string(), hint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_program_for_machines_of_another_kind_is_not_asked_here() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("foreign");
        std::fs::write(&path, b"\x7fELF").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(check_launch(&path), Ok(()));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(check_launch(&path).unwrap_err().contains("Permission denied"));
    }
}
