//! `tulpar runs`: the runs of this folder, the latest last.

use crate::arguments::RunsArguments;
use crate::failure::{Exit, Failure};
use crate::print;
use crate::progress::duration;
use crate::projection;
use crate::replay::{self, Standing};
use crate::view::Moment;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tulpar_core::provenance::{self, Code, Metric, Provenance};
use tulpar_exec::folder::RunFolder;
use tulpar_exec::journal;
use tulpar_store::{RunAnswer, Store, StoreError};

/// Of a cell with parameters or metrics.
const MOST_LETTERS: usize = 60;

#[derive(Serialize)]
struct RunView {
    run: String,
    standing: Standing,
    /// Nothing of it really ran; its times are virtual.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<Moment>,
    seconds: f64,
    tasks: u64,
    done: u64,
    reused: u64,
    failed: u64,
    #[serde(flatten)]
    provenance: Provenance,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<Metric>,
}

pub(crate) fn runs(folder: Option<&Path>, arguments: &RunsArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let folders = project.all_runs()?;
    let mut views = Vec::new();
    if !folders.is_empty() {
        let store = projection::open(&project)?;
        for folder in &folders {
            views.push(view(&store, folder)?);
        }
    }
    if arguments.json {
        print::json(&views);
        return Ok(Exit::Done.into());
    }
    if views.is_empty() {
        print::note("There is no run here yet; `tulpar run` starts one.");
        return Ok(Exit::Done.into());
    }
    let mut rows: Vec<Vec<String>> = views
        .iter()
        .map(|view| {
            vec![
                view.run.clone(),
                view.standing.word().to_owned(),
                match view.simulated {
                    true => "simulated".to_owned(),
                    false => view.started.map(|started| started.to_string()).unwrap_or_default(),
                },
                duration(Duration::from_secs_f64(view.seconds)),
                view.tasks.to_string(),
                view.done.to_string(),
                view.reused.to_string(),
                view.failed.to_string(),
            ]
        })
        .collect();
    let mut header = vec!["run", "state", "started", "took", "tasks", "done", "reused", "failed"];
    type Cell = fn(&RunView) -> String;
    let more: [(&str, Cell); 3] = [
        ("parameters", |view| short(provenance::parameter_words(&view.provenance.parameters))),
        ("commit", |view| view.provenance.code.as_ref().map(Code::short).unwrap_or_default()),
        ("metrics", |view| short(view.metrics.iter().map(Metric::words).collect::<Vec<_>>().join(", "))),
    ];
    for (title, cell) in more {
        let cells: Vec<String> = views.iter().map(cell).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            header.push(title);
            rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        }
    }
    print::table(&header, &rows);
    Ok(Exit::Done.into())
}

/// The whole is in `--json` and in `status`.
fn short(text: String) -> String {
    if text.chars().count() <= MOST_LETTERS {
        return text;
    }
    let cut: String = text.chars().take(MOST_LETTERS - 1).collect();
    cut + "…"
}

fn view(store: &Store, folder: &RunFolder) -> Result<RunView, Failure> {
    let driver = journal::writer(&folder.journal());
    let answer = match store.run(&folder.name) {
        Ok(answer) => Some(answer),
        // No event was written yet.
        Err(StoreError::NoSuchRun(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let of = |state: &str| answer.as_ref().and_then(|answer| answer.jobs.get(state)).copied().unwrap_or(0);
    let started = answer.as_ref().and_then(|answer| answer.started);
    let until = match driver {
        Some(_) => Some(replay::now()),
        None => answer.as_ref().and_then(|answer| answer.ended.or(answer.last_at)),
    };
    let took = until.zip(started).map(|(until, started)| until.since(started)).unwrap_or_default();
    Ok(RunView {
        run: folder.name.clone(),
        standing: standing(answer.as_ref(), driver),
        simulated: folder.is_simulated(),
        driver,
        started: started.map(Moment),
        seconds: took.as_secs_f64(),
        tasks: answer.as_ref().map_or(0, |answer| answer.jobs.values().sum()),
        done: of("done"),
        reused: answer.as_ref().map_or(0, |answer| answer.reused),
        failed: of("failed"),
        provenance: answer.as_ref().map(|answer| answer.provenance.clone()).unwrap_or_default(),
        metrics: answer.map(|answer| answer.metrics).unwrap_or_default(),
    })
}

/// How a run stands, from what the store says and whether a driver lives.
pub(crate) fn standing(answer: Option<&RunAnswer>, driver: Option<u32>) -> Standing {
    match (answer.and_then(|answer| answer.outcome.as_deref()), driver) {
        (Some("done"), _) => Standing::Done,
        (Some("failed"), _) => Standing::Failed,
        (Some("cancelled"), _) => Standing::Cancelled,
        (Some("interrupted"), _) => Standing::Interrupted,
        (_, Some(_)) => Standing::Running,
        (_, None) if answer.and_then(|answer| answer.started).is_none() => Standing::Starting,
        (_, None) => Standing::Stopped,
    }
}
