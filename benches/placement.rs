//! Does clustering by data pay? Real runs whose jobs pull from and push to a throttled file server, with no clusters,
//! with everything in one job, and with the clusters that Tulpar chooses; beside what it predicted for each.
//!
//! `cargo build --release && cargo bench -p tulpar-benches --bench placement`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tulpar_benches::binary;
use tulpar_transfer::{ServeOptions, Server};

const SPEED: u64 = 40_000_000;
const LATENCY: Duration = Duration::from_millis(5);

/// Four samples, each cleaned, filtered and fitted: 8 MB between the steps, a few bytes in the end.
const WORKFLOW: &str = "
workflow: samples
data: {raw: raw.bin}
tasks:
  clean:
    for: {sample: 1..4}
    in: [raw]
    out: {cleaned: {path: 'cleaned-{sample}.bin', temp: true, size: 8 MB}}
    runtime: 300 ms
    run: '(echo {sample}; cat {raw}) | head -c 8000000 > {cleaned}; sleep 0.2'
  filter:
    for: {sample: 1..4}
    in: [clean.cleaned]
    out: {filtered: {path: 'filtered-{sample}.bin', temp: true, size: 8 MB}}
    runtime: 300 ms
    run: 'cat {cleaned} > {filtered}; echo x >> {filtered}; sleep 0.2'
  fit:
    for: {sample: 1..4}
    in: [filter.filtered]
    out: {model: {path: 'model-{sample}.txt', size: 100 B}}
    runtime: 300 ms
    run: 'cksum < {filtered} > {model}; sleep 0.2'
  summary:
    in: [fit.model]
    out: {report: {path: report.txt, size: 1 kB}}
    runtime: 100 ms
    run: 'cat {model} > {report}'
";

fn main() {
    let tulpar = binary();
    println!("a server with {} MB/s and {} ms; two cores", SPEED / 1_000_000, LATENCY.as_millis());
    println!("{:<8} {:>10} {:>12} {:>14} {:>7}", "clusters", "measured s", "predicted s", "predicted MB", "ratio");
    let mut without = None;
    for how in ["none", "whole", "auto"] {
        let mut taken: Vec<f64> = (0..3).map(|_| measured(&tulpar, how)).collect();
        taken.sort_by(f64::total_cmp);
        let (seconds, megabytes) = predicted(&tulpar, how);
        let base = *without.get_or_insert(taken[1]);
        println!("{how:<8} {:>10.2} {seconds:>12.2} {megabytes:>14.1} {:>7.2}", taken[1], base / taken[1]);
    }
}

/// A folder with the workflow, its data and a server that it is staged on.
fn scene(url: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("written");
    put("workflow.yaml", WORKFLOW.as_bytes());
    put("raw.bin", &(0..8_000_000u32).map(|number| (number / 7) as u8).collect::<Vec<u8>>());
    let catalogue = format!(
        "
sites:
  store: {{scratch: {{path: /nowhere, servers: [\"{url}\"]}}}}
  local: {{cpus: 2, memory: 4 GB, data: nonsharedfs, staging: store}}
links:
  - {{between: [local, store], bandwidth: {} MB/s, latency: {} ms}}
",
        SPEED / 1_000_000,
        LATENCY.as_millis()
    );
    put("catalogue.yaml", catalogue.as_bytes());
    folder
}

fn measured(tulpar: &Path, how: &str) -> f64 {
    let root = tempfile::tempdir().expect("a temporary folder");
    let options = ServeOptions { throttle: Some(SPEED), latency: Some(LATENCY), ..ServeOptions::new(root.path()) };
    let server = Server::start(options).expect("a server");
    let folder = scene(&format!("http://{}", server.address()));
    let begun = Instant::now();
    let status = Command::new(tulpar)
        .args(["run", "--site", "local", "--cluster", how, "--json"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("tulpar starts");
    assert!(status.success(), "the run with {how} failed");
    let taken = begun.elapsed().as_secs_f64();
    server.stop();
    taken
}

fn predicted(tulpar: &Path, how: &str) -> (f64, f64) {
    let folder = scene("http://localhost:9");
    let output = Command::new(tulpar)
        .args(["plan", "--site", "local", "--cluster", how, "--json"])
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .output()
        .expect("tulpar starts");
    let view: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |pointer: &str| view.pointer(pointer).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN);
    (number("/predicted/makespan"), number("/predicted/bytes_moved") / 1e6)
}
