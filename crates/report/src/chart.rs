//! Occupation over time as an SVG that stands inside a page: stacked steps by kind, axes with units, the capacity.
//!
//! Colours are classes, so that the page gives them for light and for dark. It computes nothing about runs.

use crate::columns::{Columns, Series};
use crate::words::{number, percent};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 44.0;
/// Paths are written in whole tenths of a unit: a third of the bytes.
const GRID: f64 = 10.0;

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

/// The class of a kind: `k0` to `k9`, and `other`.
pub(crate) fn class(kind: usize) -> String {
    if kind < crate::kinds::MOST_KINDS { format!("k{kind}") } else { "other".to_owned() }
}

impl Chart<'_> {
    pub(crate) fn svg(&self) -> String {
        let until = self.columns.edges_us.last().copied().unwrap_or(0) as f64 / 1e6;
        // What uses little of a large site would be a line at the bottom.
        let peak = self.peak();
        let beyond = peak < self.capacity * LITTLE;
        let top = if beyond { peak * 1.1 } else { self.capacity.max(peak) }.max(f64::MIN_POSITIVE);
        let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let x = |seconds: f64| LEFT + wide * if until > 0.0 { seconds / until } else { 0.0 };
        let y = |value: f64| TOP + high * (1.0 - value / top);
        let mut svg = format!(
            "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{} over time\">\n",
            self.what
        );
        let bottom = TOP + high;
        for tick in ticks(top, 5) {
            let at = y(tick);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}h{wide}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                at + 4.0,
                number(tick)
            );
        }
        // Positions, then the whole below each kind from the top one down: each covers all but its own band.
        let scale = 1.0 / GRID;
        let _ = writeln!(svg, "<g transform=\"translate({LEFT} {TOP}) scale({scale})\">");
        let edges: Vec<i64> =
            self.columns.edges_us.iter().map(|edge| ((x(*edge as f64 / 1e6) - LEFT) * GRID).round() as i64).collect();
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
                crate::html::escape(&series.kind)
            ));
        }
        svg.extend(bands.into_iter().rev());
        svg.push_str("</g>\n");
        if self.capacity > 0.0 {
            self.capacity(&mut svg, y(self.capacity), wide, beyond);
        }
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}h{wide}\"/>");
        self.time_axis(&mut svg, until, &x, bottom);
        let _ = writeln!(
            svg,
            "<text class=\"title\" transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n</svg></div>\n",
            TOP + high / 2.0,
            self.what
        );
        svg
    }

    /// The line that cannot be passed, and how much of what is below it was in use.
    fn capacity(&self, svg: &mut String, at: f64, wide: f64, beyond: bool) {
        if !beyond {
            let _ = writeln!(svg, "<path class=\"capacity\" d=\"M{LEFT} {at:.1}h{wide}\"/>");
        }
        let _ = writeln!(
            svg,
            "<text class=\"tick\" x=\"{LEFT}\" y=\"{label:.1}\">{} of the capacity over the makespan</text><text \
             class=\"tick\" x=\"{right:.1}\" y=\"{label:.1}\" text-anchor=\"end\">capacity {}{}</text>",
            percent(self.share),
            number(self.capacity),
            if beyond { ", beyond this chart" } else { "" },
            label = TOP - 6.0,
            right = WIDTH - RIGHT,
        );
    }

    /// The most that was in use at once.
    pub(crate) fn peak(&self) -> f64 {
        let columns = self.columns.edges_us.len().saturating_sub(1);
        let sum = |column: usize| self.columns.series.iter().map(|series| (self.values)(series)[column]).sum::<f64>();
        (0..columns).map(sum).fold(0.0, f64::max)
    }

    fn time_axis(&self, svg: &mut String, until: f64, x: &dyn Fn(f64) -> f64, bottom: f64) {
        let (unit, name) = time_unit(until);
        for tick in ticks(until / unit, 8) {
            let at = x(tick * unit);
            let _ = writeln!(
                svg,
                "<path class=\"axis\" d=\"M{at:.1} {bottom}v5\"/><text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                number(tick)
            );
        }
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">time since the start ({name})</text>",
            LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
            HEIGHT - 8.0
        );
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

/// Round numbers from 0 up to a largest one, about as many as wanted.
pub(crate) fn ticks(most: f64, wanted: usize) -> Vec<f64> {
    if !most.is_finite() || most <= 0.0 {
        return vec![0.0];
    }
    let rough = most / wanted as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(rough);
    (0..).map(|number| f64::from(number) * step).take_while(|tick| *tick <= most * 1.0001).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_up_to_the_largest() {
        assert_eq!(ticks(504.0, 5), [0.0, 200.0, 400.0]);
        assert_eq!(ticks(18.0, 5), [0.0, 5.0, 10.0, 15.0]);
        assert_eq!(ticks(2.0, 5), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(ticks(1323.0, 8), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0, 1200.0]);
        assert_eq!(ticks(0.0, 5), [0.0]);
    }

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
