//! The charts of a search: its history, what mattered, the front of several objectives, and how trials learned.

use super::axis::{Axis, figure};
use super::marks::{self, drawn, mark, ring, said};
use super::{SearchReport, TrialRow, contour, panels, parallel};
use crate::frame::Frame;
use crate::markup::escape;
use crate::words::percent;
use serde::Serialize;
use std::fmt::Write;

pub(super) const FRAME: Frame = Frame { height: 300.0, left: 78.0, top: 30.0, bottom: 44.0 };
/// Curves of so many trials: the best in colour, others in grey behind them.
const CURVES: usize = 60;
const BEST_CURVES: usize = 5;

/// A chart with its title and one sentence about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drawing {
    pub title: String,
    pub note: String,
    pub svg: String,
}

impl Drawing {
    pub(super) fn new(title: impl Into<String>, note: impl Into<String>, svg: String) -> Self {
        Drawing { title: title.into(), note: note.into(), svg }
    }
}

/// All charts for which there is enough to show.
pub fn drawings(search: &SearchReport) -> Vec<Drawing> {
    let mut all: Vec<Drawing> = front(search).into_iter().collect();
    all.extend((0..search.objectives.len()).filter_map(|objective| history(search, objective)));
    all.extend(curves(search));
    all.extend(importances(search));
    all.extend(panels::slices(search));
    all.extend(contour::contour(search));
    all.extend(parallel::parallel(search));
    all
}

/// Where a point lies in the frame.
pub(super) fn at(x: f64, y: f64) -> (f64, f64) {
    (FRAME.left + FRAME.wide() * x, FRAME.y(y, 1.0))
}

fn history(search: &SearchReport, objective: usize) -> Option<Drawing> {
    let goal = search.objectives.get(objective)?;
    let progress = search.progress.get(objective)?;
    let shown: Vec<&TrialRow> = if objective == 0 { drawn(search, marks::MOST) } else { Vec::new() };
    let pruned = shown.iter().filter(|trial| trial.state == "pruned").filter_map(|trial| trial.value());
    let y = Axis::of_values(&goal.name, progress.iter().map(|(_, value)| *value).chain(pruned));
    if progress.is_empty() {
        return None;
    }
    let x = Axis::of_counts("trial", search.trials.len() as f64);
    let name = &goal.name;
    let mut svg = FRAME.begin_with(&format!("{name} of each trial, and the best so far"), &y.ticks(5));
    let stride = progress.len().div_ceil(marks::MOST).max(1);
    for (number, value) in progress.iter().step_by(stride) {
        let Some(trial) = search.trials.get(*number as usize - 1) else { continue };
        mark(&mut svg, trial, at(x.unit(f64::from(*number)), y.unit(*value)), "k0", &said(search, trial));
    }
    for trial in shown.iter().filter(|trial| trial.state == "pruned") {
        let value = trial.value().unwrap_or_default();
        mark(&mut svg, trial, at(x.unit(f64::from(trial.trial)), y.unit(value)), "k5", &said(search, trial));
    }
    let stride = search.trials.len().div_ceil(marks::MOST).max(1);
    for trial in search.trials.iter().filter(|trial| trial.state == "failed").step_by(stride) {
        let (place, _) = at(x.unit(f64::from(trial.trial)), 0.0);
        let reason = trial.reason.as_deref().unwrap_or("failed");
        let _ = writeln!(
            svg,
            "<path class=\"failed\" d=\"M{place:.1} {:.1}v-9\"><title>trial {}: {}</title></path>",
            FRAME.ground(),
            escape(&trial.name),
            escape(reason)
        );
    }
    // By number, not by end: the line never goes back.
    let mut path = String::new();
    let mut best: Option<f64> = None;
    for trial in search.trials.iter().filter(|trial| trial.is_feasible()) {
        let Some(value) = trial.values.get(objective).copied() else { continue };
        if best.is_some_and(|best| goal.loss(value) >= goal.loss(best)) {
            continue;
        }
        let (right, height) = at(x.unit(f64::from(trial.trial)), y.unit(value));
        let _ = match best {
            None => write!(path, "M{right:.1} {height:.1}"),
            Some(_) => write!(path, "H{right:.1}V{height:.1}"),
        };
        best = Some(value);
    }
    if let Some(best) = best {
        let (right, _) = at(x.unit(search.trials.len() as f64), 0.0);
        let _ = writeln!(
            svg,
            "<path class=\"best\" d=\"{path}H{right:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">best {}</text>",
            crate::frame::WIDTH - crate::frame::RIGHT,
            FRAME.top - 10.0,
            figure(best)
        );
    }
    FRAME.below(&mut svg, &x.ticks(8), "trial");
    FRAME.end(&mut svg, &titled(name, goal.maximize));
    let several = if search.objectives.len() > 1 { format!(" of {name}") } else { String::new() };
    let note = "Dots are complete trials; the line is the best so far. Crosses were ended early, at the value that they had by \
                then; triangles broke a constraint; ticks at the bottom failed.";
    Some(Drawing::new(format!("History{several}"), note, svg))
}

/// `loss (smaller is better)`
pub(super) fn titled(name: &str, maximize: bool) -> String {
    format!("{name} ({} is better)", if maximize { "larger" } else { "smaller" })
}

fn importances(search: &SearchReport) -> Option<Drawing> {
    if search.importances.is_empty() {
        return None;
    }
    let rows: Vec<(&str, f64)> = search
        .importances
        .iter()
        .take(16)
        .map(|one| (one.parameter.as_deref().unwrap_or("only together"), one.share))
        .collect();
    let frame = Frame { height: 60.0 + 26.0 * rows.len() as f64, left: 190.0, top: 10.0, bottom: 44.0 };
    let mut svg = frame.begin_with("the share of the variance that each parameter explains", &[]);
    let ticks: Vec<(f64, String)> = (0..=5).map(|fifth| (f64::from(fifth) / 5.0, format!("{}", fifth * 20))).collect();
    for (unit, _) in &ticks {
        let x = frame.left + frame.wide() * unit;
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{x:.1} {}V{}\"/>", frame.top, frame.ground());
    }
    for (place, (name, share)) in rows.iter().enumerate() {
        let y = frame.top + 26.0 * place as f64 + 4.0;
        let class = if *name == "only together" { "other" } else { "k0" };
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect class=\"flat {class}\" x=\"{}\" \
             y=\"{y:.1}\" width=\"{:.1}\" height=\"18\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            frame.left - 8.0,
            y + 13.0,
            escape(name),
            frame.left,
            frame.wide() * share,
            frame.left + frame.wide() * share + 6.0,
            y + 13.0,
            percent(*share)
        );
    }
    frame.below(&mut svg, &ticks, &format!("share of the variance of {} (%)", search.objectives[0].name));
    frame.end(&mut svg, "");
    let note = "How much of what differs between trials each parameter explains alone (fANOVA over a forest of trees).";
    Some(Drawing::new("What mattered", note, svg))
}

fn front(search: &SearchReport) -> Option<Drawing> {
    let [first, second, ..] = &search.objectives[..] else { return None };
    let complete: Vec<&TrialRow> =
        drawn(search, marks::MOST).into_iter().filter(|trial| trial.values.len() > 1).collect();
    if complete.is_empty() {
        return None;
    }
    let x = Axis::of_values(&first.name, complete.iter().map(|trial| trial.values[0]));
    let y = Axis::of_values(&second.name, complete.iter().map(|trial| trial.values[1]));
    let mut svg = FRAME.begin_with(&format!("{} against {}", second.name, first.name), &y.ticks(5));
    let place = |trial: &TrialRow| at(x.unit(trial.values[0]), y.unit(trial.values[1]));
    let is_front = |trial: &TrialRow| search.front.contains(&trial.trial);
    for trial in complete.iter().filter(|trial| !is_front(trial)) {
        mark(&mut svg, trial, place(trial), "other", &said(search, trial));
    }
    let mut best: Vec<&&TrialRow> = complete.iter().filter(|trial| is_front(trial)).collect();
    best.sort_by(|one, other| one.values[0].total_cmp(&other.values[0]));
    if search.objectives.len() == 2 {
        let points: Vec<String> =
            best.iter().map(|trial| place(trial)).map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let _ = writeln!(svg, "<path class=\"best\" d=\"M{}\"/>", points.join("L"));
    }
    for trial in best {
        mark(&mut svg, trial, place(trial), "k5", &said(search, trial));
        ring(&mut svg, place(trial));
    }
    FRAME.below(&mut svg, &x.ticks(8), &titled(&first.name, first.maximize));
    FRAME.end(&mut svg, &titled(&second.name, second.maximize));
    let note = "Ringed trials are those that no other beats in every objective.";
    Some(Drawing::new("The front", note, svg))
}

fn curves(search: &SearchReport) -> Option<Drawing> {
    let goal = search.objectives.first()?;
    let mut learned: Vec<&TrialRow> = search.trials.iter().filter(|trial| trial.steps.len() > 1).collect();
    if learned.is_empty() {
        return None;
    }
    learned.sort_by(|one, other| {
        let loss = |trial: &TrialRow| trial.value().map_or(f64::INFINITY, |value| goal.loss(value));
        loss(one).total_cmp(&loss(other)).then(one.trial.cmp(&other.trial))
    });
    let all = learned.len();
    let stride = all.div_ceil(CURVES).max(1);
    let shown: Vec<&TrialRow> = learned
        .iter()
        .enumerate()
        .filter(|(place, _)| *place < BEST_CURVES || place % stride == 0)
        .map(|(_, trial)| *trial)
        .collect();
    let steps = || shown.iter().flat_map(|trial| trial.steps.iter());
    let x = Axis::of_counts("step", steps().map(|(step, _)| *step).max().unwrap_or(1) as f64);
    let y = Axis::of_values(&goal.name, steps().map(|(_, value)| *value));
    let mut svg = FRAME.begin_with(&format!("{} by step, a line a trial", goal.name), &y.ticks(5));
    for (place, trial) in shown.iter().enumerate().rev() {
        let class = if place < BEST_CURVES { format!("curve k{place}") } else { "curve rest".to_owned() };
        let stride = trial.steps.len().div_ceil(400).max(1);
        let last = trial.steps.len() - 1;
        let few = trial.steps.iter().enumerate().filter(|(place, _)| place % stride == 0 || *place == last);
        let points: Vec<String> = few
            .map(|(_, (step, value))| at(x.unit(*step as f64), y.unit(*value)))
            .map(|(x, y)| format!("{x:.1} {y:.1}"))
            .collect();
        let _ = writeln!(
            svg,
            "<path class=\"{class}\" d=\"M{}\"><title>{}</title></path>",
            points.join("L"),
            escape(&said(search, trial))
        );
        if trial.state == "pruned"
            && let Some((step, value)) = trial.steps.last()
        {
            mark(&mut svg, trial, at(x.unit(*step as f64), y.unit(*value)), "k5", &said(search, trial));
        }
    }
    // The best are named at the top, each in its colour.
    for (place, trial) in shown.iter().enumerate().take(BEST_CURVES) {
        let left = FRAME.left + 110.0 * place as f64;
        let _ = writeln!(
            svg,
            "<path class=\"curve k{place}\" d=\"M{left:.1} 14h22\"/><text class=\"tick\" x=\"{:.1}\" y=\"18\">trial {}</text>",
            left + 28.0,
            escape(&trial.name)
        );
    }
    FRAME.below(&mut svg, &x.ticks(8), "step");
    FRAME.end(&mut svg, &titled(&goal.name, goal.maximize));
    let few = if shown.len() < all { format!(" {} of {all} curves are drawn.", shown.len()) } else { String::new() };
    let note = format!("The best trials in colour, others in grey; a cross is where one was ended early.{few}");
    Some(Drawing::new("How trials learned", note, svg))
}
