//! The two parameters that mattered most against each other: trials as dots, and between them what trials nearby found.

use super::axis::figure;
use super::charts::{Drawing, FRAME, at};
use super::marks::{self, SHADES, drawn, mark, ranks, ring, said};
use super::panels::by_importance;
use super::{SearchReport, TrialRow};
use std::fmt::Write;

const COLUMNS: usize = 40;
const ROWS: usize = 20;
/// Trials beyond this are too many to be weighed for each cell.
const MOST: usize = 400;

pub(super) fn contour(search: &SearchReport) -> Option<Drawing> {
    let [first, second, ..] = by_importance(search)[..] else { return None };
    let has_both =
        |trial: &&TrialRow| [first, second].iter().all(|place| trial.point.get(*place).copied().flatten().is_some());
    let trials: Vec<&TrialRow> =
        drawn(search, MOST).into_iter().filter(|trial| trial.is_complete()).filter(has_both).collect();
    if trials.len() < 5 {
        return None;
    }
    let (x, y) = (&search.axes[first], &search.axes[second]);
    let ranks = ranks(search, &trials);
    let unit = |trial: &TrialRow, place: usize| trial.point[place].map_or(0.5, |value| search.axes[place].unit(value));
    let points: Vec<(f64, f64, f64)> =
        trials.iter().zip(&ranks).map(|(trial, rank)| (unit(trial, first), unit(trial, second), *rank)).collect();
    let goal = &search.objectives[0];
    let mut svg = FRAME.begin_with(&format!("{} over {} and {}", goal.name, x.name, y.name), &y.ticks(5));
    let (cell_x, cell_y) = (1.0 / COLUMNS as f64, 1.0 / ROWS as f64);
    for row in 0..ROWS {
        let mut begun: Option<(usize, usize)> = None;
        let mut cells: Vec<usize> = (0..COLUMNS)
            .map(|column| level(&points, (column as f64 + 0.5) * cell_x, (row as f64 + 0.5) * cell_y))
            .collect();
        // One more that is like none, so that the last ones are drawn.
        cells.push(usize::MAX);
        for (column, level) in cells.iter().enumerate() {
            if let Some((from, same)) = begun {
                if same == *level {
                    continue;
                }
                let ((left, top), (right, _)) =
                    (at(from as f64 * cell_x, (row + 1) as f64 * cell_y), at(column as f64 * cell_x, 0.0));
                let _ = writeln!(
                    svg,
                    "<rect class=\"shade q{same}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    right - left + 0.4,
                    FRAME.high() * cell_y + 0.4
                );
            }
            begun = Some((column, *level));
        }
    }
    for (trial, (unit_x, unit_y, _)) in trials.iter().zip(&points) {
        mark(&mut svg, trial, at(*unit_x, *unit_y), "over", &said(search, trial));
        if search.best == Some(trial.trial) {
            ring(&mut svg, at(*unit_x, *unit_y));
        }
    }
    FRAME.below(&mut svg, &x.ticks(8), &x.name);
    let (best, worst) = ends(search, &trials);
    marks::shades(
        &mut svg,
        (crate::frame::WIDTH / 2.0 - 60.0, 8.0),
        &format!("{} {}", goal.name, figure(best)),
        &figure(worst),
    );
    FRAME.end(&mut svg, &y.name);
    let note = "The two parameters that mattered most. Shades between the trials are the mean rank of those nearby. The best trial \
                is ringed.";
    Some(Drawing::new(format!("{} and {}", x.name, y.name), note, svg))
}

/// The mean rank of trials, those nearby weighing most, as one of the shades.
fn level(points: &[(f64, f64, f64)], x: f64, y: f64) -> usize {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (point_x, point_y, rank) in points {
        // The chart is wider than high; to the eye so are distances.
        let (dx, dy) = (point_x - x, (point_y - y) * 0.6);
        let near = dx * dx + dy * dy + 4e-4;
        let weight = 1.0 / (near * near);
        sum += weight * rank;
        weights += weight;
    }
    ((sum / weights * SHADES as f64) as usize).min(SHADES - 1)
}

fn ends(search: &SearchReport, trials: &[&TrialRow]) -> (f64, f64) {
    let goal = &search.objectives[0];
    let values = trials.iter().filter_map(|trial| trial.value());
    let (mut best, mut worst) = (f64::NAN, f64::NAN);
    for value in values {
        if best.is_nan() || goal.loss(value) < goal.loss(best) {
            best = value;
        }
        if worst.is_nan() || goal.loss(value) > goal.loss(worst) {
            worst = value;
        }
    }
    (best, worst)
}
