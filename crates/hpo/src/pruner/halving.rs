//! Asynchronous successive halving over one ladder of rungs: nobody waits for a rung to fill.

use super::{Decision, Rungs};
use std::collections::{BTreeMap, BTreeSet};

/// A loss that can be a key.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Loss(f64, u32);

impl Eq for Loss {}

impl Ord for Loss {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Loss {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Clone, Default)]
struct Rung {
    /// Everybody who came here, sorted.
    values: Vec<Loss>,
    paused: BTreeSet<Loss>,
}

impl Rung {
    /// Whether this one is among the best 1/factor; the best of all always is.
    fn promotes(&self, loss: Loss, factor: u64) -> bool {
        let place = self.values.partition_point(|other| other < &loss);
        place < (self.values.len() / factor as usize).max(1)
    }
}

/// The highest rung that a trial reached, and its value there.
#[derive(Debug, Clone, Copy)]
struct Climber {
    rung: Option<(usize, f64)>,
    decided: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Halving {
    settings: Rungs,
    /// Beyond it a trial is at its end and nothing is decided.
    most: Option<u64>,
    rungs: Vec<Rung>,
    climbers: BTreeMap<u32, Climber>,
}

impl Halving {
    pub(super) fn new(settings: Rungs, most: Option<u64>) -> Self {
        Self { settings, most, rungs: Vec::new(), climbers: BTreeMap::new() }
    }

    pub(super) fn begin(&mut self, number: u32) {
        self.climbers.insert(number, Climber { rung: None, decided: true });
    }

    fn resource(&self, rung: usize) -> u64 {
        self.settings.least.saturating_mul(self.settings.factor.saturating_pow(rung as u32))
    }

    pub(super) fn record(&mut self, number: u32, step: u64, loss: f64) {
        let Some(climber) = self.climbers.get(&number).copied() else { return };
        let mut next = climber.rung.map_or(0, |(rung, _)| rung + 1);
        let mut reached = climber.rung;
        // A trial that reports rarely may pass several rungs at once; it counts at each of them.
        while self.resource(next) <= step && self.most.is_none_or(|most| self.resource(next) < most) && next < 64 {
            if self.rungs.len() <= next {
                self.rungs.push(Rung::default());
            }
            let values = &mut self.rungs[next].values;
            let entry = Loss(loss, number);
            values.insert(values.partition_point(|other| other < &entry), entry);
            reached = Some((next, loss));
            next += 1;
        }
        let new = reached.map(|(rung, _)| rung) != climber.rung.map(|(rung, _)| rung);
        self.climbers.insert(number, Climber { rung: reached, decided: climber.decided && !new });
    }

    /// Decides once at each rung; between rungs a trial goes on.
    pub(super) fn decide(&mut self, number: u32) -> Decision {
        let Some(climber) = self.climbers.get_mut(&number) else { return Decision::Continue };
        let Some((rung, loss)) = climber.rung.filter(|_| !climber.decided) else { return Decision::Continue };
        climber.decided = true;
        if self.rungs[rung].promotes(Loss(loss, number), self.settings.factor) {
            Decision::Continue
        } else if self.settings.pause {
            Decision::Pause
        } else {
            Decision::Prune
        }
    }

    pub(super) fn pause(&mut self, number: u32) {
        if let Some((rung, loss)) = self.climbers.get_mut(&number).and_then(|climber| {
            climber.decided = true;
            climber.rung
        }) {
            self.rungs[rung].paused.insert(Loss(loss, number));
        }
    }

    /// Also when it ends: it waits no longer.
    pub(super) fn resume(&mut self, number: u32) {
        if let Some((rung, loss)) = self.climbers.get(&number).and_then(|climber| climber.rung) {
            self.rungs[rung].paused.remove(&Loss(loss, number));
        }
    }

    pub(super) fn promotion(&self) -> Option<(usize, u32)> {
        self.rungs.iter().enumerate().rev().find_map(|(at, rung)| {
            let best = *rung.paused.first()?;
            rung.promotes(best, self.settings.factor).then_some((at, best.1))
        })
    }
}
