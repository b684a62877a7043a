//! The loop of every run in virtual time: the engine decides, an oracle says what comes of it and when, and the time jumps to
//! the next moment at which either has something to do. Simulations, rollouts, forecasts and dry runs differ in their oracle only.
//!
//! It knows no durations, cache or network, and reads no clock.

use super::{Engine, Step};
use crate::event::{Input, Outcome};
use crate::units::Timestamp;
use std::ops::ControlFlow;

/// Answers for the world: how long attempts take and how they end, what cache lookups find, when transfers are over.
pub trait Oracle {
    /// Takes the actions of a step, which begin now. `Break` leaves the loop.
    fn perform(&mut self, now: Timestamp, engine: &Engine, step: Step) -> ControlFlow<()>;

    /// The time of the next input; none when there will be no further one.
    fn next_time(&self) -> Option<Timestamp>;

    /// All inputs up to this time, in their order.
    fn take_until(&mut self, now: Timestamp) -> Vec<Input>;
}

/// Where the loop stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    pub at: Timestamp,
    /// None when the oracle left the loop, when nothing more would happen, or when it would happen too late.
    pub outcome: Option<Outcome>,
}

/// Runs an engine from `now`, beginning with these inputs, to the end of the run, but not beyond `until`.
pub fn run(
    engine: &mut Engine,
    oracle: &mut impl Oracle,
    mut now: Timestamp,
    mut inputs: Vec<Input>,
    until: Timestamp,
) -> Stopped {
    loop {
        let step = engine.step(now, inputs);
        if oracle.perform(now, engine, step).is_break() {
            return Stopped { at: now, outcome: None };
        }
        if let Some(outcome) = engine.outcome() {
            return Stopped { at: now, outcome: Some(outcome) };
        }
        let next = [oracle.next_time(), engine.next_deadline()].into_iter().flatten().min();
        match next.map(|next| now.max(next)).filter(|next| *next <= until) {
            Some(next) => now = next,
            None => return Stopped { at: now, outcome: None },
        }
        inputs = oracle.take_until(now);
        if inputs.is_empty() {
            inputs.push(Input::Clock);
        }
    }
}
