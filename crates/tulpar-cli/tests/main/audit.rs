//! `tulpar audit` runs a sample of a run's tasks again, compares what they make, and changes nothing.

use super::harness::{Scene, wait_for};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

const CHAIN: &str = "workflow: chain
params: {parts: 4}
data: {words: words.txt, script: count.sh}
tasks:
  sort: {in: [words], out: {sorted: sorted.txt}, run: 'sort {words} > {sorted}'}
  part: {for: {n: 1..parts}, in: [sorted, script], out: {number: 'number-{n}.txt'}, run: 'sh {script} {n} {sorted} > {number}'}
  all: {in: [number], out: {sum: sum.txt}, run: 'cat {number} > {sum}'}
";

fn chain() -> Scene {
    let scene = Scene::new(CHAIN);
    scene.write("words.txt", "pear\napple\n");
    scene.write("count.sh", "echo $1; wc -l < $2\n");
    scene.tulpar("run").done();
    scene
}

/// `PLACE` stands for the folder of the workflow: what a task reads there is no declared input.
fn undeclared(workflow: &str) -> Scene {
    let scene = Scene::empty();
    let place = scene.path("");
    scene.write("workflow.yaml", &workflow.replace("PLACE", place.to_str().unwrap().trim_end_matches('/')));
    scene
}

/// Every file below a folder with its content and its time.
fn all_files(folder: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let about = entry.metadata().unwrap();
            if about.is_dir() {
                folders.push(entry.path());
                files.insert(format!("{}/", entry.path().display()), (Vec::new(), SystemTime::UNIX_EPOCH));
            } else {
                let content = fs::read(entry.path()).unwrap();
                files.insert(entry.path().display().to_string(), (content, about.modified().unwrap()));
            }
        }
    }
    files
}

#[test]
fn a_deterministic_run_is_the_same_again_and_nothing_is_changed() {
    let scene = chain();
    // The tasks of this run are reused, all but one.
    scene.write("workflow.yaml", &CHAIN.replace("cat {number}", "sort {number}"));
    scene.tulpar("run").done();
    let runs = scene.tulpar("runs --json").done().out;
    let before = all_files(&scene.path(""));
    for run in ["", "chain-1"] {
        let said = scene.tulpar(&format!("audit {run} --sample 100% --seed 7")).done();
        let run = if run.is_empty() { "chain-2" } else { run };
        assert_eq!(
            said.out,
            format!("{run}: 6 of 6 done tasks sampled (seed 7): 6 the same again, 0 different, 0 not run again\n")
        );
        assert!(said.err.contains("done     part[n=3] in ") && said.err.contains("audit of chain-"), "{said}");
    }
    let after = all_files(&scene.path(""));
    assert!(before == after, "{:?}\n{:?}", before.keys(), after.keys());
    assert_eq!(scene.tulpar("runs --json").done().out, runs);
    assert!(scene.tulpar("status").done().out.contains("chain-2"));
}

#[test]
fn a_sample_is_drawn_by_share_or_number_and_its_seed_is_said() {
    let scene = chain();
    let names = |line: &str| {
        let json = scene.tulpar(line).done().json();
        let names: Vec<String> =
            json["tasks"].as_array().unwrap().iter().map(|task| task["task"].as_str().unwrap().to_owned()).collect();
        (json["seed"].as_u64().unwrap(), names)
    };
    let (seed, drawn) = names("audit --sample 3 --json");
    assert_eq!(drawn.len(), 3);
    assert_eq!(names(&format!("audit --sample 50% --seed {seed} --json")), (seed, drawn));
    assert_eq!(names("audit --json").1.len(), 1);
    for line in ["audit --sample 0", "audit --sample 200%", "audit chain-7"] {
        scene.tulpar(line).expect(2);
    }
    let said = scene.tulpar("audit chain-7").expect(2);
    assert!(said.err.contains("no run is called `chain-7`"), "{said}");
}

#[test]
fn an_undeclared_input_that_changed_is_found_by_the_file_that_is_other_now() {
    let scene = undeclared(
        "workflow: hidden
tasks:
  good: {out: {a: a.txt}, run: 'echo good > {a}'}
  bad: {out: {b: b.txt, c: c.txt}, run: 'cp PLACE/hidden.txt {b}; echo same > {c}'}
",
    );
    scene.write("hidden.txt", "one\n");
    scene.tulpar("run").done();
    scene.tulpar("audit --sample 100%").done();
    scene.write("hidden.txt", "two\n");
    let said = scene.tulpar("audit --sample 100% --seed 1").expect(1);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].starts_with("differs: bad: b.txt: recorded ") && lines[0].contains(", now "), "{said}");
    assert_eq!(
        lines[1..],
        ["hidden-1: 2 of 2 done tasks sampled (seed 1): 1 the same again, 1 different, 0 not run again"]
    );
    // A program that needs a hidden file fails without it.
    fs::remove_file(scene.path("hidden.txt")).unwrap();
    let said = scene.tulpar("audit --sample 100%").expect(1);
    assert!(said.out.starts_with("differs: bad: this time it failed: exit code 1\n"), "{said}");
}

#[test]
fn a_program_that_is_not_deterministic_is_found() {
    let scene = Scene::new(
        "workflow: dice
tasks:
  roll: {for: {n: 1..2}, shell: bash, out: {dice: 'dice-{n}.txt'}, run: 'echo $RANDOM $RANDOM $RANDOM $RANDOM > {dice}'}
",
    );
    scene.tulpar("run").done();
    let json = scene.tulpar("audit --sample 100% --json").expect(1).json();
    assert_eq!((json["differ"].as_u64(), json["same"].as_u64()), (Some(2), Some(0)));
    assert_eq!(json["tasks"][1]["task"], "roll[n=2]");
    assert_eq!(json["tasks"][1]["files"][0]["path"], "dice-2.txt");
}

#[test]
fn trials_of_a_search_are_compared_by_the_numbers_that_they_say() {
    let scene = undeclared(
        "workflow: tune
tasks:
  try:
    search: {trials: 3, minimize: loss, space: {x: 'int(1, 9)'}}
    run: 'echo \"{\\\"loss\\\": {x}$(cat PLACE/hidden.txt)}\"'
",
    );
    scene.write("hidden.txt", "0");
    scene.tulpar("run").done();
    scene.tulpar("audit --sample 100%").done();
    scene.write("hidden.txt", "1");
    let said = scene.tulpar("audit --sample 1").expect(1);
    assert!(said.out.starts_with("differs: try[trial=") && said.out.contains(": loss: recorded "), "{said}");
}

#[test]
fn inputs_are_those_of_the_run_and_a_task_whose_inputs_are_not_here_is_not_run_again() {
    let scene = Scene::new(
        "workflow: given
data: {small: small.txt, large: large.txt}
tasks:
  few: {in: [small], out: {a: a.txt}, run: 'wc -c < {small} > {a}; echo edited > {small}'}
  much: {in: [large], out: {b: b.txt}, run: 'wc -c < {large} > {b}'}
  next: {in: [a], out: {c: c.txt}, run: 'cat {a} {a} > {c}'}
  last: {in: [c], run: 'cat {c}'}
",
    );
    scene.write("small.txt", "small\n");
    scene.write("large.txt", &"large ".repeat(1 << 18));
    scene.tulpar("run").done();
    // A copy of the small file was kept.
    scene.write("small.txt", "other\n");
    scene.write("large.txt", "other\n");
    fs::remove_file(scene.object("6\n")).unwrap();
    let said = scene.tulpar("audit --sample 100% --seed 1").done();
    assert_eq!(
        said.out,
        "not run again: much: its input large.txt changed since\n\
         not run again: next: its input a.txt is no longer in the cache\n\
         not run again: last: it leaves nothing to compare\n\
         given-1: 4 of 4 done tasks sampled (seed 1): 1 the same again, 0 different, 3 not run again\n"
    );
    fs::remove_dir_all(scene.path(".tulpar/cache/objects")).unwrap();
    let said = scene.tulpar("audit --sample 100%").expect(2);
    assert!(said.err.contains("nothing could be audited"), "{said}");
}

#[test]
fn an_audit_that_is_stopped_leaves_nothing_and_what_a_killed_one_left_is_removed() {
    let scene = undeclared(
        "workflow: slow
tasks:
  one: {shell: bash, out: {a: a.txt}, run: 'if [ -e PLACE/never ]; then touch PLACE/begun; while :; do read -t 0.05 _ < PLACE/never || true; done; fi; echo > {a}'}
",
    );
    scene.tulpar("run").done();
    scene.write(".tulpar/audit-7/lock", "");
    scene.write(".tulpar/audit-7/runs/audit-1/plan.json", "");
    let status = std::process::Command::new("mkfifo").arg(scene.path("never")).status();
    assert!(status.unwrap().success());
    let _never = fs::File::options().read(true).write(true).open(scene.path("never")).unwrap();
    let running = scene.start(scene.command(&["audit"]));
    wait_for("the task begins", || scene.path("begun").exists());
    assert!(!scene.path(".tulpar/audit-7").exists());
    running.signal("TERM");
    let said = running.end().expect(130);
    assert!(said.err.contains("The audit was interrupted") && !said.err.contains("resume"), "{said}");
    let left: Vec<String> = fs::read_dir(scene.path(".tulpar"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("audit"))
        .collect();
    assert_eq!(left, <[String; 0]>::default());
}

#[test]
fn tasks_of_clusters_and_staged_runs_are_run_here_and_verified_up_to_the_files_of_the_user() {
    for how in ["--cluster whole", "--cluster horizontal=2", "--data nonsharedfs"] {
        let scene = Scene::new(CHAIN);
        scene.write("words.txt", "pear\napple\n");
        scene.write("count.sh", "echo $1; wc -l < $2\n");
        scene.tulpar(&format!("run {how}")).done();
        let json = scene.tulpar("audit --sample 100% --json").done().json();
        assert_eq!((json["differ"].as_u64(), json["not_run_again"].as_u64()), (Some(0), Some(0)), "{json}");
        scene.tulpar("verify results/sum.txt").done();
        scene.write("words.txt", "plum\n");
        let said = scene.tulpar("verify results/sum.txt").expect(1);
        assert!(said.out.starts_with("differs: words.txt (of "), "{said}");
    }
}
