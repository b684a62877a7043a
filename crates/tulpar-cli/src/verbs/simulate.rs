//! `tulpar simulate`: a workflow in virtual time on a modelled site, with the very engine of real runs.

mod gauge;
mod show;
mod sweep;

use crate::failure::Exit;
use crate::print;
use crate::simulation::SimulateArguments;
use crate::terminal::Terminal;
use gauge::Gauge;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tulpar::Failure;
use tulpar::simulate::source::Source;
use tulpar::simulate::{SimulateRequest, simulate_read};
use tulpar_core::event::Outcome;

pub(crate) fn simulate(folder: Option<&Path>, arguments: &SimulateArguments) -> Result<ExitCode, Failure> {
    let request = arguments.request(folder);
    let source = request.source(&Terminal)?;
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
    one(source, &request, arguments.json, &stopped)
}

fn one(source: Source, request: &SimulateRequest, json: bool, stopped: &AtomicBool) -> Result<ExitCode, Failure> {
    let mut gauge = Gauge::new(json);
    let view = simulate_read(source, request, &Terminal, |engine, at| {
        gauge.show(engine, at);
        if stopped.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    gauge.finish();
    let Some(view) = view? else {
        print::note("Stopped; nothing was kept.");
        return Ok(Exit::Interrupted.into());
    };
    if json {
        print::json(&view);
    } else {
        show::print(&view);
    }
    Ok(match view.outcome {
        Outcome::Done => Exit::Done,
        Outcome::Failed => Exit::WorkflowFailed,
        Outcome::Cancelled | Outcome::Interrupted => Exit::Cancelled,
    }
    .into())
}
