//! Everything that `predict` found, as one value for people and programs.

use crate::view::SiteSize;
use serde::Serialize;
use std::time::Duration;
use tulpar_core::asynchrony::{Analysis, RULES, Rule};
use tulpar_core::plan::Plan;
use tulpar_sim::Setting;
use tulpar_sim::advice::{Advised, ByMode, Verdict};

#[derive(Serialize)]
pub(super) struct View {
    pub(super) workflow: String,
    pub(super) file: String,
    pub(super) site: SiteSize,
    pub(super) tasks: u64,
    pub(super) durations: Durations,
    /// Ranks, degrees, times and bounds by the rules below.
    pub(super) model: Analysis,
    pub(super) rules: &'static [Rule],
    /// By the engine in virtual time.
    pub(super) simulated: ByMode,
    /// The mode that advice starts from, and how it was asked to order and pack.
    pub(super) mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) order: Option<&'static str>,
    pub(super) packing: &'static str,
    pub(super) asynchronicity: Verdict,
    #[serde(flatten)]
    pub(super) advised: Advised,
    pub(super) remarks: Vec<String>,
}

/// Where durations come from, in task sets.
#[derive(Serialize)]
pub(super) struct Durations {
    pub(super) declared: usize,
    pub(super) seen_before: usize,
    pub(super) assumed: usize,
    pub(super) assumed_seconds: f64,
    /// The first of them.
    pub(super) assumed_of: Vec<String>,
}

const MOST_NAMES: usize = 10;

impl Durations {
    pub(super) fn new(plan: &Plan, known: &[Option<Duration>], assume: Duration) -> Self {
        let seen_before = plan.expected.iter().map(Option::is_some).chain(std::iter::repeat(false));
        let (mut told, mut seen, mut assumed, mut names) = (0, 0, 0, Vec::new());
        for ((seen_before, known), task) in seen_before.zip(known).zip(&plan.workflow.tasks) {
            match (seen_before, known) {
                (true, _) => seen += 1,
                (false, Some(_)) => told += 1,
                (false, None) => {
                    assumed += 1;
                    if names.len() < MOST_NAMES {
                        names.push(task.name.clone());
                    }
                }
            }
        }
        let assumed_seconds = assume.as_secs_f64();
        Self { declared: told, seen_before: seen, assumed, assumed_seconds, assumed_of: names }
    }
}

impl View {
    #[expect(clippy::too_many_arguments, reason = "each is a part of the one thing that is shown")]
    pub(super) fn new(
        file: String,
        base: &Setting,
        durations: Durations,
        model: Analysis,
        simulated: ByMode,
        asynchronicity: Verdict,
        advised: Advised,
        remarks: Vec<String>,
    ) -> Self {
        Self {
            workflow: base.plan.workflow.name.clone(),
            file,
            site: SiteSize::new(&base.plan.site),
            tasks: model.tasks,
            durations,
            model,
            rules: &RULES,
            simulated,
            mode: base.policy.mode.name(),
            order: base.policy.order.map(|order| order.name()),
            packing: base.policy.packing.name(),
            asynchronicity,
            advised,
            remarks,
        }
    }
}
