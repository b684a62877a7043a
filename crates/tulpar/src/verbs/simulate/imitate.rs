//! One simulation from its beginning to its end, and the display of how far it is.

use crate::failure::Failure;
use crate::progress::duration;
use crate::scheduling::SchedulingArguments;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tulpar_core::engine::{Counts, Engine, Policy, State};
use tulpar_core::event::{Event, Outcome};
use tulpar_core::plan::Plan;
use tulpar_core::units::Timestamp;
use tulpar_sim::{Model, Simulation, Summary, World};

/// What is simulated.
pub(super) struct Case {
    pub(super) plan: Arc<Plan>,
    pub(super) policy: Policy,
    pub(super) model: Model,
}

/// What came of it.
pub(super) struct Imitated {
    pub(super) outcome: Outcome,
    pub(super) summary: Summary,
    pub(super) counts: Counts,
    pub(super) events: u64,
    /// How long it took to simulate.
    pub(super) real: Duration,
}

/// Results of other runs are neither used nor kept: everything is simulated.
pub(super) fn policy(scheduling: &SchedulingArguments) -> Policy {
    Policy { cache: false, ..scheduling.policy() }
}

type Watched = Result<ControlFlow<()>, Failure>;

/// Runs to the end, unless `watch` has enough: then there is nothing to say.
pub(super) fn imitate(
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

/// A live line on a terminal; nothing elsewhere.
pub(super) struct Gauge {
    bar: Option<ProgressBar>,
    drawn: Instant,
}

impl Gauge {
    pub(super) fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(8));
            let style = ProgressStyle::with_template("simulating {bar:24} {pos}/{len} {wide_msg}");
            bar.set_style(style.expect("a valid template").progress_chars("━╸─"));
            bar
        });
        Self { bar, drawn: Instant::now() }
    }

    pub(super) fn show(&mut self, engine: &Engine, at: Timestamp) {
        let Some(bar) = &self.bar else { return };
        if self.drawn.elapsed() < Duration::from_millis(100) {
            return;
        }
        self.drawn = Instant::now();
        let counts = engine.counts();
        bar.set_length(u64::from(counts.total()));
        bar.set_position(u64::from(counts.settled()));
        let running = counts.of(State::Running);
        bar.set_message(format!("{} of virtual time, {running} running", duration(Duration::from_micros(at.0))));
    }

    /// Of a sweep, how many simulations are over.
    pub(super) fn count(&mut self, over: usize, of: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(of as u64);
            bar.set_position(over as u64);
            bar.set_message("simulations");
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
