//! The provenance of a run and the metrics of its tasks appear wherever runs appear.

use super::harness::Scene;
use super::page::Served;
use serde_json::json;
use std::process::Command;

const TRAIN: &str = r#"workflow: train
params: {size: 24, name: plain}
data: {points: points.txt}
tasks:
  fit:
    in: [points]
    out: {model: model.txt}
    run: |
      echo '{"epoch": 1, "accuracy": 0.5}' >> $TULPAR_REPORT
      echo '{"accuracy": 0.{size}, "parameters": {size}}' >> $TULPAR_REPORT
      echo '{"printed": 1}'
      cat {points} > {model}
"#;

fn scene() -> Scene {
    let scene = Scene::new(TRAIN);
    scene.write("points.txt", "1 2 3\n");
    scene
}

fn git(scene: &Scene, words: &[&str]) -> String {
    let who = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"];
    let mut command = Command::new("git");
    command.current_dir(scene.path("")).args(who).args(words).env("HOME", scene.home(""));
    let output = command.output().expect("git");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn runs_and_status_show_parameters_commit_and_metrics() {
    let scene = scene();
    // No repository: nothing is said, and nothing fails.
    scene.tulpar("run").done();
    assert_eq!(scene.tulpar("status --json").done().json()["code"], json!(null));
    git(&scene, &["init", "-q"]);
    scene.write(".gitignore", ".tulpar\nresults\n");
    git(&scene, &["add", "workflow.yaml", ".gitignore"]);
    git(&scene, &["commit", "-qm", "first"]);
    let commit = git(&scene, &["rev-parse", "HEAD"]);
    scene.tulpar("run -p size=32").done();
    scene.write(".gitignore", ".tulpar\nresults\nother\n");
    scene.tulpar("run -p size=32").done();

    let runs = scene.tulpar("runs --json").done().json();
    let parameters: Vec<_> = (0..3).map(|run| runs[run]["parameters"]["size"].clone()).collect();
    assert_eq!(parameters, [json!(24), json!(32), json!(32)]);
    assert_eq!(runs[0]["parameters"]["name"], json!("plain"));
    assert_eq!(runs[0]["code"], json!(null));
    assert_eq!(runs[1]["code"], json!({"commit": commit, "dirty": false}));
    assert_eq!(runs[2]["code"], json!({"commit": commit, "dirty": true}));
    // The last run reused the task, and with it what it had reported.
    assert_eq!((runs[2]["reused"].as_u64(), runs[2]["metrics"].as_array().unwrap().len()), (Some(1), 2));
    assert_eq!(runs[2]["metrics"][0]["set"], json!("fit"));
    assert_eq!((&runs[2]["metrics"][0]["name"], &runs[2]["metrics"][0]["max"]), (&json!("accuracy"), &json!(0.32)));
    let said = scene.tulpar("runs").done().out;
    for part in ["size=24", "size=32", &commit[..12], &format!("{}+", &commit[..12]), "fit accuracy=0.32"] {
        assert!(said.contains(part), "{part}: {said}");
    }

    let status = scene.tulpar("status").done().out;
    for part in ["parameters: name=plain size=32", &format!("commit {commit}, with changes"), "fit accuracy=0.32"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let status = scene.tulpar("status --json").done().json();
    assert_eq!(status["parameters"]["size"], json!(32));
    assert_eq!(status["metrics"][1]["name"], json!("parameters"));
}

#[test]
fn an_untracked_workflow_is_never_called_the_one_of_the_commit() {
    let scene = scene();
    git(&scene, &["init", "-q"]);
    git(&scene, &["add", "points.txt"]);
    git(&scene, &["commit", "-qm", "first"]);
    scene.tulpar("run").done();
    assert_eq!(scene.tulpar("status --json").done().json()["code"]["dirty"], json!(true));
}

#[test]
fn the_report_shows_parameters_and_metrics() {
    let scene = scene();
    scene.tulpar("run -p size=48").done();
    let report = scene.tulpar("report --markdown").done().out;
    for part in ["name=plain size=48", "accuracy", "0.48"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let report = scene.tulpar("report --json").done().json();
    assert_eq!(report["runs"][0]["provenance"]["parameters"]["size"], json!(48));
    assert_eq!(report["runs"][0]["metrics"][0]["max"], json!(0.48));
    scene.tulpar("report --html page.html").done();
    let page = scene.read("page.html");
    assert!(page.contains("name=plain size=48") && page.contains("accuracy"), "{page}");
}

#[test]
fn the_page_shows_them_and_compares_parameters_inputs_and_metrics() {
    let scene = scene();
    scene.tulpar("run -p size=24").done();
    scene.write("points.txt", "4 5 6\n");
    scene.tulpar("run -p size=32").done();
    let served = Served::start(&scene, &[]);
    let run = served.json("/api/runs/train-2");
    assert_eq!(run["provenance"]["parameters"]["size"], json!(32));
    assert_eq!(run["metrics"][0]["max"], json!(0.32));
    assert_eq!(served.json("/api/runs")["runs"][0]["provenance"]["parameters"]["size"], json!(24));
    let compared = served.json("/api/compare?run=train-1&run=train-2");
    let row = |kind: &str, name: &str| {
        let rows = compared["differences"].as_array().unwrap();
        rows.iter().find(|row| row["kind"] == kind && row["name"] == name).cloned()
    };
    assert_eq!(row("parameter", "size").unwrap()["values"], json!(["24", "32"]));
    assert_eq!(row("parameter", "name"), None, "it is the same in both");
    assert_eq!(row("metric", "fit accuracy").unwrap()["values"], json!(["0.24", "0.32"]));
    let points = row("input", "points").unwrap();
    assert_ne!(points["values"][0], points["values"][1]);
}
