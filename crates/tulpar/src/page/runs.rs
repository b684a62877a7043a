//! Runs: a line each, and one of them with its task sets, its site and what failed.

use super::facts::{RunFacts, SiteFacts};
use super::{Given, Page, Trouble, json};
use crate::replay::{self, Standing};
use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::ids::JobId;
use tulpar_core::provenance::{Metric, Provenance};
use tulpar_core::units::Timestamp;
use tulpar_exec::folder::RunFolder;
use tulpar_report::live::SetNode;
use tulpar_store::{JobFilter, JobLine, JobSort, RunAnswer, SetSummary, Store, StoreError};

/// Failures that are shown with a run; all of them are in the table of jobs.
const MOST_FAILURES: u64 = 20;

/// A run at a glance. Times are microseconds since 1970, or since the beginning of virtual time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RunLine {
    pub(super) run: String,
    /// The run that it is a task of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    /// Runs are called after their workflows.
    pub(super) workflow: String,
    pub(super) standing: Standing,
    pub(super) simulated: bool,
    /// The process that drives it.
    pub(super) driver: Option<u32>,
    /// Its place in the order in which runs were planned.
    pub(super) created: u64,
    pub(super) started: Option<Timestamp>,
    /// Its end, or its last event when nobody drives it.
    pub(super) until: Option<Timestamp>,
    pub(super) tasks: u64,
    pub(super) states: BTreeMap<String, u64>,
    /// Of those that are done.
    pub(super) reused: u64,
    pub(super) resumed: u64,
    pub(super) events: u64,
    pub(super) provenance: Provenance,
    pub(super) metrics: Vec<Metric>,
    /// Lines of its journal that could not be read.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) bad_lines: u64,
    /// Percent of its files that were read, while nothing can be said of it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reading: Option<u8>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl RunLine {
    pub(super) fn new(folder: &RunFolder, created: u64, answer: Option<RunAnswer>, driver: Option<u32>) -> Self {
        let name = folder.name.as_str();
        let inside = name.rsplit_once("/sub/");
        let workflow = match inside.map_or(name, |(_, task)| task).rsplit_once(if inside.is_some() { '.' } else { '-' })
        {
            Some((workflow, number)) if number.parse::<u64>().is_ok() => workflow,
            _ => inside.map_or(name, |(_, task)| task),
        };
        let answer = answer.as_ref();
        RunLine {
            run: name.to_owned(),
            parent: inside.map(|(parent, _)| parent.to_owned()),
            workflow: workflow.to_owned(),
            standing: crate::replay::standing(answer, driver),
            simulated: folder.is_simulated(),
            driver,
            created,
            started: answer.and_then(|answer| answer.started),
            until: answer.and_then(|answer| answer.ended.or(answer.last_at.filter(|_| driver.is_none()))),
            tasks: answer.map_or(0, |answer| answer.jobs.values().sum()),
            states: answer.map(|answer| answer.jobs.clone()).unwrap_or_default(),
            reused: answer.map_or(0, |answer| answer.reused),
            resumed: answer.map_or(0, |answer| answer.resumed),
            events: answer.map_or(0, |answer| answer.events),
            provenance: answer.map(|answer| answer.provenance.clone()).unwrap_or_default(),
            metrics: answer.map(|answer| answer.metrics.clone()).unwrap_or_default(),
            bad_lines: answer.map_or(0, |answer| answer.bad_lines),
            reading: None,
        }
    }
}

#[derive(Serialize)]
pub(super) struct RunsView {
    folder: String,
    version: &'static str,
    /// The clock of the server, to count from.
    now: Timestamp,
    runs: Vec<RunLine>,
}

#[derive(Serialize)]
struct RunView<'a> {
    #[serde(flatten)]
    line: RunLine,
    now: Timestamp,
    workflow_name: &'a str,
    workflow_file: &'a str,
    version: &'a str,
    mode: &'a str,
    site: &'a SiteFacts,
    searches: usize,
    sets: Vec<SetView<'a>>,
    edges: &'a [(u32, u32)],
    /// What failed or is held, the latest first.
    failures: Vec<JobLine>,
    all_failures: u64,
    /// Runs of workflows that are tasks of it.
    inner: Vec<RunLine>,
}

/// The tasks of one kind.
#[derive(Serialize)]
struct SetView<'a> {
    #[serde(flatten)]
    node: &'a SetNode,
    states: BTreeMap<String, u64>,
    reused: u64,
    /// Attempts that ended, and what they used together and at most.
    attempts: u64,
    wall_us: u64,
    longest_us: u64,
    cpu_us: u64,
    /// Absent where nobody looked before the end.
    peak_rss: Option<u64>,
    read_bytes: u64,
    write_bytes: u64,
}

impl Page {
    pub(super) fn runs(&self) -> RunsView {
        RunsView {
            folder: self.project.root().display().to_string(),
            version: env!("CARGO_PKG_VERSION"),
            now: replay::now(),
            runs: self.board.lines(),
        }
    }

    pub(super) fn run(&self, run: &str) -> Given {
        let folder = self.folder(run)?;
        let facts = self.facts.of(&folder)?;
        self.prepare(&folder);
        let line = self.board.line(run).ok_or_else(|| Trouble::NotFound(format!("no run is called `{run}`")))?;
        let (summaries, (mut failures, all_failures)) = match line.events {
            0 => Default::default(),
            _ if line.reading.is_some() => Default::default(),
            _ => self.stores.ask(|store| Ok((store.sets(run)?, failures_of(store, run)?)))?,
        };
        failures.iter_mut().for_each(|line| complete(line, &facts));
        json(&RunView {
            line,
            now: replay::now(),
            workflow_name: &facts.workflow,
            workflow_file: &facts.workflow_file,
            version: &facts.version,
            mode: &facts.mode,
            site: &facts.site,
            searches: facts.searches,
            sets: sets(&facts, &summaries),
            edges: &facts.graph.edges,
            failures,
            all_failures,
            inner: self.board.inside(run),
        })
    }
}

/// What failed for good or is held, the latest first, with the last lines of stderr; and how many there are.
fn failures_of(store: &Store, run: &str) -> Result<(Vec<JobLine>, u64), StoreError> {
    let filter = JobFilter {
        states: vec!["failed".to_owned(), "held".to_owned()],
        sort: JobSort::Since,
        descending: true,
        limit: Some(MOST_FAILURES),
        ..JobFilter::default()
    };
    let all = store.count_jobs(run, &filter)?;
    if all == 0 {
        return Ok((Vec::new(), 0));
    }
    let shown: Vec<JobId> = store.jobs(run, &filter)?.iter().map(|job| job.job).collect();
    Ok((store.job_lines(run, &shown, true)?, all))
}

/// Puts in what only the plan knows: the kind instead of the set, and the node that was chosen.
pub(super) fn complete(line: &mut JobLine, facts: &RunFacts) {
    line.node = facts.place(line.placed, line.host.as_deref()).or_else(|| line.node.take());
    if let Some(kind) = facts.kind_name(line.set.as_deref()) {
        line.set = Some(kind.to_owned());
    }
}

pub(super) fn folded<'a>(facts: &'a RunFacts, summaries: &[SetSummary]) -> Vec<(&'a SetNode, Vec<usize>)> {
    let mut of: Vec<(&SetNode, Vec<usize>)> = facts.graph.nodes.iter().map(|node| (node, Vec::new())).collect();
    for (place, summary) in summaries.iter().enumerate() {
        if let Some(kind) = facts.kind(summary.set.as_deref()) {
            of[kind as usize].1.push(place);
        }
    }
    of
}

fn sets<'a>(facts: &'a RunFacts, summaries: &[SetSummary]) -> Vec<SetView<'a>> {
    let view = |(node, members): (&'a SetNode, Vec<usize>)| {
        let all = || members.iter().map(|place| &summaries[*place]);
        let mut states: BTreeMap<String, u64> = BTreeMap::new();
        for (state, count) in all().flat_map(|summary| &summary.jobs) {
            *states.entry(state.clone()).or_default() += count;
        }
        SetView {
            node,
            states,
            reused: all().map(|summary| summary.reused).sum(),
            attempts: all().map(|summary| summary.attempts).sum(),
            wall_us: all().map(|summary| summary.wall_us.total).sum(),
            longest_us: all().map(|summary| summary.wall_us.max).max().unwrap_or(0),
            cpu_us: all().map(|summary| summary.cpu_us.total).sum(),
            peak_rss: all().map(|summary| summary.peak_rss.max).max().filter(|bytes| *bytes > 0),
            read_bytes: all().map(|summary| summary.read_bytes.total).sum(),
            write_bytes: all().map(|summary| summary.write_bytes.total).sum(),
        }
    };
    folded(facts, summaries).into_iter().map(view).collect()
}
