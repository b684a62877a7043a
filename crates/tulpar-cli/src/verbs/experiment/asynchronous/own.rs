//! A workflow of the user's, run for real in every mode: what waiting for whole iterations and ranks costs it.
//!
//! Rounds go through all modes in turn, so that a machine that grows slower does not speak against the last one. How long
//! each mode should take is told by the simulator from the times of tasks in the first run, which was sequential.

use super::super::show;
use super::AsynchronousArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use crate::verbs::drive;
use crate::verbs::report::write_page;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::asynchronous::percent;
use tulpar::running;
use tulpar::simulate::{SimulateRequest, simulate};
use tulpar::{LaunchChoice, RunRequest, WorkflowChoice};
use tulpar_core::engine::{Mode, Policy};
use tulpar_exec::folder::Project;
use tulpar_report::{Aside, Document, NamedRuns, Spread};

#[derive(Serialize)]
struct Row {
    mode: &'static str,
    /// In seconds, as all times here.
    predicted: f64,
    measured: Spread,
    /// Of the measured mean against that of the sequential mode.
    improvement: f64,
}

pub(super) fn run(folder: Option<&Path>, file: &Path, arguments: &AsynchronousArguments) -> Result<ExitCode, Failure> {
    let project = running::read(&request(folder, file, Mode::ALL[0].1, arguments), &Terminal)?.project;
    let mut named = Mode::ALL.map(|(mode, _)| NamedRuns { name: mode.to_owned(), runs: Vec::new() });
    for round in 1..=arguments.repeat.max(1) {
        for (NamedRuns { runs, .. }, (mode, how)) in named.iter_mut().zip(Mode::ALL) {
            print::note(&format!("{mode}, run {round} of {}", arguments.repeat.max(1)));
            let begun = tulpar::start(&request(folder, file, how, arguments), &Terminal)?;
            let exit = drive::drive(&begun.project, &begun.run, &LaunchChoice::default(), false)?;
            if exit != Exit::Done {
                return Ok(exit.into());
            }
            runs.push(begun.run.name);
        }
    }
    let mut predicted = Vec::new();
    for (name, mode) in Mode::ALL {
        predicted.push((name, foretold(&project, &named[0].runs[0], mode)?));
    }
    let page = project.root().join("async.html");
    let document = write_page(&project, &named, |document| vec![table(file, &rows(document, &predicted))], &page)?;
    if arguments.json {
        print::json(&rows(&document, &predicted));
    } else {
        document.asides.iter().for_each(show);
        print::note(&format!("Occupation of cores and GPUs over time: {}", page.display()));
    }
    Ok(Exit::Done.into())
}

fn request(folder: Option<&Path>, file: &Path, mode: Mode, arguments: &AsynchronousArguments) -> RunRequest {
    RunRequest {
        folder: folder.map(Path::to_owned),
        workflow: WorkflowChoice {
            file: Some(file.to_owned()),
            site: arguments.site.clone(),
            ..WorkflowChoice::default()
        },
        // What is known already would be measured as nothing.
        policy: Policy { mode, cache: false, ..Policy::default() },
        ..RunRequest::default()
    }
}

/// What the simulator says that a mode takes, from the times of the tasks of a run.
fn foretold(project: &Project, run: &str, mode: Mode) -> Result<f64, Failure> {
    let request = SimulateRequest {
        folder: Some(project.root().to_owned()),
        workflow: WorkflowChoice { file: Some(run.into()), ..WorkflowChoice::default() },
        policy: Policy { mode, ..Policy::default() },
        ..SimulateRequest::default()
    };
    Ok(simulate(&request, &Terminal)?.makespan_seconds)
}

fn rows(document: &Document, predicted: &[(&'static str, f64)]) -> Vec<Row> {
    let measured = document.scenarios.iter().map(|scenario| scenario.figure("makespan_seconds"));
    let mut sequential = None;
    let row = |(measured, (mode, predicted)): (Option<Spread>, &(&'static str, f64))| {
        let measured = measured?;
        let improvement = 1.0 - measured.mean / *sequential.get_or_insert(measured.mean);
        Some(Row { mode, predicted: *predicted, measured, improvement })
    };
    measured.zip(predicted).filter_map(row).collect()
}

fn table(file: &Path, rows: &[Row]) -> Aside {
    let row = |row: &Row| {
        let measured = match row.measured {
            Spread { mean, deviation: Some(deviation), .. } => format!("{mean:.2} ± {deviation:.2}"),
            Spread { mean, .. } => format!("{mean:.2}"),
        };
        vec![row.mode.to_owned(), format!("{:.2}", row.predicted), measured, percent(row.improvement)]
    };
    Aside {
        title: format!("{}, run for real; all times in seconds", file.display()),
        header: ["mode", "predicted from the first run", "measured", "gain"].map(str::to_owned).into(),
        rows: rows.iter().map(row).collect(),
        lines: Vec::new(),
    }
}
