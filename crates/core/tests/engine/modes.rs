//! Barriers, limits of sets, wall times, and several workflows in one run.

use super::Bench;
use std::time::Duration;
use tulpar_core::engine::{Explanation, Mode, Order, Policy};

const LOOP: &str = "
workflow: loop
tasks:
  simulate: {for: {i: 1..2, n: 1..2}, iteration: i, out: {x: 'x-{i}-{n}'}, run: 's {x}'}
  train: {for: {i: 1..2}, iteration: i, in: [simulate.x], out: {m: 'm-{i}'}, run: 't {x} {m}'}
";
const WIDE: &str = "sites: {here: {nodes: 1, cpus: 16, memory: 8 GB}}";

fn policy(mode: Mode) -> Policy {
    Policy { cache: false, mode, ..Policy::default() }
}

fn starts(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.strip_prefix("start ")?.split('.').next()).collect()
}

#[test]
fn sequential_runs_one_iteration_after_another_and_rank_after_rank() {
    let mut bench = Bench::with(WIDE, LOOP, policy(Mode::Sequential));
    assert_eq!(starts(&bench.begin()), ["simulate[i=1,n=1]", "simulate[i=1,n=2]"]);
    let Explanation::Barrier { mode, iteration, rank, unsettled } =
        bench.engine.explain(bench.job("simulate[i=2,n=1]"))
    else {
        panic!("a barrier keeps it")
    };
    assert_eq!((mode, iteration, rank, unsettled), (Mode::Sequential, Some(1), 0, 2));
    assert_eq!(starts(&bench.end_with("simulate[i=1,n=1]", tulpar_core::job::Ending::Exit(0), &["x-1-1"])), [""; 0]);
    assert_eq!(
        starts(&bench.end_with("simulate[i=1,n=2]", tulpar_core::job::Ending::Exit(0), &["x-1-2"])),
        ["train[i=1]"]
    );
    assert_eq!(starts(&bench.done("train[i=1]")), ["simulate[i=2,n=1]", "simulate[i=2,n=2]"]);
}

#[test]
fn staggered_iterations_follow_each_other_at_the_distance_of_one_rank() {
    let mut bench = Bench::with(WIDE, LOOP, policy(Mode::Staggered));
    assert_eq!(starts(&bench.begin()), ["simulate[i=1,n=1]", "simulate[i=1,n=2]"]);
    bench.done("simulate[i=1,n=1]");
    assert_eq!(starts(&bench.done("simulate[i=1,n=2]")), ["train[i=1]", "simulate[i=2,n=1]", "simulate[i=2,n=2]"]);
    bench.done("simulate[i=2,n=1]");
    // All of the second iteration's simulations are done, but the rank is not.
    assert_eq!(starts(&bench.done("simulate[i=2,n=2]")), [""; 0]);
    assert_eq!(starts(&bench.done("train[i=1]")), ["train[i=2]"]);
}

#[test]
fn adaptive_knows_nothing_but_data() {
    let mut bench = Bench::with(WIDE, LOOP, policy(Mode::Adaptive));
    assert_eq!(starts(&bench.begin()).len(), 4);
    bench.done("simulate[i=2,n=1]");
    assert_eq!(starts(&bench.done("simulate[i=2,n=2]")), ["train[i=2]"]);
}

#[test]
fn a_failed_rank_does_not_keep_the_barrier_closed() {
    let text = "
workflow: w
tasks:
  make: {for: {i: 1..2}, failures: any, out: {o: 'o-{i}'}, run: 'm {o}'}
  other: {run: other}
  last: {in: [make.o], run: 'l {o}'}
";
    let mut bench = Bench::with(WIDE, text, policy(Mode::Sequential));
    bench.begin();
    bench.done("other");
    bench.end("make[i=1]", tulpar_core::job::Ending::Exit(1));
    assert_eq!(starts(&bench.end_with("make[i=2]", tulpar_core::job::Ending::Exit(0), &["o-2"])), ["last"]);
}

#[test]
fn no_more_tasks_of_a_set_run_than_it_allows() {
    let text = "
workflow: w
tasks:
  fetch: {for: {i: 1..5}, at_most: 2, run: 'f {i}'}
  other: {run: other}
";
    let mut bench = Bench::on(WIDE, text);
    assert_eq!(starts(&bench.begin()), ["fetch[i=1]", "fetch[i=2]", "other"]);
    let Explanation::Ready { at_most, .. } = bench.engine.explain(bench.job("fetch[i=3]")) else { panic!("ready") };
    assert_eq!(at_most, Some(2));
    assert_eq!(starts(&bench.done("fetch[i=2]")), ["fetch[i=3]"]);
}

#[test]
fn what_cannot_end_before_the_wall_time_is_not_started_and_the_run_stops_in_good_order() {
    let text = "
workflow: w
tasks:
  short: {for: {i: 1..2}, cpus: 16, runtime: 40 s, run: 's {i}'}
  long: {cpus: 16, runtime: 90 s, priority: 9, run: l}
";
    let policy = Policy { walltime: Some(Duration::from_secs(80)), ..policy(Mode::Adaptive) };
    let mut bench = Bench::with(WIDE, text, policy);
    assert_eq!(starts(&bench.begin()), ["short[i=1]"]);
    bench.wait(40);
    assert_eq!(starts(&bench.done("short[i=1]")), ["short[i=2]"]);
    bench.wait(35);
    assert_eq!(bench.done("short[i=2]"), ["end short[i=2] Exit(0)", "stopping Drain", "run Interrupted"]);
}

#[test]
fn what_still_runs_at_the_wall_time_is_interrupted_in_time_to_save_its_state() {
    let text = "
workflow: w
tasks:
  train: {runtime: 500 s, checkpoint: c.bin, run: t}
";
    let policy = Policy { walltime: Some(Duration::from_secs(100)), ..policy(Mode::Adaptive) };
    let mut bench = Bench::with(WIDE, text, policy);
    assert_eq!(starts(&bench.begin()), ["train"]);
    assert_eq!(bench.engine.next_deadline().map(|at| at.0), Some(95_000_000));
    assert_eq!(bench.wait(95), ["stopping Interrupt"]);
}

#[test]
fn the_order_can_be_chosen() {
    let text = "
workflow: w
tasks:
  a: {cpus: 16, runtime: 1 s, run: a}
  b: {cpus: 15, runtime: 9 s, out: {o: o}, run: 'b {o}'}
  c: {cpus: 1, in: [b.o], runtime: 1 s, run: 'c {o}'}
";
    for (order, first) in [
        (Order::CriticalPath, "b"),
        (Order::Oldest, "a"),
        (Order::Breadth, "a"),
        (Order::Longest, "b"),
        (Order::Largest, "a"),
    ] {
        let mut bench = Bench::with(WIDE, text, Policy { order: Some(order), ..policy(Mode::Adaptive) });
        assert_eq!(starts(&bench.begin()), [first], "{order:?}");
    }
}

#[test]
fn what_a_run_learns_about_durations_changes_what_goes_first() {
    let text = "
workflow: w
tasks:
  a: {for: {i: 1..3}, cpus: 16, run: 'a {i}'}
  b: {for: {i: 1..3}, cpus: 16, runtime: 60 s, run: 'b {i}'}
";
    let mut bench = Bench::on(WIDE, text);
    assert_eq!(starts(&bench.begin()), ["a[i=1]"]);
    // It took no time, so what is known to take a minute goes before the others of it.
    assert_eq!(starts(&bench.done("a[i=1]")), ["b[i=1]"]);
}
