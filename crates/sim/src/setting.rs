//! One plan under one policy in one modelled world, simulated from its beginning to its end. It compares nothing.

use crate::{Model, Simulation, Summary, World};
use serde::Serialize;
use std::ops::ControlFlow;
use std::sync::Arc;
use tulpar_core::engine::Policy;
use tulpar_core::event::Outcome;
use tulpar_core::plan::Plan;

#[derive(Clone, Debug)]
pub struct Setting {
    pub plan: Arc<Plan>,
    pub policy: Policy,
    pub model: Model,
}

/// What a simulation came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// The makespan: from the first start to the last end.
    pub seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_utilisation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_utilisation: Option<f64>,
    /// Every task was done; otherwise `seconds` are those until nothing more could be.
    pub done: bool,
    pub tasks: u32,
}

impl Setting {
    pub fn new(plan: Arc<Plan>, policy: Policy, model: Model) -> Self {
        Self { plan, policy: Policy { cache: false, ..policy }, model }
    }

    pub fn simulate(&self) -> Option<Simulated> {
        self.simulate_while(|| true)
    }

    /// `None` when the plan waits for itself, the engine stopped making progress, or `go_on` said no.
    pub fn simulate_while(&self, mut go_on: impl FnMut() -> bool) -> Option<Simulated> {
        let world = World::modelled(self.model.clone());
        let mut simulation = Simulation::new(self.plan.clone(), self.policy.clone(), world).ok()?;
        simulation.keep_events = false;
        let mut summary = Summary::new(&self.plan);
        let outcome = simulation.run_while(|engine, events| {
            summary.watch(engine, events);
            if go_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Some(Simulated {
            seconds: summary.makespan().as_secs_f64(),
            cpu_utilisation: summary.cpu_utilisation(),
            gpu_utilisation: summary.gpu_utilisation(),
            done: outcome == Outcome::Done,
            tasks: simulation.engine.counts().total(),
        })
    }
}
