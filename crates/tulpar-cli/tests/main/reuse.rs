//! Nothing finished is redone, and Tulpar says why it redoes something.

use super::harness::Scene;
use std::fs::{self, FileTimes};
use std::time::{Duration, SystemTime};

const TWO: &str = "workflow: two
data: {left: left.txt, right: right.txt}
tasks:
  join: {in: [left, right], out: {both: both.txt}, run: 'cat {left} {right} > {both}'}
  count: {in: [both], out: {lines: lines.txt}, run: 'wc -l < {both} > {lines}'}
";

fn two() -> Scene {
    let scene = Scene::new(TWO);
    scene.write("left.txt", "l\n");
    scene.write("right.txt", "r\n");
    scene.tulpar("run").done();
    scene
}

/// Which of the latest run's tasks were reused.
fn reused(scene: &Scene) -> Vec<String> {
    let view = scene.tulpar("status --tasks --json").done().json();
    let tasks = view["list"].as_array().unwrap();
    tasks.iter().filter(|task| task["reused"] == true).map(|task| task["task"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_new_time_of_a_data_file_changes_nothing() {
    let scene = two();
    let file = fs::File::options().append(true).open(scene.path("left.txt")).unwrap();
    file.set_times(FileTimes::new().set_modified(SystemTime::now() + Duration::from_secs(5))).unwrap();
    scene.tulpar("run").done();
    assert_eq!(reused(&scene), ["join", "count"]);
    insta::assert_snapshot!(scene.tulpar("explain join"), @r#"
    exit code 0
    --- stdout
    join: done (two-2)
    Its results were reused from two-1: its command, parameters, inputs and declared environment are the same.
    "#);
    insta::assert_snapshot!(scene.tulpar("logs join"), @r#"
    exit code 2
    --- stderr
    error: join did not run in two-2: it was reused from two-1
    hint: its words are there, while that run is kept: `tulpar logs 'join' --run two-1`
    "#);
}

#[test]
fn a_new_content_of_a_data_file_reruns_what_uses_it_and_explain_names_it() {
    let scene = two();
    scene.write("right.txt", "R\n");
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/both.txt"), "l\nR\n");
    assert_eq!(reused(&scene), Vec::<String>::new());
    insta::assert_snapshot!(scene.tulpar("explain join"), @r#"
    exit code 0
    --- stdout
    join: done (two-2)
    It ran because the input `right` changed: its content was <digest>, now it is <digest>.
      files of `right` since two-1: changed: right.txt
    Attempt 1: ended well after <duration>, <percent> cpu, on <host> (asked for 1 cpu)
    "#);
    scene.write("right.txt", "r\n");
    scene.tulpar("run").done();
    assert_eq!(reused(&scene), ["join", "count"]);
}

#[test]
fn a_changed_command_is_shown_before_and_now() {
    let scene = two();
    scene.write("workflow.yaml", &TWO.replace("wc -l", "wc -c"));
    scene.tulpar("run").done();
    assert_eq!(reused(&scene), ["join"]);
    insta::assert_snapshot!(scene.tulpar("explain count"), @r#"
    exit code 0
    --- stdout
    count: done (two-2)
    It ran because, since the last good run of it:
      the command changed:
        before: sh -c wc -l < both.txt > lines.txt
        now:  sh -c wc -c < both.txt > lines.txt
    Attempt 1: ended well after <duration>, <percent> cpu, on <host> (asked for 1 cpu)
    "#);
}

#[test]
fn a_changed_variable_is_shown_before_and_now() {
    let workflow =
        "workflow: env\ntasks:\n  a: {env: {LEVEL: 1, SAME: x}, out: {o: o.txt}, run: 'echo $LEVEL > {o}'}\n";
    let scene = Scene::new(workflow);
    scene.tulpar("run").done();
    scene.write("workflow.yaml", &workflow.replace("LEVEL: 1", "LEVEL: 2"));
    scene.tulpar("run").done();
    insta::assert_snapshot!(scene.tulpar("explain a"), @r#"
    exit code 0
    --- stdout
    a: done (env-2)
    It ran because, since the last good run of it:
      the environment changed:
        before: LEVEL=1
        now:  LEVEL=2
    Attempt 1: ended well after <duration>, <percent> cpu, on <host> (asked for 1 cpu)
    "#);
}

#[test]
fn the_order_of_inputs_does_not_matter() {
    let scene = two();
    scene.write("workflow.yaml", &TWO.replace("in: [left, right]", "in: [right, left]"));
    scene.tulpar("run").done();
    assert_eq!(reused(&scene), ["join", "count"]);
}

#[test]
fn a_task_with_cache_off_always_runs() {
    let scene = Scene::new(
        "workflow: off
tasks:
  now: {cache: off, out: {o: o.txt}, run: 'echo same > {o}'}
  next: {in: [o], out: {p: p.txt}, run: 'cp {o} {p}'}
",
    );
    scene.tulpar("run").done();
    scene.tulpar("run").done();
    assert_eq!(reused(&scene), ["next"]);
    insta::assert_snapshot!(scene.tulpar("explain now"), @r#"
    exit code 0
    --- stdout
    now: done (off-2)
    It ran because its results are not cached.
    Attempt 1: ended well after <duration>, <percent> cpu, on <host> (asked for 1 cpu)
    "#);
}

#[test]
fn a_run_without_cache_neither_uses_nor_keeps() {
    let scene = two();
    scene.tulpar("run --no-cache").done();
    assert_eq!(reused(&scene), Vec::<String>::new());
    scene.tulpar("run").done();
    assert_eq!(reused(&scene), ["join", "count"]);
}

#[test]
fn a_users_file_under_results_is_never_overwritten() {
    let scene = Scene::new("workflow: mine\ntasks:\n  a: {out: {o: o.txt}, run: 'echo theirs > {o}'}\n");
    scene.write("results/o.txt", "mine\n");
    let said = scene.tulpar("run").expect(3);
    assert_eq!(scene.read("results/o.txt"), "mine\n");
    assert!(said.err.contains("not from Tulpar"), "{said}");
}

#[test]
fn a_changed_input_of_many_files_names_those_that_changed() {
    let scene = Scene::new(
        "workflow: many\ndata: {all: 'd/*.txt'}\ntasks:\n  cat: {in: [all], out: {o: o.txt}, run: 'cat {all} > {o}'}\n",
    );
    for name in ["d/1.txt", "d/2.txt"] {
        scene.write(name, name);
    }
    scene.tulpar("run").done();
    scene.write("d/2.txt", "other");
    scene.write("d/3.txt", "new");
    scene.tulpar("run").done();
    insta::assert_snapshot!(scene.tulpar("explain cat"), @r#"
    exit code 0
    --- stdout
    cat: done (many-2)
    It ran because, since the last good run of it:
      the command changed:
        before: sh -c cat d/1.txt d/2.txt > o.txt
        now:  sh -c cat d/1.txt d/2.txt d/3.txt > o.txt
      the input `all` changed: its content was <digest>, now it is <digest>
      files of `all` since many-1: changed: d/2.txt; added: d/3.txt
    Attempt 1: ended well after <duration>, <percent> cpu, on <host> (asked for 1 cpu)
    "#);
}

#[test]
fn a_quota_shrinks_the_cache_after_a_run_and_the_reason_to_run_again_is_known() {
    let scene = Scene::new("workflow: quota\ntasks:\n  make: {out: {o: o.txt}, run: 'echo 1 > {o}'}\n");
    let said = scene.tulpar("run --cache-quota 0").done();
    assert!(said.err.contains("The cache was shrunk by 2 B."), "{said}");
    assert_eq!(scene.read("results/o.txt"), "1\n", "what was shown stays");
    let said = scene.tulpar("run --dry-run").done();
    assert!(said.out.contains("make  (its outputs are gone from the cache)"), "{said}");
    scene.tulpar("run --cache-quota lots").expect(2);
}

#[test]
fn a_plan_that_was_changed_since_the_run_began_is_refused() {
    let scene = Scene::new("workflow: edited\ntasks:\n  make: {out: {o: o.txt}, run: 'exit 1'}\n");
    scene.tulpar("run").expect(1);
    let plan = scene.read(".tulpar/runs/edited-1/plan.json");
    scene.write(".tulpar/runs/edited-1/plan.json", &plan.replace("exit 1", "echo 2 > o.txt"));
    let said = scene.tulpar("resume").expect(2);
    assert!(said.err.contains("is not the plan that this run began with"), "{said}");
}
