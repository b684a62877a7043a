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
    let failed = bench.end("search[trial=1]", Ending::Exit(1));
    assert!(failed.contains(&"failed search[trial=1] Task".to_owned()), "{failed:?}");
    bench.says("search[trial=2]", 2.0);
    let ended = bench.says("search[trial=3]", 3.0);
    assert!(ended.contains(&"start train.1 on here-01".to_owned()), "{ended:?}");
    let Source::Text(table) = &bench.specs["train"].inputs[1].files[0].source else { panic!() };
    assert!(table.lines().nth(1).is_some_and(|line| line.starts_with("1,failed,,")), "{table}");
    assert_eq!(bench.done("train").last().map(String::as_str), Some("run Done"));
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
    let added = Added { source: source.into(), values, steps: Vec::new(), outcome };
    Input::Added { set: SetId(0), added: Box::new(added) }
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
