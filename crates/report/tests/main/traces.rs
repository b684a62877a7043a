//! Runs as traces of Chrome and of OpenTelemetry.

use super::fixture::{SMALL, START, Told, small};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tulpar_core::event::Outcome;
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{CommandLine, Ending, Record, Sample, Usage};
use tulpar_report::{Counters, RunFacts, chrome, otlp};

fn facts() -> RunFacts {
    RunFacts { run: "small-\"1\"".into(), version: "0.1.0".into(), standing: "done".into(), ..RunFacts::default() }
}

fn events(told: &Told, counters: &Counters) -> Vec<Value> {
    let text = chrome(&facts(), &told.graph, &told.ledger, counters, None);
    let trace: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    trace["traceEvents"].as_array().expect("events").clone()
}

fn of<'e>(events: &'e [Value], phase: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["ph"] == phase).collect()
}

#[test]
fn an_attempt_is_a_slice_of_a_slot_of_its_node() {
    let all = events(&small(), &Counters::default());
    let slices: Vec<_> = of(&all, "X")
        .into_iter()
        .map(|event| {
            let number = |key: &str| event[key].as_u64().expect("a number");
            (event["name"].as_str().expect("a name"), number("pid"), number("tid"), number("ts"), number("dur"))
        })
        .collect();
    assert_eq!(
        slices,
        [
            ("small-\"1\"", 0, 0, 0, 11_000_000),
            ("simulate[i=1]", 1, 1, 1_000_000, 3_000_000),
            ("simulate[i=2]", 2, 1, 1_000_000, 4_000_000),
            ("watch", 1, 2, 2_000_000, 2_000_000),
            ("train", 2, 1, 5_200_000, 1_000_000),
            ("train", 2, 1, 6_500_000, 3_499_000),
        ]
    );
    let names: Vec<_> = of(&all, "M").iter().filter_map(|event| event["args"]["name"].as_str()).collect();
    assert_eq!(names, ["run small-\"1\"", "run", "small-01", "slot 1", "slot 2", "small-02", "slot 1"]);
    // Both simulations are needed for the training.
    let starts: BTreeSet<u64> = of(&all, "s").iter().map(|event| event["ts"].as_u64().expect("a time")).collect();
    assert_eq!(starts, BTreeSet::from([3_999_999, 4_999_999]));
    assert!(of(&all, "f").iter().all(|event| event["ts"] == 6_500_000 && event["bp"] == "e"));
}

#[test]
fn slices_of_a_thread_are_inside_each_other_or_apart() {
    let mut told = Told::new(SMALL);
    told.moved_and_ran("simulate[i=1]", 1.0, 4.0);
    told.moved_and_ran("simulate[i=2]", 1.5, 5.0);
    told.ran("watch", 2.0, 4.0);
    told.over(10.0, Outcome::Done);
    let all = events(&told, &Counters::default());
    let mut threads: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for event in of(&all, "X") {
        let number = |key: &str| event[key].as_u64().expect("a number");
        let slice = (number("ts"), number("ts") + number("dur"));
        threads.entry((number("pid"), number("tid"))).or_default().push(slice);
    }
    for slices in threads.values() {
        for one in slices {
            for other in slices {
                let apart = one.1 <= other.0 || other.1 <= one.0;
                let inside = |a: &(u64, u64), b: &(u64, u64)| a.0 >= b.0 && a.1 <= b.1;
                assert!(apart || inside(one, other) || inside(other, one), "{one:?} {other:?}");
            }
        }
    }
    let names: Vec<_> = of(&all, "X").iter().filter_map(|event| event["name"].as_str().map(str::to_owned)).collect();
    assert_eq!(names.iter().filter(|name| *name == "pull").count(), 2, "{names:?}");
}

#[test]
fn samples_are_counters_of_the_node() {
    let told = small();
    let sample = |ms, rss, cpu_us| Sample {
        ms,
        processes: 1,
        rss,
        cpu_us,
        read_bytes: 0,
        write_bytes: 0,
        gpu_percent: None,
        gpu_memory: None,
    };
    let at = |seconds| tulpar_core::units::Timestamp((START + seconds) * 1_000_000);
    let record = Record {
        attempt: AttemptId { job: JobId(0), n: 1 },
        name: "simulate[i=1]".into(),
        host: "h".into(),
        node: "small-01".into(),
        gpus: vec!["0".into()],
        command: CommandLine::Arguments(Vec::new()),
        started: at(1),
        ended: at(4),
        ending: Ending::Exit(0),
        usage: Usage::default(),
        samples: vec![
            sample(1000, 5_000_000, 1_500_000),
            Sample { gpu_percent: Some(50), gpu_memory: Some(8_000_000), ..sample(2000, 7_000_000, 2_000_000) },
        ],
        input_files: 0,
        input_bytes: 0,
        outputs: Vec::new(),
        io: None,
    };
    let mut counters = Counters::default();
    counters.note(&record);
    let all = events(&told, &counters);
    let named = |name: &str, key: &str| -> Vec<(u64, f64)> {
        let found = of(&all, "C").into_iter().filter(|event| event["name"] == name && event["pid"] == 1);
        found
            .map(|event| (event["ts"].as_u64().expect("a time"), event["args"][key].as_f64().expect("a value")))
            .collect()
    };
    assert_eq!(named("memory", "MB"), [(2_000_000, 5.0), (3_000_000, 7.0), (4_000_000, 0.0)]);
    assert_eq!(named("busy", "cores"), [(2_000_000, 1.5), (3_000_000, 0.5), (4_000_000, 0.0)]);
    assert_eq!(named("busy", "GPUs"), [(2_000_000, 0.0), (3_000_000, 0.5), (4_000_000, 0.0)]);
    assert_eq!(named("GPU memory", "MB"), [(2_000_000, 0.0), (3_000_000, 8.0), (4_000_000, 0.0)]);
    assert_eq!(named("held", "cores"), [(1_000_000, 2.0), (2_000_000, 2.5), (4_000_000, 0.0)]);
}

#[test]
fn spans_hang_together_from_the_run_down_to_what_went_on_inside_attempts() {
    let mut told = Told::new(SMALL);
    told.moved_and_ran("simulate[i=1]", 1.0, 4.0);
    told.ended_badly("watch", 1.0, 2.0);
    told.over(5.0, Outcome::Failed);
    let text = otlp(&facts(), &told.graph, &told.ledger, None);
    assert_eq!(text.lines().count(), 1);
    let request: Value = serde_json::from_str(&text).expect("JSON");
    let scope = &request["resourceSpans"][0]["scopeSpans"][0];
    let spans = scope["spans"].as_array().expect("spans");
    let by_name: BTreeMap<&str, &Value> =
        spans.iter().map(|span| (span["name"].as_str().expect("a name"), span)).collect();
    let names: Vec<&str> = by_name.keys().copied().collect();
    assert_eq!(names, ["pull", "push", "simulate[i=1]", "simulate[i=1] #1", "small-\"1\"", "watch", "watch #1"]);
    let parent = |child: &str| by_name[child]["parentSpanId"].as_str().unwrap_or_default().to_owned();
    let id = |name: &str| by_name[name]["spanId"].as_str().expect("an id").to_owned();
    assert_eq!(parent("pull"), id("simulate[i=1] #1"));
    assert_eq!(parent("watch #1"), id("watch"));
    assert_eq!((parent("watch"), parent("small-\"1\"")), (id("small-\"1\""), String::new()));
    assert!(spans.iter().all(|span| span["traceId"] == spans[0]["traceId"]));
    assert_eq!((id("pull").len(), spans[0]["traceId"].as_str().map(str::len)), (16, Some(32)));
    assert_eq!(by_name["watch #1"]["status"]["code"], 2);
    assert_eq!(by_name["watch #1"]["status"]["message"], "exit 1");
    assert_eq!(by_name["watch #1"]["startTimeUnixNano"].as_str(), Some(&*format!("{}000000000", START + 1)));
    let ids: BTreeSet<&str> = spans.iter().filter_map(|span| span["spanId"].as_str()).collect();
    assert_eq!(ids.len(), spans.len());
}

#[test]
fn many_spans_are_several_requests() {
    let mut told = Told::new(&SMALL.replace("i: 1..2", "i: 1..400"));
    for number in 0..400 {
        told.ran_number(number, 1.0, 2.0);
    }
    let text = otlp(&facts(), &told.graph, &told.ledger, None);
    let counts: Vec<usize> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|request| request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").len())
        .collect();
    assert_eq!(counts, [512, 289]);
}

#[test]
fn what_nobody_measured_is_left_out() {
    let mut told = Told::new("workflow: w\ntasks: {a: {run: 'true'}, b: {run: 'true'}}\n");
    for (name, usage) in [("a", Usage::default()), ("b", Usage { minor_faults: 1, ..Usage::default() })] {
        told.submitted(0.5, name, 1);
        told.started(1.0, name, 1);
        told.ended_with_usage(name, (1.0, 2.0), usage);
    }
    let all = events(&told, &Counters::default());
    let keys = |name: &str| {
        let slice = of(&all, "X").into_iter().find(|event| event["name"] == name).expect("a slice");
        ["cpu_us", "read_bytes", "write_bytes", "peak_rss"].map(|key| slice["args"].get(key).is_some())
    };
    assert_eq!((keys("a"), keys("b")), ([false; 4], [true, true, true, false]));
    let spans = otlp(&facts(), &told.graph, &told.ledger, None);
    let count = |key: &str| spans.matches(&format!("\"{key}\"")).count();
    assert_eq!((count("process.cpu.time"), count("tulpar.read_bytes"), count("tulpar.peak_memory_bytes")), (1, 1, 0));
}
