//! Instances of WfCommons: imported with their commands, and run where these can be had.

use super::harness::Scene;

const INSTANCE: &str = r#"{"name": "two", "schemaVersion": "1.5", "workflow": {
  "specification": {
    "tasks": [
      {"name": "make", "id": "make_ID1", "parents": [], "children": ["count_ID2"], "inputFiles": ["start.txt"],
       "outputFiles": ["made.txt"]},
      {"name": "count", "id": "count_ID2", "parents": ["make_ID1"], "children": [], "inputFiles": ["made.txt"],
       "outputFiles": ["count.txt"]}],
    "files": [{"id": "start.txt", "sizeInBytes": 6}, {"id": "made.txt", "sizeInBytes": 12}, {"id": "count.txt", "sizeInBytes": 2}]},
  "execution": {"makespanInSeconds": 1, "executedAt": "2020-01-01T00:00:00Z", "tasks": [
    {"id": "make_ID1", "runtimeInSeconds": 0.5, "command": {"program": "cat", "arguments": ["start.txt", "start.txt", ">", "made.txt"]}},
    {"id": "count_ID2", "runtimeInSeconds": 0, "command": {"program": "wc", "arguments": ["-l", "<", "made.txt", ">", "count.txt"]}}]}}}"#;

#[test]
fn an_instance_with_commands_is_imported_and_runs() {
    let scene = Scene::empty();
    scene.write("two.json", INSTANCE);
    scene.write("start.txt", "a\nb\nc\n");
    let said = scene.tulpar("check two.json").done();
    assert!(said.err.contains("F021"), "{said}");
    scene.tulpar("import two.json -o native.yaml").done();
    scene.tulpar("check native.yaml").done();
    scene.tulpar("run native.yaml").done();
    assert_eq!(scene.read("results/count.txt").trim(), "6");
}

#[test]
fn an_instance_without_commands_says_so() {
    let scene = Scene::empty();
    scene.write(
        "x.json",
        r#"{"schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"name": "a", "id": "a"}]}}}"#,
    );
    let said = scene.tulpar("import x.json").done();
    assert!(said.err.contains("no command is recorded for `a`"), "{said}");
    assert!(said.out.contains("exit 1"), "{said}");
    scene.write("y.json", r#"{"schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"id": 7}]}}}"#);
    assert!(scene.tulpar("import y.json").expect(2).err.contains("F002"));
}
