//! Results taken as they come, and the newest of them: loops that learn while they run.

use super::Bench;
use std::collections::BTreeMap;
use std::sync::Arc;
use tulpar_core::engine::{BatchProgress, Engine, Explanation, Policy, State};
use tulpar_core::event::{Event, Input, Stopping};
use tulpar_core::ids::SetId;
use tulpar_core::job::Ending;
use tulpar_core::plan::Plan;
use tulpar_core::units::Timestamp;
use tulpar_core::workflow;

const SITE: &str = "sites: {here: {nodes: 1, cpus: 8, memory: 8 GB, disk: 1 TB}}";

const BATCHES: &str = "
workflow: batches
tasks:
  simulate: {for: {n: 1..5}, failures: any, retry: 0, out: {frames: 'frames-{n}'}, run: 'simulate {n}'}
  train: {for: {batch: frames by 2 as ready}, out: {model: 'model-{batch.index}'}, run: 'train {batch}'}
  last: {in: [model], run: 'last {model}'}
";

fn bench(text: &str) -> Bench {
    let mut bench = Bench::on(SITE, text);
    bench.begin();
    bench
}

fn simulated(bench: &mut Bench, n: u32) -> Vec<String> {
    bench.end_with(&format!("simulate[n={n}]"), Ending::Exit(0), &[&format!("frames-{n}")])
}

#[test]
fn a_batch_is_due_when_so_many_results_are_there_whichever_they_are() {
    let mut bench = bench(BATCHES);
    assert_eq!(simulated(&mut bench, 4), ["end simulate[n=4] Exit(0)"]);
    let explanation = bench.engine.explain(bench.job("train[batch=1]"));
    let Explanation::Waiting { unmet, batch, .. } = explanation else { panic!("{explanation:?}") };
    assert_eq!(unmet, []);
    assert_eq!(batch, Some(BatchProgress { of: "simulate".into(), arrived: 1, by: 2 }));
    assert_eq!(simulated(&mut bench, 2), ["end simulate[n=2] Exit(0)", "start train[batch=1].1 on here-01"]);
    assert_eq!(bench.shell_line("train[batch=1]"), "train frames-2 frames-4");
    assert_eq!(simulated(&mut bench, 5), ["end simulate[n=5] Exit(0)"]);
    assert_eq!(simulated(&mut bench, 1), ["end simulate[n=1] Exit(0)", "start train[batch=2].1 on here-01"]);
    assert_eq!(bench.shell_line("train[batch=2]"), "train frames-1 frames-5");
    // The last has what is left.
    assert_eq!(simulated(&mut bench, 3), ["end simulate[n=3] Exit(0)", "start train[batch=3].1 on here-01"]);
    assert_eq!(bench.shell_line("train[batch=3]"), "train frames-3");
    let parents = bench.engine.graph().parents(bench.job("train[batch=1]"));
    assert_eq!(parents, [bench.job("simulate[n=2]"), bench.job("simulate[n=4]")]);
    bench.end_with("train[batch=1]", Ending::Exit(0), &["model-1"]);
    bench.end_with("train[batch=3]", Ending::Exit(0), &["model-3"]);
    let lines = bench.end_with("train[batch=2]", Ending::Exit(0), &["model-2"]);
    assert_eq!(lines, ["end train[batch=2] Exit(0)", "start last.1 on here-01"]);
    assert_eq!(bench.shell_line("last"), "last model-1 model-2 model-3");
}

#[test]
fn batches_that_stay_empty_because_of_tolerated_failures_are_skipped_and_excused() {
    let mut bench = bench(BATCHES);
    simulated(&mut bench, 5);
    bench.end("simulate[n=1]", Ending::Exit(1));
    bench.end("simulate[n=2]", Ending::Exit(1));
    assert_eq!(simulated(&mut bench, 3), ["end simulate[n=3] Exit(0)", "start train[batch=1].1 on here-01"]);
    let lines = bench.end("simulate[n=4]", Ending::Exit(1));
    assert_eq!(
        lines,
        [
            "end simulate[n=4] Exit(1)",
            "failed simulate[n=4] Task",
            "skipped train[batch=2] because of simulate[n=1]",
            "skipped train[batch=3] because of simulate[n=1]",
        ]
    );
    let lines = bench.end_with("train[batch=1]", Ending::Exit(0), &["model-1"]);
    assert_eq!(lines, ["end train[batch=1] Exit(0)", "start last.1 on here-01"]);
    assert_eq!(bench.done("last"), ["end last Exit(0)", "run Done"]);
}

#[test]
fn after_a_failure_that_counts_full_batches_run_and_the_others_wait_for_another_run() {
    let mut bench = bench(&BATCHES.replace("failures: any, ", ""));
    bench.end("simulate[n=1]", Ending::Exit(1));
    simulated(&mut bench, 5);
    assert_eq!(simulated(&mut bench, 4), ["end simulate[n=4] Exit(0)", "start train[batch=1].1 on here-01"]);
    simulated(&mut bench, 3);
    let lines = simulated(&mut bench, 2);
    let skipped = "skipped train[batch=3] because of simulate[n=1]";
    assert_eq!(lines[..2], ["end simulate[n=2] Exit(0)", skipped]);
    assert_eq!(lines.last().map(String::as_str), Some("start train[batch=2].1 on here-01"));
    bench.end_with("train[batch=1]", Ending::Exit(0), &["model-1"]);
    bench.end_with("train[batch=2]", Ending::Exit(0), &["model-2"]);
    assert_eq!(bench.engine.state(bench.job("last")), State::Skipped);
    bench.resume();
    bench.engine.check().expect("invariants hold");
    assert_eq!(bench.begin(), ["start simulate[n=1].2 on here-01"]);
    assert_eq!(simulated(&mut bench, 1), ["end simulate[n=1] Exit(0)", "start train[batch=3].1 on here-01"]);
    assert_eq!(bench.shell_line("train[batch=3]"), "train frames-1");
}

#[test]
fn a_batch_has_all_combinations_of_the_other_variables() {
    let text = "
workflow: grid
tasks:
  simulate: {for: {n: 1..4}, out: {frames: 'frames-{n}'}, run: 'simulate {n}'}
  train:
    for: {lr: [a, b], batch: frames by 2 as ready, seed: 1..2}
    out: {model: 'model-{lr}-{batch.index}-{seed}'}
    run: train {batch}
";
    let mut bench = bench(text);
    simulated(&mut bench, 1);
    let lines = simulated(&mut bench, 3);
    let started = ["a,batch=1,seed=1", "a,batch=1,seed=2", "b,batch=1,seed=1", "b,batch=1,seed=2"];
    let started = started.map(|which| format!("start train[lr={which}].1 on here-01"));
    assert_eq!(lines[1..], started);
}

#[test]
fn an_equal_batch_has_an_equal_key_whatever_the_order_of_its_results() {
    let key = |first: u32, second: u32| {
        let mut bench = bench(BATCHES);
        simulated(&mut bench, first);
        simulated(&mut bench, second);
        bench.engine.spec_context().key(bench.job("train[batch=1]")).digest()
    };
    assert_eq!(key(1, 4), key(4, 1));
    assert_ne!(key(1, 4), key(1, 3));
}

const LOOP: &str = "
workflow: loop
tasks:
  simulate:
    for: {n: 1..6}
    at_most: 2
    in: {model: {from: train.model, latest: true}}
    out: {frames: 'frames-{n}'}
    run: 'simulate {n} --model {model} {model.count}'
  train: {for: {batch: frames by 2 as ready}, out: {model: 'model-{batch.index}'}, run: 'train {batch}'}
";

#[test]
fn a_task_takes_the_newest_result_at_the_moment_it_is_handed_over_and_waits_for_none() {
    let mut bench = bench(LOOP);
    assert_eq!(bench.shell_line("simulate[n=1]"), "simulate 1 --model  0");
    simulated(&mut bench, 1);
    simulated(&mut bench, 2);
    assert_eq!(bench.shell_line("simulate[n=4]"), "simulate 4 --model  0");
    let lines = bench.end_with("train[batch=1]", Ending::Exit(0), &["model-1"]);
    assert_eq!(lines, ["end train[batch=1] Exit(0)"]);
    simulated(&mut bench, 4);
    assert_eq!(bench.shell_line("simulate[n=5]"), "simulate 5 --model model-1 1");
    // What it was given stays what it has, whatever comes later.
    simulated(&mut bench, 3);
    bench.end_with("train[batch=2]", Ending::Exit(0), &["model-2"]);
    let given = |name: &str| {
        let graph = bench.engine.graph();
        let train = bench.engine.plan().set_named("train").expect("it is there");
        graph.version(bench.job(name), 0, train).map(|maker| graph.name(maker))
    };
    assert_eq!(given("simulate[n=1]"), None);
    assert_eq!(given("simulate[n=5]").as_deref(), Some("train[batch=1]"));
}

#[test]
fn another_attempt_takes_what_is_newest_then() {
    let mut bench = bench(&LOOP.replace("at_most: 2", "at_most: 2\n    retry: 2"));
    simulated(&mut bench, 1);
    simulated(&mut bench, 2);
    bench.end_with("train[batch=1]", Ending::Exit(0), &["model-1"]);
    bench.end("simulate[n=3]", Ending::Exit(1));
    bench.wait(3600);
    simulated(&mut bench, 4);
    assert_eq!(bench.engine.attempts(bench.job("simulate[n=3]")), 2);
    assert_eq!(bench.shell_line("simulate[n=3]"), "simulate 3 --model model-1 1");
}

#[test]
fn the_version_that_an_attempt_was_given_is_recorded() {
    let mut bench = bench(LOOP);
    simulated(&mut bench, 1);
    simulated(&mut bench, 2);
    bench.end_with("train[batch=1]", Ending::Exit(0), &["model-1"]);
    let attempt = bench.attempt("simulate[n=3]");
    let report = bench.report(Ending::Exit(0), &["frames-3"]);
    let step = bench.engine.step(Timestamp(0), vec![Input::Ended { attempt, report: Box::new(report) }]);
    let given = |event: &Event| match event {
        Event::Submitted { versions, .. } => Some(versions.clone()),
        _ => None,
    };
    let versions: Vec<_> = step.events.iter().filter_map(given).collect();
    let expected = BTreeMap::from([("model".to_owned(), bench.job("train[batch=1]"))]);
    assert_eq!(versions, [expected]);
}

#[test]
fn a_task_that_takes_the_newest_is_never_taken_from_the_cache() {
    let mut bench = Bench::with(SITE, LOOP, Policy::default());
    // Nobody is asked: what is asked would be missed first.
    assert_eq!(bench.begin(), ["start simulate[n=1].1 on here-01", "start simulate[n=2].1 on here-01"]);
    simulated(&mut bench, 1);
    let publication = bench.engine.publication(bench.job("simulate[n=1]"), false);
    assert_eq!(publication.key, None);
    simulated(&mut bench, 2);
    bench.end_with("train[batch=1]", Ending::Exit(0), &["model-1"]);
    assert!(bench.engine.publication(bench.job("train[batch=1]"), false).key.is_some());
}

#[test]
fn what_is_queued_is_skipped_once_the_newest_result_is_good_enough() {
    let text = LOOP.replace("out: {frames", "when: model.loss > 0.1\n    out: {frames").replace("1..6", "1..40");
    let mut bench = bench(&text);
    // Before there is a result, nothing speaks against it.
    assert_eq!(bench.engine.set_counts(SetId(0)).of(State::Submitted), 2);
    simulated(&mut bench, 1);
    simulated(&mut bench, 2);
    bench.fields = BTreeMap::from([(("model".into(), "/loss".into()), serde_json::json!(0.5))]);
    bench.end_with("train[batch=1]", Ending::Exit(0), &["model-1"]);
    assert_eq!(bench.engine.set_counts(SetId(0)).of(State::Skipped), 0);
    simulated(&mut bench, 3);
    simulated(&mut bench, 4);
    bench.fields = BTreeMap::from([(("model".into(), "/loss".into()), serde_json::json!(0.05))]);
    bench.end_with("train[batch=2]", Ending::Exit(0), &["model-2"]);
    let counts = bench.engine.set_counts(SetId(0));
    assert_eq!([State::Done, State::Submitted].map(|state| counts.of(state)), [4, 2]);
    for _ in 0..10 {
        bench.wait(1);
    }
    assert_eq!(bench.engine.set_counts(SetId(0)).of(State::Skipped), 34);
    simulated(&mut bench, 5);
    let lines = simulated(&mut bench, 6);
    assert!(lines.contains(&"skipped train[batch=20] because of simulate[n=7]".to_owned()), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("start train[batch=3].1 on here-01"));
    assert_eq!(bench.end_with("train[batch=3]", Ending::Exit(0), &["model-3"]).last().unwrap(), "run Done");
}

#[test]
fn an_interrupted_run_has_the_same_batches_when_it_is_resumed() {
    let mut bench = bench(BATCHES);
    simulated(&mut bench, 4);
    bench.tell(Input::Stop { how: Stopping::Drain });
    bench.resume();
    bench.begin();
    simulated(&mut bench, 1);
    assert_eq!(bench.shell_line("train[batch=1]"), "train frames-1 frames-4");
}

fn cycle(text: &str) -> Option<String> {
    let (read, _) = workflow::read(text, &BTreeMap::new());
    let plan = Plan::new(read.expect("a workflow"), Vec::new(), Default::default());
    Engine::new(Arc::new(plan), Policy::default()).err().map(|cycle| cycle.to_string())
}

#[test]
fn a_loop_is_none_where_the_newest_is_taken_and_is_one_otherwise() {
    assert_eq!(cycle(LOOP), None);
    let waiting = LOOP.replace("{from: train.model, latest: true}", "train.model");
    assert_eq!(cycle(&waiting).as_deref(), Some("tasks wait for each other in a circle: train → simulate → train"));
}
