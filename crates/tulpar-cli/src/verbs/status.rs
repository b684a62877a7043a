//! `tulpar status`: how a run stands, by task set or by task.
//!
//! One pass over the journal, whatever the number of tasks; names are made only for what is shown.

use crate::arguments::StatusArguments;
use crate::failure::Exit;
use crate::print::{self, Style};
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tulpar::Failure;
use tulpar::replay::{self, Standing};
use tulpar::status::{SetView, StatusView, TaskView};
use tulpar::view::duration;
use tulpar::view::{count, cpu_percent};
use tulpar_core::provenance::Metric;
use tulpar_core::units::Bytes;

pub(crate) fn status(folder: Option<&Path>, arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let run = arguments.choice.run.run.as_deref();
    let view = tulpar::status::status(&project, run, arguments.tasks, arguments.state.as_deref(), &Terminal)?;
    if arguments.choice.json {
        print::json(&view);
    } else {
        show(&view, view.list.is_some());
    }
    Ok(Exit::Done.into())
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
