//! Loops that learn while they run: results taken as they come, and the newest of them, with the real binary.

use super::harness::{Scene, wait_for};

const STREAMING: &str = include_str!("../../../../examples/deepdrivemd/streaming.yaml");

/// Of the latest run, each event of its journal: its kind and what it says.
fn journal(scene: &Scene) -> Vec<(String, serde_json::Value)> {
    let run = scene.tulpar("status --json").done().json()["run"].as_str().expect("a name").to_owned();
    let text = scene.read(&format!(".tulpar/runs/{run}/journal.jsonl"));
    let event = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).expect("an event");
        (event["kind"].as_str().unwrap_or("").to_owned(), event)
    };
    text.lines().map(event).collect()
}

#[test]
fn the_streaming_example_trains_while_it_simulates() {
    let scene = Scene::new(STREAMING);
    scene.tulpar("check").done();
    scene.tulpar("run").done();
    // 36 results make 6 batches, these 3 models; the last model has seen all.
    let report = scene.read("results/report.txt");
    assert_eq!(report.lines().count(), 6 + 3 + 1, "{report}");
    let seen: Vec<String> = (1..=3).map(|number| scene.read(&format!("results/models/{number}.txt"))).collect();
    assert_eq!(seen.concat().split_whitespace().collect::<Vec<_>>(), ["12", "12", "12"]);
    let events = journal(&scene);
    let job = |event: &serde_json::Value| event["data"]["attempt"]["job"].as_u64();
    let place = |kind: &str, wanted: &dyn Fn(u64) -> bool| {
        let mut places =
            events.iter().enumerate().filter(|(_, (other, event))| other == kind && job(event).is_some_and(wanted));
        (places.next().map(|(at, _)| at), places.next_back().map(|(at, _)| at))
    };
    // The simulations are the first 36 jobs.
    let (first_batch, _) = place("submitted", &|job| job >= 36);
    let (_, last_simulation) = place("submitted", &|job| job < 36);
    assert!(first_batch < last_simulation, "{first_batch:?} {last_simulation:?}");
    // The last simulation began from outliers, and its lineage leads there.
    let last = scene.read("results/frames/36.txt");
    assert!(last.starts_with("36 from ") && last.trim_end().ends_with(".txt"), "{last}");
    let made = scene.tulpar("lineage results/frames/36.txt --depth 2").done();
    let number = last.trim_end().trim_start_matches("36 from ").trim_end_matches(".txt");
    assert!(made.out.contains(&format!("made by infer[batch={number}]")), "{last}{made}");
    let simulated = scene.tulpar("simulate").done();
    assert!(simulated.out.contains("tasks     52 of 52 done"), "{simulated}");
}

#[test]
fn a_batch_that_waits_says_how_many_results_are_there() {
    let scene = Scene::new(
        "workflow: batches
tasks:
  simulate:
    for: {n: 1..3}
    cpus: 0.1
    out: {frames: 'frames-{n}.txt'}
    run: 'if [ {n} != 2 ]; then while [ ! -f $HOME/go-{n} ]; do sleep 0.02; done; fi; echo {n} > {frames}'
  train:
    for: {batch: frames by 2 as ready}
    cpus: 0.1
    out: {model: 'model-{batch.index}.txt'}
    run: 'cat {batch} > {model}'
",
    );
    let running = scene.start(scene.command(&["run"]));
    wait_for("one result is there", || scene.tulpar("explain 'train[batch=1]'").out.contains("1 of the 2"));
    insta::assert_snapshot!(scene.tulpar("explain 'train[batch=1]'"), @r#"
    exit code 0
    --- stdout
    train[batch=1]: waiting (batches-1)
    It takes results of simulate as they come: 1 of the 2 for it are there.
    "#);
    std::fs::write(scene.home("go-3"), "").expect("a file");
    wait_for("the first batch is trained", || scene.path("results/model-1.txt").exists());
    // A driver that dies and another that goes on have the same batches.
    running.kill();
    std::fs::write(scene.home("go-1"), "").expect("a file");
    scene.tulpar("resume").done();
    assert_eq!(scene.read("results/model-1.txt"), "2\n3\n");
    assert_eq!(scene.read("results/model-2.txt"), "1\n");
}

#[test]
fn what_is_planned_ahead_cannot_take_results_as_they_come() {
    let scene = Scene::new(STREAMING);
    let said = scene.tulpar("run --cluster whole").expect(2);
    assert!(said.err.contains("leave out `as ready` and `latest`"), "{said}");
}
