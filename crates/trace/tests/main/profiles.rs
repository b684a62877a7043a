//! Profiles against what the tools' own readers gave, and against damage.

use std::collections::BTreeSet;
use std::fs::File;

use serde_json::json;
use tulpar_trace::profile::chrome::{self, Id};
use tulpar_trace::profile::input_pipeline::InputPipeline;
use tulpar_trace::profile::kineto::Profile;
use tulpar_trace::profile::xplane::Space;
use tulpar_trace::profile::{Error, dftracer};

use crate::harness::{files, fixtures, is_close, json, peak};

#[test]
fn kineto_profiles_give_the_share_of_loading() {
    let Some(folder) = fixtures("tensorboard/kineto_resnet50") else { return };
    let mut shares = Vec::new();
    for path in files(&folder, ".pt.trace.json.gz") {
        let expected = json(&folder.join(format!("{}.expected.json", path.file_name().unwrap().to_str().unwrap())));
        let mut profile = Profile::read(File::open(&path).unwrap()).unwrap();
        assert!(!profile.torn);
        assert_eq!(json!(profile.events), expected["events"]);
        assert_eq!(json!(profile.categories), expected["by_cat"]);
        assert_eq!(json!(profile.categories.values().sum::<u64>()), expected["X_events"]);
        assert_eq!(json!(profile.steps.len()), expected["steps"]);
        assert_eq!(json!(profile.loading.len()), expected["dataloader_events"]);
        let sums = [profile.step_time(), profile.loading_time(), profile.kernel_sum, profile.kernels.length()];
        let names = ["step_us_sum", "dataloader_us_sum", "kernel_us_sum", "kernel_us_union"];
        for (sum, name) in sums.into_iter().zip(names) {
            assert!(is_close(sum, expected[name].as_f64().unwrap()), "{name}: {sum}");
        }
        shares.push(format!("{:.1}", profile.loading_share().unwrap() * 100.0));
    }
    // No workers and four: the old form of a trace and the new one of each.
    assert_eq!(shares, ["24.4", "39.6", "0.9", "1.0"]);
}

#[test]
fn chrome_traces_give_every_event() {
    let Some(folder) = fixtures("tensorboard/jax_run") else { return };
    let path = files(&folder, ".trace.json.gz").remove(0);
    let expected = json(&files(&folder, ".trace.json.gz.expected.json")[0]);
    let (mut complete, mut duration, mut first) = (0, 0.0, None);
    let document = chrome::read(File::open(path).unwrap(), |event| {
        if let Some((start, end)) = event.span() {
            complete += 1;
            duration += event.duration.0;
            first.get_or_insert((event.name.clone(), event.pid.clone(), start, end));
        }
    })
    .unwrap();
    assert_eq!(json!(document.keys), expected["keys"]);
    assert_eq!(json!(document.events), expected["events"]);
    assert_eq!(json!(complete), expected["X_events"]);
    assert!(is_close(duration, expected["dur_sum"].as_f64().unwrap()));
    let theirs = &expected["first_X"][0];
    let (name, pid, start, end) = first.unwrap();
    assert_eq!(json!(name), theirs["name"]);
    assert_eq!(pid, Id::Number(theirs["pid"].as_i64().unwrap()));
    assert!(is_close(start, theirs["ts"].as_f64().unwrap()));
    assert!(is_close(end - start, theirs["dur"].as_f64().unwrap()));
}

#[test]
fn planes_give_lines_events_and_the_clock() {
    let Some(folder) = fixtures("tensorboard") else { return };
    let paths = files(&folder, ".xplane.pb");
    assert_eq!(paths.len(), 2);
    for path in paths {
        let expected = json(&path.with_extension("pb.expected.json"));
        let bytes = std::fs::read(&path).unwrap();
        let space = Space::parse(&bytes).unwrap();
        assert_eq!(json!(space.hosts), expected["hostnames"]);
        let planes = expected["planes"].as_array().unwrap();
        assert_eq!(space.planes.len(), planes.len());
        // The fixtures were made on 15 November 2026.
        assert!((1_794_700_000_000_000_000..1_794_900_000_000_000_000).contains(&space.start.unwrap()));
        for (plane, theirs) in space.planes.iter().zip(planes) {
            assert_eq!(json!(plane.name), theirs["name"]);
            assert_eq!(json!(plane.lines.len()), theirs["n_lines"]);
            assert_eq!(json!(plane.event_names.len()), theirs["n_event_metadata"]);
            for (line, theirs) in plane.lines.iter().zip(theirs["lines"].as_array().unwrap()) {
                let events: Vec<_> = line.events().map(Result::unwrap).collect();
                assert_eq!(json!(line.name), theirs["name"]);
                assert_eq!(json!(line.timestamp), theirs["timestamp_ns"]);
                assert_eq!(json!(events.len()), theirs["events"]);
                assert_eq!(json!(events.iter().map(|event| event.duration).sum::<i64>()), theirs["sum_duration_ps"]);
                for event in events {
                    let (start, end) = space.span(line, &event);
                    assert!(start >= space.start.unwrap() as f64 / 1e9 - 1e-3 && start <= end, "{start}");
                    assert!(plane.event_names.contains_key(&event.name));
                }
            }
        }
    }
}

#[test]
fn input_pipelines_give_every_step_under_its_right_name() {
    let Some(folder) = fixtures("tensorboard") else { return };
    let paths = files(&folder, ".input_pipeline.pb");
    assert_eq!(paths.len(), 2);
    for path in paths {
        let expected = json(&path.with_extension("pb.expected.json"));
        let analysis = InputPipeline::parse(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(json!(analysis.hardware), expected["hardware_type"]);
        assert_eq!(json!(analysis.steps.len()), expected["n_steps"]);
        assert_eq!(json!(analysis.operations.len()), expected["n_input_ops"]);
        let number = |value: &serde_json::Value| value.as_f64().unwrap_or(0.0);
        let mut pairs = vec![
            (analysis.step_time.average, number(&expected["step_time_summary"]["average"])),
            (analysis.step_time.maximum, number(&expected["step_time_summary"]["maximum"])),
            (analysis.input_percent.average, number(&expected["input_percent_summary"]["average"])),
            (analysis.input_percent.maximum, number(&expected["input_percent_summary"]["maximum"])),
            (analysis.steps.iter().map(|step| step.step_time).sum(), number(&expected["sum_step_time_ms"])),
            (analysis.steps.iter().map(|step| step.host_wait_input).sum(), number(&expected["sum_host_wait_input_ms"])),
        ];
        for (step, theirs) in analysis.steps.iter().zip(expected["first_steps"].as_array().unwrap()) {
            let theirs = &theirs["value"];
            pairs.extend([
                (step.number as f64, number(&theirs["step_number"])),
                (step.unknown, number(&theirs["unknown_time_ms"])),
                (step.device_compute, number(&theirs["device_compute_ms"])),
                (step.host_compute, number(&theirs["host_compute_ms"])),
                (step.host_prepare, number(&theirs["host_prepare_ms"])),
                (step.host_wait_input, number(&theirs["host_wait_input_ms"])),
            ]);
        }
        for (operation, theirs) in analysis.operations.iter().zip(expected["input_ops"].as_array().unwrap()) {
            assert_eq!(json!(operation.name), theirs["op_name"]);
            assert_eq!(json!(operation.category), theirs["category"]);
            pairs.push((operation.count as f64, number(&theirs["count"])));
            pairs.push((operation.time, number(&theirs["time_in_ms"])));
            pairs.push((operation.self_percent, number(&theirs["self_time_in_percent"])));
        }
        let breakdown = analysis.breakdown.unwrap_or_default();
        let theirs = &expected["input_time_breakdown"];
        pairs.push((breakdown.advanced_file_read, number(&theirs["advanced_file_read_us"])));
        pairs.push((breakdown.preprocessing, number(&theirs["preprocessing_us"])));
        for (index, (ours, theirs)) in pairs.into_iter().enumerate() {
            assert!(is_close(ours, theirs), "{}: pair {index}: {ours} and {theirs}", path.display());
        }
    }
}

#[test]
fn bytes_of_profiles_that_are_cut_or_changed_are_survived() {
    let Some(folder) = fixtures("tensorboard/profiler_demo") else { return };
    let bytes = std::fs::read(folder.join("profile_demo.input_pipeline.pb")).unwrap();
    for length in (0..bytes.len()).step_by(7) {
        let _ = InputPipeline::parse(&bytes[..length]);
        let _ = Space::parse(&bytes[..length]);
        let mut changed = bytes.clone();
        changed[length] ^= 0x95;
        let _ = InputPipeline::parse(&changed);
        if let Ok(space) = Space::parse(&changed) {
            for line in space.planes.iter().flat_map(|plane| &plane.lines) {
                let _ = line.events().count();
            }
        }
    }
}

const TRACE: &str = r#"{"schemaVersion":1,"baseTimeNanoseconds":1700000000000000000,"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":7,"tid":"7","ts":100.5,"dur":1000},
{"ph":"X","cat":"gpu_user_annotation","name":"ProfilerStep#1","pid":0,"tid":"stream 7","ts":100.5,"dur":900},
{"ph":"X","cat":"cpu_op","name":"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__","pid":7,"tid":7,"ts":200,"dur":250},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":500,"dur":100},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":8,"ts":550,"dur":100},
{"ph":"i","name":"Record Window End","pid":"Traces","tid":"Trace","ts":"900"}]}"#;

#[test]
fn newer_kineto_traces_count_from_their_base_and_repeat_steps_on_the_device() {
    let mut profile = Profile::read(TRACE.as_bytes()).unwrap();
    assert_eq!(profile.loading_share(), Some(0.25));
    assert_eq!(profile.kernels.length(), 150.0);
    assert_eq!(profile.steps, [(1_700_000_000_000_100.5, 1_700_000_000_001_100.5)]);
}

#[test]
fn a_json_trace_that_is_cut_gives_what_came_before() {
    let mut counts = BTreeSet::new();
    for length in 0..TRACE.len() {
        match Profile::read(&TRACE.as_bytes()[..length]) {
            Ok(profile) => {
                assert!(profile.torn, "{length}");
                counts.insert(profile.events);
            }
            Err(error) => assert!(matches!(error, Error::NotATrace(_)), "{error}"),
        }
    }
    assert_eq!(counts, (1..=6).collect());
}

#[test]
fn an_event_without_end_is_stopped() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"[{\"name\":\"").unwrap();
    for _ in 0..40 {
        encoder.write_all(&[b'a'; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let (result, peak) = peak(|| chrome::read(&*bomb, |_| {}));
    assert!(matches!(result, Err(Error::TooLong)));
    assert!(peak < 40 << 20, "{peak} bytes");
}

#[test]
fn dftracer_lines_name_their_files_by_hash() {
    let text = concat!(
        "[\n",
        r#"{"id":1,"name":"HH","cat":"dftracer","pid":1,"tid":1,"ph":"M","args":{"name":"node7","value":"h1"}}"#,
        "\n",
        r#"{"id":2,"name":"FH","cat":"dftracer","pid":1,"tid":1,"ph":"M","args":{"name":"/data/a.npz","value":"f1"}}"#,
        "\n",
        r#"{"id":3,"name":"read","cat":"POSIX","pid":1,"tid":2,"ts":1700000000000000,"dur":50,"ph":"X","args":{"hhash":"h1","fhash":"f1","ret":4096}}"#,
        "\n",
        r#"{"id":4,"name":"open64","cat":"POSIX","pid":1,"tid":2,"ts":1700000000000100,"dur":5,"ph":"X","args":{"fname":"/data/b.npz","ret":-1}},"#,
        "\n",
        r#"{"id":5,"name":"re"#,
    );
    let mut events = Vec::new();
    let document = dftracer::read(text.as_bytes(), |event| events.push(event.clone())).unwrap();
    assert_eq!((document.events, document.damaged_lines), (2, 1));
    assert_eq!(document.hosts["h1"], "node7");
    let rows: Vec<_> =
        events.iter().map(|event| (&*event.name, document.file(event).unwrap(), dftracer::bytes(event))).collect();
    assert_eq!(rows, [("read", "/data/a.npz", Some(4096)), ("open64", "/data/b.npz", None)]);
    assert_eq!(events[0].span(), Some((1_700_000_000_000_000.0, 1_700_000_000_000_050.0)));
}
