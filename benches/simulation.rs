//! Does a simulation of a million unlike tasks on ten thousand nodes end within five minutes, and does the time per event
//! stay what it is? Twenty task sets in four chains with different cores, GPUs, memory and run times, with jitter.
//!
//! `cargo build --release && cargo bench -p tulpar-benches --bench simulation [-- LARGEST]`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::Instant;
use tulpar_benches::binary;

const SETS: u64 = 20;
const CHAINS: u64 = 4;

fn main() {
    let tulpar = binary();
    let largest = std::env::args().filter_map(|word| word.parse::<u64>().ok()).next_back().unwrap_or(1_000_000);
    println!(
        "{:<9} {:>6} {:>8} {:>9} {:>11} {:>7} {:>7}",
        "tasks", "nodes", "s", "µs/task", "makespan s", "cores", "GPUs"
    );
    let mut tasks = 1000;
    while tasks <= largest {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("workflow.yaml"), workflow(tasks)).expect("a workflow");
        // As much contention for few as for many.
        let nodes = (tasks / 100).max(1);
        let sizes = [("--nodes", nodes), ("--cpus", nodes * 48), ("--gpus", nodes * 4)];
        let begun = Instant::now();
        let output = Command::new(&tulpar)
            .args(["simulate", "--no-save", "--json", "--jitter", "0.2"])
            .args(sizes.iter().flat_map(|(option, number)| [(*option).to_owned(), number.to_string()]))
            .current_dir(folder.path())
            .stderr(Stdio::inherit())
            .output()
            .expect("tulpar starts");
        let seconds = begun.elapsed().as_secs_f64();
        assert!(output.status.success(), "the simulation failed");
        let view: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let number = |name: &str| view[name].as_f64().unwrap_or_default();
        println!(
            "{tasks:<9} {nodes:>6} {seconds:>8.2} {:>9.1} {:>11.0} {:>6.1}% {:>6.1}%",
            seconds * 1e6 / tasks as f64,
            number("makespan_seconds"),
            number("cpu_utilisation") * 100.0,
            number("gpu_utilisation") * 100.0,
        );
        tasks *= 10;
    }
}

fn workflow(tasks: u64) -> String {
    let mut text = String::from("workflow: unlike\ntasks:\n");
    for set in 0..SETS {
        let of = |values: &[u64]| values[(set * 7 % values.len() as u64) as usize];
        let (cpus, gpus, memory) = (of(&[1, 2, 4, 8, 16]), of(&[0, 0, 1]), of(&[1, 2, 4, 8]));
        let runtime = of(&[20, 45, 60, 90, 120, 300, 340, 600, 30, 75, 150]);
        let chain = set % CHAINS;
        let _ = writeln!(text, "  s{set}:\n    for: {{c{chain}: 1..{}}}\n    cpus: {cpus}", tasks / SETS);
        if gpus > 0 {
            let _ = writeln!(text, "    gpus: {gpus}");
        }
        let _ = writeln!(text, "    memory: {memory} GB\n    runtime: {runtime} s");
        let needs = set >= CHAINS;
        if needs {
            let _ = writeln!(text, "    in: {{a: s{}.o}}", set - CHAINS);
        }
        let input = if needs { "{a} " } else { "" };
        let _ = writeln!(text, "    out: {{o: 's{set}/{{c{chain}}}.dat'}}\n    run: work {input}{{o}}");
    }
    text
}
