//! Each event moves its job into a state in which the job may stay: whatever comes next, no job waits for a later event to
//! say what became of it.

use super::generate::case;
use super::properties::{seeds, simulate};
use tulpar_core::engine::Engine;
use tulpar_core::engine::State::{self, *};
use tulpar_core::event::{Consequence, Event};
use tulpar_core::units::Timestamp;

/// From which states an event takes its own job, and into which. Only time leads on from a back-off, and only its search from
/// a trial's pause.
const WAYS: [(&[State], &str, &[State]); 15] = [
    (&[Waiting], "asked", &[Waiting, Looking, Ready]),
    (&[Looking], "missed", &[Waiting, Ready]),
    (&[Looking], "reused", &[Done]),
    (&[Waiting, Looking, Paused], "skipped", &[Skipped]),
    (&[Ready], "held_back", &[Ready]),
    (&[Ready], "failed", &[Failed]),
    (&[Ready], "submitted", &[Submitted]),
    (&[Submitted], "started", &[Running]),
    (&[Submitted, Running], "held", &[Held]),
    (&[Running, Held], "released", &[Submitted]),
    (&[Submitted, Running, Held], "reported", &[Submitted, Running, Held]),
    (&[Submitted, Running, Held], "curtailed", &[Submitted, Running, Held]),
    (&[Submitted, Running, Held], "ended", &[Done, Backoff, Failed, Skipped, Paused, Cancelled]),
    (&[Backoff], "due", &[Ready]),
    (&[Paused], "continued", &[Ready]),
];

/// A replay that looks at the job of every event before and after it.
pub(crate) struct Replay {
    pub(crate) engine: Engine,
}

impl Replay {
    pub(crate) fn take(&mut self, at: Timestamp, event: &Event) {
        let Some(job) = event.job() else { return drop(self.engine.apply(at, event)) };
        let before = self.engine.state(job);
        self.engine.apply(at, event);
        let after = self.engine.state(job);
        let kind = event.kind();
        let known = WAYS.iter().any(|(from, way, to)| *way == kind && from.contains(&before) && to.contains(&after));
        assert!(known, "`{kind}` took a job from {before:?} to {after:?}");
        if let Event::Ended { then, .. } = event {
            assert_eq!(after, led_to(then), "{then:?}");
        }
        self.engine.check().unwrap_or_else(|violation| panic!("after `{kind}`: {violation}"));
    }
}

fn led_to(then: &Consequence) -> State {
    match then {
        Consequence::Done => Done,
        Consequence::Retry { .. } => Backoff,
        Consequence::Failed { .. } => Failed,
        Consequence::Pruned => Skipped,
        Consequence::Paused => Paused,
        Consequence::Cancelled => Cancelled,
    }
}

#[test]
fn after_any_event_no_job_is_between_two_states() {
    for seed in seeds(200) {
        let case = case(seed);
        let mut simulation = simulate(seed, &case);
        simulation.run().expect("ends");
        let mut replay = Replay { engine: Engine::new(case.plan.clone(), case.policy.clone()).unwrap() };
        for (at, event) in &simulation.events {
            replay.take(*at, event);
        }
        assert_eq!(simulation.engine.difference(&replay.engine), None, "seed {seed}");
    }
}
