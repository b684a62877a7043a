//! `tulpar simulate`: a workflow in virtual time on a modelled site, with the very engine of real runs.

mod imitate;
mod keep;
mod show;
pub(super) mod site;
pub(super) mod source;
mod sweep;

use crate::failure::{Exit, Failure};
use crate::print;
use crate::simulation::SimulateArguments;
use imitate::{Case, Gauge, Imitated};
use keep::Keeper;
use show::View;
use source::{Source, Wanted};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tulpar_core::event::Outcome;

const USUAL_SEED: u64 = 1;

pub(crate) fn simulate(folder: Option<&Path>, arguments: &SimulateArguments) -> Result<ExitCode, Failure> {
    let source = source::source(folder, &wanted(arguments))?;
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        // A second one ends the program at once, should the first not be heard.
        let registered = signal_hook::flag::register_conditional_shutdown(signal, 130, stopped.clone())
            .and_then(|_| signal_hook::flag::register(signal, stopped.clone()));
        registered.map_err(Failure::Launch)?;
    }
    if !arguments.sweep.is_empty() || arguments.repeat.is_some() {
        return sweep::sweep(source, arguments, &stopped);
    }
    if arguments.csv {
        return Err(Failure::usage_with("`--csv` is the table of a sweep", "say what to vary: `--sweep gpus=1,2`"));
    }
    one(source, arguments, &stopped)
}

fn wanted(arguments: &SimulateArguments) -> Wanted<'_> {
    Wanted {
        workflow: &arguments.workflow,
        several: &arguments.several,
        planning: &arguments.planning,
        resources: &arguments.varied.resources,
    }
}

fn one(source: Source, arguments: &SimulateArguments, stopped: &AtomicBool) -> Result<ExitCode, Failure> {
    let Some((view, exit)) = keep_one(source, arguments, stopped)? else {
        print::note("Stopped; nothing was kept.");
        return Ok(Exit::Interrupted.into());
    };
    if arguments.json {
        print::json(&view);
    } else {
        view.print();
    }
    Ok(exit.into())
}

/// A simulation whose run is kept and of which nothing is printed: its name, and from the first start to the last end in
/// seconds.
pub(super) fn kept(folder: Option<&Path>, arguments: &SimulateArguments) -> Result<(String, f64), Failure> {
    let source = source::source(folder, &wanted(arguments))?;
    let never = AtomicBool::new(false);
    let view = keep_one(source, arguments, &never)?.map(|(view, _)| view);
    let named = view.and_then(|view| Some((view.run.clone()?, view.makespan_seconds)));
    named.ok_or_else(|| Failure::Bug("a simulation was not kept".into()))
}

/// How long a simulation takes from the first start to the last end, in seconds. Nothing is printed.
pub(super) fn makespan(folder: Option<&Path>, arguments: &SimulateArguments) -> Result<f64, Failure> {
    let source = source::source(folder, &wanted(arguments))?;
    let view = keep_one(source, arguments, &AtomicBool::new(false))?;
    view.map(|(view, _)| view.makespan_seconds).ok_or_else(|| Failure::Bug("nobody stopped a simulation".into()))
}

fn keep_one(
    mut source: Source,
    arguments: &SimulateArguments,
    stopped: &AtomicBool,
) -> Result<Option<(View, Exit)>, Failure> {
    let varied = &arguments.varied;
    source.plan.site = site::site(&source.site, &varied.resources)?;
    let seed = varied.world.seed.unwrap_or(USUAL_SEED);
    let model = site::model(&source.plan.site, &varied.world, &source.runtimes, seed);
    let Source { project, workflow_file, plan, runtimes, .. } = source;
    let unknown = runtimes.iter().filter(|runtime| runtime.is_none()).count();
    let case = Case { plan: Arc::new(plan), policy: imitate::policy(&varied.scheduling), model };
    let mut keeper = match arguments.no_save {
        true => None,
        false => Some(Keeper::start(&project, &case.plan)?),
    };
    let mut gauge = Gauge::new(arguments.json);
    let first = keeper.as_ref().map(|keeper| keeper.first(&case.plan, seed));
    let imitated = imitate::imitate(&case, first.as_ref(), |engine, at, events| {
        if let Some(keeper) = &mut keeper {
            keeper.append(events)?;
        }
        gauge.show(engine, at);
        Ok(if stopped.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    gauge.finish();
    let Some(imitated) = imitated? else { return Ok(None) };
    let mut view = View::new(&case, &imitated, unknown);
    if let Some(keeper) = keeper {
        view.run = Some(keeper.finish(&case, workflow_file, &view)?);
    }
    Ok(Some((view, exit(&imitated))))
}

fn exit(imitated: &Imitated) -> Exit {
    match imitated.outcome {
        Outcome::Done => Exit::Done,
        Outcome::Failed => Exit::WorkflowFailed,
        Outcome::Cancelled | Outcome::Interrupted => Exit::Cancelled,
    }
}
