//! PRE and POST scripts.

use super::{TRUE, line, read, task};

#[test]
fn scripts_run_around_the_job_and_the_last_word_is_the_post_scripts() {
    let dag = "JOB A t.sub\nSCRIPT PRE A bin/pre.sh $JOB x\nSCRIPT POST A /usr/bin/check $RETURN $RETRY $MAX_RETRIES $JOBID\nRETRY A 2\n";
    let (workflow, found) = read(dag, &[("t.sub", TRUE)]);
    assert_eq!(
        found,
        [
            "2 D012 a script of `A` runs in the folder of the task, not in that of the DAG (and 1 more like this)",
            "3 D006 `$JOBID` of a script cannot be known here; it gets an empty word",
        ]
    );
    assert_eq!(
        line(task(&workflow.expect("a workflow"), "A")),
        "install -m 755 .staged/pre.sh ./pre.sh\n./pre.sh A x\nRETURN=0\n/bin/true || RETURN=$?\n\
         /usr/bin/check \"$RETURN\" $((TULPAR_ATTEMPT - 1)) 2 ''"
    );
}

#[test]
fn a_pre_script_may_say_that_there_is_nothing_to_do() {
    let dag = "JOB A t.sub NOOP\nSCRIPT PRE A /bin/check\nPRE_SKIP A 3\n";
    let (workflow, _) = read(dag, &[]);
    assert_eq!(
        line(task(&workflow.expect("a workflow"), "A")),
        "/bin/check || { PRE=$?; [ $PRE = 3 ] && exit 0; exit $PRE; }"
    );
}

#[test]
fn scripts_of_a_splice_are_refused_by_name() {
    let (_, found) = read("SPLICE S s.dag\nSCRIPT PRE S x.sh", &[("s.dag", "JOB A t.sub"), ("t.sub", TRUE)]);
    assert_eq!(found, ["2 D010 what is said of `S` as a whole is not carried over: SCRIPT PRE S x.sh"]);
}
