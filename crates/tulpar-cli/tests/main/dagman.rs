//! DAGMan files run as they are, with the submit descriptions and programs beside them.

use super::harness::Scene;

const WORK: &str = "#!/bin/sh\n# work.sh TITLE OUTPUT INPUT...\ntitle=$1; output=$2; shift 2\n\
    { echo \"$title ($MODE)\"; cat \"$@\"; } > \"$output\"\n";

/// Four nodes; B and C share a description and differ in their variables, D is written inside the DAG.
fn diamond() -> Scene {
    let scene = Scene::empty();
    scene.write("bin/work.sh", WORK);
    scene.write("input/start.txt", "start\n");
    scene.write(
        "first.sub",
        "executable = bin/work.sh\narguments = \"'the first' a.txt start.txt\"\nenvironment = MODE=quick\n\
         transfer_input_files = input/start.txt\ntransfer_output_files = a.txt\nlog = dag.log\nqueue\n",
    );
    scene.write(
        "middle.sub",
        "executable = bin/work.sh\narguments = $(JOB) out.txt a.txt\nenvironment = \"MODE='$(mode)'\"\n\
         transfer_input_files = a.txt\ntransfer_output_files = out.txt\n\
         transfer_output_remaps = \"out.txt = middle/$(JOB).txt\"\nrequest_cpus = 1\nrequest_memory = 10MB\nqueue\n",
    );
    scene.write(
        "diamond.dag",
        "# a diamond\nJOB A first.sub\nJOB B middle.sub\nJOB C middle.sub\nVARS B mode=\"left side\"\nVARS C mode=\"right\"\n\
         JOB D {\n  executable = /bin/cat\n  arguments = B.txt C.txt\n  transfer_input_files = middle/B.txt, middle/C.txt\n  \
         output = result.txt\n  transfer_output_files =\n}\nPARENT A CHILD B C\nPARENT B C CHILD D\nRETRY ALL_NODES 1\n",
    );
    scene
}

const RESULT: &str = "B (left side)\nthe first (quick)\nstart\nC (right)\nthe first (quick)\nstart\n";

#[test]
fn a_diamond_runs_as_it_is() {
    let scene = diamond();
    scene.tulpar("check diamond.dag").done();
    let dry = scene.tulpar("run diamond.dag --dry-run").done();
    assert!(dry.out.contains('D'), "{dry}");
    scene.tulpar("run diamond.dag").done();
    assert_eq!(scene.read("results/result.txt"), RESULT);
    assert_eq!(scene.read("results/middle/C.txt"), "C (right)\nthe first (quick)\nstart\n");
    assert!(scene.tulpar("run diamond.dag").done().err.contains("4 reused"));
}

#[test]
fn an_imported_dag_is_the_same_workflow() {
    let scene = diamond();
    scene.tulpar("run diamond.dag").done();
    scene.tulpar("import diamond.dag -o native.yaml").done();
    scene.tulpar("check native.yaml").done();
    let said = scene.tulpar("run native.yaml").done();
    assert!(said.err.contains("4 reused"), "{said}");
    scene.write("away/keep", "");
    scene.tulpar("import diamond.dag -o away/native.yaml").done();
    scene.tulpar("check away/native.yaml").done();
}

#[test]
fn nodes_that_wait_for_each_other_are_not_imported() {
    let scene = diamond();
    scene.write("round.dag", &format!("{}PARENT D CHILD A\n", scene.read("diamond.dag")));
    for words in ["import round.dag -o native.yaml", "check round.dag"] {
        let said = scene.tulpar(words).expect(2);
        assert!(said.err.contains("W022") && said.err.contains("wait for each other"), "{said}");
    }
    assert!(!scene.path("native.yaml").exists());
    let said = scene.tulpar("lint round.dag").expect(2);
    assert!(said.err.contains("H031") && said.err.contains("wait for each other"), "{said}");
}

#[test]
fn splices_scripts_retries_and_lists_of_jobs_run_to_the_end() {
    let scene = Scene::empty();
    scene.write(
        "parts/split.sub",
        "executable = /bin/sh\narguments = \"-c 'echo part $(part) > $(part).txt'\"\n\
        transfer_output_files = $(part).txt\nqueue part in (one, two, three)\n",
    );
    scene.write("parts/parts.dag", "JOB split split.sub\n");
    scene.write("flaky.sh", "#!/bin/sh\n[ \"$1\" = 1 ] || exit 7\ncat parts.txt > joined.txt\n");
    scene.write("pre.sh", "#!/bin/sh\ncat *.txt | sort > parts.txt\n");
    scene.write("post.sh", "#!/bin/sh\n[ \"$1\" = 0 ] && grep -q three joined.txt\n");
    scene.write("join.sub", "executable = flaky.sh\narguments = $(RETRY)\n\
        transfer_input_files = parts/one.txt, parts/two.txt, parts/three.txt\ntransfer_output_files = joined.txt\nqueue\n");
    scene.write(
        "all.dag",
        "SPLICE S parts.dag DIR parts\nJOB join join.sub\nPARENT S CHILD join\nRETRY join 2\n\
        SCRIPT PRE join pre.sh\nSCRIPT POST join post.sh $RETURN\n",
    );
    scene.tulpar("run all.dag").done();
    assert_eq!(scene.read("results/joined.txt"), "part one\npart three\npart two\n");
}

#[test]
fn what_cannot_be_known_is_said_before_the_run() {
    let scene = Scene::empty();
    scene.write("a.sub", "executable = /bin/true\nrequirements = Memory > 3\nqueue\n");
    scene.write("x.dag", "JOB A a.sub\nJOB B b.sub\nPARENT A CHILD C\n");
    let said = scene.tulpar("check x.dag").expect(2);
    for words in ["D002", "there is no submit description `b.sub`", "D003", "D013", "D017", "a.sub:3"] {
        assert!(said.err.contains(words), "{words}: {said}");
    }
    let said = scene.tulpar("run x.dag -p a=1").expect(2);
    assert!(said.err.contains("a DAGMan workflow has no parameters"), "{said}");
}

#[test]
fn a_submit_description_runs_as_it_is() {
    let scene = Scene::empty();
    scene.write("train.sh", "#!/bin/sh\necho \"$1 $FOO\" > model.txt\nexit 4\n");
    scene.write("sweep.txt", "a, 0.1\nb, 0.01\nc, 1\n");
    scene.write(
        "train.sub",
        "executable = train.sh\narguments = $(lr)\nenvironment = \"FOO='x y'\"\nshould_transfer_files = YES\n\
         transfer_output_files = model.txt\ntransfer_output_remaps = \"model.txt=models/$(name).txt\"\n\
         success_exit_code = 4\nrequest_cpus = 1\nlog = train.log\nqueue name, lr from [0:2] sweep.txt\n",
    );
    scene.tulpar("run train.sub").done();
    assert_eq!(scene.read("results/models/a.txt"), "0.1 x y\n");
    assert_eq!(scene.read("results/models/b.txt"), "0.01 x y\n");
    assert!(!scene.path("results/models/c.txt").exists());
}

#[test]
fn lint_says_what_is_wrong_with_a_description_and_where() {
    let scene = Scene::empty();
    scene.write("run.sh", "#!/bin/sh\n");
    scene.write("job.sub", "executable = run.sh\nrequests_cpus = 1\nrequest_memory = 1GB\nrequest_disk = 1GB\nqueue\n");
    let said = scene.tulpar("lint job.sub").expect(2);
    assert!(
        said.err.contains("error[H001]: HTCondor does not know the command `requests_cpus`, and ignores it"),
        "{said}"
    );
    assert!(said.err.contains("did you mean `request_cpus`?") && said.err.contains("job.sub:2:1"), "{said}");
    let said = scene.tulpar("lint job.sub --json").expect(2);
    let found: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((&found[0]["code"], &found[0]["line"]), (&"H001".into(), &2.into()));
    scene.write("job.sub", "executable = run.sh\nrequest_cpus = 1\nrequest_memory = 1GB\nrequest_disk = 1GB\nqueue\n");
    scene.write("all.dag", "JOB A job.sub\n");
    assert_eq!(scene.tulpar("lint job.sub").done().out, "1 file: good; 0 warnings\n");
    scene.tulpar("lint none.sub").expect(2);
}

/// The published cats and dogs: the program makes the folder that is to come back.
#[test]
fn a_folder_comes_back_under_the_name_that_was_declared_for_it() {
    let scene = Scene::empty();
    scene.write("train.sh", "#!/bin/sh\nmkdir output && echo trained > output/model.pth && echo 1 > output/log.txt\n");
    let sub = "executable = train.sh\ntransfer_output_files = output\nshould_transfer_files = YES\nqueue\n";
    scene.write("train.sub", sub);
    scene.tulpar("run train.sub").done();
    assert_eq!(scene.read("results/output/model.pth"), "trained\n");
    assert_eq!(scene.read("results/output/log.txt"), "1\n");
    assert!(scene.tulpar("run train.sub").done().err.contains("1 reused"));
    scene.write("sweep.sub", "executable = /bin/echo\noutput = $(ProcId).txt\ntransfer_output_files =\nqueue arguments from (\n one two\n three\n)\n");
    scene.tulpar("run sweep.sub").done();
    assert_eq!([scene.read("results/0.txt"), scene.read("results/1.txt")], ["one two\n", "three\n"]);
}
