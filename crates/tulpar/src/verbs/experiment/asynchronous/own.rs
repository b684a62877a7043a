//! A workflow of the user's, run for real in every mode: what waiting for whole iterations and ranks costs it.
//!
//! Rounds go through all modes in turn, so that a machine that grows slower does not speak against the last one. How long
//! each mode should take is told by the simulator from the times of tasks in the first run, which was sequential.

use super::super::{parsed, show};
use super::{AsynchronousArguments, percent};
use crate::arguments::{RunArguments, Verb};
use crate::failure::{Exit, Failure};
use crate::print;
use crate::verbs::report::write_page;
use crate::verbs::run::run as run_workflow;
use crate::verbs::simulate::makespan;
use crate::verbs::together::together;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tulpar_core::engine::Mode;
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
    let first = words(file, Mode::ALL[0].0, arguments)?;
    let project = together(folder, &first.workflow, &first.several)?.project;
    let mut named = Mode::ALL.map(|(mode, _)| NamedRuns { name: mode.to_owned(), runs: Vec::new() });
    for round in 1..=arguments.repeat.max(1) {
        for (NamedRuns { runs, .. }, (mode, _)) in named.iter_mut().zip(Mode::ALL) {
            print::note(&format!("{mode}, run {round} of {}", arguments.repeat.max(1)));
            let code = run_workflow(folder, &words(file, mode, arguments)?)?;
            if code != ExitCode::from(Exit::Done) {
                return Ok(code);
            }
            runs.push(project.run(None)?.name);
        }
    }
    let mut predicted = Vec::new();
    for (mode, _) in Mode::ALL {
        predicted.push((mode, foretold(&project, &named[0].runs[0], mode)?));
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

fn words(file: &Path, mode: &str, arguments: &AsynchronousArguments) -> Result<RunArguments, Failure> {
    // What is known already would be measured as nothing.
    let mut words = vec!["run".to_owned(), "--no-cache".to_owned(), "--mode".to_owned(), mode.to_owned()];
    words.extend(arguments.site.iter().flat_map(|site| ["--site".to_owned(), site.clone()]));
    words.push("--".to_owned());
    words.push(file.to_string_lossy().into_owned());
    match parsed(words)? {
        Verb::Run(run) => Ok(*run),
        _ => Err(Failure::Bug("a run is none".into())),
    }
}

/// What the simulator says that a mode takes, from the times of the tasks of a run.
fn foretold(project: &Project, run: &str, mode: &str) -> Result<f64, Failure> {
    match parsed(["simulate", run, "--mode", mode, "--no-save", "--json"].map(str::to_owned))? {
        Verb::Simulate(arguments) => makespan(Some(project.root()), &arguments),
        _ => Err(Failure::Bug("a simulation is none".into())),
    }
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
