//! Marks of trials: a dot, a cross for one that was ended early, a triangle for one that broke a constraint; shades from
//! good to bad. Shapes differ, so that a grey print says as much.

use super::axis::figure;
use super::{SearchReport, TrialRow};
use crate::markup::escape;
use std::fmt::Write;

/// Shades from good to bad: dark to light by day, light to dark by night.
pub(super) const SHADES: usize = 7;

/// More trials than this are not drawn: those between them would cover each other.
pub(super) const MOST: usize = 1500;

/// The class of a shade; 0 is the best.
pub(super) fn shade(unit: f64) -> String {
    format!("q{}", ((unit * SHADES as f64) as usize).min(SHADES - 1))
}

/// The mark of a trial, with what it was for whoever points at it.
pub(super) fn mark(svg: &mut String, trial: &TrialRow, (x, y): (f64, f64), class: &str, said: &str) {
    let shape = match trial.state {
        "pruned" => format!("<path class=\"cross {class}\" d=\"M{:.1} {:.1}l7 7m0 -7l-7 7\">", x - 3.5, y - 3.5),
        "complete" if trial.infeasible => {
            format!("<path class=\"dot {class}\" d=\"M{x:.1} {:.1}l4.2 7.2h-8.4z\">", y - 4.6)
        }
        _ => format!("<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\">"),
    };
    let end = if shape.starts_with("<circle") { "circle" } else { "path" };
    let _ = writeln!(svg, "{shape}<title>{}</title></{end}>", escape(said));
}

/// A ring around the best.
pub(super) fn ring(svg: &mut String, (x, y): (f64, f64)) {
    let place = format!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"7\"");
    let _ = writeln!(svg, "<circle class=\"halo\" {place}/><circle class=\"ring\" {place}/>");
}

/// `trial 9, pruned: loss 0.12; lr 0.001, layers 3`
pub(super) fn said(search: &SearchReport, trial: &TrialRow) -> String {
    let values =
        search.objectives.iter().zip(&trial.values).map(|(goal, value)| format!("{} {}", goal.name, figure(*value)));
    let mut values: Vec<String> = values.collect();
    if values.is_empty()
        && let (Some(goal), Some(value)) = (search.objectives.first(), trial.value())
    {
        values.push(format!("{} {} by then", goal.name, figure(value)));
    }
    let parameters = trial.parameters.iter().map(|(name, value)| format!("{name} {value}"));
    let parameters: Vec<String> = parameters.collect();
    format!("trial {}, {}: {}; {}", trial.name, trial.standing(), values.join(", "), parameters.join(", "))
}

/// Trials of which there is a value, at most so many, evenly taken from all, and always the best.
pub(super) fn drawn(search: &SearchReport, most: usize) -> Vec<&TrialRow> {
    let all: Vec<&TrialRow> = search.trials.iter().filter(|trial| trial.value().is_some()).collect();
    let stride = all.len().div_ceil(most.max(1)).max(1);
    let best = |trial: &TrialRow| search.best == Some(trial.trial) || search.front.contains(&trial.trial);
    let chosen = all.iter().enumerate().filter(|(place, trial)| place % stride == 0 || best(trial));
    chosen.map(|(_, trial)| *trial).collect()
}

/// How good each value is, from 0 for the best to 1, by its rank: one hopeless trial does not make all others alike.
pub(super) fn ranks(search: &SearchReport, trials: &[&TrialRow]) -> Vec<f64> {
    let loss = |trial: &TrialRow| match (search.objectives.first(), trial.value()) {
        (Some(goal), Some(value)) => goal.loss(value),
        _ => f64::INFINITY,
    };
    let mut order: Vec<usize> = (0..trials.len()).collect();
    order.sort_by(|one, other| loss(trials[*one]).total_cmp(&loss(trials[*other])));
    let last = trials.len().saturating_sub(1).max(1) as f64;
    let mut ranks = vec![0.0; trials.len()];
    order.iter().enumerate().for_each(|(rank, place)| ranks[*place] = rank as f64 / last);
    ranks
}

/// What the shades mean, as a legend of its own.
pub(super) fn shades(svg: &mut String, (x, y): (f64, f64), from: &str, to: &str) {
    let _ = write!(
        svg,
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        x - 6.0,
        y + 10.0,
        escape(from)
    );
    for place in 0..SHADES {
        let _ = write!(
            svg,
            "<rect class=\"shade q{place}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"16\" height=\"12\"/>",
            x + 16.0 * place as f64
        );
    }
    let end = x + 16.0 * SHADES as f64 + 6.0;
    let _ = writeln!(svg, "<text class=\"tick\" x=\"{end:.1}\" y=\"{:.1}\">{}</text>", y + 10.0, escape(to));
}
