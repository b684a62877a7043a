//! A network file system on one machine (`e2e/far`), and what an experiment says of it.

use crate::main::harness::{skipped, tulpar};
use std::path::Path;
use std::process::{Command, Stdio};

const WORKFLOW: &str = "workflow: short\ndata: {words: words.txt}\ntasks:\n  \
     one: {in: [words], out: {o: one.txt}, run: \"cat {words} > {o}\"}\n  \
     two: {in: [one.o], out: {p: two.txt}, run: \"cat {o} > {p}\"}\n";

#[test]
fn what_the_study_found_about_nfs_is_answered_where_the_shared_folder_is_far_away() {
    let folder = std::env::temp_dir().join(format!("tulpar-far-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("workflow.yaml"), WORKFLOW).unwrap();
    std::fs::write(folder.join("words.txt"), "hello\n").unwrap();
    let program = tulpar().expect("the program `tulpar` is built");
    let mut far = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("far"));
    far.current_dir(&folder).stdin(Stdio::null()).args(["--round-trip", "4", "far"]).arg(program);
    far.args([
        "experiment",
        "scenarios",
        "workflow.yaml",
        "--repeat",
        "2",
        "--latency",
        "1ms",
        "--shared",
        "far",
        "--json",
    ]);
    let said = far.output().unwrap();
    let (told, words) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    if said.status.code() == Some(3) && words.contains("far: ") {
        skipped(&format!("no folder behind a long line: {}", words.lines().last().unwrap_or_default()));
        return;
    }
    assert_eq!(said.status.code(), Some(0), "{told}\n{words}");
    let report: serde_json::Value = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
    let lines = report["asides"][0]["lines"].as_array().unwrap_or_else(|| panic!("{told}"));
    let about = |what: &str| lines.iter().filter_map(|line| line.as_str()).find(|line| line.contains(what)).unwrap();
    assert!(!about("NFS is the slowest").contains("open"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.as_str().unwrap().contains("is not on a network file system")), "{lines:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}
