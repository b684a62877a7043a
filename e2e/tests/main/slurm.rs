//! What every other test on Slurm builds upon: the cluster is there and is the one we mean.

use crate::main::harness::{Pool, until};

#[test]
fn the_cluster_has_three_nodes_and_two_generations_of_gpus() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("cluster");
    let nodes = project.run(&["sinfo", "--noheader", "--Node", "--format=%N %c %m %G %f"]).good();
    let nodes: Vec<&str> = nodes.lines().map(str::trim_end).collect();
    assert_eq!(nodes, ["n1 4 4000 (null) (null)", "n2 4 4000 gpu:v100:2 cap70", "n3 4 4000 gpu:a100:2 cap80"]);
}

#[test]
fn a_job_sees_the_folder_and_its_gpu() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("job");
    project.write("job.sh", "#!/bin/sh\nid -un\npwd\necho $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES\n");
    project.run(&["sbatch", "--wait", "--gres=gpu:a100:1", "--mem=32", "--output=out.txt", "job.sh"]).good();
    assert_eq!(project.read("out.txt"), format!("sci\n{}\nn3 0\n", project.folder.display()));
}

#[test]
fn pilots_in_jobs_of_slurm_run_many_tasks() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("pilots");
    project.write(
        "workflow.yaml",
        "workflow: many\ntasks:\n  each:\n    for: {i: 1..200}\n    out: {o: \"o-{i}.txt\"}\n    run: echo {i} > {o}\n  \
         all:\n    in: [each.o]\n    out: {list: all.txt}\n    run: xargs cat < {o.list} | sort -n > {list}\n",
    );
    project.tulpar(&["run", "--site", "slurm", "--pilots", "2"]).good();
    let expected: String = (1..=200).map(|number| format!("{number}\n")).collect();
    assert_eq!(project.read("results/all.txt"), expected);
    until("the pilots have left", || !project.run(&["squeue", "-h", "-o", "%j"]).stdout.contains("pilot"));
}

#[test]
fn a_workflow_runs_on_slurm_unchanged() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("unchanged");
    project.write(
        "workflow.yaml",
        "workflow: gpus\ntasks:\n  new: {gpus: 1, gpu_capability: 8.0, out: {o: new.txt}, run: \"echo $SLURMD_NODENAME > {o}\"}\n  \
         after: {in: [new.o], out: {p: after.txt}, run: \"cat {o} > {p}; echo done >> {p}\"}\n",
    );
    let said = project.tulpar(&["run", "--site", "slurm"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(project.read("results/after.txt").ends_with("done\n"));
}

#[test]
fn a_folder_that_slurm_writes_no_logs_into_is_refused_at_once() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("back\\slash");
    project.write("workflow.yaml", "workflow: one\ntasks:\n  one: {out: {o: o.txt}, run: \"echo > {o}\"}\n");
    let said = project.tulpar(&["run", "--site", "slurm"]);
    assert!(said.code == Some(3) && said.stderr.contains("a backslash in its name"), "{said:?}");
}

#[test]
fn what_a_task_wrote_before_slurm_queued_it_again_stays() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("again");
    project.write(
        "workflow.yaml",
        &format!(
            "workflow: again\ntasks:\n  one:\n    run: echo start; test -f {0}/go || {{ echo > {0}/there; sleep 600; }}; echo end\n",
            project.folder.display()
        ),
    );
    let running = project.start(&["run", "--site", "slurm"]);
    until("it runs", || !project.read("there").is_empty());
    project.write("go", "now");
    let jobs = project.run(&["squeue", "-h", "-o", "%A %j"]).good();
    let job = jobs.lines().find(|line| line.contains(" again-1")).unwrap_or_else(|| panic!("{jobs}"));
    let job = job.split(' ').next().unwrap();
    project.run(&["scontrol", "requeue", job]).good();
    // Slurm lets it wait for two minutes otherwise; within the same second it would refuse it with "Job credential revoked".
    until("it waits", || !project.run(&["squeue", "-h", "-t", "PD", "-j", job]).stdout.trim().is_empty());
    let now = ["scontrol", "update", &format!("JobId={job}"), "StartTime=now+3seconds"];
    until("it may start again", || project.run(&now).code == Some(0));
    running.wait().good();
    assert_eq!(project.tulpar(&["logs", "one", "--only", "stdout"]).good(), "start\nstart\nend\n");
}
