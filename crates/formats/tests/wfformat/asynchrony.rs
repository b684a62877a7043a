//! Real workflows: depth, width, branches, critical path, work and bounds are those that an independent program found.

use crate::wfformat::instances::{folder, good, text};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tulpar_core::asynchrony::{Allocation, Model, analyse, from_graph};
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::site::Site;
use tulpar_formats::wfformat;

#[track_caller]
fn near(what: &str, value: f64, reference: f64) {
    assert!((value - reference).abs() <= 1e-6 * reference.abs().max(1.0), "{what}: {value}, not {reference}");
}

fn model(path: &Path) -> Model {
    let (workflow, _) = wfformat::convert(&good(path));
    let seconds: Vec<Option<f64>> =
        workflow.tasks.iter().map(|task| task.settings.hints.runtime.map(|time| time.as_secs_f64())).collect();
    let files = workflow.data.iter().map(|_| Vec::new()).collect();
    let graph = Graph::new(Arc::new(Plan::new(workflow, files, Site::new("local", Vec::new())))).expect("no circle");
    from_graph(&graph, &seconds).expect("a model").model
}

#[test]
fn bounds_of_real_workflows_are_those_of_the_reference() {
    let Some(folder) = folder("wfformat") else { return };
    let expected: Vec<Value> = serde_json::from_str(&text(&folder.join("expected.json"))).expect("JSON");
    assert_eq!(expected.len(), 30);
    for entry in &expected {
        let name = entry["file"].as_str().expect("a name");
        let model = model(&folder.join(name));
        let found = [
            ("tasks", model.tasks()),
            ("depth", model.depth() as u64),
            ("level_width", model.level_width()),
            ("doa_dep", model.doa_dep() as u64),
            ("sinks", model.sinks().count() as u64),
        ];
        for (key, value) in found {
            assert_eq!(Value::from(value), entry[key], "{key} of {name}");
        }
        let reference = |key: &str| entry[key].as_f64().expect("a number");
        near(name, model.critical_path(), reference("critical_path_s"));
        near(name, model.core_seconds(), reference("work_core_s"));
        near(name, analyse(&model, &Allocation::totals(1_000_000, 0)).sequential.seconds, reference("stage_inf"));
        for cpus in [2, 16, 64, 706] {
            let analysis = analyse(&model, &Allocation::totals(cpus, 0));
            near(name, analysis.bounds.seconds, reference(&format!("lb_{cpus}")));
            assert_eq!(analysis.degrees.dependencies as u64, entry["doa_dep"], "{name}");
            assert!(analysis.asynchronous.seconds <= analysis.sequential.seconds, "{name} {cpus}");
            assert!(analysis.asynchronous.seconds >= analysis.bounds.seconds - 1e-6, "{name} {cpus}");
        }
    }
}

/// Single tasks put together by kind are the task sets of the paper.
#[test]
fn records_of_the_paper_have_its_task_sets() {
    let Some(folder) = folder("async") else { return };
    for (name, sets, degrees) in
        [("cdg1-asrun", 8, (2, 2, 2)), ("cdg2-asrun", 8, (2, 2, 2)), ("cdg2-table2", 8, (2, 1, 1))]
    {
        let model = model(&folder.join(format!("{name}.wfformat.json.gz")));
        let analysis = analyse(&model, &Allocation::equal_nodes(16, 168, 6));
        assert_eq!(analysis.sets.len(), sets, "{name}");
        let found = analysis.degrees_of_sets.expect("merged");
        assert_eq!((found.dependencies, found.resources, found.wla), degrees, "{name}");
    }
    let model = model(&folder.join("ddmd3-adaptive.wfformat.json.gz"));
    let analysis = analyse(&model, &Allocation::equal_nodes(16, 168, 6));
    near("GPU bound", analysis.bounds.gpus, 1_135.968_75);
}
