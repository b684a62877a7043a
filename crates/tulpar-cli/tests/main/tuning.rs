//! `tulpar tune`: a search of one command, with no workflow file.

use super::harness::{Scene, skipped};

/// Its number is smallest for two layers.
pub(super) const TRAIN: &str = "#!/bin/sh\nlayers=$1\necho \"{\\\"loss\\\": $(( (layers - 2) * (layers - 2) ))}\"\n";

#[test]
fn a_command_is_searched_without_a_workflow_file() {
    let scene = Scene::empty();
    scene.write("train.sh", TRAIN);
    let said = scene
        .tulpar("tune --trials 20 --seed 1 --space 'layers=int(1,8)' --minimize loss --json -- sh train.sh '{layers}'")
        .done();
    let outcome = said.json();
    assert_eq!(outcome["tasks"]["done"], 20, "{said}");
    assert_eq!(outcome["searches"][0]["trials"]["complete"], 20, "{said}");
    assert_eq!(outcome["searches"][0]["best"][0]["params"]["layers"], 2, "{said}");
    assert_eq!(outcome["searches"][0]["best"][0]["values"]["loss"], 0.0, "{said}");
}

#[test]
fn progress_says_the_numbers_and_the_end_says_the_best() {
    let scene = Scene::empty();
    scene.write("code/train.sh", TRAIN);
    let line = "tune --trials 8 --parallel 1 --sampler grid --space 'layers=int(1,8)' --minimize loss --name mine";
    let said = scene.tulpar(&format!("{line} -- sh ./code/train.sh '{{layers}}'")).done();
    assert!(said.err.contains("done     search[trial=2] in"), "{said}");
    assert!(said.err.contains("loss 0 with layers=2"), "{said}");
    assert!(said.err.contains("search: 8 complete"), "{said}");
    assert!(said.err.contains("mine-1: done: 8 of 8 tasks"), "{said}");
    let status = scene.tulpar("status").done();
    assert!(status.out.contains("search"), "{status}");
}

#[test]
fn a_trial_gets_the_files_that_were_named_and_leaves_those_that_were_asked_for() {
    let scene = Scene::empty();
    scene.write("more/labels.csv", "a,1\n");
    scene.write("small.conf", "x\n");
    let line = "tune --trials 2 --space 'opt=[adam,sgd]' --maximize score --with more --out 'model=model-{trial}.txt'";
    let command = "cat more/labels.csv small.conf > {model}; echo {opt} >> {model}; echo --config=small.conf; echo '{\"score\": 1}'";
    let mut tulpar = scene.command(&[]);
    tulpar.args(line.split(' ').map(|word| word.trim_matches('\''))).args(["--", command]);
    scene.say(tulpar).done();
    let text = scene.read("results/model-1.txt");
    assert!(text.starts_with("a,1\nx\n"), "{text}");
}

#[test]
fn what_is_wrong_is_said_in_the_words_that_were_typed() {
    let scene = Scene::empty();
    for (typed, answer) in [
        ("--space 'lr=logg(1,2)' --minimize loss -- true", "--space 'lr=logg(1,2)'"),
        ("--space 'lr' --minimize loss -- true", "--space 'lr'"),
        ("--space 'x=int(1,2)' -- true", "nothing says what is better"),
        ("--minimize loss -- true", "there is nothing to be tried"),
        ("--space 'x=int(1,2)' --minimize loss --sampler tp -- true", "--sampler tp"),
        ("--space 'x=int(1,2)' --minimize loss --with nowhere -- true", "--with nowhere"),
        ("--space 'x=int(1,2)' --minimize loss --out model -- true", "--out 'model'"),
        ("--space 'x=int(1,2)' --minimize loss -- echo '{y}'", "`y`"),
        ("--space 'x=int(1,2)' --minimize loss --start 3 -- true", "--start '3'"),
        ("--space 'x=int(1,2)' --minimize loss --start x=3 -- true", "starting point 1"),
        ("--space 'x=int(1,2)' --minimize loss --constraint small -- true", "`small` is no constraint"),
    ] {
        let said = scene.tulpar(&format!("tune --trials 3 {typed}")).expect(2);
        assert!(said.err.contains(answer), "{typed}: {said}");
    }
    let said = scene.tulpar("tune --space 'x=int(1,2)' --minimize loss -- true").expect(2);
    assert!(said.err.contains("nothing says when the search is over"), "{said}");
    assert!(!scene.path(".tulpar/runs").exists(), "nothing was begun");
}

#[test]
fn a_command_is_searched_with_a_budget_limits_and_points_to_begin_with() {
    let scene = Scene::empty();
    scene.write("train.sh", "echo \"{\\\"loss\\\": $1, \\\"size\\\": $(( 10 - $1 ))}\"\n");
    let line = "tune --budget 1h --gpu-hours 5 --sampler grid --space 'x=int(1,8)' --minimize loss --constraint 'size <= 6' \
                --start x=7 --json -- sh train.sh '{x}'";
    let said = scene.tulpar(line).done();
    let search = &said.json()["searches"][0];
    assert_eq!(search["trials"]["complete"], 8, "{said}");
    assert_eq!(search["best"][0]["params"]["x"], 4, "{said}");
    let tasks = scene.tulpar("status --tasks").done();
    assert!(tasks.out.contains("search[trial=1] x=7 "), "{tasks}");
}

#[test]
fn where_no_trial_keeps_the_constraints_the_run_says_so_and_has_failed() {
    let scene = Scene::new(
        "workflow: tight\ntasks:\n  search:\n    search: {trials: 2, minimize: loss, constraints: [loss <= 0], space: {x: [1, 2]}}\n    \
         run: echo '{\"loss\":' {x} '}'\n  after:\n    in: [search.best]\n    out: {copy: copy.json}\n    run: cp {best} {copy}\n",
    );
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("skipped  after (no trial of the search kept the constraints)"), "{said}");
    assert!(said.err.contains("search: no trial kept the constraints (2 complete)"), "{said}");
    let why = scene.tulpar("explain after").done();
    assert!(why.out.contains("no trial of the search kept the constraints"), "{why}");
}

#[test]
fn the_searches_of_a_workflow_run_without_what_follows_them() {
    let scene = Scene::new(
        "workflow: two\ntasks:\n  search:\n    search: {trials: 9, minimize: loss, space: {x: int(0, 9)}}\n    \
         run: echo '{\"loss\":' {x} '}'\n  after:\n    in: [search.best]\n    out: {copy: copy.json}\n    run: cp {best} {copy}\n",
    );
    let said = scene.tulpar("tune --trials 5 --json").done();
    assert_eq!(said.json()["searches"][0]["trials"]["complete"], 5, "{said}");
    assert!(!scene.path("results/copy.json").exists(), "{said}");
    scene.write("workflow.yaml", "workflow: none\ntasks: {a: {run: 'true'}}\n");
    let said = scene.tulpar("tune").expect(2);
    assert!(said.err.contains("no task with `search:`"), "{said}");
}

/// Whether Python is here; a test that needs it says that it was skipped.
pub(super) fn python_with(module: &str) -> bool {
    let here = std::process::Command::new("python3").args(["-c", &format!("import {module}")]).output();
    let here = here.is_ok_and(|output| output.status.success());
    if !here {
        skipped(&format!("python3 with {module} is not here: studies are not judged by it"));
    }
    here
}

#[test]
fn a_python_program_reports_through_the_one_file_client() {
    if !python_with("json") {
        return;
    }
    let scene = Scene::empty();
    scene.write("tulpar_client.py", &scene.tulpar("tune --client").done().out);
    scene.write(
        "train.py",
        "import tulpar_client as trial\nsettings = trial.parameters({'x': 9, 'y': 5})\nfor step in (1, 2):\n    \
         trial.report((settings['x'] - 3) ** 2 / step, step)\n    assert not trial.should_prune()\n",
    );
    let line = "tune --trials 10 --sampler grid --space 'x=int(0,9)' --minimize loss --json -- python3 train.py";
    let said = scene.tulpar(line).done();
    assert_eq!(said.json()["searches"][0]["best"][0]["params"]["x"], 3, "{said}");
    let log = scene.read(".tulpar/runs/tune-1/studies/search.optuna.log");
    assert_eq!(log.matches("\"op_code\":7").count(), 20, "{log}");
    // Alone it only prints.
    let alone =
        std::process::Command::new("python3").arg("train.py").current_dir(scene.path("")).output().expect("python");
    assert_eq!(
        String::from_utf8_lossy(&alone.stdout),
        "{\"step\": 1, \"value\": 36.0}\n{\"step\": 2, \"value\": 18.0}\n"
    );
}

#[test]
fn a_program_that_writes_for_tensorboard_needs_to_say_nothing_else() {
    if !python_with("tensorboard") {
        return;
    }
    let scene = Scene::empty();
    scene.write(
        "train.py",
        "import sys\n\
         from tensorboard.compat.proto.event_pb2 import Event\n\
         from tensorboard.compat.proto.summary_pb2 import Summary\n\
         from tensorboard.summary.writer.event_file_writer import EventFileWriter\n\
         writer = EventFileWriter('logs/run')\n\
         for step in range(1, 4):\n    \
             value = Summary.Value(tag='loss', simple_value=float(sys.argv[1]) / step)\n    \
             writer.add_event(Event(step=step, summary=Summary(value=[value])))\n\
         writer.close()\n",
    );
    let line = "tune --trials 2 --sampler grid --space 'x=int(6,12,step=6)' --minimize loss -- python3 train.py {x}";
    scene.tulpar(line).done();
    let trials = scene.tulpar("export --format trials").done().out;
    let steps: Vec<serde_json::Value> =
        trials.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["steps"].clone()).collect();
    assert_eq!(
        steps,
        [serde_json::json!([[1, 6.0], [2, 3.0], [3, 2.0]]), serde_json::json!([[1, 12.0], [2, 6.0], [3, 4.0]])],
        "{trials}"
    );
}
