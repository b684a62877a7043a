//! Everything that `predict` found, as one value for people and programs.

use crate::choices::WorldChoice;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::simulate::source::Source;
use crate::simulate::{SimulateRequest, site};
use crate::view::SiteSize;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tulpar_core::asynchrony::{Allocation, FromGraph, analyse, from_graph};
use tulpar_core::asynchrony::{Analysis, RULES, Rule};
use tulpar_core::engine::{Mode, Policy};
use tulpar_core::plan::Graph;
use tulpar_core::plan::Plan;
use tulpar_sim::Setting;
use tulpar_sim::Simulated;
use tulpar_sim::advice::{self, Runner};
use tulpar_sim::advice::{Advised, ByMode, Verdict};

#[derive(Serialize)]
pub struct PredictionView {
    pub workflow: String,
    pub file: String,
    pub site: SiteSize,
    pub tasks: u64,
    pub durations: Durations,
    /// Ranks, degrees, times and bounds by the rules below.
    pub model: Analysis,
    pub rules: &'static [Rule],
    /// By the engine in virtual time.
    pub simulated: ByMode,
    /// The mode that advice starts from, and how it was asked to order and pack.
    pub mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<&'static str>,
    pub packing: &'static str,
    pub asynchronicity: Verdict,
    #[serde(flatten)]
    pub advised: Advised,
    pub remarks: Vec<String>,
}

/// Where durations come from, in task sets.
#[derive(Serialize)]
pub struct Durations {
    pub declared: usize,
    pub seen_before: usize,
    pub assumed: usize,
    pub assumed_seconds: f64,
    /// The first of them.
    pub assumed_of: Vec<String>,
}

const MOST_NAMES: usize = 10;

impl Durations {
    pub fn new(plan: &Plan, known: &[Option<Duration>], assume: Duration) -> Self {
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

impl PredictionView {
    #[expect(clippy::too_many_arguments, reason = "each is a part of the one thing that is shown")]
    pub fn new(
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

const SEED: u64 = 1;

/// What the model says of a workflow on a site, what each mode takes in virtual time, and advice. Tasks of which nothing is known take
/// `assume`, at most `budget` jobs are simulated, and `over` is called after each simulation.
pub fn predict(
    request: &SimulateRequest,
    assume: Duration,
    mut budget: u64,
    over: &(dyn Fn() + Sync),
    messages: &dyn Messages,
) -> Result<PredictionView, Failure> {
    let Source { workflow_file, mut plan, site, runtimes, .. } = request.source(messages)?;
    plan.site = site::site(&site, &request.resources)?;
    if plan.site.nodes.is_empty() {
        return Err(Failure::usage_with("the site has no nodes", "say `--cpus N`, or choose one with `--site`"));
    }
    let durations = Durations::new(&plan, &runtimes, assume);
    // What is assumed here is what the scheduler goes by, too.
    let runtimes: Vec<Option<Duration>> = runtimes.iter().map(|known| known.or(Some(assume))).collect();
    plan.expected = runtimes.clone();
    let plan = Arc::new(plan);
    let graph = Graph::new(plan.clone()).map_err(|cycle| Failure::usage(cycle.to_string()))?;
    let (analysis, mut remarks) = analysis(&graph, &runtimes)?;
    let world = WorldChoice { default_runtime: Some(assume), ..WorldChoice::default() };
    let model = site::model(&plan.site, &world, &runtimes, SEED);
    let policy = request.policy.clone();
    let base = Setting::new(plan.clone(), policy, model);
    let jobs = graph.len() as u64;
    let runner = |settings: &[Setting]| parallel(settings, over);
    let simulated = by_mode(&base, jobs, &mut budget, &runner);
    let verdict = advice::verdict(&analysis, &simulated);
    let mut advised = advice::advise(&base, &simulated, &analysis.asynchronous.longest_path, budget, &runner);
    let unsimulated: Vec<&str> =
        Mode::ALL.iter().filter(|(_, mode)| simulated.of(*mode).is_none()).map(|(name, _)| *name).collect();
    // Where a run cannot end, more effort would show no more.
    let ends = simulated.of(base.policy.mode).is_none_or(|own| own.done);
    if !unsimulated.is_empty() && ends {
        let word = if unsimulated.len() == 1 { "mode" } else { "modes" };
        advised.left_out.insert(0, format!("the {word} {}", unsimulated.join(", ")));
    }
    remarks.extend(analysis.remarks.iter().map(|remark| remark.text.clone()));
    let view = PredictionView::new(workflow_file, &base, durations, analysis, simulated, verdict, advised, remarks);
    Ok(view)
}

/// What the model says, and what the reader should know of how it came to that.
fn analysis(graph: &Graph, runtimes: &[Option<Duration>]) -> Result<(Analysis, Vec<String>), Failure> {
    let seconds: Vec<Option<f64>> = runtimes.iter().map(|known| known.map(|known| known.as_secs_f64())).collect();
    let FromGraph { model, remarks } =
        from_graph(graph, &seconds).map_err(|error| Failure::usage(error.to_string()))?;
    let plan: &Plan = graph.plan();
    let analysis = analyse(&model, &Allocation::of_site(&plan.site));
    Ok((analysis, remarks.into_iter().map(|remark| remark.text).collect()))
}

/// The mode that was asked for first, the others while there is budget.
fn by_mode(base: &Setting, jobs: u64, budget: &mut u64, runner: &Runner<'_>) -> ByMode {
    let own = base.policy.mode;
    let others = Mode::ALL.into_iter().map(|(_, mode)| mode).filter(|mode| *mode != own);
    let mut settings: Vec<(Mode, Setting)> = Vec::new();
    for mode in std::iter::once(own).chain(others) {
        let policy = Policy { mode, ..base.policy.clone() };
        let setting = Setting { policy, ..base.clone() };
        if let Some(left) = budget.checked_sub(advice::cost(&setting, jobs)) {
            *budget = left;
            settings.push((mode, setting));
        }
    }
    let (modes, settings): (Vec<Mode>, Vec<Setting>) = settings.into_iter().unzip();
    let mut found = ByMode::default();
    for (mode, simulated) in modes.into_iter().zip(runner(&settings)) {
        found.set(mode, simulated);
    }
    found
}

/// Several settings on all cores; which is over first does not matter.
fn parallel(settings: &[Setting], over: &(dyn Fn() + Sync)) -> Vec<Option<Simulated>> {
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get()).min(settings.len());
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Option<Simulated>>> = Mutex::new(vec![None; settings.len()]);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(setting) = settings.get(number) else { return };
                    let simulated = setting.simulate();
                    over();
                    found.lock().unwrap_or_else(PoisonError::into_inner)[number] = simulated;
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
