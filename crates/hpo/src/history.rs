//! What samplers see of a study: where trials lie in the unit cube, what came of them, who is on the way.
//! All of it follows from the trials and the order in which they ended.

use crate::objective::Direction;
use crate::space::Space;
use crate::trial::{State, Trial};
use std::collections::BTreeSet;

/// Orders ended trials of one objective, best first: complete ones by value, then pruned ones by how far they came,
/// then those that break constraints, then those that failed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rank {
    pub(crate) class: u8,
    pub(crate) first: f64,
    pub(crate) second: f64,
    pub(crate) number: u32,
}

impl Rank {
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        self.class
            .cmp(&other.class)
            .then(self.first.total_cmp(&other.first))
            .then(self.second.total_cmp(&other.second))
            .then(self.number.cmp(&other.number))
    }
}

pub(crate) const COMPLETE: u8 = 0;
pub(crate) const PRUNED: u8 = 1;
const FAILED: u8 = 3;

#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) dimensions: usize,
    directions: Vec<Direction>,
    /// One row a trial; not a number where a parameter is not active.
    units: Vec<f64>,
    /// To be minimised; one row a trial, infinite where there is none.
    losses: Vec<f64>,
    /// In the order in which they ended.
    pub(crate) ended: Vec<u32>,
    pub(crate) ranked: Vec<Rank>,
    /// Running and paused ones.
    pub(crate) pending: BTreeSet<u32>,
    /// Ended ones from which something can be learned.
    pub(crate) informative: usize,
}

impl History {
    pub(crate) fn new(dimensions: usize, directions: Vec<Direction>) -> Self {
        Self {
            dimensions,
            directions,
            units: Vec::new(),
            losses: Vec::new(),
            ended: Vec::new(),
            ranked: Vec::new(),
            pending: BTreeSet::new(),
            informative: 0,
        }
    }

    pub(crate) fn objectives(&self) -> usize {
        self.directions.len()
    }

    /// A trial began; trials begin in the order of their numbers.
    pub(crate) fn begin(&mut self, space: &Space, trial: &Trial) {
        self.units.extend(space.to_units(&trial.point));
        self.losses.extend(self.directions.iter().map(|_| f64::INFINITY));
        self.pending.insert(trial.number);
    }

    pub(crate) fn end(&mut self, trial: &Trial) {
        self.pending.remove(&trial.number);
        self.ended.push(trial.number);
        self.informative += usize::from(trial.state.is_informative());
        let at = trial.number as usize * self.directions.len();
        let last = trial.reports.last().copied();
        let values = match trial.state {
            State::Complete => trial.values.as_slice(),
            State::Pruned => last.as_ref().map(|(_, value)| std::slice::from_ref(value)).unwrap_or_default(),
            _ => &[],
        };
        for ((loss, value), direction) in self.losses[at..].iter_mut().zip(values).zip(&self.directions) {
            *loss = direction.loss(*value);
        }
        let loss = self.losses[at];
        let (class, first, second) = match trial.state {
            State::Complete if trial.is_feasible() => (COMPLETE, loss, 0.0),
            State::Complete => (2, trial.violation(), loss),
            State::Pruned => (PRUNED, -last.map_or(0.0, |(step, _)| step as f64), loss),
            _ => (FAILED, 0.0, 0.0),
        };
        let rank = Rank { class, first, second, number: trial.number };
        let place = self.ranked.partition_point(|other| other.compare(&rank).is_lt());
        self.ranked.insert(place, rank);
    }

    /// One that failed is under way again.
    pub(crate) fn reopen(&mut self, number: u32) {
        self.pending.insert(number);
        self.ended.retain(|other| *other != number);
        self.ranked.retain(|rank| rank.number != number);
    }

    pub(crate) fn units(&self, number: u32) -> &[f64] {
        let at = number as usize * self.dimensions;
        &self.units[at..at + self.dimensions]
    }

    pub(crate) fn losses(&self, number: u32) -> &[f64] {
        let at = number as usize * self.directions.len();
        &self.losses[at..at + self.directions.len()]
    }

    /// Of the first objective.
    pub(crate) fn loss(&self, number: u32) -> f64 {
        self.losses[number as usize * self.directions.len()]
    }
}
