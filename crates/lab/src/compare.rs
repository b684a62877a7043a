//! The data placements of a published study, and Tulpar's own choice, for one workflow side by side.
//!
//! Each is a plan of the same workflow with other options. Where the workflow is a version of one that the study
//! measured, its figures stand beside, and every difference is accounted for. It prints nothing.

use crate::published::{self, Figures, ScenarioName, Study};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::catalogue::{Catalogue, DataConfiguration, ImageTransfer};
use tulpar_core::planner::estimate::{Costs, estimate_with, request};
use tulpar_core::planner::{
    self, Abstract, Builder, Cleanup, Clustering, FileId, GroupId, JobKind, Layout, Options, PlanError, TaskId, Traffic,
};

#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub name: ScenarioName,
    /// In words.
    pub about: &'static str,
    pub options: Options,
    /// Programs lie on the shared file system already.
    pub programs_installed: bool,
}

/// The four of the study and `auto`. Sites, output site and what concerns transfer jobs are those of `base`.
pub fn scenarios(base: &Options, has_labels: bool) -> Vec<Scenario> {
    let baseline = Options {
        data: Some(DataConfiguration::NonSharedFs),
        clustering: Vec::new(),
        cleanup: Cleanup::Leaf,
        images: ImageTransfer::EveryJob,
        bypass: false,
        threads: 8,
        register: false,
        ..base.clone()
    };
    ScenarioName::ALL
        .into_iter()
        .map(|name| {
            let mut options = baseline.clone();
            let about = match name {
                ScenarioName::Baseline => {
                    "jobs pull from a staging site and push to it; the image comes with every job"
                }
                ScenarioName::ContainerInstalled => {
                    options.images = ImageTransfer::Installed;
                    "the same, with images on the nodes"
                }
                ScenarioName::Clustering => {
                    options.threads = 24;
                    options.parallel_clusters = true;
                    options.clustering = vec![if has_labels { Clustering::Label } else { Clustering::Whole }];
                    if has_labels { "tasks with one label are one job" } else { "the whole workflow is one job" }
                }
                ScenarioName::Nfs => {
                    options.data = Some(DataConfiguration::SharedFs);
                    "one file system, inputs are links, programs are installed"
                }
                ScenarioName::Auto => {
                    options.threads = 24;
                    options.parallel_clusters = true;
                    options.clustering = vec![Clustering::Auto];
                    "the baseline with clusters that Tulpar chooses"
                }
            };
            Scenario { name, about, options, programs_installed: name == ScenarioName::Nfs }
        })
        .collect()
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub scenario: ScenarioName,
    pub about: &'static str,
    /// Compute jobs.
    pub jobs: u64,
    pub auxiliary: u64,
    pub kinds: BTreeMap<&'static str, u64>,
    pub threads: u32,
    pub staged_in: Traffic,
    /// Everything that is copied, by whatever job.
    pub moved: Traffic,
    /// In seconds, as all times here.
    pub makespan: f64,
    /// That tasks compute, added up.
    pub compute: f64,
    /// That files take to come to jobs and to the staging site, and to leave them, added up.
    pub stage_in: f64,
    pub stage_out: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Figures>,
    /// Why figures differ from the published ones; counts of one quantity add up to its difference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    pub of: Quantity,
    /// More than published; negative when fewer.
    pub count: i64,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    Jobs,
    Auxiliary,
    StagedIn,
}

impl Quantity {
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Jobs => "jobs",
            Quantity::Auxiliary => "auxiliary jobs",
            Quantity::StagedIn => "files staged in",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub workflow: String,
    /// The workflow of the study that this is a version of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub study: Option<&'static str>,
    pub rows: Vec<Row>,
}

/// Plans the workflow once for each scenario.
pub fn compare(
    graph: &Abstract,
    catalogue: &Catalogue,
    base: &Options,
    costs: &Costs,
) -> Result<Comparison, PlanError> {
    let study = Study::of(graph);
    let shape = study.map(Study::workflow);
    let testbed = published::testbed();
    let installed = without_programs(graph);
    let has_labels = graph.tasks.iter().any(|task| task.label.is_some());
    let mut rows = Vec::new();
    for scenario in scenarios(base, has_labels) {
        let graph = if scenario.programs_installed { &installed } else { graph };
        let layout = planner::plan(graph, catalogue, &scenario.options, &[])?;
        let mut row = row(graph, &layout, catalogue, &scenario, costs);
        if let (Some(study), Some(shape)) = (study, &shape)
            && let Some(figures) = study.figures(scenario.name)
        {
            let shape = if scenario.programs_installed { &without_programs(shape) } else { shape };
            let has_labels = shape.tasks.iter().any(|task| task.label.is_some());
            let base = Options { sites: published::testbed_sites(), ..Options::default() };
            let same = scenarios(&base, has_labels).into_iter().find(|other| other.name == scenario.name);
            let options = same.map_or_else(|| scenario.options.clone(), |same| same.options);
            let theirs = planner::plan(shape, &testbed, &options, &[])?;
            row.differences = differences(study, figures, (graph, &layout), (shape, &theirs), scenario.name);
            row.published = Some(figures);
        }
        rows.push(row);
    }
    Ok(Comparison { workflow: graph.name.clone(), study: study.map(Study::name), rows })
}

fn row(graph: &Abstract, layout: &Layout, catalogue: &Catalogue, scenario: &Scenario, costs: &Costs) -> Row {
    let estimate = estimate_with(graph, layout, catalogue, &scenario.options, costs);
    let busy = |kind: JobKind| estimate.busy.get(&kind).copied().unwrap_or(0.0);
    Row {
        scenario: scenario.name,
        about: scenario.about,
        jobs: layout.count(JobKind::Compute) as u64,
        auxiliary: layout.auxiliary() as u64,
        kinds: kinds(layout).into_iter().map(|(kind, count)| (kind.name(), count)).collect(),
        threads: scenario.options.threads,
        staged_in: layout.staged_in(),
        moved: layout.moved(),
        makespan: estimate.makespan,
        compute: estimate.compute,
        stage_in: estimate.fetching + busy(JobKind::StageIn) + busy(JobKind::Transfer),
        stage_out: estimate.sending + busy(JobKind::StageOut),
        published: None,
        differences: Vec::new(),
    }
}

/// A job of a plan with what it holds and how long: what an engine needs to put it into time by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedJob {
    pub name: String,
    pub kind: JobKind,
    /// Positions among the jobs.
    pub parents: Vec<usize>,
    /// From its start to its end: its files come, it runs, its files leave.
    pub seconds: f64,
    pub milli_cpus: u32,
    pub gpus: u32,
    pub memory: u64,
}

/// The jobs of one scenario; how long each takes is what the model of links says.
pub fn timed(
    graph: &Abstract,
    catalogue: &Catalogue,
    scenario: &Scenario,
    costs: &Costs,
) -> Result<Vec<TimedJob>, PlanError> {
    let installed = scenario.programs_installed.then(|| without_programs(graph));
    let graph = installed.as_ref().unwrap_or(graph);
    let layout = planner::plan(graph, catalogue, &scenario.options, &[])?;
    let took = estimate_with(graph, &layout, catalogue, &scenario.options, costs).took;
    let timed = |job| {
        let facts = layout.job(job);
        let site = catalogue.site(layout.site(facts.site));
        let (milli_cpus, gpus, memory) = match facts.kind {
            JobKind::Compute => request(graph, layout.tasks_of(job), &scenario.options, site),
            _ => (0, 0, 0),
        };
        TimedJob {
            name: layout.name(graph, job),
            kind: facts.kind,
            parents: layout.parents(job).iter().map(|parent| parent.index()).collect(),
            seconds: took[job.index()],
            milli_cpus,
            gpus,
            memory,
        }
    };
    Ok(layout.ids().map(timed).collect())
}

fn kinds(layout: &Layout) -> BTreeMap<JobKind, u64> {
    let mut kinds = BTreeMap::new();
    layout.jobs.iter().for_each(|job| *kinds.entry(job.kind).or_default() += 1);
    kinds
}

/// The same workflow with its programs where the tasks run.
pub fn without_programs(graph: &Abstract) -> Abstract {
    let mut builder = Builder::new(&graph.name);
    for kind in &graph.kinds {
        builder.kind(kind);
    }
    for image in &graph.images {
        builder.image(&image.name, image.size);
    }
    for sites in &graph.locations {
        builder.location(sites.clone());
    }
    let kept: Vec<Option<FileId>> =
        graph.files.iter().map(|file| (!file.program).then(|| builder.file(file.clone()))).collect();
    let groups: Vec<GroupId> = graph
        .groups()
        .map(|group| {
            let files: Vec<FileId> = graph.files_of(group).iter().filter_map(|file| kept[file.index()]).collect();
            builder.group(files)
        })
        .collect();
    for task in graph.ids() {
        let added = builder.task(graph.tasks[task.index()].clone());
        graph.inputs(task).iter().for_each(|group| builder.reads(added, groups[group.index()]));
        graph.outputs(task).iter().for_each(|group| builder.writes(added, groups[group.index()]));
        graph.parents(task).iter().for_each(|parent| builder.after(added, *parent));
    }
    builder.finish().expect("it had no circle before")
}

/// What comes to compute jobs, by what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Staged {
    data: i64,
    programs: i64,
    images: i64,
}

fn staged(graph: &Abstract, layout: &Layout) -> Staged {
    let mut all = Staged::default();
    let mut seen: Vec<u32> = vec![u32::MAX; graph.files.len()];
    for job in layout.ids().filter(|job| layout.job(*job).kind == JobKind::Compute) {
        let tasks = layout.tasks_of(job);
        let own: FxHashSet<TaskId> = tasks.iter().copied().collect();
        let (mut data, mut programs) = (0, 0);
        for group in tasks.iter().flat_map(|task| graph.inputs(*task)) {
            if graph.producer(*group).is_some_and(|producer| own.contains(&producer)) {
                continue;
            }
            for file in graph.files_of(*group) {
                if std::mem::replace(&mut seen[file.index()], job.0) != job.0 {
                    if graph.files[file.index()].program { programs += 1 } else { data += 1 }
                }
            }
        }
        all.data += data;
        all.programs += programs;
        all.images += layout.job(job).inward.files as i64 - data - programs;
    }
    all
}

/// Accounts for what differs: first from the study's figures to its shape as generated, then from there to ours.
fn differences(
    study: Study,
    figures: Figures,
    (graph, ours): (&Abstract, &Layout),
    (shape, theirs): (&Abstract, &Layout),
    scenario: ScenarioName,
) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    let mut note = |of, count: i64, why: String| {
        if count != 0 {
            found.push(Difference { of, count, why });
        }
    };
    let compute = |layout: &Layout| layout.count(JobKind::Compute) as i64;
    note(Quantity::Jobs, compute(theirs) - figures.jobs as i64, "the generated shape has other clusters".to_owned());
    let mut names = job_names(graph, ours, 1);
    names.extend(job_names(shape, theirs, -1));
    names.sort();
    for part in names.chunk_by(|one, other| one.0 == other.0) {
        let count = part.iter().map(|(_, sign)| sign).sum();
        note(Quantity::Jobs, count, format!("jobs of `{}`: this workflow is split otherwise", part[0].0));
    }
    let (our_kinds, their_kinds) = (kinds(ours), kinds(theirs));
    let published_auxiliary = figures.auxiliary as i64 - theirs.auxiliary() as i64;
    if published_auxiliary != 0 {
        let why = "stage-in jobs: with programs installed, levels that need nothing from outside have none; the study \
                   has one a level";
        note(Quantity::Auxiliary, -published_auxiliary, why.to_owned());
    }
    for kind in JobKind::ALL.into_iter().filter(|kind| *kind != JobKind::Compute) {
        let count = |kinds: &BTreeMap<JobKind, u64>| kinds.get(&kind).copied().unwrap_or(0) as i64;
        let (here, there) = (count(&our_kinds), count(&their_kinds));
        let rule = match kind {
            JobKind::StageIn if graph.files.iter().any(|file| file.bypass) => {
                "because this workflow has its inputs fetched from where they are (bypass)"
            }
            JobKind::StageIn | JobKind::StageOut => "one for every ten compute jobs of a level with something to move",
            JobKind::CreateDirectory | JobKind::LeafCleanup => "one for each staging site",
            JobKind::Transfer => "files go from one staging site to another",
            JobKind::Chmod => "programs that are staged to a shared file system are made executable",
            _ => "by the options",
        };
        let why = format!("{} jobs: {here} instead of {there}, {rule}", kind.name());
        note(Quantity::Auxiliary, here - there, why);
    }
    for (count, why) in study.remainder(scenario) {
        note(Quantity::StagedIn, count, why);
    }
    let (here, there) = (staged(graph, ours), staged(shape, theirs));
    let jobs = compute(ours) - compute(theirs);
    let by_jobs = if jobs == 0 { String::new() } else { format!(" ({jobs:+} jobs)") };
    note(
        Quantity::StagedIn,
        here.data - there.data,
        format!("uses of data: {} files in {} uses here", outside(graph), here.data),
    );
    note(Quantity::StagedIn, here.programs - there.programs, format!("programs, one a job and task{by_jobs}"));
    let images = match (here.images, graph.images.len()) {
        (0, 0) => "images: this workflow names none".to_owned(),
        (_, 1) => format!("images, one a job{by_jobs}"),
        (_, many) => format!("images, of which it has {many}{by_jobs}"),
    };
    note(Quantity::StagedIn, here.images - there.images, images);
    found
}

/// What each compute job runs, with a sign to add up.
fn job_names<'a>(graph: &'a Abstract, layout: &Layout, sign: i64) -> Vec<(&'a str, i64)> {
    let jobs = layout.ids().filter(|job| layout.job(*job).kind == JobKind::Compute);
    jobs.map(|job| match layout.tasks_of(job) {
        [task] => (graph.kinds[graph.tasks[task.index()].kind as usize].as_str(), sign),
        _ => ("clusters", sign),
    })
    .collect()
}

/// Data files that exist before the run and are read.
fn outside(graph: &Abstract) -> usize {
    let groups = graph.groups().filter(|group| graph.producer(*group).is_none() && !graph.readers(*group).is_empty());
    let files: FxHashSet<FileId> = groups.flat_map(|group| graph.files_of(group).iter().copied()).collect();
    files.into_iter().filter(|file| !graph.files[file.index()].program).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(study: Study) -> Comparison {
        let base = Options { sites: published::testbed_sites(), ..Options::default() };
        compare(&study.workflow(), &published::testbed(), &base, &published::costs()).expect("a plan")
    }

    #[test]
    fn the_shapes_have_the_inputs_of_the_study() {
        let inputs = |study: Study| study.shaped(&study.workflow()).input_files;
        let shapes = Study::ALL.map(|(name, study)| (name, study.workflow().tasks.len(), inputs(study)));
        assert_eq!(shapes, [("galaxy", 11, 28_793), ("lung", 7, 1_408), ("crisis", 16, 12_747)]);
    }

    #[test]
    fn timed_jobs_take_as_long_as_the_estimate_where_nothing_waits_for_a_place() {
        let base = Options { sites: published::testbed_sites(), ..Options::default() };
        let graph = Study::Galaxy.workflow();
        for (scenario, row) in scenarios(&base, false).iter().zip(compared(Study::Galaxy).rows) {
            let jobs = timed(&graph, &published::testbed(), scenario, &published::costs()).expect("a plan");
            assert_eq!(jobs.len() as u64, row.jobs + row.auxiliary, "{}", row.scenario.name());
            let mut ends: Vec<Option<f64>> = vec![None; jobs.len()];
            fn end(job: usize, jobs: &[TimedJob], ends: &mut [Option<f64>]) -> f64 {
                if let Some(end) = ends[job] {
                    return end;
                }
                let begin = jobs[job].parents.iter().map(|parent| end(*parent, jobs, ends)).fold(0.0, f64::max);
                ends[job] = Some(begin + jobs[job].seconds);
                begin + jobs[job].seconds
            }
            let last = (0..jobs.len()).map(|job| end(job, &jobs, &mut ends)).fold(0.0, f64::max);
            assert!((last / row.makespan - 1.0).abs() < 1e-9, "{}: {last}, {}", row.scenario.name(), row.makespan);
        }
    }

    #[test]
    fn the_published_figures_come_out_and_differences_are_explained() {
        let mut staged = Vec::new();
        for (name, study) in Study::ALL {
            let comparison = compared(study);
            assert_eq!(comparison.study, Some(name));
            for row in comparison.rows.iter().filter(|row| row.published.is_some()) {
                let published = row.published.expect("filtered");
                let explained = |of| -> i64 {
                    row.differences.iter().filter(|other| other.of == of).map(|difference| difference.count).sum()
                };
                let said = format!("{name}, {}: {row:?}", row.scenario.name());
                assert_eq!(row.jobs as i64 - published.jobs as i64, explained(Quantity::Jobs), "{said}");
                let auxiliary = row.auxiliary as i64 - published.auxiliary as i64;
                assert_eq!(auxiliary, explained(Quantity::Auxiliary), "{said}");
                let files = row.staged_in.files as i64 - published.staged_in as i64;
                assert_eq!(files, explained(Quantity::StagedIn), "{said}");
                assert_eq!((row.jobs, row.threads), (published.jobs, published.threads), "{said}");
                staged.push((name, row.scenario.name(), row.auxiliary, row.staged_in.files));
            }
        }
        let expected = [
            ("galaxy", "baseline", 12, 111_952),
            ("galaxy", "container installed", 12, 111_941),
            ("galaxy", "clustering", 4, 28_803),
            ("galaxy", "nfs", 10, 111_941),
            ("lung", "baseline", 12, 9_446),
            ("lung", "container installed", 12, 9_439),
            ("lung", "clustering", 4, 1_417),
            ("lung", "nfs", 11, 9_439),
            ("crisis", "baseline", 12, 51_006),
            ("crisis", "container installed", 12, 50_990),
            ("crisis", "clustering", 6, 12_758),
            ("crisis", "nfs", 9, 50_990),
        ];
        assert_eq!(staged, expected);
    }
}
