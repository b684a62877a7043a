//! Pruners: whether a trial that reported should go on, end, or pause at a rung until it has earned to go on.
//!
//! Values are losses: smaller is better. Nothing here knows points or samplers. No pruner ends or pauses a trial that is
//! the best of its step so far.

mod halving;
mod percentile;

use crate::error::StudyError;
use crate::random::{Purpose, Stream};
use crate::trial::{State, Trial};
use halving::Halving;
use percentile::Percentile;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Continue,
    Prune,
    /// Stop here and keep the checkpoint; [`crate::Study::propose`] says when to go on.
    Pause,
}

/// Which pruner, and how it is set; by name with its defaults, or a mapping: `median`, `{halving: {least: 2}}`. Steps
/// are whatever the trials report: epochs, batches, samples.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "lowercase")]
pub enum Pruner {
    #[default]
    None,
    /// Ends a trial whose best value so far is worse than the median of the others at that step.
    Median(Ladder),
    /// Ends a trial whose best value so far is not among the best share of the others at that step.
    Percentile { percent: f64, ladder: Ladder },
    /// Asynchronous successive halving (ASHA): at each rung the best 1/factor go on.
    Halving(Rungs),
    /// Several halvings whose first rungs differ, so that slow starters have a chance.
    Hyperband { rungs: Rungs, most: u64 },
}

/// When a comparison of curves begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ladder {
    /// So many trials complete before any is pruned.
    pub startup: usize,
    /// Steps before this one prune nothing.
    pub warmup: u64,
    /// Every how many steps it is asked.
    pub interval: u64,
}

impl Default for Ladder {
    fn default() -> Self {
        Self { startup: 5, warmup: 0, interval: 1 }
    }
}

/// Rungs at `least`, `least·factor`, `least·factor²`, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rungs {
    pub least: u64,
    pub factor: u64,
    /// Pause instead of ending: what was paused goes on when it is among the best 1/factor of its rung after all.
    pub pause: bool,
}

impl Default for Rungs {
    fn default() -> Self {
        Self { least: 1, factor: 3, pause: false }
    }
}

impl Pruner {
    pub(crate) fn check(&self, objectives: usize) -> Result<(), StudyError> {
        if objectives > 1 && *self != Self::None {
            return Err(StudyError::PrunerOfSeveral { objectives });
        }
        let wrong = |what, value: f64, must| Err(StudyError::Setting { what, value, must });
        match *self {
            Self::Percentile { percent, .. } if !(percent > 0.0 && percent < 100.0) => {
                wrong("the percentile", percent, "between 0 and 100")
            }
            Self::Median(ladder) | Self::Percentile { ladder, .. } if ladder.interval == 0 => {
                wrong("the interval", 0.0, "at least 1")
            }
            Self::Halving(rungs) | Self::Hyperband { rungs, .. } if rungs.factor < 2 => {
                wrong("the reduction factor", rungs.factor as f64, "at least 2")
            }
            Self::Halving(rungs) | Self::Hyperband { rungs, .. } if rungs.least == 0 => {
                wrong("the first rung", 0.0, "at least 1")
            }
            Self::Hyperband { rungs, most } if most < rungs.least => {
                wrong("the most steps of a trial", most as f64, "at least the first rung")
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{0}` is no pruner; there are none, median, percentile, halving (also asha) and hyperband")]
pub struct UnknownPruner(String);

impl FromStr for Pruner {
    type Err = UnknownPruner;

    fn from_str(text: &str) -> Result<Self, UnknownPruner> {
        Ok(match text {
            "none" => Self::None,
            "median" => Self::Median(Ladder::default()),
            "percentile" => Self::Percentile { percent: 25.0, ladder: Ladder::default() },
            "halving" | "asha" => Self::Halving(Rungs::default()),
            "hyperband" => Self::Hyperband { rungs: Rungs::default(), most: 81 },
            _ => return Err(UnknownPruner(text.to_owned())),
        })
    }
}

impl Serialize for Pruner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Pruner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrMap;
        impl<'de> Visitor<'de> for NameOrMap {
            type Value = Pruner;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name of a pruner, as in median, or its settings, as in {halving: {least: 2}}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Pruner, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pruner, A::Error> {
                Pruner::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(NameOrMap)
    }
}

/// The pruner at work.
#[derive(Debug, Clone)]
pub(crate) enum Judge {
    None,
    Percentile(Percentile),
    /// Brackets and their shares of the trials; a halving alone is one bracket.
    Halving {
        brackets: Vec<Halving>,
        shares: Vec<f64>,
        bracket_of: Vec<u8>,
        seed: u64,
    },
}

impl Judge {
    pub(crate) fn new(pruner: &Pruner, seed: u64) -> Self {
        match *pruner {
            Pruner::None => Self::None,
            Pruner::Median(ladder) => Self::Percentile(Percentile::new(0.5, ladder)),
            Pruner::Percentile { percent, ladder } => Self::Percentile(Percentile::new(percent / 100.0, ladder)),
            Pruner::Halving(rungs) => Self::Halving {
                brackets: vec![Halving::new(rungs, None)],
                shares: vec![1.0],
                bracket_of: Vec::new(),
                seed,
            },
            Pruner::Hyperband { rungs, most } => {
                let mut first = rungs.least;
                let mut brackets = Vec::new();
                while first <= most && brackets.len() < 64 {
                    brackets.push(Halving::new(Rungs { least: first, ..rungs }, Some(most)));
                    first = first.saturating_mul(rungs.factor);
                }
                // A bracket that begins later lets trials run longer; it gets as many as cost the same.
                let highest = brackets.len();
                let shares = (0..highest).map(|at| {
                    let rounds = (highest - at) as i32;
                    (rungs.factor as f64).powi(rounds - 1) * highest as f64 / f64::from(rounds)
                });
                let shares: Vec<f64> = shares.collect();
                Self::Halving { brackets, shares, bracket_of: Vec::new(), seed }
            }
        }
    }

    pub(crate) fn begin(&mut self, number: u32) {
        if let Self::Halving { brackets, shares, bracket_of, seed } = self {
            let mut bracket = 0;
            if brackets.len() > 1 {
                let sum: f64 = shares.iter().sum();
                let mut left = Stream::new(*seed, Purpose::Bracket, u64::from(number)).uniform() * sum;
                while bracket + 1 < shares.len() && left >= shares[bracket] {
                    left -= shares[bracket];
                    bracket += 1;
                }
            }
            bracket_of.push(bracket as u8);
            brackets[bracket].begin(number);
        }
    }

    pub(crate) fn record(&mut self, number: u32, step: u64, loss: f64) {
        match self {
            Self::None => {}
            Self::Percentile(percentile) => percentile.record(number, step, loss),
            Self::Halving { brackets, bracket_of, .. } => {
                brackets[bracket_of[number as usize] as usize].record(number, step, loss);
            }
        }
    }

    /// After the value of that step was recorded.
    pub(crate) fn decide(&mut self, number: u32, step: u64) -> Decision {
        match self {
            Self::None => Decision::Continue,
            Self::Percentile(percentile) => percentile.decide(number, step),
            Self::Halving { brackets, bracket_of, .. } => brackets[bracket_of[number as usize] as usize].decide(number),
        }
    }

    pub(crate) fn pause(&mut self, number: u32) {
        if let Self::Halving { brackets, bracket_of, .. } = self {
            brackets[bracket_of[number as usize] as usize].pause(number);
        }
    }

    pub(crate) fn resume(&mut self, number: u32) {
        if let Self::Halving { brackets, bracket_of, .. } = self {
            brackets[bracket_of[number as usize] as usize].resume(number);
        }
    }

    /// A paused trial that should go on: the one at the highest rung.
    pub(crate) fn promotion(&self) -> Option<u32> {
        let Self::Halving { brackets, .. } = self else { return None };
        brackets.iter().filter_map(Halving::promotion).max_by_key(|(rung, _)| *rung).map(|(_, number)| number)
    }

    pub(crate) fn end(&mut self, trial: &Trial) {
        match self {
            Self::None => {}
            Self::Percentile(percentile) => percentile.end(trial.number, trial.state == State::Complete),
            Self::Halving { brackets, bracket_of, .. } => {
                brackets[bracket_of[trial.number as usize] as usize].resume(trial.number);
            }
        }
    }
}
