//! `.expr` profiles in the engine: what the attempts of a job ask for; and the same, with hooks, in the native language.

use super::conversion::convert;
use std::collections::BTreeMap;
use std::sync::Arc;
use tulpar_core::catalogue;
use tulpar_core::engine::{Engine, Policy};
use tulpar_core::event::{Action, Answer, Cached, Event, Input, Reason};
use tulpar_core::job::{Ending, Report, Usage};
use tulpar_core::plan::Plan;
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;
use tulpar_core::workflow::{self, Hook, Occasion, Quantity, RetryExpression};

/// What each attempt asks for when all of them end like this.
fn requests(profiles: &str, ending: &Ending) -> Vec<Request> {
    let workflow = format!(
        "pegasus: '5.0'\nname: w\njobs: [{{id: a, name: x, uses: [], profiles: {{dagman: {{RETRY: 3}}, pegasus: {{{profiles}}}}}}}]\n"
    );
    let transformations = "transformations: [{name: x, sites: [{name: local, pfn: /bin/x, type: installed}]}]";
    let (workflow, findings) = convert(&workflow, "", transformations, "");
    assert_eq!(findings, []);
    let (found, _) = catalogue::read("sites: {here: {cpus: 4, memory: 8 GB}}");
    let plan = Plan::new(workflow, Vec::new(), found.sites.into_iter().next().expect("a site"));
    let mut engine =
        Engine::new(Arc::new(plan), Policy { cache: false, fail_fast: false, ..Policy::default() }).expect("no cycle");
    let mut asked = Vec::new();
    let mut inputs = vec![Input::Begin];
    for second in 0..1000 {
        let step = engine.step(Timestamp(second * 1_000_000), std::mem::take(&mut inputs));
        for action in step.actions {
            if let Action::Look { job, .. } = action {
                let cached = Cached::Miss(Reason::CacheOff);
                inputs.push(Input::Looked { job, answer: Answer { cached, fields: Default::default() } });
            }
        }
        for event in step.events {
            if let Event::Submitted { attempt, request, .. } = event {
                asked.push(request);
                let report = Report {
                    ending: ending.clone(),
                    started: Timestamp(0),
                    ended: Timestamp(0),
                    usage: Usage::default(),
                    outputs: Vec::new(),
                    stderr_tail: String::new(),
                    script: Default::default(),
                    told: None,
                    left_out: Vec::new(),
                };
                inputs.push(Input::Ended { attempt, report: Box::new(report) });
            }
        }
        if inputs.is_empty() {
            inputs.push(Input::Clock);
        }
    }
    asked
}

fn mebibytes(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.memory.0 >> 20).collect()
}

#[test]
fn each_attempt_asks_for_what_the_expression_says() {
    let profiles = "memory: 100, memory.expr: memory * 3 if attempt > 1 else memory + 1, cores: 1, cores.expr: 'min(cores + 1, 3)'";
    let asked = requests(profiles, &Ending::Exit(1));
    assert_eq!(mebibytes(&asked), [100, 101, 303, 909]);
    let cores: Vec<u32> = asked.iter().map(|request| request.milli_cpus / 1000).collect();
    assert_eq!(cores, [1, 2, 3, 3]);
}

#[test]
fn an_expression_wins_over_the_usual_growth_and_never_over_the_nodes() {
    assert_eq!(mebibytes(&requests("memory: 100", &Ending::Memory)), [100, 200, 400, 800]);
    assert_eq!(mebibytes(&requests("memory: 100, memory.expr: memory + 50", &Ending::Memory)), [100, 150, 200, 250]);
    let asked = requests("memory: 100, memory.expr: memory * 1000, gpus.expr: '7'", &Ending::Exit(1));
    assert_eq!(mebibytes(&asked), [100, 7629, 7629, 7629]);
    assert!(asked.iter().all(|request| request.gpus == 0), "no node has any");
    let asked = requests("runtime: 400, runtime.expr: runtime * 2 / (attempt - 1)", &Ending::Exit(1));
    let seconds: Vec<u64> = asked.iter().filter_map(|request| request.time).map(|time| time.as_secs()).collect();
    assert_eq!(seconds, [400, 400, 800, 800], "a value that is no number changes nothing");
}

#[test]
fn hooks_and_expressions_have_words_in_the_native_language() {
    let text = r#"
workflow: native
hooks: {start: date, error: [mail me, "mail {{you}}"]}
defaults: {hooks: {end: log}}
tasks:
  a: {run: "true", retry: {times: 3, ask: {memory: memory * 2, cpus: 2 if attempt > 1 else cpus}}}
  b: {run: "true", hooks: {all: [one, two], failure: three}}
"#;
    let (read, findings) = workflow::read(text, &BTreeMap::new());
    assert_eq!(findings, []);
    let read = read.expect("a workflow");
    let hook = |on, run: &str| Hook { on, run: run.into() };
    let expected =
        [hook(Occasion::Start, "date"), hook(Occasion::Error, "mail me"), hook(Occasion::Error, "mail {you}")];
    assert_eq!(read.hooks, expected);
    assert_eq!(read.tasks[0].settings.hooks, [hook(Occasion::End, "log")]);
    let expected = [hook(Occasion::All, "one"), hook(Occasion::All, "two"), hook(Occasion::Error, "three")];
    assert_eq!(read.tasks[1].settings.hooks, expected);
    let asked = |what, text: &str| RetryExpression { what, text: text.into() };
    let expected = [asked(Quantity::Memory, "memory * 2"), asked(Quantity::Cores, "2 if attempt > 1 else cpus")];
    assert_eq!(read.tasks[0].settings.retry.expressions, expected);
    let (again, _) = workflow::read(&workflow::write(&read), &BTreeMap::new());
    let again = again.expect("a workflow");
    assert_eq!(again.hooks, read.hooks);
    assert_eq!(again.tasks[0].settings, read.tasks[0].settings);
    let bad = "workflow: bad\ntasks: {a: {run: x, hooks: {sorrow: y}, retry: {ask: {memory: open(1), size: 1}}}}\n";
    let (_, findings) = workflow::read(bad, &BTreeMap::new());
    let said: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "`hooks` has no key `sorrow`",
            "`open(1)` says nothing: there is no function `open`",
            "`ask` has no key `size`"
        ]
    );
}
