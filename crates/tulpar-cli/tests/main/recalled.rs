//! A finished search is replayed as it was, whatever became of the run that made it.

use super::harness::Scene;
use std::fs;

/// Its trials end in an order that is another one each time.
const SEARCH: &str = "workflow: cells
tasks:
  tune:
    cpus: 0.25
    search: {trials: 16, parallel: 4, minimize: loss, seed: 3, space: {x: 'float(0, 1)', y: 'float(0, 1)'}}
    run: |
      sleep 0.0$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')
      awk 'BEGIN{printf \"{\\\"loss\\\": %f}\\n\", ({x}-0.3)^2+({y}-0.7)^2}'
  keep:
    in: [tune.trials]
    out: {table: table.csv}
    run: cp {trials} {table}
";

fn searched() -> (Scene, String) {
    let scene = Scene::new(SEARCH);
    scene.tulpar("run").done();
    let table = scene.read("results/table.csv");
    (scene, table)
}

#[track_caller]
fn is_replayed(scene: &Scene, table: &str) {
    let foreseen = scene.tulpar("run --dry-run --json").done().json();
    assert_eq!(foreseen["runs"], serde_json::json!([]), "{foreseen}");
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/table.csv"), table);
}

#[test]
fn fewer_trials_in_between_do_not_shorten_a_finished_search() {
    let (scene, table) = searched();
    scene.write("workflow.yaml", &SEARCH.replace("trials: 16", "trials: 6"));
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/table.csv").lines().count(), 7);
    scene.write("workflow.yaml", SEARCH);
    is_replayed(&scene, &table);
}

#[test]
fn many_other_searches_in_between_do_not_push_out_a_finished_one() {
    let (scene, table) = searched();
    for seed in 10..20 {
        scene.write("workflow.yaml", &SEARCH.replace("seed: 3", &format!("seed: {seed}")).replace("16", "1"));
        scene.tulpar("run").done();
    }
    scene.write("workflow.yaml", SEARCH);
    is_replayed(&scene, &table);
}

#[test]
fn a_run_without_the_cache_leaves_a_finished_search_as_it_was() {
    // Long enough to end in another order when they run again.
    let scene = Scene::new(&SEARCH.replace("sleep 0.0", "sleep 0.").replace("trials: 16", "trials: 30"));
    scene.tulpar("run").done();
    let table = scene.read("results/table.csv");
    scene.tulpar("run --no-cache").done();
    is_replayed(&scene, &table);
}

#[test]
fn a_finished_search_outlives_its_run_and_goes_with_the_cache() {
    let (scene, table) = searched();
    scene.write("other.yaml", "workflow: other\ntasks: {t: {run: 'true'}}\n");
    scene.tulpar("run other.yaml").done();
    scene.tulpar("clean").done();
    assert!(!scene.path(".tulpar/runs/cells-1").exists());
    is_replayed(&scene, &table);
    let kept = fs::read_dir(scene.path(".tulpar/cache/searches")).unwrap().count();
    assert_eq!(kept, 1);
}
