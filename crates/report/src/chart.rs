//! Occupation over time as an SVG that stands inside a page: stacked steps by kind, axes with units, the capacity.
//!
//! Colours are classes, so that the page gives them for light and for dark. It computes nothing about runs.

use crate::columns::{Columns, Series};
use crate::frame::{Frame, GRID, RIGHT, WIDTH, ticks};
use crate::kinds::class;
use crate::words::{number, percent};
use std::fmt::Write;

const FRAME: Frame = Frame { height: 250.0, left: 62.0, top: 20.0, bottom: 44.0 };

/// When less than this share of the capacity was ever in use, the chart does not go up to it.
const LITTLE: f64 = 0.4;

/// What one chart shows.
pub(crate) struct Chart<'c> {
    /// For those who cannot see it, and as the title of the axis: `cores in use`.
    pub(crate) what: &'static str,
    pub(crate) columns: &'c Columns,
    pub(crate) values: fn(&Series) -> &[f64],
    pub(crate) capacity: f64,
    /// The share of it that was held on average.
    pub(crate) share: f64,
}

impl Chart<'_> {
    pub(crate) fn svg(&self) -> String {
        let until = self.columns.edges_us.last().copied().unwrap_or(0) as f64 / 1e6;
        // What uses little of a large site would be a line at the bottom.
        let peak = self.peak();
        let beyond = peak < self.capacity * LITTLE;
        let top = if beyond { peak * 1.1 } else { self.capacity.max(peak) }.max(f64::MIN_POSITIVE);
        let (wide, high) = (FRAME.wide(), FRAME.high());
        let x = |seconds: f64| FRAME.left + wide * if until > 0.0 { seconds / until } else { 0.0 };
        let mut svg = FRAME.begin(&format!("{} over time", self.what), top);
        // Positions, then the whole below each kind from the top one down: each covers all but its own band.
        let scale = 1.0 / GRID;
        let _ = writeln!(svg, "<g transform=\"translate({} {}) scale({scale})\">", FRAME.left, FRAME.top);
        let edges: Vec<i64> = self
            .columns
            .edges_us
            .iter()
            .map(|edge| ((x(*edge as f64 / 1e6) - FRAME.left) * GRID).round() as i64)
            .collect();
        let mut below = vec![0.0; edges.len().saturating_sub(1)];
        let mut bands = Vec::new();
        // Lines between bands help the eye, unless there are so many steps that only lines would be left.
        let fine = if edges.len() > 160 { " fine" } else { "" };
        for (kind, series) in self.columns.series.iter().enumerate() {
            let values = (self.values)(series);
            if values.iter().all(|value| *value == 0.0) {
                continue;
            }
            below.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            let heights: Vec<i64> = below.iter().map(|sum| (sum / top * high * GRID).round() as i64).collect();
            let path = steps(&edges, &heights, (high * GRID).round() as i64);
            bands.push(format!(
                "<path class=\"band {}{fine}\" d=\"{path}\"><title>{}</title></path>\n",
                class(kind),
                crate::markup::escape(&series.kind)
            ));
        }
        svg.extend(bands.into_iter().rev());
        svg.push_str("</g>\n");
        if self.capacity > 0.0 {
            self.capacity(&mut svg, FRAME.y(self.capacity, top), wide, beyond);
        }
        self.time_axis(&mut svg, until);
        FRAME.end(&mut svg, self.what);
        svg
    }

    /// The line that cannot be passed, and how much of what is below it was in use.
    fn capacity(&self, svg: &mut String, at: f64, wide: f64, beyond: bool) {
        let left = FRAME.left;
        if !beyond {
            let _ = writeln!(svg, "<path class=\"capacity\" d=\"M{left} {at:.1}h{wide}\"/>");
        }
        let _ = writeln!(
            svg,
            "<text class=\"tick\" x=\"{left}\" y=\"{label:.1}\">{} of the capacity over the makespan</text><text \
             class=\"tick\" x=\"{right:.1}\" y=\"{label:.1}\" text-anchor=\"end\">capacity {}{}</text>",
            percent(self.share),
            number(self.capacity),
            if beyond { ", beyond this chart" } else { "" },
            label = FRAME.top - 6.0,
            right = WIDTH - RIGHT,
        );
    }

    /// The most that was in use at once.
    pub(crate) fn peak(&self) -> f64 {
        let columns = self.columns.edges_us.len().saturating_sub(1);
        let sum = |column: usize| self.columns.series.iter().map(|series| (self.values)(series)[column]).sum::<f64>();
        (0..columns).map(sum).fold(0.0, f64::max)
    }

    fn time_axis(&self, svg: &mut String, until: f64) {
        let (unit, name) = time_unit(until);
        let place = |tick: f64| if until > 0.0 { tick * unit / until } else { 0.0 };
        let ticks: Vec<(f64, String)> =
            ticks(until / unit, 8).into_iter().map(|tick| (place(tick), number(tick))).collect();
        FRAME.below(svg, &ticks, &format!("time since the start ({name})"));
    }
}

/// The outline of steps of these heights above `bottom`, as a path; equal neighbours are one step.
fn steps(edges: &[i64], heights: &[i64], bottom: i64) -> String {
    let mut path = String::new();
    let (Some(first), Some(last)) = (edges.first(), edges.last()) else { return path };
    let _ = write!(path, "M{first} {bottom}");
    let (mut at, mut height) = (*first, 0);
    for (edge, next) in edges.iter().zip(heights) {
        if *next == height {
            continue;
        }
        if *edge != at {
            let _ = write!(path, "h{}", edge - at);
            at = *edge;
        }
        let _ = write!(path, "v{}", height - next);
        height = *next;
    }
    let _ = write!(path, "h{}V{bottom}z", last - at);
    path
}

/// Seconds of the unit that gives the shortest numbers, and its name.
pub(crate) fn time_unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        seconds if seconds < 1.0 => (0.001, "ms"),
        seconds if seconds < 600.0 => (1.0, "s"),
        seconds if seconds < 3.0 * 3600.0 => (60.0, "min"),
        seconds if seconds < 3.0 * 86_400.0 => (3600.0, "h"),
        _ => (86_400.0, "d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbours_are_one_step() {
        assert_eq!(steps(&[0, 10, 20, 30, 40], &[5, 5, 7, 0], 100), "M0 100v-5h20v-2h10v7h10V100z");
    }

    #[test]
    fn times_are_in_the_unit_that_fits() {
        for (seconds, unit) in [(0.3, "ms"), (45.0, "s"), (1323.0, "min"), (40_000.0, "h"), (900_000.0, "d")] {
            assert_eq!(time_unit(seconds).1, unit);
        }
    }
}
