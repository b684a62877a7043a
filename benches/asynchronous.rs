//! DeepDriveMD for real: 120 tasks that wait, on three pretended nodes of 168 threads and six GPUs, in every mode. What
//! an engine without overhead would need is simulated by the same binary; what was measured is printed against that.
//!
//! `cargo build --release && cargo bench -p tulpar-benches --bench asynchronous`; it takes as long as the tasks wait,
//! three and a half minutes.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::path::Path;
use std::process::{Command, Stdio};
use tulpar_benches::binary;

const FILES: [(&str, &str); 2] = [
    ("small.yaml", include_str!("../examples/deepdrivemd/small.yaml")),
    ("sites.yaml", include_str!("../examples/deepdrivemd/sites.yaml")),
];

fn main() {
    let tulpar = binary();
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in FILES {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    println!("mode        ideal s  measured s  ratio  first start s  GPUs ideal  GPUs measured");
    let mut improvement = Vec::new();
    for mode in ["sequential", "staggered", "adaptive"] {
        let ideal =
            asked(&tulpar, folder.path(), &["simulate", "small.yaml", "--site", "small", "--no-save", "--mode", mode]);
        asked(&tulpar, folder.path(), &["run", "small.yaml", "--site", "small", "--no-cache", "--mode", mode]);
        let report = asked(&tulpar, folder.path(), &["report"]);
        let report = report.pointer("/runs/0").unwrap_or(&report);
        let number = |value: &serde_json::Value, pointer: &str| {
            value.pointer(pointer).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN)
        };
        let (expected, measured) = (number(&ideal, "/makespan_seconds"), number(report, "/measured/makespan_seconds"));
        println!(
            "{mode:<11} {expected:<8.2} {measured:<11.2} {:<6.4} {:<14.3} {:<11.3} {:.3}",
            measured / expected,
            number(report, "/measured/first_start_seconds"),
            number(&ideal, "/gpu_utilisation"),
            number(report, "/measured/gpu/of_makespan"),
        );
        improvement.push(measured);
    }
    let against = |seconds: f64| 1.0 - seconds / improvement[0];
    println!("I: staggered {:.3}, adaptive {:.3}", against(improvement[1]), against(improvement[2]));
}

fn asked(tulpar: &Path, folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(tulpar)
        .args(arguments)
        .arg("--json")
        .current_dir(folder)
        .stderr(Stdio::null())
        .output()
        .expect("tulpar starts");
    assert!(output.status.success(), "{arguments:?} failed");
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}
