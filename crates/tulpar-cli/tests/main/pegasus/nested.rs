//! Workflows inside workflows, and what stands around a job: hooks, scripts, versions of files.

use super::super::harness::{Scene, wait_for};
use super::super::page::Served;
use serde_json::Value;

const CATALOGUE: &str = "
pegasus: '5.0'
transformations:
- {name: sh, sites: [{name: local, pfn: /bin/sh, type: installed}]}
- {name: cat, sites: [{name: local, pfn: /bin/cat, type: installed}]}
";

/// A workflow of one job and one sub-workflow, whose own job runs `inner`.
fn nested(inner: &str) -> Scene {
    let scene = Scene::empty();
    scene.write("transformations.yml", CATALOGUE);
    scene.write(
        "workflow.yml",
        "
pegasus: '5.0'
name: outer
jobs:
- {id: first, name: sh, arguments: [\"-c 'echo first > a'\"], uses: [{lfn: a, type: output, stageOut: false}]}
- {id: inner, type: pegasusWorkflow, file: inner.yml, arguments: [--output-sites local, -vvv], profiles: {dagman: {RETRY: 0}},
   uses: [{lfn: a, type: input}, {lfn: inner.yml, type: input, forPlanning: true}, {lfn: b, type: output}]}
- {id: last, name: cat, arguments: [b], stdout: c, uses: [{lfn: b, type: input}, {lfn: c, type: output}]}
",
    );
    scene.write("replicas.yml", "replicas: [{lfn: inner.yml, pfns: [{site: local, pfn: inner.yml}]}]\n");
    scene.write(
        "inner.yml",
        &format!(
            "
pegasus: '5.0'
name: inner
profiles: {{dagman: {{RETRY: 0}}}}
jobs:
- {{id: one, name: sh, arguments: [\"-c 'cat a; echo one >> count; echo one'\"], stdout: d, uses: [{{lfn: a, type: input}}, {{lfn: d, type: output}}]}}
- {{id: two, name: sh, arguments: [\"{inner}\"], uses: [{{lfn: d, type: input}}, {{lfn: b, type: output}}]}}
"
        ),
    );
    scene
}

#[test]
fn what_is_done_inside_a_sub_workflow_is_not_done_again() {
    let scene = nested("-c '(cat d; echo two) > b'");
    scene.tulpar("check").done();
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/c"), "first\none\ntwo\n");
    assert_eq!(scene.read("results/d"), "first\none\n", "what the inner workflow stages out is a result too");
    scene.tulpar("run").done();
    let inner = scene.tulpar("logs inner").done();
    assert!(format!("{inner}").contains("2 reused"), "{inner}");
    let inside = scene.tulpar("status outer-2/sub/inner.1").done();
    assert!(inside.out.contains("sh_two"), "{inside}");
}

#[test]
fn the_page_lists_a_sub_workflow_under_the_run_and_the_task_that_it_belongs_to() {
    let scene = nested("-c '(cat d; echo two) > b'");
    scene.tulpar("run").done();
    let served = Served::start(&scene, &[]);
    let runs = served.json("/api/runs")["runs"].clone();
    assert_eq!((&runs[0]["run"], &runs[1]["run"]), (&"outer-1".into(), &"outer-1/sub/inner.1".into()));
    assert_eq!((&runs[0]["parent"], &runs[1]["parent"]), (&Value::Null, &"outer-1".into()));
    assert_eq!(served.json("/api/runs/outer-1")["inner"][0]["run"], "outer-1/sub/inner.1");
    let jobs = served.json("/api/runs/outer-1/jobs?text=inner");
    let task = served.json(&format!("/api/runs/outer-1/jobs/{}", jobs["jobs"][0]["job"]));
    assert_eq!(task["inner"][0]["run"], "outer-1/sub/inner.1");
    let inside = served.json("/api/runs/outer-1%2Fsub%2Finner.1");
    assert_eq!(inside["tasks"], 2, "{inside}");
    let why = served.json("/api/runs/outer-1%2Fsub%2Finner.1/jobs/1/why");
    assert_eq!(why["explain"]["task"], "sh_two");
}

#[test]
fn a_failure_inside_a_sub_workflow_is_named_outside() {
    let scene = nested("-c 'echo it is the disk >&2; exit 7'");
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("it is the disk"), "{said}");
    let explained = scene.tulpar("explain inner").done();
    assert!(explained.out.contains("tulpar explain sh_two --run outer-1/sub/inner.1"), "{explained}");
    let explained = scene.tulpar("explain sh_two --run outer-1/sub/inner.1").done();
    assert!(explained.out.contains("it is the disk"), "{explained}");
    // The cause is gone: the task that ended well inside is not run again.
    let text = scene.read("inner.yml").replace("echo it is the disk >&2; exit 7", "cat d > b");
    scene.write("inner.yml", &text);
    scene.tulpar("run").done();
    let inner = scene.tulpar("logs inner").done();
    assert!(format!("{inner}").contains("1 reused"), "{inner}");
    // A sub-workflow that cannot be read is a failure of its task, with what is wrong.
    scene.write("inner.yml", "pegasus: '5.0'\nname: inner\njobs: [{id: x, name: nothing, uses: []}]\n");
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("the transformation catalogue has no `nothing`"), "{said}");
}

#[test]
fn a_job_may_be_a_dagman_file() {
    let scene = nested("-c 'true'");
    let text = scene.read("workflow.yml");
    let text = text.replace(
        "type: pegasusWorkflow, file: inner.yml, arguments: [--output-sites local, -vvv]",
        "type: condorWorkflow, file: inner.dag",
    );
    scene.write(
        "workflow.yml",
        &text.replace(
            "{lfn: a, type: input}, {lfn: inner.yml, type: input, forPlanning: true}",
            "{lfn: inner.dag, type: input}",
        ),
    );
    scene.write("replicas.yml", "replicas: [{lfn: inner.dag, pfns: [{site: local, pfn: dags/inner.dag}]}]\n");
    scene.write("dags/inner.dag", "JOB A a.sub\nJOB B b.sub\nPARENT A CHILD B\n");
    scene.write("dags/start", "start\n");
    let description = |input: &str, output: &str| {
        format!(
            "executable = /bin/cat\ntransfer_executable = false\narguments = {input}\ntransfer_input_files = {input}\noutput = {output}\nqueue\n"
        )
    };
    scene.write("dags/a.sub", &description("start", "between"));
    scene.write("dags/b.sub", &description("between", "b"));
    scene.tulpar("check").done();
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/c"), "start\n");
}

/// Whether a process has this word on its command line.
fn runs(word: &str) -> bool {
    std::fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    })
}

#[test]
fn whatever_ends_a_run_ends_the_tasks_inside_its_sub_workflows() {
    for (signal, seconds) in [("KILL", "98761"), ("TERM", "98762")] {
        let scene = nested(&format!("-c 'sleep {seconds}; cat d > b'"));
        let running = scene.start(scene.command(&["run"]));
        wait_for("the inner task runs", || runs(seconds));
        running.signal(signal);
        wait_for("the inner task is gone", || !runs(seconds));
        running.end();
    }
}

#[test]
fn a_sub_workflow_uses_no_more_cores_than_it_was_given() {
    let scene = nested("-c '(cat d; echo two) > b'");
    let text = scene.read("workflow.yml").replace("{dagman: {RETRY: 0}}", "{dagman: {RETRY: 0}, pegasus: {cores: 1}}");
    scene.write("workflow.yml", &text);
    let text = scene.read("inner.yml").replace("{id: two,", "{id: two, profiles: {pegasus: {cores: 2}},");
    scene.write("inner.yml", &text);
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("W0") && said.err.contains("2"), "it is said before anything runs: {said}");
}

#[test]
fn jobs_change_a_file_one_after_the_other() {
    let scene = Scene::empty();
    scene.write("transformations.yml", CATALOGUE);
    scene.write("start", "0\n");
    scene.write("replicas.yml", "replicas: [{lfn: log, pfns: [{site: local, pfn: start}]}]\n");
    scene.write(
        "workflow.yml",
        "
pegasus: '5.0'
name: changed
jobs:
- {id: a, name: sh, arguments: [\"-c 'echo a >> log'\"], uses: [{lfn: log, type: inout}]}
- {id: b, name: sh, arguments: [\"-c 'echo b >> log'\"], uses: [{lfn: log, type: inout}]}
- {id: between, name: cat, arguments: [log], stdout: seen, uses: [{lfn: log, type: input}, {lfn: seen, type: output}]}
jobDependencies: [{id: a, children: [between]}, {id: between, children: [b]}]
",
    );
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/log"), "0\na\nb\n");
    assert_eq!(scene.read("results/seen"), "0\na\n");
    assert_eq!(scene.read("start"), "0\n", "the replica is the user's");
    assert!(scene.tulpar("run").done().err.contains("3 reused"));
}

#[test]
fn scripts_and_messages_decide_what_becomes_of_a_job() {
    let scene = Scene::empty();
    scene.write("transformations.yml", CATALOGUE);
    let job = |profiles: &str| {
        let text = format!(
            "
pegasus: '5.0'
name: scripts
jobs:
- {{id: a, name: sh, arguments: [\"-c 'echo all is well; ls > o; exit $CODE'\"], uses: [{{lfn: o, type: output}}],
   profiles: {{env: {{CODE: 0}}, {profiles}}}}}
"
        );
        scene.write("workflow.yml", &text);
        scene.tulpar("run")
    };
    job("dagman: {RETRY: 0, PRE: /bin/touch, PRE.ARGUMENTS: made-by-pre}").done();
    assert!(scene.read("results/o").contains("made-by-pre"));
    let said = job("dagman: {RETRY: 0, PRE: /bin/false}").expect(1);
    assert!(said.err.contains("the PRE script failed"), "{said}");
    let said = job("dagman: {RETRY: 0, POST: /bin/false}").expect(1);
    assert!(said.err.contains("the POST script failed"), "{said}");
    job("dagman: {RETRY: 0, POST: /bin/test, POST.ARGUMENTS: $RETURN = 3}, pegasus: {memory: 10}").expect(1);
    let said = job("dagman: {RETRY: 0}, pegasus: {exitcode.failuremsg: is well}").expect(1);
    assert!(said.err.contains("the job failed, because it says: is well"), "{said}");
    let said = job("dagman: {RETRY: 0}, pegasus: {exitcode.successmsg: is great}").expect(1);
    assert!(said.err.contains("the job failed, because it does not say: is great"), "{said}");
    job("dagman: {RETRY: 0}, pegasus: {exitcode.successmsg: is well}").done();
    assert_eq!(scene.tulpar("logs sh_a --only stdout").done().out, "all is well\n");
}
