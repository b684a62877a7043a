//! What the terminal view knows of a run: its engine as the journal grows, what runs uses, what failed, what was slow.
//!
//! Kept up by events, so that a look at a run of a million tasks costs what happened since the last one. It draws
//! nothing and knows no keys.

use super::samples::Samples;
use crate::terminal::Terminal;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;
use tulpar::Failure;
use tulpar::explanation::{self, Causes, Words};
use tulpar::history;
use tulpar::replay::{self, Replayed, Standing};
use tulpar::used::{self, Used};
use tulpar_core::engine::Engine;
use tulpar_core::event::{Blame, Event};
use tulpar_core::ids::{AttemptId, JobId, SetId};
use tulpar_core::job::Usage;
use tulpar_core::units::Timestamp;
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_exec::journal::Entry;
use tulpar_report::{Columns, Kinds, Timeline};

/// How many of the slowest attempts are known.
const MOST_SLOW: usize = 500;
/// How many of the last words are kept.
const MOST_WORDS: usize = 500;
/// A forecast plays the rest of the run: not at every look.
const FORECAST_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Slow {
    pub(super) job: JobId,
    pub(super) usage: Usage,
    pub(super) node: String,
}

pub(super) struct Failing {
    pub(super) why: String,
    pub(super) blame: Option<Blame>,
}

/// What is gathered from events.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) causes: Causes,
    pub(super) timeline: Timeline,
    /// By task set.
    pub(super) used: Vec<Used>,
    /// By job, the last attempt that did not end well.
    pub(super) failing: BTreeMap<JobId, Failing>,
    /// Longest first.
    pub(super) slowest: Vec<Slow>,
    /// Where each attempt that goes on is.
    places: BTreeMap<AttemptId, String>,
    /// What happened, as `run` tells it; oldest first.
    pub(super) words: VecDeque<(Timestamp, String)>,
}

pub(super) struct Model {
    pub(super) project: Project,
    pub(super) run: Replayed,
    pub(super) gathered: Gathered,
    pub(super) samples: Samples,
    pub(super) now: Timestamp,
    forecast: Option<(Timestamp, Option<Duration>)>,
    columns: Option<(u64, Columns)>,
}

impl Model {
    pub(super) fn open(project: Project, folder: RunFolder, now: Timestamp) -> Result<Self, Failure> {
        let samples = Samples::new(folder.samples());
        let mut gathered = Gathered::default();
        let run = replay::open_with(&Terminal, folder, |engine, entry| gathered.note(engine, entry))?;
        let mut model = Self { project, run, gathered, samples, now, forecast: None, columns: None };
        model.look_at_samples();
        Ok(model)
    }

    /// Takes in what came since the last look.
    pub(super) fn advance(&mut self, now: Timestamp) -> Result<(), Failure> {
        self.now = now;
        let gathered = &mut self.gathered;
        self.run.advance(|engine, entry| gathered.note(engine, entry))?;
        self.look_at_samples();
        Ok(())
    }

    fn look_at_samples(&mut self) {
        let engine = &self.run.engine;
        self.samples
            .advance(|attempt| engine.state(attempt.job).is_live() && engine.attempts(attempt.job) == attempt.n);
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.run.engine
    }

    pub(super) fn driven(&self) -> bool {
        self.run.standing() == Standing::Running
    }

    /// How long it was driven.
    pub(super) fn took(&self) -> Duration {
        self.run.took_until(self.now)
    }

    /// How long it will go on, when that can be said.
    pub(super) fn left(&mut self) -> Option<Duration> {
        if !self.driven() {
            return None;
        }
        match self.forecast {
            Some((at, left)) if self.now.since(at) < FORECAST_EVERY => {
                left.map(|left| left.saturating_sub(self.now.since(at)))
            }
            _ => {
                let left = self.run.engine.forecast(self.now).map(|forecast| forecast.end.since(self.now));
                self.forecast = Some((self.now, left));
                left
            }
        }
    }

    /// Cores and GPUs held over time, by kind of task; made anew once a second at most.
    pub(super) fn columns(&mut self, most: usize) -> &Columns {
        let second = self.now.0 / 1_000_000;
        let fresh = self.columns.as_ref().is_some_and(|(at, _)| *at == second);
        if !fresh {
            let now = self.driven().then_some(self.now);
            let timeline = &self.gathered.timeline;
            let occupied = timeline.occupied(self.run.engine.graph(), now);
            let kinds = Kinds::new(self.run.engine.plan(), &occupied);
            self.columns = Some((second, Columns::new(&occupied, &kinds, timeline.makespan(now), most)));
        }
        &self.columns.as_ref().expect("made above").1
    }

    /// Why a task is as it is.
    pub(super) fn explain(&self, job: JobId) -> Words {
        match explanation::view(&self.project, &self.run, job, &self.gathered.causes) {
            Ok(view) => explanation::lines(&view),
            Err(failure) => Words::only(failure.to_string()),
        }
    }

    /// The folder of a task's last attempt.
    pub(super) fn attempt_folder(&self, job: JobId) -> Option<PathBuf> {
        let n = self.engine().attempts(job);
        (n > 0).then(|| history::attempt_folder(&self.run.folder, AttemptId { job, n }))
    }

    pub(super) fn used(&self, set: SetId) -> Used {
        self.gathered.used.get(set.index()).cloned().unwrap_or_default()
    }
}

impl Gathered {
    fn note(&mut self, engine: &Engine, entry: &Entry) {
        if matches!(entry.event, Event::RunStarted { .. }) {
            // The first event of all: also when the journal is read from its beginning again.
            *self = Self::default();
        }
        self.causes.note(&entry.event);
        self.timeline.note(engine.graph(), entry.at, &entry.event);
        let name = |job: JobId| engine.graph().name(job);
        match &entry.event {
            Event::Submitted { attempt, placement, .. } => {
                let nodes = &engine.plan().site.nodes;
                let node = placement.nodes.first().and_then(|share| nodes.get(share.node.index()));
                self.places.insert(*attempt, node.map(|node| node.name.clone()).unwrap_or_default());
            }
            Event::Ended { attempt, report, .. } => {
                let set = engine.graph().set_of(attempt.job).index();
                if self.used.len() <= set {
                    self.used.resize(set + 1, Used::default());
                }
                self.used[set].add(report);
                let node = self.places.remove(attempt).unwrap_or_default();
                if report.ending.is_success() {
                    self.failing.remove(&attempt.job);
                    self.slow(Slow { job: attempt.job, usage: report.usage, node });
                } else {
                    let why = used::why(report);
                    self.say(entry.at, format!("{}, attempt {}: {why}", name(attempt.job), attempt.n));
                    self.failing.insert(attempt.job, Failing { why, blame: None });
                }
            }
            Event::Held { attempt, reason } => self.say(entry.at, format!("{} is held: {reason}", name(attempt.job))),
            Event::Grafted { set, tasks } => {
                self.say(entry.at, format!("{} has {tasks} tasks", engine.plan().task(*set).name));
            }
            Event::Node { node, present } => {
                let node = engine.plan().site.nodes.get(node.index()).map_or("a node", |node| node.name.as_str());
                let words = if *present { "is there" } else { "is gone" };
                self.say(entry.at, format!("{node} {words}"));
            }
            Event::RunResumed { .. } => self.say(entry.at, "resumed".to_owned()),
            Event::RunEnded { outcome } => self.say(entry.at, format!("the run is {outcome:?}").to_lowercase()),
            _ => {}
        }
        if let Some((job, blame)) = entry.event.failure() {
            if let Some(failing) = self.failing.get_mut(&job) {
                failing.blame = Some(blame);
            }
            self.say(entry.at, format!("{} failed", name(job)));
        }
    }

    fn say(&mut self, at: Timestamp, words: String) {
        if self.words.len() == MOST_WORDS {
            self.words.pop_front();
        }
        self.words.push_back((at, words));
    }

    fn slow(&mut self, slow: Slow) {
        let wall = slow.usage.wall_us;
        if self.slowest.len() == MOST_SLOW && self.slowest.last().is_some_and(|last| last.usage.wall_us >= wall) {
            return;
        }
        let place = self.slowest.partition_point(|other| other.usage.wall_us >= wall);
        self.slowest.insert(place, slow);
        self.slowest.truncate(MOST_SLOW);
    }

    /// Where an attempt that goes on is.
    pub(super) fn place(&self, attempt: AttemptId) -> &str {
        self.places.get(&attempt).map_or("", String::as_str)
    }
}
