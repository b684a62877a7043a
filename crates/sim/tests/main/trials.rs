//! A search whose trials report on the way, pause, go on, fail and are lost, with a crash of the driver after any event.

use super::properties::seeds;
use super::searching::{Driver, engine};
use super::transitions::Replay;
use std::collections::BTreeSet;
use tulpar_core::engine::{Engine, State};
use tulpar_core::event::Event;
use tulpar_core::ids::JobId;
use tulpar_core::units::Timestamp;

fn replayed(events: &[(Timestamp, Event)]) -> Engine {
    let mut replay = Replay { engine: engine() };
    for (at, event) in events {
        replay.take(*at, event);
    }
    replay.engine
}

#[test]
fn after_any_event_of_a_search_no_trial_is_between_two_states() {
    let mut seen = BTreeSet::new();
    for seed in seeds(100) {
        let mut driver = Driver::new(seed);
        driver.run();
        assert_eq!(driver.engine.difference(&replayed(&driver.events)), None, "seed {seed}");
        seen.extend(driver.events.iter().filter_map(|(_, event)| match event {
            Event::Ended { then, .. } => format!("{then:?}").split_whitespace().next().map(str::to_owned),
            Event::Continued { .. } => Some("goes on".to_owned()),
            _ => None,
        }));
    }
    let all = ["Done", "Failed", "Paused", "Pruned", "Retry", "goes on"];
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), all, "the cases are too tame, or too wild");
}

#[test]
fn a_search_recovers_from_a_crash_after_any_event_and_no_trial_that_is_over_runs_again() {
    for seed in seeds(6) {
        let mut whole = Driver::new(seed);
        whole.run();
        for cut in 0..=whole.events.len() {
            let mut driver = Driver::recover(seed ^ 0x5eed, &whole.events[..cut]);
            let over: Vec<JobId> = (0..driver.engine.graph().len())
                .map(JobId::from)
                .filter(|job| driver.engine.state(*job).is_settled())
                .collect();
            let paused: Vec<JobId> = (0..driver.engine.graph().len())
                .map(JobId::from)
                .filter(|job| driver.engine.state(*job) == State::Paused)
                .collect();
            driver.run();
            let mut continued = BTreeSet::new();
            for (_, event) in &driver.events[cut + 1..] {
                match event {
                    Event::Continued { job } => drop(continued.insert(*job)),
                    Event::Submitted { attempt, .. } => {
                        assert!(!over.contains(&attempt.job), "seed {seed}, cut {cut}: {:?} is over", attempt.job);
                        let waits = paused.contains(&attempt.job) && !continued.contains(&attempt.job);
                        assert!(!waits, "seed {seed}, cut {cut}: {:?} is paused", attempt.job);
                    }
                    _ => {}
                }
            }
            assert_eq!(driver.engine.difference(&replayed(&driver.events)), None, "seed {seed}, cut {cut}");
        }
    }
}
