//! `tulpar experiment async`: how much earlier workflows end when iterations and branches need not wait for each other
//! (Pascuzzi and others, 2023).
//!
//! The published workflows in virtual time on the published machine, without overhead and with that of the time, beside
//! what its authors measured; and small ones for real. It writes the workflows out, so that they can be read and changed.
//! With a file: that workflow, run for real in every mode ([`own`]).

mod own;

use super::show;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use crate::verbs::drive;
use crate::verbs::report::write_page;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::asynchronous::{Experiment, FILES, Measured, PUBLISHED, Row, SMALL, of_file, shortened, simulated};
use tulpar::{LaunchChoice, RunRequest};
use tulpar_core::engine::{Mode, Policy};
use tulpar_exec::folder::Project;
use tulpar_report::NamedRuns;

#[derive(Debug, Args)]
pub(crate) struct AsynchronousArguments {
    /// A workflow to run for real in every mode; without one the published three are simulated
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// How often each mode is run
    #[arg(long, value_name = "N", default_value_t = 3, requires = "file")]
    repeat: u32,

    /// The site to run it on (default: local, this machine)
    #[arg(long, value_name = "SITE", requires = "file")]
    site: Option<String>,

    /// Where to put the published workflows, their runs and the page
    #[arg(long, value_name = "DIR", default_value = "tulpar-async", conflicts_with = "file")]
    into: PathBuf,

    /// Also run small versions of all three for real, in every mode: six minutes
    #[arg(long, conflicts_with = "file")]
    measure: bool,

    /// How many times shorter the tasks of the small versions are
    #[arg(long, value_name = "N", default_value_t = 1.0, requires = "measure")]
    shorter: f64,

    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn asynchronous(folder: Option<&Path>, arguments: &AsynchronousArguments) -> Result<ExitCode, Failure> {
    if let Some(file) = &arguments.file {
        return own::run(folder, file, arguments);
    }
    if !(arguments.shorter > 0.0 && arguments.shorter.is_finite()) {
        return Err(Failure::usage("--shorter is a number above 0"));
    }
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
            let (run, ideal) = simulated(&into, &format!("{workflow}.yaml"), "summit", mode, &Terminal)?;
            scenarios.push(NamedRuns { name: format!("{workflow}, {name}"), runs: vec![run] });
            let (_, with_overhead) = simulated(&into, &format!("{workflow}.yaml"), "summit-2022", mode, &Terminal)?;
            let improvement = 1.0 - ideal / *first.get_or_insert(ideal);
            let known = match mode {
                Mode::Sequential => Some(sequential),
                mode => (mode == asynchronous).then_some(its_time),
            };
            published.push(Row { workflow, mode: name, ideal, with_overhead, published: known, improvement });
        }
    }
    let mut measured = Vec::new();
    for (workflow, text) in SMALL.into_iter().filter(|_| arguments.measure) {
        let file = format!("{workflow}-small.yaml");
        let path = into.join(&file);
        std::fs::write(&path, shortened(text, arguments.shorter)).map_err(|source| Failure::Write { path, source })?;
        let mut first = None;
        for (name, mode) in Mode::ALL {
            let (_, expected) = simulated(&into, &file, "small", mode, &Terminal)?;
            let Some((run, seconds)) = real(&into, &file, mode)? else { return Ok(Exit::WorkflowFailed.into()) };
            scenarios.push(NamedRuns { name: format!("small {workflow}, {name}, for real"), runs: vec![run] });
            let improvement = 1.0 - seconds / *first.get_or_insert(seconds);
            measured.push(Measured { workflow, mode: name, simulated: expected, measured: seconds, improvement });
        }
    }
    let page = into.join("async.html");
    let experiment = Experiment { published, measured };
    let asides = experiment.tables();
    write_page(&Project::new(&into)?, &scenarios, |_| asides.clone(), &page)?;
    if arguments.json {
        print::json(&experiment);
    } else {
        asides.iter().for_each(show);
        print::note(&format!("Occupation of cores and GPUs over time: {}", page.display()));
    }
    Ok(Exit::Done.into())
}

/// A run and its makespan; none when it did not end well.
fn real(into: &Path, file: &str, mode: Mode) -> Result<Option<(String, f64)>, Failure> {
    let request = RunRequest {
        folder: Some(into.to_owned()),
        workflow: of_file(file, "small"),
        policy: Policy { mode, cache: false, ..Policy::default() },
        ..RunRequest::default()
    };
    let began = std::time::Instant::now();
    let begun = tulpar::start(&request, &Terminal)?;
    let exit = drive::drive(&begun.project, &begun.run, &LaunchChoice::default(), false)?;
    let seconds = began.elapsed().as_secs_f64();
    Ok((exit == Exit::Done).then_some((begun.run.name, seconds)))
}
