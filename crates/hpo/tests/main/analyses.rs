//! What is said about studies: fronts, volumes, histories, importances, outlooks.

use crate::harness::{settings, started, study};
use tulpar_hpo::analysis::{front, front_among, hypervolume, importances, outlook, progress, spread};
use tulpar_hpo::{Objective, Outcome, Study};

fn told(objectives: Vec<Objective>, values: &[&[f64]]) -> Study {
    let mut settings = settings(&["x=float(0,1)"], "random", 0);
    settings.objectives = objectives;
    let mut study = Study::new(settings).unwrap();
    for values in values {
        let (number, _) = started(&mut study);
        study.tell(number, Outcome::Complete { values: values.to_vec(), constraints: vec![] }).unwrap();
    }
    study
}

#[test]
fn the_front_is_what_nobody_beats() {
    let objectives = || vec![Objective::minimize("time"), Objective::maximize("accuracy")];
    let study = told(objectives(), &[&[3.0, 0.9], &[1.0, 0.5], &[2.0, 0.4], &[2.0, 0.8], &[3.0, 0.9], &[4.0, 0.89]]);
    assert_eq!(front(&study), [0, 1, 3, 4]);
    // Up to time 5 and accuracy 0: columns of width 1, 1 and 2.
    let volume = hypervolume(&study, &[5.0, 0.0]);
    assert!((volume - (0.5 + 0.8 + 2.0 * 0.9)).abs() < 1e-12, "{volume}");
    assert_eq!(hypervolume(&study, &[0.5, 0.0]), 0.0);
}

#[test]
fn volumes_of_three_objectives_add_up() {
    let objectives = ["a", "b", "c"].map(Objective::minimize).to_vec();
    let study = told(objectives, &[&[0.0, 1.0, 1.0], &[1.0, 0.0, 1.0], &[1.0, 1.0, 0.0]]);
    // Three boxes of 2·1·1 in a cube of side 2 that share one corner of 1.
    assert!((hypervolume(&study, &[2.0, 2.0, 2.0]) - 4.0).abs() < 1e-12);
}

#[test]
fn the_history_follows_the_ends_and_the_constraints() {
    let mut study = study(&["x=float(0,1)"], "random", 0);
    let numbers: Vec<u32> = (0..4).map(|_| started(&mut study).0).collect();
    let complete =
        |value: f64, constraint: f64| Outcome::Complete { values: vec![value], constraints: vec![constraint] };
    study.tell(numbers[2], complete(1.0, 0.5)).unwrap();
    study.tell(numbers[0], complete(3.0, 0.0)).unwrap();
    study.tell(numbers[3], Outcome::Failed { reason: "lost".to_owned() }).unwrap();
    study.tell(numbers[1], complete(2.0, 0.0)).unwrap();
    let seen: Vec<(u32, f64, Option<f64>)> =
        progress(&study, 0).into_iter().map(|one| (one.number, one.value, one.best)).collect();
    assert_eq!(seen, [(2, 1.0, None), (0, 3.0, Some(3.0)), (1, 2.0, Some(2.0))]);
}

#[test]
fn the_parameter_that_decides_is_the_important_one() {
    let mut study = study(&["big=float(0,1)", "small=log(1e-4,1)", "none=choice(a,b,c)"], "random", 3);
    for _ in 0..150 {
        let (number, values) = started(&mut study);
        let value = 10.0 * values["big"].number().unwrap() + values["small"].number().unwrap().log10();
        study.tell(number, Outcome::value(value)).unwrap();
    }
    let shares = importances(&study, 0);
    let names: Vec<Option<&str>> = shares.iter().map(|one| one.parameter.as_deref()).collect();
    assert_eq!(names, [Some("big"), Some("small"), Some("none"), None]);
    // The variances of the two parts are 100/12 and 16/12.
    assert!((shares[0].share - 0.86).abs() < 0.1, "{shares:?}");
    assert!((shares[1].share - 0.14).abs() < 0.1, "{shares:?}");
    assert!(shares[2].share < 0.02, "{shares:?}");
    assert!((shares.iter().map(|one| one.share).sum::<f64>() - 1.0).abs() < 0.05);
}

#[test]
fn what_works_only_together_is_told_apart() {
    let mut study = study(&["x=float(0,1)", "y=float(0,1)"], "quasi", 3);
    for _ in 0..200 {
        let (number, values) = started(&mut study);
        let high = |name: &str| values[name].number().unwrap() > 0.5;
        study.tell(number, Outcome::value(f64::from(u8::from(high("x") != high("y"))))).unwrap();
    }
    let shares = importances(&study, 0);
    assert!(shares[2].parameter.is_none() && shares[2].share > 0.7, "{shares:?}");
}

#[test]
fn nothing_is_said_where_nothing_is_known() {
    let study = told(vec![Objective::minimize("a")], &[[1.0].as_slice(); 9]);
    assert!(importances(&study, 0).is_empty());
    assert_eq!(outlook(&study, 10), None);
    assert_eq!(hypervolume(&study, &[2.0]), 1.0);
}

#[test]
fn as_many_trials_again_bring_what_the_latter_half_brought() {
    let values: Vec<Vec<f64>> =
        [9.0, 9.5, 8.0, 9.0, 7.0, 7.5, 6.0, 8.0, 5.5, 9.0].iter().map(|value| vec![*value]).collect();
    let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    let study = told(vec![Objective::minimize("a")], &values);
    let outlook = outlook(&study, 10).unwrap();
    // Of the last five 6 and 5.5 were improvements.
    assert!((outlook.improvements - 2.0).abs() < 1e-12, "{outlook:?}");
    // The least of one, of two and of all of these five is 7.2, 6.3 and 5.5 in the mean: each doubling brings 8/9 of the one
    // before it, so 6.4 is left, of which three times as many trials bring 17 %.
    assert!((outlook.gain - 1.089_870_113_818_587).abs() < 1e-9, "{outlook:?}");
    assert!((outlook.chance - 0.864_664_716_763_387_3).abs() < 1e-12);
    assert!(super::analyses::outlook(&study, 1).unwrap().improvements < 0.5);
}

#[test]
fn trials_that_break_a_constraint_promise_nothing() {
    let mut study = study(&["x=float(0,1)"], "random", 0);
    for at in 0..40 {
        let (number, _) = started(&mut study);
        // Those that are not allowed become better and better; the others have been all the same for long.
        let (value, constraint) = if at % 2 == 0 { (50.0 - f64::from(at), 1.0) } else { (60.0, 0.0) };
        let outcome = Outcome::Complete { values: vec![value], constraints: vec![constraint] };
        study.tell(number, outcome).unwrap();
    }
    assert_eq!(outlook(&study, 40).unwrap().gain, 0.0);
}

#[test]
fn a_front_among_some_is_as_if_the_others_were_not_there() {
    let objectives = vec![Objective::minimize("time"), Objective::minimize("size")];
    let study = told(objectives, &[&[0.0, 0.0], &[1.0, 5.0], &[2.0, 4.0], &[3.0, 1.0], &[3.0, 4.0]]);
    assert_eq!(front(&study), [0]);
    let own = front_among(&study, |trial| trial.number > 0);
    assert_eq!(own, [1, 2, 3]);
    assert_eq!(spread(&study, &own), [1, 3, 2], "the ends first");
}

#[test]
fn a_number_that_was_never_below_zero_is_not_promised_to_be() {
    let mut values: Vec<Vec<f64>> = (0..40).map(|at| vec![0.2 + 0.01 * f64::from(at % 7)]).collect();
    values[33] = vec![0.001];
    values[37] = vec![0.1];
    let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    let loss = outlook(&told(vec![Objective::minimize("loss")], &values), 40).unwrap();
    assert!(loss.gain <= 0.001, "{loss:?}");
    let share = outlook(&told(vec![Objective::maximize("accuracy")], &values), 40).unwrap();
    assert!(share.gain <= 1.0 - 0.26, "{share:?}");
}

/// Told beforehand, over many searches, the gain is about what as many trials again brought.
#[test]
fn what_was_foretold_is_what_came_in_the_mean() {
    let (mut foretold, mut came) = (0.0, 0.0);
    for seed in 0..30 {
        let mut study = study(&["x=float(-5,10)", "y=float(0,15)"], "random", seed);
        let run = |study: &mut Study, trials: u32| {
            for _ in 0..trials {
                let (number, values) = started(study);
                let at = |name: &str| values[name].number().unwrap();
                let value = 3.0 + (at("x") - 2.0).powi(2) + (at("y") - 4.0).powi(2);
                study.tell(number, Outcome::value(value)).unwrap();
            }
            study.best().unwrap().values[0]
        };
        let before = run(&mut study, 40);
        foretold += outlook(&study, 40).unwrap().gain;
        came += before - run(&mut study, 40);
    }
    assert!((0.4..2.5).contains(&(foretold / came)), "{foretold} {came}");
}
