//! How the best value came about, and what more trials would likely bring.

use crate::math::{exp, log};
use crate::objective::Direction;
use crate::study::Study;
use crate::trial::{State, Trial};
use serde::Serialize;

/// A complete trial in the order of the ends, and the best value with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Progress {
    pub number: u32,
    pub value: f64,
    /// None while every trial broke a constraint.
    pub best: Option<f64>,
}

/// The history of one objective, in the order in which trials ended.
pub fn progress(study: &Study, objective: usize) -> Vec<Progress> {
    let Some(direction) = study.settings().objectives.get(objective).map(|one| one.direction) else {
        return Vec::new();
    };
    let mut best: Option<f64> = None;
    let trials = study.ended().iter().filter_map(|number| study.trial(*number));
    trials
        .filter(|trial| trial.state == State::Complete)
        .map(|trial| {
            let value = trial.values[objective];
            let better = best.is_none_or(|best| direction.loss(value) < direction.loss(best));
            if trial.is_feasible() && better {
                best = Some(value);
            }
            Progress { number: trial.number, value, best }
        })
        .collect()
}

/// What so many more trials would likely bring.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outlook {
    /// How many improvements are expected.
    pub improvements: f64,
    /// How likely at least one is.
    pub chance: f64,
    /// By how much the best value would be better, in its own units.
    pub gain: f64,
}

/// No number of improvements makes more than nine tenths of what one of them brought before: nothing falls for ever.
const SLOWEST: f64 = 0.9;

/// A rule of thumb, told from the study's own past. As many trials again bring about as many improvements as the latter
/// half of the trials brought: they become rarer as one over the number of trials, as records do. What they bring is what
/// twice as many trials like those of the latter half would: the least of a quarter, of a half and of all of them says how
/// fast that shrinks, and so where it ends. Numbers that were never below zero are taken to stay there, and shares below
/// one. None for fewer than ten complete trials or several objectives.
pub fn outlook(study: &Study, more: usize) -> Option<Outlook> {
    let history = progress(study, 0);
    if study.settings().objectives.len() != 1 || history.len() < 10 {
        return None;
    }
    let half = history.len() / 2;
    let better =
        history.windows(2).skip(half - 1).filter(|pair| pair[0].best.is_some() && pair[0].best != pair[1].best);
    // Half an improvement stands for those that a half without any did not happen to see.
    let seen = (better.count() as f64).max(0.5);
    let count = history.len() as f64;
    let improvements = seen * log((count + more as f64) / count) / log(count / half as f64);
    // A trial that breaks a constraint is not what is looked for, however good its number is.
    let feasible = |one: &&Progress| study.trial(one.number).is_some_and(Trial::is_feasible);
    let kept: Vec<Progress> = history.iter().filter(feasible).cloned().collect();
    let likely = more * kept.len() / history.len();
    let gain = gain(study.settings().objectives[0].direction, &kept, kept.len() / 2, likely);
    Some(Outlook { improvements, chance: 1.0 - exp(-improvements), gain })
}

fn gain(direction: Direction, history: &[Progress], half: usize, more: usize) -> f64 {
    let Some(best) = history.last().and_then(|last| last.best) else { return 0.0 };
    let mut recent: Vec<f64> = history[half..].iter().map(|one| direction.loss(one.value)).collect();
    recent.sort_by(f64::total_cmp);
    let count = recent.len();
    let [quarter, middle, all] = [count / 4, count / 2, count].map(|size| expected_least(&recent, size.max(1)));
    let shrinks = if quarter > middle { ((middle - all) / (quarter - middle)).clamp(0.0, SLOWEST) } else { 0.0 };
    // All that is left, if every doubling brings that share of the one before it.
    let left = (middle - all) * shrinks / (1.0 - shrinks);
    let doublings = log(1.0 + more as f64 / count as f64) / log(2.0);
    let brought = left * (1.0 - exp(doublings * log(shrinks.max(1e-9))));
    // The best may be older than these.
    let behind = recent[0] - direction.loss(best);
    (brought - behind).clamp(0.0, floor(direction, history, best))
}

/// How much better a number can become that keeps to where all of them were.
fn floor(direction: Direction, history: &[Progress], best: f64) -> f64 {
    let all = |within: fn(f64) -> bool| history.iter().all(|one| within(one.value));
    match direction {
        Direction::Minimize if all(|value| value >= 0.0) => best,
        Direction::Maximize if all(|value| value <= 0.0) => -best,
        Direction::Maximize if all(|value| (0.0..=1.0).contains(&value)) => 1.0 - best,
        _ => f64::INFINITY,
    }
}

/// The least of so many drawn from these, in the mean over all draws. They are sorted.
fn expected_least(sorted: &[f64], drawn: usize) -> f64 {
    let count = sorted.len();
    // How likely each is the least: those before it were not drawn.
    let mut likely = drawn as f64 / count as f64;
    let mut mean = 0.0;
    for (at, value) in sorted.iter().enumerate().take(count - drawn + 1) {
        mean += likely * value;
        likely *= (count - at - drawn) as f64 / (count - at - 1).max(1) as f64;
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_some_is_as_if_all_draws_were_tried() {
        assert_eq!(expected_least(&[1.0, 2.0, 4.0], 3), 1.0);
        assert!((expected_least(&[1.0, 2.0, 4.0], 1) - 7.0 / 3.0).abs() < 1e-12);
        // Of {1,2}, {1,4} and {2,4}.
        assert!((expected_least(&[1.0, 2.0, 4.0], 2) - 4.0 / 3.0).abs() < 1e-12);
    }
}
