//! Words and numbers that the decisions of all passes share.

use super::abstraction::{Abstract, TaskId};
use super::layout::{Decision, Pass, Traffic};
use crate::units::{Bytes, thousands};
use std::collections::BTreeMap;

/// Lines of one pass that people can still read; the rest is summed up.
const MOST_LINES: usize = 200;

/// `1 task`, `28,793 files`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
}

pub(super) fn traffic(traffic: Traffic) -> String {
    format!("{}, {}", counted(traffic.files, "file"), Bytes(traffic.bytes))
}

/// The programs of some tasks, the most frequent first.
pub(super) fn kinds_of(graph: &Abstract, tasks: &[TaskId]) -> String {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    tasks.iter().for_each(|task| *counts.entry(graph.tasks[task.index()].kind).or_default() += 1);
    let mut counts: Vec<(u32, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
    let more = counts.len().saturating_sub(3);
    let name = |kind: u32| graph.kinds.get(kind as usize).map_or("task", String::as_str);
    let mut words: Vec<String> =
        counts.iter().take(3).map(|(kind, count)| format!("{} × {}", thousands(*count), name(*kind))).collect();
    if more > 0 {
        words.push(format!("{} more", counted(more as u64, "kind")));
    }
    words.join(", ")
}

/// The lines of one pass: as many as can be read, and how many more there would be.
pub(super) struct Lines {
    pass: Pass,
    lines: Vec<Decision>,
    more: u64,
}

impl Lines {
    pub(super) fn new(pass: Pass) -> Self {
        Self { pass, lines: Vec::new(), more: 0 }
    }

    /// Asks for what it is about, what was decided and why, unless there are too many already.
    pub(super) fn add(&mut self, line: impl FnOnce() -> (String, String, String)) {
        if self.lines.len() == MOST_LINES {
            self.more += 1;
            return;
        }
        let (about, what, why) = line();
        self.lines.push(Decision { pass: self.pass, about, what, why });
    }

    pub(super) fn finish(mut self, decisions: &mut Vec<Decision>) {
        decisions.append(&mut self.lines);
        if self.more > 0 {
            decisions.push(Decision {
                pass: self.pass,
                about: counted(self.more, "more line"),
                what: "like these".to_owned(),
                why: format!("only the first {MOST_LINES} are shown"),
            });
        }
    }
}

/// Adds lines that are written already, no more of them than can be read.
pub(super) fn capped(decisions: &mut Vec<Decision>, pass: Pass, lines: Vec<Decision>) {
    let mut capped = Lines::new(pass);
    lines.into_iter().for_each(|line| capped.add(|| (line.about, line.what, line.why)));
    capped.finish(decisions);
}
