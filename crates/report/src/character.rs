//! A run in the figures of a characterisation: job level by kind of task, workflow level, and where its time went.
//!
//! The figures and their order are those of the published study of scientific machine-learning workflows; everything
//! is a sum, mean or maximum of recorded facts. `None` is what nobody recorded.

use crate::gather::{Gathered, Used};
use crate::measured::{Measured, seconds};
use crate::transfers::{self, Transfers};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::catalogue::DataConfiguration;
use tulpar_core::ids::SetId;
use tulpar_core::job::Source;
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::workflow::Task;
use tulpar_core::workflow::planned::{Planned, Work};

/// One figure: what programs call it, what people call it, its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    pub key: &'static str,
    pub name: &'static str,
    pub unit: &'static str,
}

const fn figure(key: &'static str, name: &'static str, unit: &'static str) -> Figure {
    Figure { key, name, unit }
}

/// The figures of a kind of task, in their order.
pub const JOB_FIGURES: [Figure; 8] = [
    figure("read_mb", "I/O read", "MB"),
    figure("written_mb", "I/O write", "MB"),
    figure("cpu_percent", "average CPU", "%"),
    figure("peak_memory_gb", "peak memory", "GB"),
    figure("gpu_percent", "average GPU", "%"),
    figure("peak_gpu_memory_gb", "peak GPU memory", "GB"),
    figure("mean_seconds", "average execution time", "s"),
    figure("total_seconds", "total execution time", "s"),
];

/// The figures of a whole run, in their order.
pub const WORKFLOW_FIGURES: [Figure; 21] = [
    figure("jobs", "jobs", ""),
    figure("auxiliary_jobs", "auxiliary jobs", ""),
    figure("files_staged_in", "files staged in", ""),
    figure("input_files", "input files", ""),
    figure("input_gb", "input", "GB"),
    figure("container_gb", "container", "GB"),
    figure("read_gb", "I/O read", "GB"),
    figure("written_gb", "I/O write", "GB"),
    figure("peak_memory_gb", "peak memory", "GB"),
    figure("peak_gpu_memory_gb", "peak GPU memory", "GB"),
    figure("cpu_hours", "CPU hours, held", "h"),
    figure("cpu_hours_used", "CPU hours, used", "h"),
    figure("gpu_hours", "GPU hours, held", "h"),
    figure("compute_seconds", "cumulative compute", "s"),
    figure("stage_in_seconds", "cumulative stage-in", "s"),
    figure("stage_out_seconds", "cumulative stage-out", "s"),
    figure("makespan_seconds", "makespan", "s"),
    figure("queued_seconds", "cumulative wait in queues", "s"),
    figure("lost_seconds", "lost to tries that did not end well", "s"),
    figure("data_share_percent", "share of job time spent moving files", "%"),
    figure("waiting_for_data_percent", "share of the makespan with files moving and no task computing", "%"),
];

/// Values in the order of their figures.
pub type Values<const N: usize> = [Option<f64>; N];

#[derive(Clone, Debug, PartialEq)]
pub struct JobLevel {
    pub task_set: String,
    /// Tasks that ended well.
    pub tasks: u64,
    pub values: Values<8>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Characterisation {
    /// What was chosen about clusters, data and images, in words: runs with the same words are one scenario.
    pub scenario: String,
    pub jobs: Vec<JobLevel>,
    pub workflow: Values<21>,
    pub transfers: Transfers,
}

pub(crate) fn named<const N: usize>(figures: &[Figure; N], values: &Values<N>) -> BTreeMap<&'static str, Option<f64>> {
    figures.iter().map(|figure| figure.key).zip(values.iter().copied()).collect()
}

impl Serialize for JobLevel {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'r> {
            task_set: &'r str,
            tasks: u64,
            #[serde(flatten)]
            values: BTreeMap<&'static str, Option<f64>>,
        }
        let values = named(&JOB_FIGURES, &self.values);
        Row { task_set: &self.task_set, tasks: self.tasks, values }.serialize(serializer)
    }
}

impl Serialize for Characterisation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Whole<'r> {
            scenario: &'r str,
            job_level: &'r [JobLevel],
            workflow_level: BTreeMap<&'static str, Option<f64>>,
            transfers: &'r Transfers,
        }
        let workflow_level = named(&WORKFLOW_FIGURES, &self.workflow);
        Whole { scenario: &self.scenario, job_level: &self.jobs, workflow_level, transfers: &self.transfers }
            .serialize(serializer)
    }
}

/// What a run was, in figures. `images` are the sizes of container images that are files, by the names that tasks give.
pub(crate) fn characterise(
    graph: &Graph,
    gathered: &Gathered,
    measured: &Measured,
    images: &BTreeMap<String, u64>,
) -> Characterisation {
    let plan = graph.plan();
    let ran = gathered.kinds().iter().zip(&gathered.used).filter(|(_, used)| used.tasks > 0);
    let jobs = ran.map(|(name, used)| job_level(name, used)).collect();
    Characterisation {
        scenario: scenario(plan),
        jobs,
        workflow: workflow_level(graph, gathered, measured, images),
        transfers: transfers::summarise(graph, gathered),
    }
}

fn job_level(name: &str, used: &Used) -> JobLevel {
    let some = used.measured > 0;
    let measured = |value: f64| some.then_some(value);
    let known = |bytes: u64| (bytes > 0).then_some(bytes as f64 / 1e9);
    let values = [
        measured(used.read_bytes as f64 / 1e6),
        measured(used.write_bytes as f64 / 1e6),
        measured(used.cpu_shares * 100.0 / used.measured.max(1) as f64),
        known(used.peak_rss),
        (used.with_gpu > 0).then(|| used.gpu_shares * 100.0 / used.with_gpu as f64),
        known(used.peak_gpu_memory),
        Some(seconds(used.wall_us) / used.tasks as f64),
        Some(seconds(used.wall_us)),
    ];
    JobLevel { task_set: name.to_owned(), tasks: used.tasks, values }
}

fn workflow_level(
    graph: &Graph,
    gathered: &Gathered,
    measured: &Measured,
    images: &BTreeMap<String, u64>,
) -> Values<21> {
    let plan = graph.plan();
    let (mut jobs, mut auxiliary) = (0u64, 0u64);
    let wanted = plan.wanted();
    for set in (0..plan.workflow.tasks.len()).filter(|set| wanted[*set]).map(SetId::from) {
        let count = u64::from(graph.count_of(set).unwrap_or(0));
        if is_auxiliary(plan.task(set)) { auxiliary += count } else { jobs += count }
    }
    let (input_files, input_bytes) = inputs(plan);
    let container_bytes = containers(plan, images);
    let all = &gathered.used;
    let sum = |field: fn(&Used) -> u64| all.iter().map(field).sum::<u64>();
    let most = |field: fn(&Used) -> u64| all.iter().map(field).max().filter(|most| *most > 0);
    let some = sum(|used| used.measured) > 0;
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let hours = |seconds: f64| seconds / 3600.0;
    let compute = sum(|used| used.wall_us);
    let moving = gathered.stage_in_us + gathered.stage_out_us;
    let makespan = measured.makespan_seconds;
    let transfers = !gathered.moves.is_empty();
    [
        Some(jobs as f64),
        Some(auxiliary as f64),
        gathered.staged_in().map(|files| files as f64),
        Some(input_files as f64),
        Some(gigabytes(input_bytes)),
        container_bytes.map(gigabytes),
        some.then(|| gigabytes(sum(|used| used.read_bytes))),
        some.then(|| gigabytes(sum(|used| used.write_bytes))),
        most(|used| used.peak_rss).map(gigabytes),
        most(|used| used.peak_gpu_memory).map(gigabytes),
        Some(hours(measured.cpu.held_seconds)),
        some.then(|| hours(seconds(sum(|used| used.cpu_us)))),
        measured.gpu.map(|gpu| hours(gpu.held_seconds)),
        Some(seconds(compute)),
        Some(seconds(gathered.stage_in_us)),
        Some(seconds(gathered.stage_out_us)),
        Some(makespan),
        Some(seconds(gathered.queued_us)),
        Some(seconds(sum(|used| used.lost_us))),
        (transfers && compute + moving > 0).then(|| moving as f64 * 100.0 / (compute + moving) as f64),
        gathered.waited_us().filter(|_| makespan > 0.0).map(|waited| seconds(waited) * 100.0 / makespan),
    ]
}

pub(crate) fn is_auxiliary(task: &Task) -> bool {
    matches!(task.run.planned(), Some(Planned { work: Work::Operation(_), .. }))
}

/// Files that were there before the run, each once, whoever reads them.
fn inputs(plan: &Plan) -> (u64, u64) {
    let planned = || plan.workflow.tasks.iter().filter_map(|task| task.run.planned());
    let staging: FxHashSet<&str> =
        planned().filter_map(|planned| Some(planned.staging.as_ref()?.url.as_str())).collect();
    // Images go by way of the staging site too; so do results of earlier runs, which the planner calls `done`.
    let images: FxHashSet<&str> =
        planned().flat_map(|planned| &planned.images).map(|image| image.name.as_str()).collect();
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let mut bytes = 0;
    for (data, files) in plan.workflow.data.iter().zip(&plan.files) {
        if !staging.is_empty() && data.name.starts_with("done/") {
            continue;
        }
        for file in files.iter() {
            let place = match &file.source {
                Source::Path(place) if !images.contains(place.as_str()) => place,
                Source::Remote(place) if !staging.iter().any(|url| place.starts_with(url)) => place,
                Source::Path(_) | Source::Remote(_) | Source::Object | Source::Text(_) => continue,
            };
            if seen.insert(place) {
                bytes += file.size;
            }
        }
    }
    (seen.len() as u64, bytes)
}

/// All images together, each once; absent when no task says one whose size is known.
fn containers(plan: &Plan, images: &BTreeMap<String, u64>) -> Option<u64> {
    let mut sizes = images.clone();
    let planned = plan.workflow.tasks.iter().filter_map(|task| task.run.planned());
    for image in planned.flat_map(|planned| &planned.images) {
        sizes.insert(image.name.clone(), image.file.size);
    }
    (!sizes.is_empty()).then(|| sizes.values().sum())
}

/// What was chosen about a run that moves its files or times: the words by which runs are compared.
fn scenario(plan: &Plan) -> String {
    let planned = || plan.workflow.tasks.iter().filter_map(|task| task.run.planned());
    let clusters = planned().any(|planned| matches!(planned.work, Work::Cluster(_)));
    let mut words = vec![plan.site.name.clone()];
    words.push(if clusters { "clusters".to_owned() } else { "no clusters".to_owned() });
    if planned().any(|planned| planned.staging.is_some()) {
        words.push("staged files".to_owned());
    } else if let Some(data) = plan.site.data.filter(|data| *data != DataConfiguration::CondorIo) {
        words.push(data.name().to_owned());
    }
    let mut images = planned().flat_map(|planned| &planned.images);
    if let Some(first) = images.next() {
        words.push(if first.once { "images once a node" } else { "images with every job" }.to_owned());
    }
    words.join(", ")
}
