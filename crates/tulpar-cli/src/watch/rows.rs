//! The tables of the terminal view: which rows a tab has, with what in their columns, sorted and filtered.
//!
//! Rows are made for what is shown. A tab lists at most some thousand of them; the task sets above say the true numbers.

use super::model::Model;
use std::cmp::Ordering;
use std::time::Duration;
use tulpar::explanation;
use tulpar::view::duration;
use tulpar::view::{cpu_percent, state_word};
use tulpar_core::engine::State;
use tulpar_core::event::Blame;
use tulpar_core::ids::{AttemptId, JobId, SetId};
use tulpar_core::units::Bytes;

/// More rows than this are not listed.
pub(super) const MOST_ROWS: usize = 5000;
/// Of one task set, so many that wait are listed.
const MOST_WAITING: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    Sets,
    Running,
    Waiting,
    Failed,
    Slowest,
    Timeline,
}

pub(super) const TABS: [Tab; 6] = [Tab::Sets, Tab::Running, Tab::Waiting, Tab::Failed, Tab::Slowest, Tab::Timeline];

impl Tab {
    pub(super) fn title(self) -> &'static str {
        match self {
            Tab::Sets => "Task sets",
            Tab::Running => "Running",
            Tab::Waiting => "Waiting",
            Tab::Failed => "Failed",
            Tab::Slowest => "Slowest",
            Tab::Timeline => "Timeline",
        }
    }

    /// The columns, and how wide each is; 0 takes what is left.
    pub(super) fn columns(self, of_one_set: bool) -> &'static [(&'static str, u16)] {
        match self {
            Tab::Sets if of_one_set => &[("task", 0), ("state", 11), ("attempts", 8), ("why", 40)],
            Tab::Sets => &[
                ("task set", 0),
                ("tasks", 7),
                ("done", 7),
                ("running", 7),
                ("waiting", 7),
                ("failed", 6),
                ("mean", 10),
                ("longest", 10),
                ("cpu", 6),
                ("memory", 9),
                ("read", 9),
                ("written", 9),
            ],
            Tab::Running => &[
                ("task", 0),
                ("state", 9),
                ("node", 14),
                ("for", 12),
                ("cpu", 6),
                ("memory", 9),
                ("gpu", 5),
                ("read/s", 9),
                ("write/s", 9),
            ],
            Tab::Waiting => &[("task", 0), ("state", 9), ("why", 60)],
            Tab::Failed => &[("task", 0), ("attempts", 8), ("blame", 9), ("why", 60)],
            Tab::Slowest => &[("task", 0), ("took", 12), ("to mean", 8), ("node", 14), ("cpu", 6), ("memory", 9)],
            Tab::Timeline => &[],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Set(SetId),
    Job(JobId),
}

#[derive(Clone, Debug)]
enum Key {
    Number(f64),
    Text,
}

/// What stands in one column, and how it sorts.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    key: Key,
}

impl Cell {
    pub(super) fn is_number(&self) -> bool {
        matches!(self.key, Key::Number(_))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) what: What,
    pub(super) state: Option<State>,
    pub(super) cells: Vec<Cell>,
}

/// How a tab is sorted: by nothing, as things come, or by a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) column: Option<usize>,
    pub(super) descending: bool,
}

fn text(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), key: Key::Text }
}

fn number(value: f64, text: String) -> Cell {
    Cell { text, key: Key::Number(value) }
}

/// Not known yet: below all that is.
fn none() -> Cell {
    number(-1.0, "·".to_owned())
}

fn counted(value: u32) -> Cell {
    number(f64::from(value), if value == 0 { "·".to_owned() } else { value.to_string() })
}

fn time(value: Duration) -> Cell {
    number(value.as_secs_f64(), duration(value))
}

fn bytes(value: u64) -> Cell {
    number(value as f64, if value == 0 { "·".to_owned() } else { Bytes(value).to_string() })
}

fn percent(value: Option<u64>) -> Cell {
    value.map_or_else(none, |value| number(value as f64, format!("{value} %")))
}

/// The rows of a tab.
pub(super) fn rows(model: &Model, tab: Tab, set: Option<SetId>, filter: &str, order: Order) -> Vec<Row> {
    let filter = filter.to_lowercase();
    let mut rows = match (tab, set) {
        (Tab::Sets, Some(set)) => tasks(model, set, &filter),
        (Tab::Sets, None) => sets(model),
        (Tab::Running, _) => running(model),
        (Tab::Waiting, _) => waiting(model),
        (Tab::Failed, _) => failed(model, &filter),
        (Tab::Slowest, _) => slowest(model),
        (Tab::Timeline, _) => Vec::new(),
    };
    if !filter.is_empty() {
        rows.retain(|row| row.cells.iter().any(|cell| cell.text.to_lowercase().contains(&filter)));
    }
    if let Some(column) = order.column {
        rows.sort_by(|one, other| {
            let sorted = compare(one.cells.get(column), other.cells.get(column));
            if order.descending { sorted.reverse() } else { sorted }
        });
    }
    rows
}

fn compare(one: Option<&Cell>, other: Option<&Cell>) -> Ordering {
    match (one, other) {
        (Some(Cell { key: Key::Number(one), .. }), Some(Cell { key: Key::Number(other), .. })) => one.total_cmp(other),
        (Some(one), Some(other)) => one.text.cmp(&other.text),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

fn sets(model: &Model) -> Vec<Row> {
    let engine = model.engine();
    let plan = engine.plan();
    let wanted = plan.wanted();
    (0..plan.workflow.tasks.len())
        .filter(|index| wanted[*index])
        .map(SetId::from)
        .map(|set| {
            let counts = engine.set_counts(set);
            let used = model.used(set);
            let live = counts.of(State::Running) + counts.of(State::Submitted);
            let waiting = counts.total() - counts.settled() - live;
            let tasks = engine.graph().count_of(set);
            let mean = Duration::from_micros(used.good_wall_us / u64::from(used.good.max(1)));
            let state = if counts.of(State::Failed) > 0 {
                Some(State::Failed)
            } else if live > 0 {
                Some(State::Running)
            } else if tasks.is_some() && counts.settled() == counts.total() {
                Some(State::Done)
            } else {
                Some(State::Waiting)
            };
            let measured = used.good > 0;
            let cells = vec![
                text(plan.task(set).name.clone()),
                tasks.map_or_else(|| number(-1.0, "?".to_owned()), counted),
                counted(counts.of(State::Done)),
                counted(if model.driven() { live } else { 0 }),
                counted(waiting),
                counted(counts.of(State::Failed)),
                if measured { time(mean) } else { none() },
                if measured { time(Duration::from_micros(used.max_wall_us)) } else { none() },
                percent(cpu_percent(used.cpu_us, used.wall_us)),
                bytes(used.peak_rss),
                bytes(used.read_bytes),
                bytes(used.write_bytes),
            ];
            Row { what: What::Set(set), state, cells }
        })
        .collect()
}

fn tasks(model: &Model, set: SetId, filter: &str) -> Vec<Row> {
    let engine = model.engine();
    let jobs = engine.graph().jobs_of(set).into_iter().flatten();
    let named = jobs.map(|job| (job, engine.graph().name(job)));
    // What is left out by name takes no place among those that are listed.
    let found = named.filter(|(job, name)| {
        filter.is_empty()
            || name.to_lowercase().contains(filter)
            || state_word(engine.state(*job), model.driven()).contains(filter)
    });
    found
        .take(MOST_ROWS)
        .map(|(job, name)| {
            let state = engine.state(job);
            let why = model.gathered.failing.get(&job).map(|failing| failing.why.clone());
            let cells = vec![
                text(name),
                text(state_word(state, model.driven())),
                counted(engine.attempts(job)),
                text(why.unwrap_or_default()),
            ];
            Row { what: What::Job(job), state: Some(state), cells }
        })
        .collect()
}

fn running(model: &Model) -> Vec<Row> {
    let engine = model.engine();
    if !model.driven() {
        return Vec::new();
    }
    engine
        .live()
        .take(MOST_ROWS)
        .map(|(attempt, _, since)| {
            let state = engine.state(attempt.job);
            let rate = model.samples.rate(attempt);
            let per_second =
                |value: f64| number(value, if value < 1.0 { "·".into() } else { Bytes(value as u64).to_string() });
            let cells = vec![
                text(engine.graph().name(attempt.job)),
                text(state_word(state, true)),
                text(model.gathered.place(attempt)),
                time(model.now.since(since)),
                percent(rate.map(|rate| rate.cpu.round() as u64)),
                bytes(rate.map_or(0, |rate| rate.rss)),
                percent(rate.and_then(|rate| rate.gpu_percent).map(u64::from)),
                per_second(rate.map_or(0.0, |rate| rate.read_per_second)),
                per_second(rate.map_or(0.0, |rate| rate.write_per_second)),
            ];
            Row { what: What::Job(attempt.job), state: Some(state), cells }
        })
        .collect()
}

fn waiting(model: &Model) -> Vec<Row> {
    let engine = model.engine();
    let mut rows = Vec::new();
    for set in (0..engine.plan().workflow.tasks.len()).map(SetId::from) {
        let counts = engine.set_counts(set);
        let live = counts.of(State::Running) + counts.of(State::Submitted);
        if counts.total() == counts.settled() + live {
            continue;
        }
        let waits = |job: &JobId| {
            !engine.state(*job).is_settled() && !matches!(engine.state(*job), State::Running | State::Submitted)
        };
        let jobs = engine.graph().jobs_of(set).into_iter().flatten().filter(waits);
        for job in jobs.take(MOST_WAITING) {
            let state = engine.state(job);
            let cells = vec![
                text(engine.graph().name(job)),
                text(state_word(state, model.driven())),
                text(explanation::short(&engine.explain(job), model.now)),
            ];
            rows.push(Row { what: What::Job(job), state: Some(state), cells });
        }
        if rows.len() > MOST_ROWS {
            break;
        }
    }
    rows
}

fn failed(model: &Model, filter: &str) -> Vec<Row> {
    let engine = model.engine();
    let bad = model.gathered.failing.iter().filter(|(job, failing)| {
        let over = matches!(engine.state(**job), State::Failed);
        (over || !engine.state(**job).is_settled()) && (filter.is_empty() || over || !failing.why.is_empty())
    });
    bad.take(MOST_ROWS)
        .map(|(job, failing)| {
            let state = engine.state(*job);
            let blame = match failing.blame {
                Some(Blame::Task) => "the task",
                Some(Blame::Resources) => "resources",
                Some(Blame::TooMuch) => "too large",
                Some(Blame::Site) => "the site",
                Some(Blame::Inputs) => "an input that changed",
                None => "",
            };
            // One that is tried again has not failed.
            let again = if state == State::Failed { "" } else { "(tried again) " };
            let cells = vec![
                text(engine.graph().name(*job)),
                counted(engine.attempts(*job)),
                text(blame),
                text(format!("{again}{}", failing.why)),
            ];
            Row { what: What::Job(*job), state: Some(state), cells }
        })
        .collect()
}

fn slowest(model: &Model) -> Vec<Row> {
    let engine = model.engine();
    let slow = model.gathered.slowest.iter();
    slow.map(|slow| {
        let used = model.used(engine.graph().set_of(slow.job));
        let mean = (used.good_wall_us / u64::from(used.good.max(1))).max(1);
        let ratio = slow.usage.wall_us as f64 / mean as f64;
        let cells = vec![
            text(engine.graph().name(slow.job)),
            time(Duration::from_micros(slow.usage.wall_us)),
            number(ratio, format!("{ratio:.2} ×")),
            text(slow.node.clone()),
            percent(cpu_percent(slow.usage.user_us + slow.usage.system_us, slow.usage.wall_us)),
            bytes(slow.usage.peak_rss),
        ];
        Row { what: What::Job(slow.job), state: Some(engine.state(slow.job)), cells }
    })
    .collect()
}

/// The attempt that a task is at, or was last.
pub(super) fn last_attempt(model: &Model, job: JobId) -> Option<AttemptId> {
    let n = model.engine().attempts(job);
    (n > 0).then_some(AttemptId { job, n })
}
