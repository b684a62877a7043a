//! Whole workflows on a real HTCondor pool: what a user types, and what must come of it. What must come of it on Slurm too is
//! in `every_pool`.

use crate::main::dry_run::{ads, string};
use crate::main::harness::{Pool, Project, Running, campaign, until};

pub(crate) const DIAMOND: &str = "workflow: diamond
data: {words: words.txt}
tasks:
  top:
    in: [words]
    out: {upper: upper.txt}
    run: tr a-z A-Z < {words} > {upper}
  left:
    in: [top.upper]
    out: {l: l.txt}
    run: head -1 {upper} > {l}
  right:
    in: [top.upper]
    out: {r: \"r/*.txt\"}
    run: mkdir -p r; tail -1 {upper} > r/a.txt; echo more > r/b.txt
  bottom:
    in: [left.l, right.r]
    out: {all: all.txt}
    run: cat {l} {r} > {all}
";

pub(crate) fn scatter(tasks: u32) -> String {
    format!(
        "workflow: scatter\nparams: {{n: {tasks}}}\ntasks:\n  each:\n    for: {{i: 1..n}}\n    out: {{o: \"o-{{i}}.txt\"}}\n    \
         run: echo {{i}} > {{o}}\n  all:\n    in: [each.o]\n    out: {{list: all.txt}}\n    \
         run: xargs cat < {{o.list}} | sort -n > {{list}}\n"
    )
}

pub(crate) fn numbers(count: u32) -> String {
    (1..=count).map(|number| format!("{number}\n")).collect()
}

/// How often each kind of entry stands in the event log of a run.
pub(crate) fn logged(project: &Project<'_>, run: &str, kind: &str) -> usize {
    let log = project.read(&format!(".tulpar/runs/{run}/queue/events.log"));
    log.lines().filter(|line| line.starts_with(&format!("{kind} ("))).count()
}

#[test]
fn a_scatter_is_one_cluster_and_comes_back_whole() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("scatter");
    let tasks = if campaign() > 1 { 1000 } else { 100 };
    project.write("workflow.yaml", &scatter(tasks));
    project.tulpar(&["run", "--site", "condor"]).good();
    assert_eq!(project.read("results/all.txt"), numbers(tasks));
    assert_eq!(logged(&project, "scatter-1", "005"), tasks as usize + 1);
    let batches = std::fs::read_dir(project.folder.join(".tulpar/runs/scatter-1/queue")).unwrap();
    let submitted = batches.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "sub"));
    assert_eq!(submitted.count(), 2, "one submission a batch, not one a job");
}

#[test]
fn gpu_tasks_land_on_the_generation_that_they_ask_for() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("gpus");
    project.write(
        "workflow.yaml",
        "workflow: gpus\ntasks:\n  \
         new: {gpus: 1, gpu_capability: 8.0, out: {o: new.txt}, run: \"pwd > {o}; echo $CUDA_VISIBLE_DEVICES >> {o}\"}\n  \
         large: {gpus: 2, gpu_memory: 20 GB, out: {o: large.txt}, run: \"pwd > {o}; echo $CUDA_VISIBLE_DEVICES >> {o}\"}\n  \
         none: {out: {o: none.txt}, run: \"echo =$CUDA_VISIBLE_DEVICES= > {o}\"}\n",
    );
    project.tulpar(&["run", "--site", "condor"]).good();
    let (new, large) = (project.read("results/new.txt"), project.read("results/large.txt"));
    assert!(new.contains("/execute/n3/") && new.lines().nth(1).unwrap().starts_with("GPU-"), "{new}");
    let devices: Vec<&str> = large.lines().nth(1).unwrap().split(',').collect();
    assert!(large.contains("/execute/n3/") && devices.len() == 2 && devices[0] != devices[1], "{large}");
    assert_eq!(project.read("results/none.txt"), "==\n");
}

#[test]
fn programs_that_understand_only_numbers_get_numbers_of_gpus() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("numbers");
    project.write("nvidia-smi", include_str!("../../parts/condor/nvidia-smi"));
    // Where it is on nodes that have GPUs.
    let stand_in = project.folder.join("nvidia-smi").display().to_string();
    pool.root(&["install", "-m", "755", &stand_in, "/usr/bin/nvidia-smi"]).good();
    project.write(
        "workflow.yaml",
        "workflow: numbers\ntasks:\n  \
         names: {gpus: 2, gpu_capability: 8.0, out: {o: names.txt}, run: \"echo $CUDA_VISIBLE_DEVICES > {o}\"}\n  \
         numbers: {gpus: 2, gpu_capability: 8.0, env: {TULPAR_GPU_NAMES: index}, out: {o: numbers.txt}, run: \"echo $CUDA_VISIBLE_DEVICES > {o}\"}\n",
    );
    let said = project.tulpar(&["run", "--site", "condor"]);
    pool.root(&["rm", "/usr/bin/nvidia-smi"]).good();
    said.good();
    let devices = |name: &str| {
        let text = project.read(name);
        let mut devices: Vec<String> = text.trim().split(',').map(str::to_owned).collect();
        devices.sort();
        devices
    };
    // HTCondor 23 shortens them, HTCondor 25 does not.
    let names = devices("results/names.txt");
    assert!(names[0].starts_with("GPU-366935eb") && names[1].starts_with("GPU-b8c161fd"), "{names:?}");
    assert_eq!(devices("results/numbers.txt"), ["0", "1"]);
}

/// Its state depends on every step before it: a lost or repeated step gives another end.
const TRAINING: &str = "#!/bin/sh
[ -f model.ckpt ] || echo '0 1' > model.ckpt
read step value < model.ckpt
while [ $step -lt 40 ]; do
  step=$((step+1)); value=$(( (value*31+step) % 1000003 ))
  sleep 0.25
  echo \"$step $value\" > model.new && mv model.new model.ckpt
done
cp model.ckpt model.bin
";

const TRAIN: &str = "workflow: training
data: {program: train.sh}
tasks:
  train:
    in: [program]
    out: {model: model.bin}
    checkpoint: model.ckpt
    run: sh {program}
";

fn trained() -> String {
    let value = (1..=40u64).fold(1, |value, step| (value * 31 + step) % 1_000_003);
    format!("40 {value}\n")
}

#[test]
fn a_training_evicted_five_times_ends_with_the_same_model() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("evicted");
    project.write("workflow.yaml", TRAIN);
    project.write("train.sh", TRAINING);
    let said =
        project.tulpar(&["drill", "train", "--site", "condor", "--times", "5", "--after", "1.2s", "--json"]).good();
    let found: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&found["evictions"], &found["equal"]), (&5.into(), &true.into()), "{said}");
    assert_eq!(found["checkpointed"], true, "{said}");
    assert_eq!(project.read("results/model.bin"), trained());
    assert_eq!(logged(&project, "training-2", "004"), 5, "HTCondor itself has evicted it");
    assert_eq!(logged(&project, "training-2", "005"), 1, "and it is one job all the time");
}

#[test]
fn a_long_training_is_cut_into_short_jobs() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("cut");
    project
        .write("workflow.yaml", &TRAIN.replace("checkpoint: model.ckpt", "checkpoint: {files: model.ckpt, every: 4s}"));
    project.write("train.sh", TRAINING);
    project.tulpar(&["run", "--site", "condor"]).good();
    assert_eq!(project.read("results/model.bin"), trained());
    let jobs = logged(&project, "training-1", "005");
    assert!((3..=6).contains(&jobs), "ten seconds in parts of four: {jobs}");
}

#[test]
fn held_is_shown_as_held_with_the_reason_and_goes_on_when_released() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("held");
    project.write(
        "workflow.yaml",
        "workflow: holds\ntasks:\n  one: {out: {o: o.txt}, run: \"sleep 3; echo done > {o}\"}\n",
    );
    let running = project.start(&["run", "--site", "condor"]);
    let mine = format!("TulparRun == \"{}\"", project.folder.join(".tulpar/runs/holds-1").display());
    until("it is in the queue", || {
        !project.run(&["condor_q", "-constraint", &mine, "-af", "ClusterId"]).stdout.trim().is_empty()
    });
    project.run(&["condor_hold", "-reason", "the moon is full", "-constraint", &mine]).good();
    until("status says held", || project.tulpar(&["status"]).stdout.contains("held"));
    let why = project.tulpar(&["explain", "one"]).good();
    assert!(why.contains("the moon is full") && why.contains("condor_release"), "{why}");
    project.run(&["condor_release", "-constraint", &mine]).good();
    let said = running.wait();
    assert_eq!(said.code, Some(0), "{said:?}");
    for words in ["queued   one\n", "held     one: ", "the moon is full", "queued   one again\n"] {
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
    assert_eq!(project.read("results/o.txt"), "done\n");
}

#[test]
fn what_nothing_in_the_pool_can_ever_match_is_said_before_submitting() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("never");
    project.write(
        "workflow.yaml",
        "workflow: never\ntasks:\n  \
         new: {gpus: 1, gpu_capability: 9.0, out: {o: a}, run: \"echo > {o}\"}\n  \
         fat: {memory: 100 GB, out: {o: b}, run: \"echo > {o}\"}\n",
    );
    let said = project.tulpar(&["run", "--site", "condor"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    for words in
        ["`new` asks for GPUs of capability 9.0", "with `gpu_capability: 8.0`", "100 GB of memory", "workflow.yaml:3"]
    {
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
    assert!(!project.folder.join(".tulpar/runs").exists(), "nothing was begun");
}

/// The folder `scratch`, for whoever has the token.
pub(crate) fn served<'a>(project: &'a Project<'_>, address: &str) -> Running<'a> {
    project.write("token", "let-me-in\n");
    project.write("scratch/keep", "");
    project.write("config/tulpar/secrets/TULPAR_STAGING_TOKEN", "let-me-in\n");
    project.start(&["share", "scratch", "--address", address, "--token-file", "token"])
}

/// The same for jobs of one node, which has a place where they leave what they have fetched for the next: a disk of its own,
/// since nothing is kept where the disk is nearly full, which that of whoever tests may be.
pub(crate) fn served_to_a_node_that_keeps<'a>(pool: &Pool, project: &'a Project<'_>, address: &str) -> Running<'a> {
    let cache = format!("/srv/kept-{}", project.folder.file_name().unwrap().to_string_lossy());
    pool.root(&["mkdir", &cache]).good();
    pool.root(&["mount", "-t", "tmpfs", "-o", "mode=1777,size=64m", "tmpfs", &cache]).good();
    project.write(
        "catalogue.yaml",
        &format!(
            "sites:\n  head:\n    scratch: {{path: scratch, servers: [\"http://{address}\"]}}\n  \
             pool:\n    kind: htcondor\n    data: nonsharedfs\n    staging: head\n    submit:\n      \
             requirements: 'TARGET.NodeLabel == \"n1\"'\n      environment: '\"TULPAR_NODE_CACHE={cache}\"'\n"
        ),
    );
    served(project, address)
}

#[test]
fn jobs_pull_from_a_staging_server_and_push_to_it() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("staged");
    project.write("workflow.yaml", DIAMOND);
    project.write("words.txt", "hello\nworld\n");
    project.write(
        "catalogue.yaml",
        "sites:\n  head:\n    scratch: {path: scratch, servers: [\"http://127.0.0.1:18431\"]}\n  \
         pool: {kind: htcondor, data: nonsharedfs, staging: head}\n",
    );
    let server = served(&project, "127.0.0.1:18431");
    project.tulpar(&["run", "--site", "pool"]).good();
    assert_eq!(project.read("results/all.txt"), "HELLO\nWORLD\nmore\n");
    let parcels = project.run(&["sh", "-c", "cat .tulpar/runs/diamond-1/queue/*.items"]).good();
    assert!(!parcels.contains("/objects/"), "HTCondor was told to move a file: {parcels}");
    server.signal("TERM");
    server.wait();
}

#[test]
fn pilots_in_jobs_of_the_pool_run_many_tasks() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("pilots");
    project.write("workflow.yaml", &scatter(200));
    project.tulpar(&["run", "--site", "condor", "--pilots", "2"]).good();
    assert_eq!(project.read("results/all.txt"), numbers(200));
    let pilots = ads(&project, ".tulpar/runs/scatter-1/pilots/condor/pilots-0001.sub");
    let told: Vec<_> = pilots.iter().map(|ad| (string(ad, "TulparPilot"), ad["RequestCpus"].as_str())).collect();
    assert_eq!(told, [("pilot-1".to_owned(), "1"), ("pilot-2".to_owned(), "1")]);
    let mine = format!("TulparPilotOf == \"{}\"", project.folder.join(".tulpar/runs/scatter-1").display());
    until("the pilots have left", || {
        project.run(&["condor_q", "-constraint", &mine, "-af", "ClusterId"]).stdout.trim().is_empty()
    });
}

#[test]
fn a_submit_file_that_exists_runs_on_the_pool() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("existing");
    project.write("job.sh", "#!/bin/sh\necho \"$1 of $(cat note.txt)\" > out.txt\n");
    project.write("note.txt", "two\n");
    project.write(
        "job.sub",
        "executable = job.sh\narguments = $(Process)\ntransfer_input_files = note.txt\ntransfer_output_files = out.txt\n\
         transfer_output_remaps = \"out.txt=out-$(Process).txt\"\nshould_transfer_files = YES\nlog = log\n\
         request_cpus = 1\nrequest_memory = 64MB\nrequest_disk = 10MB\nqueue 2\n",
    );
    project.tulpar(&["run", "job.sub", "--site", "condor"]).good();
    assert_eq!(project.read("results/out-0.txt") + &project.read("results/out-1.txt"), "0 of two\n1 of two\n");
}

#[test]
fn a_pegasus_workflow_runs_on_the_pool_unchanged() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("pegasus");
    project.write("input.txt", "one\ntwo\n");
    project.write("catalogue.yaml", "sites:\n  condorpool: {kind: htcondor}\n");
    let input = project.folder.join("input.txt").display().to_string();
    let job = |id: &str, from: &str, to: &str, stage_out: bool| {
        format!(
            "  - {{type: job, id: {id}, name: tac, stdout: {to}, arguments: [{from}], uses: [{{lfn: {from}, type: input}}, \
             {{lfn: {to}, type: output, stageOut: {stage_out}, registerReplica: false}}]}}\n"
        )
    };
    project.write(
        "workflow.yml",
        &format!(
            "pegasus: \"5.0\"\nname: turning\nreplicaCatalog:\n  replicas:\n    \
             - {{lfn: input.txt, pfns: [{{site: local, pfn: {input}}}]}}\ntransformationCatalog:\n  transformations:\n    \
             - {{name: tac, sites: [{{name: condorpool, pfn: /usr/bin/tac, type: installed}}]}}\njobs:\n{}{}\
             jobDependencies:\n  - {{id: ID1, children: [ID2]}}\n",
            job("ID1", "input.txt", "turned.txt", false),
            job("ID2", "turned.txt", "again.txt", true)
        ),
    );
    project.tulpar(&["run", "workflow.yml", "--site", "condorpool"]).good();
    assert_eq!(project.read("results/again.txt"), "one\ntwo\n");
    assert_eq!(logged(&project, "turning-1", "005"), 2);
}
