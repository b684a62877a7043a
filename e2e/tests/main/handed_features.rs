//! Exported workflows that save their state, run in an image or on several nodes at once: a real DAGMan and a real Slurm run
//! them without Tulpar.

use crate::main::condor_images::boxed;
use crate::main::harness::{Pool, Project, until};

/// Two steps a start, after which it leaves with 85; told to stop, it waits for another start.
const SAVING: &str = "workflow: saving
tasks:
  train:
    checkpoint: CHECKPOINT
    out: {model: model.txt}
    run: |
      n=0; [ ! -f state/n ] || read n < state/n
      echo \"from $n\"
      mkdir -p state
      trap 'echo $n > state/n; echo stopped; exit 85' TERM
      if [ $n = 4 ] && [ -n \"$PLACE\" ] && [ ! -f $PLACE/go ]; then
        : > $PLACE/there
        while true; do sleep 0.1 || true; done
      fi
      n=$((n+2)); echo $n > state/n
      [ $n -ge 8 ] || exit 85
      cp state/n {model}
";

/// Runs the exported DAG to its end.
fn dagman(project: &Project<'_>) {
    // The pool of a test may lie where DAGMan does not like to work.
    let start = "cd out && _CONDOR_DAGMAN_USE_STRICT=0 condor_submit_dag workflow.dag && \
                 condor_wait -wait 150 workflow.dag.dagman.log";
    project.run(&["sh", "-c", start]).good();
    let metrics = project.read("out/workflow.dag.metrics");
    assert!(metrics.contains("\"DagStatus\":0"), "{metrics}\n{}", project.read("out/workflow.dag.dagman.out"));
}

/// How often each kind of entry stands in the log of the DAG's jobs.
fn logged(project: &Project<'_>, kind: &str) -> usize {
    let log = project.read("out/workflow.dag.nodes.log");
    log.lines().filter(|line| line.starts_with(&format!("{kind} ("))).count()
}

#[test]
fn a_job_of_a_dag_goes_on_in_place_after_85() {
    let Some(pool) = Pool::condor() else { return };
    // Files by name travel as they are, those of a pattern as an archive.
    for (checkpoint, name) in [("state/n", "named"), ("'state/*'", "pattern")] {
        let project = pool.project(&format!("dag-85-{name}"));
        project.write("workflow.yaml", &SAVING.replace("CHECKPOINT", checkpoint));
        project.tulpar(&["export", "dagman", "--to", "out"]).good();
        dagman(&project);
        assert_eq!(project.read("out/files/model.txt"), "8\n");
        assert_eq!(project.read("out/logs/train.out"), "from 0\nfrom 2\nfrom 4\nfrom 6\n");
        assert_eq!(["001", "004", "005"].map(|kind| logged(&project, kind)), [1, 0, 1], "{name}: one job in one place");
    }
}

#[test]
fn a_job_of_a_dag_runs_in_an_image_that_is_a_file() {
    let Some(pool) = Pool::condor() else { return };
    let Some(project) = boxed(&pool, "dag-image") else { return };
    project.write("workflow.yaml", IMAGES);
    project.tulpar(&["export", "dagman", "--to", "out"]).good();
    dagman(&project);
    assert_eq!(project.read("out/files/all.txt"), "1 boxed\n2 boxed\n");
}

/// What is only in the image, and files from one job in an image to the next.
const IMAGES: &str = "workflow: boxed
tasks:
  look:
    for: {i: 1..2}
    container: tiny.sif
    out: {o: \"o-{i}.txt\"}
    run: read kind < /etc/kind; echo {i} $kind > {o}
  all:
    in: [look.o]
    container: tiny.sif
    out: {list: all.txt}
    run: for file in {o}; do read line < $file; echo $line; done > {list}
";

/// Submits what was exported; gives the numbers of the jobs.
fn submit(project: &Project<'_>) -> Vec<String> {
    let said = project.run(&["out/submit.sh"]).good();
    said.lines().filter_map(|line| Some(line.split_once(':')?.1.to_owned())).collect()
}

fn ended(project: &Project<'_>, ids: &[String]) {
    let asked = format!("--jobs={}", ids.join(","));
    until("the jobs have ended", || project.run(&["squeue", "--noheader", &asked]).stdout.trim().is_empty());
}

#[test]
fn a_task_on_two_nodes_is_started_on_both_by_slurm_alone() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("gang");
    project.write(
        "workflow.yaml",
        "workflow: gang\ntasks:\n  meet:\n    nodes: 2\n    out: {o: \"met/*.txt\"}\n    \
         run: echo $TULPAR_NODE of $TULPAR_NODES from $TULPAR_FIRST_NODE on $SLURMD_NODENAME > met/$TULPAR_NODE.txt\n  \
         all: {in: [meet.o], out: {list: all.txt}, run: \"cat {o} > {list}\"}\n",
    );
    project.tulpar(&["export", "slurm", "--to", "out"]).good();
    let ids = submit(&project);
    ended(&project, &ids);
    let told = project.read("out/files/all.txt");
    let lines: Vec<Vec<&str>> = told.lines().map(|line| line.split(' ').collect()).collect();
    let [first, second] = &lines[..] else { panic!("{told:?} {}", project.read("out/logs/meet.out")) };
    assert_eq!([first[..3].join(" "), second[..3].join(" ")], ["0 of 2", "1 of 2"]);
    assert_eq!([first[4], second[4]], [first[6], first[6]], "both know the first: {told}");
    assert_ne!(first[6], second[6], "they are two nodes: {told}");
}

#[test]
fn a_job_that_slurm_warns_saves_its_state_and_is_requeued_and_goes_on() {
    let Some(pool) = Pool::slurm() else { return };
    let project = pool.project("requeued");
    let place = project.folder.display().to_string();
    project.write(
        "workflow.yaml",
        &SAVING
            .replace("CHECKPOINT", "state/n")
            .replace("    out:", &format!("    env: {{PLACE: \"{place}\"}}\n    out:")),
    );
    project.tulpar(&["export", "slurm", "--to", "out"]).good();
    let ids = submit(&project);
    let [job] = &ids[..] else { panic!("{ids:?}") };
    until("it works for the third time", || project.folder.join("there").exists());
    project.write("go", "");
    // What Slurm does of itself before the time limit.
    project.run(&["scancel", "--batch", "--signal=TERM", job]).good();
    let told = |what: &str| project.run(&["squeue", "--noheader", "--states=all", "--jobs", job, "-o", what]).stdout;
    until("it is in the queue again", || told("%T").trim() == "PENDING");
    // Slurm itself waits two minutes; at once it would still refuse what it has just ended.
    project.run(&["scontrol", "update", &format!("JobId={job}"), "StartTime=now+3seconds"]).good();
    ended(&project, &ids);
    assert_eq!(project.read("out/files/model.txt"), "8\n", "{}", project.read("out/logs/train.out"));
    let said = project.read("out/logs/train.out");
    let steps: Vec<&str> = said.lines().filter(|line| line.starts_with("from") || *line == "stopped").collect();
    assert_eq!(steps, ["from 0", "from 2", "from 4", "stopped", "from 4", "from 6"]);
}

#[test]
fn a_job_exported_for_slurm_runs_in_an_image() {
    let Some(pool) = Pool::slurm() else { return };
    let Some(project) = boxed(&pool, "slurm-image") else { return };
    project.write("workflow.yaml", IMAGES);
    project.tulpar(&["export", "slurm", "--to", "out"]).good();
    let ids = submit(&project);
    ended(&project, &ids);
    assert_eq!(project.read("out/files/all.txt"), "1 boxed\n2 boxed\n");
}
