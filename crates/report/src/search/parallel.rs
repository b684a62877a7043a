//! Parallel coordinates: an axis a parameter and one for the objective, a line a trial, the best on top.

use super::axis::Axis;
use super::charts::{Drawing, titled};
use super::marks::{drawn, ranks, said, shade, shades};
use super::panels::by_importance;
use super::{SearchReport, TrialRow};
use crate::frame::WIDTH;
use crate::markup::escape;
use std::fmt::Write;

const HEIGHT: f64 = 330.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 56.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 84.0;
const LINES: usize = 300;
const AXES: usize = 9;
/// Where a parameter is that means nothing in a trial: below its axis.
const ABSENT: f64 = -0.09;

pub(super) fn parallel(search: &SearchReport) -> Option<Drawing> {
    let goal = search.objectives.first()?;
    let trials: Vec<&TrialRow> = drawn(search, LINES).into_iter().filter(|trial| trial.is_complete()).collect();
    if trials.len() < 2 {
        return None;
    }
    let mut places = by_importance(search);
    places.truncate(AXES);
    let last = Axis::of_values(&goal.name, trials.iter().filter_map(|trial| trial.value()));
    let count = places.len() + 1;
    let x = |place: usize| LEFT + (WIDTH - LEFT - RIGHT) * place as f64 / (count - 1).max(1) as f64;
    let y = |unit: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - unit);
    let mut svg = format!(
        "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"the parameters and \
         {} of each trial\">\n",
        escape(&goal.name)
    );
    let ranks = ranks(search, &trials);
    let mut order: Vec<usize> = (0..trials.len()).collect();
    order.sort_by(|one, other| ranks[*other].total_cmp(&ranks[*one]));
    for place in order {
        let trial = trials[place];
        let mut points = Vec::with_capacity(count);
        for (column, parameter) in places.iter().enumerate() {
            let value = trial.point.get(*parameter).copied().flatten();
            let unit = value.map_or(ABSENT, |value| search.axes[*parameter].unit(value));
            points.push(format!("{:.1} {:.1}", x(column), y(unit)));
        }
        points.push(format!("{:.1} {:.1}", x(count - 1), y(last.unit(trial.value().unwrap_or_default()))));
        let best = if search.best == Some(trial.trial) { " strong" } else { "" };
        let _ = writeln!(
            svg,
            "<path class=\"thread {}{best}\" d=\"M{}\"><title>{}</title></path>",
            shade(ranks[place]),
            points.join("L"),
            escape(&said(search, trial))
        );
    }
    let conditional =
        trials.iter().any(|trial| places.iter().any(|place| trial.point.get(*place).copied().flatten().is_none()));
    for column in 0..count {
        let axis = places.get(column).map_or(&last, |place| &search.axes[*place]);
        let name = if column == count - 1 { titled(&axis.name, goal.maximize) } else { axis.name.clone() };
        let anchor = if column == count - 1 { "end" } else { "middle" };
        let from = if column == count - 1 { WIDTH - 6.0 } else { x(column) };
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{:.1} {:.1}V{:.1}\"/><text class=\"title\" x=\"{from:.1}\" y=\"{:.1}\" \
             text-anchor=\"{anchor}\">{}</text>",
            x(column),
            y(1.0),
            y(0.0),
            TOP - 14.0,
            escape(&name)
        );
        // Words stand on the outer side of the last axis, elsewhere before their axis.
        let (side, anchor) = if column == count - 1 { (8.0, "start") } else { (-7.0, "end") };
        for (unit, word) in axis.ticks(5) {
            let _ = writeln!(
                svg,
                "<path class=\"axis\" d=\"M{:.1} {:.1}h6\"/><text class=\"tick halo-text\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"{anchor}\">{}</text>",
                x(column) - 3.0,
                y(unit),
                x(column) + side,
                y(unit) + 4.0,
                escape(&word)
            );
        }
    }
    shades(&mut svg, (WIDTH / 2.0 - 60.0, HEIGHT - 16.0), "best", "worst");
    svg.push_str("</svg></div>\n");
    let absent =
        if conditional { " A line passes below the axis of a parameter that its trial does not have." } else { "" };
    let note = format!("A line a trial, shaded by rank; the best is thick.{absent}");
    Some(Drawing::new("Parameters together", note, svg))
}
