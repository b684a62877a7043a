//! What is known of every run at a glance, and who is told when that changes.

use super::lock;
use super::runs::RunLine;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A reader is told at most so often.
const PACE: Duration = Duration::from_millis(250);
/// Something is sent at least so often, so that a reader who went away is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(super) struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    runs: BTreeMap<String, Entry>,
    /// Counts every change of any run.
    change: u64,
    /// Runs that are there no more, and when they went.
    gone: BTreeMap<String, u64>,
    readers: usize,
    ended: bool,
}

struct Entry {
    line: RunLine,
    change: u64,
}

/// What a reader is told.
#[derive(Serialize)]
struct Told<'a> {
    runs: Vec<&'a RunLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<&'a str>,
}

impl Board {
    pub(super) fn new() -> Self {
        Board { state: Mutex::default(), changed: Condvar::new() }
    }

    /// Every run, the latest last.
    pub(super) fn lines(&self) -> Vec<RunLine> {
        let mut lines: Vec<RunLine> = lock(&self.state).runs.values().map(|entry| entry.line.clone()).collect();
        lines.sort_by(|one, other| (one.created, &one.run).cmp(&(other.created, &other.run)));
        lines
    }

    pub(super) fn line(&self, run: &str) -> Option<RunLine> {
        lock(&self.state).runs.get(run).map(|entry| entry.line.clone())
    }

    /// The runs of workflows that are tasks of a run, the latest last.
    pub(super) fn inside(&self, run: &str) -> Vec<RunLine> {
        let mut inner = self.lines();
        inner.retain(|line| line.parent.as_deref() == Some(run));
        inner
    }

    /// Whether somebody waits to be told.
    pub(super) fn is_watched(&self) -> bool {
        lock(&self.state).readers > 0
    }

    /// Puts up how a run stands now. Whether that is news.
    pub(super) fn put(&self, line: RunLine) -> bool {
        let mut state = lock(&self.state);
        if state.runs.get(&line.run).is_some_and(|known| known.line == line) {
            return false;
        }
        state.change += 1;
        let change = state.change;
        state.gone.remove(&line.run);
        state.runs.insert(line.run.clone(), Entry { line, change });
        self.changed.notify_all();
        true
    }

    /// So much of a run's files was read, of those that are waited for.
    pub(super) fn read(&self, run: &str, taken: u64, there: u64) {
        let percent = (99 * taken).checked_div(there).unwrap_or(0).min(99);
        let percent = u8::try_from(percent).unwrap_or(99);
        let line = self.line(run).filter(|line| line.reading.is_some());
        if let Some(line) = line {
            self.put(RunLine { reading: Some(percent), ..line });
        }
    }

    /// Takes down what is no longer there.
    pub(super) fn keep(&self, there: impl Fn(&str) -> bool) {
        let mut state = lock(&self.state);
        let gone: Vec<String> = state.runs.keys().filter(|run| !there(run)).cloned().collect();
        for run in gone {
            state.runs.remove(&run);
            state.change += 1;
            let change = state.change;
            state.gone.insert(run, change);
            self.changed.notify_all();
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        lock(&self.state).ended
    }

    pub(super) fn end(&self) {
        lock(&self.state).ended = true;
        self.changed.notify_all();
    }

    /// Waits, unless everything ends before.
    pub(super) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = lock(&self.state);
        while !state.ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells a reader what changes, until it goes away or all ends: server-sent events.
    pub(super) fn stream(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut seen = {
            let mut state = lock(&self.state);
            state.readers += 1;
            state.change
        };
        let told = self.tell(&mut seen, out);
        lock(&self.state).readers -= 1;
        told
    }

    fn tell(&self, seen: &mut u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(format!("retry: 1000\nevent: hello\ndata: {{\"change\":{seen}}}\n\n").as_bytes())?;
        loop {
            let news = {
                let state = lock(&self.state);
                let waited =
                    self.changed.wait_timeout_while(state, HEARTBEAT, |state| state.change == *seen && !state.ended);
                let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
                if state.ended {
                    return Ok(());
                }
                let runs: Vec<&RunLine> =
                    state.runs.values().filter(|entry| entry.change > *seen).map(|entry| &entry.line).collect();
                let gone = state.gone.iter().filter(|(_, change)| **change > *seen).map(|(run, _)| run.as_str());
                let told = Told { runs, gone: gone.collect() };
                let text = match state.change == *seen {
                    true => ": still here\n\n".to_owned(),
                    false => format!("data: {}\n\n", serde_json::to_string(&told)?),
                };
                *seen = state.change;
                text
            };
            out.write_all(news.as_bytes())?;
            self.pause(PACE);
        }
    }
}
