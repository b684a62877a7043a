//! Which executors a run needs, and starting them.

use crate::failure::Failure;
use crate::settings;
use crossbeam_channel::Receiver;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tulpar_core::catalogue::DataConfiguration;
use tulpar_core::engine::Engine;
use tulpar_core::htcondor::pool::Pool;
use tulpar_core::ids::{AttemptId, NodeId};
use tulpar_core::plan::Plan;
use tulpar_core::resources::USUAL_GRACE;
use tulpar_core::site::{Node, NodeKind, Queue, Site, System};
use tulpar_core::workflow::Task;
use tulpar_exec::both::Both;
use tulpar_exec::condor::{self, Condor, CondorError};
use tulpar_exec::executor::{Executor, Observation};
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_exec::local::{self, Local};
use tulpar_exec::pilots::{self, LocalSupply, PilotNode, Pilots, Supply};
use tulpar_exec::remote::{Files, Remote};
use tulpar_exec::slurm::{self, Slurm, SlurmError};

pub(crate) type Started = (Box<dyn Executor>, Receiver<Observation>);

pub(crate) fn start(
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

/// It is named by `TULPAR_LAUNCH`, or lies beside this program.
fn launch_program() -> Result<PathBuf, Failure> {
    if let Some(named) = std::env::var_os("TULPAR_LAUNCH") {
        return Ok(PathBuf::from(named));
    }
    let here = std::env::current_exe().map_err(Failure::Launch)?;
    let folder = here.parent().unwrap_or(Path::new("/"));
    // In the folder of a build it lies below the name of the machine that it was built for.
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let built = folder.parent().map(|target| target.join(host).join("launch").join(LAUNCH));
    let found = [Some(folder.join(LAUNCH)), built].into_iter().flatten().find(|path| path.is_file());
    found.ok_or_else(|| Failure::Site {
        message: format!("{LAUNCH}, the program that travels to workers, is not beside {}", here.display()),
        hint: Some("build it with `cargo launch` in Tulpar's source, or say where it is with TULPAR_LAUNCH".to_owned()),
    })
}

/// What a pool offers beside its nodes, where that is known.
pub(crate) fn pool(queue: &Queue) -> Result<Option<Pool>, Failure> {
    match queue.system {
        System::Htcondor => Ok(Some(condor::pool()?)),
        System::Slurm => Ok(None),
    }
}

/// Whether some machine of HTCondor's pool meets this now.
pub(crate) fn any_machine(constraint: &str) -> Result<bool, Failure> {
    Ok(condor::any_machine(constraint)?)
}

/// The nodes of a site that does not list them: its own system knows.
pub(crate) fn find_nodes(site: &mut Site) -> Result<(), Failure> {
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
