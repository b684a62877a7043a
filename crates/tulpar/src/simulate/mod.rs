//! A workflow, or an earlier run once more, in virtual time on a modelled site, with the engine of real runs.

pub mod imitate;
mod keep;
pub mod site;
pub mod source;
pub mod view;

use crate::choices::{PlanningChoice, ResourceChoice, Several, WorkflowChoice, WorldChoice};
use crate::failure::Failure;
use crate::messages::Messages;
use imitate::Case;
use keep::Keeper;
use source::{Source, Wanted};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use tulpar_core::engine::{Engine, Policy};
use tulpar_core::units::Timestamp;
use view::SimulationView;

pub const USUAL_SEED: u64 = 1;

/// What is simulated, on which site, and whether the simulated run is kept.
#[derive(Clone, Debug, Default)]
pub struct SimulateRequest {
    /// The folder from which paths are meant; none is the current one.
    pub folder: Option<PathBuf>,
    /// A workflow file, or the name of an earlier run in its place.
    pub workflow: WorkflowChoice,
    pub several: Several,
    pub planning: PlanningChoice,
    pub resources: ResourceChoice,
    pub world: WorldChoice,
    pub policy: Policy,
    /// Keep the simulated run in a folder of its own.
    pub keep: bool,
}

impl SimulateRequest {
    /// Reads the workflow, or the run.
    pub fn source(&self, messages: &dyn Messages) -> Result<Source, Failure> {
        let wanted = Wanted {
            workflow: &self.workflow,
            several: &self.several,
            planning: &self.planning,
            resources: &self.resources,
        };
        source::source(self.folder.as_deref(), &wanted, messages)
    }
}

/// Reads and simulates to the end.
pub fn simulate(request: &SimulateRequest, messages: &dyn Messages) -> Result<SimulationView, Failure> {
    let view = simulate_read(request.source(messages)?, request, messages, |_, _| ControlFlow::Continue(()))?;
    view.ok_or_else(|| Failure::Bug("nobody stopped a simulation".into()))
}

/// Simulates what was read. None when `watch`, which sees the engine after every step, had enough: then nothing is kept.
pub fn simulate_read(
    mut source: Source,
    request: &SimulateRequest,
    messages: &dyn Messages,
    mut watch: impl FnMut(&Engine, Timestamp) -> ControlFlow<()>,
) -> Result<Option<SimulationView>, Failure> {
    source.plan.site = site::site(&source.site, &request.resources)?;
    let seed = request.world.seed.unwrap_or(USUAL_SEED);
    let model = site::model(&source.plan.site, &request.world, &source.runtimes, seed);
    let Source { project, workflow_file, plan, runtimes, .. } = source;
    let unknown = runtimes.iter().filter(|runtime| runtime.is_none()).count();
    let case = Case { plan: Arc::new(plan), policy: imitate::policy(request.policy.clone()), model };
    let mut keeper = match request.keep {
        true => Some(Keeper::start(&project, &case.plan)?),
        false => None,
    };
    let first = keeper.as_ref().map(|keeper| keeper.first(&case.plan, seed));
    let imitated = imitate::imitate(&case, first.as_ref(), |engine, at, events| {
        if let Some(keeper) = &mut keeper {
            keeper.append(events)?;
        }
        Ok(watch(engine, at))
    })?;
    let Some(imitated) = imitated else { return Ok(None) };
    let mut view = SimulationView::new(&case, &imitated, unknown);
    if let Some(keeper) = keeper {
        view.run = Some(keeper.finish(&case, workflow_file, &view, messages)?);
    }
    Ok(Some(view))
}
