//! Each attempt is given, and recorded with, exactly the content that its key names; the user's own files never change.

use super::harness::{Scene, wait_for};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Two tasks one after the other; the first waits until the test says that it may go on.
const SLOW: &str = "workflow: slow
data: {script: script.sh}
tasks:
  first: {out: {begun: begun.txt}, run: 'touch PLACE/started; while [ ! -e PLACE/go ]; do read -t 0.05 _ < PLACE/never || true; done; echo > {begun}', shell: bash}
  second: {in: [script, begun], out: {said: said.txt}, run: 'sh {script} > {said}'}
";

fn slow() -> Scene {
    let scene = Scene::empty();
    let place = scene.path("");
    scene.write("workflow.yaml", &SLOW.replace("PLACE", place.to_str().unwrap().trim_end_matches('/')));
    scene.write("script.sh", "echo one\n");
    let status = std::process::Command::new("mkfifo").arg(scene.path("never")).status();
    assert!(status.unwrap().success());
    scene
}

#[test]
fn a_script_that_is_edited_during_a_run_is_used_as_it_was_when_the_run_began() {
    let scene = slow();
    // Opened for reading and writing, so that the reads of the task wait for their time to be over.
    let _never = fs::File::options().read(true).write(true).open(scene.path("never")).unwrap();
    let running = scene.start(scene.command(&["run"]));
    wait_for("the task starts", || scene.path("started").exists());
    scene.write("script.sh", "echo two, which is longer\n");
    scene.write("go", "");
    running.end().done();
    assert_eq!(scene.read("results/said.txt"), "one\n");
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/said.txt"), "two, which is longer\n");
    scene.write("script.sh", "echo one\n");
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/said.txt"), "one\n");
}

#[test]
fn a_large_input_that_is_edited_during_a_run_fails_the_task_and_is_never_kept() {
    let scene = slow();
    let large = |letter: &str| format!("echo {letter}\nexit 0\n{}", "#".repeat(2 << 20));
    scene.write("script.sh", &large("one"));
    let _never = fs::File::options().read(true).write(true).open(scene.path("never")).unwrap();
    let running = scene.start(scene.command(&["run"]));
    wait_for("the task starts", || scene.path("started").exists());
    scene.write("script.sh", &large("two"));
    scene.write("go", "");
    let said = running.end().expect(1);
    assert!(said.err.contains("its input changed: script.sh"), "{said}");
    let said = scene.tulpar("explain second").done();
    assert!(said.out.contains("To blame is a change of its inputs while the run went on."), "{said}");
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/said.txt"), "two\n");
}

#[test]
fn resume_says_which_input_changed_and_runs_nothing_under_the_old_key() {
    let scene = Scene::new(
        "workflow: w\ndata: {script: script.sh}\ntasks:\n  a: {in: [script], out: {o: o.txt}, run: 'sh {script} > {o}'}\n",
    );
    scene.write("script.sh", "exit 4\n");
    scene.tulpar("run").expect(1);
    scene.write("script.sh", "echo fixed\n");
    let said = scene.tulpar("resume").expect(2);
    assert!(said.err.contains("script.sh changed since attempt 1 of `a`"), "{said}");
    assert!(said.err.contains("`tulpar run` starts a new run"), "{said}");
    scene.tulpar("resume --as-planned").expect(1);
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/o.txt"), "fixed\n");
    scene.write("script.sh", "exit 4\n");
    scene.tulpar("run").expect(1);
}

#[test]
fn resume_names_the_task_that_reads_a_changed_file_and_goes_on_when_only_finished_tasks_read_it() {
    let scene = Scene::new(
        "workflow: w\ndata: {raw: raw/*.txt}\ntasks:\n  a: {for: {f: raw}, out: {o: 'o-{f.stem}.txt'}, run: 'grep fine {f} > {o}'}\n",
    );
    for (name, text) in [("1", "fine"), ("2", "bad"), ("3", "bad")] {
        scene.write(&format!("raw/{name}.txt"), text);
    }
    scene.tulpar("run").expect(1);
    scene.write("raw/1.txt", "fine again");
    let said = scene.tulpar("resume").expect(1);
    assert!(said.err.contains("raw/1.txt changed since w-1 began. Only finished tasks read it"), "{said}");
    scene.write("raw/3.txt", "fine");
    let said = scene.tulpar("resume").expect(2);
    assert!(said.err.contains("of `a[f=raw/3.txt]`"), "{said}");
}

#[test]
fn resume_notices_a_new_file_that_a_pattern_matches() {
    let scene = Scene::new(
        "workflow: w\ndata: {all: d/*.txt}\ndefaults: {retry: 0}\ntasks:\n  a: {in: [all], out: {o: o.txt}, run: 'cat {all} > {o}; grep -q fine {o}'}\n",
    );
    scene.write("d/1.txt", "bad\n");
    scene.tulpar("run").expect(1);
    scene.write("d/2.txt", "fine\n");
    let said = scene.tulpar("resume").expect(2);
    assert!(said.err.contains("d/2.txt appeared since attempt 1 of `a`"), "{said}");
    scene.tulpar("resume --as-planned").expect(1);
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/o.txt"), "bad\nfine\n");
}

#[test]
fn a_file_that_is_an_input_and_a_checkpoint_goes_on_from_the_checkpoint() {
    let scene = Scene::new(
        "workflow: w
data: {s: state.txt}
tasks:
  c: {in: [s], checkpoint: {files: state.txt}, out: {f: final.txt}, run: 'echo more >> {s}; if [ $(wc -l < {s}) -ge 3 ]; then cat {s} > {f}; else exit 85; fi'}
",
    );
    scene.write("state.txt", "start\n");
    scene.say(bounded(&scene)).done();
    assert_eq!(scene.read("results/final.txt"), "start\nmore\nmore\n");
    assert_eq!(scene.read("state.txt"), "start\n");
}

/// Ends what would go on for ever.
fn bounded(scene: &Scene) -> std::process::Command {
    let tulpar = scene.command(&["run"]);
    let mut command = std::process::Command::new("timeout");
    command.arg("20").arg(tulpar.get_program()).args(tulpar.get_args()).current_dir(scene.path("")).env_clear();
    command.envs(tulpar.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn a_denied_write_to_a_large_input_is_explained() {
    let scene = Scene::new(
        "workflow: w\ndata: {big: big.csv}\ndefaults: {retry: 0}\ntasks:\n  a: {in: [big], out: {o: o.txt}, run: 'echo big.csv: Permission denied >&2; exit 1'}\n",
    );
    scene.write("big.csv", &"0123456789\n".repeat(200_000));
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("tulpar: `big.csv` is a read-only input: inputs over 1 MiB"), "{said}");
    assert!(said.err.contains("cp --no-preserve=mode"), "{said}");
}

#[test]
fn a_task_that_edits_its_inputs_in_place_changes_only_its_own_copies() {
    let scene = Scene::new(
        "workflow: w
data: {labels: labels.csv}
tasks:
  a: {in: [labels], out: {o: o.txt}, run: 'echo edited >> {labels}; cp {labels} {o}'}
  b: {in: [labels, o], out: {p: p.txt}, run: 'echo more >> {o}; cat {labels} {o} > {p}'}
  c: {in: [o], after: [b], out: {q: q.txt}, run: 'cp {o} {q}'}
",
    );
    scene.write("labels.csv", "mine\n");
    scene.tulpar("run").done();
    assert_eq!(scene.read("labels.csv"), "mine\n");
    assert_eq!(scene.read("results/o.txt"), "mine\nedited\n");
    assert_eq!(scene.read("results/p.txt"), "mine\nmine\nedited\nmore\n");
    assert_eq!(scene.read("results/q.txt"), "mine\nedited\n");
}

#[test]
fn a_task_that_writes_to_a_large_input_leaves_the_file_of_the_user_alone() {
    let scene = Scene::new(
        "workflow: w\ndata: {large: large.csv}\ntasks:\n  a: {in: [large], out: {o: o.txt}, run: 'set -e; echo edited >> {large}; wc -c < {large} > {o}'}\n",
    );
    let content = "0123456789\n".repeat(200_000);
    scene.write("large.csv", &content);
    // An ordinary user's task reads "Permission denied"; root's edit of the copy is found afterwards.
    scene.tulpar("run").expect(1);
    assert_eq!(scene.read("large.csv"), content);
}

#[test]
fn a_module_beside_a_script_is_not_found_unless_it_is_declared_and_check_names_the_line_to_write() {
    let scene = Scene::new(
        "workflow: w\ndata: {a: scripts/a.py}\ntasks:\n  t: {in: [a], out: {o: o.txt}, run: 'python3 {a} > {o}'}\n",
    );
    scene.write("scripts/a.py", "from common import VALUE\nprint(VALUE)\n");
    scene.write("scripts/common.py", "VALUE = 1\n");
    let said = scene.tulpar("check").done();
    assert!(said.err.contains("`scripts/a.py` imports `scripts/common.py`, which task `t` will not see"), "{said}");
    assert!(
        said.err.contains("declare it under `data:` as `common: scripts/common.py`, and add `common` to `in:`"),
        "{said}"
    );
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("No module named 'common'"), "{said}");
    scene.write(
        "workflow.yaml",
        "workflow: w\ndata: {a: scripts/a.py, common: scripts/common.py}\ntasks:\n  t: {in: [a, common], out: {o: o.txt}, run: 'python3 {a} > {o}'}\n",
    );
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/o.txt"), "1\n");
    scene.write("scripts/common.py", "VALUE = 2\n");
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/o.txt"), "2\n");
    assert!(!scene.path("scripts/__pycache__").exists());
}

#[test]
fn a_flipped_bit_in_a_stored_result_is_found_when_it_is_reused_and_when_it_is_made_again() {
    let scene = Scene::new(
        "workflow: w
params: {k: 1}
tasks:
  a: {out: {o: o.txt}, run: 'seq 1000 > {o}'}
  b: {in: [o], out: {p: p.txt}, run: 'echo {k}; cat {o} > {p}'}
",
    );
    scene.tulpar("run").done();
    let right = scene.read("results/o.txt");
    let flip = || {
        let object = object_of(&scene, &right);
        let modified = fs::metadata(&object).unwrap().modified().unwrap();
        fs::set_permissions(&object, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&object, right.replacen('5', "6", 1)).unwrap();
        let file = fs::File::options().write(true).open(&object).unwrap();
        file.set_times(fs::FileTimes::new().set_modified(modified)).unwrap();
        fs::set_permissions(&object, fs::Permissions::from_mode(0o444)).unwrap();
    };
    flip();
    scene.tulpar("run -p k=2").done();
    assert_eq!(scene.read("results/p.txt"), right);
    flip();
    scene.tulpar("run -p k=3 --force a").done();
    assert_eq!(scene.read("results/p.txt"), right);
}

fn object_of(scene: &Scene, content: &str) -> std::path::PathBuf {
    let folders = fs::read_dir(scene.path(".tulpar/cache/objects")).unwrap().flatten();
    let mut files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.find(|file| fs::read(file.path()).is_ok_and(|bytes| bytes.len() == content.len())).unwrap().path()
}

#[test]
fn tasks_that_start_together_share_the_copies_of_many_inputs() {
    let scene = Scene::new(
        "workflow: w\ndata: {d: d/*.txt}\ntasks:\n  t: {for: {i: 1..12}, cpus: 0.1, in: [d], out: {o: \"{i}.txt\"}, run: 'cat {d} | wc -l > {o}'}\n",
    );
    (0..100).for_each(|n| scene.write(&format!("d/{n}.txt"), "line\n"));
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/12.txt").trim(), "100");
}
