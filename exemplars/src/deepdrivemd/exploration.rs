//! How much of its landscape a molecule has seen: cells in the plane of two coordinates that nobody learnt, folded part
//! and distance of the ends. It judges, so it must not know the network.

use super::chain::folded_part;
use super::frames::Frame;
use std::collections::BTreeMap;

/// Pairs that can be held: so many rows and one.
pub(super) const ROWS: usize = 8;
/// Cells along the distance of the ends, each one bead wide.
pub(super) const COLUMNS: usize = 16;

/// How often each cell was visited.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Landscape(pub(super) BTreeMap<(usize, usize), usize>);

impl Landscape {
    pub(super) fn add(&mut self, frame: &Frame) {
        let row = (folded_part(&frame.positions) * (ROWS - 1) as f64).round() as usize;
        let column = (frame.end_to_end() as usize).min(COLUMNS - 1);
        *self.0.entry((row, column)).or_default() += 1;
    }

    pub(super) fn cells(&self) -> usize {
        self.0.len()
    }

    /// The smallest folded part that was seen.
    pub(super) fn most_open(&self) -> f64 {
        self.0.keys().map(|(row, _)| *row).min().unwrap_or(ROWS - 1) as f64 / (ROWS - 1) as f64
    }
}

/// Cells seen up to the end of each iteration, and the landscape in the end. `iteration` says to which a frame belongs.
pub(super) fn explored(
    frames: &[Frame],
    iterations: usize,
    iteration: impl Fn(usize, &Frame) -> usize,
) -> (Vec<usize>, Landscape) {
    let mut landscape = Landscape::default();
    let mut seen = Vec::new();
    for now in 1..=iterations {
        for (at, frame) in frames.iter().enumerate() {
            if iteration(at, frame) == now {
                landscape.add(frame);
            }
        }
        seen.push(landscape.cells());
    }
    (seen, landscape)
}

#[cfg(test)]
mod tests {
    use super::super::chain::{BEADS, folded};
    use super::*;

    #[test]
    fn cells_add_up_over_iterations() {
        let stretched = (0..BEADS).map(|bead| [bead as f64, 0.0, 0.0]).collect();
        let frame = |about: &str, positions| Frame { about: about.into(), positions };
        let frames = [frame("iteration=1", folded()), frame("iteration=2", folded()), frame("iteration=3", stretched)];
        let (seen, landscape) = explored(&frames, 3, |_, frame| frame.iteration());
        assert_eq!(seen, [1, 1, 2]);
        assert_eq!(landscape.0, BTreeMap::from([((7, 1), 2), ((0, 15), 1)]));
        assert_eq!(landscape.most_open(), 0.0);
    }
}
