//! What every other test on HTCondor builds upon: the pool is there and is the one we mean.

use crate::main::harness::{Pool, until};

#[test]
fn the_pool_has_three_nodes_and_two_generations_of_gpus() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("pool");
    let asked = "-constraint PartitionableSlot -sort Machine -af Machine TotalGPUs GPUs_Capability GPUs_GlobalMemoryMb";
    let words: Vec<&str> = ["condor_status"].into_iter().chain(asked.split(' ')).collect();
    let slots = project.run(&words).good();
    let nodes: Vec<&str> = slots.lines().collect();
    assert_eq!(
        nodes,
        ["n1.condor.test 0 undefined undefined", "n2.condor.test 2 7.0 16160", "n3.condor.test 2 8.0 40536"]
    );
}

#[test]
fn a_job_runs_as_somebody_else_without_a_shared_file_system() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("job");
    let script = "#!/bin/sh\nid -un\ncat note.txt\necho $_CONDOR_SCRATCH_DIR\n";
    project.write("job.sh", script);
    project.write("note.txt", "read me\n");
    project.write(
        "job.sub",
        "executable = job.sh\ntransfer_input_files = note.txt\noutput = out.txt\nlog = log\n\
         should_transfer_files = YES\nrequest_memory = 32\nrequest_disk = 1M\nqueue\n",
    );
    project.submit("job.sub");
    project.run(&["condor_wait", "-wait", "120", "log"]).good();
    let out = project.read("out.txt");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..2], ["nobody", "read me"]);
    assert!(lines[2].starts_with("/var/lib/condor/execute/n"), "{out}");
}

#[test]
fn only_the_pools_own_root_may_stop_it() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("security");
    let said = project.run(&["condor_off", "-fast", "-master"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(project.run(&["condor_q"]).code == Some(0));
}

#[test]
fn tulpar_runs_on_the_submit_host_and_can_be_stopped_there() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("tulpar");
    project.write("workflow.yaml", "workflow: waits\ntasks:\n  wait:\n    run: sleep 600\n");
    assert!(project.tulpar(&["--version"]).good().starts_with("tulpar "));
    let running = project.start(&["run", "workflow.yaml"]);
    until("the task runs", || project.read(".tulpar/runs/waits-1/journal.jsonl").contains("\"started\""));
    running.signal("TERM");
    assert_eq!(running.wait().code, Some(130));
}
