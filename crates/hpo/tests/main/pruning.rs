//! Pruners: who goes on, who ends, who pauses, and who is called back.

use crate::harness::{settings, started};
use tulpar_hpo::pruner::{Ladder, Rungs};
use tulpar_hpo::{Decision, Direction, Next, Outcome, Pruner, State, Study};

fn pruned_study(pruner: Pruner) -> Study {
    let mut settings = settings(&["x=float(0,1)"], "random", 0);
    settings.pruner = pruner;
    Study::new(settings).unwrap()
}

fn completed(study: &mut Study, curve: &[f64]) {
    let (number, _) = started(study);
    for (step, value) in (1..).zip(curve) {
        study.report(number, step, *value).unwrap();
    }
    study.tell(number, Outcome::value(*curve.last().unwrap())).unwrap();
}

#[test]
fn the_median_ends_what_is_worse_than_half_of_the_others() {
    let mut study = pruned_study(Pruner::Median(Ladder { startup: 3, ..Ladder::default() }));
    for curve in [[5.0, 3.0], [6.0, 4.0], [7.0, 5.0]] {
        completed(&mut study, &curve);
    }
    let (number, _) = started(&mut study);
    assert_eq!(study.report(number, 1, 6.0), Ok(Decision::Continue));
    assert_eq!(study.report(number, 2, 4.5), Ok(Decision::Prune));
    let (number, _) = started(&mut study);
    assert_eq!(study.report(number, 1, 4.0), Ok(Decision::Continue));
    // Its best so far counts, not its last.
    assert_eq!(study.report(number, 2, 9.0), Ok(Decision::Continue));
}

#[test]
fn nothing_is_pruned_before_enough_are_complete_or_while_warming_up() {
    let mut study = pruned_study(Pruner::Median(Ladder { startup: 2, warmup: 2, interval: 2 }));
    completed(&mut study, &[1.0; 4]);
    let (early, _) = started(&mut study);
    assert_eq!(study.report(early, 2, 9.0), Ok(Decision::Continue));
    completed(&mut study, &[1.0; 4]);
    let decisions: Vec<Decision> = (1..=4).map(|step| study.report(early, step, 9.0).unwrap()).collect();
    assert_eq!(decisions, [Decision::Continue, Decision::Prune, Decision::Continue, Decision::Prune]);
}

#[test]
fn what_has_diverged_is_pruned_where_pruning_is_wanted() {
    let mut study = pruned_study("median".parse().unwrap());
    let (number, _) = started(&mut study);
    assert_eq!(study.report(number, 1, f64::NAN), Ok(Decision::Prune));
    let mut study = pruned_study(Pruner::None);
    let (number, _) = started(&mut study);
    assert_eq!(study.report(number, 1, f64::NAN), Ok(Decision::Continue));
    assert!(study.trial(number).unwrap().reports.is_empty());
}

#[test]
fn a_percentile_is_stricter_than_the_median() {
    let mut study =
        pruned_study(Pruner::Percentile { percent: 25.0, ladder: Ladder { startup: 1, ..Ladder::default() } });
    for value in [1.0, 2.0, 3.0, 4.0, 5.0] {
        completed(&mut study, &[value]);
    }
    let decision = |study: &mut Study, value: f64| {
        let (number, _) = started(study);
        study.report(number, 1, value).unwrap()
    };
    assert_eq!(decision(&mut study, 2.0), Decision::Continue);
    assert_eq!(decision(&mut study, 2.1), Decision::Prune);
}

#[test]
fn when_more_is_better_the_low_ones_go() {
    let mut settings = settings(&["x=float(0,1)"], "random", 0);
    settings.objectives[0].direction = Direction::Maximize;
    settings.pruner = Pruner::Median(Ladder { startup: 1, ..Ladder::default() });
    let mut study = Study::new(settings).unwrap();
    completed(&mut study, &[0.5]);
    let (number, _) = started(&mut study);
    assert_eq!(study.report(number, 1, 0.4), Ok(Decision::Prune));
    let (number, _) = started(&mut study);
    assert_eq!(study.report(number, 1, 0.6), Ok(Decision::Continue));
}

#[test]
fn halving_lets_a_third_pass_each_rung_and_asks_only_there() {
    let mut study = pruned_study(Pruner::Halving(Rungs { least: 2, factor: 3, pause: false }));
    let at_rung = |study: &mut Study, value: f64| {
        let (number, _) = started(study);
        assert_eq!(study.report(number, 1, 100.0), Ok(Decision::Continue));
        study.report(number, 2, value).unwrap()
    };
    let decisions: Vec<Decision> =
        [5.0, 6.0, 4.0, 7.0, 8.0, 4.5, 4.6].iter().map(|value| at_rung(&mut study, *value)).collect();
    use Decision::{Continue, Prune};
    assert_eq!(decisions, [Continue, Prune, Continue, Prune, Prune, Continue, Prune]);
    // Between rungs 2 and 6 nothing is asked.
    assert_eq!(study.report(0, 5, 1e9), Ok(Continue));
    assert_eq!(study.report(0, 6, 1.0), Ok(Continue));
}

#[test]
fn who_pauses_is_called_back_when_others_turn_out_worse() {
    let mut study = pruned_study(Pruner::Halving(Rungs { least: 1, factor: 2, pause: true }));
    let arrive = |study: &mut Study, value: f64| {
        let Next::Start { number, .. } = study.ask() else { panic!("nobody is to be called back") };
        let decision = study.report(number, 1, value).unwrap();
        if decision == Decision::Pause {
            study.pause(number).unwrap();
        }
        (number, decision)
    };
    assert_eq!(arrive(&mut study, 1.0), (0, Decision::Continue));
    assert_eq!(arrive(&mut study, 2.0), (1, Decision::Pause));
    assert_eq!(study.trial(1).unwrap().state, State::Paused);
    assert_eq!(arrive(&mut study, 3.0), (2, Decision::Pause));
    assert_eq!(arrive(&mut study, 4.0), (3, Decision::Pause));
    // Of four the best two go on: 1 is the second.
    let text = serde_json::to_string(&study).unwrap();
    let mut again: Study = serde_json::from_str(&text).unwrap();
    for study in [&mut study, &mut again] {
        assert_eq!(study.ask(), Next::Resume { number: 1 });
        assert_eq!(study.trial(1).unwrap().state, State::Running);
        assert!(matches!(study.ask(), Next::Start { number: 4, .. }));
        // It reports again what it had, from its checkpoint, and climbs on.
        assert_eq!(study.report(1, 1, 2.0), Ok(Decision::Continue));
        assert_eq!(study.report(1, 2, 1.5), Ok(Decision::Continue));
        study.tell(1, Outcome::value(1.5)).unwrap();
    }
}

#[test]
fn who_is_paused_can_be_ended_and_is_not_called_back_then() {
    let mut study = pruned_study(Pruner::Halving(Rungs { least: 1, factor: 2, pause: true }));
    for value in [1.0, 2.0, 3.0] {
        let (number, _) = started(&mut study);
        if study.report(number, 1, value).unwrap() == Decision::Pause {
            study.pause(number).unwrap();
        }
    }
    study.tell(1, Outcome::Pruned).unwrap();
    let (number, _) = started(&mut study);
    study.report(number, 1, 4.0).unwrap();
    assert!(matches!(study.ask(), Next::Start { .. }));
    assert_eq!(study.resume(0).unwrap_err().to_string(), "trial 0 is not paused, so it cannot be resumed");
}

#[test]
fn hyperband_starts_some_trials_with_later_rungs() {
    let mut study = pruned_study(Pruner::Hyperband { rungs: Rungs { least: 1, factor: 3, pause: false }, most: 27 });
    let mut firsts = std::collections::BTreeMap::new();
    for _ in 0..200 {
        let (number, _) = started(&mut study);
        // Always worse than before: it goes at its first rung, unless it is the first of its bracket.
        let ended = (1..=27).find(|step| study.report(number, *step, f64::from(number)).unwrap() == Decision::Prune);
        *firsts.entry(ended.unwrap_or(0)).or_insert(0) += 1;
    }
    assert_eq!(firsts.keys().copied().collect::<Vec<u64>>(), [0, 1, 3, 9]);
    assert!(firsts[&1] > firsts[&3] && firsts[&3] > firsts[&9], "{firsts:?}");
}
