//! How the best value came about, and what more trials would likely bring.

use crate::math::{exp, log};
use crate::study::Study;
use crate::trial::State;
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

/// A rule of thumb, told from the study's own past: as many trials again bring about as many improvements as the latter
/// half of the trials brought (improvements become rarer as one over the number of trials, as records do), each as
/// large as the middle one of these. None for fewer than ten complete trials or several objectives.
pub fn outlook(study: &Study, more: usize) -> Option<Outlook> {
    let history = progress(study, 0);
    if study.settings().objectives.len() != 1 || history.len() < 10 {
        return None;
    }
    let half = history.len() / 2;
    let steps = history.windows(2).skip(half - 1).filter_map(|pair| Some((pair[1].best? - pair[0].best?).abs()));
    let mut gains: Vec<f64> = steps.filter(|gain| *gain > 0.0).collect();
    gains.sort_by(f64::total_cmp);
    // Half an improvement stands for those that a half without any did not happen to see.
    let seen = (gains.len() as f64).max(0.5);
    let count = history.len() as f64;
    let improvements = seen * log((count + more as f64) / count) / log(count / half as f64);
    let middle = gains.get(gains.len() / 2).copied().unwrap_or(0.0);
    Some(Outlook { improvements, chance: 1.0 - exp(-improvements), gain: improvements * middle })
}
