//! Does the cost of an event grow with the plan? A thousand to a million tasks, from one scatter and from as many entries
//! in a workflow file: read, check, plan and run in virtual time. And how long does one decision take over a hundred
//! thousand ready tasks? (Unlike tasks on ten thousand nodes: see `simulation`.)
//!
//! `cargo bench -p tulpar-benches --bench scale [-- LARGEST]`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;
use tulpar_benches::peak_memory_mb;
use tulpar_core::engine::{Engine, Policy};
use tulpar_core::event::{Input, Outcome};
use tulpar_core::plan::Plan;
use tulpar_core::resources::{Capacity, Gpu};
use tulpar_core::site::{Node, Site};
use tulpar_core::units::{Bytes, Timestamp};
use tulpar_core::workflow;
use tulpar_sim::{Faults, Simulation, World};

fn main() {
    if let Ok(row) = std::env::var("TULPAR_BENCH_ROW") {
        let (shape, tasks) = row.split_once(' ').expect("shape and number");
        return measure(shape, tasks.parse().expect("a number"));
    }
    let largest = std::env::args().filter_map(|word| word.parse::<u64>().ok()).next_back().unwrap_or(1_000_000);
    let program = std::env::current_exe().expect("this program");
    println!("shape    tasks     read s  check s  plan s  run s   total s  µs/event  peak MB");
    for shape in ["scatter", "graph"] {
        let mut tasks = 1000;
        while tasks <= largest {
            // A process of its own a row, so that the peak of memory is its own.
            let row = format!("{shape} {tasks}");
            let status = std::process::Command::new(&program).env("TULPAR_BENCH_ROW", &row).status();
            assert!(status.is_ok_and(|status| status.success()), "{row} failed");
            tasks *= 10;
        }
    }
    ready();
}

/// One step that places what fits of a hundred thousand ready tasks, and one that finds that nothing more does.
fn ready() {
    let (workflow, _) = workflow::read(&kinds(20, 5_000), &BTreeMap::new());
    let plan = Arc::new(Plan::new(workflow.expect("a workflow"), Vec::new(), site(1000)));
    let mut engine = Engine::new(plan, Policy { cache: false, ..Policy::default() }).expect("no cycle");
    let begun = Instant::now();
    let step = engine.step(Timestamp(0), vec![Input::Begin]);
    let first = begun.elapsed();
    let begun = Instant::now();
    engine.step(Timestamp(1), vec![Input::Clock]);
    println!(
        "\n100000 ready tasks of 20 kinds on 1000 nodes: {} start in {:.1} ms; looking again takes {:.3} ms",
        step.actions.len(),
        first.as_secs_f64() * 1e3,
        begun.elapsed().as_secs_f64() * 1e3
    );
}

fn measure(shape: &str, tasks: u64) {
    let text = match shape {
        "scatter" => scatter(tasks),
        _ => graph(tasks),
    };
    let begun = Instant::now();
    let (workflow, findings) = workflow::read(&text, &BTreeMap::new());
    let workflow = workflow.unwrap_or_else(|| panic!("{findings:?}"));
    let read = begun.elapsed();
    let site = site(64);
    let findings = workflow::check(&workflow, None, Some(&site));
    assert!(findings.is_empty(), "{findings:?}");
    let check = begun.elapsed() - read;
    drop(text);
    let plan = Arc::new(Plan::new(workflow, Vec::new(), site));
    let policy = Policy { cache: false, ..Policy::default() };
    let mut simulation = Simulation::new(plan, policy, World::new(1, Faults::default())).expect("no cycle");
    simulation.keep_events = false;
    let planned = begun.elapsed() - check - read;
    let mut events = 0u64;
    let outcome = simulation.run_watched(|_, step| events += step.len() as u64);
    assert_eq!(outcome, Some(Outcome::Done));
    let total = begun.elapsed();
    let run = total - planned - check - read;
    println!(
        "{shape:<8} {tasks:<9} {:<7.2} {:<8.2} {:<7.2} {:<7.2} {:<8.2} {:<9.2} {:.0}",
        read.as_secs_f64(),
        check.as_secs_f64(),
        planned.as_secs_f64(),
        run.as_secs_f64(),
        total.as_secs_f64(),
        run.as_secs_f64() * 1e6 / events as f64,
        peak_memory_mb(),
    );
}

fn scatter(tasks: u64) -> String {
    format!(
        "workflow: scatter\ntasks:\n  work:\n    for: {{i: 1..{tasks}}}\n    out: {{o: 'out/{{i}}.txt'}}\n    run: work {{i}} {{o}}\n"
    )
}

fn kinds(count: u64, each: u64) -> String {
    let mut text = String::from("workflow: mixed\ntasks:\n");
    for kind in 0..count {
        let gpus = if kind % 3 == 0 { 1 + kind % 4 } else { 0 };
        let _ = writeln!(
            text,
            "  kind{kind}: {{for: {{i: 1..{each}}}, cpus: {}, memory: {} GB, gpus: {gpus}, out: {{o: 'k{kind}-{{i}}'}}, run: 'work {{o}}'}}",
            1 + (kind * 5) % 16,
            1 + (kind * 3) % 8
        );
    }
    text
}

/// Each task needs two earlier ones: one near, one far.
fn graph(tasks: u64) -> String {
    let mut text = String::from("workflow: graph\ntasks:\n");
    for i in 0..tasks {
        if i == 0 {
            text.push_str("  t0: {out: {o: t0.txt}, run: 'work {o}'}\n");
            continue;
        }
        let far = (i / 2).max(i.saturating_sub(1000));
        let near = i - 1 - (i * 7919) % i.min(50);
        let inputs = if far == near { format!("a: t{far}.o") } else { format!("a: t{far}.o, b: t{near}.o") };
        let _ = writeln!(text, "  t{i}: {{in: {{{inputs}}}, out: {{o: t{i}.txt}}, run: 'work {{a}} {{o}}'}}");
    }
    text
}

/// Every second node has four GPUs.
fn site(nodes: u32) -> Site {
    let gpus = |index: u32| {
        (0..if index.is_multiple_of(2) { 0 } else { 4 }).map(|id| Gpu { id: id.to_string(), ..Gpu::default() })
    };
    let nodes = (0..nodes)
        .map(|index| {
            let capacity = Capacity {
                milli_cpus: 64_000,
                memory: Bytes(256 << 30),
                disk: Bytes(1 << 40),
                gpus: gpus(index).collect(),
                ..Capacity::default()
            };
            Node::new(format!("node{index:05}"), capacity)
        })
        .collect();
    Site::new("cluster", nodes)
}
