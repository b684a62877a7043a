//! `tulpar io report` and `tulpar io compare` from outside, on logs and profiles that are written here.

use super::harness::Scene;

/// A Darshan log without compression: one rank reads a file at these times, 1000 bytes each.
pub(crate) fn log(job: i64, reads: &[(f64, f64)]) -> Vec<u8> {
    const HEADER: usize = 1328;
    let words = |values: &[i64]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
    let padded = |text: &[u8], length: usize| -> Vec<u8> {
        let mut bytes = text.to_vec();
        bytes.resize(length, 0);
        bytes
    };
    let mut description = words(&[1000, 1_700_000_000, 0, 1_700_000_100, 0, 1, job]);
    description.extend(padded(b"lib_ver=3.5.0\n", 1024));
    description.extend(b"python train.py\next4\t/\0");
    let mut names = words(&[7]);
    names.extend(b"/data/train.h5\0");
    let mut trace = words(&[7, 0, 0]);
    trace.extend(padded(b"node", 64));
    trace.extend(words(&[0, reads.len() as i64]));
    for (index, (start, end)) in reads.iter().enumerate() {
        trace.extend(words(&[index as i64 * 1000, 1000]));
        trace.extend(start.to_le_bytes());
        trace.extend(end.to_le_bytes());
    }
    let names_at = HEADER + description.len();
    let trace_at = names_at + names.len();
    let mut file = padded(b"3.41", 8);
    file.extend(words(&[6_567_223]));
    file.extend(padded(&[2], 16));
    file.extend(words(&[names_at as i64, names.len() as i64]));
    for module in 0..64 {
        let place = if module == 10 { [trace_at as i64, trace.len() as i64] } else { [0, 0] };
        file.extend(words(&place));
    }
    for module in 0..64u32 {
        file.extend(u32::from(module == 10).to_le_bytes());
    }
    assert_eq!(file.len(), HEADER);
    [file, description, names, trace].concat()
}

const PROFILE: &str = r#"[
{"ph": "X", "name": "ProfilerStep#1", "cat": "cpu", "pid": 1, "tid": 1, "ts": 1700000010000000, "dur": 10000000},
{"ph": "X", "name": "enumerate(DataLoader)#_Iter.__next__", "cat": "cpu", "pid": 1, "tid": 1, "ts": 1700000010000000, "dur": 4000000},
{"ph": "X", "name": "gemm", "cat": "kernel", "pid": 0, "tid": 7, "ts": 1700000014000000, "dur": 6000000}
]"#;

pub(crate) fn scene() -> Scene {
    let scene = Scene::empty();
    scene.write("profiles/node.pt.trace.json", PROFILE);
    std::fs::create_dir_all(scene.path("logs")).unwrap();
    std::fs::write(scene.path("job.darshan"), log(1, &[(10.0, 14.0), (15.0, 16.0)])).unwrap();
    std::fs::write(scene.path("logs/later.darshan"), log(2, &[(10.0, 11.0), (15.0, 16.0)])).unwrap();
    scene
}

#[test]
fn a_log_and_its_profile_are_explained() {
    let scene = scene();
    let text = scene.tulpar("io report job.darshan --profile profiles").done().out;
    for line in [
        "  1 process, 1 log, run time 100.0 s\n  in I/O: 5.0 % of the run (5.00 s)\n",
        "  PyTorch profile: aligned by its own clock and the log's\n",
        "of that hidden behind compute 1.00 s, exposed 4.00 s (40.0 % of the time)\n  data pipeline: steps wait for data 40.0 % of their time\n",
        "\nIO12 high: compute does not hide all of the I/O (may save up to 5.00 s)\n",
        "\n  → more readers at once: num_workers",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    let text = scene.tulpar("io report job.darshan --profile profiles --json").done().out;
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let whole = &json[0]["pipeline"]["whole"];
    assert_eq!((whole["io"].as_f64(), whole["exposed"].as_f64()), (Some(5.0), Some(4.0)));
    assert_eq!(json[0]["pipeline"]["loading_share"], 0.4);
    scene.tulpar("io report job.darshan --profile profiles --html io.html").done();
    let page = scene.read("io.html");
    for word in ["<!DOCTYPE html>", "IO12 high", "I/O beside compute", "Ranks over time", "</html>"] {
        assert!(page.contains(word), "{word} is not in the page");
    }
    assert!(!page.contains("http"), "the page needs something from elsewhere");
}

#[test]
fn requests_and_steps_are_written_on_one_clock() {
    let scene = scene();
    let said = scene.tulpar("io report job.darshan --profile profiles --timeline both.json").done();
    assert!(said.out.is_empty() && said.err.contains("wrote"), "{said}");
    let trace: serde_json::Value = serde_json::from_str(&scene.read("both.json")).unwrap();
    let names: Vec<(&str, f64)> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["ph"] == "X")
        .map(|event| (event["name"].as_str().unwrap(), event["ts"].as_f64().unwrap()))
        .collect();
    let expected = [
        ("read train.h5", 10e6),
        ("read train.h5", 15e6),
        ("step", 10e6),
        ("compute", 14e6),
        ("waiting for data", 10e6),
    ];
    assert_eq!(names, expected);
}

#[test]
fn two_jobs_are_shown_side_by_side() {
    let scene = scene();
    let text = scene.tulpar("io compare job.darshan logs").done().out;
    let row = |name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in\n{text}"));
        line[name.len()..].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(row("time in I/O"), ["5.00 s", "2.00 s", "0.40"]);
    assert_eq!(row("read bandwidth"), ["400 B/s", "1 kB/s", "2.50"]);
    assert_eq!(scene.tulpar("io compare job.darshan logs --json").done().json()["gone"], serde_json::json!([]));
}

#[test]
fn what_is_no_log_is_refused_with_what_to_do() {
    let scene = scene();
    scene.write("other.darshan", "something else");
    for (line, words) in [
        ("io report other.darshan", "other.darshan: this is not a Darshan log: it is too short"),
        ("io report gone.darshan", "cannot read gone.darshan: No such file or directory"),
        ("io report profiles", "no Darshan log (*.darshan) in profiles"),
        ("io report job.darshan --profile logs", "no profile ("),
        ("io report job.darshan --files 'a[b'", "a[b is no pattern for files"),
    ] {
        let said = scene.tulpar(line).expect(2);
        assert!(said.err.contains(words), "{said}");
    }
    // One that can be read is enough.
    let said = scene.tulpar("io report other.darshan job.darshan").done();
    assert!(said.err.contains("warning: other.darshan"), "{said}");
}

#[test]
fn a_command_is_recorded_with_its_own_exit_code_and_streams_and_its_log_is_explained() {
    let scene = scene();
    scene.write("work.sh", "cat logs/later.darshan > out\necho said\nexit 3\n");
    let said = scene.tulpar("io record --no-darshan --trace -o own.darshan sh work.sh");
    assert_eq!((said.code, said.out.as_str()), (Some(3), "said\n"), "{said}");
    assert!(said.err.contains("`tulpar io report own.darshan` says what it means"), "{said}");
    let text = scene.tulpar("io report own.darshan --json").done().out;
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let size = std::fs::metadata(scene.path("out")).unwrap().len();
    // What it says may go into a file too.
    let written = json[0]["bytes_written"].as_u64().unwrap_or(0);
    assert!(written == size || written == size + 5, "{written} {size}");
    let said = scene.tulpar("io record --no-darshan nowhere/to/be/found");
    assert_eq!(said.code, Some(2), "{said}");
}

#[test]
fn tasks_of_one_job_leave_one_log_of_all_of_them() {
    let scene = Scene::new(
        "workflow: io\ntasks:\n  make: {io: trace, out: {data: data.bin}, run: head -c 100000 /dev/zero > data.bin}\n  \
         use: {in: [data], io: count, run: \"cat {data} > /dev/null\"}\n",
    );
    scene.tulpar("run --cluster whole").done();
    let run = std::fs::read_dir(scene.path(".tulpar/runs")).unwrap().flatten().next().unwrap().path();
    let records = std::fs::read_to_string(run.join("records.jsonl")).unwrap();
    let [record] = records.lines().collect::<Vec<_>>()[..] else { panic!("{records}") };
    let record: serde_json::Value = serde_json::from_str(record).unwrap();
    let io = &record["io"];
    assert_eq!((io["bytes_read"].as_u64(), io["log"].as_str()), (Some(100_000), Some("io.darshan")), "{record:#}");
    assert!(io["bytes_written"].as_u64() >= Some(100_000) && io["problem"].is_null(), "{record:#}");
    let name = record["name"].as_str().unwrap();
    let report = scene.tulpar("report --json").done().json();
    assert_eq!(report["runs"][0]["io"][0]["task"].as_str(), Some(name), "{report:#}");
}

#[test]
fn a_task_that_asks_for_it_leaves_its_log_beside_what_it_printed() {
    let scene = Scene::new(
        "workflow: io\ntasks:\n  make: {io: trace, out: {data: data.bin}, run: head -c 100000 /dev/zero > data.bin}\n  \
         use: {in: [data], io: count, run: \"cat {data}\"}\n  without: {run: echo x}\n",
    );
    scene.tulpar("run").done();
    let run = std::fs::read_dir(scene.path(".tulpar/runs")).unwrap().flatten().next().unwrap().path();
    let records = std::fs::read_to_string(run.join("records.jsonl")).unwrap();
    let mut sums: Vec<(String, Option<u64>, Option<u64>)> = records
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|record| {
            let io = &record["io"];
            (record["name"].as_str().unwrap().to_owned(), io["bytes_read"].as_u64(), io["bytes_written"].as_u64())
        })
        .collect();
    sums.sort();
    let sums: Vec<_> = sums.iter().map(|(name, read, written)| (name.as_str(), *read, *written)).collect();
    // What the second prints goes into a file too.
    assert_eq!(
        sums,
        [("make", Some(0), Some(100_000)), ("use", Some(100_000), Some(100_000)), ("without", None, None)]
    );
    let wrong = Scene::new("workflow: io\ntasks:\n  make: {io: tracing, run: echo}\n").tulpar("check");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("`io` cannot be `tracing`") && wrong.err.contains("did you mean `trace`?"), "{wrong}");
}
