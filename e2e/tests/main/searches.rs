//! Searches on real pools: what trials say while they run is heard here, and who is hopeless is ended there.

use crate::main::condor_runs::logged;
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

/// All but the first would never end if they were not stopped; what goes on does so behind that.
const PAUSED: &str = "workflow: paused
tasks:
  search:
    search:
      minimize: loss
      pruner: {halving: {least: 1, factor: 2, pause: true}}
      trials: 4
      parallel: 1
      sampler: grid
      space: {x: [10, 20, 30, 40]}
      start: [{x: 10}, {x: 20}, {x: 30}, {x: 40}]
    checkpoint: at.txt
    run: |
      if [ -e at.txt ]; then
        echo \"went on from $(cat at.txt)\"
      else
        echo 'saved {x}' > at.txt
        echo '{\"step\": 1, \"loss\": {x}}'
        if [ {x} -gt 10 ]; then sleep 600; fi
      fi
      echo '{\"loss\": {x}}'
  keep:
    in: [search.trials]
    out: {table: trials.csv}
    run: cp {trials} {table}
";

fn paused(project: &Project<'_>, place: &[&str]) {
    project.write("workflow.yaml", PAUSED);
    project.tulpar(&[&["run", "--site"], place].concat()).good();
    let table = project.read("results/trials.csv");
    assert_eq!(table, "trial,state,loss,x\n1,complete,10,10\n2,complete,20,20\n3,pruned,,30\n4,pruned,,40\n");
    let words = project.tulpar(&["logs", "search[trial=2]"]).good();
    assert!(words.contains("went on from saved 20"), "{words}");
}

#[test]
fn a_paused_trial_on_htcondor_goes_on_from_what_came_back() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("paused");
    paused(&project, &["condor"]);
    // Jobs that were paused have ended by themselves; a removed one would have sent nothing back.
    assert_eq!(logged(&project, "paused-1", "009"), 0);
    assert_eq!(logged(&project, "paused-1", "005"), 6);
}

#[test]
fn a_paused_trial_on_slurm_goes_on_from_its_checkpoint() {
    let Some(pool) = Pool::slurm() else { return };
    paused(&pool.project("paused"), &["slurm"]);
}
