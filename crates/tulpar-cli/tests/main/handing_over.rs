//! Exported workflows give the same files without Tulpar: here every job is run by hand, in the order of the DAG.

use super::harness::{Scene, files_below, wait_for};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const WORKFLOW: &str = r#"workflow: handed
data: {words: data/a.txt, all: data/*.txt}
tasks:
  split:
    in: [words, all]
    out: {pieces: pieces/*.txt, index: index.txt}
    run: |
      for i in 1 2 3; do echo "piece $i $(wc -l < {words})" > pieces/p$i.txt; done
      cat {all} > {index}
  work:
    for: {part: 1..3}
    in: [split.pieces, index]
    out: {made: "made/part {part}.txt", tree: "tree/{part}/", maybe: {path: "maybe {part}.txt", optional: true}}
    env: {MODE: "it's $(x) {part}"}
    run: |
      cat {pieces} {index} > {made}
      echo "$MODE" >> {made}
      mkdir -p {tree}/deep; echo {part} > {tree}/deep/x.txt; echo "a b" > "{tree}/y z.txt"
      [ {part} = 1 ] || echo there > {maybe}
  gather:
    in: [work.made, work.tree, work.maybe]
    out: {result: result.txt}
    run: "cat {made} {maybe} > {result}; sort {tree.list} >> {result}; cat {tree} >> {result}"
  left: {in: [gather.result], out: {l: l.txt}, run: [cp, "{result}", "{l}"]}
  right: {in: [gather.result], out: {r: r.txt}, run: "wc -l < {result} > {r}"}
  join: {in: [left.l, right.r], out: {end: end.txt}, run: "cat {l} {r} > {end}"}
"#;

fn scene() -> Scene {
    let scene = Scene::new(WORKFLOW);
    scene.write("data/a.txt", "one\ntwo\n");
    scene.write("data/b c.txt", "three\n");
    scene.write("data/$(q) \"d\".txt", "four\n");
    scene
}

#[test]
fn jobs_exported_for_slurm_give_the_files_of_a_run() {
    let scene = scene();
    scene.tulpar("run").done();
    let said = scene.tulpar("export slurm --to out").done();
    assert!(said.err.contains("8 jobs written to out; start them there with `./submit.sh`"), "{said}");
    for job in ["split", "work/0", "work/1", "work/2", "gather", "left", "right", "join"] {
        let mut command = Command::new("./run.sh");
        command.args([&format!("jobs/{job}"), "1"]).current_dir(scene.path("out"));
        let output = command.output().expect("a shell");
        assert!(output.status.success(), "{job}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let results = files_below(&scene.path("results"));
    assert!(results.len() >= 17, "{results:?}");
    for path in results {
        let name = path.strip_prefix(scene.path("results")).expect("inside").to_owned();
        let other = scene.path("out/files").join(&name);
        assert_eq!(std::fs::read(&path).ok(), std::fs::read(other).ok(), "{}", name.display());
    }
}

#[test]
fn a_run_is_exported_as_its_workflow_is() {
    let scene = scene();
    scene.tulpar("run").done();
    scene.tulpar("export dagman --to one").done();
    scene.tulpar("export dagman handed-1 --to two").done();
    assert_eq!(scene.read("one/workflow.dag"), scene.read("two/workflow.dag"));
    let linted: serde_json::Value =
        serde_json::from_str(&scene.tulpar("lint one/workflow.dag --json").out).expect("JSON");
    // Where tests work, DAGMan would not.
    let others = linted.as_array().expect("a list").iter().filter(|finding| finding["code"] != "H021").count();
    assert_eq!(others, 0, "{linted}");
    let said = scene.tulpar("export dagman --to one").expect(2);
    assert!(said.err.contains("one is there already, and is not overwritten"), "{said}");
}

#[test]
fn an_exported_dag_is_read_again_and_gives_the_same_results() {
    let scene = Scene::new(
        "workflow: small\ndata: {words: words.txt}\ntasks:\n  \
         a: {for: {part: 1..2}, in: [words], out: {x: 'x{part}.txt'}, run: 'cat {words} > {x}; echo {part} >> {x}'}\n  \
         b: {in: [a.x], out: {all: all.txt}, run: 'cat {x} > {all}'}\n",
    );
    scene.write("words.txt", "w\n");
    scene.tulpar("run").done();
    scene.tulpar("export dagman --to out").done();
    scene.tulpar("run out/workflow.dag").done();
    assert_eq!(scene.read("out/results/files/all.txt"), scene.read("results/all.txt"));
}

/// `run.sh` of what was exported to `out`, where these commands stand in for those of a cluster.
fn run_by_hand(scene: &Scene, job: &str, tries: &str, commands: &[(&str, &str)]) -> Command {
    for (name, body) in commands {
        scene.write(&format!("bin/{name}"), &format!("#!/bin/bash\n{body}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(scene.path(&format!("bin/{name}")), mode).expect("a mode");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("./run.sh");
    command.args([&format!("jobs/{job}"), tries]).current_dir(scene.path("out"));
    command.env("PATH", format!("{}:{path}", scene.path("bin").display())).env("SLURM_JOB_ID", "17");
    command
}

#[test]
fn a_job_exported_for_slurm_runs_in_its_image_and_sees_its_data() {
    let scene = Scene::new(
        "workflow: boxed\ndata: {words: data/words.txt}\ntasks:\n  \
         a: {container: 'images/my tools.sif', in: [words], out: {x: x.txt}, run: 'cat {words} > {x}'}\n",
    );
    scene.write("data/words.txt", "w\n");
    scene.write("images/my tools.sif", "");
    scene.tulpar("export slurm --to out").done();
    // What follows the image is its command.
    let apptainer =
        "printf '%s\\n' \"$@\" > \"$OUT\"; until [ \"${1%.sif}\" != \"$1\" ]; do shift; done; shift; exec \"$@\"";
    let batch = scene.read("out/a.sbatch");
    let mut command = run_by_hand(&scene, "a", "1", &[("apptainer", apptainer)]);
    assert!(batch.contains("export IMAGE=\"$PWD\"/files/'my tools.sif'\n"), "{batch}");
    command.env("IMAGE", scene.path("out/files/my tools.sif")).env("OUT", scene.path("called"));
    let output = command.output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(scene.read("out/files/x.txt"), "w\n");
    let called = scene.read("called");
    let folder = |name: &str| format!("--bind\n{}\n", scene.path(name).display());
    assert!(called.contains(&folder("out")) && called.contains(&folder("data")), "{called}");
    assert!(scene.path("out/files/my tools.sif").exists(), "the link leads to the image");
}

#[test]
fn a_job_exported_for_slurm_saves_its_state_before_the_limit_and_goes_on_when_it_is_started_again() {
    let scene = Scene::new(
        "workflow: saving\ntasks:\n  a:\n    checkpoint: ['state/*.txt']\n    out: {x: x.txt}\n    run: |\n      \
         echo one more >> left.txt\n      \
         if [ -e state/1.txt ]; then cat state/1.txt left.txt > {x}; exit 0; fi\n      \
         trap 'mkdir -p state; echo saved > state/1.txt; exit 85' TERM\n      \
         : > $MARK\n      while true; do sleep 0.05; done\n",
    );
    scene.tulpar("export slurm --to out").done();
    let scontrol = "echo \"$@\" > \"$OUT\"";
    let run = || {
        let mut command = run_by_hand(&scene, "a", "1", &[("scontrol", scontrol)]);
        command.env("MARK", scene.path("mark")).env("OUT", scene.path("called"));
        command
    };
    let running = scene.start(run());
    wait_for("the task works", || scene.path("mark").exists());
    running.signal("TERM");
    let said = running.end();
    assert!(said.code != Some(0), "{said}");
    assert_eq!(scene.read("called"), "requeue 17\n");
    scene.say(run()).done();
    assert_eq!(scene.read("out/files/x.txt"), "saved\none more\n", "only what it saved is there again");
}

#[test]
fn what_this_machine_lacks_is_exported_all_the_same() {
    let scene = Scene::new(
        "workflow: large\ntasks:\n  a:\n    nodes: 2\n    gpus: 9\n    memory: 900 TB\n    out: {x: x.txt}\n    run: hostname > {x}\n",
    );
    scene.tulpar("export slurm --to out").done();
    let batch = scene.read("out/a.sbatch");
    assert!(batch.contains("--nodes=2\n") && batch.contains("--gres=gpu:9\n"), "{batch}");
    let refused = scene.tulpar("export slurm --site local --to other");
    assert!(refused.code == Some(2) && refused.err.contains("W025"), "{refused}");
}
