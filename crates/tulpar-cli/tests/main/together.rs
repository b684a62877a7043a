//! Several workflows in one run: each as it would be alone, under its own name.

use super::harness::Scene;

const TRAIN: &str = "workflow: train
params: {epochs: 2, name: net}
data: {labels: labels.csv}
tasks:
  fit:
    for: {seed: 1..2}
    in: [labels]
    out:
      model: model-{seed}.txt
    run: echo \"fit {name} {epochs} $(cat {labels})\" > {model}
  best:
    in: [model]
    out: {total: total.txt}
    run: cat {model} > {total}
";
const CLEAN: &str = "workflow: clean
params: {name: words}
data: {labels: other.csv}
tasks:
  fit:
    in: [labels]
    out: {total: total.txt, pieces: 'pieces/*'}
    run: |
      echo \"{name} $(cat {labels})\" > {total}
      mkdir -p pieces; echo x > pieces/x; echo y > pieces/y
  each:
    for: {piece: pieces}
    out:
      loud: loud-{piece.stem}.txt
    run: tr a-z A-Z < {piece} > {loud}
";

fn scene() -> Scene {
    let scene = Scene::empty();
    scene.write("train.yaml", TRAIN);
    scene.write("clean.yaml", CLEAN);
    scene.write("labels.csv", "one\n");
    scene.write("other.csv", "two\n");
    scene
}

#[test]
fn two_workflows_share_a_run_and_keep_their_names_data_parameters_and_results() {
    let scene = scene();
    let said = scene.tulpar("run train.yaml clean.yaml --weights 2,1 -p epochs=9 -p name=both").done();
    assert!(said.err.contains("train+clean-1: done: 6 of 6 tasks"), "{said}");
    assert_eq!(scene.read("results/train/total.txt"), "fit both 9 one\n".repeat(2));
    assert_eq!(scene.read("results/clean/total.txt"), "both two\n");
    assert_eq!(scene.read("results/clean/loud-y.txt"), "Y\n");
    assert!(!scene.path("results/total.txt").exists());
    let status = scene.tulpar("status --json").done().json();
    assert_eq!(status["workflow_file"], "train.yaml + clean.yaml");
    let tasks = scene.tulpar("status --tasks").done();
    for name in ["train/fit[seed=1]", "train/best", "clean/each[piece="] {
        assert!(tasks.out.contains(name), "{tasks}");
    }
    assert!(scene.tulpar("explain clean/fit").done().out.contains("clean/fit"));
    scene.tulpar("story 'train/fit[seed=2]'").done();
    scene.tulpar("logs train/best").done();
    let outputs = scene.tulpar("outputs").done();
    assert!(outputs.out.contains("results/train/model-1.txt"), "{outputs}");
    let made = scene.tulpar("lineage results/clean/total.txt").done();
    assert!(made.out.contains("clean/fit") && made.out.contains("other.csv"), "{made}");
    std::fs::remove_file(scene.path("results/train/total.txt")).expect("a result");
    let made = scene.tulpar("lineage results/train/total.txt").done();
    assert!(made.out.contains("train/best"), "{made}");
    // A name that is not there is met with the nearest.
    let said = scene.tulpar("run train.yaml clean.yaml --until train/bset").expect(2);
    assert!(said.err.contains("did you mean `train/best`?"), "{said}");
}

#[test]
fn results_of_shared_runs_and_of_runs_alone_are_reused_by_each_other() {
    let scene = scene();
    scene.tulpar("run train.yaml").done();
    let dry = scene.tulpar("run train.yaml clean.yaml --dry-run").done();
    assert!(dry.out.contains("reused   train/fit[seed=1]") && dry.out.contains("run      clean/fit"), "{dry}");
    let said = scene.tulpar("run train.yaml clean.yaml --force clean/fit").done();
    assert!(said.err.contains("3 reused"), "{said}");
    let said = scene.tulpar("run clean.yaml").done();
    assert!(said.err.contains("3 reused"), "{said}");
    assert_eq!(scene.read("results/total.txt"), "words two\n");
    let said = scene.tulpar("run clean.yaml train.yaml clean.yaml --until clean-2/fit").done();
    assert!(said.err.contains("reused"), "{said}");
    assert_eq!(scene.read("results/clean-2/total.txt"), "words two\n");
    assert!(!scene.path("results/clean-2/loud-x.txt").exists(), "only what was asked for");
}

#[test]
fn a_failure_of_one_leaves_the_other_alone_and_can_be_resumed() {
    let scene = scene();
    let go = scene.path("go").display().to_string();
    let command = format!("test -e {go} && cp {{gate}} {{o}}");
    scene.write(
        "broken.yaml",
        &format!(
            "workflow: broken\ndata: {{gate: gate.txt}}\ntasks:\n  stop: {{in: [gate], out: {{o: o.txt}}, run: '{command}'}}\n"
        ),
    );
    scene.write("gate.txt", "open\n");
    let said = scene.tulpar("run broken.yaml clean.yaml").expect(1);
    assert!(said.err.contains("broken/stop"), "{said}");
    assert_eq!(scene.read("results/clean/total.txt"), "words two\n");
    scene.write("go", "");
    scene.tulpar("resume").done();
    assert_eq!(scene.read("results/broken/o.txt"), "open\n");
}

#[test]
fn workflows_of_other_systems_take_part() {
    let scene = scene();
    scene.write("one.sub", "executable = /bin/echo\narguments = hello\noutput = said.txt\nqueue\n");
    scene.write("other.dag", "JOB A one.sub\n");
    let said = scene.tulpar("run other.dag clean.yaml -p name=x").done();
    assert_eq!(scene.read("results/clean/total.txt"), "x two\n");
    let member = scene.tulpar("status --tasks").done();
    assert!(member.out.contains("/A"), "{member}{said}");
}

#[test]
fn what_cannot_be_said_of_several_workflows_is_refused_with_a_reason() {
    let scene = scene();
    scene.write("away/third.yaml", "workflow: third\ntasks: {a: {run: 'true'}}\n");
    scene.write("bad.yaml", "workflow: bad\ntasks: {a: {rum: 'true'}}\n");
    for (line, message) in [
        ("run train.yaml away/third.yaml", "are in different folders"),
        ("run train.yaml clean.yaml --weights 1,2,3", "`--weights` has 3 numbers for 2 workflows"),
        ("run train.yaml --weights 1", "--weights"),
        ("run train.yaml clean.yaml -p eposch=3", "did you mean `epochs`?"),
        ("run train.yaml bad.yaml", "did you mean `run`?"),
        ("run train.yaml clean.yaml --cluster whole", "several workflows in one run cannot be combined"),
    ] {
        let said = scene.tulpar(line).expect(2);
        assert!(said.err.contains(message), "{line}: {said}");
    }
    assert!(!scene.path(".tulpar/runs").exists(), "nothing was started");
}
