//! What a simulation came to, for people and as JSON.

use super::imitate::{Case, Imitated};
use crate::print;
use crate::progress::duration;
use crate::view::{SiteSize, count};
use serde::Serialize;
use std::time::Duration;
use tulpar_core::engine::State;
use tulpar_core::event::Outcome;
use tulpar_core::units::Timestamp;
use tulpar_sim::Group;

/// More groups than this are for JSON.
const MOST_ROWS: usize = 40;

#[derive(Serialize)]
pub(super) struct View {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    outcome: Outcome,
    tasks: u32,
    done: u32,
    /// From the first start to the last end.
    pub(super) makespan_seconds: f64,
    /// Until the last event.
    total_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_utilisation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_utilisation: Option<f64>,
    cpu_seconds: f64,
    gpu_seconds: f64,
    mean_wait_seconds: f64,
    longest_wait_seconds: f64,
    attempts: u64,
    evicted: u64,
    failed: u64,
    seed: u64,
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'static str>,
    packing: &'static str,
    site: SiteSize,
    /// Task sets of which nothing is known, so that they took the default.
    unknown_runtimes: usize,
    groups: Vec<GroupView>,
    #[serde(skip)]
    simulated_in: Duration,
    #[serde(skip)]
    events: u64,
}

#[derive(Serialize)]
struct GroupView {
    name: String,
    done: u64,
    lost: u64,
    most_at_once: u64,
    waves: u64,
    mean_runtime_seconds: f64,
    mean_wait_seconds: f64,
    longest_wait_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_start_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_end_seconds: Option<f64>,
}

impl GroupView {
    fn new(group: &Group) -> Self {
        let seconds = |at: Timestamp| at.0 as f64 / 1e6;
        Self {
            name: group.name.clone(),
            done: group.done,
            lost: group.lost,
            most_at_once: group.most_at_once,
            waves: group.waves(),
            mean_runtime_seconds: group.mean_runtime().as_secs_f64(),
            mean_wait_seconds: group.mean_wait().as_secs_f64(),
            longest_wait_seconds: group.longest_wait.as_secs_f64(),
            first_start_seconds: group.first_start.map(seconds),
            last_end_seconds: group.last_end.map(seconds),
        }
    }

    fn row(&self) -> Vec<String> {
        let time = |seconds: f64| duration(Duration::from_secs_f64(seconds));
        let at = |seconds: Option<f64>| seconds.map(|seconds| format!("{seconds:.1}")).unwrap_or_default();
        vec![
            self.name.clone(),
            self.done.to_string(),
            self.most_at_once.to_string(),
            self.waves.to_string(),
            time(self.mean_runtime_seconds),
            time(self.mean_wait_seconds),
            time(self.longest_wait_seconds),
            at(self.first_start_seconds),
            at(self.last_end_seconds),
        ]
    }
}

impl View {
    pub(super) fn new(case: &Case, imitated: &Imitated, unknown_runtimes: usize) -> Self {
        let summary = &imitated.summary;
        let ran = |group: &&Group| group.done + group.lost > 0;
        let longest = summary.groups.iter().map(|group| group.longest_wait).max().unwrap_or_default();
        Self {
            run: None,
            outcome: imitated.outcome,
            tasks: imitated.counts.total(),
            done: imitated.counts.of(State::Done),
            makespan_seconds: summary.makespan().as_secs_f64(),
            total_seconds: summary.last.0 as f64 / 1e6,
            cpu_utilisation: summary.cpu_utilisation(),
            gpu_utilisation: summary.gpu_utilisation(),
            cpu_seconds: summary.cpu_seconds,
            gpu_seconds: summary.gpu_seconds,
            mean_wait_seconds: summary.mean_wait().as_secs_f64(),
            longest_wait_seconds: longest.as_secs_f64(),
            attempts: summary.attempts,
            evicted: summary.evicted,
            failed: summary.failed,
            seed: case.model.seed,
            mode: case.policy.mode.name(),
            order: case.policy.order.map(|order| order.name()),
            packing: case.policy.packing.name(),
            site: SiteSize::new(&case.plan.site),
            unknown_runtimes,
            groups: summary.groups.iter().filter(ran).map(GroupView::new).collect(),
            simulated_in: imitated.real,
            events: imitated.events,
        }
    }

    pub(super) fn print(&self) {
        let site = &self.site;
        let gpus = if site.gpus > 0 { format!(", {}", count(site.gpus, "GPU")) } else { String::new() };
        print::line(&format!("site      {}: {}, {} cores{gpus}", site.name, count(site.nodes, "node"), site.cpus));
        let outcome = match self.outcome {
            Outcome::Done => String::new(),
            other => format!(" ({})", outcome_word(other)),
        };
        print::line(&format!("tasks     {} of {} done{outcome}", self.done, self.tasks));
        let makespan = duration(Duration::from_secs_f64(self.makespan_seconds));
        print::line(&format!("makespan  {:.1} s ({makespan})", self.makespan_seconds));
        print::line(&format!("cores     {} in use", percent(self.cpu_utilisation)));
        if site.gpus > 0 {
            print::line(&format!("GPUs      {} in use", percent(self.gpu_utilisation)));
        }
        let time = |seconds: f64| duration(Duration::from_secs_f64(seconds));
        print::line(&format!(
            "waited    {} in the mean, {} at most",
            time(self.mean_wait_seconds),
            time(self.longest_wait_seconds)
        ));
        if self.evicted + self.failed > 0 {
            print::line(&format!("attempts  {}: {} evicted, {} failed", self.attempts, self.evicted, self.failed));
        }
        if !self.groups.is_empty() {
            print::line("");
            let header = [
                "task",
                "done",
                "at once",
                "waves",
                "run time",
                "mean wait",
                "longest wait",
                "first start s",
                "last end s",
            ];
            let rows: Vec<Vec<String>> = self.groups.iter().take(MOST_ROWS).map(GroupView::row).collect();
            print::table(&header, &rows);
            if self.groups.len() > MOST_ROWS {
                print::note(&format!("and {} more; --json has all", self.groups.len() - MOST_ROWS));
            }
        }
        if self.unknown_runtimes > 0 {
            print::note(&format!(
                "Of {} nothing is known: `runtime:` says how long tasks take, and so do earlier runs; \
                 --default-runtime holds for the rest.",
                count(self.unknown_runtimes, "task set")
            ));
        }
        print::note(&format!("{} events simulated in {}", self.events, duration(self.simulated_in)));
        if let Some(run) = &self.run {
            print::note(&format!("Kept as {run}: `tulpar status {run}` and `tulpar story` work on it."));
        }
    }
}

pub(super) fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
        Outcome::Interrupted => "interrupted",
    }
}

pub(super) fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| format!("{:.1} %", part * 100.0))
}
