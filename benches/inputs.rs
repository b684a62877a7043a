//! The price of giving every task exactly the contents that its key names: copies of inputs, and the bytes read to
//! check them, as ratios to `cp -r` of the same files in the same run.
//!
//! `cargo build --release && cargo bench -p tulpar-benches --bench inputs`; `TULPAR_BIN=PATH` measures another build.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MB: f64 = 1e6;

struct Case {
    name: &'static str,
    files: u32,
    size: usize,
    /// `{k}` changes the command, so that the second run runs everything again.
    tasks: &'static str,
}

const CASES: [Case; 5] = [
    Case {
        name: "30,000 files, 1 task",
        files: 30_000,
        size: 13_000,
        tasks: "  read: {in: [files], run: \"true {k}\"}\n",
    },
    Case {
        name: "28,793 files, 300 tasks",
        files: 28_793,
        size: 13_000,
        tasks: "  read: {for: {batch: files by 96}, run: \"true {k} {batch}\"}\n",
    },
    Case {
        name: "4 files, 1,000 tasks",
        files: 4,
        size: 13_000,
        tasks: "  read: {for: {i: 1..1000}, in: [files], run: \"true {k}\"}\n",
    },
    Case {
        name: "16 × 1 MB, 1,000 tasks",
        files: 16,
        size: 1_000_000,
        tasks: "  read: {for: {i: 1..1000}, in: [files], run: \"true {k}\"}\n",
    },
    Case {
        name: "2 × 256 MB, 8 tasks",
        files: 2,
        size: 256_000_000,
        tasks: "  read: {for: {i: 1..8}, in: [files], run: \"true {k}\"}\n",
    },
];

fn main() {
    let tulpar = tulpar_benches::binary();
    println!("{:<26} {:<8} {:>8} {:>6} {:>9} {:>11}", "case", "run", "seconds", "cp -r", "MB read", "MB written");
    for case in &CASES {
        let folder = tempfile::tempdir().expect("a temporary folder");
        make(folder.path(), case);
        let copied = copy(folder.path());
        row(case.name, "cp -r", &copied, &copied);
        for (run, k) in [("first", "k=1"), ("changed", "k=2"), ("reused", "k=2")] {
            row("", run, &measure(Command::new(&tulpar).args(["run", "--json", "-p", k]), folder.path()), &copied);
        }
    }
}

fn make(folder: &Path, case: &Case) {
    fs::create_dir(folder.join("files")).expect("a folder");
    let mut content = vec![7; case.size];
    for n in 0..case.files {
        content[..4].copy_from_slice(&n.to_le_bytes());
        fs::write(folder.join(format!("files/{n:05}")), &content).expect("written");
    }
    let text = format!("workflow: inputs\nparams: {{k: 0}}\ndata: {{files: files/*}}\ntasks:\n{}", case.tasks);
    fs::write(folder.join("workflow.yaml"), text).expect("written");
}

fn copy(folder: &Path) -> Cost {
    let cost = measure(Command::new("cp").args(["-r", "files", "copy"]), folder);
    fs::remove_dir_all(folder.join("copy")).expect("removed");
    cost
}

struct Cost {
    took: Duration,
    read: u64,
    written: u64,
}

fn measure(command: &mut Command, folder: &Path) -> Cost {
    let (before, begun) = (bytes(), Instant::now());
    let status = command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it starts");
    assert!(status.success(), "{command:?} failed");
    let (took, after) = (begun.elapsed(), bytes());
    Cost { took, read: after.0 - before.0, written: after.1 - before.1 }
}

/// Read and written by this process and by all that it has waited for.
fn bytes() -> (u64, u64) {
    let text = fs::read_to_string("/proc/self/io").expect("counters of this process");
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a counter");
        line.trim().parse::<u64>().expect("a number")
    };
    (number("rchar:"), number("wchar:"))
}

fn row(name: &str, run: &str, cost: &Cost, copied: &Cost) {
    let (seconds, ratio) = (cost.took.as_secs_f64(), copied.took.as_secs_f64() / cost.took.as_secs_f64());
    let (read, written) = (cost.read as f64 / MB, cost.written as f64 / MB);
    println!("{name:<26} {run:<8} {seconds:>8.2} {ratio:>6.2} {read:>9.1} {written:>11.1}");
}
