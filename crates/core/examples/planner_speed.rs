//! How long planning, predicting and automatic clustering take: `cargo run --release --example planner_speed TASKS`.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout, reason = "it measures")]

use std::time::{Duration, Instant};
use tulpar_core::catalogue::{Catalogue, LOCAL, Link};
use tulpar_core::planner::estimate::estimate;
use tulpar_core::planner::{Abstract, Builder, Clustering, File, Options, Task, TaskId, plan};
use tulpar_core::resources::Capacity;
use tulpar_core::site::{Node, Site};
use tulpar_core::units::Bytes;
use tulpar_core::workflow::ClusterHint;

/// Tasks that read one large file and one of their own.
fn independent(count: usize) -> Abstract {
    let mut builder = Builder::new("independent");
    let kind = builder.kind("cut");
    let shared = builder.file(File { size: 1_000_000_000, ..File::default() });
    let shared = builder.group([shared]);
    for at in 0..count {
        let task = builder.task(Task {
            name: format!("t{at}").into(),
            kind,
            runtime: Some(10.0 + (at % 7) as f64),
            ..Task::default()
        });
        for (size, output) in [(1_000_000, false), (500_000, true)] {
            let file = builder.file(File { size, stage_out: output, ..File::default() });
            let group = builder.group([file]);
            if output { builder.writes(task, group) } else { builder.reads(task, group) }
        }
        builder.reads(task, shared);
    }
    builder.finish().expect("no circle")
}

/// Ten levels; each task reads what three tasks of the level above wrote.
fn layered(count: usize) -> Abstract {
    let mut builder = Builder::new("layered");
    let kinds: Vec<u32> = (0..10).map(|level| builder.kind(&format!("step{level}"))).collect();
    let width = (count / 10).max(1);
    let mut above = Vec::new();
    for kind in kinds {
        let mut made = Vec::new();
        for at in 0..width {
            let task: TaskId = builder.task(Task {
                name: format!("t{kind}_{at}").into(),
                kind,
                runtime: Some(5.0 + (at % 11) as f64),
                ..Task::default()
            });
            if !above.is_empty() {
                (0..3).for_each(|near| builder.reads(task, above[(at + near) % width]));
            }
            let file = builder.file(File { size: 20_000_000, ..File::default() });
            let group = builder.group([file]);
            builder.writes(task, group);
            made.push(group);
        }
        above = made;
    }
    builder.finish().expect("no circle")
}

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let capacity = Capacity {
        milli_cpus: 24_000,
        memory: Bytes(192_000_000_000),
        disk: Bytes(1 << 50),
        gpus: Vec::new(),
        ..Capacity::default()
    };
    let nodes = (0..100).map(|node| Node::new(format!("node-{node}"), capacity.clone())).collect();
    let bandwidth = Bytes(12_500_000_000);
    let link = Link { from: LOCAL.into(), to: "far".into(), bandwidth, latency: Duration::from_millis(31) };
    let catalogue = Catalogue { sites: vec![Site::new("far", nodes)], links: vec![link], ..Catalogue::default() };
    for graph in [independent(count), layered(count)] {
        println!("{}: {} tasks, {} edges", graph.name, graph.tasks.len(), graph.edges());
        let size = Some(ClusterHint { size: Some(20), ..ClusterHint::default() });
        for clustering in [vec![], vec![Clustering::Horizontal(size)], vec![Clustering::Whole], vec![Clustering::Auto]]
        {
            let options = Options { clustering, ..Options::default() };
            let before = Instant::now();
            let layout = plan(&graph, &catalogue, &options, &[]).expect("a plan");
            let planned = before.elapsed().as_secs_f64();
            let estimate = estimate(&graph, &layout, &catalogue, &options);
            let predicted = before.elapsed().as_secs_f64() - planned;
            println!(
                "  {:40} {:8} jobs, planned in {planned:6.2} s, predicted in {predicted:5.2} s: {:10.1} s, {:9.1} GB",
                format!("{:?}", options.clustering),
                layout.jobs.len(),
                estimate.makespan,
                estimate.bytes_moved as f64 / 1e9,
            );
        }
    }
}
