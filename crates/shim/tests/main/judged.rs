//! Darshan's own reader, through PyDarshan, agrees with ours about what was written.

use std::process::Command;

use crate::harness::{Place, skipped};
use crate::single::unindent;
use tulpar_shim::Mode;
use tulpar_trace::darshan::{Module, counters};

const JUDGE: &str = r#"
import json, sys
import darshan

report = darshan.DarshanReport(sys.argv[1], read_all=True)
result = {"job": {key: report.metadata["job"][key] for key in ("nprocs", "start_time_sec", "uid")},
          "exe": report.metadata["exe"], "names": sorted(report.name_records.values()), "sums": {}}
for module in ("POSIX", "STDIO"):
    if module in report.records:
        frames = report.records[module].to_df()
        sums = {}
        for frame in (frames["counters"], frames["fcounters"]):
            for name in frame.columns:
                if name not in ("id", "rank"):
                    sums[name] = float(frame[name].sum())
        result["sums"][module] = sums
segments = []
if "DXT_POSIX" in report.records:
    for record in report.records["DXT_POSIX"].to_df():
        for kind in ("write_segments", "read_segments"):
            frame = record[kind]
            if len(frame):
                segments.append([float(len(frame)), float(frame["length"].sum()), float(frame["offset"].sum())])
result["segments"] = [sum(column) for column in zip(*segments)]
print(json.dumps(result))
"#;

#[test]
fn pydarshan_reads_the_same_totals() {
    if !Command::new("python3").args(["-c", "import darshan"]).output().is_ok_and(|output| output.status.success()) {
        return skipped("PyDarshan is not here: logs that were written are not judged by it");
    }
    let place = Place::new();
    let source = unindent(
        r#"
        import os, subprocess
        data = os.open("data", os.O_RDONLY)
        for turn in range(100):
            os.pread(data, 37 * turn, 700 * turn)
        with open("out", "wb") as out:
            for turn in range(20):
                out.write(b"x" * 10000)
        child = os.fork()
        if child == 0:
            os.lseek(data, 5, 0)
            os.read(data, 5000)
            os._exit(0)
        os.waitpid(child, 0)
        subprocess.run(["sh", "-c", "sort data > sorted; head -c 5000 sorted > /dev/null"], check=True)
        "#,
    );
    let recorded = place.record_python(Mode::Trace, &source);
    assert_eq!(recorded.status.code(), Some(0));
    let output = Command::new("python3").args(["-c", JUDGE]).arg(&recorded.log).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let judged: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let read = &recorded.read;
    assert_eq!(judged["job"]["nprocs"], read.processes);
    assert_eq!(judged["exe"], "a command");
    let mut names: Vec<&String> = read.names.values().collect();
    names.sort();
    assert_eq!(judged["names"], serde_json::json!(names));
    for module in [Module::Posix, Module::Stdio] {
        let (integers, floats) = counters::names(module).unwrap();
        let records: Vec<_> = read.records.iter().filter(|record| record.module == module).collect();
        assert!(!records.is_empty(), "{}", module.name());
        for (index, name) in integers.iter().enumerate() {
            let ours: i64 = records.iter().map(|record| record.integers[index]).sum();
            assert_eq!(judged["sums"][module.name()][*name].as_f64(), Some(ours as f64), "{name}");
        }
        for (index, name) in floats.iter().enumerate() {
            let ours: f64 = records.iter().map(|record| record.floats[index]).sum();
            let theirs = judged["sums"][module.name()][*name].as_f64().unwrap();
            assert!((ours - theirs).abs() <= 1e-9 * ours.abs(), "{name}: {ours} {theirs}");
        }
    }
    let sum = |part: fn(&tulpar_trace::darshan::Segment) -> i64| -> f64 {
        read.segments.iter().map(|(.., segment)| part(segment)).sum::<i64>() as f64
    };
    let ours = [read.segments.len() as f64, sum(|segment| segment.length), sum(|segment| segment.offset)];
    assert_eq!(judged["segments"], serde_json::json!(ours));
}
