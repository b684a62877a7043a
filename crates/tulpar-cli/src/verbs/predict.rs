//! `tulpar predict`: what the model says of a workflow on a site, what each mode takes in virtual time, and advice.

mod show;

use crate::failure::Exit;
use crate::prediction::PredictArguments;
use crate::print;
use crate::terminal::Terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tulpar::Failure;

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
    let gauge = Gauge::new(arguments.json);
    let over = || gauge.0.inc(1);
    let request = arguments.request(folder);
    let view = tulpar::prediction::predict(&request, arguments.assume, arguments.budget, &over, &Terminal)?;
    drop(gauge);
    if arguments.json {
        print::json(&view);
    } else {
        show::show(&view, arguments.rules);
    }
    Ok(Exit::Done.into())
}
