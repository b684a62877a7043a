//! A workflow run for real in each data placement: real files, real transfers through a file server whose latency and
//! bandwidth are set, on this machine playing several nodes, each with folders of its own.
//!
//! Rounds go through all placements in turn, so that a machine that grows slower does not speak against the last one.

use super::super::parsed;
use super::ScenariosArguments;
use crate::arguments::{RunArguments, Verb};
use crate::failure::{Exit, Failure};
use crate::planning::{ClusterWord, PlanningArguments};
use crate::print;
use crate::verbs::report::report;
use crate::verbs::run::run as run_workflow;
use crate::verbs::together::together;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_core::planner::Options;
use tulpar_core::planner::compare::{Scenario, scenarios};
use tulpar_core::planner::published::ScenarioName;
use tulpar_core::units::{parse_bandwidth, parse_duration};
use tulpar_transfer::{ServeOptions, Server};

/// Of the catalogue that is written for the experiment.
const HUB: &str = "hub";
const WORKERS: &str = "workers";

pub(super) fn run(folder: Option<&Path>, file: &Path, arguments: &ScenariosArguments) -> Result<ExitCode, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let bandwidth = parse_bandwidth(&arguments.bandwidth).map_err(|error| usage(&error))?;
    let latency = parse_duration(&arguments.latency).map_err(|error| usage(&error))?;
    let first = words(file, None)?;
    let known = together(folder, &first.workflow, &first.several)?;
    let project = known.project;
    let tasks = &known.plan.workflow.tasks;
    let has_labels = tasks.iter().any(|task| task.settings.hints.label.is_some());
    let has_containers = tasks.iter().any(|task| task.settings.environment.container.is_some());
    let here = project.root().join(".tulpar").join("experiment");
    let staging = here.join("staging");
    let shared = match &arguments.shared {
        Some(shared) => folder.unwrap_or(Path::new("")).join(shared),
        None => here.join("shared"),
    };
    let shared = std::path::absolute(&shared).map_err(|source| Failure::Read { path: shared, source })?;
    for path in [&staging, &shared] {
        std::fs::create_dir_all(path).map_err(|source| Failure::Write { path: path.clone(), source })?;
    }
    let options = ServeOptions { throttle: Some(bandwidth.0), latency: Some(latency), ..ServeOptions::new(&staging) };
    let server = Server::start(options).map_err(Failure::Launch)?;
    let catalogue = here.join("catalogue.yaml");
    let text = catalogue_text(&server.url().to_string(), &shared, arguments);
    std::fs::write(&catalogue, text).map_err(|source| Failure::Write { path: catalogue.clone(), source })?;
    let chosen: Vec<Scenario> = scenarios(&Options::default(), has_labels)
        .into_iter()
        .filter(|scenario| match scenario.name {
            ScenarioName::ContainerInstalled => has_containers,
            ScenarioName::Auto => false,
            _ => true,
        })
        .collect();
    if !has_containers {
        print::note("No task names a container, so `container installed` would be the baseline again and is left out.");
    }
    let mut runs: Vec<Vec<String>> = vec![Vec::new(); chosen.len()];
    for round in 1..=arguments.repeat.max(1) {
        for (scenario, runs) in chosen.iter().zip(&mut runs) {
            print::note(&format!("{}, run {round} of {}: {}", scenario.name.name(), arguments.repeat, scenario.about));
            let run = RunArguments { planning: planning(&scenario.options), ..words(file, Some(&catalogue))? };
            let code = run_workflow(folder, &run)?;
            if code != ExitCode::from(Exit::Done) {
                return Ok(code);
            }
            runs.push(project.run(None)?.name);
        }
    }
    server.stop();
    let mut all: Vec<String> = vec!["report".to_owned()];
    for (scenario, runs) in chosen.iter().zip(&runs) {
        all.extend(["--scenario".to_owned(), format!("{}={}", scenario.name.name(), runs.join(","))]);
    }
    all.extend(["--html", "scenarios.html"].map(str::to_owned));
    all.extend(arguments.json.then(|| "--json".to_owned()));
    match parsed(all)? {
        Verb::Report(arguments) => report(folder, &arguments),
        _ => Err(Failure::Bug("a report is no report".into())),
    }
}

/// A run of the file as a user would type it.
fn words(file: &Path, catalogue: Option<&PathBuf>) -> Result<RunArguments, Failure> {
    let mut words: Vec<String> = ["run", "--no-cache"].map(str::to_owned).to_vec();
    words.push(file.display().to_string());
    if let Some(catalogue) = catalogue {
        words.extend(["--site".to_owned(), WORKERS.to_owned()]);
        words.extend(["--catalogue".to_owned(), catalogue.display().to_string()]);
    }
    match parsed(words)? {
        Verb::Run(arguments) => Ok(*arguments),
        _ => Err(Failure::Bug("a run is no run".into())),
    }
}

fn planning(options: &Options) -> PlanningArguments {
    PlanningArguments {
        data: options.data,
        cluster: options.clustering.iter().map(|how| ClusterWord::With(*how)).collect(),
        parallel_clusters: options.parallel_clusters,
        cleanup: Some(options.cleanup),
        images: Some(options.images),
        threads: Some(options.threads),
        ..PlanningArguments::default()
    }
}

fn catalogue_text(url: &str, shared: &Path, arguments: &ScenariosArguments) -> String {
    let ScenariosArguments { nodes, cpus, .. } = arguments;
    let shared = serde_json::to_string(&shared.display().to_string()).expect("text is plain data");
    format!(
        "sites:\n  {HUB}:\n    scratch: {{path: staging, servers: \"{url}\"}}\n  {WORKERS}:\n    groups:\n      \
         - {{nodes: {nodes}, cpus: {cpus}, memory: 64 GB}}\n    staging: {HUB}\n    \
         scratch: {{path: {shared}, shared: true}}\n"
    )
}
