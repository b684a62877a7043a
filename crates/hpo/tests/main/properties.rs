//! What holds for every space, seed and order of events.

use crate::harness::{EVERYTHING, SAMPLERS, loss};
use proptest::prelude::*;
use tulpar_hpo::pruner::{Ladder, Rungs};
use tulpar_hpo::{Decision, Domain, Next, Objective, Outcome, Pruner, Settings, Space, Study, Value};

/// Parameters of every kind, the later ones under conditions on the first.
fn space() -> impl Strategy<Value = Space> {
    let parameter = prop_oneof![
        (-5.0..5.0, 0.1..9.0).prop_map(|(low, width)| format!("float({low},{})", low + width)),
        (1e-6..1.0, 1.5..1e4).prop_map(|(low, times)| format!("log({low},{})", low * times)),
        (-9i64..9, 1i64..40, 1i64..5)
            .prop_map(|(low, width, step)| { format!("int({low},{},step={})", low + width, step.min(width)) }),
        (1i64..9, 0i64..2000).prop_map(|(low, width)| format!("int({low},{},log)", low + width)),
        (-2.0..2.0, 1u32..30, 0.01..0.7).prop_map(|(low, steps, step)| {
            format!("float({low},{},step={step})", low + step * f64::from(steps) + 0.3 * step)
        }),
        (1usize..6).prop_map(|count| format!("choice({})", ["a", "b", "1", "0.5", "true", "z"][..count].join(","))),
    ];
    proptest::collection::vec((parameter, 0u8..3), 1..6).prop_map(|parameters| {
        let mut texts = vec!["p=choice(0,1,2)".to_owned()];
        for (at, (domain, condition)) in parameters.into_iter().enumerate() {
            let when = ["", " when p=1", " when p=0|2"][condition as usize];
            texts.push(format!("q{at}={domain}{when}"));
        }
        Space::parse(texts.iter().map(String::as_str)).unwrap()
    })
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Ask,
    Tell(usize),
    Fail(usize),
    Prune(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Ask),
        3 => (0usize..9).prop_map(Step::Tell),
        1 => (0usize..9).prop_map(Step::Fail),
        1 => (0usize..9).prop_map(Step::Prune),
    ];
    proptest::collection::vec(step, 1..70)
}

/// Does the steps; each chosen trial is one of those on the way.
fn drive(study: &mut Study, steps: &[Step]) {
    for step in steps {
        let open: Vec<u32> = study.pending().collect();
        let chosen = |at: usize| open.get(at % open.len().max(1)).copied();
        match *step {
            Step::Ask => {
                study.ask();
            }
            Step::Tell(at) => {
                if let Some(number) = chosen(at) {
                    let value = loss(&study.values(number).unwrap());
                    study.tell(number, Outcome::value(value)).unwrap();
                }
            }
            Step::Fail(at) => {
                if let Some(number) = chosen(at) {
                    study.tell(number, Outcome::Failed { reason: "lost".to_owned() }).unwrap();
                }
            }
            Step::Prune(at) => {
                if let Some(number) = chosen(at) {
                    study.report(number, 1, 3.0).unwrap();
                    study.tell(number, Outcome::Pruned).unwrap();
                }
            }
        }
    }
}

fn sampled(space: Space, sampler: &str, seed: u64) -> Study {
    let mut settings = Settings::new(space, Objective::minimize("loss"));
    settings.sampler = sampler.parse().unwrap();
    settings.seed = seed;
    Study::new(settings).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_trial_lies_in_the_space_on_its_steps_and_has_what_is_active(
        space in space(), steps in steps(), sampler in 0usize..SAMPLERS.len(), seed in 0u64..1000,
    ) {
        let mut study = sampled(space, SAMPLERS[sampler], seed);
        drive(&mut study, &steps);
        for trial in study.trials() {
            prop_assert!(study.space().contains(&trial.point), "{} gave {:?}", SAMPLERS[sampler], trial.point);
            let values = study.values(trial.number).unwrap();
            // The values that people see are the same point again.
            prop_assert_eq!(&study.space().point(&values).unwrap(), &trial.point);
            for parameter in study.space().parameters() {
                if let (Domain::Int { .. }, Some(value)) = (&parameter.domain, values.get(&parameter.name)) {
                    prop_assert!(matches!(value, Value::Int(_)));
                }
            }
        }
    }

    #[test]
    fn a_study_written_down_at_any_moment_goes_on_the_same(
        steps in steps(), cut in 0usize..70, sampler in 0usize..SAMPLERS.len(), seed in 0u64..1000,
    ) {
        let space = Space::parse(EVERYTHING).unwrap();
        let mut straight = sampled(space.clone(), SAMPLERS[sampler], seed);
        drive(&mut straight, &steps);
        let (before, after) = steps.split_at(cut.min(steps.len()));
        let mut first = sampled(space, SAMPLERS[sampler], seed);
        drive(&mut first, before);
        let mut second: Study = serde_json::from_str(&serde_json::to_string(&first).unwrap()).unwrap();
        drive(&mut second, after);
        prop_assert_eq!(straight.trials(), second.trials());
    }

    #[test]
    fn no_pruner_stops_the_best_trial_so_far(
        curves in proptest::collection::vec(proptest::collection::vec(0.0f64..10.0, 9), 1..40), kind in 0u8..4, pause: bool,
    ) {
        let rungs = Rungs { least: 1, factor: 3, pause };
        let mut settings = Settings::new(Space::parse(["x=float(0,1)"]).unwrap(), Objective::minimize("loss"));
        settings.pruner = match kind {
            0 => Pruner::Median(Ladder { startup: 0, ..Ladder::default() }),
            1 => Pruner::Percentile { percent: 10.0, ladder: Ladder { startup: 0, ..Ladder::default() } },
            2 => Pruner::Halving(rungs),
            _ => Pruner::Hyperband { rungs, most: 9 },
        };
        settings.sampler = "random".parse().unwrap();
        let mut study = Study::new(settings).unwrap();
        let mut lowest = [f64::INFINITY; 9];
        'trials: for curve in &curves {
            let number = match study.ask() {
                Next::Start { number, .. } | Next::Resume { number } => number,
                Next::Exhausted => unreachable!("random never is"),
            };
            for (at, value) in curve.iter().enumerate() {
                let decision = study.report(number, at as u64 + 1, *value).unwrap();
                if *value < lowest[at] {
                    prop_assert_eq!(decision, Decision::Continue, "{} at step {}", value, at + 1);
                }
                lowest[at] = lowest[at].min(*value);
                match decision {
                    Decision::Continue => {}
                    Decision::Prune => {
                        study.tell(number, Outcome::Pruned).unwrap();
                        continue 'trials;
                    }
                    Decision::Pause => {
                        study.pause(number).unwrap();
                        continue 'trials;
                    }
                }
            }
            study.tell(number, Outcome::value(curve[8])).unwrap();
        }
    }

    #[test]
    fn bad_short_forms_are_refused_without_a_panic(text in "[a-z]{0,3}=?[a-z]{0,6}[(]?[0-9.,=|e '\"-]{0,12}[)]?( when [a-z=|]{0,8})?") {
        let _ = Space::parse([text.as_str()]);
    }
}
