//! `tulpar verify` compares a result and all that it follows from with what is recorded.

use super::harness::Scene;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const CHAIN: &str = "workflow: chain
data: {words: words.txt, script: count.sh}
tasks:
  sort: {in: [words], out: {sorted: sorted.txt}, run: 'sort {words} > {sorted}'}
  count: {in: [sorted, script], out: {number: number.txt}, run: 'sh {script} {sorted} > {number}'}
";

fn chain() -> Scene {
    let scene = Scene::new(CHAIN);
    scene.write("words.txt", "pear\napple\n");
    scene.write("count.sh", "wc -l < $1\n");
    scene.tulpar("run").done();
    scene
}

/// As a disk does, or a person with the rights: the file keeps its size and its time.
fn overwrite(path: &PathBuf, content: &str) {
    let before = fs::metadata(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(path, content).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(before.modified().unwrap()).unwrap();
    fs::set_permissions(path, before.permissions()).unwrap();
}

#[test]
fn a_result_that_follows_from_what_is_recorded_agrees() {
    let scene = chain();
    let said = scene.tulpar("verify results/number.txt").done();
    assert_eq!(
        said.out,
        "results/number.txt: agrees with what is recorded: made by count in chain-1, 2 tasks in its lineage, 6 of 6 \
         compared agree\n"
    );
    let json = scene.tulpar("verify results/number.txt --json").done().json();
    assert_eq!((json["verdict"].as_str(), json["tasks"].as_u64()), (Some("agrees"), Some(2)));
    assert_eq!((json["differences"].as_array().unwrap().len(), json["intermediates"].as_u64()), (0, Some(1)));
    // A renamed copy is known by its content.
    fs::copy(scene.path("results/number.txt"), scene.path("copy")).unwrap();
    assert!(scene.tulpar("verify copy").done().out.starts_with("copy: agrees"));
}

#[test]
fn an_edited_result_differs_also_when_another_task_made_what_it_holds_now() {
    let scene = chain();
    let result = scene.path("results/number.txt");
    for content in ["3\n", "apple\npear\n"] {
        fs::remove_file(&result).unwrap();
        fs::write(&result, content).unwrap();
        let said = scene.tulpar("verify results/number.txt").expect(1);
        assert!(said.out.starts_with("differs: results/number.txt (of count): it holds "), "{said}");
        assert!(said.out.ends_with("results/number.txt: differs from what is recorded: made by count in chain-1, 2 tasks in its lineage, 5 of 6 compared agree\n"), "{said}");
    }
}

#[test]
fn a_changed_and_a_missing_input_of_the_user_differ_wherever_they_are_in_the_lineage() {
    let scene = chain();
    scene.write("words.txt", "pear\nplum\n");
    fs::remove_file(scene.path("count.sh")).unwrap();
    let json = scene.tulpar("verify results/number.txt --json").expect(1).json();
    let notes: Vec<&serde_json::Value> = json["differences"].as_array().unwrap().iter().collect();
    let said = |at: usize, name: &str| notes[at][name].as_str().unwrap().to_owned();
    assert_eq!([said(0, "path"), said(0, "task"), said(0, "kind")], ["count.sh", "count", "file"]);
    assert!(said(0, "says").starts_with("it is gone; it held "));
    assert_eq!([said(1, "path"), said(1, "task")], ["words.txt", "sort"]);
    assert!(said(1, "says").starts_with("changed since: it holds "));
    assert_eq!(notes.len(), 2);
    // The other result does not follow from the script.
    let said = scene.tulpar("verify results/sorted.txt").expect(1);
    assert!(said.out.contains("words.txt") && !said.out.contains("count.sh"), "{said}");
    // A run with the new input makes the same number: the file follows from that run now.
    scene.write("count.sh", "wc -l < $1\n");
    scene.tulpar("run").done();
    let said = scene.tulpar("verify results/number.txt").done();
    assert!(said.out.contains("made by count in chain-2"), "{said}");
}

#[test]
fn a_flipped_bit_in_an_intermediate_file_is_found_and_a_missing_one_is_said() {
    let scene = chain();
    let path = scene.object("apple\npear\n");
    // The result is another name of the same file.
    fs::remove_file(scene.path("results/sorted.txt")).unwrap();
    overwrite(&path, "apple\nqear\n");
    let said = scene.tulpar("verify results/number.txt").expect(1);
    assert!(said.out.starts_with("differs: sorted.txt (of count): its copy in the cache is damaged: "), "{said}");
    fs::remove_file(&path).unwrap();
    let said = scene.tulpar("verify results/number.txt").done();
    assert_eq!(
        said.out,
        "not checked: 1 of 1 intermediate file (no longer in the cache)\n\
         results/number.txt: agrees with what is recorded, as far as it could be checked: made by count in chain-1, 2 tasks \
         in its lineage, 5 of 5 compared agree\n"
    );
}

#[test]
fn a_file_that_nothing_made_is_a_mistake_of_the_caller() {
    let scene = chain();
    let said = scene.tulpar("verify words.txt").expect(2);
    assert!(said.err.contains("no run of this folder made words.txt"), "{said}");
    let said = scene.tulpar("verify nothing.txt").expect(2);
    assert!(said.err.contains("there is no nothing.txt"), "{said}");
}

#[test]
fn an_environment_whose_packages_changed_differs() {
    let scene = Scene::new(
        "workflow: soft
tasks:
  one: {venv: env, out: {a: a.txt}, run: 'echo a > {a}'}
",
    );
    scene.write("env/pyvenv.cfg", "version = 3\n");
    scene.write("env/bin/python", "");
    scene.write("env/lib/python3/site-packages/numpy-1.0.dist-info/RECORD", "numpy,sha256=1\n");
    scene.tulpar("run").done();
    assert!(scene.tulpar("verify results/a.txt").done().out.contains("2 of 2 compared agree"));
    scene.write("env/lib/python3/site-packages/numpy-1.0.dist-info/RECORD", "numpy,sha256=2\n");
    let said = scene.tulpar("verify results/a.txt").expect(1);
    assert!(said.out.starts_with("differs: env (of one): changed since"), "{said}");
}

const SAY: &str =
    "transformationCatalog: {transformations: [{name: say, sites: [{name: local, pfn: /bin/sh, type: installed}]}]}";

#[test]
fn a_result_of_a_workflow_inside_a_run_is_followed_in_the_run_and_the_inside_is_said_to_be_unchecked() {
    let scene = Scene::empty();
    scene.write(
        "inner.yml",
        &format!(
            "pegasus: '5.0'
name: inner
{SAY}
jobs:
- {{type: job, id: A, name: say, arguments: ['-c', 'cat in.txt > out.txt; echo > more.txt'], uses: [{{lfn: in.txt, type: input}}, {{lfn: out.txt, type: output}}, {{lfn: more.txt, type: output}}]}}
"
        ),
    );
    scene.write(
        "workflow.yml",
        &format!(
            "pegasus: '5.0'
name: outer
{SAY}
replicaCatalog: {{replicas: [{{lfn: inner.yml, pfns: [{{site: local, pfn: inner.yml}}]}}]}}
jobs:
- {{type: job, id: M, name: say, arguments: ['-c', 'echo made > in.txt'], uses: [{{lfn: in.txt, type: output}}]}}
- {{type: pegasusWorkflow, id: S, file: inner.yml, arguments: [], uses: [{{lfn: inner.yml, type: input}}, {{lfn: in.txt, type: input}}, {{lfn: out.txt, type: output}}]}}
"
        ),
    );
    scene.tulpar("run workflow.yml").done();
    let said = scene.tulpar("verify results/out.txt").done();
    assert!(said.out.starts_with("not checked: S (of S): it is a workflow"), "{said}");
    assert!(said.out.contains("made by S in outer-1, 2 tasks in its lineage"), "{said}");
    let said = scene.tulpar("verify results/more.txt").done();
    assert!(said.out.contains("(of say_A): the run around this one gave it"), "{said}");
    let said = scene.tulpar("audit --sample 100%").done();
    assert!(said.out.starts_with("not run again: S: it is a workflow"), "{said}");
    scene.tulpar("audit outer-1/sub/S.1").done();
}

#[test]
fn outside_of_a_project_there_is_no_run_and_nothing_to_remove() {
    let scene = Scene::empty();
    scene.write("a.txt", "1");
    for verb in ["verify", "lineage"] {
        let said = scene.tulpar(&format!("{verb} a.txt"));
        assert!(said.code != Some(0) && said.err.contains("start one with `tulpar run`"), "{said}");
        assert!(!said.err.contains("store.sqlite"), "{said}");
    }
}
