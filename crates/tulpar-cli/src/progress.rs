//! One progress display for a run: a live line on a terminal, plain rows in a pipe.
//!
//! It renders what the engine and the events say and keeps only what a mean needs.

use crate::print::{self, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use tulpar::declared;
use tulpar::driving::Ran;
use tulpar::searching;
use tulpar::view::duration;
use tulpar_core::engine::{Engine, State};
use tulpar_core::event::{Because, Event, Outcome, Stopping};
use tulpar_core::ids::{JobId, SetId};
use tulpar_core::job::{Ending, Report};
use tulpar_core::site::NodeKind;
use tulpar_core::units::{Bytes, Timestamp};
use tulpar_exec::driver::Observer;

/// Rows for every task are readable up to here; beyond, a summary row now and then.
const MOST_ROWS: u32 = 200;
/// Tasks whose output folders hold what is not kept are named up to here.
const MOST_LEFT_OUT: u32 = 10;
const SUMMARY_EVERY: Duration = Duration::from_secs(10);

pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    begun: Instant,
    last_summary: Instant,
    last_drawn: Instant,
    /// Wall time and number of finished attempts, by task set.
    walls: BTreeMap<SetId, (Duration, u32)>,
    bytes: u64,
    quiet: bool,
    /// Something in their output folders is not kept.
    tasks_that_left_out: u32,
    /// An attempt that leaves its machine now does not run again.
    cancelling: bool,
}

impl Progress {
    /// `quiet` prints only failures and warnings.
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(8));
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}");
            bar.set_style(style.expect("a valid template").progress_chars("━╸─"));
            bar
        });
        Self {
            bar,
            begun: Instant::now(),
            last_summary: Instant::now(),
            last_drawn: Instant::now() - SUMMARY_EVERY,
            cancelling: false,
            walls: BTreeMap::new(),
            bytes: 0,
            tasks_that_left_out: 0,
            quiet,
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| print::note(text)),
            None => print::note(text),
        }
    }

    fn row(&self, engine: &Engine, text: impl FnOnce() -> String) {
        if self.bar.is_none() && !self.quiet && engine.counts().total() <= MOST_ROWS {
            print::note(&text());
        }
    }

    fn event(&mut self, engine: &Engine, event: &Event) {
        let name = |job: &JobId| engine.graph().name(*job);
        match event {
            Event::Submitted { attempt, .. } if attempt.n > 1 => {
                self.row(engine, || format!("again    {} (attempt {})", name(&attempt.job), attempt.n));
            }
            Event::Submitted { attempt, .. } => {
                let word = if queues(engine) { "queued" } else { "start" };
                self.row(engine, || format!("{word:<8} {}", name(&attempt.job)));
            }
            Event::Started { attempt } if queues(engine) => {
                self.row(engine, || format!("start    {}", name(&attempt.job)));
            }
            Event::Held { attempt, reason } => {
                self.row(engine, || format!("held     {}: {reason}", name(&attempt.job)));
            }
            Event::Released { attempt } if !self.cancelling => {
                self.row(engine, || format!("queued   {} again", name(&attempt.job)))
            }
            Event::Reused { job, run, accepted: Some(attempt), .. } => {
                let text =
                    format!("accepted {}: the files of attempt {attempt} of {run}, without computing again", name(job));
                self.say(&text);
            }
            Event::Reused { job, .. } => {
                self.row(engine, || format!("reused   {}", name(job)));
            }
            Event::Ended { attempt, report, .. } => {
                let wall = Duration::from_micros(report.usage.wall_us);
                self.bytes += report.usage.read_bytes + report.usage.write_bytes;
                if report.ending.is_success() {
                    let sum = self.walls.entry(engine.graph().set_of(attempt.job)).or_default();
                    *sum = (sum.0 + wall, sum.1 + 1);
                    let told = report.told.as_ref().filter(|told| !told.values.is_empty());
                    let said = told.map(|told| format!(": {}", searching::numbers(&told.values))).unwrap_or_default();
                    self.row(engine, || format!("done     {} in {}{said}", name(&attempt.job), duration(wall)));
                    self.left_out(&name(&attempt.job), &report.all_left_out());
                } else {
                    self.ended_badly(engine, attempt.job, attempt.n, report);
                }
            }
            Event::Skipped { job, because: Because::Condition } => {
                self.row(engine, || format!("skipped  {} (its condition is not true)", name(job)));
            }
            Event::Skipped { job, because: Because::Infeasible } => {
                let text = format!("skipped  {} (no trial of the search kept the constraints)", name(job));
                self.say(&Style::Bad.paint(&text, print::colour_on_stderr()));
            }
            Event::Skipped { job, because: Because::Upstream(cause) } => {
                self.row(engine, || format!("skipped  {} (because of {})", name(job), name(cause)));
            }
            Event::Grafted { set, .. } => {
                let count = engine.graph().count_of(*set).unwrap_or(0);
                let task = &engine.plan().task(*set).name;
                self.row(engine, || format!("expanded {task}: {count} tasks"));
            }
            Event::Stopping { how: Stopping::Cancel } => {
                self.cancelling = true;
                self.say("Cancelling the run.");
            }
            _ => {}
        }
        if let Some((job, _)) = event.failure() {
            let tolerated = if engine.is_excused(job) { " (tolerated)" } else { "" };
            let text = format!("failed   {}{tolerated}", name(&job));
            self.say(&Style::Bad.paint(&text, print::colour_on_stderr()));
        }
    }

    fn left_out(&mut self, task: &str, left_out: &[String]) {
        if left_out.is_empty() {
            return;
        }
        self.tasks_that_left_out += 1;
        match self.tasks_that_left_out.cmp(&MOST_LEFT_OUT) {
            Ordering::Less => self.warned(format!("{task}: {}", declared::left_out(left_out, None))),
            Ordering::Equal => self.warned("more tasks leave things out; `tulpar explain TASK` names them".to_owned()),
            Ordering::Greater => {}
        }
    }

    fn ended_badly(&self, engine: &Engine, job: JobId, attempt: u32, report: &Report) {
        if matches!(
            report.ending,
            Ending::Preempted | Ending::Cancelled | Ending::NodeLost | Ending::DriverLost | Ending::Checkpointed
        ) {
            return;
        }
        let name = engine.graph().name(job);
        let made = declared::made(report).map(|made| format!("; it made {made}")).unwrap_or_default();
        let text = format!("{name}, attempt {attempt}: {}{made}", report.ending.words());
        self.say(&Style::Bad.paint(&text, print::colour_on_stderr()));
        for line in report.stderr_tail.lines() {
            self.say(&format!("    {line}"));
        }
        let outputs = engine.spec_context().outputs(job);
        if let Some(words) = declared::made_in_advance(&outputs, &report.stderr_tail) {
            self.say(&format!("    {words}"));
        }
        if made.is_empty() {
            if !report.left_out.is_empty() {
                self.say(&format!("    {}", declared::left_out(&report.left_out, Some(&report.ending))));
            }
            return;
        }
        let advice = declared::advice(&outputs, &report.outputs);
        advice.iter().for_each(|line| self.say(&format!("    {line}")));
        self.say("    Its files are kept: when the declaration is mended, `tulpar run` and `tulpar resume` accept them without computing \
                  again, as long as the command, the inputs and the environment stay the same.");
    }

    fn draw(&mut self, engine: &Engine) {
        let counts = engine.counts();
        let Some(bar) = &self.bar else { return };
        bar.set_length(u64::from(counts.total()));
        bar.set_position(u64::from(counts.settled()));
        let mut parts = Vec::new();
        let states = [
            (State::Failed, "failed"),
            (State::Skipped, "skipped"),
            (State::Held, "held"),
            (State::Backoff, "pausing"),
            (State::Paused, "paused"),
        ];
        for (state, word) in states {
            if counts.of(state) > 0 {
                parts.push(format!("{} {word}", counts.of(state)));
            }
        }
        let mut live = engine.live();
        let running = counts.of(State::Running) + counts.of(State::Submitted);
        if let Some((attempt, ..)) = live.next() {
            let more = if running > 1 { format!(" +{}", running - 1) } else { String::new() };
            parts.push(format!("{}{more}", engine.graph().name(attempt.job)));
        }
        parts.extend(searching::standing(engine));
        parts.push(Bytes(self.bytes).to_string());
        if let Some(left) = self.time_left(engine) {
            parts.push(format!("about {} left", duration(left)));
        }
        let unknown = engine.graph().pending().len();
        if unknown > 0 {
            parts.push(format!("{unknown} task sets not expanded yet"));
        }
        bar.set_message(parts.join(" · "));
    }

    /// What is left at the mean time of each task set, over as many slots as are in use.
    fn time_left(&self, engine: &Engine) -> Option<Duration> {
        let mut left = Duration::ZERO;
        for (set, (sum, count)) in &self.walls {
            let counts = engine.set_counts(*set);
            left += *sum / *count * (counts.total() - counts.settled());
        }
        // A task in the queue of a site computes nothing.
        let slots = engine.counts().of(State::Running).max(1);
        (!self.walls.is_empty() && !left.is_zero()).then(|| left / slots)
    }

    fn summary(&mut self, engine: &Engine) {
        let counts = engine.counts();
        if self.bar.is_some() || self.quiet || counts.total() <= MOST_ROWS {
            return;
        }
        if self.last_summary.elapsed() < SUMMARY_EVERY {
            return;
        }
        self.last_summary = Instant::now();
        let left = self.time_left(engine).map(|left| format!(", about {} left", duration(left)));
        let searches: String = searching::standing(engine).iter().map(|words| format!(", {words}")).collect();
        let held = counts.of(State::Held);
        let held = if held > 0 { format!(", {held} held") } else { String::new() };
        print::note(&format!(
            "{}/{} done, {} running, {} failed{held}, {}{searches}{}",
            counts.of(State::Done),
            counts.total(),
            counts.of(State::Running),
            counts.of(State::Failed),
            Bytes(self.bytes),
            left.unwrap_or_default()
        ));
    }

    /// The last words about a run.
    pub(crate) fn finish(&mut self, ran: &Ran, run: &str) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if self.quiet {
            return;
        }
        let colour = print::colour_on_stderr();
        let word = match ran.outcome {
            Outcome::Done => Style::Good.paint("done", colour),
            Outcome::Failed => Style::Bad.paint("failed", colour),
            Outcome::Cancelled => Style::Warn.paint("cancelled", colour),
            Outcome::Interrupted => Style::Warn.paint("interrupted", colour),
        };
        let mut parts = vec![format!("{} of {} tasks", ran.counts.of(State::Done), ran.counts.total())];
        if ran.reused > 0 {
            parts.push(format!("{} reused", ran.reused));
        }
        for (state, name) in [(State::Failed, "failed"), (State::Skipped, "skipped")] {
            if ran.counts.of(state) > 0 {
                parts.push(format!("{} {name}", ran.counts.of(state)));
            }
        }
        parts.push(format!("in {}", duration(self.begun.elapsed())));
        print::note(&format!("{run}: {word}: {}", parts.join(", ")));
    }
}

impl Observer for Progress {
    fn stepped(&mut self, engine: &Engine, _at: Timestamp, events: &[Event]) {
        for event in events {
            self.event(engine, event);
        }
        if self.last_drawn.elapsed() >= Duration::from_millis(100) {
            self.last_drawn = Instant::now();
            self.draw(engine);
            self.summary(engine);
        }
    }

    fn warned(&mut self, message: String) {
        match &self.bar {
            Some(bar) => bar.suspend(|| print::warning(&message)),
            None => print::warning(&message),
        }
    }

    fn ticked(&mut self, engine: &Engine) {
        self.draw(engine);
        self.summary(engine);
    }
}

/// Between the submission of a task and its start a system with a queue of its own decides.
fn queues(engine: &Engine) -> bool {
    engine.plan().site.nodes.iter().any(|node| matches!(node.kind, NodeKind::Queue(_)))
}
