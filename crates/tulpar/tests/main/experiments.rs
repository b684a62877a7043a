//! `tulpar experiment`: published experiments come out again, and small ones are really run.

use super::harness::Scene;
use serde_json::Value;

#[test]
fn the_published_scenarios_have_the_orderings_of_the_study() {
    let scene = Scene::empty();
    let studies: Value = scene.tulpar("experiment scenarios --json").done().json();
    let fastest_first = |study: &Value| -> Vec<String> {
        let mut rows: Vec<(f64, String)> = study["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["scenario"] != "auto")
            .map(|row| (row["makespan"].as_f64().unwrap(), row["scenario"].as_str().unwrap().to_owned()))
            .collect();
        rows.sort_by(|one, other| one.0.total_cmp(&other.0));
        rows.into_iter().map(|(_, name)| name).collect()
    };
    for study in studies.as_array().unwrap() {
        let expected = ["clustering", "container_installed", "baseline", "nfs"];
        assert_eq!(fastest_first(study), expected, "{}", study["workflow"]);
    }
    let said = scene.tulpar("experiment scenarios").done().out;
    assert!(said.contains("not galaxy with clustering"), "{said}");
    // What is not known of the study's machines is enough to come to its figures: they lie between the rows.
    let cells = |row: &str| -> Vec<f64> {
        let line = said.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("{row}: {said}"));
        let numbers = line[row.len()..].replace('−', "-");
        numbers.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let (ours, varied, theirs) = (cells("as simulated"), cells("all of these"), cells("the study"));
    assert_eq!(theirs, [13.0, -16.0]);
    assert!(varied[0] < theirs[0] && theirs[0] < ours[0], "{said}");
    assert!(varied[1] < ours[1], "{said}");
}

#[test]
fn a_cluster_asks_for_no_more_than_its_nodes_have_though_this_machine_has_more() {
    let tasks = "  a: {out: {o: o.txt}, run: 'echo > {o}'}\n  b: {out: {p: p.txt}, run: 'echo > {p}'}\n";
    let scene = Scene::new(&format!("workflow: wide\ntasks:\n{tasks}"));
    scene.tulpar("experiment scenarios workflow.yaml --cpus 1 --repeat 1 --latency 1ms").done();
}

#[test]
fn a_workflow_is_run_in_every_scenario_and_all_runs_are_reported() {
    let scene = Scene::new(
        "workflow: small
data: {pictures: 'pictures/*.txt'}
tasks:
  clean:
    for: {picture: pictures}
    out: {small: 'small/{picture.stem}.txt'}
    run: tr a-z A-Z < {picture} > {small}
  train:
    in: [clean.small]
    out: {model: model.txt}
    run: cat {small} > {model}
",
    );
    for name in ["a", "b", "c"] {
        scene.write(&format!("pictures/{name}.txt"), name);
    }
    let told = scene.tulpar("experiment scenarios workflow.yaml --repeat 2 --latency 1ms --json").done();
    assert!(told.err.contains("`container installed` would be the baseline again"), "{}", told.err);
    let report: Value = told.json();
    let scenarios: Vec<(&str, usize)> = report["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|scenario| (scenario["name"].as_str().unwrap(), scenario["runs"].as_array().unwrap().len()))
        .collect();
    assert_eq!(scenarios, [("baseline", 2), ("clustering", 2), ("nfs", 2)]);
    assert_eq!(scene.read("results/model.txt"), "ABC");
    assert!(scene.read("scenarios.html").contains("clustering"));
}

#[test]
fn modes_of_the_published_workflows_take_what_their_authors_say() {
    let scene = Scene::empty();
    let told = scene.tulpar("experiment async here --json").done().json();
    let near = |workflow: &str, mode: &str, ideal: f64, with_overhead: f64| {
        let rows = told["published"].as_array().unwrap();
        let row = rows.iter().find(|row| row["workflow"] == workflow && row["mode"] == mode).unwrap();
        for (key, expected) in [("ideal", ideal), ("with_overhead", with_overhead)] {
            let found = row[key].as_f64().unwrap();
            assert!((found / expected - 1.0).abs() < 0.01, "{workflow}, {mode}, {key}: {found} instead of {expected}");
        }
    };
    near("deepdrivemd", "sequential", 1578.0, 1660.1);
    // The authors measured 1331.5 s in a run whose tasks took other times than their table says.
    near("deepdrivemd", "staggered", 1323.0, 1382.2);
    near("c-dg1", "sequential", 1875.2, 1902.5);
    near("c-dg1", "adaptive", 1875.2, 1909.1);
    near("c-dg2", "sequential", 1769.4, 1800.1);
    near("c-dg2", "adaptive", 1307.9, 1332.6);
    assert!(scene.read("here/async.html").contains("c-dg2, adaptive"));
}

#[test]
fn the_io_of_five_applications_is_generated_recorded_and_analysed() {
    let scene = Scene::empty();
    let rows = scene.tulpar("experiment io here --scale 4MB --json").done().json();
    let kernels: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["kernel"].as_str().unwrap()).collect();
    assert_eq!(kernels, ["imagenet", "cosmictagger", "ffn", "cosmoflow", "frnn"]);
    for row in rows.as_array().unwrap() {
        assert!(row["analysed"]["io_share"].as_f64().is_some_and(|share| share > 0.0 && share < 1.0), "{row}");
        assert!(row["published"]["io_share"].as_f64().is_some(), "{row}");
    }
    assert!(scene.read("here/frnn.html").contains("<!DOCTYPE html>"));
}
