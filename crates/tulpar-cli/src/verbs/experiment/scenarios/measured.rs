//! A workflow run for real in each data placement: real files, real transfers through a file server whose latency and
//! bandwidth are set, on this machine playing several nodes, each with a folder of its own, or on a pool.
//!
//! Rounds go through all placements in turn, so that a machine that grows slower does not speak against the last one.

use super::super::show;
use super::ScenariosArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use crate::verbs::drive;
use crate::verbs::report::write_page;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::running;
use tulpar::scenarios::measured::{beside_the_study, heading, levels_beside_the_study, planning};
use tulpar::scenarios::{network, number};
use tulpar::{CatalogueChoice, LaunchChoice, RunRequest, WorkflowChoice};
use tulpar_core::engine::Policy;
use tulpar_core::planner::Options;
use tulpar_core::units::{parse_bandwidth, parse_duration};
use tulpar_lab::compare::{Scenario, scenarios};
use tulpar_lab::published::ScenarioName;
use tulpar_report::{Document, NamedRuns, Spread, WORKFLOW_FIGURES};
use tulpar_transfer::{Secret, ServeOptions, Server};

/// Of the catalogue that is written for the experiment.
const HUB: &str = "hub";

const WORKERS: &str = "workers";

pub(super) fn run(folder: Option<&Path>, file: &Path, arguments: &ScenariosArguments) -> Result<ExitCode, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let bandwidth = parse_bandwidth(&arguments.bandwidth).map_err(|error| usage(&error))?;
    let latency = parse_duration(&arguments.latency).map_err(|error| usage(&error))?;
    let known = running::read(&request(folder, file, None, arguments), &Terminal)?;
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
    let options = ServeOptions {
        address: arguments.address.clone(),
        token: tulpar::settings::secret("TULPAR_STAGING_TOKEN").map(Secret::new),
        throttle: Some(bandwidth.0),
        latency: Some(latency),
        ..ServeOptions::new(&staging)
    };
    let server = Server::start(options).map_err(|error| Failure::Site {
        message: format!("cannot listen on {}: {error}", arguments.address),
        hint: Some("another program may use the port; port 0 takes any that is free".to_owned()),
    })?;
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
        print::note(
            "No task names a container, so `container installed` would be the baseline again and is left out; \
             `--container IMAGE` gives them one.",
        );
    }
    // What nodes of a pool see is the folder of the run.
    let behind_network = network::is_remote(if arguments.pool.is_some() { project.root() } else { &shared });
    let mut runs: Vec<Vec<String>> = vec![Vec::new(); chosen.len()];
    for round in 1..=arguments.repeat.max(1) {
        for (scenario, runs) in chosen.iter().zip(&mut runs) {
            print::note(&format!("{}, run {round} of {}: {}", scenario.name.name(), arguments.repeat, scenario.about));
            let planning = planning(&scenario.options);
            let request = RunRequest { planning, ..request(folder, file, Some(&catalogue), arguments) };
            let begun = tulpar::start(&request, &Terminal)?;
            let exit = drive::drive(&begun.project, &begun.run, &LaunchChoice::default(), false)?;
            if exit != Exit::Done {
                return Ok(exit.into());
            }
            runs.push(begun.run.name);
        }
    }
    server.stop();
    let named =
        chosen.iter().zip(runs).map(|(scenario, runs)| NamedRuns { name: scenario.name.name().to_owned(), runs });
    let page = project.root().join("scenarios.html");
    let asides = |document: &Document| {
        let levels = document.scenarios.iter().filter_map(levels_beside_the_study);
        std::iter::once(beside_the_study(document, behind_network)).chain(levels.flatten()).collect()
    };
    let document = write_page(&project, &named.collect::<Vec<_>>(), asides, &page)?;
    if arguments.json {
        print::json(&document);
    } else {
        show_table(&document);
        document.asides.iter().for_each(show);
        print::note(&format!("The figures, every run and every task set: {}", page.display()));
    }
    Ok(Exit::Done.into())
}

/// The table of the study, mean ± standard deviation.
fn show_table(document: &Document) {
    const SHOWN: [&str; 7] = [
        "jobs",
        "auxiliary_jobs",
        "files_staged_in",
        "compute_seconds",
        "stage_in_seconds",
        "stage_out_seconds",
        "makespan_seconds",
    ];
    let places = SHOWN.map(|key| WORKFLOW_FIGURES.iter().position(|figure| figure.key == key).expect("a figure"));
    let mut header = vec!["scenario".to_owned(), "runs".to_owned()];
    header.extend(places.map(|place| heading(&WORKFLOW_FIGURES[place])));
    let rows = document.scenarios.iter().map(|scenario| {
        let mut cells = vec![scenario.name.clone(), scenario.runs.len().to_string()];
        cells.extend(places.map(|place| match scenario.workflow_level[place] {
            None => "–".to_owned(),
            Some(Spread { mean, deviation: Some(deviation), .. }) if deviation > 0.0 => {
                format!("{} ± {}", number(mean), number(deviation))
            }
            Some(Spread { mean, .. }) => number(mean),
        }));
        cells
    });
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    print::table(&header, &rows.collect::<Vec<_>>());
}

/// A run of the file, on the workers of the catalogue where one is given.
fn request(
    folder: Option<&Path>,
    file: &Path,
    catalogue: Option<&PathBuf>,
    arguments: &ScenariosArguments,
) -> RunRequest {
    RunRequest {
        folder: folder.map(Path::to_owned),
        workflow: WorkflowChoice {
            file: Some(file.to_owned()),
            site: catalogue.map(|_| WORKERS.to_owned()),
            catalogue: CatalogueChoice { catalogues: catalogue.into_iter().cloned().collect(), sites: None },
            container: arguments.container.clone(),
            ..WorkflowChoice::default()
        },
        policy: Policy { cache: false, ..Policy::default() },
        ..RunRequest::default()
    }
}

fn catalogue_text(url: &str, shared: &Path, arguments: &ScenariosArguments) -> String {
    let shared = serde_json::to_string(&shared.display().to_string()).expect("text is plain data");
    let workers = match &arguments.pool {
        // What nodes of a pool see is the folder of the run.
        Some(kind) => format!("kind: {kind}"),
        None => format!(
            "groups: [{{nodes: {}, cpus: {}, memory: 64 GB}}]\n    node_folders: nodes\n    \
             scratch: {{path: {shared}, shared: true}}",
            arguments.nodes, arguments.cpus
        ),
    };
    format!(
        "sites:\n  {HUB}:\n    scratch: {{path: staging, servers: \"{url}\"}}\n  {WORKERS}:\n    {workers}\n    staging: {HUB}\n"
    )
}
