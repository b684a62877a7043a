//! What is run at all: conditions, `--until`, `--force`, dry runs.

use super::harness::Scene;

const CAREFUL: &str = "workflow: careful
params: {threshold: 0.5, dry: false}
tasks:
  evaluate: {out: {metrics: metrics.json}, run: 'echo ''{\"accuracy\":0.93}'' > {metrics}'}
  publish: {in: [metrics], out: {page: page.html}, when: metrics.accuracy >= threshold and not dry, run: 'echo good > {page}'}
  announce: {in: [page], run: cat page.html}
";

#[test]
fn a_condition_on_a_value_in_a_json_output_decides() {
    let scene = Scene::new(CAREFUL);
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/page.html"), "good\n");
    let dry = scene.tulpar("run --dry-run --json").done().json();
    assert_eq!(dry["reused"].as_array().unwrap().len(), 3, "{dry:#}");
    scene.tulpar("run -p threshold=0.99").done();
    insta::assert_snapshot!(scene.tulpar("explain publish"), @r#"
    exit code 0
    --- stdout
    publish: skipped (careful-2)
      publish: skipped, its condition is not true: metrics.accuracy >= threshold and not dry (metrics.accuracy is 0.93, threshold is 0.99, dry is false)
    "#);
    insta::assert_snapshot!(scene.tulpar("explain announce"), @r#"
    exit code 0
    --- stdout
    announce: skipped (careful-2)
      announce: skipped, because of publish
      publish: skipped, its condition is not true: metrics.accuracy >= threshold and not dry (metrics.accuracy is 0.93, threshold is 0.99, dry is false)
    "#);
}

#[test]
fn a_condition_on_a_parameter_decides() {
    let scene = Scene::new(CAREFUL);
    scene.tulpar("run -p dry=true").done();
    assert!(!scene.path("results/page.html").exists());
    let states = scene.tulpar("status --json").done().json()["tasks"].clone();
    assert_eq!(states, serde_json::json!({"done": 1, "skipped": 2}));
}

const CHAIN: &str = "workflow: chain
tasks:
  a: {out: {a1: a.txt}, run: 'echo a > {a1}'}
  b: {in: [a1], out: {b1: b.txt}, run: 'cat {a1} > {b1}; echo b >> {b1}'}
  c: {in: [b1], out: {c1: c.txt}, run: 'cat {b1} > {c1}; echo c >> {c1}'}
";

#[test]
fn until_stops_after_a_task() {
    let scene = Scene::new(CHAIN);
    scene.tulpar("run --until b").done();
    assert!(scene.path("results/b.txt").exists() && !scene.path("results/c.txt").exists());
    insta::assert_snapshot!(scene.tulpar("status"), @r#"
    exit code 0
    --- stdout
    chain-1: done (workflow chain, workflow.yaml)
    started <time>, took <duration>, on local
    2 tasks: 2 done

    set  tasks  done  reused  running  failed  skipped  mean  max  memory  cpu  read  written
    a  1  1  0  0  0  0  <duration>  <duration>  <size>  <percent>  <size>  <size>
    b  1  1  0  0  0  0  <duration>  <duration>  <size>  <percent>  <size>  <size>
    "#);
    insta::assert_snapshot!(scene.tulpar("explain c"), @r#"
    exit code 0
    --- stdout
    c: not part of chain-1, which was to run until b only
    "#);
    insta::assert_snapshot!(scene.tulpar("run --until bb"), @r#"
    exit code 2
    --- stderr
    error: the workflow has no task `bb`
    hint: did you mean `b`?
    "#);
}

#[test]
fn force_runs_a_task_again_and_only_it() {
    let scene = Scene::new(CHAIN);
    scene.tulpar("run").done();
    scene.tulpar("run --force b").done();
    // Its result came out as before: what needs it is reused.
    let states = scene.tulpar("status --tasks").done();
    insta::assert_snapshot!(states, @r#"
    exit code 0
    --- stdout
    chain-2: done (workflow chain, workflow.yaml)
    started <time>, took <duration>, on local
    3 tasks: 3 done, 2 of them reused

    task  state  attempts  wall  memory  cpu  node
    a  reused  0
    b  done  1  <duration>  <size>  <percent>  <host>
    c  reused  0
    "#);
    insta::assert_snapshot!(scene.tulpar("explain b"), @r#"
    exit code 0
    --- stdout
    b: done (chain-2)
    It ran because it was forced.
    Attempt 1: ended well after <duration>, <percent> cpu, on <host> (asked for 1 cpu)
    "#);
}

#[test]
fn a_dry_run_says_what_would_run_and_does_nothing() {
    let scene = Scene::new(CHAIN);
    insta::assert_snapshot!(scene.tulpar("run --dry-run"), @r#"
    exit code 0
    --- stdout
    run  a  (never run before)
    depends  b
    depends  c
    --- stderr
    1 task would run, 0 are reused, 2 depend on what runs
    "#);
    assert!(!scene.path("results").exists() && !scene.path(".tulpar/runs").exists());
    scene.tulpar("run").done();
    insta::assert_snapshot!(scene.tulpar("run --dry-run --force b"), @r#"
    exit code 0
    --- stdout
    run  b  (forced)
    reused  a  (from chain-1)
    depends  c
    --- stderr
    1 task would run, 1 are reused, 1 depend on what runs
    "#);
    let view = scene.tulpar("run --dry-run --json").done().json();
    assert_eq!(view["reused"].as_array().unwrap().len(), 3);
}

#[test]
fn a_dry_run_says_what_is_not_known_yet() {
    let scene = Scene::new(
        "workflow: unknown
tasks:
  split: {out: {pieces: 'pieces/*.txt'}, run: 'mkdir -p pieces; echo a > pieces/a.txt; echo b > pieces/b.txt'}
  shout: {for: {piece: pieces}, out: {loud: 'loud/{piece.stem}.txt'}, run: 'tr a-z A-Z < {piece} > {loud}'}
",
    );
    insta::assert_snapshot!(scene.tulpar("run --dry-run"), @r#"
    exit code 0
    --- stdout
    run  split  (never run before)
    unknown  shout  (known when split has run)
    --- stderr
    1 task would run, 0 are reused, 0 depend on what runs, 1 task sets are not known yet
    "#);
    scene.tulpar("run").done();
    insta::assert_snapshot!(scene.tulpar("run --dry-run"), @r#"
    exit code 0
    --- stdout
    reused  split  (from unknown-1)
    reused  shout[piece=pieces/a.txt]  (from unknown-1)
    reused  shout[piece=pieces/b.txt]  (from unknown-1)
    --- stderr
    0 tasks would run, 3 are reused, 0 depend on what runs
    "#);
}

#[test]
fn what_no_site_can_give_is_refused_before_the_run() {
    let scene = Scene::new("workflow: large\ntasks:\n  a: {cpus: 4000, run: echo}\n");
    let said = scene.tulpar("run").expect(2);
    assert!(said.err.contains("error[W025]"), "{said}");
}
