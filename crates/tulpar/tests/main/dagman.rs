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
