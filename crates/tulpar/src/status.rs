//! How a run stands, by task set or by task: one pass over the journal, whatever the number of tasks.
//!
//! Names are made only for what is listed.

use crate::failure::Failure;
use crate::messages::Messages;
use crate::replay::{self, Replayed, Standing};
use crate::used::{self, Used};
use crate::view::{Moment, cpu_percent, state_word};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tulpar_core::diagnostic::did_you_mean;
use tulpar_core::engine::{Counts, STATES, State};
use tulpar_core::event::Event;
use tulpar_core::hpo::Values;
use tulpar_core::ids::{JobId, SetId};
use tulpar_core::job::Usage;
use tulpar_core::provenance::{Metric, Provenance};
use tulpar_exec::folder::Project;

#[derive(Serialize)]
pub struct StatusView {
    pub run: String,
    pub workflow: String,
    pub workflow_file: String,
    pub standing: Standing,
    /// The process that drives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Moment>,
    /// Nothing of it really ran; its times are virtual, from 0.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    pub seconds: f64,
    pub resumed: u32,
    /// Seconds that are left, as a rollout of the rest says, when it runs and durations are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_seconds: Option<f64>,
    /// Seconds that are left at least, whatever the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_left_seconds: Option<f64>,
    pub version: String,
    pub site: String,
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Metrics that tasks reported, each over the tasks of its set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// How many tasks are in each state.
    pub tasks: BTreeMap<&'static str, u32>,
    pub reused: u32,
    pub sets: Vec<SetView>,
    /// How each search stands, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<String>,
    pub failed: Vec<FailedView>,
    /// Failed tasks that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_failed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<TaskView>>,
}

#[derive(Serialize)]
pub struct SetView {
    pub name: String,
    /// Absent until the number is known.
    pub tasks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_when: Option<Vec<String>>,
    pub done: u32,
    pub reused: u32,
    /// In the queue of a site, or about to start.
    pub submitted: u32,
    pub running: u32,
    pub failed: u32,
    pub skipped: u32,
    pub cancelled: u32,
    pub mean_seconds: Option<f64>,
    pub max_seconds: Option<f64>,
    pub peak_memory: Option<u64>,
    pub cpu_percent: Option<u64>,
    pub read_bytes: Option<u64>,
    pub write_bytes: Option<u64>,
}

#[derive(Serialize)]
pub struct FailedView {
    pub task: String,
    pub attempts: u32,
    pub why: String,
    pub tolerated: bool,
}

#[derive(Serialize)]
pub struct TaskView {
    pub task: String,
    /// Of a trial of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Values>,
    pub state: &'static str,
    pub reused: bool,
    pub attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "measured_alone")]
    pub usage: Option<Usage>,
}

/// Figures that nobody measured are null.
fn measured_alone<S: serde::Serializer>(usage: &Option<Usage>, to: S) -> Result<S::Ok, S::Error> {
    let mut view = serde_json::to_value(usage).map_err(serde::ser::Error::custom)?;
    if let Some(usage) = usage {
        let mut hide = |name: &str, known: bool| {
            if !known {
                view[name] = serde_json::Value::Null;
            }
        };
        hide("peak_rss", usage.peak_rss > 0);
        hide("peak_gpu_memory", usage.peak_gpu_memory > 0);
        hide("gpu_utilisation", usage.peak_gpu_memory > 0 || usage.gpu_utilisation > 0);
    }
    view.serialize(to)
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

const MOST_FAILED: usize = 20;

/// What is remembered of single tasks, only when they are to be listed.
#[derive(Default)]
pub struct Singles {
    pub wanted: bool,
    pub reused: Vec<bool>,
    pub last: BTreeMap<JobId, Usage>,
    pub nodes: BTreeMap<JobId, u32>,
}

impl Singles {
    pub fn note(&mut self, event: &Event) {
        if !self.wanted {
            return;
        }
        match event {
            Event::Reused { job, .. } => {
                if self.reused.len() <= job.index() {
                    self.reused.resize(job.index() + 1, false);
                }
                self.reused[job.index()] = true;
            }
            Event::Submitted { attempt, placement, .. } => {
                if let Some(share) = placement.nodes.first() {
                    self.nodes.insert(attempt.job, share.node.0);
                }
            }
            Event::Ended { attempt, report, .. } => drop(self.last.insert(attempt.job, report.usage)),
            _ => {}
        }
    }

    pub fn is_reused(&self, job: JobId) -> bool {
        self.reused.get(job.index()).copied().unwrap_or(false)
    }
}

fn wanted_state(text: &str) -> Result<String, Failure> {
    let known: Vec<&str> =
        STATES.iter().map(|state| state_word(*state, true)).chain(["interrupted", "reused"]).collect();
    let lower = text.to_lowercase();
    if known.contains(&lower.as_str()) {
        return Ok(lower);
    }
    let hint = match did_you_mean(&lower, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? The states are: {}", known.join(", ")),
        None => format!("the states are: {}", known.join(", ")),
    };
    Err(Failure::usage_with(format!("`{text}` is not a state of a task"), hint))
}

fn view(replayed: &Replayed, used: &[Used], failures: &BTreeMap<JobId, String>) -> StatusView {
    let engine = &replayed.engine;
    let plan = engine.plan();
    let driven = replayed.standing() == Standing::Running;
    let counts = engine.counts();
    let mut tasks = BTreeMap::new();
    for state in STATES.iter().filter(|state| counts.of(**state) > 0) {
        *tasks.entry(state_word(*state, driven)).or_default() += counts.of(*state);
    }
    let wanted = plan.wanted();
    let sets: Vec<SetView> = (0..plan.workflow.tasks.len())
        .filter(|index| wanted[*index])
        .map(|index| set_view(replayed, SetId::from(index), &used[index], driven))
        .collect();
    let mut failed = Vec::new();
    let mut more_failed = 0;
    if counts.of(State::Failed) > 0 {
        for job in (0..engine.graph().len()).map(JobId::from) {
            if engine.state(job) != State::Failed {
                continue;
            }
            if failed.len() == MOST_FAILED {
                more_failed += 1;
                continue;
            }
            failed.push(FailedView {
                task: replayed.name(job),
                attempts: engine.attempts(job),
                why: failures.get(&job).cloned().unwrap_or_default(),
                tolerated: engine.is_excused(job),
            });
        }
    }
    let now = replay::now();
    let forecast = driven.then(|| engine.forecast(now)).flatten();
    StatusView {
        left_seconds: forecast.map(|forecast| forecast.end.since(now).as_secs_f64()),
        least_left_seconds: forecast.map(|forecast| forecast.bound.since(now).as_secs_f64()),
        run: replayed.folder.name.clone(),
        workflow: plan.workflow.name.clone(),
        workflow_file: replayed.workflow_file.clone(),
        standing: replayed.standing(),
        driver: replayed.driver,
        started: replayed.started.map(Moment),
        simulated: replayed.folder.is_simulated(),
        seconds: replayed.took().as_secs_f64(),
        resumed: replayed.resumed,
        version: replayed.version.clone(),
        site: plan.site.name.clone(),
        provenance: replayed.provenance.clone(),
        metrics: engine.graph().metrics(),
        tasks,
        reused: sets.iter().map(|set| set.reused).sum(),
        sets,
        searches: tulpar_report::search_lines(engine.graph()),
        failed,
        more_failed,
        list: None,
    }
}

fn set_view(replayed: &Replayed, set: SetId, used: &Used, driven: bool) -> SetView {
    let engine = &replayed.engine;
    let plan = engine.plan();
    let tasks = engine.graph().count_of(set);
    let counts: Counts = engine.set_counts(set);
    let known_when = tasks.is_none().then(|| {
        let sources = plan.producers(set).into_iter();
        sources.map(|source| plan.task(source).name.clone()).collect()
    });
    let seconds = |micros: u64| Duration::from_micros(micros).as_secs_f64();
    let measured = used.wall_us > 0 && !replayed.folder.is_simulated();
    SetView {
        name: plan.task(set).name.clone(),
        tasks,
        known_when,
        done: counts.of(State::Done),
        reused: engine.set_reused(set),
        submitted: if driven { counts.of(State::Submitted) } else { 0 },
        running: if driven { counts.of(State::Running) } else { 0 },
        failed: counts.of(State::Failed),
        skipped: counts.of(State::Skipped),
        cancelled: counts.of(State::Cancelled),
        mean_seconds: (used.good > 0).then(|| seconds(used.good_wall_us / u64::from(used.good.max(1)))),
        max_seconds: (used.good > 0).then(|| seconds(used.max_wall_us)),
        peak_memory: (used.peak_rss > 0).then_some(used.peak_rss),
        cpu_percent: cpu_percent(used.cpu_us, used.wall_us).filter(|_| measured),
        read_bytes: measured.then_some(used.read_bytes),
        write_bytes: measured.then_some(used.write_bytes),
    }
}

fn list(replayed: &Replayed, singles: &Singles, wanted: Option<&str>) -> Vec<TaskView> {
    let engine = &replayed.engine;
    let driven = replayed.standing() == Standing::Running;
    let simulated = replayed.folder.is_simulated();
    (0..engine.graph().len())
        .map(JobId::from)
        .filter_map(|job| {
            let state = state_word(engine.state(job), driven);
            let reused = singles.is_reused(job);
            if wanted.is_some_and(|wanted| wanted != state && !(wanted == "reused" && reused)) {
                return None;
            }
            let usage = singles.last.get(&job).copied();
            let node = singles.nodes.get(&job).and_then(|node| engine.plan().site.nodes.get(*node as usize));
            Some(TaskView {
                task: replayed.name(job),
                parameters: engine.graph().parameters(job),
                state,
                reused,
                attempts: engine.attempts(job),
                node: node.map(|node| node.name.clone()),
                seconds: usage
                    .filter(|usage| usage.wall_us > 0)
                    .map(|usage| Duration::from_micros(usage.wall_us).as_secs_f64()),
                usage: usage.filter(|usage| !simulated && usage.is_measured()),
            })
        })
        .collect()
}

/// The standing of a run. `tasks` lists every task, `state` those in that state.
pub fn status(
    project: &Project,
    run: Option<&str>,
    tasks: bool,
    state: Option<&str>,
    messages: &dyn Messages,
) -> Result<StatusView, Failure> {
    let wanted = state.map(wanted_state).transpose()?;
    let run = project.run(run)?;
    let mut used: Vec<Used> = Vec::new();
    let mut failures: BTreeMap<JobId, String> = BTreeMap::new();
    let mut singles = Singles { wanted: tasks || wanted.is_some(), ..Singles::default() };
    let replayed = replay::open_with(messages, run, |engine, entry| {
        if used.is_empty() {
            used.resize(engine.plan().workflow.tasks.len(), Used::default());
        }
        singles.note(&entry.event);
        if let Event::Ended { attempt, report, .. } = &entry.event {
            used[engine.graph().set_of(attempt.job).index()].add(report);
            // Most failures are retried or tolerated: words are made for those that stay.
            if !report.ending.is_success() && failures.len() < 10_000 {
                failures.insert(attempt.job, used::why(report));
            }
        }
    })?;
    used.resize(replayed.engine.plan().workflow.tasks.len(), Used::default());
    let mut view = view(&replayed, &used, &failures);
    if singles.wanted {
        view.list = Some(list(&replayed, &singles, wanted.as_deref()));
    }
    Ok(view)
}
