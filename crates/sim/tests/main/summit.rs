//! The published runs on Summit (Pascuzzi and others, 2023) in virtual time: as they were run, from their own traces,
//! and as Tulpar would have run them.
//!
//! Two constants describe the middleware of these runs: seven seconds from the end of a task until its resources are
//! free and the next stage starts, and 95 launches a second. Both were read off the same traces.

use super::skipped;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tulpar_core::engine::{Order, Packing, Policy};
use tulpar_core::event::Outcome;
use tulpar_core::ids::SetId;
use tulpar_core::plan::Plan;
use tulpar_core::resources::{Capacity, Gpu, Request};
use tulpar_core::site::{Node, Site};
use tulpar_core::units::Bytes;
use tulpar_core::workflow::*;
use tulpar_sim::{Model, Simulation, Summary, World};

const LATENCY: Duration = Duration::from_secs(7);
const LAUNCHES_A_SECOND: f64 = 95.0;

fn traces() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/async/summit");
    if !folder.is_dir() {
        skipped("the traces of the runs on Summit in ../shared are not here");
        return None;
    }
    Some(folder)
}

/// One task of a trace.
struct Row {
    set: String,
    stage: String,
    pipeline: String,
    cores: u32,
    gpus: u32,
    seconds: f64,
    /// When it came to the scheduler, and when it got its place.
    queued: (f64, f64),
}

/// The tasks of a run in the order of its queue.
fn rows(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).expect("a trace");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let mut rows: Vec<Row> = lines
        .map(|line| {
            let cells: BTreeMap<&str, &str> = names.iter().copied().zip(line.split(',')).collect();
            let number = |name: &str| cells[name].parse::<f64>().expect("a number");
            Row {
                set: cells["set"].into(),
                stage: cells["stage"].into(),
                pipeline: cells["pipeline"].into(),
                cores: number("cores") as u32,
                gpus: number("gpus") as u32,
                seconds: number("arg_s"),
                queued: (number("sched_req"), number("sched_ok")),
            }
        })
        .collect();
    rows.sort_by(|a, b| a.queued.0.total_cmp(&b.queued.0).then(a.queued.1.total_cmp(&b.queued.1)));
    rows
}

/// What each stage waits for: the stage before it in its pipeline; the first one of a later pipeline for all of
/// `pipeline.0000`. This is how the runs were written, whatever the data needed.
fn stages_before(rows: &[Row]) -> Vec<Vec<SetId>> {
    let mut stages: BTreeMap<(&str, &str), Vec<SetId>> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        stages.entry((&row.pipeline, &row.stage)).or_default().push(SetId::from(number));
    }
    let last_of = |pipeline: &str| stages.iter().rfind(|((of, _), _)| *of == pipeline).map(|(_, sets)| sets.clone());
    rows.iter()
        .map(|row| {
            let here = (row.pipeline.as_str(), row.stage.as_str());
            match stages.range(..here).next_back() {
                Some(((pipeline, _), sets)) if *pipeline == row.pipeline => sets.clone(),
                _ if row.pipeline == "pipeline.0000" => Vec::new(),
                _ => last_of("pipeline.0000").unwrap_or_default(),
            }
        })
        .collect()
}

/// What the data needed: in DeepDriveMD the four sets of an iteration one after another, in the other the published
/// graph. The iteration of a task follows from its place among those of its set.
fn data_before(name: &str, rows: &[Row]) -> Vec<Vec<SetId>> {
    let molecular = name.starts_with("ddmd");
    let above: &[(&str, &[&str])] = match molecular {
        true => &[("preproc", &["sim"]), ("ml", &["preproc"]), ("agent", &["ml"])],
        false => &[
            ("T1", &["T0"]),
            ("T2", &["T0"]),
            ("T3", &["T1"]),
            ("T4", &["T1"]),
            ("T5", &["T2"]),
            ("T6", &["T2"]),
            ("T7", &["T4", "T5"]),
        ],
    };
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut iterations: BTreeMap<(&str, usize), Vec<SetId>> = BTreeMap::new();
    let mut places = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let before = seen.entry(&row.set).or_default();
        let size = match row.set.as_str() {
            _ if !molecular => usize::MAX,
            "preproc" => 16,
            "ml" => 1,
            _ => 96,
        };
        let iteration = *before / size;
        *before += 1;
        iterations.entry((&row.set, iteration)).or_default().push(SetId::from(number));
        places.push(iteration);
    }
    rows.iter()
        .zip(places)
        .map(|(row, iteration)| {
            let needed = above.iter().find(|(set, _)| *set == row.set).map_or(&[][..], |(_, above)| above);
            needed.iter().flat_map(|set| iterations[&(*set, iteration)].clone()).collect()
        })
        .collect()
}

fn plan(name: &str, rows: &[Row], before: Vec<Vec<SetId>>, queue_counts: bool) -> Plan {
    let tasks = rows
        .iter()
        .zip(before)
        .enumerate()
        .map(|(number, (row, after))| Task {
            name: format!("{}-{number}", row.set),
            scatter: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            after,
            run: Run::Arguments(vec![Template("sleep".into())]),
            variants: Vec::new(),
            when: None,
            settings: Arc::new(Settings {
                request: Request { milli_cpus: row.cores * 1000, gpus: row.gpus, ..Request::default() },
                priority: if queue_counts { -(number as i32) } else { 0 },
                hints: Hints {
                    runtime: Some(Duration::from_secs_f64(row.seconds)),
                    program: Some(row.set.clone()),
                    ..Hints::default()
                },
                ..Settings::default()
            }),
            span: Span::default(),
        })
        .collect();
    let capacity = Capacity {
        milli_cpus: 167_000,
        memory: Bytes(512 << 30),
        disk: Bytes(1 << 40),
        gpus: (0..6).map(|id| Gpu { id: id.to_string(), memory: Bytes(16 << 30), capability: 70 }).collect(),
        ..Capacity::default()
    };
    let node = |number| Node::new(format!("node{number:02}"), capacity.clone());
    let workflow = Workflow { name: name.into(), tasks, ..Workflow::default() };
    Plan::new(workflow, Vec::new(), Site::new("summit", (0..16).map(node).collect()))
}

/// Seconds from the first start to the last end, and how full the GPUs were.
fn execution(plan: Plan, policy: Policy) -> (f64, f64) {
    let mut model = Model::of(&plan, 1);
    model.dependency_latency = LATENCY;
    model.launch_rate = Some(LAUNCHES_A_SECOND);
    let mut summary = Summary::new(&plan);
    let mut simulation = Simulation::new(Arc::new(plan), policy, World::modelled(model)).expect("no circle");
    simulation.keep_events = false;
    let outcome = simulation.run_watched(|engine, events| summary.watch(engine, events));
    assert_eq!(outcome, Some(Outcome::Done));
    (summary.makespan().as_secs_f64(), summary.gpu_utilisation().unwrap_or_default())
}

fn policy(packing: Packing, order: Option<Order>) -> Policy {
    Policy { cache: false, packing, order, ..Policy::default() }
}

#[test]
fn the_published_runs_come_out_within_a_percent_and_tulpar_is_never_slower() {
    let Some(folder) = traces() else { return };
    let text = std::fs::read_to_string(folder.join("summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut table = format!(
        "{:<11} {:>9} {:>9} {:>7} {:>6} {:>11} {:>6} {:>9} {:>6}\n",
        "run", "measured", "replayed", "%", "GPU", "own order", "GPU", "own graph", "GPU"
    );
    let mut times: BTreeMap<String, (f64, f64, f64)> = BTreeMap::new();
    for name in ["ddmd-seq", "ddmd-async", "cdg1-seq", "cdg1-async", "cdg2-seq", "cdg2-async"] {
        let measured = summary[name]["ttx_first_start_to_last_stop"].as_f64().expect("a time");
        let rows = rows(&folder.join(format!("{name}.csv")));
        assert_eq!(rows.len() as u64, summary[name]["tasks"].as_u64().expect("a number"));
        let as_run = plan(name, &rows, stages_before(&rows), true);
        let (replayed, full) = execution(as_run, policy(Packing::FirstFit, Some(Order::Oldest)));
        let (own, own_full) =
            execution(plan(name, &rows, stages_before(&rows), false), policy(Packing::default(), None));
        let (free, free_full) =
            execution(plan(name, &rows, data_before(name, &rows), false), policy(Packing::default(), None));
        let error = replayed / measured - 1.0;
        let _ = writeln!(
            table,
            "{name:<11} {measured:>9.1} {replayed:>9.1} {:>+7.2} {full:>6.3} {own:>11.1} {own_full:>6.3} {free:>9.1} {free_full:>6.3}",
            error * 100.0
        );
        assert!(error.abs() < 0.01, "{name}: {replayed:.1} s instead of {measured} s\n{table}");
        assert!(own <= replayed * 1.005, "{name}: Tulpar's own order and placement take longer\n{table}");
        assert!(free <= own * 1.005, "{name}: fewer dependencies take longer\n{table}");
        times.insert(name.into(), (measured, replayed, free));
    }
    for name in ["ddmd", "cdg1", "cdg2"] {
        let (sequential, asynchronous) = (&times[&format!("{name}-seq")], &times[&format!("{name}-async")]);
        let measured = 1.0 - asynchronous.0 / sequential.0;
        let replayed = 1.0 - asynchronous.1 / sequential.1;
        let own = 1.0 - asynchronous.2 / sequential.1;
        let _ = writeln!(table, "{name}: I measured {measured:.4}, replayed {replayed:.4}, Tulpar {own:.4}");
        assert!((measured - replayed).abs() < 0.01, "{name}\n{table}");
    }
    if let Some(path) = std::env::var_os("TULPAR_TABLE") {
        std::fs::write(path, table).expect("a table is written");
    }
}
