//! Figures of a workflow that was run for real in each data placement, beside those that the study printed.

use super::findings::{Seen, Time, Told, findings};
use super::{beside, number, signed_percent};
use crate::PlanningChoice;
use crate::planning::ClusterWord;
use std::collections::BTreeMap;
use tulpar_core::planner::Options;
use tulpar_lab::published::{JobFigures, ScenarioName, Study};
use tulpar_report::{Aside, Document, Figure, JOB_FIGURES, Scenario as Measured, Spread, WORKFLOW_FIGURES};

/// How far measured times of the same work may lie from each other and still be called equal.
const MEASURED_EQUAL: f64 = 0.1;

/// What the study printed, beside what was measured here; and whether its findings hold here too. What concerns NFS is left
/// open unless the shared folder is behind a network.
pub fn beside_the_study(document: &Document, behind_network: bool) -> Aside {
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
pub fn levels_beside_the_study(scenario: &Measured) -> Option<[Aside; 2]> {
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

pub fn heading(figure: &Figure) -> String {
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

pub fn planning(options: &Options) -> PlanningChoice {
    PlanningChoice {
        data: options.data,
        cluster: options.clustering.iter().map(|how| ClusterWord::With(*how)).collect(),
        parallel_clusters: options.parallel_clusters,
        cleanup: Some(options.cleanup),
        images: Some(options.images),
        threads: Some(options.threads),
        ..PlanningChoice::default()
    }
}
