//! Every combination once, the last parameter fastest, and none before those that decide whether it is active. Combinations that differ only in parameters that are not active
//! are one.

use super::{GridSettings, bits};
use crate::space::{Point, Space};
use crate::trial::{Origin, Trial};
use std::collections::BTreeSet;

/// More values of one parameter would never be tried, and each of them takes memory.
pub(crate) const MOST_LEVELS: u64 = 100_000;

#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// The numbers that are tried of each parameter.
    levels: Vec<Vec<f64>>,
    /// The parameters as they were given, each behind those that it depends on.
    order: Vec<usize>,
    /// Where in the order of the parameters we are; nothing at the end.
    next: Option<Vec<usize>>,
    /// Points that were not its own to choose.
    taken: BTreeSet<Vec<Option<u64>>>,
}

/// A space has no circles, so some parameter is always free to be next.
fn order(space: &Space) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(space.len());
    while let Some(next) =
        (0..space.len()).find(|at| !order.contains(at) && space.parents(*at).all(|parent| order.contains(&parent)))
    {
        order.push(next);
    }
    order
}

impl Grid {
    pub(crate) fn new(settings: GridSettings, space: &Space) -> Self {
        let numbers = |parameter: usize| {
            let domain = space.domain(parameter);
            match domain.cells() {
                Some(cells) => (0..cells).map(|cell| domain.cell_number(cell)).collect(),
                None => {
                    let unit = |level: u64| level as f64 / (settings.levels - 1) as f64;
                    (0..settings.levels).map(|level| domain.at_unit(unit(level))).collect::<Vec<f64>>()
                }
            }
        };
        Self {
            levels: (0..space.len()).map(numbers).collect(),
            order: order(space),
            next: Some(vec![0; space.len()]),
            taken: BTreeSet::new(),
        }
    }

    /// Goes on behind one of its own points; what others try is left out when it is its turn.
    pub(crate) fn begun(&mut self, trial: &Trial) {
        if trial.origin != Origin::Sampled {
            self.taken.insert(bits(&trial.point));
            return;
        }
        let place = |(levels, number): (&Vec<f64>, &Option<f64>)| {
            levels.iter().position(|level| Some(*level) == *number).unwrap_or(0)
        };
        let next = self.levels.iter().zip(&trial.point).map(place).collect();
        self.next = self.after(next, &trial.point);
    }

    /// The combination that follows.
    fn after(&self, mut next: Vec<usize>, point: &Point) -> Option<Vec<usize>> {
        for &at in self.order.iter().rev() {
            // What is not active has one combination only.
            if point[at].is_some() && next[at] + 1 < self.levels[at].len() {
                next[at] += 1;
                return Some(next);
            }
            next[at] = 0;
        }
        None
    }

    pub(crate) fn suggest(&self, space: &Space) -> Option<Point> {
        let mut next = self.next.clone()?;
        loop {
            let mut point = vec![None; space.len()];
            for &at in space.order() {
                if space.active(at, &point) {
                    point[at] = Some(self.levels[at][next[at]]);
                }
            }
            if !self.taken.contains(&bits(&point)) {
                return Some(point);
            }
            next = self.after(next, &point)?;
        }
    }
}
