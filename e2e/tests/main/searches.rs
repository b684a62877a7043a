//! Searches on real pools: what trials say while they run is heard here, and who is hopeless is ended there.

use crate::main::harness::{Pool, Project};

/// The second and the third would not end by themselves.
const HOPELESS: &str = "workflow: hopeless
tasks:
  search:
    search:
      minimize: loss
      sampler: grid
      pruner: {halving: {least: 1, factor: 2}}
      trials: 3
      parallel: 1
      space: {x: [1, 2, 3]}
      start: [{x: 1}, {x: 2}, {x: 3}]
    run: |
      echo '{\"step\": 1, \"loss\": {x}}'
      if [ {x} -gt 1 ]; then sleep 600; fi
      echo '{\"loss\": {x}}'
  keep:
    in: [search.trials]
    out: {table: trials.csv}
    run: cp {trials} {table}
";

fn searched(project: &Project<'_>, place: &[&str]) {
    project.write("workflow.yaml", HOPELESS);
    project.tulpar(&[&["run", "--site"], place].concat()).good();
    let table = project.read("results/trials.csv");
    assert_eq!(table, "trial,state,loss,x\n1,complete,1,1\n2,pruned,,2\n3,pruned,,3\n");
    let story = project.tulpar(&["story", "search[trial=2]"]).good();
    assert!(story.contains("says 2 at step 1") && story.contains("pruned"), "{story}");
}

#[test]
fn hopeless_trials_on_htcondor_are_ended() {
    let Some(pool) = Pool::condor() else { return };
    searched(&pool.project("searched"), &["condor"]);
}

#[test]
fn hopeless_trials_on_slurm_are_ended() {
    let Some(pool) = Pool::slurm() else { return };
    searched(&pool.project("searched"), &["slurm"]);
}

#[test]
fn hopeless_trials_of_pilots_are_ended() {
    let Some(pool) = Pool::slurm() else { return };
    searched(&pool.project("searched-by-pilots"), &["slurm", "--pilots", "1"]);
}
