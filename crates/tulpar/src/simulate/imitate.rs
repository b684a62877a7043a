//! One simulation from its beginning to its end.

use crate::failure::Failure;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tulpar_core::engine::{Counts, Engine, Policy};
use tulpar_core::event::{Event, Outcome};
use tulpar_core::plan::Plan;
use tulpar_core::units::Timestamp;
use tulpar_sim::{Model, Simulation, Summary, World};

/// What is simulated.
pub struct Case {
    pub plan: Arc<Plan>,
    pub policy: Policy,
    pub model: Model,
}

/// What came of it.
pub struct Imitated {
    pub outcome: Outcome,
    pub summary: Summary,
    pub counts: Counts,
    pub events: u64,
    /// How long it took to simulate.
    pub real: Duration,
}

/// Results of other runs are neither used nor kept: everything is simulated.
pub fn policy(policy: Policy) -> Policy {
    Policy { cache: false, ..policy }
}

pub type Watched = Result<ControlFlow<()>, Failure>;

/// Runs to the end, unless `watch` has enough: then there is nothing to say.
pub fn imitate(
    case: &Case,
    first: Option<&Event>,
    mut watch: impl FnMut(&Engine, Timestamp, &[(Timestamp, Event)]) -> Watched,
) -> Result<Option<Imitated>, Failure> {
    let begun = Instant::now();
    let world = World::modelled(case.model.clone());
    let simulation = Simulation::new(case.plan.clone(), case.policy.clone(), world);
    let mut simulation = simulation.map_err(|cycle| Failure::usage(cycle.to_string()))?;
    simulation.keep_events = false;
    let mut summary = Summary::new(&case.plan);
    let (mut stopped, mut failure, mut events) = (false, None, 0);
    if let Some(first) = first {
        simulation.engine.apply(Timestamp(0), first);
        if watch(&simulation.engine, Timestamp(0), &[(Timestamp(0), first.clone())])?.is_break() {
            return Ok(None);
        }
    }
    let outcome = simulation.run_while(|engine, step| {
        summary.watch(engine, step);
        events += step.len() as u64;
        let at = step.last().map_or(summary.last, |(at, _)| *at);
        match watch(engine, at, step) {
            Ok(ControlFlow::Continue(())) => return ControlFlow::Continue(()),
            Ok(ControlFlow::Break(())) => stopped = true,
            Err(error) => failure = Some(error),
        }
        ControlFlow::Break(())
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    if stopped {
        return Ok(None);
    }
    let outcome = outcome.ok_or_else(|| Failure::Bug("the simulation stopped before its end".to_owned()))?;
    let counts = simulation.engine.counts();
    Ok(Some(Imitated { outcome, summary, counts, events, real: begun.elapsed() }))
}
