//! A run in figures: its facts, its task sets, what was measured, and what had been expected.
//!
//! The one structure behind the page, the Markdown and the JSON. It knows nothing of how these look.

use crate::character::{self, Characterisation};
use crate::columns::{Columns, MOST_COLUMNS};
use crate::efficiency::{self, Efficiency};
use crate::forecast::{Forecast, SEQUENTIAL};
use crate::gather::Gathered;
use crate::kinds::{self, Kinds};
use crate::measured::{Measured, Utilisation, seconds};
use crate::search::{self, SearchReport};
use crate::spent::{self, Rates, Spent};
use crate::timeline::{Occupied, SetTimes, Timeline, held};
use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::calendar::Date;
use tulpar_core::ids::SetId;
use tulpar_core::plan::Graph;
use tulpar_core::provenance::{Metric, Provenance};
use tulpar_core::units::Timestamp;

/// What only the caller knows of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunFacts {
    pub run: String,
    /// How it stands, in one word.
    pub standing: String,
    pub workflow_file: String,
    /// The Tulpar that planned it.
    pub version: String,
    /// It ran in virtual time: what is called measured is what the simulation gave.
    pub simulated: bool,
    pub provenance: Provenance,
    /// Its asynchronicity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Sizes of container images that are files, by the names that tasks give them.
    #[serde(skip)]
    pub images: BTreeMap<String, u64>,
    #[serde(skip)]
    pub rates: Rates,
    /// The energy of the machine while the run was driven, where that was recorded.
    #[serde(skip)]
    pub joules: Option<f64>,
    /// Of tasks whose I/O was traced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub io: Vec<crate::io::TaskIo>,
}

impl RunFacts {
    /// Its name, marked where it was simulated.
    pub fn title(&self) -> String {
        if self.simulated { format!("{} (simulated)", self.run) } else { self.run.clone() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    #[serde(flatten)]
    pub facts: RunFacts,
    pub workflow: String,
    pub site: String,
    pub nodes: u64,
    pub cpus: f64,
    pub gpus: u64,
    /// As far as their number is known.
    pub tasks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    pub resumed: u64,
    /// Between stops and resumes; in none of the other figures.
    pub paused_seconds: f64,
    pub measured: Measured,
    /// Absent when nothing was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    pub sets: Vec<SetRow>,
    /// Metrics that tasks reported, each over the tasks of its set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    pub characterisation: Characterisation,
    pub efficiency: Vec<Efficiency>,
    pub spent: Spent,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<SearchReport>,
    pub occupation: Occupation,
}

/// Equal tasks, in one row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetRow {
    pub name: String,
    /// As far as their number is known.
    pub tasks: u64,
    /// What one of them asks for, in any of its ways: the least and the most.
    pub cpus: [f64; 2],
    pub gpus: [f64; 2],
    /// Attempts that ended well.
    pub ran: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<f64>,
    pub reused: u64,
    pub failed: u64,
    pub retries: u64,
}

/// Cores and GPUs held over time, by kind of task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occupation {
    pub cpus: f64,
    pub gpus: u64,
    #[serde(flatten)]
    pub columns: Columns,
}

impl RunReport {
    /// Tasks that did not run because their results were known.
    pub fn reused(&self) -> u64 {
        self.sets.iter().map(|set| set.reused).sum()
    }
}

/// Puts a run together. `now` is for one that goes on.
pub fn report(
    facts: RunFacts,
    graph: &Graph,
    timeline: &Timeline,
    gathered: &Gathered,
    forecast: Option<Forecast>,
    now: Option<Timestamp>,
) -> RunReport {
    let plan = graph.plan();
    let occupied = timeline.occupied(graph, now);
    let until = timeline.makespan(now);
    let (milli_cpus, gpus) = kinds::capacity(plan);
    let kinds = Kinds::new(plan, &occupied);
    let cpus = milli_cpus as f64 / 1000.0;
    let mut measured = measured(&occupied, until, milli_cpus, gpus);
    let sets = sets(graph, timeline);
    // A forecast is of all tasks.
    let comparable = forecast.as_ref().filter(|_| sets.iter().all(|set| set.reused == 0));
    if let Some(sequential) = comparable.and_then(Forecast::sequential_seconds).filter(|time| *time > 0.0) {
        measured.improvement = Some(1.0 - measured.makespan_seconds / sequential);
        measured.improvement_against = Some("the sequential mode of the forecast".to_owned());
    }
    let mode = facts.mode.clone().or_else(|| forecast.as_ref()?.mode.clone());
    let characterisation = character::characterise(graph, gathered, &measured, &facts.images);
    let spent = spent::spent(&facts.rates, gathered, &measured, facts.joules);
    RunReport {
        facts: RunFacts { mode, ..facts },
        workflow: plan.workflow.name.clone(),
        site: plan.site.name.clone(),
        nodes: plan.site.nodes.len() as u64,
        cpus,
        gpus,
        tasks: graph.len() as u64,
        started: timeline.started().map(|at| Date::from(at).rfc3339()),
        resumed: timeline.resumed() as u64,
        paused_seconds: seconds(timeline.paused()),
        measured,
        forecast,
        sets,
        metrics: graph.metrics(),
        characterisation,
        efficiency: efficiency::efficiency(gathered),
        spent,
        searches: search::searches(graph, gathered),
        occupation: Occupation { cpus, gpus, columns: Columns::new(&occupied, &kinds, until, MOST_COLUMNS) },
    }
}

/// Where a sequential run of the same workflow is among them, the others are measured against it: real ones against
/// real ones, simulated ones against simulated ones.
pub fn compare(runs: &mut [RunReport]) {
    let sequential = |run: &RunReport| run.facts.mode.as_deref() == Some(SEQUENTIAL);
    let known: Vec<(String, bool, String, f64)> = runs
        .iter()
        .filter(|run| sequential(run) && run.reused() == 0 && run.measured.makespan_seconds > 0.0)
        .map(|run| (run.workflow.clone(), run.facts.simulated, run.facts.run.clone(), run.measured.makespan_seconds))
        .collect();
    for run in runs.iter_mut().filter(|run| !sequential(run) && run.reused() == 0) {
        let same = |known: &&(String, bool, String, f64)| known.0 == run.workflow && known.1 == run.facts.simulated;
        if let Some((_, _, name, time)) = known.iter().find(same) {
            run.measured.improvement = Some(1.0 - run.measured.makespan_seconds / time);
            run.measured.improvement_against = Some(format!("the time of {name}"));
        }
    }
}

fn measured(occupied: &[Occupied], until: u64, milli_cpus: u64, gpus: u64) -> Measured {
    let first = occupied.iter().map(|one| one.start).min();
    let last = occupied.iter().map(|one| one.end).max();
    let execution = first.zip(last).map(|(first, last)| last - first);
    // Integers as long as possible: a million tasks add up exactly.
    let integral = |height: fn(&Occupied) -> u64| -> u128 {
        occupied.iter().map(|one| u128::from(height(one)) * u128::from(one.end - one.start)).sum()
    };
    let utilisation = |held: u128, capacity: u64, unit: f64| {
        let share = |time: u64| match u128::from(capacity) * u128::from(time) {
            0 => 0.0,
            most => held as f64 / most as f64,
        };
        Utilisation {
            capacity: capacity as f64 / unit,
            held_seconds: held as f64 / unit / 1e6,
            of_makespan: share(until),
            of_execution: execution.map(share),
        }
    };
    Measured {
        makespan_seconds: seconds(until),
        execution_seconds: execution.map(seconds),
        first_start_seconds: first.map(seconds),
        cpu: utilisation(integral(|one| one.milli_cpus), milli_cpus, 1000.0),
        gpu: (gpus > 0).then(|| utilisation(integral(|one| one.milli_gpus), gpus * 1000, 1000.0)),
        improvement: None,
        improvement_against: None,
    }
}

fn sets(graph: &Graph, timeline: &Timeline) -> Vec<SetRow> {
    let plan = graph.plan();
    let (names, of) = kinds::by_program(plan);
    let mut rows: Vec<Option<(SetRow, SetTimes)>> = vec![None; names.len()];
    let wanted = plan.wanted();
    for set in (0..plan.workflow.tasks.len()).filter(|set| wanted[*set]).map(SetId::from) {
        let kind = of[set.index()] as usize;
        let task = plan.task(set);
        let variants = task.variants.iter().map(|variant| &variant.request);
        for request in std::iter::once(&task.settings.request).chain(variants) {
            let (cpus, gpus) = held(request);
            let (cpus, gpus) = (cpus as f64 / 1000.0, gpus as f64 / 1000.0);
            let (row, _) = rows[kind].get_or_insert_with(|| (row(&names[kind], cpus, gpus), SetTimes::default()));
            row.cpus = [row.cpus[0].min(cpus), row.cpus[1].max(cpus)];
            row.gpus = [row.gpus[0].min(gpus), row.gpus[1].max(gpus)];
        }
        let Some((row, times)) = &mut rows[kind] else { continue };
        row.tasks += u64::from(graph.count_of(set).unwrap_or(0));
        times.join(&timeline.times(set));
    }
    rows.into_iter().flatten().map(|(row, times)| filled(row, &times)).collect()
}

fn row(name: &str, cpus: f64, gpus: f64) -> SetRow {
    SetRow {
        name: name.to_owned(),
        tasks: 0,
        cpus: [cpus; 2],
        gpus: [gpus; 2],
        ran: 0,
        mean_seconds: None,
        min_seconds: None,
        max_seconds: None,
        reused: 0,
        failed: 0,
        retries: 0,
    }
}

fn filled(row: SetRow, times: &SetTimes) -> SetRow {
    let some = times.good > 0;
    SetRow {
        ran: times.good,
        mean_seconds: some.then(|| seconds(times.total_us) / times.good as f64),
        min_seconds: some.then(|| seconds(times.shortest_us)),
        max_seconds: some.then(|| seconds(times.longest_us)),
        reused: times.reused,
        failed: times.failed,
        retries: times.retries,
        ..row
    }
}
