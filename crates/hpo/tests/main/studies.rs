//! Studies: asks and tells, starting points, trials of others, failures, constraints, several objectives, and that a
//! study which was written down goes on as it would have.

use crate::harness::{EVERYTHING, SAMPLERS, loss, run, settings, started, study};
use std::collections::BTreeSet;
use tulpar_hpo::{Next, Objective, Origin, Outcome, SamplerMemory, State, Study, Value, Values};

fn sequence(study: &mut Study, trials: usize) -> Vec<Values> {
    let mut all = Vec::new();
    for _ in 0..trials {
        let (number, values) = started(study);
        study.tell(number, Outcome::value(loss(&values))).unwrap();
        all.push(values);
    }
    all
}

#[test]
fn the_same_seed_gives_the_same_trials_and_another_seed_others() {
    for sampler in SAMPLERS {
        let one = sequence(&mut study(&EVERYTHING, sampler, 7), 25);
        assert_eq!(one, sequence(&mut study(&EVERYTHING, sampler, 7), 25), "{sampler}");
        if sampler != "grid" {
            assert_ne!(one, sequence(&mut study(&EVERYTHING, sampler, 8), 25), "{sampler}");
        }
    }
}

#[test]
fn a_study_that_was_written_down_goes_on_as_it_would_have() {
    for sampler in SAMPLERS {
        let mut study = study(&EVERYTHING, sampler, 3);
        run(&mut study, 20);
        let (open, _) = started(&mut study);
        let text = serde_json::to_string(&study).unwrap();
        let mut again: Study = serde_json::from_str(&text).unwrap();
        for study in [&mut study, &mut again] {
            run(study, 5);
            study.tell(open, Outcome::Failed { reason: "out of memory".to_owned() }).unwrap();
        }
        assert_eq!(sequence(&mut study, 5), sequence(&mut again, 5), "{sampler}");
        assert_eq!(serde_json::to_string(&study).unwrap(), serde_json::to_string(&again).unwrap());
    }
}

#[test]
fn trials_that_are_applied_from_a_record_give_the_same_study_as_asking() {
    for sampler in SAMPLERS {
        let mut asked = study(&EVERYTHING, sampler, 5);
        run(&mut asked, 18);
        let mut applied = study(&EVERYTHING, sampler, 5);
        for trial in asked.trials().to_vec() {
            applied.begin(trial.point, trial.origin).unwrap();
            applied.tell(trial.number, Outcome::value(trial.values[0])).unwrap();
        }
        let memory = SamplerMemory::default;
        assert_eq!(asked.propose(&mut memory()), applied.propose(&mut memory()), "{sampler}");
    }
}

#[test]
fn what_a_sampler_remembers_changes_no_proposal() {
    for sampler in SAMPLERS {
        let mut asked = study(&EVERYTHING, sampler, 5);
        run(&mut asked, 16);
        let mut applied = study(&EVERYTHING, sampler, 5);
        let mut memory = SamplerMemory::default();
        for trial in asked.trials().to_vec() {
            assert_eq!(applied.propose(&mut memory), applied.propose(&mut SamplerMemory::default()), "{sampler}");
            applied.begin(trial.point, trial.origin).unwrap();
            applied.tell(trial.number, Outcome::value(trial.values[0])).unwrap();
        }
    }
}

/// To the last digit, on every machine and in every build; a change of a sampler changes this on purpose.
#[test]
fn the_sixteenth_trial_is_this_one_everywhere() {
    let sixteenth = |sampler: &str| {
        let all = sequence(&mut study(&["x=float(0,1)", "y=log(0.001,10)", "z=choice(a,bb)"], sampler, 11), 16);
        serde_json::to_string(&all[15]).unwrap()
    };
    assert_eq!(sixteenth("random"), r#"{"x":0.03888086720285033,"y":0.22750457276841957,"z":"a"}"#);
    assert_eq!(sixteenth("quasi"), r#"{"x":0.5555171966552734,"y":0.012428856312854591,"z":"a"}"#);
    assert_eq!(sixteenth("tpe"), r#"{"x":0.24715170047483903,"y":0.029846078075152667,"z":"a"}"#);
    assert_eq!(sixteenth("gp"), r#"{"x":1.0,"y":0.4633850550972029,"z":"a"}"#);
    assert_eq!(sixteenth("cma"), r#"{"x":0.26331459931985146,"y":0.7639619765017024,"z":"a"}"#);
}

#[test]
fn starting_points_come_first_and_are_checked() {
    let mut settings = settings(&["x=float(0,1)", "n=int(1,3)"], "tpe", 0);
    let start: Values = [("x".to_owned(), Value::Float(0.25)), ("n".to_owned(), Value::Int(2))].into();
    settings.starts = vec![start.clone()];
    let mut study = Study::new(settings.clone()).unwrap();
    assert_eq!(study.ask(), Next::Start { number: 0, values: start });
    assert_eq!(study.trial(0).unwrap().origin, Origin::Start);
    assert!(matches!(study.ask(), Next::Start { number: 1, .. }));
    assert_eq!(study.trial(1).unwrap().origin, Origin::Sampled);
    settings.starts[0].insert("n".to_owned(), Value::Int(4));
    let error = Study::new(settings).unwrap_err().to_string();
    assert_eq!(error, "starting point 1: `n` = 4: it is a whole number between 1 and 3");
}

#[test]
fn a_recorded_point_of_another_space_is_refused() {
    let mut study = study(&["x=float(0,1)", "n=int(1,3)"], "tpe", 0);
    let error =
        |study: &mut Study, point: Vec<Option<f64>>| study.begin(point, Origin::Sampled).unwrap_err().to_string();
    assert_eq!(error(&mut study, vec![Some(2.0), Some(1.0)]), "`x` = 2: it lies between 0 and 1");
    assert_eq!(
        error(&mut study, vec![Some(0.5), Some(1.0), None]),
        "the point is not one of this space; was the space changed after the trial was recorded?"
    );
}

#[test]
fn trials_of_others_count_and_can_be_the_best() {
    let mut study = study(&["x=float(0,1)"], "tpe", 0);
    run(&mut study, 12);
    let outside: Values = [("x".to_owned(), Value::Float(0.3))].into();
    let number = study.add(&outside, &[(1, 0.5)], Outcome::value(-1.0)).unwrap();
    assert_eq!(study.best().unwrap().number, number);
    let (_, values) = started(&mut study);
    assert!((values["x"].number().unwrap() - 0.3).abs() < 0.4);
}

#[test]
fn what_ended_stays_ended_and_odd_values_are_failures() {
    let mut study = study(&["x=float(0,1)"], "random", 0);
    let (number, _) = started(&mut study);
    study.tell(number, Outcome::value(f64::NAN)).unwrap();
    assert_eq!(study.trial(number).unwrap().state, State::Failed);
    assert_eq!(study.trial(number).unwrap().reason.as_deref(), Some("it ended with NaN instead of a number"));
    assert_eq!(study.best(), None);
    let error = study.tell(number, Outcome::value(1.0)).unwrap_err().to_string();
    assert_eq!(error, "trial 0 has ended already (Failed); what ended stays as it is");
    assert_eq!(study.tell(9, Outcome::Pruned).unwrap_err().to_string(), "there is no trial 9");
    let (number, _) = started(&mut study);
    let two = Outcome::Complete { values: vec![1.0, 2.0], constraints: vec![] };
    assert_eq!(study.tell(number, two).unwrap_err().to_string(), "trial 1 gave 2 values for 1 objectives");
}

#[test]
fn the_best_trial_keeps_the_constraints() {
    let mut study = study(&["x=float(0,1)"], "tpe", 0);
    for (value, constraint) in [(3.0, -1.0), (1.0, 0.5), (2.0, 0.0)] {
        let (number, _) = started(&mut study);
        study.tell(number, Outcome::Complete { values: vec![value], constraints: vec![constraint] }).unwrap();
    }
    assert_eq!(study.best().unwrap().values, [2.0]);
}

#[test]
fn many_at_once_do_not_all_look_at_the_same_place() {
    // A process that is sure of a smooth function looks closely; it never looks twice.
    for (sampler, cells) in [("tpe", 50.0), ("gp", 10_000.0)] {
        let mut study = study(&["x=float(0,1)", "y=float(0,1)"], sampler, 1);
        run(&mut study, 20);
        let together: Vec<Values> = (0..8).map(|_| started(&mut study).1).collect();
        let cell = |values: &Values, name: &str| (values[name].number().unwrap() * cells) as i64;
        let seen: BTreeSet<(i64, i64)> = together.iter().map(|values| (cell(values, "x"), cell(values, "y"))).collect();
        assert!(seen.len() >= 6, "{sampler}: {seen:?}");
    }
}

#[test]
fn a_grid_visits_every_combination_once() {
    let space = ["opt=choice(a,b)", "m=int(1,3) when opt=b", "k=choice(x,y)"];
    let mut study = study(&space, "grid", 0);
    let mut seen = Vec::new();
    while let Next::Start { values, .. } = study.ask() {
        seen.push(values.values().map(Value::to_string).collect::<Vec<_>>().join(" "));
    }
    // By name: k, m, opt.
    assert_eq!(seen, ["x a", "y a", "x 1 b", "y 1 b", "x 2 b", "y 2 b", "x 3 b", "y 3 b"]);
}

#[test]
fn a_grid_comes_to_its_end_where_a_parameter_stands_before_the_one_that_it_depends_on() {
    let mut study = study(&["momentum=int(0,1) when optimizer=sgd", "optimizer=choice(adam,sgd)"], "grid", 0);
    let mut seen = Vec::new();
    while let (Next::Start { values, .. }, true) = (study.ask(), seen.len() < 9) {
        seen.push(values.values().map(Value::to_string).collect::<Vec<_>>().join(" "));
    }
    assert_eq!(seen, ["adam", "0 sgd", "1 sgd"]);
}

#[test]
fn a_trial_that_failed_can_be_run_again_and_counts_as_if_it_had_never_ended() {
    for (sampler, pruner) in [("tpe", "median"), ("cma", "halving"), ("gp", "none")] {
        let mut settings = settings(&["x=float(0,1)", "z=choice(a,bb)"], sampler, 4);
        settings.pruner = pruner.parse().unwrap();
        let mut study = Study::new(settings).unwrap();
        run(&mut study, 12);
        let (number, _) = started(&mut study);
        study.report(number, 1, 0.5).unwrap();
        let mut other = study.clone();
        study.tell(number, Outcome::Failed { reason: "it was cancelled".to_owned() }).unwrap();
        assert_eq!(study.reopen(0).unwrap_err().to_string(), "trial 0 has not failed, so it cannot be run again");
        study.reopen(number).unwrap();
        for study in [&mut study, &mut other] {
            study.report(number, 2, 0.25).unwrap();
            study.tell(number, Outcome::value(0.125)).unwrap();
        }
        assert_eq!(sequence(&mut study, 3), sequence(&mut other, 3), "{sampler}");
        assert_eq!(serde_json::to_string(&study).unwrap(), serde_json::to_string(&other).unwrap());
    }
}

#[test]
fn where_points_can_be_counted_few_trials_are_run_twice() {
    let seen = |space: &[&str], sampler: &str| {
        let mut study = study(space, sampler, 0);
        run(&mut study, 24);
        study.trials().iter().map(|trial| format!("{:?}", trial.point)).collect::<BTreeSet<String>>().len()
    };
    let space = ["a=choice(x,y,z)", "b=int(1,4)", "c=choice(true,false)"];
    assert!(seen(&space, "tpe") >= 22, "{} of 24 points", seen(&space, "tpe"));
    // What CMA-ES cannot move comes from TPE.
    let choices = ["a=choice(x,y,z)", "b=choice(1,2,3,4)", "c=choice(true,false)"];
    assert!(seen(&choices, "cma") >= 22, "{} of 24 points", seen(&choices, "cma"));
}

#[test]
fn samplers_that_learn_are_better_than_chance() {
    let space = ["x=float(0,1)", "y=log(0.01,10)", "z=choice(a,bb,ccc)"];
    let best = |sampler: &str| {
        let mut values: Vec<f64> = (0..5)
            .map(|seed| {
                let mut study = study(&space, sampler, seed);
                run(&mut study, 40);
                study.best().unwrap().values[0]
            })
            .collect();
        values.sort_by(f64::total_cmp);
        values[2]
    };
    let chance = best("random");
    for sampler in ["tpe", "gp", "cma"] {
        assert!(best(sampler) < chance, "{sampler}: {} against {chance}", best(sampler));
    }
}

#[test]
fn several_objectives_are_spread_over_the_front() {
    for sampler in ["nsga2", "tpe"] {
        let mut settings = settings(&["x=float(0,1)", "y=float(0,1)", "z=float(0,1)"], sampler, 2);
        settings.objectives = vec![Objective::minimize("a"), Objective::maximize("b")];
        let mut study = Study::new(settings).unwrap();
        for _ in 0..150 {
            let (number, values) = started(&mut study);
            let at = |name: &str| values[name].number().unwrap();
            let waste = at("y") + at("z");
            let told = Outcome::Complete { values: vec![at("x") + waste, at("x").sqrt() - waste], constraints: vec![] };
            study.tell(number, told).unwrap();
        }
        let late = &study.trials()[100..];
        let waste = late.iter().map(|trial| trial.point[1].unwrap() + trial.point[2].unwrap()).sum::<f64>() / 50.0;
        assert!(waste < 0.5, "{sampler}: the last ones waste {waste}, chance 1");
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let message = |change: &dyn Fn(&mut tulpar_hpo::Settings)| {
        let mut settings = settings(&["x=float(0,1)"], "tpe", 0);
        change(&mut settings);
        Study::new(settings).unwrap_err().to_string()
    };
    let two = vec![Objective::minimize("a"), Objective::minimize("b")];
    assert_eq!(
        message(&|settings| {
            settings.objectives = two.clone();
            settings.sampler = "gp".parse().unwrap();
        }),
        "the sampler gp knows one objective, not 2; use nsga2, tpe, random, quasi or grid"
    );
    assert_eq!(
        message(&|settings| {
            settings.objectives = two.clone();
            settings.pruner = "median".parse().unwrap();
        }),
        "pruning compares one value; with 2 objectives leave the pruner out"
    );
    assert_eq!(
        message(&|settings| {
            settings.space = tulpar_hpo::Space::parse(["n=int(1,1000000000)"]).unwrap();
            settings.sampler = "grid".parse().unwrap();
        }),
        "`n` has 1000000000 values, too many for a grid (at most 100000); give it a step, or use another sampler"
    );
    assert_eq!(
        message(&|settings| settings.objectives.clear()),
        "a study needs an objective; say what is to be minimised or maximised"
    );
    assert_eq!(
        "bayes".parse::<tulpar_hpo::Sampler>().unwrap_err().to_string(),
        "`bayes` is no sampler; there are tpe, gp, cma, quasi, random, grid and nsga2"
    );
}

#[test]
fn samplers_and_pruners_are_names_or_settings() {
    use tulpar_hpo::{Pruner, Sampler};
    let sampler: Sampler = serde_json::from_str("\"tpe\"").unwrap();
    assert_eq!(sampler, Sampler::default());
    let sampler: Sampler = serde_json::from_str(r#"{"tpe": {"startup": 20}}"#).unwrap();
    assert_eq!(serde_json::to_string(&sampler).unwrap(), r#"{"tpe":{"startup":20,"candidates":64}}"#);
    let pruner: Pruner = serde_json::from_str("\"asha\"").unwrap();
    assert_eq!(pruner, "halving".parse().unwrap());
    let pruner: Pruner = serde_json::from_str(r#"{"halving": {"least": 2, "pause": true}}"#).unwrap();
    assert_eq!(serde_json::to_string(&pruner).unwrap(), r#"{"halving":{"least":2,"factor":3,"pause":true}}"#);
    for name in ["\"quasi\"", "\"random\""] {
        let sampler: Sampler = serde_json::from_str(name).unwrap();
        assert_eq!(serde_json::to_string(&sampler).unwrap(), name);
    }
}

#[test]
fn what_others_run_is_not_given_out_until_it_ends() {
    let mut study = study(&["x=int(1,3)"], "grid", 0);
    let values = Values::from([("x".to_owned(), Value::Int(2))]);
    let number = study.begin_elsewhere("optuna:7".to_owned(), &values).unwrap();
    assert_eq!(started(&mut study).1["x"], Value::Int(1));
    assert_eq!(started(&mut study).1["x"], Value::Int(3));
    assert_eq!(study.ask(), Next::Exhausted);
    assert_eq!(study.pending().count(), 3);
    study.tell(number, Outcome::value(0.5)).unwrap();
    assert_eq!(study.best().map(|trial| trial.source.as_deref()), Some(Some("optuna:7")));
}
