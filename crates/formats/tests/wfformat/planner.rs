//! Automatic clustering of the recorded workflows of WfInstances, on machines like those of the published study.

use crate::pegasus::skipped;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use tulpar_core::catalogue::{Catalogue, DataConfiguration, LOCAL, Link};
use tulpar_core::planner::estimate::estimate;
use tulpar_core::planner::{Abstract, Clustering, Estimate, JobKind, Options, Pass, plan};
use tulpar_core::resources::Capacity;
use tulpar_core::site::{Node, Site};
use tulpar_core::units::Bytes;
use tulpar_lab::published::{self, Study};

/// Four nodes of 24 cores, 10 Gbit/s and 31 ms from the driver.
fn study() -> Catalogue {
    let capacity = Capacity {
        milli_cpus: 24_000,
        memory: Bytes(192_000_000_000),
        disk: Bytes(1 << 50),
        gpus: Vec::new(),
        ..Capacity::default()
    };
    let nodes = (1..=4).map(|node| Node::new(format!("node-{node}"), capacity.clone())).collect();
    let link = Link {
        from: LOCAL.to_owned(),
        to: "chicago".to_owned(),
        bandwidth: Bytes(1_250_000_000),
        latency: Duration::from_millis(31),
    };
    Catalogue { sites: vec![Site::new("chicago", nodes)], links: vec![link], ..Catalogue::default() }
}

fn predicted(graph: &Abstract, clustering: Clustering, parallel: bool) -> (usize, Estimate) {
    let catalogue = study();
    let options = Options {
        clustering: vec![clustering],
        sites: vec!["chicago".to_owned()],
        parallel_clusters: parallel,
        ..Options::default()
    };
    let layout = plan(graph, &catalogue, &options, &[]).expect("a plan");
    let chosen = layout.decisions.iter().filter(|decision| decision.about == "auto").count();
    assert!(clustering != Clustering::Auto || chosen == 1, "what auto chose is said once");
    let jobs = layout.count(JobKind::Compute);
    (jobs, estimate(graph, &layout, &catalogue, &options))
}

#[test]
fn auto_is_never_predicted_worse_than_none_label_and_whole_on_recorded_workflows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/wfformat");
    if !folder.is_dir() {
        return skipped("the WfFormat instances of ../shared are not here");
    }
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.retain(|path| {
        let name = path.to_string_lossy();
        (name.ends_with(".json") || name.ends_with(".json.gz")) && !name.ends_with("expected.json")
    });
    let mut table = format!(
        "{:52} {:>5} {:>9} {:>9} {:>9} {:>5} {:>7} {:>7} {:>7}\n",
        "instance, predicted seconds", "tasks", "none", "whole", "auto", "jobs", "none GB", "auto GB", "ran s"
    );
    for path in &files {
        let bytes = std::fs::read(path).expect("a file");
        let mut text = String::new();
        match path.extension().is_some_and(|extension| extension == "gz") {
            true => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).map(|_| ()).expect("gzip"),
            false => text = String::from_utf8(bytes).expect("text"),
        }
        let (instance, _) = tulpar_formats::wfformat::read(&text);
        let graph = tulpar_formats::wfformat::from_wfformat(&instance.expect("an instance")).expect("no circle");
        for parallel in [false, true] {
            // The larger ones take long in a build without optimisation.
            if parallel && graph.tasks.len() > 300 && std::env::var_os("TULPAR_TABLE").is_none() {
                continue;
            }
            let none = predicted(&graph, Clustering::Horizontal(None), parallel).1;
            let whole = predicted(&graph, Clustering::Whole, parallel).1;
            let before = std::time::Instant::now();
            let (jobs, auto) = predicted(&graph, Clustering::Auto, parallel);
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            let best = none.makespan.min(whole.makespan);
            assert!(auto.makespan <= best, "{name}: auto {} s, best of the others {best} s", auto.makespan);
            assert!(auto.makespan < none.makespan || auto.bytes_moved <= none.bytes_moved, "{name}: nothing gained");
            table += &format!(
                "{:52} {:5} {:9.1} {:9.1} {:9.1} {:5} {:7.2} {:7.2} {:7.1}\n",
                format!("{name}{}", if parallel { " (parallel)" } else { "" }),
                graph.tasks.len(),
                none.makespan,
                whole.makespan,
                auto.makespan,
                jobs,
                none.bytes_moved as f64 / 1e9,
                auto.bytes_moved as f64 / 1e9,
                before.elapsed().as_secs_f64(),
            );
        }
    }
    assert_eq!(files.len(), 30, "instances of WfInstances");
    if let Some(path) = std::env::var_os("TULPAR_TABLE") {
        std::fs::write(path, table).expect("a table is written");
    }
}

#[test]
fn auto_is_never_predicted_worse_than_none_label_and_whole_on_the_studys_workflows() {
    let catalogue = published::testbed();
    let mut table = String::new();
    for (name, study) in Study::ALL {
        let graph = study.workflow();
        for parallel_clusters in [false, true] {
            let predict = |clustering: Vec<Clustering>| {
                let options = Options {
                    data: Some(DataConfiguration::NonSharedFs),
                    sites: published::testbed_sites(),
                    clustering,
                    threads: 24,
                    parallel_clusters,
                    ..Options::default()
                };
                let layout = plan(&graph, &catalogue, &options, &[]).expect("a plan");
                let jobs = layout.count(JobKind::Compute);
                (jobs, estimate(&graph, &layout, &catalogue, &options), layout.decisions)
            };
            let (jobs, auto, decisions) = predict(vec![Clustering::Auto]);
            table += &format!("{name}, parallel {parallel_clusters}: auto {:.1} s, {jobs} jobs", auto.makespan);
            for (what, other) in
                [("none", vec![]), ("label", vec![Clustering::Label]), ("whole", vec![Clustering::Whole])]
            {
                let (jobs, other, _) = predict(other);
                table += &format!("; {what} {:.1} s, {jobs} jobs", other.makespan);
                assert!(auto.makespan <= other.makespan, "{name}: {what} is predicted faster");
            }
            table += "\n";
            for decision in decisions.iter().filter(|decision| decision.pass == Pass::Cluster) {
                table += &format!("    {}: {} ({})\n", decision.about, decision.what, decision.why);
            }
            assert!(auto.impossible == 0, "{name}: a node takes every job");
        }
    }
    if let Some(path) = std::env::var_os("TULPAR_TABLE") {
        std::fs::write(Path::new(&path).with_extension("study"), table).expect("a table is written");
    }
}
