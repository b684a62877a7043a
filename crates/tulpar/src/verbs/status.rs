//! `tulpar status`: how a run stands, by task set or by task.
//!
//! One pass over the journal, whatever the number of tasks; names are made only for what is shown.

use crate::arguments::StatusArguments;
use crate::failure::{Exit, Failure};
use crate::print::{self, Style};
use crate::progress::duration;
use crate::replay::{self, Replayed, Standing};
use crate::used::{self, Used};
use crate::view::{Moment, count, cpu_percent, state_word};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tulpar_core::diagnostic::did_you_mean;
use tulpar_core::engine::{Counts, STATES, State};
use tulpar_core::event::Event;
use tulpar_core::hpo::Values;
use tulpar_core::ids::{JobId, SetId};
use tulpar_core::job::Usage;
use tulpar_core::provenance::{Metric, Provenance};
use tulpar_core::units::Bytes;

#[derive(Serialize)]
struct StatusView {
    run: String,
    workflow: String,
    workflow_file: String,
    standing: Standing,
    /// The process that drives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<Moment>,
    /// Nothing of it really ran; its times are virtual, from 0.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
    seconds: f64,
    resumed: u32,
    /// Seconds that are left, as a rollout of the rest says, when it runs and durations are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_seconds: Option<f64>,
    /// Seconds that are left at least, whatever the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    least_left_seconds: Option<f64>,
    version: String,
    site: String,
    #[serde(flatten)]
    provenance: Provenance,
    /// Metrics that tasks reported, each over the tasks of its set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<Metric>,
    /// How many tasks are in each state.
    tasks: BTreeMap<&'static str, u32>,
    reused: u32,
    sets: Vec<SetView>,
    /// How each search stands, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    searches: Vec<String>,
    failed: Vec<FailedView>,
    /// Failed tasks that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    more_failed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<Vec<TaskView>>,
}

#[derive(Serialize)]
struct SetView {
    name: String,
    /// Absent until the number is known.
    tasks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known_when: Option<Vec<String>>,
    done: u32,
    reused: u32,
    /// In the queue of a site, or about to start.
    submitted: u32,
    running: u32,
    failed: u32,
    skipped: u32,
    cancelled: u32,
    mean_seconds: Option<f64>,
    max_seconds: Option<f64>,
    peak_memory: Option<u64>,
    cpu_percent: Option<u64>,
    read_bytes: Option<u64>,
    write_bytes: Option<u64>,
}

#[derive(Serialize)]
struct FailedView {
    task: String,
    attempts: u32,
    why: String,
    tolerated: bool,
}

#[derive(Serialize)]
struct TaskView {
    task: String,
    /// Of a trial of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Values>,
    state: &'static str,
    reused: bool,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "measured_alone")]
    usage: Option<Usage>,
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
struct Singles {
    wanted: bool,
    reused: Vec<bool>,
    last: BTreeMap<JobId, Usage>,
    nodes: BTreeMap<JobId, u32>,
}

impl Singles {
    fn note(&mut self, event: &Event) {
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

    fn is_reused(&self, job: JobId) -> bool {
        self.reused.get(job.index()).copied().unwrap_or(false)
    }
}

pub(crate) fn status(folder: Option<&Path>, arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let wanted = arguments.state.as_deref().map(wanted_state).transpose()?;
    let project = replay::project(folder)?;
    let run = project.run(arguments.choice.run.run.as_deref())?;
    let mut used: Vec<Used> = Vec::new();
    let mut failures: BTreeMap<JobId, String> = BTreeMap::new();
    let mut singles = Singles { wanted: arguments.tasks || wanted.is_some(), ..Singles::default() };
    let replayed = replay::open_with(run, |engine, entry| {
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
    if arguments.choice.json {
        print::json(&view);
    } else {
        show(&view, arguments.tasks || wanted.is_some());
    }
    Ok(Exit::Done.into())
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

fn show(view: &StatusView, tasks: bool) {
    let colour = print::colour_on_stdout();
    let standing = match view.standing {
        Standing::Done => Style::Good,
        Standing::Failed => Style::Bad,
        Standing::Stopped | Standing::Interrupted | Standing::Cancelled => Style::Warn,
        Standing::Running | Standing::Starting => Style::Bold,
    };
    let word = standing.paint(view.standing.word(), colour);
    print::line(&format!("{}: {word} (workflow {}, {})", view.run, view.workflow, view.workflow_file));
    if view.simulated {
        let took = duration(Duration::from_secs_f64(view.seconds));
        print::line(&format!("simulated: {took} of virtual time, on {}", view.site));
    } else if let Some(started) = view.started {
        let resumed = match view.resumed {
            0 => String::new(),
            times => format!(", resumed {}", count(times as usize, "time")),
        };
        let took = duration(Duration::from_secs_f64(view.seconds));
        let since = if view.standing == Standing::Running { "runs for" } else { "took" };
        print::line(&format!("started {started}, {since} {took}{resumed}, on {}", view.site));
    }
    for (title, words) in view.provenance.lines() {
        print::line(&if title == "commit" { format!("{title} {words}") } else { format!("{title}: {words}") });
    }
    let mut parts: Vec<String> = view.tasks.iter().map(|(word, number)| format!("{number} {word}")).collect();
    if view.reused > 0 {
        parts.push(format!("{} of them reused", view.reused));
    }
    let total: u32 = view.tasks.values().sum();
    print::line(&format!("{}: {}", count(total as usize, "task"), parts.join(", ")));
    view.searches.iter().for_each(|line| print::line(line));
    if !view.metrics.is_empty() {
        let words: Vec<String> = view.metrics.iter().map(Metric::words).collect();
        print::line(&format!("metrics: {}", words.join(", ")));
    }
    if let Some((left, least)) = view.left_seconds.zip(view.least_left_seconds) {
        let words = |seconds: f64| duration(Duration::from_secs_f64(seconds));
        print::line(&format!("about {} left, as its tasks go; no order needs less than {}", words(left), words(least)));
    }
    print::line("");
    match (&view.list, tasks) {
        (Some(list), true) => show_tasks(list),
        _ => show_sets(&view.sets),
    }
    if !view.failed.is_empty() && !tasks {
        print::line("");
        for failed in &view.failed {
            let tolerated = if failed.tolerated { " (tolerated)" } else { "" };
            let word = Style::Bad.paint("failed", colour);
            print::line(&format!("{word}  {}{tolerated}: {}", failed.task, failed.why));
        }
        if view.more_failed > 0 {
            print::line(&format!("and {} more; `tulpar status --state failed` lists all", view.more_failed));
        }
    }
    say_next(view);
}

fn say_next(view: &StatusView) {
    match view.standing {
        Standing::Stopped => print::hint(&format!(
            "its driver is gone (killed, or the machine went down); go on with `tulpar resume {}`",
            view.run
        )),
        Standing::Interrupted | Standing::Starting => {
            print::hint(&format!("go on with `tulpar resume {}`", view.run));
        }
        Standing::Failed => {
            if let Some(first) = view.failed.iter().find(|failed| !failed.tolerated) {
                print::hint(&format!("`tulpar explain '{}'` says more", first.task));
            }
        }
        Standing::Running | Standing::Done | Standing::Cancelled => {}
    }
}

fn show_sets(sets: &[SetView]) {
    let header = [
        "set", "tasks", "done", "reused", "running", "failed", "skipped", "mean", "max", "memory", "cpu", "read",
        "written",
    ];
    let seconds = |value: Option<f64>| value.map(|value| duration(Duration::from_secs_f64(value))).unwrap_or_default();
    let bytes = |value: Option<u64>| value.map(|value| Bytes(value).to_string()).unwrap_or_default();
    let rows: Vec<Vec<String>> = sets
        .iter()
        .map(|set| {
            let tasks = set.tasks.map_or("-".to_owned(), |tasks| tasks.to_string());
            vec![
                set.name.clone(),
                tasks,
                set.done.to_string(),
                set.reused.to_string(),
                set.running.to_string(),
                set.failed.to_string(),
                set.skipped.to_string(),
                seconds(set.mean_seconds),
                seconds(set.max_seconds),
                set.read_bytes.map(|_| memory(set.peak_memory.unwrap_or(0))).unwrap_or_default(),
                set.cpu_percent.map(|percent| format!("{percent} %")).unwrap_or_default(),
                bytes(set.read_bytes),
                bytes(set.write_bytes),
            ]
        })
        .collect();
    print::table(&header, &rows);
    for set in sets {
        if let Some(sources) = &set.known_when {
            print::line(&format!(
                "{}: not expanded yet; its tasks are known when {} has run",
                set.name,
                sources.join(", ")
            ));
        }
    }
}

fn show_tasks(tasks: &[TaskView]) {
    let rows: Vec<Vec<String>> = tasks
        .iter()
        .map(|task| {
            let usage = task.usage.filter(|usage| usage.wall_us > 0);
            let wall = task.seconds.filter(|seconds| *seconds > 0.0);
            let cpu = usage.and_then(|usage| cpu_percent(usage.user_us + usage.system_us, usage.wall_us));
            // A number says little of a trial.
            let parameters = task.parameters.iter().flatten().map(|(name, value)| format!(" {name}={value}"));
            vec![
                format!("{}{}", task.task, parameters.collect::<String>()),
                if task.reused { "reused".to_owned() } else { task.state.to_owned() },
                task.attempts.to_string(),
                wall.map(|seconds| duration(Duration::from_secs_f64(seconds))).unwrap_or_default(),
                usage.map(|usage| memory(usage.peak_rss)).unwrap_or_default(),
                cpu.map(|percent| format!("{percent} %")).unwrap_or_default(),
                task.node.clone().unwrap_or_default(),
            ]
        })
        .collect();
    print::table(&["task", "state", "attempts", "wall", "memory", "cpu", "node"], &rows);
}

/// A task that was over before anyone could look leaves no figure.
fn memory(peak: u64) -> String {
    if peak == 0 { "-".to_owned() } else { Bytes(peak).to_string() }
}
