//! Every combination once, the last parameter fastest. Combinations that differ only in parameters that are not active
//! are one.

use super::GridSettings;
use crate::space::{Point, Space};
use crate::trial::{Origin, Trial};

#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// The numbers that are tried of each parameter.
    levels: Vec<Vec<f64>>,
    /// Where in the order of the parameters we are; nothing at the end.
    next: Option<Vec<usize>>,
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
        Self { levels: (0..space.len()).map(numbers).collect(), next: Some(vec![0; space.len()]) }
    }

    /// Moves on when one of its own points was taken.
    pub(crate) fn begun(&mut self, trial: &Trial) {
        if trial.origin != Origin::Sampled {
            return;
        }
        let Some(next) = &mut self.next else { return };
        for at in (0..next.len()).rev() {
            // What is not active has one combination only.
            if trial.point[at].is_some() && next[at] + 1 < self.levels[at].len() {
                next[at] += 1;
                return;
            }
            next[at] = 0;
        }
        self.next = None;
    }

    pub(crate) fn suggest(&self, space: &Space) -> Option<Point> {
        let next = self.next.as_ref()?;
        let mut point = vec![None; space.len()];
        for &at in space.order() {
            if space.active(at, &point) {
                point[at] = Some(self.levels[at][next[at]]);
            }
        }
        Some(point)
    }
}
