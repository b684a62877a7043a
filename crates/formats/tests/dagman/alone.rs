//! Submit descriptions without a DAG: each is a workflow of its own.

use super::{Files, line, said};
use tulpar_core::workflow::{AxisValues, OutputKind, Value, Workflow};
use tulpar_formats::dagman;

fn alone(text: &str, files: &[(&str, &str)]) -> (Workflow, Vec<String>) {
    assert!(dagman::is_submit(text), "{text}");
    let (workflow, findings) = dagman::read_submit("jobs/train.sub", text, &Files::of(files));
    (workflow.expect("a workflow"), said(text, &findings))
}

#[test]
fn a_submit_description_is_told_by_its_text() {
    for (text, expected) in [
        ("executable = a\nqueue\n", true),
        ("# x\n+WantGPULab = true\nMy.X = \"y\"\nQueue 5\n", true),
        ("if defined x\n a = 1\nendif\nqueue a from (\n 1\n)\n", true),
        ("note @=end\nsome: text\n@end\nqueue\n", true),
        ("executable = a\n", false),
        ("queue: 1\n", false),
        ("JOB A a.sub\nPARENT A CHILD B\n", false),
        ("workflow: x\ntasks:\n  a: {run: x=1}\n", false),
        ("", false),
    ] {
        assert_eq!(dagman::is_submit(text), expected, "{text}");
    }
}

#[test]
fn a_sweep_from_a_file_is_one_task_set() {
    let text = "\
executable = train.sh
arguments = \"--lr $(lr) --out model-$(name).pt\"
transfer_input_files = data.csv
transfer_output_files = model-$(name).pt
should_transfer_files = YES
request_cpus = 2
queue name, lr from sweep.txt
";
    let files = [("train.sh", ""), ("data.csv", ""), ("sweep.txt", "a, 0.1\nb, 0.01\n")];
    let (workflow, found) = alone(text, &files);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!((workflow.name.as_str(), workflow.tasks.len()), ("train", 1));
    let task = &workflow.tasks[0];
    assert_eq!(task.name, "train");
    assert_eq!(task.settings.request.milli_cpus, 2000);
    let AxisValues::Rows(rows) = &task.scatter[0].values else { panic!("rows") };
    let lines = [
        [Value::from_text("a"), Value::from_text("0.1"), Value::Integer(0)],
        [Value::from_text("b"), Value::from_text("0.01"), Value::Integer(1)],
    ];
    assert_eq!(rows.iter().map(Vec::as_slice).collect::<Vec<_>>(), lines);
    assert_eq!(task.outputs[0].path.0.as_ref(), "model-{name}.pt");
    assert_eq!(task.outputs[0].kind, OutputKind::File);
}

#[test]
fn slices_choose_items_as_htcondor_counts_them() {
    let values = |queue: &str| -> Vec<String> {
        let text = format!("executable = /bin/echo\narguments = $(x)\ntransfer_output_files =\nqueue {queue}\n");
        let (workflow, found) = alone(&text, &[]);
        assert_eq!(found, Vec::<String>::new(), "{queue}");
        let AxisValues::Rows(rows) = &workflow.tasks[0].scatter[0].values else { panic!("rows") };
        rows.iter().map(|row| row[0].to_string()).collect()
    };
    assert_eq!(values("x in [1:3] (a b c d)"), ["b", "c"]);
    assert_eq!(values("x in [::2] (a b c d)"), ["a", "c"]);
    assert_eq!(values("x in [-1:] (a b c d)"), ["d"]);
}

#[test]
fn the_exit_code_of_success_is_kept() {
    let (workflow, found) = alone("executable = /bin/x\ntransfer_output_files =\nsuccess_exit_code = 4\nqueue\n", &[]);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(line(&workflow.tasks[0]), "CODE=0\n/bin/x || CODE=$?\n[ $CODE = 4 ] || exit $((CODE ? CODE : 1))");
}

#[test]
fn outputs_that_nothing_names_are_said_to_be_lost() {
    let (_, found) = alone("executable = /bin/x\nshould_transfer_files = YES\nqueue\n", &[]);
    assert_eq!(
        found,
        ["3 D023 which files the job makes is not said; HTCondor would bring back all, here only its streams stay"]
    );
}
