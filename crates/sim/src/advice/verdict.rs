//! Whether asynchronicity helps, and why or why not: the model's reason, beside what the simulations show.

use super::words::{list, percent, seconds};
use crate::setting::Simulated;
use serde::Serialize;
use tulpar_core::asynchrony::{Analysis, Obstacle};
use tulpar_core::engine::Mode;

/// What was simulated of each mode; `None` where it was not, or did not come to an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ByMode {
    pub sequential: Option<Simulated>,
    pub staggered: Option<Simulated>,
    pub adaptive: Option<Simulated>,
}

impl ByMode {
    pub fn of(&self, mode: Mode) -> Option<Simulated> {
        match mode {
            Mode::Sequential => self.sequential,
            Mode::Staggered => self.staggered,
            Mode::Adaptive => self.adaptive,
        }
    }

    pub fn set(&mut self, mode: Mode, found: Option<Simulated>) {
        match mode {
            Mode::Sequential => self.sequential = found,
            Mode::Staggered => self.staggered = found,
            Mode::Adaptive => self.adaptive = found,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub helps: bool,
    /// Otherwise the model alone says so.
    pub simulated: bool,
    /// What the better of the other modes saves of the sequential one: simulated, or else by the model.
    pub saves: f64,
    pub because: String,
}

/// Less than this is no help.
const WORTHWHILE: f64 = 0.005;

pub fn verdict(analysis: &Analysis, by_mode: &ByMode) -> Verdict {
    // Where order and packing were fixed, barriers may be the better asynchronicity.
    let done = |mode: Option<Simulated>| mode.filter(|simulated| simulated.done);
    let best = [done(by_mode.adaptive), done(by_mode.staggered)].into_iter().flatten();
    let best = best.min_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let pair = done(by_mode.sequential).zip(best);
    let saves = match pair {
        Some((sequential, best)) if sequential.seconds > 0.0 => 1.0 - best.seconds / sequential.seconds,
        Some(_) => 0.0,
        None => analysis.improvement,
    };
    let helps = saves >= WORTHWHILE;
    let because = match (helps, &analysis.obstacle) {
        (false, Some(obstacle)) => hindered(obstacle),
        (false, None) => full(analysis, pair.map(|(sequential, _)| sequential)),
        (true, _) => helped(analysis),
    };
    Verdict { helps, simulated: pair.is_some(), saves, because }
}

fn hindered(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Chain => "every rank has only one task set: there is nothing to run beside it".to_owned(),
        Obstacle::LongestPath { path } => format!(
            "the longest path, {}, passes through the longest task set of every rank: all others are hidden behind it \
             anyway",
            arrows(path)
        ),
        Obstacle::Resources { scarce, waiting } => format!(
            "branches do not fit beside each other: {} {} for {}",
            list(waiting),
            if waiting.len() == 1 { "waits" } else { "wait" },
            if scarce.is_empty() { "resources".to_owned() } else { scarce.join(" and ") }
        ),
    }
}

/// The model sees a gain, the simulation none.
fn full(analysis: &Analysis, sequential: Option<Simulated>) -> String {
    let bounds = &analysis.bounds;
    match sequential {
        Some(sequential) if sequential.seconds <= bounds.seconds * 1.01 => {
            format!("the sequential mode already takes no longer than the lower bound of {}", seconds(bounds.seconds))
        }
        _ => "in the simulation tasks of several sets share the resources in every mode, and use them equally well"
            .to_owned(),
    }
}

fn helped(analysis: &Analysis) -> String {
    let masked = &analysis.asynchronous.masked;
    let wla = analysis.degrees_of_sets.unwrap_or(analysis.degrees).wla;
    let names: Vec<String> = masked.iter().map(|masked| masked.set.clone()).collect();
    match (wla, names.is_empty()) {
        (0, _) => "tasks need not wait for the last one of the rank before".to_owned(),
        (_, true) => format!("{wla} more branches can run beside the longest path"),
        (_, false) => format!("{} can run beside the longest path", list(&names)),
    }
}

fn arrows(path: &[String]) -> String {
    const MOST: usize = 8;
    if path.len() <= MOST {
        return path.join(" → ");
    }
    let (first, last) = (&path[..MOST / 2], &path[path.len() - MOST / 2..]);
    format!("{} → … → {}", first.join(" → "), last.join(" → "))
}

impl Verdict {
    /// The sentence for people.
    pub fn words(&self) -> String {
        let (saves, because) = (percent(self.saves), &self.because);
        match (self.simulated, self.helps) {
            (true, true) => format!("Asynchronicity saves {saves}: {because}."),
            (true, false) => format!("Asynchronicity cannot help here, because {because}."),
            (false, true) => format!("By the model alone, asynchronicity saves {saves}: {because}."),
            (false, false) => format!("By the model alone, asynchronicity does not help, because {because}."),
        }
    }
}
