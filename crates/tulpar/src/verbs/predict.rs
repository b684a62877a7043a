//! `tulpar predict`: what the model says of a workflow on a site, what each mode takes in virtual time, and advice.

mod show;
mod view;

use super::simulate::site;
use super::simulate::source::{self, Source, Wanted};
use crate::failure::{Exit, Failure};
use crate::planning::PlanningArguments;
use crate::prediction::PredictArguments;
use crate::print;
use crate::simulation::WorldArguments;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tulpar_core::asynchrony::{Allocation, Analysis, FromGraph, analyse, from_graph};
use tulpar_core::engine::{Mode, Policy};
use tulpar_core::plan::{Graph, Plan};
use tulpar_sim::advice::{self, ByMode, Runner};
use tulpar_sim::{Setting, Simulated};
use view::{Durations, View};

const SEED: u64 = 1;

/// A live line on a terminal that says how many simulations are over; nothing elsewhere.
struct Gauge(ProgressBar);

impl Gauge {
    fn new(quiet: bool) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
        let style = ProgressStyle::with_template("{spinner} {pos} simulations");
        bar.set_style(style.expect("a valid template"));
        bar.enable_steady_tick(Duration::from_millis(250));
        Self(bar)
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

pub(crate) fn predict(folder: Option<&Path>, arguments: &PredictArguments) -> Result<ExitCode, Failure> {
    let wanted = Wanted {
        workflow: &arguments.workflow,
        several: &arguments.several,
        planning: &PlanningArguments::default(),
        resources: &arguments.resources,
    };
    let Source { workflow_file, mut plan, site, runtimes, .. } = source::source(folder, &wanted)?;
    plan.site = site::site(&site, &arguments.resources)?;
    if plan.site.nodes.is_empty() {
        return Err(Failure::usage_with("the site has no nodes", "say `--cpus N`, or choose one with `--site`"));
    }
    let durations = Durations::new(&plan, &runtimes, arguments.assume);
    // What is assumed here is what the scheduler goes by, too.
    let runtimes: Vec<Option<Duration>> = runtimes.iter().map(|known| known.or(Some(arguments.assume))).collect();
    plan.expected = runtimes.clone();
    let plan = Arc::new(plan);
    let graph = Graph::new(plan.clone()).map_err(|cycle| Failure::usage(cycle.to_string()))?;
    let (analysis, mut remarks) = analysis(&graph, &runtimes)?;
    let world = WorldArguments { default_runtime: Some(arguments.assume), ..WorldArguments::default() };
    let model = site::model(&plan.site, &world, &runtimes, SEED);
    let policy = arguments.scheduling.policy();
    let base = Setting::new(plan.clone(), policy, model);
    let mut budget = arguments.budget;
    let jobs = graph.len() as u64;
    let gauge = Gauge::new(arguments.json);
    let runner = |settings: &[Setting]| parallel(settings, &gauge);
    let simulated = by_mode(&base, jobs, &mut budget, &runner);
    let verdict = advice::verdict(&analysis, &simulated);
    let mut advised = advice::advise(&base, &simulated, &analysis.asynchronous.longest_path, budget, &runner);
    drop(gauge);
    let unsimulated: Vec<&str> =
        Mode::ALL.iter().filter(|(_, mode)| simulated.of(*mode).is_none()).map(|(name, _)| *name).collect();
    // Where a run cannot end, more effort would show no more.
    let ends = simulated.of(base.policy.mode).is_none_or(|own| own.done);
    if !unsimulated.is_empty() && ends {
        let word = if unsimulated.len() == 1 { "mode" } else { "modes" };
        advised.left_out.insert(0, format!("the {word} {}", unsimulated.join(", ")));
    }
    remarks.extend(analysis.remarks.iter().map(|remark| remark.text.clone()));
    let view = View::new(workflow_file, &base, durations, analysis, simulated, verdict, advised, remarks);
    if arguments.json {
        print::json(&view);
    } else {
        show::show(&view, arguments.rules);
    }
    Ok(Exit::Done.into())
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
fn parallel(settings: &[Setting], gauge: &Gauge) -> Vec<Option<Simulated>> {
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
                    gauge.0.inc(1);
                    found.lock().unwrap_or_else(PoisonError::into_inner)[number] = simulated;
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
