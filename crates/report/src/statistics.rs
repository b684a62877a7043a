//! A run in the tables that users of `pegasus-statistics` know, with the names of its columns.
//!
//! A task is a node of the workflow as it was written; a job is one of the plan, which may run several tasks, or only
//! move files. An invocation is one task of one attempt.

mod output;

pub use output::{StatisticsTable, tables};

use crate::character::is_auxiliary;
use crate::kinds;
use crate::ledger::{Came, Entry, Ledger};
use crate::measured::seconds;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::calendar::Date;
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{Ending, TransferKind, Usage};
use tulpar_core::plan::Graph;
use tulpar_core::units::Timestamp;
use tulpar_core::workflow::Task;
use tulpar_core::workflow::planned::Work;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counted {
    pub succeeded: u64,
    pub failed: u64,
    pub incomplete: u64,
    pub total: u64,
    pub retries: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobRow {
    pub job: String,
    pub attempt: u32,
    pub site: String,
    /// Wall time of its tasks, without the files that were moved around them.
    pub kickstart: f64,
    /// Cores that it held.
    pub mult: f64,
    pub cpu_time: f64,
    /// From submission to start.
    pub queue_time: f64,
    /// As the site saw it.
    pub runtime: f64,
    /// Of a job with several tasks, and what of it none of these took.
    pub seqexec: Option<f64>,
    pub exitcode: i32,
    pub hostname: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub total: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransformationRow {
    pub transformation: String,
    pub successful: bool,
    pub count: u64,
    /// Absent, as the next two, where nobody measured it.
    pub runtime: Option<Range>,
    /// Megabytes.
    pub memory: Option<Range>,
    /// CPU time for each of wall time.
    pub cpu: Option<Range>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HourRow {
    pub date: String,
    pub host: String,
    pub count: u64,
    pub runtime: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    pub run: String,
    /// Nothing of it really ran.
    pub simulated: bool,
    pub workflow: String,
    pub tasks: Counted,
    pub jobs: Counted,
    pub sub_workflows: Counted,
    /// How often the run was taken up again.
    pub workflow_retries: u64,
    pub wall_seconds: f64,
    /// Tasks, each times the cores it held; and jobs, as the submit side saw them.
    pub cumulative_seconds: f64,
    pub cumulative_submit_side_seconds: f64,
    pub badput_seconds: f64,
    pub badput_submit_side_seconds: f64,
    /// Files whose content was compared with what their maker wrote, when they were pulled.
    pub files_compared: u64,
    pub job_rows: Vec<JobRow>,
    pub transformations: Vec<TransformationRow>,
    pub hours: Vec<HourRow>,
}

/// Over how long `time` sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Period {
    #[default]
    Hour,
    Day,
}

/// What only the caller knows.
#[derive(Clone, Debug, Default)]
pub struct StatisticsFacts {
    pub run: String,
    pub simulated: bool,
    /// Seconds that it was driven.
    pub wall_seconds: f64,
    pub period: Period,
    /// Task sets that are workflows of their own.
    pub sub_workflows: Vec<bool>,
    /// The machines that attempts really ran on.
    pub hosts: FxHashMap<AttemptId, String>,
}

#[derive(Default)]
struct Sum {
    count: u64,
    runtime: Mean,
    memory: Mean,
    cpu: Mean,
}

/// Of the invocations of which it is known.
#[derive(Default)]
struct Mean {
    range: Option<Range>,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        let known = self.range.get_or_insert(Range { min: value, max: value, mean: 0.0, total: 0.0 });
        known.min = known.min.min(value);
        known.max = known.max.max(value);
        known.total += value;
        self.count += 1;
    }

    fn range(&self) -> Option<Range> {
        self.range.map(|range| Range { mean: range.total / self.count.max(1) as f64, ..range })
    }
}

/// One task of an attempt.
struct Invocation<'i> {
    task: &'i Task,
    usage: &'i Usage,
    started: Timestamp,
    wall_us: u64,
    good: bool,
}

pub fn statistics(facts: &StatisticsFacts, graph: &Graph, ledger: &Ledger) -> Statistics {
    let plan = graph.plan();
    let mut all = Statistics {
        run: facts.run.clone(),
        simulated: facts.simulated,
        workflow: plan.workflow.name.clone(),
        tasks: Counted::default(),
        jobs: Counted::default(),
        sub_workflows: Counted::default(),
        workflow_retries: ledger.resumed,
        wall_seconds: facts.wall_seconds,
        cumulative_seconds: 0.0,
        cumulative_submit_side_seconds: 0.0,
        badput_seconds: 0.0,
        badput_submit_side_seconds: 0.0,
        files_compared: 0,
        job_rows: Vec::with_capacity(ledger.entries.len()),
        transformations: Vec::new(),
        hours: Vec::new(),
    };
    for job in (0..graph.len()).map(JobId::from) {
        let set = graph.set_of(job);
        let task = plan.task(set);
        let came = ledger.came(job);
        all.jobs.add(came, 1);
        if facts.sub_workflows.get(set.index()).copied().unwrap_or(false) {
            all.sub_workflows.add(came, 1);
        } else if !is_auxiliary(task) {
            all.tasks.add(came, tasks_of(task));
        }
    }
    let mut sums: BTreeMap<(String, bool), Sum> = BTreeMap::new();
    let mut hours: BTreeMap<(String, String), (u64, f64)> = BTreeMap::new();
    for entry in &ledger.entries {
        all.enter(facts, graph, entry, &mut sums, &mut hours);
    }
    let row = |((transformation, successful), sum): ((String, bool), Sum)| TransformationRow {
        transformation,
        successful,
        count: sum.count,
        runtime: sum.runtime.range(),
        memory: sum.memory.range(),
        cpu: sum.cpu.range(),
    };
    all.transformations = sums.into_iter().map(row).collect();
    let hour = |((date, host), (count, runtime))| HourRow { date, host, count, runtime };
    all.hours = hours.into_iter().map(hour).collect();
    all
}

fn tasks_of(task: &Task) -> u64 {
    match task.run.planned().map(|planned| &planned.work) {
        Some(Work::Cluster(cluster)) => cluster.members.len() as u64,
        _ => 1,
    }
}

impl Counted {
    fn add(&mut self, came: Came, count: u64) {
        self.total += count;
        match came {
            Came::Done | Came::Reused => self.succeeded += count,
            Came::Failed => self.failed += count,
            Came::Open | Came::Skipped => self.incomplete += count,
        }
    }
}

impl Statistics {
    fn enter(
        &mut self,
        facts: &StatisticsFacts,
        graph: &Graph,
        entry: &Entry,
        sums: &mut BTreeMap<(String, bool), Sum>,
        hours: &mut BTreeMap<(String, String), (u64, f64)>,
    ) {
        let plan = graph.plan();
        let task = plan.task(graph.set_of(entry.attempt.job));
        let again = entry.attempt.n > 1;
        self.jobs.retries += u64::from(again);
        if again && !is_auxiliary(task) {
            self.tasks.retries += tasks_of(task);
        }
        let Some((started, end)) = entry.ran() else { return };
        let node = entry.node.and_then(|node| plan.site.nodes.get(node.index())).map(|node| node.name.as_str());
        let hostname = facts.hosts.get(&entry.attempt).map(String::as_str).or(node).unwrap_or("-").to_owned();
        let mult = f64::from(entry.request.milli_cpus) * f64::from(entry.request.nodes) / 1000.0;
        let good = end.ending.is_success();
        let runtime = seconds(end.at.since(started).as_micros() as u64);
        let invocations = invocations(task, entry);
        let kickstart: f64 = invocations.iter().map(|one| seconds(one.wall_us)).sum();
        let cpu_time: f64 = invocations.iter().map(|one| seconds(one.usage.user_us + one.usage.system_us)).sum();
        let several = tasks_of(task) > 1;
        if good {
            self.cumulative_seconds += kickstart * mult;
            self.cumulative_submit_side_seconds += runtime * mult;
        } else {
            self.badput_seconds += kickstart * mult;
            self.badput_submit_side_seconds += runtime * mult;
        }
        let lost_seconds = seconds(entry.pieces.lost_us(started));
        self.badput_seconds += lost_seconds * mult;
        self.badput_submit_side_seconds += lost_seconds * mult;
        let transfers = end.script.iter().flat_map(|script| &script.transfers);
        self.files_compared += transfers.filter(|one| one.what == TransferKind::Pull).map(|one| one.files).sum::<u64>();
        for one in invocations {
            let sum = sums.entry((kinds::kind_name(one.task), one.good)).or_default();
            sum.count += 1;
            if one.wall_us > 0 {
                sum.runtime.add(seconds(one.wall_us));
            }
            if let Some(peak) = one.usage.peak_memory() {
                sum.memory.add(peak as f64 / 1e6);
            }
            if one.usage.is_measured() {
                sum.cpu.add((one.usage.user_us + one.usage.system_us) as f64 / one.wall_us.max(1) as f64);
            }
            let when = hours.entry((date(one.started, facts.period), hostname.clone())).or_default();
            when.0 += 1;
            when.1 += seconds(one.wall_us);
        }
        self.job_rows.push(JobRow {
            job: graph.name(entry.attempt.job),
            attempt: entry.attempt.n,
            site: entry.site.to_string(),
            kickstart,
            mult,
            cpu_time,
            queue_time: (seconds(started.since(entry.submitted).as_micros() as u64) - lost_seconds).max(0.0),
            runtime,
            seqexec: several.then_some(runtime),
            exitcode: end.code(),
            hostname,
        });
    }
}

/// `2026-11-16 09`, or the day alone.
fn date(at: Timestamp, period: Period) -> String {
    let Date { year, month, day, hour, .. } = Date::from(at);
    match period {
        Period::Hour => format!("{year}-{month:02}-{day:02} {hour:02}"),
        Period::Day => format!("{year}-{month:02}-{day:02}"),
    }
}

fn invocations<'i>(task: &'i Task, entry: &'i Entry) -> Vec<Invocation<'i>> {
    let Some((started, end)) = entry.ran() else { return Vec::new() };
    let members = end.script.as_ref().map_or(&[][..], |script| &script.members);
    let whole = || Invocation {
        task,
        usage: &end.usage,
        started,
        // When an attempt ended whose driver was lost, nobody knows.
        wall_us: if end.ending == Ending::DriverLost { end.usage.wall_us } else { end.wall_us(started) },
        good: end.ending.is_success(),
    };
    let cluster = match task.run.planned().map(|planned| &planned.work) {
        Some(Work::Operation(_)) => return vec![whole()],
        Some(Work::Cluster(cluster)) => Some(cluster),
        _ => None,
    };
    if members.is_empty() {
        return if cluster.is_some() { Vec::new() } else { vec![whole()] };
    }
    let by_name: FxHashMap<&str, &Task> = cluster
        .into_iter()
        .flat_map(|cluster| &cluster.members)
        .map(|member| (member.task.name.as_str(), &member.task))
        .collect();
    let ran = members.iter().filter(|member| !member.earlier);
    ran.map(|member| Invocation {
        task: by_name.get(member.name.as_str()).copied().unwrap_or(task),
        usage: &member.usage,
        started: member.started,
        wall_us: match member.usage.wall_us {
            0 => member.ended.since(member.started).as_micros() as u64,
            measured => measured,
        },
        good: member.ending.is_success(),
    })
    .collect()
}
