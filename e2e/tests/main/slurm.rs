//! What every other test on Slurm builds upon: the cluster is there and is the one we mean.

use crate::main::harness::Pool;

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
