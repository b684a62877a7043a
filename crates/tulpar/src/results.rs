//! The tasks of a sweep as one table, a row per task: its variables, how it ended, how long it took, and the numbers that it
//! left in JSON files or, as a trial, reported.

use crate::Failure;
use crate::messages::Messages;
use crate::replay::{self, Replayed};
use crate::view;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tulpar_core::event::Event;
use tulpar_core::ids::{JobId, SetId};
use tulpar_exec::cache::object_path;
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_report::{ResultTable, trial_state};

/// A file of numbers is small; a larger one is data.
const MOST_BYTES: u64 = 1 << 20;

/// The task that was named, or the only one that is a sweep.
fn chosen(replayed: &Replayed, named: Option<&str>) -> Result<SetId, Failure> {
    let plan = replayed.engine.plan();
    if let Some(name) = named {
        return plan.set_named(name).ok_or_else(|| {
            let message = format!("{} has no task `{name}`", replayed.folder.name);
            Failure::usage_with(message, "`tulpar status` lists its tasks")
        });
    }
    let tasks = plan.workflow.tasks.iter().enumerate();
    let sweeps: Vec<(usize, &str)> =
        tasks.filter(|(_, task)| !task.scatter.is_empty()).map(|(set, task)| (set, task.name.as_str())).collect();
    match sweeps[..] {
        [(set, _)] => Ok(SetId::from(set)),
        [] => Err(Failure::usage_with(
            format!("{} has no task with `for:` or `search:`", replayed.folder.name),
            "name one of its tasks with `--task NAME`",
        )),
        _ => {
            let names: Vec<&str> = sweeps.into_iter().map(|(_, name)| name).collect();
            let message = format!("{} has several sweeps: {}", replayed.folder.name, names.join(", "));
            Err(Failure::usage_with(message, "choose one with `--task NAME`"))
        }
    }
}

fn row(project: &Project, replayed: &Replayed, job: JobId, seconds: Option<f64>) -> Vec<(String, Value)> {
    let graph = replayed.engine.graph();
    let state = match graph.trial(job) {
        Some(trial) => trial_state(trial),
        None => view::state_word(replayed.engine.state(job), false),
    };
    let mut cells = vec![("name".to_owned(), graph.name(job).into()), ("state".to_owned(), state.into())];
    let axes = graph.axes_of(graph.set_of(job));
    for name in axes.iter().flat_map(|axis| &axis.names) {
        cells.push((name.clone(), graph.variable(job, name).map_or(Value::Null, |bound| plain(&bound.label()))));
    }
    if replayed.folder.is_simulated() {
        cells.push(("simulated".to_owned(), true.into()));
    }
    cells.push(("seconds".to_owned(), seconds.map_or(Value::Null, Value::from)));
    if let Some((search, trial)) = graph.search_of(job).zip(graph.trial(job))
        && let Some(study) = graph.study(search)
    {
        let objectives = study.settings().objectives.iter().map(|objective| objective.name.clone());
        cells.extend(objectives.zip(trial.values.iter().map(|value| Value::from(*value))));
    }
    for file in replayed.engine.outputs(job).into_iter().flat_map(|files| files.iter()) {
        if file.path.ends_with(".json") && file.size <= MOST_BYTES {
            cells.extend(numbers(&object_path(&project.cache(), &file.digest)));
        }
    }
    cells
}

/// What stands in a file of JSON: the entries of an object, and those of objects in it by their path.
fn numbers(path: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut cells = Vec::new();
    flatten("", serde_json::from_str(&text).unwrap_or_default(), &mut cells);
    cells
}

fn flatten(prefix: &str, value: Value, cells: &mut Vec<(String, Value)>) {
    let Value::Object(entries) = value else { return };
    for (name, value) in entries {
        let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value {
            Value::Object(_) => flatten(&name, value, cells),
            value => cells.push((name, value)),
        }
    }
}

/// A number or truth value as such, so that a tool can count with it.
fn plain(label: &str) -> Value {
    match label {
        "" => Value::Null,
        "true" => true.into(),
        "false" => false.into(),
        label => match (label.parse::<i64>(), label.parse::<f64>()) {
            (Ok(whole), _) => whole.into(),
            (_, Ok(number)) if number.is_finite() => number.into(),
            _ => label.into(),
        },
    }
}

/// The table of a task of a run; none is the only task that is a sweep.
pub fn table(
    project: &Project,
    run: RunFolder,
    task: Option<&str>,
    messages: &dyn Messages,
) -> Result<ResultTable, Failure> {
    let mut took: BTreeMap<JobId, u64> = BTreeMap::new();
    let replayed = replay::open_with(messages, run, |_, entry| {
        if let Event::Ended { attempt, report, .. } = &entry.event {
            *took.entry(attempt.job).or_default() += report.usage.wall_us;
        }
    })?;
    let set = chosen(&replayed, task)?;
    let mut table = ResultTable::default();
    for job in replayed.engine.graph().jobs_of(set).into_iter().flatten() {
        let seconds = took.get(&job).map(|micros| *micros as f64 / 1e6);
        table.add(row(project, &replayed, job, seconds));
    }
    Ok(table)
}
