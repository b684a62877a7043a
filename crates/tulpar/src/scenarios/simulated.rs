//! The study at its own scale, in virtual time: its three workflows, generated at its shape, planned for its machines.
//!
//! Two clocks go over the same plans. The planner's list schedule has a model of links, which says how long files take;
//! with the times that it finds, the jobs are written out as workflows and go through the engine of a simulation,
//! which decides anew when each starts.

use super::findings::{Finding, Seen, Time, Told, findings};
use super::{beside, signed_percent};
use crate::messages::Messages;
use crate::simulate::{SimulateRequest, simulate};
use crate::{Failure, WorkflowChoice};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use tulpar_core::planner::estimate::Costs;
use tulpar_core::planner::{JobKind, Options};
use tulpar_lab::compare::{Comparison, Row, TimedJob, compare, scenarios, timed};
use tulpar_lab::published::{
    JobFigures, ScenarioName, Shaped, ShapedJobs, Study, WorkflowFigures, costs, testbed, testbed_sites,
};
use tulpar_report::{Aside, Overview, SideBySide};

/// The machines of the study for `tulpar simulate`. Jobs on files alone run on the submit host, as many at once as Pegasus
/// lets DAGMan start.
const SITES: &str = "\
# Three workers of 24 CPUs, two of them with a GPU, and the submit host with its limits on jobs that only move files.
sites:
  study:
    groups:
      - {name: gpu, nodes: 2, cpus: 24, memory: 192 GB, gpus: 1, gpu_memory: 24 GB, gpu_capability: 7.5, resources: {worker: 1000}}
      - {name: plain, nodes: 1, cpus: 24, memory: 192 GB, resources: {worker: 1000}}
      - {name: submit, nodes: 1, cpus: 1000, memory: 64 GB, resources: {stage_in: 10, stage_out: 10, cleanup: 4, register: 1, directory: 1000}}
";

fn unplanned(error: impl std::fmt::Display) -> Failure {
    Failure::Bug(format!("the study cannot be planned: {error}"))
}

fn base() -> Options {
    Options { sites: testbed_sites(), ..Options::default() }
}

pub fn compared(costs: &Costs) -> Result<Vec<(Study, Comparison)>, Failure> {
    let one = |(_, study): (_, Study)| {
        let comparison = compare(&study.workflow(), &testbed(), &base(), costs);
        comparison.map(|comparison| (study, comparison)).map_err(unplanned)
    };
    Study::ALL.into_iter().map(one).collect()
}

/// Makespans by the engine, by workflow and scenario.
pub type Driven = BTreeMap<(&'static str, ScenarioName), f64>;

/// Writes the jobs of every plan out as a workflow and drives it through virtual time.
pub fn driven(into: &Path, messages: &dyn Messages) -> Result<Driven, Failure> {
    std::fs::create_dir_all(into).map_err(|source| Failure::Write { path: into.to_owned(), source })?;
    write(&into.join("sites.yaml"), SITES)?;
    let mut driven = Driven::new();
    for (name, study) in Study::ALL {
        let graph = study.workflow();
        let has_labels = graph.tasks.iter().any(|task| task.label.is_some());
        for scenario in scenarios(&base(), has_labels) {
            let jobs = timed(&graph, &testbed(), &scenario, &costs()).map_err(unplanned)?;
            let workflow = format!("{name}-{}", scenario.name.name().replace(' ', "-"));
            let file = format!("{workflow}.yaml");
            write(&into.join(&file), &jobs_text(&workflow, scenario.about, &jobs))?;
            let site = Some("study".to_owned());
            let request = SimulateRequest {
                folder: Some(into.to_owned()),
                workflow: WorkflowChoice { file: Some(file.into()), site, ..WorkflowChoice::default() },
                keep: true,
                ..SimulateRequest::default()
            };
            driven.insert((name, scenario.name), simulate(&request, messages)?.makespan_seconds);
        }
    }
    Ok(driven)
}

/// Every job of a plan as a task.
fn jobs_text(workflow: &str, about: &str, jobs: &[TimedJob]) -> String {
    let name = |job: &TimedJob| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        job.name.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect::<String>()
    };
    let mut text = format!(
        "# Every job of the plan with the time that it holds its place: its files come, it runs, its files leave. For\n\
         # `tulpar simulate {workflow}.yaml --site study`.\nworkflow: {workflow}\nabout: {about}\n\ntasks:\n"
    );
    for job in jobs {
        let holds = match job.kind {
            JobKind::Compute => format!(
                "cpus: {}, gpus: {}, memory: {} MB, resources: {{worker: 1}}",
                f64::from(job.milli_cpus) / 1000.0,
                job.gpus,
                job.memory / 1_000_000
            ),
            JobKind::StageIn | JobKind::Transfer => "resources: {stage_in: 1}".to_owned(),
            JobKind::StageOut => "resources: {stage_out: 1}".to_owned(),
            JobKind::Cleanup | JobKind::LeafCleanup => "resources: {cleanup: 1}".to_owned(),
            JobKind::Register => "resources: {register: 1}".to_owned(),
            JobKind::CreateDirectory | JobKind::Chmod => "resources: {directory: 1}".to_owned(),
        };
        let after: Vec<String> = job.parents.iter().map(|parent| name(&jobs[*parent])).collect();
        let _ = writeln!(
            text,
            "  {}: {{{holds}, runtime: {:.0} ms, after: [{}], run: 'true'}}",
            name(job),
            job.seconds * 1000.0,
            after.join(", ")
        );
    }
    text
}

#[derive(Serialize)]
pub struct Simulated<'a> {
    pub workflow: &'static str,
    pub rows: Vec<SimulatedRow<'a>>,
    /// What the study prints of its baseline, and what the generated shape says of itself.
    pub characterisation: Characterisation,
    #[serde(skip)]
    pub study: Study,
}

#[derive(Serialize)]
pub struct SimulatedRow<'a> {
    #[serde(flatten)]
    pub row: &'a Row,
    /// In seconds, by the engine of `tulpar simulate`.
    pub engine_makespan: f64,
    /// Than the baseline, in per cent.
    pub longer: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_longer: Option<f64>,
}

#[derive(Serialize)]
pub struct Characterisation {
    pub published_workflow_level: WorkflowFigures,
    pub published_job_level: &'static [JobFigures],
    pub shape: Shaped,
}

impl<'a> Simulated<'a> {
    pub fn of(study: Study, comparison: &'a Comparison, driven: &Driven) -> Self {
        let rows = comparison.rows.iter().map(|row| SimulatedRow {
            row,
            engine_makespan: driven.get(&(study.name(), row.scenario)).copied().unwrap_or(f64::NAN),
            longer: longer(row, comparison),
            published_longer: study.longer(row.scenario),
        });
        let characterisation = Characterisation {
            published_workflow_level: study.workflow_level(),
            published_job_level: study.job_level(),
            shape: study.shaped(&study.workflow()),
        };
        Self { workflow: study.name(), rows: rows.collect(), characterisation, study }
    }
}

/// Than the baseline, in per cent.
fn longer(row: &Row, comparison: &Comparison) -> f64 {
    let baseline = comparison.rows.iter().find(|row| row.scenario == ScenarioName::Baseline);
    baseline.map_or(0.0, |baseline| 100.0 * (row.makespan / baseline.makespan - 1.0))
}

/// Everything that is said beside the figures.
pub fn asides(compared: &[(Study, Comparison)], simulated: &[Simulated<'_>]) -> Result<Vec<Aside>, Failure> {
    let mut asides: Vec<Aside> = simulated.iter().map(table).collect();
    asides.push(found(compared, simulated));
    let why = WHY.lines().map(str::to_owned).collect();
    asides.push(Aside { title: "Why figures differ".to_owned(), lines: why, ..Aside::default() });
    asides.push(vary(compared)?);
    asides.push(workflow_level(simulated));
    asides.push(job_level(simulated));
    Ok(asides)
}

fn texts<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// The scenarios of one workflow.
fn table(simulated: &Simulated<'_>) -> Aside {
    let header = texts([
        "scenario",
        "jobs (study)",
        "auxiliary (study)",
        "files staged in (study)",
        "compute s",
        "stage-in s",
        "stage-out s",
        "makespan s",
        "by the engine s",
        "against baseline (study)",
    ]);
    let row = |simulated: &SimulatedRow<'_>| {
        let row = simulated.row;
        let published = row.published.as_ref();
        let count = |ours: u64, theirs: Option<u64>| beside(Some(ours as f64), theirs.map(|theirs| theirs as f64));
        let change = signed_percent(simulated.longer, 1);
        let change = match simulated.published_longer {
            Some(theirs) => format!("{change} ({})", signed_percent(theirs, 0)),
            None => change,
        };
        vec![
            row.scenario.name().to_owned(),
            count(row.jobs, published.map(|figures| figures.jobs)),
            count(row.auxiliary, published.map(|figures| figures.auxiliary)),
            count(row.staged_in.files, published.map(|figures| figures.staged_in)),
            format!("{:.0}", row.compute),
            format!("{:.0}", row.stage_in),
            format!("{:.0}", row.stage_out),
            format!("{:.0}", row.makespan),
            format!("{:.0}", simulated.engine_makespan),
            change,
        ]
    };
    let rows = simulated.rows.iter().map(row).collect();
    Aside { title: simulated.workflow.to_owned(), header, rows, lines: Vec::new() }
}

/// What the study found, and whether it came out.
fn found(compared: &[(Study, Comparison)], simulated: &[Simulated<'_>]) -> Aside {
    let found = findings(&seen(compared), SIMULATED_EQUAL);
    let mut lines: Vec<String> = found.iter().map(Finding::words).map(|words| format!("  {words}")).collect();
    let rows = || simulated.iter().flat_map(|one| &one.rows);
    let apart = rows().map(|row| 100.0 * (row.engine_makespan / row.row.makespan - 1.0).abs()).fold(0.0, f64::max);
    lines.push(format!("The engine ends within {apart:.1} % of the list schedule in every scenario."));
    lines.extend(crisis_staging(compared));
    Aside { title: "What the study found, and whether it is so here".to_owned(), lines, ..Aside::default() }
}

/// The one place where the study says in seconds by how much staging falls.
fn crisis_staging(compared: &[(Study, Comparison)]) -> Option<String> {
    let (_, comparison) = compared.iter().find(|(study, _)| *study == Study::Crisis)?;
    let of = |name| comparison.rows.iter().find(|row| row.scenario == name).map(|row| row.stage_in);
    let (baseline, installed, clustering) =
        (of(ScenarioName::Baseline)?, of(ScenarioName::ContainerInstalled)?, of(ScenarioName::Clustering)?);
    Some(format!(
        "For crisis the study says that staging falls by about 700 s and then by 800 s; here stage-in falls by {:.0} s with \
         containers installed, and by {:.0} s from there to clustering.",
        baseline - installed,
        installed - clustering
    ))
}

/// Two simulated times are equal or they are not.
const SIMULATED_EQUAL: f64 = 1e-6;

fn seen(compared: &[(Study, Comparison)]) -> Vec<Told> {
    let seen = |row: &Row| Seen {
        makespan: Time::exact(row.makespan),
        compute: Time::exact(row.compute),
        stage_in: Time::exact(row.stage_in),
        stage_out: Time::exact(row.stage_out),
    };
    let told = |(study, comparison): &(Study, Comparison)| {
        (study.name().to_owned(), comparison.rows.iter().map(|row| (row.scenario, seen(row))).collect())
    };
    compared.iter().map(told).collect()
}

/// Why simulated figures differ from the published ones.
const WHY: &str = "\
`tulpar plan --published NAME --compare` accounts for every file. What moves files here does what the
study's programs do by default: a new connection and a request for each file that is fetched (pegasus-transfer starts wget or
curl for each), two answers for each that scp sends, and at most 3 MiB under way on a connection, which 31 ms away is 101 MB/s
(Linux). DAGMan is 2.5 s late for each job. Not in here, since nobody says how long they took there: negotiation of HTCondor
(up to 20 s a job), the start of containers, Python and GPUs, and noise. Every file that a task of the public generators makes is
a result, so the one job of the galaxy workflow sends more files than it fetches. Images come and never leave, so stage-out is the
same with containers installed; in the study it fell there too, and it does not say why. A task on the shared file system opens each
of its files once, as many at once as it has CPUs, and waits for it, and writes over the same way what the study saw tasks
write beyond their results (checkpoints); in the study each epoch opened its files again, from a cache and partly behind the
work of the GPU.";

pub type Change = fn(&mut Costs);

/// What nobody knows of the study's machines, and what it may have been there.
const UNKNOWN: [(&str, Change); 4] = [
    ("every job waits 20 s for HTCondor", |costs| costs.job += 20.0),
    ("every job waits 40 s until its container has started", |costs| costs.job += 40.0),
    ("a connection carries 50 MB/s, not 101", |costs| {
        if let Some(protocol) = &mut costs.protocol {
            protocol.window /= 2.0;
        }
    }),
    ("a file on NFS is one answer away, not two", |costs| {
        if let Some(protocol) = &mut costs.protocol {
            (protocol.read, protocol.write) = (1.0, 1.0);
        }
    }),
];

/// What the figures that the study printed would be here if what nobody knows were otherwise.
fn vary(simulated: &[(Study, Comparison)]) -> Result<Aside, Failure> {
    let mut rows = Vec::new();
    let mut add = |name: &str, compared: &[(Study, Comparison)]| {
        let cells = printed(compared).map(|(_, row, comparison)| signed_percent(longer(row, comparison), 1));
        rows.push([name.to_owned()].into_iter().chain(cells).collect::<Vec<_>>());
    };
    add("as simulated", simulated);
    for (name, change) in UNKNOWN {
        let mut alone = costs();
        change(&mut alone);
        add(name, &compared(&alone)?);
    }
    let mut all = costs();
    UNKNOWN.iter().for_each(|(_, change)| change(&mut all));
    add("all of these", &compared(&all)?);
    let theirs = printed(simulated).filter_map(|(study, row, _)| study.longer(row.scenario));
    rows.push(["the study".to_owned()].into_iter().chain(theirs.map(|theirs| signed_percent(theirs, 0))).collect());
    let names = printed(simulated).map(|(study, row, _)| format!("{}, {}", study.name(), row.scenario.name()));
    let header: Vec<String> = ["if".to_owned()].into_iter().chain(names).collect();
    let title = "What is not known of the study, and how much it would change, against the baseline".to_owned();
    Ok(Aside { title, header, rows, lines: Vec::new() })
}

/// The rows whose length against the baseline the study printed.
fn printed(compared: &[(Study, Comparison)]) -> impl Iterator<Item = (Study, &Row, &Comparison)> {
    let all = compared
        .iter()
        .flat_map(|(study, comparison)| comparison.rows.iter().map(move |row| (*study, row, comparison)));
    all.filter(|(study, row, _)| study.longer(row.scenario).is_some())
}

/// The workflow level of the baseline: the shape, and in brackets the study.
fn workflow_level(simulated: &[Simulated<'_>]) -> Aside {
    let header =
        ["figure".to_owned()].into_iter().chain(simulated.iter().map(|one| format!("{} (study)", one.workflow)));
    type Pair = fn(&Simulated<'_>) -> (Option<f64>, f64);
    let figures: [(&str, Pair); 11] = [
        ("jobs", |one| (baseline(one).map(|row| row.jobs as f64), published(one).jobs as f64)),
        ("auxiliary jobs", |one| (baseline(one).map(|row| row.auxiliary as f64), published(one).auxiliary as f64)),
        ("input files", |one| (Some(shape(one).input_files as f64), published(one).input_files as f64)),
        ("input GB", |one| (Some(shape(one).input_gb), published(one).input_gb)),
        ("container GB", |one| (Some(shape(one).container_gb), published(one).container_gb)),
        ("I/O read GB", |one| (Some(summed(one, |jobs| jobs.taken_mb) / 1000.0), published(one).read_gb)),
        ("I/O write GB", |one| (Some(summed(one, |jobs| jobs.left_mb) / 1000.0), published(one).written_gb)),
        ("peak memory GB", |one| (None, published(one).peak_memory_gb)),
        ("peak GPU memory GB", |one| (None, published(one).peak_gpu_memory_gb)),
        ("CPU hours", |one| (Some(shape(one).cpu_hours), published(one).cpu_hours)),
        ("GPU hours", |one| (Some(shape(one).gpu_hours), published(one).gpu_hours)),
    ];
    let row = |(name, pair): &(&str, Pair)| {
        let cells = simulated.iter().map(|one| {
            let (here, study) = pair(one);
            beside(here, Some(study))
        });
        [(*name).to_owned()].into_iter().chain(cells).collect()
    };
    Aside {
        title: "Workflow level, baseline".to_owned(),
        header: header.collect(),
        rows: figures.iter().map(row).collect(),
        lines: LEVELS.lines().map(str::to_owned).collect(),
    }
}

/// What the numbers of the shapes are.
const LEVELS: &str = "\
Here: what the generated workflows say of themselves. Read and written are the files that tasks take and leave, each once a task,
and what the study saw tasks write besides; in the study every epoch read its files again. Hours are of the CPUs and GPUs that tasks
ask for while they compute; what the study counted it does not say. Memory and use are measured, not simulated.";

fn baseline<'a>(one: &Simulated<'a>) -> Option<&'a Row> {
    one.rows.iter().map(|row| row.row).find(|row| row.scenario == ScenarioName::Baseline)
}

fn published(one: &Simulated<'_>) -> WorkflowFigures {
    one.characterisation.published_workflow_level
}

fn shape<'a>(one: &'a Simulated<'_>) -> &'a Shaped {
    &one.characterisation.shape
}

fn summed(one: &Simulated<'_>, of: fn(&ShapedJobs) -> f64) -> f64 {
    shape(one).jobs.iter().map(of).sum()
}

/// The job level of the baseline, likewise.
fn job_level(simulated: &[Simulated<'_>]) -> Aside {
    let mut rows = Vec::new();
    for one in simulated {
        for (known, jobs) in one.study.job_level().iter().zip(&shape(one).jobs) {
            rows.push(vec![
                format!("{} {}", one.workflow, known.name),
                beside(Some(jobs.taken_mb), Some(known.read_mb)),
                beside(Some(jobs.left_mb), Some(known.written_mb)),
                beside(None, Some(known.cpu_percent)),
                beside(None, Some(known.peak_memory_gb)),
                beside(None, known.gpu_percent),
                beside(None, known.peak_gpu_memory_gb),
                beside(Some(jobs.seconds), Some(known.seconds)),
            ]);
        }
    }
    let header = texts([
        "job",
        "read MB (study)",
        "written MB (study)",
        "CPU % (study)",
        "memory GB (study)",
        "GPU % (study)",
        "GPU memory GB (study)",
        "seconds (study)",
    ]);
    let lines = vec!["Seconds are taken from the study: they are what the simulation begins with.".to_owned()];
    Aside { title: "Job level, baseline".to_owned(), header, rows, lines }
}

pub const SCALE: &str =
    "Simulated at the scale of the study: three workers of 24 CPUs, 10 Gbit/s, 31 ms from the submit host.";
pub const CLOCKS: &str = "\
All times are virtual: a list schedule of the planner, with its model of links. `by the engine` is the makespan of the same \
jobs with the same times in the engine of `tulpar simulate`.";

pub type Of = fn(&Row) -> f64;

/// The page: the three figures of the study, and all tables.
pub fn told(simulated: &[Simulated<'_>], asides: Vec<Aside>) -> Overview {
    let bars = |one: &Simulated<'_>, of: Of| one.rows.iter().map(|row| Some(of(row.row))).collect();
    let each = |of: Of| simulated.iter().map(|one| (one.workflow.to_owned(), bars(one, of))).collect();
    let ways: [(&str, Of); 2] = [("stage-in", |row| row.stage_in), ("stage-out", |row| row.stage_out)];
    let both =
        simulated.iter().flat_map(|one| ways.map(|(way, of)| (format!("{}, {way}", one.workflow), bars(one, of))));
    let figure = |what: &str, said: &str, groups| SideBySide { what: what.to_owned(), said: said.to_owned(), groups };
    Overview {
        title: "Four ways to place data, at the scale of the study".to_owned(),
        lines: vec![SCALE.to_owned(), CLOCKS.to_owned(), DRAWN.to_owned()],
        scenarios: ScenarioName::ALL.map(|name| name.name().to_owned()).to_vec(),
        figures: vec![
            figure("compute (s)", "Cumulative compute time by scenario", each(|row| row.compute)),
            figure("transfers (s)", "Cumulative stage-in and stage-out time by scenario", both.collect()),
            figure("makespan (s)", "Makespan by scenario", each(|row| row.makespan)),
        ],
        asides,
    }
}

const DRAWN: &str = "\
The study draws these three figures and prints no seconds of them, only by how much makespans differ; what it prints stands in \
brackets in the tables. `auto` is Tulpar's own choice of clusters, which the study does not have.";

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|source| Failure::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orderings_of_the_study_come_out_at_its_scale() {
        let exceptions: Vec<(&str, Vec<String>)> =
            findings(&seen(&compared(&costs()).expect("plans")), SIMULATED_EQUAL)
                .into_iter()
                .filter(|finding| !finding.exceptions.is_empty())
                .map(|finding| (finding.what, finding.exceptions))
                .collect();
        let equal = |name: &str| format!("{name}: container installed against baseline");
        let expected = vec![
            ("files take longer to come than to leave", vec!["galaxy with clustering".to_owned()]),
            // Images come and never leave.
            (
                "staging out falls from baseline to container installed to NFS to clustering",
                ["galaxy", "lung", "crisis"].map(equal).to_vec(),
            ),
        ];
        assert_eq!(exceptions, expected);
    }
}
