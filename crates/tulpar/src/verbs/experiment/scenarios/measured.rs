//! A workflow run for real in each data placement: real files, real transfers through a file server whose latency and
//! bandwidth are set, on this machine playing several nodes, each with a folder of its own, or on a pool.
//!
//! Rounds go through all placements in turn, so that a machine that grows slower does not speak against the last one.

use super::super::{parsed, show};
use super::findings::{Seen, Time, Told, findings};
use super::{ScenariosArguments, beside, network, number, signed_percent};
use crate::arguments::{RunArguments, Verb};
use crate::failure::{Exit, Failure};
use crate::planning::{ClusterWord, PlanningArguments};
use crate::print;
use crate::verbs::report::write_page;
use crate::verbs::run::run as run_workflow;
use crate::verbs::together::together;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_core::planner::Options;
use tulpar_core::units::{parse_bandwidth, parse_duration};
use tulpar_lab::compare::{Scenario, scenarios};
use tulpar_lab::published::{JobFigures, ScenarioName, Study};
use tulpar_report::{Aside, Document, Figure, JOB_FIGURES, NamedRuns, Scenario as Measured, Spread, WORKFLOW_FIGURES};
use tulpar_transfer::{Secret, ServeOptions, Server};

/// Of the catalogue that is written for the experiment.
const HUB: &str = "hub";
const WORKERS: &str = "workers";

pub(super) fn run(folder: Option<&Path>, file: &Path, arguments: &ScenariosArguments) -> Result<ExitCode, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let bandwidth = parse_bandwidth(&arguments.bandwidth).map_err(|error| usage(&error))?;
    let latency = parse_duration(&arguments.latency).map_err(|error| usage(&error))?;
    let first = words(file, None, arguments)?;
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
    let options = ServeOptions {
        address: arguments.address.clone(),
        token: crate::settings::secret("TULPAR_STAGING_TOKEN").map(Secret::new),
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
            let run =
                RunArguments { planning: planning(&scenario.options), ..words(file, Some(&catalogue), arguments)? };
            let code = run_workflow(folder, &run)?;
            if code != ExitCode::from(Exit::Done) {
                return Ok(code);
            }
            runs.push(project.run(None)?.name);
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

/// How far measured times of the same work may lie from each other and still be called equal.
const MEASURED_EQUAL: f64 = 0.1;

/// What the study printed, beside what was measured here; and whether its findings hold here too. What concerns NFS is left
/// open unless the shared folder is behind a network.
fn beside_the_study(document: &Document, behind_network: bool) -> Aside {
    let mut told: BTreeMap<String, BTreeMap<ScenarioName, Seen>> = BTreeMap::new();
    for scenario in &document.scenarios {
        let seconds = |key: &str| match scenario.figure(key) {
            Some(Spread { mean, deviation: Some(deviation), runs }) => {
                Time { mean, error: deviation / (runs as f64).sqrt() }
            }
            Some(Spread { mean, .. }) => Time { mean, error: f64::INFINITY },
            None => Time::exact(0.0),
        };
        if let Some(name) = name_of(scenario) {
            let seen = Seen {
                makespan: seconds("makespan_seconds"),
                compute: seconds("compute_seconds"),
                stage_in: seconds("stage_in_seconds"),
                stage_out: seconds("stage_out_seconds"),
            };
            told.entry(scenario.workflow.clone()).or_default().insert(name, seen);
        }
    }
    let header =
        ["scenario", "against baseline (study)", "jobs (study)", "auxiliary jobs (study)", "files staged in (study)"];
    let mut rows = Vec::new();
    for scenario in &document.scenarios {
        let Some(name) = name_of(scenario) else { continue };
        let of =
            told.get(&scenario.workflow).and_then(|seen| Some((seen.get(&name)?, seen.get(&ScenarioName::Baseline)?)));
        let change = of.map(|(seen, baseline)| 100.0 * (seen.makespan.mean / baseline.makespan.mean - 1.0));
        let change = change.map_or_else(|| "–".to_owned(), |change| signed_percent(change, 1));
        let study = Study::from_name(&scenario.workflow);
        let figures = study.and_then(|study| study.figures(name));
        let count = |key: &str, published: Option<u64>| {
            beside(scenario.figure(key).map(|spread| spread.mean), published.map(|count| count as f64))
        };
        rows.push(vec![
            scenario.name.clone(),
            match study.and_then(|study| study.longer(name)) {
                Some(theirs) => format!("{change} ({})", signed_percent(theirs, 0)),
                None => change,
            },
            count("jobs", figures.map(|figures| figures.jobs)),
            count("auxiliary_jobs", figures.map(|figures| figures.auxiliary)),
            count("files_staged_in", figures.map(|figures| figures.staged_in)),
        ]);
    }
    let mut lines = vec!["What the study found, and whether it is so here:".to_owned()];
    if !behind_network {
        told.values_mut().for_each(|seen| seen.retain(|name, _| *name != ScenarioName::Nfs));
    }
    let told: Vec<Told> = told.into_iter().collect();
    lines.extend(findings(&told, MEASURED_EQUAL).iter().map(|finding| format!("  {}", finding.words())));
    if !behind_network {
        lines.push(LOCAL_DISK.to_owned());
    }
    Aside { title: "Beside the published study".to_owned(), header: header.map(str::to_owned).to_vec(), rows, lines }
}

const LOCAL_DISK: &str = "\
The shared folder of `nfs` is not on a network file system, so its times say nothing about NFS, and what the study found about it \
is left open.";

fn name_of(scenario: &Measured) -> Option<ScenarioName> {
    ScenarioName::ALL.into_iter().find(|name| name.name() == scenario.name)
}

/// The published tables of the baseline, workflow level and job level, beside what was measured; nothing for workflows and
/// scenarios of which the study prints none.
fn levels_beside_the_study(scenario: &Measured) -> Option<[Aside; 2]> {
    let study = Study::from_name(&scenario.workflow).filter(|_| name_of(scenario) == Some(ScenarioName::Baseline))?;
    let published = study.workflow_level();
    let figures = [
        ("jobs", published.jobs as f64),
        ("auxiliary_jobs", published.auxiliary as f64),
        ("input_files", published.input_files as f64),
        ("input_gb", published.input_gb),
        ("container_gb", published.container_gb),
        ("read_gb", published.read_gb),
        ("written_gb", published.written_gb),
        ("peak_memory_gb", published.peak_memory_gb),
        ("peak_gpu_memory_gb", published.peak_gpu_memory_gb),
        ("cpu_hours", published.cpu_hours),
        ("gpu_hours", published.gpu_hours),
    ];
    let row = |(key, study): (&str, f64)| {
        let figure = WORKFLOW_FIGURES.iter().find(|figure| figure.key == key).expect("a figure");
        let here = scenario.figure(key).map(|spread| spread.mean);
        vec![heading(figure), here.map_or_else(|| "–".to_owned(), number), format!("{study}")]
    };
    let whole = Aside {
        title: format!("Workflow level of {}, baseline", study.name()),
        header: ["figure", "here", "study"].map(str::to_owned).to_vec(),
        rows: figures.map(row).to_vec(),
        lines: Vec::new(),
    };
    // The study has no mean execution time of several jobs.
    const TOTAL: usize = 7;
    let shown = [0, 1, 2, 3, 4, 5, TOTAL];
    let heads = shown.map(|place| format!("{} (study)", heading(&JOB_FIGURES[place])));
    let rows = study.job_level().iter().map(|known| {
        let of = [
            Some(known.read_mb),
            Some(known.written_mb),
            Some(known.cpu_percent),
            Some(known.peak_memory_gb),
            known.gpu_percent,
            known.peak_gpu_memory_gb,
            Some(known.seconds),
        ];
        let cells = shown.iter().zip(of).map(|(place, study)| beside(together_of(scenario, known, *place), study));
        std::iter::once(known.name.to_owned()).chain(cells).collect()
    });
    let jobs = Aside {
        title: format!("Job level of {}, baseline", study.name()),
        header: std::iter::once("job".to_owned()).chain(heads).collect(),
        rows: rows.collect(),
        lines: Vec::new(),
    };
    Some([whole, jobs])
}

fn heading(figure: &Figure) -> String {
    match *figure {
        Figure { name, unit: "", .. } => name.to_owned(),
        Figure { name, unit, .. } => format!("{name} {unit}"),
    }
}

/// A figure of all task sets that one row of the study stands for: shares in the mean, peaks of the largest, else their sum.
fn together_of(scenario: &Measured, known: &JobFigures, place: usize) -> Option<f64> {
    let sets = scenario.job_level.iter().filter(|(set, _)| known.sets.contains(&set.as_str()));
    let values: Vec<f64> = sets.filter_map(|(_, spreads)| Some(spreads[place]?.mean)).collect();
    if values.is_empty() {
        return None;
    }
    Some(match JOB_FIGURES[place].key {
        "cpu_percent" | "gpu_percent" => values.iter().sum::<f64>() / values.len() as f64,
        "peak_memory_gb" | "peak_gpu_memory_gb" => values.into_iter().fold(0.0, f64::max),
        _ => values.iter().sum(),
    })
}

/// A run of the file as a user would type it.
fn words(file: &Path, catalogue: Option<&PathBuf>, arguments: &ScenariosArguments) -> Result<RunArguments, Failure> {
    let mut words: Vec<String> = ["run", "--no-cache"].map(str::to_owned).to_vec();
    words.push(file.display().to_string());
    if let Some(catalogue) = catalogue {
        words.extend(["--site".to_owned(), WORKERS.to_owned()]);
        words.extend(["--catalogue".to_owned(), catalogue.display().to_string()]);
    }
    match parsed(words)? {
        Verb::Run(mut run) => {
            run.workflow.container.clone_from(&arguments.container);
            Ok(*run)
        }
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
