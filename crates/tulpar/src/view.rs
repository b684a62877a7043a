//! Words and numbers that several verbs share: times, states, requests, reasons, attempts.

use serde::{Serialize, Serializer};
use std::time::Duration;
use tulpar_core::calendar::Date;
use tulpar_core::engine::State;
use tulpar_core::event::{Blame, Change, KeyPart, Reason};
use tulpar_core::job::{Ending, MemberReport, OutputFile, ScriptReport, TransferKind, TransferReport, Usage};
use tulpar_core::resources::{Named, Request};
use tulpar_core::site::Site;
use tulpar_core::units::{Bytes, Timestamp};

/// A point in time that other programs read as RFC 3339 and people as `2025-11-15 20:57:03 UTC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Timestamp);

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Date::from(self.0).fmt(f)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Date::from(self.0).rfc3339())
    }
}

/// A duration as people say it: `40 ms`, `0.8 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if duration < Duration::from_millis(100) {
        return format!("{} ms", duration.as_millis());
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86400 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86400, whole % 86400 / 3600),
    }
}

/// A state in words. Without a driver nothing runs, whatever the last event said.
pub fn state_word(state: State, driven: bool) -> &'static str {
    match state {
        State::Submitted | State::Running if !driven => "interrupted",
        State::Waiting => "waiting",
        State::Looking => "looking",
        State::Ready => "ready",
        State::Submitted => "submitted",
        State::Running => "running",
        State::Held => "held",
        State::Backoff => "pausing",
        State::Paused => "paused",
        State::Done => "done",
        State::Failed => "failed",
        State::Skipped => "skipped",
        State::Cancelled => "cancelled",
    }
}

pub fn blame_words(blame: Blame) -> &'static str {
    match blame {
        Blame::Task => "the task itself: its program, its inputs, or what the workflow says about it",
        Blame::Resources => "its resources: it asked for too little, and more tries are not allowed",
        Blame::TooMuch => "its resources: it asks for more than any node here has",
        Blame::Site => "the site: its nodes, its network or its disk",
        Blame::Inputs => "a change of its inputs while the run went on",
    }
}

/// `2 cpus, 200 MB, 1 GPU, 2 h`
pub fn request_words(request: &Request) -> String {
    let cpus = f64::from(request.milli_cpus) / 1000.0;
    let mut parts = vec![if request.milli_cpus == 1000 { "1 cpu".to_owned() } else { format!("{cpus} cpus") }];
    if request.memory.0 > 0 {
        parts.push(format!("{} of memory", request.memory));
    }
    match (request.gpus, request.gpu_share) {
        (0, _) => {}
        (1, share @ 1..) => parts.push(format!("{} of a GPU", f64::from(share) / 1000.0)),
        (1, 0) => parts.push("1 GPU".to_owned()),
        (many, _) => parts.push(format!("{many} GPUs")),
    }
    parts.extend(named_words(&request.named));
    if let Some(time) = request.time {
        parts.push(format!("{} of time", duration(time)));
    }
    if request.nodes > 1 {
        parts.push(format!("on {} nodes", request.nodes));
    }
    parts.join(", ")
}

/// `0.5 fpga`, `1 matlab`
pub fn named_words(named: &Named) -> impl Iterator<Item = String> + '_ {
    named.iter().map(|(name, amount)| format!("{} {name}", f64::from(*amount) / 1000.0))
}

/// How large a site is, all nodes together.
#[derive(Serialize)]
pub struct SiteSize {
    pub name: String,
    pub nodes: usize,
    pub cpus: f64,
    pub gpus: usize,
}

impl SiteSize {
    pub fn new(site: &Site) -> Self {
        Self {
            name: site.name.clone(),
            nodes: site.nodes.len(),
            cpus: site.nodes.iter().map(|node| f64::from(node.capacity.milli_cpus)).sum::<f64>() / 1000.0,
            gpus: site.nodes.iter().map(|node| node.capacity.gpus.len()).sum(),
        }
    }
}

/// What was used, as a share of one core: 250 % is two and a half cores.
pub fn cpu_percent(cpu_us: u64, wall_us: u64) -> Option<u64> {
    (wall_us > 0).then(|| (cpu_us * 100 + wall_us / 2) / wall_us)
}

/// `in 2.3 s, 98 % cpu, at most 120 MB`
pub fn usage_words(usage: &Usage) -> String {
    let mut parts = vec![format!("after {}", duration(Duration::from_micros(usage.wall_us)))];
    if let Some(percent) = cpu_percent(usage.user_us + usage.system_us, usage.wall_us) {
        parts.push(format!("{percent} % cpu"));
    }
    if usage.peak_rss > 0 {
        parts.push(format!("at most {} of memory", Bytes(usage.peak_rss)));
    }
    parts.join(", ")
}

/// Longer texts are shown around the place where they begin to differ.
const MOST_SHOWN: usize = 160;

/// Why a task ran, one line a cause; each change with what it was and is.
pub fn reason_lines(reason: &Reason) -> Vec<String> {
    match reason {
        Reason::New => vec!["it was never run before here".into()],
        Reason::OutputsGone => vec!["its outputs are gone from the cache".into()],
        Reason::Forced => vec!["it was forced".into()],
        Reason::CacheOff => vec!["its results are not cached".into()],
        Reason::Changed(changes) => changes.iter().flat_map(change_lines).collect(),
    }
}

fn change_lines(change: &Change) -> Vec<String> {
    let (before, now) = (change.before.as_str(), change.now.as_str());
    match &change.part {
        KeyPart::Input(name) => vec![match (before.is_empty(), now.is_empty()) {
            (true, _) => format!("the input `{name}` is new"),
            (_, true) => format!("the input `{name}` is no longer there"),
            _ => format!("the input `{name}` changed: its content was {before}, now it is {now}"),
        }],
        KeyPart::Environment => by_line("the environment changed:", before, now),
        KeyPart::Outputs => by_line("the declared outputs changed:", before, now),
        KeyPart::Command => {
            let (before, now) = around_difference(before, now);
            vec!["the command changed:".to_owned(), format!("  before: {before}"), format!("  now:    {now}")]
        }
    }
}

/// The lines that only one of the texts has.
fn by_line(title: &str, before: &str, now: &str) -> Vec<String> {
    let mut lines = vec![title.to_owned()];
    let only = |text: &str, other: &str, word: &str| -> Vec<String> {
        let others: std::collections::HashSet<&str> = other.lines().collect();
        text.lines().filter(|line| !others.contains(line)).map(|line| format!("  {word} {line}")).collect()
    };
    lines.extend(only(before, now, "before:"));
    lines.extend(only(now, before, "now:   "));
    lines
}

fn around_difference(before: &str, now: &str) -> (String, String) {
    let same = before.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
    let cut = |text: &str| {
        let letters: Vec<char> = text.chars().map(|letter| if letter == '\n' { '↵' } else { letter }).collect();
        if letters.len() <= MOST_SHOWN {
            return letters.into_iter().collect::<String>();
        }
        let from = same.saturating_sub(40);
        let to = (from + MOST_SHOWN).min(letters.len());
        let shown: String = letters[from.min(to)..to].iter().collect();
        format!("{}{shown}{}", if from > 0 { "…" } else { "" }, if to < letters.len() { "…" } else { "" })
    };
    (cut(before), cut(now))
}

/// One try of a task.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptView {
    pub attempt: u32,
    /// Which way of doing it was taken: 0 is the task's own.
    #[serde(skip_serializing_if = "is_zero")]
    pub variant: u32,
    pub node: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    pub request: Request,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    /// The files that it made, where it misses a declared output.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<OutputFile>,
    /// What lay in its output folders and is no file, so that it is not kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The tasks of a cluster, and the files that went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptReport>,
    /// What the next one was allowed, when that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Request>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// `, variant 2`; nothing when the task was done in its own way.
pub fn variant_words(variant: u32) -> String {
    if variant == 0 { String::new() } else { format!(", variant {variant}") }
}

impl AttemptView {
    /// Its ending and what it used, in one line.
    pub fn line(&self) -> String {
        let mut text = match (&self.ending, &self.started) {
            (Some(ending), _) => ending.words(),
            (None, Some(_)) => "started".into(),
            (None, None) => "submitted".into(),
        };
        // An attempt that was lost measured nothing.
        if let Some(usage) = self.usage.filter(|usage| usage.wall_us > 0) {
            text.push_str(&format!(" {}", usage_words(&usage)));
        }
        text.push_str(&format!(", on {}", self.node));
        if !self.gpus.is_empty() {
            text.push_str(&format!(" with GPU {}", self.gpus.join(",")));
        }
        text.push_str(&format!(" (asked for {}{})", request_words(&self.request), variant_words(self.variant)));
        text
    }

    /// What went on inside a job that is more than one command: one line a transfer and a task.
    pub fn inside(&self) -> Vec<String> {
        let Some(script) = &self.script else { return Vec::new() };
        let transfer = |one: &TransferReport| {
            let word = match one.what {
                TransferKind::Pull => "pulled",
                TransferKind::Push => "pushed",
                TransferKind::Remove => "removed",
            };
            let again = if one.retries > 0 { format!(", {} tried again", one.retries) } else { String::new() };
            // HTCondor does not say how many files it moved.
            let files = (one.files > 0 || one.bytes == 0).then(|| count(one.files as usize, "file"));
            let bytes = (one.bytes > 0).then(|| Bytes(one.bytes).to_string());
            let what: Vec<String> = files.into_iter().chain(bytes).collect();
            let time = Duration::from_micros(one.wall_us).as_secs_f64();
            format!("{word} {} in {time:.3} s{again}", what.join(", "))
        };
        let task = |one: &MemberReport| {
            let earlier = if one.earlier { " in an earlier attempt" } else { "" };
            format!("{}: {}{earlier} {}", one.name, one.ending.words(), usage_words(&one.usage))
        };
        let order = |report: &&TransferReport| report.what != TransferKind::Pull;
        let (after, before): (Vec<_>, Vec<_>) = script.transfers.iter().partition(order);
        before
            .into_iter()
            .map(transfer)
            .chain(script.members.iter().map(task))
            .chain(after.into_iter().map(transfer))
            .collect()
    }
}

/// `1 task`, `3 tasks`
pub fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_is_shown_where_it_differs() {
        let (before, now) = ("x".repeat(300) + "1" + &"y".repeat(300), "x".repeat(300) + "2" + &"y".repeat(300));
        let (before, now) = around_difference(&before, &now);
        assert!(before.contains("xx1yy") && now.contains("xx2yy") && before.chars().count() < 170);
    }

    #[test]
    fn of_an_environment_only_the_changed_lines_are_shown() {
        let lines = by_line("it changed:", "A=1\nB=2", "A=1\nB=3\nC=4");
        assert_eq!(lines, ["it changed:", "  before: B=2", "  now:    B=3", "  now:    C=4"]);
    }
}
