//! Virtual time: the loop that all simulations, rollouts and dry runs share, and what a rollout takes for granted.

use super::Bench;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tulpar_core::engine::{Engine, State, Step};
use tulpar_core::event::{Action, Event, Input, Outcome};
use tulpar_core::job::{Ending, Report};
use tulpar_core::units::Timestamp;
use tulpar_core::virtual_time::{self, Oracle, Stopped};

/// Each attempt takes ten seconds.
#[derive(Default)]
struct TenSeconds {
    ends: BTreeMap<Timestamp, Vec<Input>>,
    submitted: usize,
}

impl Oracle for TenSeconds {
    fn perform(&mut self, now: Timestamp, _: &Engine, step: Step) -> ControlFlow<()> {
        for event in &step.events {
            let Event::Submitted { attempt, .. } = event else { continue };
            self.submitted += 1;
            let end = Timestamp(now.0 + 10_000_000);
            let report = Box::new(Report::unstarted(Ending::Exit(0), end));
            self.ends.entry(end).or_default().push(Input::Ended { attempt: *attempt, report });
        }
        match step.actions.iter().any(|action| matches!(action, Action::Finish(Outcome::Failed))) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn next_time(&self) -> Option<Timestamp> {
        self.ends.first_key_value().map(|(at, _)| *at)
    }

    fn take_until(&mut self, now: Timestamp) -> Vec<Input> {
        let later = self.ends.split_off(&Timestamp(now.0 + 1));
        std::mem::replace(&mut self.ends, later).into_values().flatten().collect()
    }
}

const CHAIN: &str = "
workflow: chain
tasks:
  a: {run: a}
  b: {after: [a], run: b}
  c: {after: [b], run: c}
";

fn play(bench: &mut Bench, until: u64) -> (Stopped, usize) {
    let mut oracle = TenSeconds::default();
    let until = Timestamp(until * 1_000_000);
    let stopped = virtual_time::run(&mut bench.engine, &mut oracle, Timestamp(0), vec![Input::Begin], until);
    (stopped, oracle.submitted)
}

#[test]
fn the_time_jumps_from_one_end_to_the_next_until_the_run_is_over() {
    let (stopped, submitted) = play(&mut Bench::new(CHAIN), 1000);
    assert_eq!(stopped, Stopped { at: Timestamp(30_000_000), outcome: Some(Outcome::Done) });
    assert_eq!(submitted, 3);
}

#[test]
fn nothing_happens_after_the_time_that_the_caller_sets() {
    let mut bench = Bench::new(CHAIN);
    let (stopped, submitted) = play(&mut bench, 19);
    assert_eq!(stopped, Stopped { at: Timestamp(10_000_000), outcome: None });
    assert_eq!((submitted, bench.engine.state(bench.job("b"))), (2, State::Submitted));
}

#[test]
fn a_pause_between_two_attempts_passes_although_the_oracle_says_nothing() {
    let mut bench = Bench::new(
        "
workflow: w
tasks:
  a: {retry: {times: 1, on: [failure], pause: 60 s}, run: a}
",
    );
    bench.begin();
    bench.end("a", Ending::Exit(1));
    let (stopped, submitted) = play(&mut bench, 1000);
    assert_eq!(stopped, Stopped { at: Timestamp(70_000_000), outcome: Some(Outcome::Done) });
    assert_eq!(submitted, 1);
}

/// `b` takes a minute after ten seconds of `a`, if its condition holds.
fn forecast(condition: &str) -> u64 {
    let text = format!(
        "
workflow: w
params: {{deep: false}}
tasks:
  a: {{out: {{m: m.json}}, runtime: 10 s, run: 'a {{m}}'}}
  b: {{in: [m], when: {condition}, runtime: 60 s, run: b}}
"
    );
    let mut bench = Bench::new(&text);
    bench.begin();
    bench.engine.forecast(Timestamp(0)).expect("all durations are known").end.0 / 1_000_000
}

#[test]
fn a_rollout_evaluates_conditions_on_parameters() {
    assert_eq!(forecast("deep"), 10);
    assert_eq!(forecast("not deep"), 70);
}

#[test]
fn a_rollout_knows_no_results_and_takes_conditions_on_them_to_hold() {
    assert_eq!(forecast("m.accuracy >= 0.9"), 70);
    assert_eq!(forecast("m.accuracy >= 0.9 and deep"), 10);
}
