//! Programs that save their state and leave with code 85, on real pools: HTCondor starts them again in place, through its
//! own protocol for checkpoints; elsewhere another attempt goes on from what they saved.

use crate::main::condor_runs::logged;
use crate::main::condor_ways::KILL_STARTER;
use crate::main::harness::{Pool, Project, until};

/// Four steps a start. Its state depends on every step before it: a lost or repeated step gives another end.
const STEPS: &str = "#!/bin/sh
[ -f model.ckpt ] || echo '0 1' > model.ckpt
read step value < model.ckpt
echo \"from $step\"
if [ $step = 8 ] && [ -n \"$1\" ] && [ ! -f \"$1.go\" ]; then
  : > \"$1.there\"
  exec $2
fi
for i in 1 2 3 4; do step=$((step+1)); value=$(( (value*31+step) % 1000003 )); done
echo \"$step $value\" > model.new && mv model.new model.ckpt
[ $step -ge 12 ] || exit 85
cp model.ckpt model.bin
";

/// `words` go to the program.
fn steps(project: &Project<'_>, words: &str) {
    project.write("steps.sh", STEPS);
    project.write(
        "workflow.yaml",
        &format!(
            "workflow: saving\ndata: {{program: steps.sh}}\ntasks:\n  train:\n    in: [program]\n    out: {{model: model.bin}}\n    \
             checkpoint: model.ckpt\n    run: sh {{program}} {words}\n"
        ),
    );
}

fn came_to_its_end(project: &Project<'_>) {
    let value = (1..=12u64).fold(1, |value, step| (value * 31 + step) % 1_000_003);
    assert_eq!(project.read("results/model.bin"), format!("12 {value}\n"));
}

fn endings(project: &Project<'_>) -> Vec<String> {
    let said = project.tulpar(&["explain", "train", "--json"]).good();
    let view: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    view["attempts"].as_array().unwrap().iter().map(|attempt| attempt["ending"].to_string()).collect()
}

/// Microseconds that the first attempt ran, and bytes that it read.
fn used(project: &Project<'_>) -> [u64; 2] {
    let said = project.tulpar(&["explain", "train", "--json"]).good();
    let view: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    ["wall_us", "read_bytes"].map(|figure| view["attempts"][0]["usage"][figure].as_u64().unwrap())
}

/// The same by the records of its pieces.
fn recorded(project: &Project<'_>, pieces: usize) -> [u64; 2] {
    let text = project.read(".tulpar/runs/saving-1/records.jsonl");
    let records: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), pieces, "{text}");
    let sum = |figure: &str| records.iter().map(|record| record["usage"][figure].as_u64().unwrap()).sum();
    ["wall_us", "read_bytes"].map(sum)
}

/// What the history of HTCondor has of the job.
fn remembered(project: &Project<'_>, attribute: &str) -> String {
    let mine = format!("TulparRun == \"{}\"", project.folder.join(".tulpar/runs/saving-1").display());
    let mut told = String::new();
    until("the history has it", || {
        told = project.run(&["condor_history", "-constraint", &mine, "-af", attribute]).good();
        !told.trim().is_empty()
    });
    told.trim().to_owned()
}

/// Transfers from the node: one for every checkpoint, and one at the end.
fn transfers(project: &Project<'_>) -> usize {
    project.read(".tulpar/runs/saving-1/queue/events.log").matches("Started transferring output files").count()
}

#[test]
fn a_program_that_leaves_with_85_is_started_again_in_place_by_htcondor() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("in-place");
    steps(&project, "");
    project.tulpar(&["run", "--site", "condor"]).good();
    came_to_its_end(&project);
    assert_eq!(endings(&project), [r#"{"exit":0}"#], "it is one attempt");
    assert_eq!(used(&project), recorded(&project, 3), "which used what its three pieces used");
    let [submitted, executed, evicted, ended] =
        ["000", "001", "004", "005"].map(|kind| logged(&project, "saving-1", kind));
    assert_eq!([submitted, executed, evicted, ended], [1, 1, 0, 1], "and one job, which never left its place");
    assert_eq!(transfers(&project), 3, "HTCondor has taken two checkpoints, and the results");
    assert_eq!(remembered(&project, "SuccessCheckpointExitCode"), "85");
    assert_eq!(remembered(&project, "CheckpointNumber"), "1", "it counts them from nought");
    assert_eq!(remembered(&project, "NumJobStarts"), "1");
    assert_eq!(project.tulpar(&["logs", "train", "--only", "stdout"]).good(), "from 0\nfrom 4\nfrom 8\n");
}

/// Runs until the program has left two checkpoints, and is taken off its place by `evict`, which gets the words of
/// the process there. Tests that run at the same time give other numbers.
fn disturbed(pool: &Pool, project: &Project<'_>, number: u32, evict: impl Fn(&str)) {
    let place = format!("/srv/osdf/{}", project.folder.file_name().unwrap().to_string_lossy());
    // No other process has these words.
    let words = format!("sleep {}.{number}", 100_000 + std::process::id());
    steps(project, &format!("{place} '{words}'"));
    let running = project.start(&["run", "--site", "condor"]);
    until("it has begun the third time", || pool.root(&["test", "-e", &format!("{place}.there")]).code == Some(0));
    assert_eq!(transfers(project), 2, "two checkpoints have come here");
    project.run(&["touch", &format!("{place}.go")]).good();
    until("its process is there", || pool.root(&["pgrep", "-x", "-f", &words]).code == Some(0));
    evict(&words);
    running.wait().good();
    came_to_its_end(project);
    assert_eq!(logged(project, "saving-1", "005"), 1, "it is one job all the time");
    assert_eq!(endings(project), [r#"{"exit":0}"#]);
}

#[test]
fn a_job_that_is_evicted_after_85_goes_on_from_there() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("evicted-85");
    let mine = format!("TulparRun == \"{}\"", project.folder.join(".tulpar/runs/saving-1").display());
    disturbed(&pool, &project, 1, |_| drop(project.run(&["condor_vacate_job", "-constraint", &mine]).good()));
    assert_eq!(logged(&project, "saving-1", "004"), 1);
    let said = project.tulpar(&["logs", "train", "--only", "stdout"]).good();
    assert_eq!(said, "from 0\nfrom 4\nfrom 8\nfrom 8\n");
}

#[test]
fn a_job_whose_node_dies_after_85_goes_on_from_what_was_taken_then() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("died-85");
    disturbed(&pool, &project, 2, |words| drop(pool.root(&["sh", "-c", KILL_STARTER, words])));
    assert_eq!([logged(&project, "saving-1", "024"), transfers(&project)], [1, 3], "and nothing was sent when it died");
    let said = project.tulpar(&["logs", "train", "--only", "stdout"]).good();
    assert_eq!(said, "from 0\nfrom 4\nfrom 8\n", "what it had said since died with the node");
}

#[test]
fn in_pilots_another_attempt_goes_on_after_85() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("piloted-85");
    steps(&project, "");
    project.tulpar(&["run", "--site", "condor", "--pilots", "1"]).good();
    came_to_its_end(&project);
    assert_eq!(endings(&project), [r#""checkpointed""#, r#""checkpointed""#, r#"{"exit":0}"#]);
    assert_eq!(project.tulpar(&["logs", "train", "--only", "stdout"]).good(), "from 8\n");
}

#[test]
fn on_slurm_another_job_goes_on_after_85() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("slurm-85");
    steps(&project, "");
    project.tulpar(&["run", "--site", "slurm"]).good();
    came_to_its_end(&project);
    assert_eq!(endings(&project), [r#""checkpointed""#, r#""checkpointed""#, r#"{"exit":0}"#]);
    assert_eq!(project.tulpar(&["logs", "train", "--only", "stdout"]).good(), "from 8\n");
}

/// Told to stop, it dies of it: what it saves it saves as it goes.
const TRAINING: &str = "workflow: training
tasks:
  train:
    checkpoint: model.ckpt
    out: {model: model.bin}
    run: |
      [ -f model.ckpt ] || echo 0 1 > model.ckpt
      read step value < model.ckpt
      while [ $step -lt 20 ]; do
        step=$((step+1)); value=$(( (value*31+step) % 1000003 )); sleep 0.2
        echo $step $value > model.new && mv model.new model.ckpt
      done
      cp model.ckpt {model}
";

#[test]
fn a_training_that_is_evicted_on_slurm_ends_with_the_same_model() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("slurm-drill");
    project.write("workflow.yaml", TRAINING);
    let words = ["drill", "train", "--site", "slurm", "--times", "2", "--after", "1s", "--json"];
    let said = project.tulpar(&words).good();
    let found: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!((&found["evictions"], &found["equal"]), (&2.into(), &true.into()), "{said}");
    assert_eq!(found["checkpointed"], true, "{said}");
    let value = (1..=20u64).fold(1, |value, step| (value * 31 + step) % 1_000_003);
    assert_eq!(project.read("results/model.bin"), format!("20 {value}\n"));
}

#[test]
fn a_job_saves_its_state_before_the_site_ends_it() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("class-ends");
    // One step a second, saved only when somebody asks for it: what HTCondor holds begins at the last step that it has.
    project.write(
        "steps.sh",
        "step=0; [ -f model.ckpt ] && read step < model.ckpt\necho \"from $step\"\n\
         trap 'echo $step > model.new; mv model.new model.ckpt; exit 85' TERM\n\
         while [ $step -lt 25 ]; do sleep 1 & wait $!; step=$((step+1)); done\necho $step > model.bin\n",
    );
    project.write(
        "workflow.yaml",
        "workflow: saving\ndata: {program: steps.sh}\ntasks:\n  train:\n    in: [program]\n    out: {model: model.bin}\n    \
         checkpoint: model.ckpt\n    grace: 2 s\n    run: exec sh {program}\n",
    );
    project.write(
        "catalogue.yaml",
        "sites:\n  condor:\n    kind: htcondor\n    classes:\n      - {name: short, up_to: 20 s, usual: true, submit: {allowed_execute_duration: 20}}\n",
    );
    project.tulpar(&["run", "--site", "condor"]).good();
    assert_eq!(project.read("results/model.bin"), "25\n");
    let kinds = ["000", "012", "005"].map(|kind| logged(&project, "saving-1", kind));
    assert_eq!(kinds, [1, 0, 1], "one job that was never held");
    assert!(transfers(&project) >= 2, "before its class ended, and at its end");
    assert_eq!(endings(&project), ["{\"exit\":0}"]);
}
