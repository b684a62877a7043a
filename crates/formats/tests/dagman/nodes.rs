//! The commands of DAG files.

use super::{TRUE, good, line, read, task, waits};
use tulpar_core::workflow::RetryOn;

fn edges(list: &[(&str, &[&str])]) -> std::collections::BTreeMap<String, Vec<String>> {
    list.iter()
        .map(|(name, before)| ((*name).to_owned(), before.iter().map(|name| (*name).to_owned()).collect()))
        .collect()
}

#[test]
fn a_diamond_has_its_edges() {
    let dag = "# a diamond\nJOB A t.sub\njob B t.sub\nJob C \\\n  t.sub\nJOB D t.sub\nPARENT A CHILD B C\nparent B C child D\n";
    let workflow = good(dag, &[("t.sub", TRUE)]);
    assert_eq!(workflow.name, "test");
    assert_eq!(waits(&workflow), edges(&[("A", &[]), ("B", &["A"]), ("C", &["A"]), ("D", &["B", "C"])]));
    assert_eq!(line(task(&workflow, "A")), "/bin/true");
}

#[test]
fn splices_and_sub_dags_are_put_in_place_under_longer_names() {
    let inner = "JOB x t.sub\nJOB y t.sub\nSPLICE deep deep.dag\nPARENT x CHILD y deep\n";
    let dag = "JOB first t.sub\nSPLICE one inner.dag DIR sub\nSUBDAG EXTERNAL two inner2.dag\nJOB last t.sub\n\
        PARENT first CHILD one\nPARENT one CHILD two\nPARENT two CHILD last\n";
    let files = [
        ("t.sub", TRUE),
        ("sub/t.sub", TRUE),
        ("sub/inner.dag", inner),
        ("sub/deep.dag", "JOB z t.sub\n"),
        ("inner2.dag", "JOB only t.sub"),
    ];
    assert_eq!(
        waits(&good(dag, &files)),
        edges(&[
            ("first", &[]),
            ("one_x", &["first"]),
            ("one_y", &["one_x"]),
            ("one_deep_z", &["one_x"]),
            ("two_only", &["one_deep_z", "one_y"]),
            ("last", &["two_only"]),
        ])
    );
}

#[test]
fn descriptions_may_stand_inside_the_dag() {
    let dag = "SUBMIT-DESCRIPTION shared {\n  executable = /bin/echo\n  arguments = $(word) of $(JOB)\n  \
        transfer_output_files =\n}\nJOB A shared\nVARS A word=\"say \\\"hi\\\"\"\nJOB B {\n  executable = /bin/date\n  \
        transfer_output_files =\n}\nVARS ALL_NODES other=\"x\"\n";
    let workflow = good(dag, &[]);
    assert_eq!(line(task(&workflow, "A")), "/bin/echo say '\"hi\"' of A");
    assert_eq!(line(task(&workflow, "B")), "/bin/date");
}

#[test]
fn variables_give_way_to_the_description_unless_they_are_appended() {
    let sub =
        "who = description\nexecutable = /bin/echo\narguments = $(who) $(mine:none)\ntransfer_output_files =\nqueue";
    let dag = "JOB A t.sub\nJOB B t.sub\nVARS A who=\"dag\" mine=\"1\"\nVARS B APPEND who=\"dag\"\n";
    let workflow = good(dag, &[("t.sub", sub)]);
    assert_eq!(line(task(&workflow, "A")), "/bin/echo description 1");
    assert_eq!(line(task(&workflow, "B")), "/bin/echo dag none");
}

#[test]
fn retries_priorities_and_done_are_carried_over() {
    let dag = "JOB A t.sub\nJOB B t.sub DONE\nJOB C t.sub\nPARENT A CHILD B\nPARENT B CHILD C\nRETRY A 3\nPRIORITY ALL_NODES 7\n\
        PRIORITY C -2\n";
    let workflow = good(dag, &[("t.sub", TRUE)]);
    assert_eq!(waits(&workflow), edges(&[("A", &[]), ("C", &[])]), "a node that is done is left out");
    assert_eq!(task(&workflow, "A").settings.retry.times, 3);
    assert_eq!(task(&workflow, "C").settings.retry.times, 0);
    assert_eq!((task(&workflow, "A").settings.priority, task(&workflow, "C").settings.priority), (7, -2));
}

#[test]
fn includes_belong_to_the_same_dag() {
    let dag = "INCLUDE more.dag\nPARENT A CHILD B\nJOB B t.sub\n";
    assert_eq!(
        waits(&good(dag, &[("t.sub", TRUE), ("more.dag", "JOB A t.sub\n")])),
        edges(&[("A", &[]), ("B", &["A"])])
    );
}

#[test]
fn what_has_no_counterpart_is_named() {
    let dag = "JOB A t.sub\nFINAL F t.sub\nPROVISIONER P p.sub\nSERVICE S s.sub\nDATA X x.stork\nCATEGORY A big\nMAXJOBS big 2\n\
        ABORT-DAG-ON A 3 RETURN 1\nRETRY A 2 UNLESS-EXIT 7\nCONFIG dag.conf\nDOT dag.dot UPDATE\nSCRIPT HOLD A h.sh\n\
        SET_JOB_ATTR x = 1\n";
    let (workflow, found) = read(dag, &[("t.sub", TRUE)]);
    assert_eq!(
        found,
        [
            "2 D018 the FINAL node `F` runs only when everything else went well",
            "3 D011 the PROVISIONER node `P` is not run",
            "4 D011 the SERVICE node `S` is not run",
            "5 D011 the DATA node `X` is not run",
            "6 D010 categories and their limits are not carried over (and 1 more like this)",
            "8 D010 `ABORT-DAG-ON A 3 RETURN 1` is not carried over",
            "9 D010 `UNLESS-EXIT 7` is not carried over: every failure is tried again",
            "10 D010 `CONFIG` has no effect here",
            "11 D010 `DOT` has no effect here",
            "12 D010 a HOLD script is not run",
            "13 D010 `SET_JOB_ATTR` is not carried over: x = 1",
        ]
    );
    assert_eq!(waits(&workflow.expect("a workflow")), edges(&[("A", &[]), ("F", &["A"])]));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let dag = "JOB A t.sub\nJOB A t.sub\nJIB B t.sub\nPARENT A CHILD a\nPARENT A\nVARS A x=1\nRETRY A often\nJOB C no.sub\n\
        SPLICE S no.dag\nINCLUDE no.inc\nJOB D {\nexecutable = x\n";
    let (workflow, found) = read(dag, &[("t.sub", TRUE)]);
    assert!(workflow.is_some());
    assert_eq!(
        found,
        [
            "2 D004 two nodes have the name `A`",
            "3 D001 `JIB` is no command of DAGMan",
            "4 D003 there is no node `a`",
            "5 D001 an edge is `PARENT name… CHILD name…`",
            "6 D001 a variable is `name=\"value\"`, which `x=1` is not",
            "7 D001 `RETRY A` needs a whole number",
            "8 D002 there is no submit description `no.sub`, which `C` names",
            "9 D002 there is no file `no.dag`",
            "10 D002 there is no file `no.inc`",
            "11 D001 the `}` of this description is missing",
        ]
    );
}

#[test]
fn a_node_without_a_job_has_its_retries_and_its_priority() {
    let dag = "JOB A t.sub NOOP\nSCRIPT POST A /bin/check\nRETRY A 2\nPRIORITY A 3\n";
    let (workflow, _) = read(dag, &[]);
    let workflow = workflow.expect("a workflow");
    let settings = &task(&workflow, "A").settings;
    assert_eq!((settings.retry.times, settings.priority), (2, 3));
    assert!(settings.retry.on.contains(&RetryOn::Failure));
}

#[test]
fn what_dagman_refuses_is_refused() {
    let dag = "JOB A+B t.sub\nJOB Parent t.sub\nSPLICE x+y s.dag\nREJECT\n";
    let (_, found) = read(dag, &[("t.sub", TRUE), ("s.dag", "JOB C t.sub\n")]);
    assert_eq!(
        found,
        [
            "1 D001 the name `A+B` has a `+`, which stands between a splice and its node",
            "2 D001 `Parent` is a word of DAGMan and no name of a node",
            "3 D001 the name `x+y` has a `+`, which stands between a splice and its node",
            "4 D024 the DAG is marked with `REJECT`, so that nobody runs it",
        ]
    );
}

#[test]
fn a_dag_is_told_from_other_texts() {
    use tulpar_formats::dagman::is_dag;
    assert!(is_dag("\n# c\njob A a.sub\n"));
    assert!(is_dag("CONFIG x\n"));
    assert!(!is_dag("executable = /bin/true\nqueue\n"));
    assert!(!is_dag("workflow: x\n"));
    assert!(!is_dag("env: x\n"));
    assert!(!is_dag("job = x\n"));
    assert!(!is_dag(""));
}
