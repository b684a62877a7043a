//! The figures of a simulation, as data.

use super::imitate::{Case, Imitated};
use crate::view::SiteSize;
use serde::Serialize;
use std::time::Duration;
use tulpar_core::engine::State;
use tulpar_core::event::Outcome;
use tulpar_core::units::Timestamp;
use tulpar_sim::Group;

#[derive(Serialize)]
pub struct SimulationView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub outcome: Outcome,
    pub tasks: u32,
    pub done: u32,
    /// From the first start to the last end.
    pub makespan_seconds: f64,
    /// Until the last event.
    pub total_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_utilisation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_utilisation: Option<f64>,
    pub cpu_seconds: f64,
    pub gpu_seconds: f64,
    pub mean_wait_seconds: f64,
    pub longest_wait_seconds: f64,
    pub attempts: u64,
    pub evicted: u64,
    pub failed: u64,
    pub seed: u64,
    pub mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<&'static str>,
    pub packing: &'static str,
    pub site: SiteSize,
    /// Task sets of which nothing is known, so that they took the default.
    pub unknown_runtimes: usize,
    pub groups: Vec<GroupView>,
    /// How long it took to simulate.
    #[serde(skip)]
    pub simulated_in: Duration,
    #[serde(skip)]
    pub events: u64,
}

#[derive(Serialize)]
pub struct GroupView {
    pub name: String,
    pub done: u64,
    pub lost: u64,
    pub most_at_once: u64,
    pub waves: u64,
    pub mean_runtime_seconds: f64,
    pub mean_wait_seconds: f64,
    pub longest_wait_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_start_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_end_seconds: Option<f64>,
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
}

impl SimulationView {
    pub(crate) fn new(case: &Case, imitated: &Imitated, unknown_runtimes: usize) -> Self {
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
}
