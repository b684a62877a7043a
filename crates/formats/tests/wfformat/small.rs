//! Small instances: one rule each.

use super::said;
use tulpar_core::diagnostic::line_column;
use tulpar_core::workflow::write;
use tulpar_formats::wfformat::{self, Instance};

fn of(tasks: &str, files: &str, execution: &str) -> String {
    format!(
        r#"{{"name": "x", "schemaVersion": "1.5", "workflow": {{
            "specification": {{"tasks": [{tasks}], "files": [{files}]}},
            "execution": {{"makespanInSeconds": 3, "executedAt": "", "tasks": [{execution}]}}}}}}"#
    )
}

fn read(text: &str) -> Instance {
    let (instance, findings) = wfformat::read(text);
    instance.unwrap_or_else(|| panic!("{findings:?}"))
}

const TWO: &str = r#"{"name": "a", "id": "a", "parents": [], "children": ["b"], "outputFiles": ["f"]},
    {"name": "b", "id": "b", "parents": ["a"], "children": [], "inputFiles": ["f", "g"]}"#;
const FILES: &str = r#"{"id": "f", "sizeInBytes": 7}, {"id": "g", "sizeInBytes": 8.0}"#;
const RUN: &str = r#"{"id": "a", "runtimeInSeconds": 0, "command": {"program": "make", "arguments": ["-o", "f"]},
    "strange": {"key": [1]}}, {"id": "b", "runtimeInSeconds": 2.5, "coreCount": 1.5, "gpuCount": 2, "machine": "m"}"#;

#[test]
fn zero_run_times_unknown_keys_and_fractions_are_read() {
    let (instance, findings) = wfformat::read(&of(TWO, FILES, RUN));
    assert_eq!(said(&findings), ["F011 the machine `m` is not described"]);
    let instance = instance.expect("an instance");
    assert_eq!(instance.tasks[0].runtime, Some(0.0));
    assert_eq!((instance.tasks[1].cores, instance.tasks[1].gpus), (1.5, 2.0));
    assert_eq!((instance.tasks[0].children.clone(), instance.tasks[1].parents.clone()), (vec![1], vec![0]));
    assert_eq!(instance.files[1].size, 8);
}

#[test]
fn each_contradiction_is_said_once_with_its_count() {
    let tasks = r#"{"name": "a", "id": "a", "parents": ["nobody", "none"], "children": ["b"], "inputFiles": ["h"]},
        {"name": "b", "id": "b", "parents": [], "children": []}, {"name": "c", "id": "c", "parents": ["b"]}"#;
    let run = r#"{"id": "a", "runtimeInSeconds": -1}, {"id": "z", "runtimeInSeconds": 1},
        {"id": "b", "runtimeInSeconds": 1}, {"id": "b", "runtimeInSeconds": 1}"#;
    let (instance, findings) = wfformat::read(&of(tasks, "", run));
    assert!(instance.is_none());
    let mut found = said(&findings);
    found.sort();
    assert_eq!(
        found,
        [
            "F005 the execution of `b` is recorded twice",
            "F006 `a` names `nobody`, but there is no such task (and 1 more like this)",
            "F006 `z` was executed, but is no task of the specification",
            "F008 the file `h` is not declared under `files`; its size is not known",
            "F009 `a` names `b` as its child, but is not named as its parent (and 1 more like this)",
            "F010 no execution of `c` is recorded; it counts as 0 s",
            "F012 a number of `a` cannot be: -1",
        ]
    );
}

#[test]
fn a_cycle_is_named() {
    let tasks = r#"{"name": "a", "id": "a", "parents": ["c"]}, {"name": "b", "id": "b", "parents": ["a"]},
        {"name": "c", "id": "c", "parents": ["b"]}, {"name": "d", "id": "d", "parents": ["c"]}"#;
    let text = format!(r#"{{"schemaVersion": "1.5", "workflow": {{"specification": {{"tasks": [{tasks}]}}}}}}"#);
    let (instance, findings) = wfformat::read(&text);
    assert!(instance.is_none());
    assert_eq!(said(&findings), ["F007 tasks wait for each other: b → c → a → b"]);
}

#[test]
fn what_is_not_json_is_said_with_its_line() {
    let text = "{\n  \"workflow\": {\n    \"specification\": [}\n";
    let (_, findings) = wfformat::read(text);
    assert_eq!(findings[0].code, "F001");
    assert_eq!(line_column(text, &findings[0].span.expect("a place")).0, 3);
    let (_, findings) = wfformat::read("{\"workflow\": {");
    assert_eq!(findings[0].code, "F001");
    let (_, findings) = wfformat::read(&of(r#"{"id": 7}"#, "", ""));
    assert!(findings[0].message.contains("expected a string"), "{findings:?}");
}

#[test]
fn the_native_workflow_has_the_recorded_commands() {
    let instance = read(&of(TWO, FILES, RUN));
    let (workflow, findings) = wfformat::convert(&instance);
    assert_eq!(
        said(&findings),
        [
            "F020 no command is recorded for `b`",
            "F021 commands are recorded as loose words: how they were quoted is lost"
        ]
    );
    insta::assert_snapshot!(write(&workflow), @r#"
    workflow: x
    data:
      g:
        files:
          g: g
    tasks:
      a:
        out:
          f: {path: f, size: 7 B}
        kind: make
        runtime: 0 ms
        run: "make -o f"
      b:
        in:
          - a.f
          - g
        cpus: 1.5
        gpus: 2
        runtime: 2500 ms
        run: "echo no command was recorded for b >&2; exit 1"
    "#);
}

#[test]
fn ids_that_the_schema_refuses_are_replaced_when_written() {
    let mut instance = read(&of(TWO, FILES, RUN));
    instance.tasks[0].id = "a b".to_owned();
    instance.tasks[1].id = "a/b".to_owned();
    instance.files[0].id = "out put/é".to_owned();
    let written = wfformat::write(&instance);
    let again = read(&written);
    assert_eq!((again.tasks[0].id.as_str(), again.tasks[1].id.as_str()), ("a_b", "a_b_2"));
    assert_eq!(again.files[0].id, "out_put/_");
    assert_eq!(again.tasks[1].parents, [0]);
}

#[test]
fn only_json_with_a_map_under_workflow_is_wfformat() {
    assert!(wfformat::is_wfformat(" {\"name\": 1, \"workflow\" :\n {}}"));
    assert!(!wfformat::is_wfformat("{\"workflow\": \"diamond\", \"tasks\": {}}"));
    assert!(!wfformat::is_wfformat("workflow: {}"));
}

#[test]
fn fractions_of_cores_and_kinds_that_nobody_could_guess_survive_being_written() {
    let instance = Instance {
        name: "x".into(),
        version: "1.5".into(),
        tasks: vec![wfformat::Task {
            id: "watch".into(),
            name: "watch".into(),
            kind: "watching".into(),
            cores: 0.25,
            gpus: 0.5,
            runtime: Some(1.5),
            program: Some("sh".into()),
            ..wfformat::Task::default()
        }],
        executed_at: Some(String::new()),
        makespan: Some(2.0),
        ..Instance::default()
    };
    let text = wfformat::write(&instance);
    // The schema refuses a `coreCount` below 1.
    assert!(!text.contains("coreCount") && text.contains("\"coreShare\": 0.25"), "{text}");
    assert_eq!(read(&text), instance);
    let (workflow, _) = wfformat::convert(&instance);
    let request = &workflow.tasks[0].settings.request;
    assert_eq!((request.milli_cpus, request.gpus, request.gpu_share), (250, 1, 500));
}

#[test]
fn the_words_of_a_command_are_its_line_again() {
    use tulpar_core::job::CommandLine;
    let shell = |line: &str| CommandLine::Shell { shell: "sh".into(), line: line.into() };
    let arguments = |words: &[&str]| CommandLine::Arguments(words.iter().map(|word| (*word).into()).collect());
    for (command, line) in [
        (shell("echo 'a  b' >  x.txt\nwc x.txt\n"), "echo 'a  b' >  x.txt\nwc x.txt"),
        (shell("echo echo"), "echo echo"),
        (arguments(&["echo", "a  b", "it's", ""]), "echo 'a  b' 'it'\\''s' ''"),
    ] {
        let words = wfformat::words(&command);
        assert_eq!(words.join(" "), line);
        let task = wfformat::Task {
            id: "t".into(),
            name: "t".into(),
            program: words.first().cloned(),
            arguments: words[1..].to_vec(),
            ..wfformat::Task::default()
        };
        let system = Some(wfformat::System { name: wfformat::OURS.into(), ..wfformat::System::default() });
        let (workflow, _) = wfformat::convert(&Instance { system, tasks: vec![task], ..Instance::default() });
        assert_eq!(workflow.tasks[0].run.templates()[0].0.as_ref(), line);
    }
    assert!(wfformat::words(&shell(" ")).is_empty());
}
