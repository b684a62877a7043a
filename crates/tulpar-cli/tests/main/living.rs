//! Runs that are going on: in the background, interrupted, cancelled, resumed, driven twice.

use super::harness::{Running, Scene, wait_for};
use std::process::{Command, Stdio};

/// `first` waits for a file in the home folder; `second` needs it.
const WAITS: &str = "workflow: waits
tasks:
  first: {out: {a: a.txt}, run: 'while [ ! -f $HOME/go ]; do sleep 0.02; done; echo a > {a}'}
  second: {in: [a], out: {b: b.txt}, run: 'cp {a} {b}'}
";

fn standing(scene: &Scene) -> String {
    let said = scene.tulpar("status --json");
    if said.code != Some(0) {
        return String::new();
    }
    let view = said.json();
    let running = view["tasks"].get("running").is_some();
    format!("{}{}", view["standing"].as_str().unwrap(), if running { " a task" } else { "" })
}

fn started(scene: &Scene, line: &[&str]) -> Running {
    let running = scene.start(scene.command(line));
    wait_for("a task runs", || standing(scene) == "running a task");
    running
}

fn go(scene: &Scene) {
    std::fs::write(scene.home("go"), "").unwrap();
}

#[test]
fn a_detached_run_goes_on_and_can_be_watched() {
    let scene = Scene::new(WAITS);
    let said = scene.tulpar("run --detach").done();
    insta::assert_snapshot!(said, @r#"
    exit code 0
    --- stdout
    waits-1
    --- stderr
    Running in the background. `tulpar watch waits-1` shows it, `tulpar cancel --run waits-1` ends it; its words are in <folder>/.tulpar/runs/waits-1/driver.log
    "#);
    wait_for("a task runs", || standing(&scene) == "running a task");
    insta::assert_snapshot!(scene.tulpar("explain second"), @r#"
    exit code 0
    --- stdout
    second: waiting (waits-1)
    It waits for 1 of 1 task above it:
      first: running
    "#);
    let first = scene.tulpar("explain first").done();
    assert!(first.out.contains("Attempt 1 is on "), "{first}");
    go(&scene);
    wait_for("the run is done", || standing(&scene) == "done");
    assert_eq!(scene.read("results/b.txt"), "a\n");
}

#[test]
fn a_detached_run_keeps_the_sandboxes_that_it_was_told_to_keep() {
    let scene = Scene::new("workflow: keeps\ntasks:\n  a: {out: {o: o.txt}, run: 'echo > {o}; echo > other.txt'}\n");
    scene.tulpar("run --detach --keep all").done();
    wait_for("the run is done", || standing(&scene) == "done");
    wait_for("the driver has ended", || scene.tulpar("status --json").done().json().get("driver").is_none());
    assert!(scene.path(".tulpar/runs/keeps-1/attempts/0/0.1/work/other.txt").exists());
}

#[test]
fn what_was_asked_of_a_dead_driver_is_not_asked_of_the_next() {
    let scene = Scene::new(WAITS);
    started(&scene, &["run"]).kill();
    wait_for("the lock is free", || standing(&scene) == "stopped");
    scene.write(".tulpar/runs/waits-1/cancel", "*\n");
    let running = started(&scene, &["resume"]);
    assert!(!scene.path(".tulpar/runs/waits-1/cancel").exists());
    go(&scene);
    running.end().done();
}

#[test]
fn a_detached_run_is_cancelled() {
    let scene = Scene::new(WAITS);
    scene.tulpar("run --detach").done();
    wait_for("a task runs", || standing(&scene) == "running a task");
    insta::assert_snapshot!(scene.tulpar("clean waits-1"), @r#"
    exit code 2
    --- stderr
    error: waits-1 is running
    hint: end it first: `tulpar cancel --run waits-1`
    "#);
    insta::assert_snapshot!(scene.tulpar("cancel"), @r#"
    exit code 0
    --- stdout
    waits-1: cancelled
    --- stderr
    Cancelling waits-1: what runs is ended.
    "#);
    insta::assert_snapshot!(scene.tulpar("explain first").done().out.lines().next().unwrap(), @"first: cancelled (waits-1)");
    assert!(!scene.path("results/a.txt").exists());
}

#[test]
fn one_task_of_a_run_is_cancelled() {
    let scene = Scene::new(
        "workflow: pair
tasks:
  stuck: {run: exec sleep 600}
  good: {out: {a: a.txt}, run: 'while [ ! -f $HOME/go ]; do sleep 0.02; done; echo a > {a}'}
",
    );
    let running = started(&scene, &["run"]);
    insta::assert_snapshot!(scene.tulpar("cancel stuk"), @r#"
    exit code 2
    --- stderr
    error: the workflow of pair-1 has no task `stuk`
    hint: did you mean `stuck`?
    "#);
    insta::assert_snapshot!(scene.tulpar("cancel stuck"), @r#"
    exit code 0
    --- stderr
    Asked pair-1 to cancel 1 task; `tulpar status pair-1` shows how it stands.
    "#);
    wait_for("it is cancelled", || scene.tulpar("explain stuck --json").done().json()["state"] == "cancelled");
    go(&scene);
    running.end().expect(4);
    assert_eq!(scene.read("results/a.txt"), "a\n");
}

#[test]
fn the_first_ctrl_c_lets_what_runs_end_and_resume_goes_on() {
    let scene = Scene::new(WAITS);
    let running = started(&scene, &["run"]);
    running.signal("INT");
    wait_for("it drains", || scene.tulpar("story first").out.contains("the run starts nothing more"));
    go(&scene);
    let said = running.end().expect(130);
    assert!(said.err.contains("Starting nothing more; waiting for what runs."), "{said}");
    assert!(said.err.contains("tulpar resume waits-1"), "{said}");
    assert!(scene.path("results/a.txt").exists() && !scene.path("results/b.txt").exists());
    insta::assert_snapshot!(scene.tulpar("status"), @r#"
    exit code 0
    --- stdout
    waits-1: interrupted (workflow waits, workflow.yaml)
    started <time>, took <duration>, on local
    2 tasks: 1 done, 1 looking

    set  tasks  done  reused  running  failed  skipped  mean  max  memory  cpu  read  written
    first  1  1  0  0  0  0  <duration>  <duration>  <size>  <percent>  <size>  <size>
    second  1  0  0  0  0  0
    --- stderr
    hint: go on with `tulpar resume waits-1`
    "#);
    scene.tulpar("resume").done();
    assert_eq!(scene.read("results/b.txt"), "a\n");
    let attempts = scene.tulpar("explain first --json").done().json()["attempts"].as_array().unwrap().len();
    assert_eq!(attempts, 1);
}

#[test]
fn the_second_ctrl_c_ends_what_runs() {
    let scene = Scene::new(WAITS);
    let running = started(&scene, &["run"]);
    running.signal("INT");
    wait_for("it drains", || scene.tulpar("story first").out.contains("the run starts nothing more"));
    running.signal("INT");
    running.end().expect(130);
    assert_eq!(standing(&scene), "interrupted");
    go(&scene);
    scene.tulpar("resume").done();
    assert_eq!(scene.read("results/b.txt"), "a\n");
}

#[test]
fn a_sigterm_ends_what_runs_and_keeps_checkpoints() {
    let scene = Scene::new(
        "workflow: waits
tasks:
  train:
    checkpoint: state.txt
    out: {model: model.txt}
    run: |
      if [ -f state.txt ]; then cp state.txt {model}; exit 0; fi
      trap 'echo saved > state.txt; exit 1' TERM
      : > $HOME/ready
      while :; do sleep 0.02; done
",
    );
    let running = scene.start(scene.command(&["run"]));
    wait_for("the task is ready", || scene.home("ready").exists());
    running.signal("TERM");
    running.end().expect(130);
    assert_eq!(standing(&scene), "interrupted");
    scene.tulpar("resume").done();
    assert_eq!(scene.read("results/model.txt"), "saved\n");
}

#[test]
fn a_run_whose_terminal_is_gone_still_stops_as_it_should() {
    let scene = Scene::new("workflow: waits\ntasks:\n  wait: {run: \": > $HOME/ready; sleep 600\"}\n");
    let mut command = scene.command(&["run"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    wait_for("the task is ready", || scene.home("ready").exists());
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    wait_for("the program ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(standing(&scene), "interrupted");
}

#[test]
fn a_second_driver_of_the_same_run_is_refused() {
    let scene = Scene::new(WAITS);
    let running = started(&scene, &["run"]);
    insta::assert_snapshot!(scene.tulpar("resume waits-1"), @r#"
    exit code 3
    --- stderr
    error: <folder>/.tulpar/runs/waits-1/journal.jsonl is in use by another Tulpar (process <number>): wait until it ends, or stop it with `tulpar cancel`
    "#);
    go(&scene);
    running.end().done();
}

#[test]
fn a_killed_driver_leaves_a_run_that_says_how_to_go_on() {
    let scene = Scene::new(WAITS);
    let running = started(&scene, &["run"]);
    running.kill();
    wait_for("the lock is free", || standing(&scene) == "stopped");
    insta::assert_snapshot!(scene.tulpar("status"), @r#"
    exit code 0
    --- stdout
    waits-1: stopped (workflow waits, workflow.yaml)
    started <time>, took <duration>, on local
    2 tasks: 1 interrupted, 1 waiting

    set  tasks  done  reused  running  failed  skipped  mean  max  memory  cpu  read  written
    first  1  0  0  0  0  0
    second  1  0  0  0  0  0
    --- stderr
    hint: its driver is gone (killed, or the machine went down); go on with `tulpar resume waits-1`
    "#);
    insta::assert_snapshot!(scene.tulpar("explain first"), @r#"
    exit code 0
    --- stdout
    first: interrupted (waits-1)
    Attempt 1 was going on when the driver went away.
    It ran because it was never run before here.
    Attempt 1: started, on <host> (asked for 1 cpu)
    Its files were left in <folder>/.tulpar/runs/waits-1/attempts/0/0.1/work
    --- stderr
    hint: nothing drives this run; go on with `tulpar resume waits-1`
    "#);
    insta::assert_snapshot!(scene.tulpar("cancel"), @r#"
    exit code 2
    --- stderr
    error: nothing drives waits-1: there is nothing to cancel
    hint: it can be taken up again with `tulpar resume waits-1`, or removed with `tulpar clean waits-1`
    "#);
    // Not by default: it can be resumed.
    go(&scene);
    scene.tulpar("run").done();
    insta::assert_snapshot!(scene.tulpar("clean"), @r#"
    exit code 0
    --- stderr
    kept waits-1: it can be resumed; name it to remove it
    0 runs: freed <size>
    "#);
    scene.tulpar("resume waits-1").done();
    let said = scene.tulpar("status waits-1").done();
    assert!(said.out.starts_with("waits-1: done") && said.out.contains("resumed 1 time"), "{said}");
}

#[test]
fn a_killed_driver_costs_a_task_that_is_never_tried_again_nothing() {
    let scene = Scene::new(&WAITS.replace("first: {", "first: {retry: 0, "));
    started(&scene, &["run"]).kill();
    wait_for("the lock is free", || standing(&scene) == "stopped");
    go(&scene);
    scene.tulpar("resume").done();
    assert_eq!(scene.read("results/b.txt"), "a\n");
    let said = scene.tulpar("explain first").done();
    assert!(said.out.contains("Attempt 1: lost with the driver of the run"), "{said}");
}

#[test]
fn a_journal_that_is_removed_while_the_run_goes_on_ends_it() {
    for removed in [".tulpar/runs/waits-1/journal.jsonl", ".tulpar"] {
        let scene = Scene::new(WAITS);
        let running = started(&scene, &["run"]);
        match scene.path(removed) {
            path if path.is_dir() => std::fs::remove_dir_all(path).unwrap(),
            path => std::fs::remove_file(path).unwrap(),
        }
        let said = running.end().expect(3);
        assert!(said.err.contains("journal.jsonl was removed or replaced while the run went on"), "{said}");
        assert!(!said.err.contains("tulpar resume") && !said.err.contains("done"), "{said}");
    }
}

#[test]
fn a_journal_that_is_removed_just_before_the_end_is_missed() {
    let scene = Scene::new("workflow: rude\ntasks:\n  a: {run: 'rm $OLDPWD/.tulpar/runs/rude-1/journal.jsonl'}\n");
    let folder = scene.path("").display().to_string();
    let scene_file = scene.read("workflow.yaml").replace("$OLDPWD", folder.trim_end_matches('/'));
    scene.write("workflow.yaml", &scene_file);
    let said = scene.tulpar("run").expect(3);
    assert!(said.err.contains("the history of this run is lost"), "{said}");
}

#[test]
fn a_damaged_journal_is_reported_on_as_far_as_it_reads() {
    let scene = Scene::new(WAITS);
    go(&scene);
    scene.tulpar("run").done();
    let text = scene.read(".tulpar/runs/waits-1/journal.jsonl");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.remove(4);
    scene.write(".tulpar/runs/waits-1/journal.jsonl", &(lines.join("\n") + "\n"));
    let said = scene.tulpar("status").done();
    assert!(said.err.contains("does not read on after event 4"), "{said}");
    let refused = scene.tulpar("resume").expect(3);
    assert!(refused.err.contains("event 6 stands where event 5 should be"), "{refused}");
}

#[test]
fn a_run_that_cannot_be_moved_to_the_removed_ones_is_removed_where_it_is() {
    let scene = Scene::new("workflow: w\ntasks: {a: {out: {o: o.txt}, run: 'echo > {o}'}}\n");
    scene.tulpar("run").done();
    // As in a lower layer of an overlay: the bin is on another file system.
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else { return };
    std::os::unix::fs::symlink(elsewhere.path(), scene.path(".tulpar/removed")).unwrap();
    scene.tulpar("clean w-1").done();
    assert!(!scene.path(".tulpar/runs/w-1").exists());
}

#[test]
fn what_a_resume_opens_again_is_seen_by_the_store_and_keeps_the_reasons_of_the_rest() {
    let scene = Scene::new(
        "workflow: drift
tasks:
  first: {out: {o: o.txt}, run: 'test $TULPAR_ATTEMPT = 2 && echo fine > {o}', retry: 0}
  second: {in: [o], out: {p: p.txt}, run: 'cat {o} > {p}'}
  odd: {when: 1 == 2, out: {q: q.txt}, run: 'echo > {q}'}
",
    );
    scene.tulpar("run").expect(1);
    scene.tulpar("resume").done();
    scene.tulpar("runs").done();
    let store = tulpar_store::Store::open(&scene.path(".tulpar/store.sqlite")).unwrap();
    let stands = |job: u32| {
        let job = store.job("drift-1", tulpar_core::ids::JobId(job)).unwrap().unwrap();
        (job.name.unwrap(), job.state, job.blame, job.because.map(|because| because.to_string()))
    };
    let row = |name: &str, state: &str, because: Option<&str>| {
        (name.to_owned(), state.to_owned(), None, because.map(str::to_owned))
    };
    assert_eq!(stands(0), row("first", "done", None));
    assert_eq!(stands(1), row("odd", "skipped", Some("\"condition\"")));
    assert_eq!(stands(2), row("second", "done", None));
    let said = scene.tulpar("explain odd").done();
    assert!(said.out.contains("its condition is not true"), "{said}");
}
