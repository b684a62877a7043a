//! Searches: trials are asked for when there is room, and what follows from what they say.

use super::Bench;
use std::collections::BTreeMap;
use tulpar_core::event::{Added, Event, Input};
use tulpar_core::hpo::{Outcome, Value, Values};
use tulpar_core::ids::SetId;
use tulpar_core::job::{Ending, Source, Told};

const SEARCH: &str = "
workflow: w
tasks:
  search:
    search: {trials: 3, minimize: loss, seed: 7, space: {lr: log(1e-5, 1e-1), layers: 'int(1, 8)'}}
    out: {model: 'model-{trial}.bin'}
    run: train --lr {lr} --layers {layers} --trial {trial}
  train:
    in: [search.best, search.trials, search.best.model]
    run: train --params {best} --table {trials} --from {model}
";

impl Bench {
    pub(super) fn says(&mut self, name: &str, loss: f64) -> Vec<String> {
        let attempt = self.attempt(name);
        let mut report = self.report(Ending::Exit(0), &[&format!("{name}.bin")]);
        report.told = Some(Box::new(Told { values: BTreeMap::from([("loss".to_owned(), loss)]), steps: Vec::new() }));
        self.tell(Input::Ended { attempt, report: Box::new(report) })
    }
}

#[test]
fn trials_are_asked_for_when_there_is_room_and_the_best_goes_on() {
    let mut bench = Bench::new(SEARCH);
    let begun = bench.begin();
    // Two cores: two trials run and one more is ready, so that no core waits.
    let asked: Vec<&String> = begun.iter().filter(|line| line.starts_with("Asked")).collect();
    assert_eq!(asked.len(), 3, "{begun:?}");
    assert!(begun.contains(&"start search[trial=2].1 on here-01".to_owned()), "{begun:?}");
    assert!(bench.shell_line("search[trial=1]").contains("--trial 1"));
    assert_ne!(bench.shell_line("search[trial=1]"), bench.shell_line("search[trial=2]"));
    bench.says("search[trial=1]", 0.5);
    bench.says("search[trial=2]", 0.25);
    let ended = bench.says("search[trial=3]", 0.75);
    assert!(ended.contains(&"start train.1 on here-01".to_owned()), "{ended:?}");
    let spec = &bench.specs["train"];
    let Source::Text(best) = &spec.inputs[0].files[0].source else { panic!("{:?}", spec.inputs[0]) };
    let best: serde_json::Value = serde_json::from_str(best).unwrap();
    assert_eq!((&best["trial"], &best["values"]["loss"]), (&2.into(), &0.25.into()));
    let Source::Text(table) = &spec.inputs[1].files[0].source else { panic!("{:?}", spec.inputs[1]) };
    assert_eq!(table.lines().next(), Some("trial,state,loss,layers,lr"));
    assert!(table.lines().nth(2).is_some_and(|line| line.starts_with("2,complete,0.25,")), "{table}");
    let model = &spec.inputs[2].files;
    assert_eq!((model.len(), model[0].path.as_str()), (1, "search[trial=2].bin"));
}

#[test]
fn no_more_trials_than_allowed_are_under_way_and_one_that_failed_is_told_so() {
    let mut bench = Bench::new(&SEARCH.replace("trials: 3,", "trials: 3, parallel: 1,"));
    assert_eq!(bench.begin().iter().filter(|line| line.starts_with("Asked")).count(), 1);
    let job = bench.job("search[trial=1]");
    let failed = bench.end("search[trial=1]", Ending::Exit(1));
    assert!(failed.contains(&"failed search[trial=1] Task".to_owned()), "{failed:?}");
    assert_eq!(bench.engine.graph().trial(job).unwrap().reason.as_deref(), Some("exit code 1"));
    bench.says("search[trial=2]", 2.0);
    let ended = bench.says("search[trial=3]", 3.0);
    assert!(ended.contains(&"start train.1 on here-01".to_owned()), "{ended:?}");
    let Source::Text(table) = &bench.specs["train"].inputs[1].files[0].source else { panic!() };
    assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("1,failed,,")), "{table}");
    assert_eq!(bench.done("train").last().map(String::as_str), Some("run Done"));
}

#[test]
fn a_trial_that_failed_says_how_its_last_attempt_ended_and_how_often() {
    let text = SEARCH.replace("    out: {model: 'model", "    retry: 1\n    out: {model: 'model");
    let mut bench = Bench::new(&text.replace("trials: 3,", "trials: 3, parallel: 1,"));
    bench.begin();
    let job = bench.job("search[trial=1]");
    bench.end("search[trial=1]", Ending::Exit(3));
    bench.wait(3600);
    let lacks = Ending::Incomplete(vec!["the number `loss`".into()]);
    bench.end("search[trial=1]", lacks);
    let reason = bench.engine.graph().trial(job).unwrap().reason.clone();
    assert_eq!(reason.as_deref(), Some("did not write the number `loss` (failed 2 times)"));
}

#[test]
fn a_grid_that_is_smaller_than_the_number_of_trials_ends_with_it() {
    let text = SEARCH.replace(
        "space: {lr: log(1e-5, 1e-1), layers: 'int(1, 8)'}",
        "sampler: grid, space: {lr: [0.1, 0.2], layers: [3]}",
    );
    let mut bench = Bench::new(&text);
    let begun = bench.begin();
    assert!(begun.contains(&"skipped search[trial=3] Exhausted".to_owned()), "{begun:?}");
    bench.says("search[trial=1]", 1.0);
    let ended = bench.says("search[trial=2]", 2.0);
    assert!(ended.contains(&"start train.1 on here-01".to_owned()), "{ended:?}");
}

#[test]
fn a_replay_asks_nobody_and_comes_to_the_same() {
    use tulpar_core::engine::{Engine, Policy};
    use tulpar_core::units::Timestamp;
    let mut bench = Bench::new(SEARCH);
    let mut events: Vec<Event> = Vec::new();
    let mut inputs = vec![Input::Begin];
    for loss in [0.5, 0.25, 0.75] {
        let step = bench.engine.step(Timestamp(0), std::mem::take(&mut inputs));
        events.extend(step.events);
        let name =
            format!("search[trial={}]", events.iter().filter(|event| matches!(event, Event::Ended { .. })).count() + 1);
        let mut report = bench.report(Ending::Exit(0), &["model.bin"]);
        report.told =
            Some(Box::new(Told { values: BTreeMap::from([("loss".to_owned(), loss)]), steps: vec![(1, loss)] }));
        inputs.push(Input::Ended { attempt: bench.attempt(&name), report: Box::new(report) });
    }
    events.extend(bench.engine.step(Timestamp(0), inputs).events);
    let mut replayed = Engine::new(bench.engine.plan().clone(), Policy { cache: false, ..Policy::default() }).unwrap();
    for event in &events {
        let line = serde_json::to_string(event).unwrap();
        replayed.apply(Timestamp(0), &serde_json::from_str(&line).unwrap());
    }
    assert_eq!(replayed.difference(&bench.engine), None);
    let set = bench.engine.plan().set_named("search").unwrap();
    let (ours, theirs) = (replayed.graph().study(set).unwrap(), bench.engine.graph().study(set).unwrap());
    assert_eq!(ours.trials(), theirs.trials());
    assert_eq!(ours.best().map(|trial| trial.number), Some(1));
}

#[test]
fn a_search_is_written_as_it_is_read() {
    use tulpar_core::workflow;
    let text = SEARCH
        .replace("seed: 7,", "seed: 7, sampler: gp, pruner: {halving: {least: 2}}, start: [{lr: 0.01, layers: 2}], time: 2 h, gpu_hours: 0.5, constraints: ['size <= 20', loss >= -1], storage: s.log, study: mine,")
        .replace("search.best.model]", "search.best(2).model]");
    let (read, findings) = workflow::read(&text, &BTreeMap::new());
    assert_eq!(findings, []);
    let written = workflow::write(read.as_ref().unwrap());
    let (again, findings) = workflow::read(&written, &BTreeMap::new());
    assert_eq!(findings, [], "{written}");
    let search = |workflow: Option<workflow::Workflow>| workflow.unwrap().tasks[0].search().cloned();
    assert_eq!(search(again), search(read));
}

#[test]
fn a_search_in_which_everything_failed_has_failed() {
    let mut bench = Bench::new(SEARCH);
    bench.begin();
    bench.end("search[trial=1]", Ending::Exit(1));
    bench.end("search[trial=2]", Ending::Exit(1));
    let ended = bench.end("search[trial=3]", Ending::Exit(1));
    assert_eq!(ended.last().map(String::as_str), Some("run Failed"), "{ended:?}");
}

/// One at a time, in order.
const OUTSIDE: &str = "
workflow: w
tasks:
  search:
    search: {trials: 2, parallel: 1, sampler: grid, minimize: loss, space: {x: 'int(1, 8)'}}
    out: {model: 'model-{trial}.bin'}
    run: train {x}
  after:
    in: [search.best, search.trials]
    run: use {best} {trials}
";

fn added(source: &str, x: i64, outcome: Option<Outcome>) -> Input {
    let values = Values::from([("x".to_owned(), Value::Int(x))]);
    let added = Added { source: source.into(), values, steps: Vec::new(), outcome, running: false };
    Input::Added { set: SetId(0), part: 0, added: Box::new(added) }
}

fn running(source: &str, x: i64) -> Input {
    let mut input = added(source, x, None);
    if let Input::Added { added, .. } = &mut input {
        added.running = true;
    }
    input
}

#[test]
fn what_others_run_is_not_tried_here_and_counts_when_it_ends() {
    let mut bench = Bench::new(OUTSIDE);
    bench.begin();
    bench.tell(running("optuna:3", 2));
    bench.tell(running("optuna:3", 2));
    let study = bench.engine.graph().study(SetId(0)).expect("a search");
    assert_eq!((study.trials().len(), study.pending().count()), (2, 2), "known once, and under way");
    bench.says("search[trial=1]", 1.0);
    assert_eq!(bench.shell_line("search[trial=2]"), "train 3", "not 2: others try it");
    bench.tell(added("optuna:3", 2, Some(Outcome::value(0.5))));
    bench.tell(added("optuna:3", 2, Some(Outcome::value(0.25))));
    let study = bench.engine.graph().study(SetId(0)).expect("a search");
    assert_eq!(study.best().map(|trial| (trial.source.as_deref(), trial.values[0])), Some((Some("optuna:3"), 0.5)));
    assert_eq!(study.pending().count(), 1);
}

#[test]
fn what_others_wanted_and_then_ran_themselves_is_not_run_here_and_counts() {
    let mut bench = Bench::new(OUTSIDE);
    bench.begin();
    bench.tell(added("optuna:3", 7, None));
    bench.tell(added("optuna:4", 8, None));
    bench.tell(running("optuna:3", 7));
    bench.tell(added("optuna:4", 8, Some(Outcome::value(0.5))));
    bench.says("search[trial=1]", 1.0);
    assert_eq!(bench.shell_line("search[trial=2]"), "train 2", "neither 7 nor 8: others try them");
    bench.tell(added("optuna:3", 7, Some(Outcome::value(0.25))));
    let study = bench.engine.graph().study(SetId(0)).expect("a search");
    let known: Vec<(Option<&str>, &[f64])> =
        study.trials().iter().map(|trial| (trial.source.as_deref(), trial.values.as_slice())).collect();
    assert_eq!(
        known,
        [(None, &[1.0][..]), (Some("optuna:3"), &[0.25]), (Some("optuna:4"), &[0.5]), (None, &[])],
        "each once"
    );
}

#[test]
fn a_trial_that_was_cancelled_runs_again_after_a_resume_and_its_result_counts() {
    use tulpar_core::event::Stopping;
    let mut bench = Bench::new(&SEARCH.replace("trials: 3,", "trials: 2, parallel: 1,"));
    bench.begin();
    bench.tell(Input::Stop { how: Stopping::Cancel });
    let ended = bench.end("search[trial=1]", Ending::Cancelled);
    assert_eq!(ended.last().map(String::as_str), Some("run Cancelled"), "{ended:?}");
    bench.resume();
    bench.begin();
    bench.says("search[trial=1]", 0.25);
    bench.says("search[trial=2]", 0.5);
    let set = bench.engine.plan().set_named("search").unwrap();
    let study = bench.engine.graph().study(set).unwrap();
    assert_eq!(study.best().map(|trial| (trial.number, trial.values[0])), Some((0, 0.25)));
    assert_eq!(bench.specs["train"].inputs[2].files[0].path, "search[trial=1].bin");
}

#[test]
fn the_trial_by_which_a_search_failed_runs_again_after_a_resume() {
    let mut bench = Bench::new(&SEARCH.replace("trials: 3,", "trials: 2, parallel: 1,"));
    bench.begin();
    bench.end("search[trial=1]", Ending::Exit(1));
    let ended = bench.end("search[trial=2]", Ending::Exit(1));
    assert_eq!(ended.last().map(String::as_str), Some("run Failed"), "{ended:?}");
    bench.resume();
    bench.begin();
    let ended = bench.says("search[trial=2]", 0.5);
    assert!(ended.contains(&"start train.1 on here-01".to_owned()), "{ended:?}");
    let Source::Text(best) = &bench.specs["train"].inputs[0].files[0].source else { panic!() };
    assert!(best.contains("\"trial\": 2"), "{best}");
}

/// Small and fast at once, of which there is no best.
const SEVERAL: &str = "
workflow: w
tasks:
  search:
    search: {trials: 5, parallel: 1, sampler: nsga2, minimize: [loss, size], space: {x: 'float(0, 1)'}}
    out: {model: 'model-{trial}.bin'}
    run: train {x}
  front:
    in: [search.front.model]
    run: show {model}
  two:
    in: [search.best(2).model, search.best]
    run: show {model} {best}
";

#[test]
fn with_several_objectives_the_front_of_what_ran_here_goes_on_and_the_best_few_are_its_ends() {
    let mut bench = Bench::new(SEVERAL);
    bench.begin();
    // Better than all in both; it left no file here.
    let values = Values::from([("x".to_owned(), Value::Float(0.5))]);
    let outcome = Some(Outcome::Complete { values: vec![0.0, 0.0], constraints: vec![] });
    let added = Added { source: "optuna:1".into(), values, steps: Vec::new(), outcome, running: false };
    bench.tell(Input::Added { set: SetId(0), part: 0, added: Box::new(added) });
    for (trial, loss, size) in [(1, 2.0, 2.0), (2, 1.0, 3.0), (3, 4.0, 4.0), (4, 3.0, 1.5), (5, 5.0, 1.0)] {
        let name = format!("search[trial={trial}]");
        let attempt = bench.attempt(&name);
        let mut report = bench.report(Ending::Exit(0), &[&format!("{trial}.bin")]);
        let values = BTreeMap::from([("loss".to_owned(), loss), ("size".to_owned(), size)]);
        report.told = Some(Box::new(Told { values, steps: Vec::new() }));
        bench.tell(Input::Ended { attempt, report: Box::new(report) });
    }
    let paths = |task: &str| -> Vec<String> {
        bench.specs[task].inputs[0].files.iter().map(|file| file.path.clone()).collect()
    };
    assert_eq!(paths("front"), ["1.bin", "2.bin", "4.bin", "5.bin"]);
    assert_eq!(paths("two"), ["2.bin", "5.bin"], "the ends, not the first two");
    let Source::Text(best) = &bench.specs["two"].inputs[1].files[0].source else { panic!() };
    let best: serde_json::Value = serde_json::from_str(best).unwrap();
    assert_eq!((&best["trial"], &best["values"]["size"]), (&2.into(), &3.0.into()));
}

const EACH: &str = "
workflow: w
tasks:
  search:
    for: {data: [a, b]}
    search: {trials: 2, parallel: 1, sampler: grid, minimize: loss, space: {x: 'int(1, 8)'}}
    out: {model: 'model-{data}-{trial}.bin'}
    run: train {data} {x}
  use:
    for: {data: [a, b]}
    in: [search.best, search.best.model]
    run: use {data} {best} {model}
  all:
    in: [search.best, search.trials]
    run: all {best} {trials}
";

#[test]
fn every_element_has_a_search_of_its_own() {
    let mut bench = Bench::new(EACH);
    let begun = bench.begin();
    assert!(begun.contains(&"start search[data=b,trial=1].1 on here-01".to_owned()), "{begun:?}");
    bench.says("search[data=a,trial=1]", 0.5);
    assert_eq!(bench.shell_line("search[data=a,trial=2]"), "train a 2");
    let ended = bench.says("search[data=a,trial=2]", 0.25);
    // It does not wait for the search of the other element.
    assert!(ended.contains(&"start use[data=a].1 on here-01".to_owned()), "{ended:?}");
    let spec = &bench.specs["use[data=a]"];
    let Source::Text(best) = &spec.inputs[0].files[0].source else { panic!("{:?}", spec.inputs[0]) };
    assert!(best.contains("\"trial\": 2"), "{best}");
    assert_eq!(spec.inputs[1].files[0].path, "search[data=a,trial=2].bin");
    bench.done("use[data=a]");
    bench.says("search[data=b,trial=1]", 2.0);
    bench.says("search[data=b,trial=2]", 3.0);
    let spec = &bench.specs["all"];
    let paths: Vec<&str> = spec.inputs[0].files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["search.data=a.best.json", "search.data=b.best.json"]);
    let Source::Text(table) = &spec.inputs[1].files[1].source else { panic!("{:?}", spec.inputs[1]) };
    assert_eq!(&**table, "trial,state,loss,x\n1,complete,2,1\n2,complete,3,2\n");
    let (graph, set) = (bench.engine.graph(), SetId(0));
    let names: Vec<String> = graph.searches_of(set).map(|search| graph.search_name(search)).collect();
    assert_eq!(names, ["search[data=a]", "search[data=b]"]);
    let seeds: Vec<u64> = graph.searches().filter_map(|search| Some(graph.study(search)?.settings().seed)).collect();
    assert_eq!(seeds, [0, 1], "elements look at different places");
}

#[test]
fn an_element_of_which_every_trial_failed_fails_the_run() {
    let mut bench = Bench::new(EACH);
    bench.begin();
    bench.says("search[data=a,trial=1]", 0.5);
    bench.says("search[data=a,trial=2]", 0.25);
    bench.done("use[data=a]");
    bench.end("search[data=b,trial=1]", Ending::Exit(1));
    let ended = bench.end("search[data=b,trial=2]", Ending::Exit(1));
    assert!(ended.iter().any(|line| line.starts_with("skipped use[data=b]")), "{ended:?}");
    assert_eq!(ended.last().map(String::as_str), Some("run Failed"), "{ended:?}");
}

#[test]
fn trials_that_others_add_come_to_the_element_that_they_are_of() {
    let mut bench = Bench::new(EACH);
    bench.begin();
    let Input::Added { added, .. } = added("optuna:1", 7, Some(Outcome::value(0.1))) else { panic!() };
    bench.tell(Input::Added { set: SetId(0), part: 1, added });
    let counts: Vec<usize> = {
        let graph = bench.engine.graph();
        graph.searches().filter_map(|search| Some(graph.study(search)?.trials().len())).collect()
    };
    assert_eq!(counts, [1, 2]);
}

#[test]
fn what_others_ran_is_known_once_and_what_they_want_is_tried_next() {
    let mut bench = Bench::new(OUTSIDE);
    bench.begin();
    assert_eq!(bench.shell_line("search[trial=1]"), "train 1");
    bench.tell(added("optuna:3", 5, Some(Outcome::value(0.125))));
    bench.tell(added("optuna:3", 5, Some(Outcome::value(0.125))));
    bench.tell(added("optuna:4", 99, None));
    bench.tell(added("optuna:5", 7, None));
    let study = bench.engine.graph().study(SetId(0)).expect("a search");
    assert_eq!(study.trials().len(), 2, "twice is once, and what does not fit is left out");
    assert_eq!(study.best().map(|trial| trial.source.as_deref()), Some(Some("optuna:3")));
    bench.says("search[trial=1]", 1.0);
    assert_eq!(bench.shell_line("search[trial=2]"), "train 7");
    bench.says("search[trial=2]", 7.0);
    let study = bench.engine.graph().study(SetId(0)).expect("a search");
    assert_eq!(study.trials()[2].source.as_deref(), Some("optuna:5"));
    let Source::Text(best) = &bench.specs["after"].inputs[0].files[0].source else { panic!() };
    assert!(best.contains("\"trial\": 1"), "the best whose files are here: {best}");
    let Source::Text(table) = &bench.specs["after"].inputs[1].files[0].source else { panic!() };
    assert_eq!(&**table, "trial,state,loss,x\n1,complete,1,1\noptuna:3,complete,0.125,5\n2,complete,7,7\n");
}
