//! `tulpar experiment async`: how much earlier workflows end when iterations and branches need not wait for each other
//! (Pascuzzi and others, 2023).
//!
//! The published workflows in virtual time on the published machine, without overhead and with that of the time, beside
//! what its authors measured; and a small one for real. It writes the workflows out, so that they can be read and changed.

use super::parsed;
use crate::arguments::Verb;
use crate::failure::{Exit, Failure};
use crate::print;
use crate::verbs::report::write_page;
use crate::verbs::run::run;
use crate::verbs::simulate::kept;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_core::engine::Mode;
use tulpar_exec::folder::Project;
use tulpar_report::NamedRuns;

const SITES: &str = "sites.yaml";
const SMALL: &str = "small.yaml";

const FILES: [(&str, &str); 5] = [
    (SITES, include_str!("../../../../../examples/deepdrivemd/sites.yaml")),
    (SMALL, include_str!("../../../../../examples/deepdrivemd/small.yaml")),
    ("deepdrivemd.yaml", include_str!("../../../../../examples/deepdrivemd/published.yaml")),
    ("c-dg1.yaml", include_str!("../../../../../examples/asynchrony/c-dg1.yaml")),
    ("c-dg2.yaml", include_str!("../../../../../examples/asynchrony/c-dg2.yaml")),
];

/// A workflow, and the seconds that its authors measured: sequentially, and asynchronously in this mode.
const PUBLISHED: [(&str, f64, (Mode, f64)); 3] = [
    ("deepdrivemd", 1660.1, (Mode::Staggered, 1331.5)),
    ("c-dg1", 1902.5, (Mode::Adaptive, 1909.1)),
    ("c-dg2", 1800.1, (Mode::Adaptive, 1332.6)),
];

#[derive(Debug, Args)]
pub(crate) struct AsynchronousArguments {
    /// Where to put workflows, runs and the page
    #[arg(value_name = "DIR", default_value = "tulpar-async")]
    into: PathBuf,

    /// Also run a small DeepDriveMD for real, in every mode: four minutes
    #[arg(long)]
    measure: bool,

    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    workflow: &'static str,
    mode: &'static str,
    /// In seconds, as all times here.
    ideal: f64,
    /// With the overhead of the middleware of the time.
    with_overhead: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<f64>,
    /// Of the ideal time against that of the sequential mode.
    improvement: f64,
}

#[derive(Serialize)]
struct Measured {
    mode: &'static str,
    simulated: f64,
    measured: f64,
}

#[derive(Serialize)]
struct Experiment {
    published: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    measured: Vec<Measured>,
}

pub(super) fn asynchronous(folder: Option<&Path>, arguments: &AsynchronousArguments) -> Result<ExitCode, Failure> {
    let into = folder.unwrap_or(Path::new("")).join(&arguments.into);
    std::fs::create_dir_all(&into).map_err(|source| Failure::Write { path: into.clone(), source })?;
    for (name, text) in FILES {
        let path = into.join(name);
        std::fs::write(&path, text).map_err(|source| Failure::Write { path: path.clone(), source })?;
    }
    let mut scenarios: Vec<NamedRuns> = Vec::new();
    let mut published = Vec::new();
    for (workflow, sequential, (asynchronous, its_time)) in PUBLISHED {
        let mut first = None;
        for (name, mode) in Mode::ALL {
            let (run, ideal) = simulated(&into, &format!("{workflow}.yaml"), "summit", name)?;
            scenarios.push(NamedRuns { name: format!("{workflow}, {name}"), runs: vec![run] });
            let (_, with_overhead) = simulated(&into, &format!("{workflow}.yaml"), "summit-2022", name)?;
            let improvement = 1.0 - ideal / *first.get_or_insert(ideal);
            let known = match mode {
                Mode::Sequential => Some(sequential),
                mode => (mode == asynchronous).then_some(its_time),
            };
            published.push(Row { workflow, mode: name, ideal, with_overhead, published: known, improvement });
        }
    }
    let mut measured = Vec::new();
    if arguments.measure {
        for (name, _) in Mode::ALL {
            let (_, expected) = simulated(&into, SMALL, "small", name)?;
            let Some((run, seconds)) = real(&into, name)? else { return Ok(Exit::WorkflowFailed.into()) };
            scenarios.push(NamedRuns { name: format!("small, {name}, for real"), runs: vec![run] });
            measured.push(Measured { mode: name, simulated: expected, measured: seconds });
        }
    }
    let page = into.join("async.html");
    write_page(&Project::new(&into)?, &scenarios, |_| None, &page)?;
    let experiment = Experiment { published, measured };
    if arguments.json {
        print::json(&experiment);
    } else {
        show(&experiment);
        print::note(&format!("Occupation of cores and GPUs over time: {}", page.display()));
    }
    Ok(Exit::Done.into())
}

fn simulated(into: &Path, file: &str, site: &str, mode: &str) -> Result<(String, f64), Failure> {
    let words = ["simulate", file, "--site", site, "--mode", mode, "--json"].map(str::to_owned);
    match parsed(words)? {
        Verb::Simulate(arguments) => kept(Some(into), &arguments),
        _ => Err(Failure::Bug("a simulation is none".into())),
    }
}

/// A run and its makespan; none when it did not end well.
fn real(into: &Path, mode: &str) -> Result<Option<(String, f64)>, Failure> {
    let words = ["run", SMALL, "--site", "small", "--mode", mode, "--no-cache"].map(str::to_owned);
    let Verb::Run(arguments) = parsed(words)? else { return Err(Failure::Bug("a run is none".into())) };
    let began = std::time::Instant::now();
    let code = run(Some(into), &arguments)?;
    let seconds = began.elapsed().as_secs_f64();
    if code != ExitCode::from(Exit::Done) {
        return Ok(None);
    }
    Ok(Some((Project::new(into)?.run(None)?.name, seconds)))
}

fn show(experiment: &Experiment) {
    let seconds = |seconds: f64| format!("{seconds:.0}");
    let percent = |part: f64| format!("{:.1} %", 100.0 * part).replace('-', "−");
    let rows: Vec<Vec<String>> = experiment
        .published
        .iter()
        .map(|row| {
            vec![
                row.workflow.to_owned(),
                row.mode.to_owned(),
                seconds(row.ideal),
                seconds(row.with_overhead),
                row.published.map_or_else(|| "–".to_owned(), seconds),
                percent(row.improvement),
            ]
        })
        .collect();
    print::line("16 nodes of Summit in virtual time; all times in seconds");
    print::line("");
    let header = ["workflow", "mode", "simulated", "with overhead of 2022", "measured by the authors", "gain"];
    print::table(&header, &rows);
    if !experiment.measured.is_empty() {
        print::line("");
        print::line("DeepDriveMD small, for real on three pretended nodes");
        print::line("");
        let rows: Vec<Vec<String>> = experiment
            .measured
            .iter()
            .map(|row| vec![row.mode.to_owned(), format!("{:.1}", row.simulated), format!("{:.1}", row.measured)])
            .collect();
        print::table(&["mode", "simulated", "measured"], &rows);
    }
}
