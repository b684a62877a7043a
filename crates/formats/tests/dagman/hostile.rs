//! No text makes the reader panic, hang or grow without end.

use super::{Files, TRUE, read};
use proptest::prelude::*;
use tulpar_core::workflow;
use tulpar_formats::dagman;

const DAG: &str = "JOB A t.sub DIR x\nJOB B { \n executable = $(x)\n}\nSUBDAG EXTERNAL S s.dag\nVARS A x=\"a\\\"b\" y=\"2\"\nRETRY A 2 \
    UNLESS-EXIT 3\nPARENT A CHILD B S\nSCRIPT POST B p.sh $RETURN\nCATEGORY A c\nFINAL F t.sub\nPRE_SKIP A 1\nDONE B\n";
const SUB: &str = "executable = run.sh\narguments = \"a 'b' $(Process)\"\nenvironment = A=1;B=2\nif defined x\nrequest_memory = 1GB\nelse\n\
    include : t.inc\nendif\ntransfer_input_files = a, b/$(f), http://x/y\ntransfer_output_files = c.$(Process)\n\
    transfer_output_remaps = \"c=d\"\noutput = $Fn(f).out\nx @=end\n1\n@end\nqueue 2 f from (\n a\n b\n)\n";

fn survives(dag: &str, sub: &str) {
    let files = Files::of(&[("t.sub", sub), ("x/t.sub", sub), ("s.dag", "JOB A t.sub\n"), ("t.inc", sub)]);
    dagman::is_dag(dag);
    let (workflow, _) = dagman::read("x.dag", dag, &files);
    if let Some(found) = workflow {
        // Whatever it is, it can be written and checked.
        let written = workflow::write(&found);
        workflow::read(&written, &Default::default());
        workflow::check(&found, None, None);
    }
}

#[test]
fn the_samples_are_read() {
    survives(DAG, SUB);
    for end in 0..SUB.len() {
        survives("JOB A t.sub", &SUB[..end]);
    }
    for end in 0..DAG.len() {
        survives(&DAG[..end], TRUE);
    }
}

#[test]
fn dags_that_contain_themselves_end() {
    let (_, found) =
        read("JOB A t.sub\nSPLICE S s.dag\n", &[("t.sub", TRUE), ("s.dag", "SPLICE S s.dag\nSPLICE T s.dag\n")]);
    assert!(found.iter().any(|text| text.contains("D005")), "{found:?}");
    let (_, found) = read("INCLUDE i.dag\n", &[("i.dag", "INCLUDE i.dag\nJOB A t.sub\n"), ("t.sub", TRUE)]);
    assert!(found.iter().any(|text| text.contains("D005")), "{found:?}");
    let (_, found) = read("JOB A t.sub", &[("t.sub", "include : t.sub\nexecutable = /bin/true\n")]);
    assert!(found.iter().any(|text| text.contains("D005")), "{found:?}");
}

#[test]
fn cycles_are_found_by_the_check() {
    let (workflow, found) = read("JOB A t.sub\nJOB B t.sub\nPARENT A CHILD B\nPARENT B CHILD A", &[("t.sub", TRUE)]);
    assert_eq!(found, Vec::<String>::new());
    let findings = workflow::check(&workflow.expect("a workflow"), None, None);
    assert!(findings.iter().any(|finding| finding.code == "W022"), "{findings:?}");
}

#[test]
fn huge_numbers_of_jobs_are_refused() {
    for (queue, code) in [
        ("queue 99999999999", "D009"),
        ("queue 99999999999999999999999", "D009"),
        ("queue 10000000 x in (a b)", "D009"),
        ("transfer_input_files = in.$(Process)\nqueue 9000000", "D005"),
        ("queue -1", "D009"),
        ("queue x", "D009"),
        ("queue x from |", "D009"),
        ("queue x from none.txt", "D009"),
        ("queue x in ()", "D009"),
        ("queue x in [1:x] (a b)", "D009"),
        ("queue x in [5:] (a b)", "D009"),
    ] {
        let sub = format!("executable = /bin/true\ntransfer_output_files =\n{queue}\n");
        let (_, found) = read("JOB A t.sub", &[("t.sub", &sub)]);
        assert!(found.iter().any(|text| text.contains(code)), "{queue}: {found:?}");
    }
}

#[test]
fn many_nodes_are_read_in_time_that_grows_with_their_number() {
    let mut dag: String =
        (0..20_000).map(|number| format!("JOB n{number} t.sub\nVARS n{number} i=\"{number}\"\n")).collect();
    dag.push_str("JOB last last.sub\nPARENT");
    (0..20_000).for_each(|number| dag.push_str(&format!(" n{number}")));
    dag.push_str(" CHILD last\n");
    let names: Vec<String> = (0..20_000).map(|number| format!("out.{number}")).collect();
    let last = format!("executable = /bin/true\ntransfer_input_files = {}\ntransfer_output_files =\n", names.join(","));
    let sub = "executable = /bin/touch\narguments = out.$(i)\ntransfer_output_files = out.$(i)\n";
    let (workflow, found) = read(&dag, &[("t.sub", sub), ("last.sub", &last)]);
    assert_eq!(found, Vec::<String>::new());
    let workflow = workflow.expect("a workflow");
    assert_eq!(workflow.tasks[20_000].inputs.len(), 20_000);
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(
        at in 0..DAG.len(), cut in 0usize..30, put in "[A-Z \"{}$()=\\\\\n0-9+]{0,8}",
        sub_at in 0..SUB.len(), sub_cut in 0usize..30, sub_put in "[a-z \"'{}$():;,=@\\\\\n0-9\\[\\]]{0,8}",
    ) {
        let damaged = |text: &str, at: usize, cut: usize, put: &str| {
            format!("{}{put}{}", &text[..at], &text[(at + cut).min(text.len())..])
        };
        survives(&damaged(DAG, at, cut, &put), &damaged(SUB, sub_at, sub_cut, &sub_put));
    }

    #[test]
    fn no_text_makes_it_panic(dag in "(JOB|PARENT|VARS|SCRIPT|SPLICE|RETRY)[\\PC\n]{0,60}", sub in "[\\PC\n]{0,80}") {
        survives(&dag, &sub);
        survives("JOB A t.sub\nJOB B { \n", &sub);
    }
}
