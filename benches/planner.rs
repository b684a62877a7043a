//! Reading, planning and explaining: a real workflow with 151,728 file uses, many independent jobs, and whether the time
//! a task grows with their number.
//!
//! `cargo bench -p tulpar-benches --bench planner [-- LARGEST]`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tulpar_benches::peak_memory_mb;
use tulpar_core::catalogue::{Catalogue, LOCAL};
use tulpar_core::ids::Digest;
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::planner::estimate::estimate;
use tulpar_core::planner::{self, Abstract, Clustering, Known, Options};
use tulpar_core::site::Site;
use tulpar_core::workflow::{self, ClusterHint, DataFile, DataSource, Workflow};
use tulpar_formats::pegasus::{self, Text, Texts};
use tulpar_lab::published::{self, Study};

fn main() {
    if let Ok(row) = std::env::var("TULPAR_BENCH_ROW") {
        let (shape, tasks) = row.split_once(' ').expect("shape and number");
        return measure(shape, tasks.parse().expect("a number"));
    }
    let largest = std::env::args().filter_map(|word| word.parse::<u64>().ok()).next_back().unwrap_or(1_000_000);
    let program = std::env::current_exe().expect("this program");
    println!(
        "shape        tasks    uses      jobs     read s  plan s  predict s  explain s  total s  µs/task  peak MB"
    );
    let mut rows = vec![("galaxy".to_owned(), 0)];
    for shape in ["independent", "clustered", "layered"] {
        rows.extend(
            [10_000, 100_000, 1_000_000].into_iter().filter(|tasks| *tasks <= largest).map(|n| (shape.into(), n)),
        );
    }
    for (shape, tasks) in rows {
        // A process of its own a row, so that the peak of memory is its own.
        let row = format!("{shape} {tasks}");
        let status = std::process::Command::new(&program).env("TULPAR_BENCH_ROW", &row).status();
        assert!(status.is_ok_and(|status| status.success()), "{row} failed");
    }
}

fn measure(shape: &str, tasks: u64) {
    let begun = Instant::now();
    let (name, graph, catalogue, mut options) = match shape {
        "galaxy" => galaxy(),
        _ => generated(shape, tasks),
    };
    let read = begun.elapsed();
    if shape == "clustered" {
        let hint = ClusterHint { size: Some(100), ..ClusterHint::default() };
        options.clustering = vec![Clustering::Horizontal(Some(hint))];
    }
    let layout = planner::plan(&graph, &catalogue, &options, &[]).expect("a plan");
    let planned = begun.elapsed() - read;
    let predicted = estimate(&graph, &layout, &catalogue, &options);
    let estimated = begun.elapsed() - planned - read;
    let mut said = String::new();
    for decision in &layout.decisions {
        let _ = writeln!(said, "{}: {}; {}", decision.about, decision.what, decision.why);
    }
    assert!(!said.is_empty() && predicted.makespan > 0.0);
    let total = begun.elapsed();
    let seconds = |time: Duration| time.as_secs_f64();
    println!(
        "{name:<12} {:<8} {:<9} {:<8} {:<7.3} {:<7.3} {:<10.3} {:<10.3} {:<8.3} {:<8.2} {:.0}",
        graph.tasks.len(),
        graph.uses(),
        layout.jobs.len(),
        seconds(read),
        seconds(planned),
        seconds(estimated),
        seconds(total - estimated - planned - read),
        seconds(total),
        seconds(total) * 1e6 / graph.tasks.len() as f64,
        peak_memory_mb(),
    );
}

/// The output of the real generator where it is at hand, else the same shape generated here.
fn galaxy() -> (&'static str, Abstract, Catalogue, Options) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures/pegasus/galaxy-classification-full");
    if !folder.join("workflow.yml").is_file() {
        let options = Options { sites: published::testbed_sites(), ..Options::default() };
        return ("galaxy shape", Study::Galaxy.workflow(), published::testbed(), options);
    }
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a fixture");
    let (workflow, replicas, transformations, sites) =
        (text("workflow.yml"), text("replicas.yml"), text("transformations.yml"), text("sites.yml"));
    let named = |name, text| Text { name, text };
    let texts = Texts {
        workflow: named("workflow.yml", &workflow),
        replicas: Some(named("replicas.yml", &replicas)),
        transformations: Some(named("transformations.yml", &transformations)),
        sites: Some(named("sites.yml", &sites)),
        properties: None,
    };
    let variable = |name: &str| (name.to_owned(), "/data".to_owned());
    let reading = pegasus::read(&texts, &BTreeMap::from([variable("PWD"), variable("FIXTURE_DIR")]));
    let model = reading.model.expect("a workflow");
    let (workflow, _) = pegasus::convert(&model, None);
    let catalogue = pegasus::catalogue(&model);
    let site = pegasus::execution_site(&model, None).to_owned();
    let graph = abstracted(workflow, &catalogue);
    ("galaxy-full", graph, catalogue, Options { sites: vec![site], ..Options::default() })
}

fn generated(shape: &str, tasks: u64) -> (&'static str, Abstract, Catalogue, Options) {
    let name = match shape {
        "independent" => "independent",
        "clustered" => "clusters 100",
        _ => "layered",
    };
    // Independent ones, or layers of a thousand in which each reads one of the layer above.
    let text = if shape == "layered" {
        let layers = (tasks / 1000).max(1);
        let mut text = String::from("workflow: layered\ntasks:\n");
        for layer in 0..layers {
            let input = if layer == 0 { String::new() } else { format!("in: {{a: t{}.o}}, ", layer - 1) };
            let _ = writeln!(
                text,
                "  t{layer}: {{for: {{i: 1..1000}}, {input}out: {{o: 'o{layer}/{{i}}.txt'}}, runtime: 10 s, run: 'work {{i}} {{o}}'}}"
            );
        }
        text
    } else {
        format!(
            "workflow: independent\ntasks:\n  work: {{for: {{i: 1..{tasks}}}, out: {{o: 'out/{{i}}.txt'}}, runtime: 10 s, run: 'work {{i}} {{o}}'}}\n"
        )
    };
    let (workflow, findings) = workflow::read(&text, &BTreeMap::new());
    let workflow = workflow.unwrap_or_else(|| panic!("{findings:?}"));
    let catalogue = Catalogue { sites: vec![Site::new(LOCAL, Vec::new())], ..Catalogue::default() };
    (name, abstracted(workflow, &catalogue), catalogue, Options::default())
}

fn abstracted(workflow: Workflow, catalogue: &Catalogue) -> Abstract {
    let file = |path: &str, from: &str| DataFile {
        path: path.to_owned(),
        from: from.to_owned(),
        size: 12_989,
        digest: Digest([0; 32]),
    };
    let files = workflow
        .data
        .iter()
        .map(|entry| match &entry.source {
            DataSource::Files(files) => files.iter().map(|(path, from)| file(path, from)).collect(),
            DataSource::File(path) => vec![file(path, path)],
            _ => Vec::new(),
        })
        .collect();
    let plan = Plan::new(workflow, files, Site::new(LOCAL, Vec::new()));
    let graph = Graph::new(Arc::new(plan)).expect("no circle");
    planner::from_plan(&graph, catalogue, &Known::default()).expect("no circle").0
}
