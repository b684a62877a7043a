//! What is expected of a run before it starts, for the report that will compare it with what was measured.
//!
//! Only where every duration is known and the plan is small: nobody should wait for it.

use crate::choices::WorldChoice;
use crate::messages::Messages;
use crate::pilots;
use crate::simulate::site::model;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tulpar_core::asynchrony::{Allocation, Analysis, analyse, from_graph};
use tulpar_core::engine::{Mode, Policy};
use tulpar_core::plan::{Graph, Plan};
use tulpar_exec::folder::RunFolder;
use tulpar_report::{Figures, Forecast, ModeForecast};
use tulpar_sim::{Setting, Simulated};

const MOST_TASKS: usize = 20_000;
/// What takes longer than this is not waited for.
const PATIENCE: Duration = Duration::from_millis(400);
const SEED: u64 = 1;

/// `None` when too little is known, or too much is to be done.
pub fn forecast(plan: &Arc<Plan>, policy: &Policy) -> Option<Forecast> {
    let begun = Instant::now();
    let with_pilots = pilots::as_nodes(&plan.site).map(|site| Arc::new(Plan { site, ..Plan::clone(plan) }));
    let plan = with_pilots.as_ref().unwrap_or(plan);
    let known = tulpar_sim::declared(plan);
    let graph = Graph::new(plan.clone()).ok()?;
    if graph.len() > MOST_TASKS || graph.is_empty() || known.iter().any(Option::is_none) {
        return None;
    }
    let seconds: Vec<Option<f64>> = known.iter().map(|known| known.map(|known| known.as_secs_f64())).collect();
    let of_graph = from_graph(&graph, &seconds).ok()?.model;
    let analysis = analyse(&of_graph, &Allocation::of_site(&plan.site));
    let world = model(&plan.site, &WorldChoice::default(), &known, SEED);
    let mut forecast = Forecast { mode: Some(policy.mode.name().to_owned()), ..Forecast::default() };
    for (name, mode) in Mode::ALL {
        let predicted = Some(predicted(&analysis, mode));
        forecast.by_mode.insert(name.to_owned(), ModeForecast { predicted, simulated: None });
    }
    let others = Mode::ALL.into_iter().map(|(_, mode)| mode).filter(|mode| *mode != policy.mode);
    for mode in std::iter::once(policy.mode).chain(others) {
        let setting = Setting::new(plan.clone(), Policy { mode, ..policy.clone() }, world.clone());
        let simulated = setting.simulate_while(|| begun.elapsed() < PATIENCE).filter(|simulated| simulated.done);
        let Some(entry) = forecast.by_mode.get_mut(mode.name()) else { continue };
        entry.simulated = simulated.map(figures);
    }
    let base = forecast.by_mode.get(Mode::Sequential.name()).and_then(|mode| mode.simulated);
    if let Some(base) = base.filter(|base| base.makespan_seconds > 0.0) {
        for mode in forecast.by_mode.values_mut() {
            if let Some(figures) = &mut mode.simulated {
                figures.improvement = Some(1.0 - figures.makespan_seconds / base.makespan_seconds);
            }
        }
    }
    let own = forecast.by_mode.get(policy.mode.name()).cloned().unwrap_or_default();
    (forecast.predicted, forecast.simulated) = (own.predicted, own.simulated);
    Some(forecast)
}

/// Writes it into the folder of a run, if there is one. A run does not fail for want of it.
pub fn keep(run: &RunFolder, plan: &Arc<Plan>, policy: &Policy, messages: &dyn Messages) {
    let Some(forecast) = forecast(plan, policy) else { return };
    let path = run.forecast();
    let text = serde_json::to_vec_pretty(&forecast).expect("a forecast is plain data");
    if let Err(error) = std::fs::write(&path, text) {
        messages.warning(&format!("{}: {error}; the report will have no forecast", path.display()));
    }
}

fn predicted(analysis: &Analysis, mode: Mode) -> Figures {
    let base = analysis.sequential.seconds;
    let seconds = match mode {
        Mode::Sequential => base,
        Mode::Staggered => analysis.asynchronous.seconds,
        Mode::Adaptive => analysis.unstaggered.as_ref().unwrap_or(&analysis.asynchronous).seconds,
    };
    let part = |work: f64, milli: u64| {
        let all = milli as f64 / 1000.0 * seconds;
        (all > 0.0).then(|| (work / all).min(1.0))
    };
    Figures {
        makespan_seconds: seconds,
        cpu_utilisation: part(analysis.bounds.core_seconds, analysis.allocation.milli_cpus()),
        gpu_utilisation: part(analysis.bounds.gpu_seconds, analysis.allocation.milli_gpus()),
        improvement: (base > 0.0).then(|| 1.0 - seconds / base),
    }
}

fn figures(simulated: Simulated) -> Figures {
    Figures {
        makespan_seconds: simulated.seconds,
        cpu_utilisation: simulated.cpu_utilisation,
        gpu_utilisation: simulated.gpu_utilisation,
        improvement: None,
    }
}
