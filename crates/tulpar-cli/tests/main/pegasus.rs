//! Pegasus workflows run as they are: one of our own, and those that Pegasus' Python API writes.

mod nested;

use super::harness::{Scene, files_below, skipped};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of `testdata/pegasus/<name>` of the core.
fn copied(name: &str) -> Scene {
    let scene = Scene::empty();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/testdata/pegasus").join(name);
    for file in files_below(&folder) {
        let text = std::fs::read_to_string(&file).expect("text");
        scene.write(file.strip_prefix(&folder).expect("below").to_str().expect("a name"), &text);
    }
    scene
}

#[test]
fn a_pegasus_workflow_runs_as_it_is() {
    let scene = copied("diamond");
    scene.tulpar("check").done();
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/f.d"), "range 3 of findrange_ID0000002: helped start\n");
    // Only what is declared is there, under its logical name; the words are split by a shell.
    assert_eq!(
        scene.read("results/log/preprocess.txt"),
        "diamond-preprocess-4.0\nf.a\nhelper\nlog\n7 words, the last but one is: from the {workflow}\n"
    );
    assert!(!scene.path("results/f.b1").exists(), "it is not to be staged out");
    assert!(scene.tulpar("run").done().err.contains("5 reused"), "a second run has nothing to do");
}

#[test]
fn metadata_of_workflow_jobs_and_files_are_kept_and_shown() {
    let scene = copied("diamond");
    let text = scene.read("workflow.yml");
    let text = text
        .replace("name: diamond\nprofiles", "name: diamond\nmetadata: {creator: 'me, myself', year: 2026}\nprofiles");
    let text = text.replace("  id: ID0000004\n", "  id: ID0000004\n  metadata: {time: '60'}\n");
    let text = text.replace("{lfn: f.d, type: output,", "{lfn: f.d, type: output, metadata: {size: '33', kind: plot},");
    scene.write("workflow.yml", &text);
    scene.tulpar("import workflow.yml -o native.yaml").done();
    for file in ["workflow.yml", "native.yaml"] {
        scene.tulpar(&format!("run {file}")).done();
        let runs = scene.tulpar("runs --json").done().json();
        let run = runs.as_array().and_then(|runs| runs.last()).unwrap();
        assert_eq!(run["metadata"], serde_json::json!({"creator": "me, myself", "year": "2026"}), "{file}");
        let status = scene.tulpar("status").done();
        assert!(status.out.contains("metadata: creator=me, myself, year=2026"), "{file}: {status}");
        let why = scene.tulpar("explain analyze_ID0000004").done();
        assert!(why.out.contains("Metadata: time=60"), "{file}: {why}");
        let lineage = scene.tulpar("lineage results/f.d").done();
        assert!(lineage.out.contains("Metadata: kind=plot"), "{file}: {lineage}");
    }
}

#[test]
fn an_imported_workflow_is_the_same_workflow() {
    let scene = copied("diamond");
    scene.tulpar("run").done();
    scene.tulpar("import workflow.yml -o native.yaml").done();
    scene.tulpar("check native.yaml").done();
    let said = scene.tulpar("run native.yaml").done();
    assert!(said.err.contains("5 reused"), "{said}");
    let printed = scene.tulpar("import workflow.yml").done();
    assert_eq!(printed.out, scene.read("native.yaml"));
    assert!(printed.out.contains("\".staged/findrange\": bin/findrange.sh"), "paths stay beside it: {printed}");
    // Elsewhere, its files must still be found.
    scene.write("away/keep", "");
    scene.tulpar("import workflow.yml -o away/native.yaml").done();
    scene.tulpar("check away/native.yaml").done();
}

#[test]
fn what_is_missing_is_said_with_the_job_and_the_file() {
    let scene = copied("diamond");
    scene.write("replicas.yml", "pegasus: '5.0'\nreplicas: []\n");
    let said = scene.tulpar("check").expect(2);
    for words in ["P010", "nothing provides `f.a`, an input of `preprocess_ID0000001`", "`notes-7.txt`"] {
        assert!(said.err.contains(words), "{words}: {said}");
    }
    let said = scene.tulpar("run -p x=1").expect(2);
    assert!(said.err.contains("a Pegasus workflow has no parameters"), "{said}");
    scene.write("native.yaml", "workflow: x\ntasks: {a: {run: 'true'}}\n");
    let said = scene.tulpar("import native.yaml").expect(2);
    assert!(said.err.contains("is not a Pegasus workflow"), "{said}");
}

/// A Python with Pegasus' API, made once; `None` when it cannot be had.
fn python_with_pegasus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pegasus-python");
    let python = folder.join("bin/python");
    let usable = || {
        let works = Command::new(&python).args(["-c", "import Pegasus.api"]).output();
        works.is_ok_and(|output| output.status.success())
    };
    if !usable() {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).output();
        let installed = made.is_ok_and(|output| output.status.success()).then(|| {
            Command::new(&python).args(["-m", "pip", "install", "--quiet", "pegasus-wms.api==5.1.3"]).output()
        });
        if !installed.is_some_and(|installed| installed.is_ok_and(|output| output.status.success())) || !usable() {
            skipped("Pegasus' Python API cannot be installed: its workflows were not run");
            return None;
        }
    }
    Some(python)
}

#[test]
fn workflows_that_pegasus_own_api_writes_run_to_the_end() {
    let Some(python) = python_with_pegasus() else { return };
    let scene = Scene::empty();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/main/pegasus/write.py");
    let output = Command::new(python).arg(script).current_dir(scene.path("")).output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all = [
        "diamond",
        "split",
        "merge",
        "pipeline",
        "checkpoint",
        "hierarchical",
        "from-file",
        "dynamic",
        "clustered",
        "hooks",
    ];
    for name in all {
        scene.tulpar(&format!("-C {name} check")).done();
        scene.tulpar(&format!("-C {name} run")).done();
    }
    let chain = "analyze\nfindrange\npreprocess\nstart\nfindrange\npreprocess\nstart\n";
    assert_eq!(scene.read("diamond/results/f.d"), chain);
    assert_eq!(scene.read("split/results/count.txt.a"), "100 part.a\n");
    assert_eq!(scene.read("split/results/count.txt.d"), "50 part.d\n");
    assert_eq!(scene.read("merge/results/merged.txt"), "part  0\npart  1\npart  2\n");
    assert_eq!(scene.read("pipeline/results/count.txt"), "2\n");
    assert_eq!(scene.read("checkpoint/results/out.txt"), "counted to 3\n");
    assert_eq!(scene.read("checkpoint/input/count.checkpoint"), "0\n", "the replica is the user's");
    assert_eq!(scene.read("hierarchical/results/d"), "last\ninnermost\ninner\nouter\nstart\n");
    assert_eq!(scene.read("hierarchical/results/c"), "innermost\ninner\nouter\nstart\n");
    assert!(!scene.path("hierarchical/results/deep").exists(), "it is not to be staged out");
    assert_eq!(scene.read("from-file/results/b"), "inner\nouter\nstart\n");
    assert_eq!(scene.read("dynamic/results/grown.txt"), "generated\nseed\n");
    assert_eq!(scene.read("clustered/results/end").lines().count(), 11);
    let mut seen: Vec<String> = scene.read("hooks/seen").lines().map(str::to_owned).collect();
    seen.sort();
    assert_eq!(seen, ["one: end", "one: start", "tool_ID0000001 success 0", "workflow: end 0"]);
    assert!(scene.read("hooks/there").contains("journal.jsonl"));
}

/// Real workflows with sub-workflows, as far as their programs are here.
#[test]
fn real_workflows_inside_workflows_are_read_when_they_are_reached() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/pegasus/hierarchical-sample");
    if !folder.is_dir() {
        skipped("the Pegasus workflows of ../shared are not here");
        return;
    }
    let scene = Scene::empty();
    for file in files_below(&folder) {
        let text = std::fs::read_to_string(&file).expect("text");
        scene.write(file.file_name().and_then(|name| name.to_str()).expect("a name"), &text);
    }
    let mut check = scene.command(&["check", "workflow.yml"]);
    check.env("FIXTURE_DIR", scene.path(""));
    scene.say(check).done();
    let mut run = scene.command(&["run", "workflow.yml"]);
    run.env("FIXTURE_DIR", scene.path(""));
    let said = scene.say(run);
    // Its first job asks a server; without one nothing after it is reached.
    match said.code {
        Some(0) => assert!(scene.path("results/count.txt").exists(), "{said}"),
        _ => skipped(&format!(
            "hierarchical-sample could not be run to its end: {}",
            said.err.lines().last().unwrap_or("")
        )),
    }
}

#[test]
fn a_replica_with_another_checksum_stops_the_run_and_is_named() {
    let scene = copied("diamond");
    let replicas = scene.read("replicas.yml");
    let with = |sum: &str| replicas.replace("- lfn: f.a\n", &format!("- lfn: f.a\n  checksum: {{sha256: {sum}}}\n"));
    let wrong = "00".repeat(32);
    scene.write("replicas.yml", &with(&wrong));
    let said = scene.tulpar("run").expect(2);
    for words in ["f.a: its SHA-256 is ", &format!("and the catalogue says {wrong}"), "input/start.txt"] {
        assert!(said.err.contains(words), "{words}: {said}");
    }
    let found = said.err.split("its SHA-256 is ").nth(1).expect("said")[..64].to_owned();
    scene.write("replicas.yml", &with(&found));
    scene.tulpar("run").done();
    scene.tulpar("import workflow.yml -o native.yaml").done();
    assert!(scene.read("native.yaml").contains(&format!("\"{found}\"")), "the import compares it too");
    scene.tulpar("check native.yaml").done();
}
