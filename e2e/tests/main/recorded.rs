//! `io: trace` and `io: count` where a task runs elsewhere: the library travels with the program for workers, and the log
//! comes back beside what the task printed.

use crate::main::condor_images::boxed;
use crate::main::harness::{Pool, Project};

/// Reads 2,000 bytes and writes them, twice; the shell does it, since a box has little else.
fn workflow(name: &str, more: &str) -> String {
    let run = "while read line; do echo $line; done < {words} > {o}";
    let task =
        |name: &str, io: &str| format!("  {name}: {{in: [words], out: {{o: {name}.txt}}{io}{more}, run: \"{run}\"}}\n");
    let tasks = [task("traced", ", io: trace"), task("counted", ", io: count"), task("alone", "")];
    format!("workflow: {name}\ndata: {{words: words.txt}}\ntasks:\n{}", tasks.concat())
}

fn words() -> String {
    (0..200).map(|number| format!("word {number:04}\n")).collect()
}

/// Runs it, and looks at the records and at the logs that came back.
fn recorded(project: &Project<'_>, name: &str, more: &str, place: &[&str]) {
    project.write("words.txt", &words());
    project.write("workflow.yaml", &workflow(name, more));
    project.tulpar(&[&["run", "--site"], place].concat()).good();
    assert_eq!(project.read("results/traced.txt"), words());
    let records = project.read(&format!(".tulpar/runs/{name}-1/records.jsonl"));
    let mut seen = Vec::new();
    for line in records.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let io = &record["io"];
        let sums = (io["bytes_read"].as_u64(), io["bytes_written"].as_u64(), io["problem"].as_str().map(str::to_owned));
        seen.push((record["name"].as_str().unwrap_or_default().to_owned(), sums));
    }
    seen.sort();
    let all = (Some(2000), Some(2000), None);
    let expected = [("alone", (None, None, None)), ("counted", all.clone()), ("traced", all)];
    assert_eq!(seen, expected.map(|(name, sums)| (name.to_owned(), sums)), "{records}");
    let found = project.run(&["find", &format!(".tulpar/runs/{name}-1/attempts"), "-name", "io.darshan"]).good();
    let logs: Vec<&str> = found.lines().collect();
    assert_eq!(logs.len(), 2, "{found}");
    for log in logs {
        let report = project.tulpar(&["io", "report", "--json", log]).good();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report[0]["bytes_read"], 2000, "{log}: {report}");
    }
}

#[test]
fn tasks_on_htcondor_are_recorded() {
    let Some(pool) = Pool::condor() else { return };
    recorded(&pool.project("recorded"), "recorded", "", &["condor"]);
}

#[test]
fn tasks_in_containers_on_htcondor_are_recorded() {
    let Some(pool) = Pool::condor() else { return };
    let Some(project) = boxed(&pool, "recorded-boxed") else { return };
    recorded(&project, "boxed", ", container: tiny.sif", &["condor"]);
}

#[test]
fn tasks_on_slurm_are_recorded() {
    let Some(pool) = Pool::slurm() else { return };
    recorded(&pool.project("recorded"), "recorded", "", &["slurm"]);
}

#[test]
fn tasks_in_pilots_on_slurm_are_recorded() {
    let Some(pool) = Pool::slurm() else { return };
    recorded(&pool.project("piloted"), "piloted", "", &["slurm", "--pilots", "1"]);
}
