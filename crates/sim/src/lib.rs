//! Runs in virtual time on modelled sites: the same engine and decisions as in a real run, no clock, no process.
//!
//! The [`World`] is the oracle of core's loop: it plays site, launcher, cache and network, as a [`Model`] says they are. It knows nothing of real
//! executors, files or threads.

pub mod advice;
mod hazards;
mod model;
mod random;
mod setting;
mod summary;
mod world;

pub use model::{DEFAULT_RUNTIME, Faults, Model, Network, Runtimes, Spread, declared};
pub use setting::{Setting, Simulated};
pub use summary::{Group, Summary};
pub use world::World;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use tulpar_core::engine::{Engine, Policy, Step};
use tulpar_core::event::{Event, Input, Outcome};
use tulpar_core::ids::JobId;
use tulpar_core::plan::{Cycle, Plan};
use tulpar_core::units::Timestamp;
use tulpar_core::virtual_time::{self, Oracle};

/// One run in virtual time.
pub struct Simulation {
    pub engine: Engine,
    pub world: World,
    pub now: Timestamp,
    /// Every event with its time and the step it came from, when `keep_events` is set.
    pub events: Vec<(Timestamp, Event)>,
    pub keep_events: bool,
    /// Counts successful executions, to show that nothing runs twice, when `keep_events` is set.
    pub successes: BTreeMap<JobId, u32>,
    pub steps: u64,
}

impl Simulation {
    pub fn new(plan: Arc<Plan>, policy: Policy, world: World) -> Result<Self, Cycle> {
        let engine = Engine::new(plan, policy)?;
        Ok(Self {
            engine,
            world,
            now: Timestamp(0),
            events: Vec::new(),
            keep_events: true,
            successes: BTreeMap::new(),
            steps: 0,
        })
    }

    /// Goes on with a run of which only these events became durable.
    pub fn recover(
        plan: Arc<Plan>,
        policy: Policy,
        world: World,
        events: &[(Timestamp, Event)],
    ) -> Result<Self, Cycle> {
        let mut simulation = Self::new(plan, policy, world)?;
        for (at, event) in events {
            simulation.engine.apply(*at, event);
            simulation.now = *at;
            simulation.events.push((*at, event.clone()));
        }
        let resumed = simulation.engine.resume("simulated".into());
        simulation.engine.apply(simulation.now, &resumed);
        simulation.events.push((simulation.now, resumed));
        simulation.world.reconcile(simulation.now, &simulation.engine);
        Ok(simulation)
    }

    /// Runs to the end. `None` when the engine stopped making progress.
    pub fn run(&mut self) -> Option<Outcome> {
        self.run_watched(|_, _| {})
    }

    /// Runs to the end and shows every step's events to `watch`.
    pub fn run_watched(&mut self, mut watch: impl FnMut(&Engine, &[(Timestamp, Event)])) -> Option<Outcome> {
        self.run_while(|engine, events| {
            watch(engine, events);
            ControlFlow::Continue(())
        })
    }

    /// The same, until `watch` has seen enough.
    pub fn run_while(
        &mut self,
        mut watch: impl FnMut(&Engine, &[(Timestamp, Event)]) -> ControlFlow<()>,
    ) -> Option<Outcome> {
        let Self { engine, world, now, events, keep_events, successes, steps } = self;
        let keep = *keep_events;
        let mut watched = Watched { world, keep, events, successes, steps, watch: &mut watch };
        let stopped = virtual_time::run(engine, &mut watched, *now, vec![Input::Begin], Timestamp(u64::MAX));
        *now = stopped.at;
        stopped.outcome
    }
}

/// A world whose events are kept and shown.
struct Watched<'a, W> {
    world: &'a mut World,
    /// Whether events and successes are kept.
    keep: bool,
    events: &'a mut Vec<(Timestamp, Event)>,
    successes: &'a mut BTreeMap<JobId, u32>,
    steps: &'a mut u64,
    watch: &'a mut W,
}

impl<W: FnMut(&Engine, &[(Timestamp, Event)]) -> ControlFlow<()>> Oracle for Watched<'_, W> {
    fn perform(&mut self, now: Timestamp, engine: &Engine, step: Step) -> ControlFlow<()> {
        *self.steps += 1;
        let timed: Vec<(Timestamp, Event)> = step.events.into_iter().map(|event| (now, event)).collect();
        (self.watch)(engine, &timed)?;
        self.world.perform(now, engine, &timed, step.actions);
        if self.keep {
            self.events.extend(timed);
        }
        ControlFlow::Continue(())
    }

    fn next_time(&self) -> Option<Timestamp> {
        self.world.next_time()
    }

    fn take_until(&mut self, now: Timestamp) -> Vec<Input> {
        let inputs = self.world.take_until(now);
        for input in inputs.iter().filter(|_| self.keep) {
            if let Input::Ended { attempt, report } = input
                && report.ending.is_success()
            {
                *self.successes.entry(attempt.job).or_default() += 1;
            }
        }
        inputs
    }
}
