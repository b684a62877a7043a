//! Other implementations as judges: PyDarshan on logs, TensorBoard's own reader on event files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tulpar_trace::analysis::Analysis;
use tulpar_trace::analysis::Layer;
use tulpar_trace::darshan::JobSet;
use tulpar_trace::tensorboard::{self, What};

use crate::generator::Recipe;
use crate::harness::{files, fixtures, is_close, skipped};

/// What a script says about each of some files, if Python has what it needs.
fn judged(module: &str, script: &str, paths: &[PathBuf]) -> Option<Vec<Value>> {
    let usable = Command::new("python3").args(["-c", &format!("import {module}")]).stderr(Stdio::null()).status();
    if !usable.is_ok_and(|status| status.success()) {
        skipped(&format!("python3 has no module `{module}`: nobody judged what was read"));
        return None;
    }
    let output = Command::new("python3").args(["-c", script]).args(paths).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

const PYDARSHAN: &str = r#"
import json, sys, darshan
all = []
for path in sys.argv[1:]:
    report = darshan.DarshanReport(path, read_all=True)
    job = report.metadata["job"]
    found = {"processes": job["nprocs"], "run_time": job["run_time"], "files": len(report.name_records)}
    for name in ("POSIX", "STDIO"):
        if name in report.records:
            frame = report.records[name].to_df()["counters"]
            found[name] = {"read": int(frame[name + "_BYTES_READ"].clip(lower=0).sum()),
                           "written": int(frame[name + "_BYTES_WRITTEN"].clip(lower=0).sum()),
                           "reads": int(frame[name + "_READS"].clip(lower=0).sum())}
    if "DXT_POSIX" in report.records:
        count = length = 0
        seconds = 0.0
        for record in report.records["DXT_POSIX"].to_df():
            for part in ("read_segments", "write_segments"):
                frame = record[part]
                if len(frame):
                    count += len(frame)
                    length += int(frame["length"].sum())
                    seconds += float((frame["end_time"] - frame["start_time"]).sum())
        found["DXT_POSIX"] = {"requests": count, "bytes": length, "seconds": seconds}
    all.append(found)
print(json.dumps(all))
"#;

fn compare(paths: &[PathBuf]) {
    let Some(all) = judged("darshan", PYDARSHAN, paths) else { return };
    assert_eq!(all.len(), paths.len());
    paths.iter().zip(&all).for_each(|(path, theirs)| compare_one(path, theirs));
}

fn compare_one(path: &Path, theirs: &Value) {
    let name = path.display();
    let set = JobSet::one(path).unwrap();
    let ours = Analysis::of(&set);
    assert_eq!(theirs["processes"], ours.processes, "{name}");
    assert!(
        is_close(theirs["run_time"].as_f64().unwrap(), ours.run_time),
        "{name}: {} {}",
        theirs["run_time"],
        ours.run_time
    );
    for (layer, key) in [(Layer::Posix, "POSIX"), (Layer::Stdio, "STDIO")] {
        let Some(theirs) = theirs.get(key) else { continue };
        let counts: Vec<_> = ours.files.rows.values().filter_map(|row| row.layer(layer)).collect();
        let sums = [
            counts.iter().map(|counts| counts.bytes_read).sum::<i64>(),
            counts.iter().map(|counts| counts.bytes_written).sum(),
            counts.iter().map(|counts| counts.reads.accesses.cast_signed()).sum(),
        ];
        assert_eq!(
            [&theirs["read"], &theirs["written"], &theirs["reads"]].map(|value| value.as_i64().unwrap()),
            sums,
            "{name} {key}"
        );
    }
    if let Some(theirs) = theirs.get("DXT_POSIX") {
        let (requests, bytes, seconds) = ours.traced.get(&Layer::Posix).map_or((0, 0, 0.0), |traced| {
            let (read, write) = (&traced.read, &traced.write);
            (read.requests + write.requests, read.bytes + write.bytes, read.seconds + write.seconds)
        });
        assert_eq!((theirs["requests"].as_u64(), theirs["bytes"].as_u64()), (Some(requests), Some(bytes)), "{name}");
        let there = theirs["seconds"].as_f64().unwrap();
        assert!((there - seconds).abs() <= 1e-6 * there.abs().max(1e-3), "{name}: {there} {seconds}");
    }
}

#[test]
fn pydarshan_sees_the_same_in_a_log_that_was_made_here() {
    let mut recipe = Recipe::new("3.41");
    let mut integers = [0; 69];
    (integers[0], integers[3], integers[4], integers[14], integers[15]) = (2, 5, 1, 5000, 77);
    let posix = [recipe.words(&[7, 0]), recipe.words(&integers), recipe.floats(&[0.25; 17])].concat();
    let reads: Vec<_> = (0..5).map(|index| (index * 1000, 1000, index as f64, index as f64 + 0.25, 0)).collect();
    let trace = recipe.trace((7, 0), false, &[(0, 77, 9.0, 9.5, 0)], &reads);
    recipe.modules = vec![(1, 4, posix), (10, 1, trace)];
    let file = tempfile::Builder::new().suffix(".darshan").tempfile().unwrap();
    std::fs::write(file.path(), recipe.build()).unwrap();
    compare(&[file.path().to_owned()]);
}

#[test]
fn pydarshan_sees_the_same_in_real_logs() {
    let Some(folder) = fixtures("darshan") else { return };
    // What PyDarshan itself reads wrongly is in the list of facts; these it reads well.
    let names = [
        "vanidl_test_cosmictagger",
        "sample-dxt-simple",
        "unet3d_a100",
        "imbalanced-io",
        "mpi-io-test-x86_64-3.4.7",
        "hdf5_diagonal_write_half_ranks_dxt",
        "noposix",
    ];
    compare(&names.map(|name| folder.join(format!("{name}.darshan"))));
}

const TENSORBOARD: &str = r#"
import json, sys
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2
from tensorboard.util import tensor_util
def events_of(path):
  for raw in RawEventFileLoader(path).Load():
    event = event_pb2.Event.FromString(raw)
    scalars = []
    for value in event.summary.value:
        if value.HasField("simple_value"):
            scalars.append([value.tag, value.simple_value])
        elif value.HasField("tensor") and value.tensor.dtype in (1, 2):
            array = tensor_util.make_ndarray(value.tensor)
            if array.size == 1:
                scalars.append([value.tag, float(array.reshape(-1)[0])])
    yield [event.wall_time, event.step, event.file_version, scalars]
print(json.dumps([list(events_of(path)) for path in sys.argv[1:]]))
"#;

#[test]
fn tensorboard_reads_the_same_events() {
    let Some(folder) = fixtures("tensorboard") else { return };
    let mut seen = 0;
    let mut paths = files(&folder, "");
    paths.retain(|path| {
        path.to_string_lossy().contains("events.out.tfevents") && !path.to_string_lossy().ends_with(".json")
    });
    let Some(all) = judged("tensorboard", TENSORBOARD, &paths) else { return };
    for (path, theirs) in paths.iter().zip(all) {
        let mut ours = Vec::new();
        tensorboard::read(std::fs::File::open(path).unwrap(), |event| {
            let version = if let What::FileVersion(text) = &event.what { text.clone() } else { String::new() };
            let scalars: Vec<(String, f64)> = event.scalars().map(|(tag, value)| (tag.to_owned(), value)).collect();
            ours.push((event.wall_time, event.step, version, scalars));
        })
        .unwrap();
        assert_eq!(theirs, serde_json::to_value(&ours).unwrap(), "{}", path.display());
        seen += ours.len();
    }
    assert!(seen > 20, "{seen}");
}
