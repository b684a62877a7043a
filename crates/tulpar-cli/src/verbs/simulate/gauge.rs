//! A live line that says how far a simulation is.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use tulpar::view::duration;
use tulpar_core::engine::{Engine, State};
use tulpar_core::units::Timestamp;

/// A live line on a terminal; nothing elsewhere.
pub(super) struct Gauge {
    bar: Option<ProgressBar>,
    drawn: Instant,
}

impl Gauge {
    pub(super) fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(8));
            let style = ProgressStyle::with_template("simulating {bar:24} {pos}/{len} {wide_msg}");
            bar.set_style(style.expect("a valid template").progress_chars("━╸─"));
            bar
        });
        Self { bar, drawn: Instant::now() }
    }

    pub(super) fn show(&mut self, engine: &Engine, at: Timestamp) {
        let Some(bar) = &self.bar else { return };
        if self.drawn.elapsed() < Duration::from_millis(100) {
            return;
        }
        self.drawn = Instant::now();
        let counts = engine.counts();
        bar.set_length(u64::from(counts.total()));
        bar.set_position(u64::from(counts.settled()));
        let running = counts.of(State::Running);
        bar.set_message(format!("{} of virtual time, {running} running", duration(Duration::from_micros(at.0))));
    }

    /// Of a sweep, how many simulations are over.
    pub(super) fn count(&mut self, over: usize, of: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(of as u64);
            bar.set_position(over as u64);
            bar.set_message("simulations");
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
