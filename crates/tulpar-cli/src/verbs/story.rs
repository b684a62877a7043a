//! `tulpar story TASK`: every event that touched a task, in words; with `--json` as they were recorded.

use crate::arguments::TaskArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::replay::{self, Named};
use tulpar::story::{Known, words};
use tulpar::view::Moment;
use tulpar_core::event::Event;
use tulpar_core::units::Timestamp;
use tulpar_exec::journal::{self, Entry};

#[derive(Serialize)]
struct EventView<'a> {
    seq: u64,
    at: Moment,
    /// The task; absent for what happened to the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(flatten)]
    event: &'a Event,
}

pub(crate) fn story(folder: Option<&Path>, arguments: &TaskArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    // Names are known only when all grafts are: first the whole run, then what touched the task.
    let replayed = replay::open(&Terminal, &project, arguments.run.as_deref())?;
    let named = replay::find(&replayed, &arguments.task)?;
    let jobs: BTreeSet<_> = replay::jobs(&replayed, named).into_iter().collect();
    let set = match named {
        Named::Job(job) => replayed.engine.graph().set_of(job),
        Named::Set(set) | Named::Pending(set) => set,
    };
    let mut entries: Vec<Entry> = Vec::new();
    let path = replayed.folder.journal();
    if path.exists() {
        journal::read_about(
            &path,
            |job| jobs.contains(&job),
            |entry| {
                let touched = match &entry.event {
                    Event::Grafted { set: grafted, .. } => *grafted == set,
                    other => other.job().is_none_or(|job| jobs.contains(&job)),
                };
                if touched {
                    entries.push(entry);
                }
            },
        )?;
    }
    let task_of = |event: &Event| event.job().map(|job| replayed.name(job));
    if arguments.json {
        let views: Vec<EventView<'_>> = entries
            .iter()
            .map(|entry| EventView {
                seq: entry.seq,
                at: Moment(entry.at),
                task: task_of(&entry.event),
                event: &entry.event,
            })
            .collect();
        print::json(&views);
        return Ok(Exit::Done.into());
    }
    let started = replayed.started.unwrap_or_default();
    let known = Known {
        nodes: &replayed.engine.plan().site.nodes,
        name: &|job| replayed.name(job),
        tasks: &|set| replayed.engine.graph().count_of(set).unwrap_or(0),
    };
    for entry in &entries {
        let who = match task_of(&entry.event) {
            Some(task) if jobs.len() > 1 => format!("{task}: "),
            _ => String::new(),
        };
        print::line(&format!("{}  {who}{}", relative(entry.at, started), words(&known, entry)));
        if let Event::Ended { report, .. } = &entry.event {
            for line in report.stderr_tail.lines() {
                print::line(&format!("{:>12}  | {line}", ""));
            }
        }
    }
    Ok(Exit::Done.into())
}

/// Time since the run began: `+  12.345 s`, hours too, so that lines stay comparable.
fn relative(at: Timestamp, started: Timestamp) -> String {
    format!("{:>+10.3} s", at.since(started).as_secs_f64())
}
