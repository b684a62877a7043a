//! What is seen of jobs before they end: figures of those that run, reasons of those that wait.

use crate::main::harness::{Pool, Project, until};
use serde_json::Value;

/// Three nodes of four cores: three of them run, one waits.
const WORKFLOW: &str = "workflow: seen\ntasks:\n  hold:\n    for: {i: 1..4}\n    cpus: 4\n    \
                        run: head -c 40000000 /dev/zero > /dev/null; sleep 600\n";

fn lines(project: &Project<'_>) -> Vec<Value> {
    let text = project.read(".tulpar/runs/seen-1/samples.jsonl");
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Starts four jobs, waits until what is wanted was seen, and ends them.
fn watch(project: &Project<'_>, site: &str, says: &str, of_stdout: &str) {
    project.write("workflow.yaml", WORKFLOW);
    let running = project.start(&["run", "--site", site]);
    let samples = ".tulpar/runs/seen-1/samples.jsonl";
    until("a job is seen while it runs", || {
        project.folder.join(samples).exists() && lines(project).iter().any(|line| line["rss"].is_u64())
    });
    let seen = lines(project).into_iter().find(|line| line["rss"].is_u64()).unwrap();
    assert!(seen["read_bytes"].as_u64() >= Some(40_000_000) && seen["n"] == 1, "{seen}");
    assert!(seen["rss"].as_u64() > Some(0) && seen["processes"].as_u64() > Some(0), "{seen}");
    let task = format!("hold[i={}]", seen["job"].as_u64().unwrap() + 1);
    let logs = project.tulpar(&["logs", &task, "--only", "stdout"]);
    assert!(logs.code == Some(0) && logs.stderr.contains(of_stdout), "{logs:?}");
    until("the job that waits says why", || lines(project).iter().any(|line| line["waiting"].is_string()));
    let waiting = lines(project).into_iter().find(|line| line["waiting"].is_string()).unwrap();
    assert!(waiting["waiting"].as_str().unwrap().contains(says), "{waiting}");
    let task = format!("hold[i={}]", waiting["job"].as_u64().unwrap() + 1);
    until("explain says so too", || project.tulpar(&["explain", &task]).good().contains("It waits there: "));
    let status: Value = serde_json::from_str(&project.tulpar(&["status", "--json"]).good()).unwrap();
    let (set, tasks) = (&status["sets"][0], &status["tasks"]);
    assert_eq!([&set["running"], &set["submitted"]], [&tasks["running"], &tasks["submitted"]], "{status}");
    project.tulpar(&["cancel"]).good();
    let said = running.wait();
    assert_eq!(said.code, Some(4));
    let rows = |word: &str| said.stderr.lines().filter(|line| line.starts_with(word)).count();
    // A machine may still be cleaning up after another test: at most three run.
    assert_eq!(rows("queued   hold"), 4, "{said:?}");
    assert!((1..4).contains(&rows("start    hold")), "{said:?}");
}

#[test]
fn jobs_of_htcondor_are_seen_while_they_run_and_while_they_wait() {
    let Some(pool) = Pool::condor_alone() else { return };
    watch(&pool.project("seen"), "condor", "HTCondor", "runs elsewhere; what it writes to stdout comes here");
}

#[test]
fn jobs_of_slurm_are_seen_while_they_run_and_while_they_wait() {
    let Some(pool) = Pool::slurm() else { return };
    watch(&pool.project("seen"), "slurm", "Slurm says `", "wrote nothing to stdout");
}

#[test]
fn what_htcondor_itself_moved_is_reported() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("moved");
    project.write("large.txt", &"a line of text\n".repeat(200_000));
    project.write(
        "workflow.yaml",
        "workflow: moved\ndata: {large: large.txt}\ntasks:\n  half:\n    in: [large]\n    out: {part: part.txt}\n    \
         run: head -c 1000000 {large} > {part}\n",
    );
    project.tulpar(&["run", "--site", "condor"]).good();
    let report: Value = serde_json::from_str(&project.tulpar(&["report", "--json"]).good()).unwrap();
    let pairs = report["runs"][0]["characterisation"]["transfers"]["pairs"].as_array().unwrap().clone();
    let moved = |from: &str, to: &str| {
        let pair = pairs.iter().find(|pair| pair["from"] == from && pair["to"] == to);
        pair.unwrap_or_else(|| panic!("{pairs:?}"))["bytes"].as_u64().unwrap()
    };
    // With the program that runs there.
    let there = moved("submit machine", "condor");
    assert!((3_000_000..60_000_000).contains(&there), "{there}");
    // With what is said of it.
    let back = moved("condor", "submit machine");
    assert!((1_000_000..1_100_000).contains(&back), "{back}");
}

#[test]
fn a_pool_is_no_part_of_this_machine() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("asked");
    let said = project.tulpar(&["sites", "check"]).good();
    assert!(
        said.contains("good     site: `condor` queues its tasks with HTCondor, which has 3 machines now"),
        "{said}"
    );
    assert!(said.contains("no task was tried there") && !said.contains("run on this machine"), "{said}");
}
