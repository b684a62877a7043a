//! Slices: the objective against each parameter, a small panel each, shaded by age.

use super::axis::Axis;
use super::charts::{Drawing, titled};
use super::marks::{self, drawn, mark, ring, said, shade};
use super::{SearchReport, TrialRow};
use crate::frame::WIDTH;
use crate::markup::escape;
use std::fmt::Write;

const COLUMNS: usize = 3;
/// The most important ones.
pub(super) const MOST: usize = 9;
const HIGH: f64 = 220.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;

/// The places of parameters, the most important first where that is known.
pub(super) fn by_importance(search: &SearchReport) -> Vec<usize> {
    let rank = |place: &usize| {
        let name = &search.axes[*place].name;
        search.importances.iter().position(|one| one.parameter.as_ref() == Some(name)).unwrap_or(usize::MAX)
    };
    let mut places: Vec<usize> = (0..search.axes.len()).collect();
    places.sort_by_key(rank);
    places
}

pub(super) fn slices(search: &SearchReport) -> Option<Drawing> {
    let goal = search.objectives.first()?;
    let trials: Vec<&TrialRow> = drawn(search, marks::MOST / 3);
    if trials.len() < 2 {
        return None;
    }
    let y = Axis::of_values(&goal.name, trials.iter().filter_map(|trial| trial.value()));
    let places = by_importance(search);
    let shown = &places[..places.len().min(MOST)];
    let rows = shown.len().div_ceil(COLUMNS);
    let mut svg = format!(
        "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{} against each \
         parameter\">\n",
        HIGH * rows as f64 + 24.0,
        escape(&goal.name)
    );
    let width = WIDTH / COLUMNS as f64;
    for (panel, place) in shown.iter().enumerate() {
        let axis = &search.axes[*place];
        let (left, top) = (width * (panel % COLUMNS) as f64 + LEFT, HIGH * (panel / COLUMNS) as f64 + TOP);
        let (wide, high) = (width - LEFT - 16.0, HIGH - TOP - BOTTOM);
        let at = |x: f64, y: f64| (left + wide * x, top + high * (1.0 - y));
        for (unit, word) in y.ticks(4) {
            let (_, height) = at(0.0, unit);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{left:.1} {height:.1}h{wide:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{word}</text>",
                left - 6.0,
                height + 4.0
            );
        }
        for trial in &trials {
            let (Some(number), Some(value)) = (trial.point.get(*place).copied().flatten(), trial.value()) else {
                continue;
            };
            let age = 1.0 - f64::from(trial.trial) / search.trials.len() as f64;
            let here = at(axis.unit(number), y.unit(value));
            mark(&mut svg, trial, here, &shade(age * 0.85), &said(search, trial));
            if search.best == Some(trial.trial) {
                ring(&mut svg, here);
            }
        }
        if panel % COLUMNS == 0 {
            let _ = writeln!(
                svg,
                "<text class=\"title\" transform=\"translate(12 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
                top + high / 2.0,
                escape(&goal.name)
            );
        }
        let ground = top + high;
        for (unit, word) in axis.ticks(3) {
            let (x, _) = at(unit, 0.0);
            let _ = writeln!(
                svg,
                "<path class=\"axis\" d=\"M{x:.1} {ground:.1}v4\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{}</text>",
                ground + 16.0,
                escape(&word)
            );
        }
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{left:.1} {top:.1}V{ground:.1}h{wide:.1}\"/><text class=\"title\" x=\"{:.1}\" \
             y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            left + wide / 2.0,
            ground + 34.0,
            escape(&axis.name)
        );
    }
    marks::shades(&mut svg, (WIDTH / 2.0 - 60.0, HIGH * rows as f64 + 6.0), "last trial", "first trial");
    svg.push_str("</svg></div>\n");
    let note = format!(
        "{} against each parameter, the most important first, shaded by age; the best is ringed.",
        titled(&goal.name, goal.maximize)
    );
    Some(Drawing::new("Slices", note, svg))
}
