//! Compares the best value of a trial so far with what others had at the same step.

use super::{Decision, Ladder};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub(crate) struct Percentile {
    share: f64,
    ladder: Ladder,
    completed: usize,
    /// What complete trials had at a step, sorted.
    at_step: BTreeMap<u64, Vec<f64>>,
    /// Values of trials on the way.
    curves: BTreeMap<u32, BTreeMap<u64, f64>>,
}

impl Percentile {
    pub(super) fn new(share: f64, ladder: Ladder) -> Self {
        Self { share, ladder, completed: 0, at_step: BTreeMap::new(), curves: BTreeMap::new() }
    }

    pub(super) fn record(&mut self, number: u32, step: u64, loss: f64) {
        self.curves.entry(number).or_default().insert(step, loss);
    }

    pub(super) fn decide(&self, number: u32, step: u64) -> Decision {
        if self.completed < self.ladder.startup
            || step < self.ladder.warmup
            || !(step - self.ladder.warmup).is_multiple_of(self.ladder.interval)
        {
            return Decision::Continue;
        }
        let (Some(curve), Some(others)) = (self.curves.get(&number), self.at_step.get(&step)) else {
            return Decision::Continue;
        };
        let best = curve.range(..=step).map(|(_, loss)| *loss).fold(f64::INFINITY, f64::min);
        if best > quantile(others, self.share) { Decision::Prune } else { Decision::Continue }
    }

    pub(super) fn end(&mut self, number: u32, complete: bool) {
        let Some(curve) = self.curves.remove(&number) else {
            self.completed += usize::from(complete);
            return;
        };
        if complete {
            self.completed += 1;
            for (step, loss) in curve {
                let values = self.at_step.entry(step).or_default();
                values.insert(values.partition_point(|value| *value < loss), loss);
            }
        }
    }
}

/// Of sorted values, between neighbours in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::INFINITY };
    let place = share * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}
