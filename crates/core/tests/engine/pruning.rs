//! Trials that are ended early or paused because of what they say on the way, and searches with a budget.

use super::Bench;
use std::collections::BTreeMap;
use tulpar_core::engine::{Engine, Explanation, Policy, State};
use tulpar_core::event::{Event, Input};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, Source, Told};
use tulpar_core::units::Timestamp;

/// At step 1 the better half goes on.
const SEARCH: &str = "
workflow: w
tasks:
  search:
    search:
      trials: 3
      minimize: loss
      space: {lr: 'log(1e-5, 1e-1)'}
      pruner: {halving: {least: 1, factor: 2}}
    out: {model: 'model-{trial}.bin'}
    run: train --lr {lr} --trial {trial}
  train:
    in: [search.best, search.trials, search.model]
    run: train --params {best} --table {trials} --from {model}
";

fn pausing(trials: u32) -> String {
    let text = SEARCH.replace("trials: 3", &format!("trials: {trials}")).replace("factor: 2", "factor: 2, pause: true");
    text.replace("    out: {model: 'model", "    checkpoint: state.ckpt\n    out: {model: 'model")
}

impl Bench {
    fn on_the_way(&mut self, trial: u32, step: u64, value: f64) -> Vec<String> {
        let attempt = self.attempt(&format!("search[trial={trial}]"));
        self.tell(Input::Said { attempt, step, value })
    }
}

#[test]
fn a_trial_that_is_worse_at_its_rung_is_pruned_and_its_place_goes_to_the_next() {
    let mut bench = Bench::new(SEARCH);
    bench.begin();
    assert_eq!(bench.on_the_way(1, 1, 0.5), ["Reported { job: JobId(0), step: 1, value: 0.5 }"]);
    // Told again, as after a restart of the driver.
    assert_eq!(bench.on_the_way(1, 1, 0.5), [""; 0]);
    let said = bench.on_the_way(2, 1, 0.9);
    assert_eq!(
        said[1],
        "Curtailed { attempt: 1.1, how: Prune }".replace("1.1", &format!("{:?}", bench.attempt("search[trial=2]")))
    );
    assert_eq!(bench.stops, [(bench.attempt("search[trial=2]"), Ending::Cancelled)]);
    // It writes on until the signal arrives.
    assert_eq!(bench.on_the_way(2, 2, 0.1), [""; 0]);
    let ended = bench.end("search[trial=2]", Ending::Cancelled);
    assert_eq!(ended[1], "pruned search[trial=2]", "{ended:?}");
    assert!(ended.contains(&"start search[trial=3].1 on here-01".to_owned()), "{ended:?}");
    bench.says("search[trial=3]", 0.25);
    let ended = bench.says("search[trial=1]", 0.5);
    assert!(ended.contains(&"start train.1 on here-01".to_owned()), "{ended:?}");
    let inputs = &bench.specs["train"].inputs;
    let Source::Text(table) = &inputs[1].files[0].source else { panic!("{:?}", inputs[1]) };
    assert!(table.lines().nth(2).is_some_and(|line| line.starts_with("2,pruned,,")), "{table}");
    // Of a pruned trial there is no file.
    let models: Vec<&str> = inputs[2].files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(models, ["search[trial=1].bin", "search[trial=3].bin"]);
    assert_eq!(bench.done("train").last().map(String::as_str), Some("run Done"));
}

#[test]
fn a_trial_that_diverges_is_pruned_where_trials_are_and_a_journal_can_say_so() {
    let mut bench = Bench::new(SEARCH);
    bench.begin();
    let attempt = bench.attempt("search[trial=1]");
    let events = bench.engine.step(Timestamp(0), vec![Input::Said { attempt, step: 1, value: f64::NAN }]).events;
    assert!(matches!(events[1], Event::Curtailed { .. }), "{events:?}");
    let line = serde_json::to_string(&events[0]).unwrap();
    let again: Event = serde_json::from_str(&line).unwrap();
    assert!(matches!(again, Event::Reported { step: 1, value, .. } if value.is_nan()), "{line}");
    assert_eq!(bench.on_the_way(1, 2, f64::NAN), [""; 0], "once is enough");
    let ended = bench.end("search[trial=1]", Ending::Cancelled);
    assert_eq!(ended[1], "pruned search[trial=1]", "{ended:?}");
    let mut bench = Bench::new(&SEARCH.replace("      pruner: {halving: {least: 1, factor: 2}}\n", ""));
    bench.begin();
    assert_eq!(bench.on_the_way(1, 1, f64::NAN), [""; 0], "nobody prunes: what it says last counts");
}

#[test]
fn a_journal_with_a_number_that_was_none_is_read_and_its_trial_has_failed() {
    let told: Told = serde_json::from_str(r#"{"values": {"loss": null}, "steps": [[1, 0.5], [2, null]]}"#).unwrap();
    let mut bench = Bench::new(SEARCH);
    bench.begin();
    let attempt = bench.attempt("search[trial=1]");
    let mut report = bench.report(Ending::Exit(0), &["model.bin"]);
    report.told = Some(Box::new(told));
    bench.tell(Input::Ended { attempt, report: Box::new(report) });
    let trial = bench.engine.graph().trial(attempt.job).unwrap();
    assert_eq!(trial.reason.as_deref(), Some("it ended with NaN instead of a number"));
}

#[test]
fn a_trial_that_has_ended_well_before_it_could_be_pruned_is_a_success() {
    let mut bench = Bench::new(SEARCH);
    bench.begin();
    bench.on_the_way(1, 1, 0.5);
    bench.on_the_way(2, 1, 0.9);
    let ended = bench.says("search[trial=2]", 0.125);
    assert!(!ended.iter().any(|line| line.starts_with("pruned")), "{ended:?}");
    let set = bench.engine.plan().set_named("search").unwrap();
    assert_eq!(bench.engine.graph().study(set).unwrap().best().map(|trial| trial.number), Some(1));
}

#[test]
fn after_a_crash_a_pruned_trial_is_told_again_and_not_run_again() {
    let mut bench = Bench::new(SEARCH);
    let mut events = Vec::new();
    let attempts = [0, 1].map(|job| AttemptId { job: tulpar_core::ids::JobId(job), n: 1 });
    for inputs in [
        vec![Input::Begin],
        vec![Input::Said { attempt: attempts[0], step: 1, value: 0.5 }],
        vec![Input::Said { attempt: attempts[1], step: 1, value: 0.9 }],
    ] {
        events.extend(bench.engine.step(Timestamp(0), inputs).events);
    }
    let mut replayed = Engine::new(bench.engine.plan().clone(), Policy { cache: false, ..Policy::default() }).unwrap();
    for event in &events {
        let line = serde_json::to_string(event).unwrap();
        replayed.apply(Timestamp(0), &serde_json::from_str(&line).unwrap());
    }
    assert_eq!(replayed.difference(&bench.engine), None);
    bench.engine = replayed;
    bench.begin();
    assert_eq!(bench.stops, [(attempts[1], Ending::Cancelled)]);
    let ended = bench.end("search[trial=2]", Ending::NodeLost);
    assert_eq!(ended[1], "pruned search[trial=2]");
    let lost = bench.end("search[trial=1]", Ending::NodeLost);
    assert_eq!(lost[1], "retry search[trial=1] at 0 s");
}

#[test]
fn a_paused_trial_gives_its_place_away_and_goes_on_when_it_is_among_the_best_after_all() {
    let mut bench = Bench::new(&pausing(4));
    bench.begin();
    bench.on_the_way(1, 1, 0.5);
    bench.on_the_way(2, 1, 0.7);
    assert_eq!(bench.stops, [(bench.attempt("search[trial=2]"), Ending::Preempted)]);
    let paused = bench.end("search[trial=2]", Ending::Preempted);
    assert_eq!(paused[1], "paused search[trial=2]", "{paused:?}");
    assert_eq!(bench.engine.state(bench.job("search[trial=2]")), State::Paused);
    assert_eq!(bench.engine.explain(bench.job("search[trial=2]")), Explanation::Paused { attempt: 1 });
    assert!(paused.contains(&"start search[trial=3].1 on here-01".to_owned()), "{paused:?}");
    bench.on_the_way(3, 1, 0.8);
    bench.end("search[trial=3]", Ending::Preempted);
    // Now the better half of four are two.
    let said = bench.on_the_way(4, 1, 0.9);
    assert!(said.iter().any(|line| line.starts_with("Continued")), "{said:?}");
    let paused = bench.end("search[trial=4]", Ending::Preempted);
    assert!(paused.contains(&"start search[trial=2].2 on here-01".to_owned()), "{paused:?}");
    bench.says("search[trial=1]", 0.5);
    let ended = bench.says("search[trial=2]", 0.25);
    // Nobody is left who could show that the others are better than they seem.
    let pruned: Vec<&String> = ended.iter().filter(|line| line.ends_with("Pruned")).collect();
    assert_eq!(pruned, ["skipped search[trial=3] Pruned", "skipped search[trial=4] Pruned"]);
    assert!(ended.contains(&"start train.1 on here-01".to_owned()), "{ended:?}");
}

#[test]
fn without_a_checkpoint_there_is_nothing_to_pause() {
    let mut bench = Bench::new(&pausing(4).replace("    checkpoint: state.ckpt\n", ""));
    bench.begin();
    bench.on_the_way(1, 1, 0.5);
    bench.on_the_way(2, 1, 0.7);
    let ended = bench.end("search[trial=2]", Ending::Cancelled);
    assert_eq!(ended[1], "pruned search[trial=2]");
}

#[test]
fn no_trial_begins_when_the_time_of_the_search_is_over() {
    let mut bench = Bench::new(&SEARCH.replace("trials: 3", "time: 60 s"));
    bench.begin();
    bench.wait(59);
    assert!(bench.says("search[trial=1]", 0.5).iter().any(|line| line.starts_with("Asked")));
    bench.wait(1);
    let spent = bench.says("search[trial=2]", 0.5);
    assert!(spent.contains(&"skipped search[trial=5] Spent".to_owned()), "{:?}", &spent[..5]);
    bench.says("search[trial=3]", 0.5);
    let ended = bench.says("search[trial=4]", 0.5);
    assert!(ended.contains(&"start train.1 on here-01".to_owned()), "{ended:?}");
}

#[test]
fn no_trial_begins_when_the_gpu_hours_of_the_search_are_spent() {
    let site = "sites: {here: {nodes: 1, cpus: 2, memory: 8 GB, disk: 1 TB, gpus: 1}}";
    let text = SEARCH
        .replace("trials: 3", "trials: 3\n      gpu_hours: 0.25")
        .replace("    run: train --lr", "    gpus: 1\n    run: train --lr");
    let mut bench = Bench::on(site, &text);
    bench.begin();
    bench.wait(1200);
    // The second was asked for before, so that the device does not wait.
    let ended = bench.says("search[trial=1]", 0.5);
    assert!(ended.contains(&"start search[trial=2].1 on here-01+g0".to_owned()), "{ended:?}");
    assert!(ended.contains(&"skipped search[trial=3] Spent".to_owned()), "{ended:?}");
}

#[test]
fn a_trial_that_breaks_a_constraint_is_not_the_best_and_the_best_few_are_what_others_take() {
    let text = SEARCH
        .replace("      pruner: {halving: {least: 1, factor: 2}}\n", "      constraints: [latency <= 20]\n")
        .replace("search.model]", "search.best(2).model]");
    let mut bench = Bench::new(&text);
    bench.begin();
    assert_eq!(bench.specs["search[trial=1]"].objectives, ["loss", "latency"]);
    for (name, loss, latency) in
        [("search[trial=1]", 0.1, 21.0), ("search[trial=2]", 0.3, 20.0), ("search[trial=3]", 0.2, 5.0)]
    {
        let values = BTreeMap::from([("loss".to_owned(), loss), ("latency".to_owned(), latency)]);
        let mut report = bench.report(Ending::Exit(0), &[&format!("{name}.bin")]);
        report.told = Some(Box::new(Told { values, steps: Vec::new() }));
        bench.tell(Input::Ended { attempt: bench.attempt(name), report: Box::new(report) });
    }
    let inputs = &bench.specs["train"].inputs;
    let Source::Text(best) = &inputs[0].files[0].source else { panic!("{:?}", inputs[0]) };
    assert_eq!(serde_json::from_str::<serde_json::Value>(best).unwrap()["trial"], 3);
    let models: Vec<&str> = inputs[2].files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(models, ["search[trial=3].bin", "search[trial=2].bin"]);
}

#[test]
fn where_no_trial_keeps_the_constraints_nobody_runs_with_an_empty_best() {
    let text = SEARCH
        .replace("      pruner: {halving: {least: 1, factor: 2}}\n", "      constraints: [latency <= 20]\n")
        .replace("trials: 3", "trials: 2")
        .replace("    in: [search.best, search.trials, search.model]\n", "    in: [search.best]\n")
        .replace(" --table {trials} --from {model}", "")
        + "  table:\n    in: [search.trials]\n    run: look {trials}\n  models:\n    in: [search.best(2).model]\n    run: mean {model}\n";
    let mut bench = Bench::new(&text);
    bench.begin();
    let mut ended = Vec::new();
    for (name, loss) in [("search[trial=1]", 0.1), ("search[trial=2]", 0.3)] {
        let values = BTreeMap::from([("loss".to_owned(), loss), ("latency".to_owned(), 21.0)]);
        let mut report = bench.report(Ending::Exit(0), &[&format!("{name}.bin")]);
        report.told = Some(Box::new(Told { values, steps: Vec::new() }));
        ended = bench.tell(Input::Ended { attempt: bench.attempt(name), report: Box::new(report) });
    }
    assert!(ended.contains(&"skipped train Infeasible".to_owned()), "{ended:?}");
    assert!(ended.contains(&"skipped models Infeasible".to_owned()), "{ended:?}");
    let Source::Text(table) = &bench.specs["table"].inputs[0].files[0].source else { panic!() };
    assert_eq!(table.lines().next(), Some("trial,state,loss,latency,feasible,lr"));
    assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("1,complete,0.1,21,false,")), "{table}");
    assert_eq!(bench.done("table").last().map(String::as_str), Some("run Failed"));
}

#[test]
fn what_was_said_on_the_way_is_not_recorded_again_with_the_end() {
    let mut bench = Bench::new(SEARCH);
    bench.begin();
    bench.on_the_way(1, 1, 0.5);
    let mut report = bench.report(Ending::Exit(0), &["model.bin"]);
    let values = BTreeMap::from([("loss".to_owned(), 0.25)]);
    report.told = Some(Box::new(Told { values, steps: vec![(1, 0.5), (2, 0.25)] }));
    let attempt = bench.attempt("search[trial=1]");
    let step = bench.engine.step(Timestamp(0), vec![Input::Ended { attempt, report: Box::new(report) }]);
    let Event::Ended { report, .. } = &step.events[0] else { panic!("{:?}", step.events[0]) };
    assert_eq!(report.told.as_ref().map(|told| told.steps.as_slice()), Some(&[(2, 0.25)][..]));
    assert_eq!(bench.engine.graph().trial(attempt.job).unwrap().reports, [(1, 0.5), (2, 0.25)]);
}
