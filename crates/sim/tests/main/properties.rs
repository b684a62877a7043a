//! What DESIGN promises of the engine, checked after every step of many random runs.

use super::generate::{Case, case};
use std::collections::BTreeSet;
use tulpar_core::engine::{Engine, State};
use tulpar_core::event::{Event, Input, Outcome, Stopping};
use tulpar_core::ids::JobId;
use tulpar_core::units::Timestamp;
use tulpar_sim::{Simulation, World};

/// More in the long campaign.
pub(crate) fn seeds(usual: u64) -> std::ops::Range<u64> {
    let factor = std::env::var("TULPAR_CAMPAIGN").ok().and_then(|text| text.parse::<u64>().ok());
    0..usual * factor.unwrap_or(1)
}

pub(crate) fn simulate(seed: u64, case: &Case) -> Simulation {
    let world = World::new(seed, case.faults);
    Simulation::new(case.plan.clone(), case.policy.clone(), world).expect("generated graphs have no cycle")
}

#[test]
fn every_run_ends_and_keeps_its_invariants_and_its_replay_is_the_same_after_every_step() {
    let mut outcomes = BTreeSet::new();
    for seed in seeds(600) {
        let case = case(seed);
        let mut replayed = Engine::new(case.plan.clone(), case.policy.clone()).unwrap();
        let mut simulation = simulate(seed, &case);
        let outcome = simulation.run_watched(|engine, events| {
            engine.check().unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
            for (at, event) in events {
                replayed.apply(*at, event);
            }
            assert_eq!(engine.difference(&replayed), None, "seed {seed}");
        });
        let outcome = outcome.unwrap_or_else(|| panic!("seed {seed} stopped without an end"));
        outcomes.insert(format!("{outcome:?}"));
        check_end(seed, &simulation, outcome);
    }
    assert!(outcomes.contains("Done") && outcomes.contains("Failed"), "cases are too tame: {outcomes:?}");
}

fn check_end(seed: u64, simulation: &Simulation, outcome: Outcome) {
    let engine = &simulation.engine;
    for (job, count) in &simulation.successes {
        // A report may come twice; what counts is that the engine took it once.
        assert!(*count <= 2, "seed {seed}: {job:?} succeeded {count} times");
    }
    let mut ends = std::collections::BTreeMap::new();
    for (_, event) in &simulation.events {
        if let Event::Ended { attempt, report, .. } = event
            && report.ending.is_success()
        {
            *ends.entry(attempt.job).or_insert(0) += 1;
        }
    }
    assert!(ends.values().all(|count| *count == 1), "seed {seed}: a job was committed twice");
    if outcome == Outcome::Done {
        for job in (0..engine.graph().len()).map(JobId::from) {
            let state = engine.state(job);
            assert!(
                state == State::Done || (state.is_settled() && engine.is_excused(job)),
                "seed {seed}: {} is {state:?} at the end",
                engine.graph().name(job)
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for seed in seeds(40) {
        let case = case(seed);
        let journal = || {
            let mut simulation = simulate(seed, &case);
            simulation.run();
            serde_json::to_string(&simulation.events).unwrap()
        };
        assert_eq!(journal(), journal(), "seed {seed}");
    }
}

#[test]
fn a_crash_after_any_event_recovers_and_commits_nothing_twice() {
    for seed in seeds(40) {
        let case = case(seed);
        let mut whole = simulate(seed, &case);
        whole.run().expect("ends");
        for cut in 0..=whole.events.len() {
            recover_at(seed, &case, &whole.events[..cut], cut);
        }
    }
}

fn recover_at(seed: u64, case: &Case, durable: &[(Timestamp, Event)], cut: usize) {
    let committed: BTreeSet<JobId> = durable.iter().filter_map(|(_, event)| committed(event)).collect();
    let world = World::new(seed ^ 0x5eed, case.faults);
    let mut simulation = Simulation::recover(case.plan.clone(), case.policy.clone(), world, durable).unwrap();
    let first_new = simulation.events.len();
    simulation
        .run_watched(|engine, _| {
            engine.check().unwrap_or_else(|violation| panic!("seed {seed}, cut {cut}: {violation}"));
        })
        .unwrap_or_else(|| panic!("seed {seed}: the run recovered after event {cut} never ends"));
    for (_, event) in &simulation.events[first_new..] {
        if let Event::Submitted { attempt, .. } = event {
            assert!(
                !committed.contains(&attempt.job),
                "seed {seed}, cut {cut}: {} was committed and runs again",
                simulation.engine.graph().name(attempt.job)
            );
        }
    }
    // Replay of the whole, crash included, is the same state again.
    let mut replayed = Engine::new(case.plan.clone(), case.policy.clone()).unwrap();
    for (at, event) in &simulation.events {
        replayed.apply(*at, event);
    }
    assert_eq!(simulation.engine.difference(&replayed), None, "seed {seed}, cut {cut}");
}

fn committed(event: &Event) -> Option<JobId> {
    match event {
        Event::Ended { attempt, report, .. } if report.ending.is_success() => Some(attempt.job),
        Event::Reused { job, .. } => Some(*job),
        _ => None,
    }
}

#[test]
fn an_interrupted_run_resumes_and_ends_as_if_nothing_had_happened() {
    for seed in seeds(200) {
        let mut case = case(seed);
        case.faults = tulpar_sim::Faults::default();
        let mut simulation = simulate(seed, &case);
        let mut inputs = vec![Input::Begin];
        let mut outcome = None;
        for turn in 0.. {
            if turn == 6 {
                inputs.push(Input::Stop { how: Stopping::Interrupt });
            }
            let step = simulation.engine.step(simulation.now, std::mem::take(&mut inputs));
            let first = simulation.events.len();
            simulation.events.extend(step.events.into_iter().map(|event| (simulation.now, event)));
            let events = &simulation.events[first..];
            if let Some(end) = simulation.world.perform(simulation.now, &simulation.engine, events, step.actions) {
                outcome = Some(end);
                break;
            }
            let Some(next) = simulation.world.next_time() else { break };
            simulation.now = simulation.now.max(next);
            inputs = simulation.world.take_until(simulation.now);
        }
        let outcome = outcome.unwrap_or_else(|| panic!("seed {seed}: the interrupted run never stops"));
        if outcome == Outcome::Done {
            continue;
        }
        assert_eq!(outcome, Outcome::Interrupted, "seed {seed}");
        let world = World::new(seed, case.faults);
        let mut resumed =
            Simulation::recover(case.plan.clone(), case.policy.clone(), world, &simulation.events).unwrap();
        assert_eq!(resumed.run(), Some(Outcome::Done), "seed {seed}");
    }
}

#[test]
fn a_second_run_reuses_everything_that_may_be_reused() {
    for seed in seeds(100) {
        let mut case = case(seed);
        case.faults = tulpar_sim::Faults::default();
        case.policy.cache = true;
        let mut first = simulate(seed, &case);
        assert_eq!(first.run(), Some(Outcome::Done));
        let world = World::new(seed + 1, case.faults).with_cache_of(&first.world);
        let mut second = Simulation::new(case.plan.clone(), case.policy.clone(), world).unwrap();
        second.run();
        let uncached = |set| {
            case.plan.task(set).settings.cache == tulpar_core::workflow::Caching::Off || case.plan.forced.contains(&set)
        };
        // What runs though it may be reused hangs on an uncached pattern, whose files differ each time, or on results in
        // the order in which they came.
        let moving = case.plan.workflow.tasks.iter().enumerate().any(|(index, task)| {
            task.arrivals().is_some()
                || task.latest().next().is_some()
                || uncached(tulpar_core::ids::SetId::from(index))
                    && task.outputs[0].kind == tulpar_core::workflow::OutputKind::Pattern
        });
        if moving {
            continue;
        }
        for (_, event) in &second.events {
            if let Event::Submitted { attempt, .. } = event {
                let set = second.engine.graph().set_of(attempt.job);
                assert!(uncached(set), "seed {seed}: {} runs again", second.engine.graph().name(attempt.job));
            }
        }
    }
}
