//! Python environments are part of a key: a change of one during a run, before `resume` or behind a name is seen.

use super::harness::Scene;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A virtual environment with one editable package, whose sources lie beside it.
fn with_package(workflow: &str) -> Scene {
    let scene = Scene::empty();
    let root = scene.path("").display().to_string();
    let root = root.trim_end_matches('/');
    fs::create_dir_all(scene.path("env/bin")).unwrap();
    scene.write("env/pyvenv.cfg", "version = 3.11\n");
    scene.write("env/lib/python3.11/site-packages/lab.pth", &format!("{root}/src\n"));
    scene.write("src/lab.py", "V = 1\n");
    scene.write("workflow.yaml", &workflow.replace("ROOT", root));
    scene
}

#[test]
fn a_task_whose_environment_changed_while_it_ran_fails_and_its_result_is_not_kept() {
    let scene = with_package(
        "workflow: w
tasks:
  x:
    for: {i: 1..3}
    at_most: 1
    venv: env
    out: {o: 'o-{i}.txt'}
    run: |
      if [ {i} = 2 ] && [ ! -e ROOT/edited ]; then echo V = 22 > ROOT/src/lab.py; touch ROOT/edited; fi
      cat ROOT/src/lab.py > {o}
",
    );
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("its input changed: the environment `env`"), "{said}");
    assert_eq!(scene.read("results/o-1.txt"), "V = 1\n");
    assert!(!scene.path("results/o-2.txt").exists() && !scene.path("results/o-3.txt").exists());
    let said = scene.tulpar("explain 'x[i=2]'").done();
    assert!(said.out.contains("To blame is a change of its inputs while the run went on."), "{said}");
    // With the package as it was planned, nothing of the other one is reused.
    scene.write("src/lab.py", "V = 1\n");
    let said = scene.tulpar("run --json").done().json();
    assert_eq!(said["reused"], 1, "{said}");
    for i in 1..=3 {
        assert_eq!(scene.read(&format!("results/o-{i}.txt")), "V = 1\n");
    }
}

#[test]
fn a_run_does_not_go_on_as_planned_with_another_environment() {
    let scene = with_package(
        "workflow: w
tasks:
  x: {venv: env, out: {o: o.txt}, run: 'grep 22 ROOT/src/lab.py > {o}'}
",
    );
    scene.tulpar("run").expect(1);
    scene.write("src/lab.py", "V = 22\n");
    for words in ["resume", "resume --as-planned"] {
        let said = scene.tulpar(words).expect(2);
        assert!(said.err.contains("the environment `env` changed since attempt 1 of `x`"), "{said}");
        assert!(!said.err.contains("--as-planned` goes on"), "{said}");
    }
    scene.write("src/lab.py", "V = 1\n");
    scene.tulpar("resume --as-planned").expect(1);
    scene.write("src/lab.py", "V = 22\n");
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/o.txt"), "V = 22\n");
}

/// `tulpar` with a `conda` that knows these environments before everything else on its PATH.
fn with_conda(scene: &Scene, words: &[&str]) -> Command {
    let mut command = scene.command(words);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", scene.path("bin").display()));
    command
}

#[test]
fn a_conda_environment_that_is_given_by_name_counts_by_its_packages() {
    let scene = Scene::new(
        "workflow: w
tasks:
  x: {conda: lab, out: {o: o.txt}, run: 'ls $CONDA_PREFIX/conda-meta > {o}'}
",
    );
    let prefix = scene.path("envs/lab").display().to_string();
    let conda = format!(
        "#!/bin/sh
if [ \"$1\" = info ]; then echo '{{\"envs\": [\"/no/where\", \"{prefix}\"], \"root_prefix\": \"/no/where\"}}'; exit; fi
shift 4
CONDA_PREFIX={prefix} exec \"$@\"
"
    );
    scene.write("bin/conda", &conda);
    fs::set_permissions(scene.path("bin/conda"), fs::Permissions::from_mode(0o755)).unwrap();
    scene.write("envs/lab/conda-meta/lab-1.0.json", "{}");
    scene.say(with_conda(&scene, &["run"])).done();
    assert_eq!(scene.read("results/o.txt"), "lab-1.0.json\n");
    fs::rename(scene.path("envs/lab/conda-meta/lab-1.0.json"), scene.path("envs/lab/conda-meta/lab-2.0.json")).unwrap();
    let said = scene.say(with_conda(&scene, &["verify", "results/o.txt"]));
    assert!(said.code == Some(1) && said.out.contains("differs: lab"), "{said}");
    let said = scene.say(with_conda(&scene, &["run"])).done();
    assert!(!said.err.contains("warning"), "{said}");
    assert_eq!(scene.read("results/o.txt"), "lab-2.0.json\n");
    let said = scene.say(with_conda(&scene, &["explain", "x"])).done();
    assert!(said.out.contains("conda lab"), "{said}");
}

#[test]
fn a_conda_environment_that_is_not_found_is_said_to_count_by_its_name_alone() {
    let scene = Scene::new("workflow: w\ntasks:\n  x: {conda: lab, out: {o: o.txt}, run: 'echo 1 > {o}'}\n");
    scene.write("bin/conda", "#!/bin/sh\nif [ \"$1\" = info ]; then exit 1; fi\nshift 4\nexec \"$@\"\n");
    fs::set_permissions(scene.path("bin/conda"), fs::Permissions::from_mode(0o755)).unwrap();
    for verb in ["check", "run"] {
        let said = scene.say(with_conda(&scene, &[verb])).done();
        assert!(said.err.contains("warning[W044]: the conda environment `lab` is not found here"), "{said}");
        assert!(said.err.contains("counts by its name alone"), "{said}");
    }
    scene.say(with_conda(&scene, &["run"])).done();
    let said = scene.tulpar("explain x").done();
    assert!(said.out.contains("Of `lab` only the name was compared"), "{said}");
}

#[test]
fn the_language_and_the_time_zone_of_a_shell_reach_no_task() {
    let scene = Scene::new(
        "workflow: w
tasks:
  x: {out: {o: o.txt}, run: 'date -d @0 +%H; echo $TZ $LANG $LC_ALL $LC_TIME $LANGUAGE > {o}; date -d @0 +%H >> {o}'}
  y: {env: {TZ: 'XYZ-3'}, out: {p: p.txt}, run: 'date -d @0 +%H > {p}'}
",
    );
    let mut command = scene.command(&["run"]);
    command.envs([("TZ", "XYZ-9"), ("LANG", "de_DE.UTF-8"), ("LC_ALL", "C"), ("LC_TIME", "C"), ("LANGUAGE", "de")]);
    scene.say(command).done();
    assert_eq!(scene.read("results/o.txt"), "UTC C.UTF-8\n00\n");
    assert_eq!(scene.read("results/p.txt"), "03\n");
}
