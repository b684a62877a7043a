//! Order, staleness, stopping.

use super::Bench;
use tulpar_core::engine::{Explanation, State};
use tulpar_core::event::{Because, Blame, Input, Stopping};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::Ending;

const DIAMOND: &str = "
workflow: diamond
tasks:
  top: {out: {t: t.txt}, run: make t}
  left: {in: [t], out: {l: l.txt}, run: 'left {t} {l}'}
  right: {in: [t], out: {r: r.txt}, run: 'right {t} {r}'}
  bottom: {in: [l, r], run: 'join {l} {r}'}
";

#[test]
fn a_task_starts_as_soon_as_its_own_inputs_exist() {
    let mut bench = Bench::new(DIAMOND);
    assert_eq!(bench.begin(), ["start top.1 on here-01"]);
    let lines = bench.end_with("top", Ending::Exit(0), &["t.txt"]);
    assert_eq!(lines, ["end top Exit(0)", "start left.1 on here-01", "start right.1 on here-01"]);
    assert_eq!(bench.shell_line("left"), "left t.txt l.txt");
    assert_eq!(bench.end_with("left", Ending::Exit(0), &["l.txt"]), ["end left Exit(0)"]);
    let lines = bench.end_with("right", Ending::Exit(0), &["r.txt"]);
    assert_eq!(lines, ["end right Exit(0)", "start bottom.1 on here-01"]);
    assert_eq!(bench.done("bottom"), ["end bottom Exit(0)", "run Done"]);
}

#[test]
fn what_hangs_on_a_failure_is_skipped_and_the_rest_goes_on() {
    let mut bench = Bench::new(DIAMOND);
    bench.begin();
    bench.end_with("top", Ending::Exit(0), &["t.txt"]);
    let lines = bench.end("left", Ending::Exit(3));
    assert_eq!(lines, ["end left Exit(3)", "failed left Task", "skipped bottom because of left"]);
    assert_eq!(bench.done("right"), ["end right Exit(0)", "run Failed"]);
}

#[test]
fn a_skipped_task_is_explained_by_the_job_above_that_failed() {
    let mut bench = Bench::new(DIAMOND);
    bench.begin();
    bench.end_with("top", Ending::Exit(0), &["t.txt"]);
    bench.end("left", Ending::Exit(3));
    let Explanation::Settled { state, because, upstream, excused, .. } = bench.engine.explain(bench.job("bottom"))
    else {
        panic!("it is skipped")
    };
    assert_eq!((state, upstream.as_deref(), excused), (State::Skipped, Some("left"), false));
    assert_eq!(because, Some(Because::Upstream(bench.job("left"))));
    let run = bench.engine.run();
    assert_eq!(run.skip_reason(bench.job("bottom")), because.as_ref());
    assert_eq!((run.blame(bench.job("left")), run.blame(bench.job("bottom"))), (Some(Blame::Task), None));
}

#[test]
fn a_report_about_another_attempt_is_stale_and_changes_nothing() {
    let mut bench = Bench::new(DIAMOND);
    bench.begin();
    let job = bench.job("top");
    assert!(bench.tell(Input::Started { attempt: AttemptId { job, n: 7 } }).is_empty());
    assert_eq!(bench.tell(Input::Started { attempt: AttemptId { job, n: 1 } }), ["running top"]);
    assert!(bench.tell(Input::Started { attempt: AttemptId { job, n: 1 } }).is_empty());
    bench.end_with("top", Ending::Exit(0), &["t.txt"]);
    let again = bench.end_with("top", Ending::Exit(1), &[]);
    assert!(again.is_empty(), "{again:?}");
}

#[test]
fn a_waiting_task_is_explained_by_what_it_waits_for() {
    let mut bench = Bench::new(DIAMOND);
    bench.begin();
    let Explanation::Waiting { unmet, total, .. } = bench.engine.explain(bench.job("bottom")) else {
        panic!("bottom waits")
    };
    let names: Vec<&str> = unmet.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, total), (vec!["left", "right"], 2));
}

#[test]
fn draining_lets_what_runs_end_and_starts_nothing() {
    let mut bench = Bench::new(DIAMOND);
    bench.begin();
    assert_eq!(bench.tell(Input::Stop { how: Stopping::Drain }), ["stopping Drain"]);
    let lines = bench.end_with("top", Ending::Exit(0), &["t.txt"]);
    assert_eq!(lines, ["end top Exit(0)", "run Interrupted"]);
    bench.resume();
    assert_eq!(bench.begin(), ["start left.1 on here-01", "start right.1 on here-01"]);
}

#[test]
fn a_failed_run_that_is_resumed_tries_what_failed_again() {
    let mut bench = Bench::new(DIAMOND);
    bench.begin();
    assert_eq!(bench.end("top", Ending::Exit(1)).last().unwrap(), "run Failed");
    bench.resume();
    assert_eq!(bench.begin(), ["start top.2 on here-01"]);
    let lines = bench.end_with("top", Ending::Exit(0), &["t.txt"]);
    assert_eq!(lines[1..], ["start left.1 on here-01", "start right.1 on here-01"]);
}

#[test]
fn cancelling_one_task_skips_what_hangs_on_it() {
    let mut bench = Bench::new(DIAMOND);
    bench.begin();
    bench.end_with("top", Ending::Exit(0), &["t.txt"]);
    let job = bench.job("left");
    assert!(bench.tell(Input::Cancel { job }).is_empty(), "the site is asked first");
    let lines = bench.end("left", Ending::Cancelled);
    assert_eq!(lines, ["end left Cancelled", "cancelled left", "skipped bottom because of left"]);
}

#[test]
fn a_condition_on_a_parameter_or_on_a_result_decides_whether_a_task_runs() {
    let text = "
workflow: conditions
params: {deep: false}
tasks:
  measure: {out: {metrics: m.json}, run: 'measure {metrics}'}
  extra: {when: deep, run: extra}
  ship: {in: [metrics], when: metrics.accuracy >= 0.9, run: ship}
";
    let mut bench = Bench::new(text);
    assert_eq!(bench.begin(), ["skipped extra Condition", "start measure.1 on here-01"]);
    bench.fields.insert(("metrics".into(), "/accuracy".into()), 0.85.into());
    let lines = bench.end_with("measure", Ending::Exit(0), &["m.json"]);
    assert_eq!(lines, ["end measure Exit(0)", "skipped ship Condition", "run Done"]);
}
