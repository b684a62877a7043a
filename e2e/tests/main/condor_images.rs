//! Container images on a real HTCondor pool: where they come from, how often, and what a broken one does.
//! They need Apptainer, so the pool of `--suite sid`.

use crate::main::condor_runs::{logged, served_to_a_node_that_keeps};
use crate::main::harness::{Pool, Project, skipped, until};

/// A folder with `tiny.sif`: nothing but shells and what they need, made where it will run.
pub(crate) fn boxed<'a>(pool: &'a Pool, name: &str) -> Option<Project<'a>> {
    let project = pool.project(name);
    if project.run(&["sh", "-c", "command -v apptainer"]).code != Some(0) {
        skipped("this pool has no Apptainer: those that `--suite sid` starts have");
        return None;
    }
    let made = project.run(&[
        "sh",
        "-c",
        "mkdir -p box/bin box/usr box/etc box/tmp box/proc box/dev && cp /usr/bin/dash box/bin/sh && \
         cp /usr/bin/bash box/bin/bash && \
         cp --parents $(ldd /usr/bin/dash /usr/bin/bash | grep -o '/[^ :]*\\.so[^ :]*' | sort -u) box/ && \
         echo boxed > box/etc/kind && ln -s bin box/usr/bin 2>/dev/null; apptainer -q build tiny.sif box",
    ]);
    assert_eq!(made.code, Some(0), "{made:?}");
    Some(project)
}

const LOOK: &str = "read kind < /etc/kind; echo $kind > {o}";

/// Many short tasks in the image.
fn many(tasks: u32) -> String {
    format!(
        "workflow: boxed\ntasks:\n  look:\n    for: {{i: 1..{tasks}}}\n    container: tiny.sif\n    runtime: 1 s\n    \
         out: {{o: \"o-{{i}}.txt\"}}\n    run: {LOOK}\n"
    )
}

fn all_boxed(project: &Project<'_>, tasks: u32) {
    for number in 1..=tasks {
        assert_eq!(project.read(&format!("results/o-{number}.txt")), "boxed\n", "task {number}");
    }
}

#[test]
fn an_image_is_a_file_or_comes_from_an_address_or_from_the_osdf() {
    let Some(pool) = Pool::condor() else { return };
    let Some(project) = boxed(&pool, "images") else { return };
    let image = project.folder.join("tiny.sif").display().to_string();
    let there = format!("{}.sif", project.folder.file_name().unwrap().to_string_lossy());
    assert_eq!(pool.root(&["cp", &image, &format!("/srv/osdf/{there}")]).code, Some(0));
    let server = project.start(&["share", ".", "--address", "127.0.0.1:18432", "--read-only"]);
    project.write(
        "workflow.yaml",
        &format!(
            "workflow: boxed\ntasks:\n  \
             file: {{container: tiny.sif, out: {{o: file.txt}}, run: \"{LOOK}\"}}\n  \
             address: {{container: \"http://127.0.0.1:18432/tiny.sif\", out: {{o: address.txt}}, run: \"{LOOK}\"}}\n  \
             osdf: {{container: \"osdf:///{there}\", out: {{o: osdf.txt}}, run: \"{LOOK}\"}}\n"
        ),
    );
    project.tulpar(&["run", "--site", "condor"]).good();
    for name in ["file", "address", "osdf"] {
        assert_eq!(project.read(&format!("results/{name}.txt")), "boxed\n", "{name}");
    }
    server.signal("TERM");
    server.wait();
}

#[test]
fn jobs_of_a_node_are_sent_an_image_once_where_the_site_says_so() {
    let Some(pool) = Pool::condor() else { return };
    let Some(project) = boxed(&pool, "common") else { return };
    project.write("workflow.yaml", &many(6));
    project.write(
        "catalogue.yaml",
        "sites:\n  pool:\n    kind: htcondor\n    \
         submit: {requirements: 'TARGET.NodeLabel == \"n1\"', container_is_common: true}\n",
    );
    project.tulpar(&["run", "--site", "pool"]).good();
    all_boxed(&project, 6);
    let log = project.read(".tulpar/runs/boxed-1/queue/events.log");
    assert_eq!(log.matches("Common files event: TransferFinished").count(), 1, "{log}");
    let size = std::fs::metadata(project.folder.join("tiny.sif")).unwrap().len();
    let launch = log.lines().filter_map(|line| line.trim().strip_suffix("  -  Run Bytes Received By Job"));
    let most = launch.filter_map(|bytes| bytes.trim().parse::<u64>().ok()).max().unwrap();
    assert_eq!(logged(&project, "boxed-1", "005"), 6);
    assert!(most > 0 && most % size != 0, "{most}");
}

#[test]
fn a_broken_image_is_held_with_the_reason() {
    let Some(pool) = Pool::condor() else { return };
    let Some(project) = boxed(&pool, "broken") else { return };
    project.write("broken.sif", "this is no image\n");
    project.write(
        "workflow.yaml",
        "workflow: boxed\ntasks:\n  look: {container: broken.sif, out: {o: o.txt}, run: \"echo > {o}\"}\n",
    );
    let running = project.start(&["run", "--site", "condor"]);
    until("status says held", || project.tulpar(&["status"]).stdout.contains("held"));
    let why = project.tulpar(&["explain", "look"]).good();
    assert!(why.contains("started 3 times and failed each time") && why.contains("condor_release"), "{why}");
    running.signal("TERM");
    running.wait();
}

#[test]
fn tasks_that_share_a_job_share_the_image_that_comes_with_it() {
    let Some(pool) = Pool::condor() else { return };
    let Some(project) = boxed(&pool, "bundled") else { return };
    project.write("workflow.yaml", &many(6));
    project.tulpar(&["run", "--site", "condor", "--cluster", "horizontal=6"]).good();
    all_boxed(&project, 6);
    assert_eq!(logged(&project, "boxed-1", "005"), 1);
}

#[test]
fn a_pilot_gets_an_image_once() {
    let Some(pool) = Pool::condor() else { return };
    let Some(project) = boxed(&pool, "piloted") else { return };
    let go = format!("/srv/osdf/{}.go", project.folder.file_name().unwrap().to_string_lossy());
    project.write(
        "workflow.yaml",
        &format!(
            "{}  wait:\n    in: [look.o]\n    out: {{w: w.txt}}\n    run: while [ ! -f {go} ]; do sleep 0.1; done; echo > {{w}}\n  \
             then:\n    in: [wait.w]\n    container: tiny.sif\n    out: {{p: p.txt}}\n    run: read kind < /etc/kind; echo $kind > {{p}}\n",
            many(1)
        ),
    );
    let running = project.start(&["run", "--site", "condor", "--pilots", "1"]);
    until("the first is done", || project.tulpar(&["status", "--json"]).stdout.contains("\"done\": 1"));
    std::fs::remove_file(project.folder.join("tiny.sif")).unwrap();
    project.run(&["touch", &go]).good();
    running.wait().good();
    assert_eq!(project.read("results/p.txt"), "boxed\n", "the pilot still has it");
}

#[test]
fn jobs_of_a_node_pull_an_image_once_where_the_node_has_a_place_for_it() {
    let Some(pool) = Pool::condor() else { return };
    let Some(project) = boxed(&pool, "kept") else { return };
    project.write("workflow.yaml", &many(6));
    let server = served_to_a_node_that_keeps(&pool, &project, "127.0.0.1:18433");
    project.tulpar(&["run", "--site", "pool", "--images", "once-a-node"]).good();
    all_boxed(&project, 6);
    let size = std::fs::metadata(project.folder.join("tiny.sif")).unwrap().len();
    let pulled = format!("\"input_files\":1,\"input_bytes\":{size},");
    let records = project.read(".tulpar/runs/boxed-1/records.jsonl");
    assert_eq!(records.matches(&pulled).count(), 1, "of six jobs one has pulled it: {records}");
    server.signal("TERM");
    server.wait();
}

#[test]
fn the_four_scenarios_of_a_study_run_on_a_pool_that_has_containers() {
    let Some(pool) = Pool::condor() else { return };
    let Some(project) = boxed(&pool, "four") else { return };
    project.write("workflow.yaml", &many(3));
    let words = ["experiment", "scenarios", "workflow.yaml", "--pool", "htcondor", "--repeat", "1", "--latency", "1ms"];
    let told = project.tulpar(&[&words[..], &["--json"]].concat()).good();
    let report: serde_json::Value = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
    let names = report["scenarios"].as_array().unwrap().iter().map(|scenario| scenario["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["baseline", "container installed", "clustering", "nfs"]);
    let image = std::fs::metadata(project.folder.join("tiny.sif")).unwrap().len();
    let brought = |run: u32| -> u64 {
        let records = project.read(&format!(".tulpar/runs/boxed-{run}/records.jsonl"));
        let records = records.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        records.filter_map(|record| record["input_bytes"].as_u64()).sum()
    };
    assert_eq!([1, 2, 3, 4].map(|run| brought(run) / image), [3, 0, 1, 0]);
    all_boxed(&project, 3);
}
