//! I/O and profiles on one clock, against times that can be added up by hand.

use std::io::Write;
use std::path::{Path, PathBuf};

use tulpar_trace::darshan::JobSet;
use tulpar_trace::merge::{self, Method, Scope};
use tulpar_trace::report::{Report, Wanted, timeline};

use crate::generator::Recipe;
use crate::harness::fixtures;

/// When the generated logs begin; old versions know whole seconds only.
const START: f64 = 1_700_000_000.25;

struct Job {
    folder: tempfile::TempDir,
    log: PathBuf,
}

/// A job whose only rank reads at these times.
fn job(version: &'static str, reads: &[(f64, f64)]) -> Job {
    let folder = tempfile::tempdir().unwrap();
    let mut recipe = Recipe::new(version);
    let segments: Vec<_> =
        reads.iter().enumerate().map(|(index, (start, end))| (index as i64 * 1000, 1000, *start, *end, 0)).collect();
    let slot = if version == "3.41" { 10 } else { 9 };
    recipe.modules = vec![(slot, 1, recipe.trace((7, 0), false, &[], &segments))];
    let log = folder.path().join("job.darshan");
    std::fs::write(&log, recipe.build()).unwrap();
    Job { folder, log }
}

impl Job {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
        path
    }

    fn report(&self, profile: &Path, shift: Option<f64>) -> Report {
        let wanted = Wanted { profiles: vec![profile.to_owned()], shift, ..Wanted::default() };
        Report::of(&JobSet::one(&self.log).unwrap(), &wanted).unwrap()
    }
}

/// A job of four ranks on these nodes, each of which reads at these times.
fn ranks(reads: &[(&str, f64, f64)]) -> Job {
    let folder = tempfile::tempdir().unwrap();
    let mut recipe = Recipe::new("3.41");
    let mut bytes = Vec::new();
    for (rank, (host, start, end)) in reads.iter().enumerate() {
        let mut trace = recipe.trace((7, rank as i64), false, &[], &[(0, 1000, *start, *end, 0)]);
        trace[24..88].fill(0);
        trace[24..24 + host.len()].copy_from_slice(host.as_bytes());
        bytes.extend(trace);
    }
    recipe.modules = vec![(10, 1, bytes)];
    let log = folder.path().join("job.darshan");
    std::fs::write(&log, recipe.build()).unwrap();
    Job { folder, log }
}

/// A PyTorch profile: names, categories and times in seconds, on a clock that is `base` ahead.
fn kineto(base: f64, events: &[(&str, &str, f64, f64)]) -> String {
    let events: Vec<String> = events
        .iter()
        .map(|(name, category, start, end)| {
            let (start, duration) = ((base + start) * 1e6, (end - start) * 1e6);
            format!(
                r#"{{"ph":"X","name":"{name}","cat":"{category}","pid":1,"tid":1,"ts":{start:.0},"dur":{duration:.0}}}"#
            )
        })
        .collect();
    format!("[{}]", events.join(",\n"))
}

const LOADING: &str = "enumerate(DataLoader)#_Iter.__next__";

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-4
}

#[test]
fn io_compute_and_waiting_add_up_by_step() {
    let job = job("3.41", &[(10.0, 12.0), (13.0, 15.0), (50.0, 60.0)]);
    let profile = kineto(
        START,
        &[
            ("ProfilerStep#1", "user_annotation", 10.0, 14.0),
            (LOADING, "user_annotation", 10.0, 12.0),
            ("gemm", "kernel", 12.0, 14.0),
            ("ProfilerStep#2", "user_annotation", 14.0, 18.0),
            (LOADING, "user_annotation", 14.0, 14.5),
            ("gemm", "kernel", 14.5, 17.0),
            ("relu", "kernel", 16.0, 18.0),
        ],
    );
    let report = job.report(&job.write("a.pt.trace.json", &profile), None);
    let pipeline = report.pipeline.unwrap();
    let alignment = &pipeline.sources[0].alignment;
    assert_eq!((alignment.method, alignment.uncertainty, alignment.confidence), (Method::Clocks, 0.0, 1.0));
    let whole = pipeline.whole.unwrap();
    let figures = [whole.start, whole.seconds, whole.io, whole.hidden, whole.exposed, whole.compute, whole.loading];
    // Of the I/O from 10 to 12 s nothing is hidden, of that from 13 to 15 s all but half a second; the last is beyond.
    for (ours, truth) in figures.into_iter().zip([10.0, 8.0, 4.0, 1.5, 2.5, 5.5, 2.5]) {
        assert!(close(ours, truth), "{figures:?}");
    }
    let steps: Vec<(f64, f64)> = pipeline.steps.iter().map(|step| (step.io, step.exposed)).collect();
    assert!(
        close(steps[0].0, 3.0) && close(steps[0].1, 2.0) && close(steps[1].0, 1.0) && close(steps[1].1, 0.5),
        "{steps:?}"
    );
    assert!(close(pipeline.loading_share.unwrap(), 2.5 / 8.0));
    // The run as a whole is in I/O for 14 of 100.5 s, whatever was profiled.
    assert!(close(report.io.unwrap().overall, 14.0));
}

#[test]
fn io_of_a_rank_hides_only_behind_the_compute_of_that_rank() {
    // Rank 0 reads while rank 1 computes, and the other way round: nothing is hidden, though somebody always computes.
    let job = ranks(&[("a", 0.0, 5.0), ("b", 5.0, 10.0), ("c", 0.0, 5.0), ("d", 5.0, 10.0)]);
    let of = |rank: i64, compute: (f64, f64)| {
        let (start, end) = compute;
        let events = kineto(START, &[("ProfilerStep#1", "user_annotation", 0.0, 10.0), ("gemm", "kernel", start, end)]);
        format!(r#"{{"distributedInfo":{{"backend":"nccl","rank":{rank},"world_size":4}},"traceEvents":{events}}}"#)
    };
    for (rank, compute) in [(0, (5.0, 10.0)), (1, (0.0, 5.0)), (2, (5.0, 10.0)), (3, (0.0, 4.0))] {
        job.write(&format!("{rank}.pt.trace.json"), &of(rank, compute));
    }
    let pipeline = job.report(job.folder.path(), None).pipeline.unwrap();
    assert_eq!(pipeline.scope, Scope::Ranks);
    let whole = pipeline.whole.unwrap();
    assert!(close(whole.io, 5.0) && close(whole.hidden, 0.0) && close(whole.exposed, 5.0), "{whole:?}");
    let ranks: Vec<_> = pipeline.sources.iter().map(|source| source.ranks.clone().unwrap()).collect();
    assert_eq!(ranks, [[0], [1], [2], [3]]);
}

#[test]
fn profiles_of_nobody_in_particular_are_compared_with_the_whole_job_and_said_to_be() {
    let job = ranks(&[("a", 0.0, 5.0), ("b", 5.0, 10.0)]);
    let profile = kineto(START, &[("ProfilerStep#1", "cpu", 0.0, 10.0), ("gemm", "kernel", 0.0, 6.0)]);
    let pipeline = job.report(&job.write("x.pt.trace.json", &profile), None).pipeline.unwrap();
    assert_eq!((pipeline.scope, pipeline.sources[0].ranks.clone()), (Scope::Job, None));
    let whole = pipeline.whole.unwrap();
    assert!(close(whole.io, 10.0) && close(whole.hidden, 6.0), "{whole:?}");
}

#[test]
fn profiles_are_matched_by_their_nodes_where_each_has_one() {
    use std::collections::BTreeMap;
    let set = JobSet::one(&ranks(&[("a", 0.0, 1.0)]).log).unwrap();
    let hosts: BTreeMap<i64, String> =
        [(0, "n1"), (1, "n1"), (2, "n2")].map(|(rank, host)| (rank, host.to_owned())).into();
    let writer = |host: &str| merge::Writer { host: Some(host.to_owned()), ..merge::Writer::default() };
    // A process that trains on each node, and a worker of its data loader.
    let matched = merge::ranks(&set, &hosts, 2, &[writer("n2.cluster"), writer("n1.cluster")]);
    assert_eq!(matched, Some(vec![vec![2], vec![0, 1]]));
    // Two of one node, and one that nobody knows.
    assert_eq!(merge::ranks(&set, &hosts, 2, &[writer("n1"), writer("n1")]), None);
    assert_eq!(merge::ranks(&set, &hosts, 2, &[writer("n1"), writer("n9")]), None);
}

#[test]
fn a_checkpoint_that_is_written_beside_training_is_told_from_one_that_stops_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut recipe = Recipe::new("3.41");
    recipe.names = vec![(7, "/out/model.ckpt")];
    let writes = [(0, 1000, 10.0, 14.0, 0), (1000, 1000, 30.0, 34.0, 0)];
    recipe.modules = vec![(10, 1, recipe.trace((7, 0), false, &writes, &[]))];
    let log = folder.path().join("job.darshan");
    std::fs::write(&log, recipe.build()).unwrap();
    let job = Job { folder, log };
    // The first is hidden behind compute; the second stops it for three of its four seconds.
    let profile =
        kineto(START, &[("ProfilerStep#1", "cpu", 0.0, 40.0), ("a", "kernel", 0.0, 31.0), ("b", "kernel", 34.0, 40.0)]);
    let report = job.report(&job.write("a.pt.trace.json", &profile), None);
    let exposed: Vec<f64> = report.checkpoints.iter().map(|burst| burst.exposed.unwrap()).collect();
    assert!(close(exposed[0], 0.0) && close(exposed[1], 3.0), "{exposed:?}");
}

#[test]
fn a_pytorch_profile_is_known_by_its_contents_too() {
    let job = job("3.41", &[(1.0, 2.0)]);
    let profile = kineto(START, &[("ProfilerStep#1", "cpu", 0.0, 4.0), (LOADING, "cpu", 1.0, 2.5)]);
    let pipeline = job.report(&job.write("trace.json", &profile), None).pipeline.unwrap();
    assert_eq!((pipeline.sources[0].kind, pipeline.steps_total), (merge::Kind::Kineto, 1));
    assert!(close(pipeline.loading_share.unwrap(), 1.5 / 4.0));
}

#[test]
fn without_devices_what_does_not_wait_computes() {
    let job = job("3.41", &[(1.0, 2.0)]);
    let profile = kineto(START, &[("ProfilerStep#1", "cpu", 0.0, 4.0), (LOADING, "cpu", 1.0, 2.5)]);
    let pipeline = job.report(&job.write("a.pt.trace.json", &profile), None).pipeline.unwrap();
    let whole = pipeline.whole.unwrap();
    assert!(close(whole.compute, 2.5) && close(whole.exposed, 1.0), "{whole:?}");
}

/// Bursts that no other shift repeats.
fn bursts(count: u32) -> Vec<(f64, f64)> {
    let mut state = 12_345u64;
    let mut at = 5.0;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (pause, length) = (0.1 + (state >> 60) as f64 * 0.05, 0.05 + (state >> 40 & 0xff) as f64 * 0.002);
            at += pause + length;
            (at - length, at)
        })
        .collect()
}

fn chrome(reads: &[(f64, f64)], shift: f64) -> String {
    let events: Vec<String> = reads
        .iter()
        .map(|(start, end)| {
            let (start, duration) = ((start - shift) * 1e6, (end - start) * 1e6);
            format!(r#"{{"ph":"X","name":"ReadFile","pid":7,"tid":1,"ts":{start:.1},"dur":{duration:.1}}}"#)
        })
        .collect();
    format!(r#"{{"displayTimeUnit":"ns","traceEvents":[{}]}}"#, events.join(","))
}

#[test]
fn a_profile_without_a_clock_is_found_by_its_likeness() {
    let reads = bursts(80);
    let job = job("3.41", &reads);
    // The profiler saw the middle of the job, each read a little longer than the file system did.
    let seen: Vec<(f64, f64)> = reads[20..60].iter().map(|(start, end)| (start - 0.002, end + 0.003)).collect();
    let profile = job.write("host.trace.json", &chrome(&seen, 17.375));
    let pipeline = job.report(&profile, None).pipeline.unwrap();
    let alignment = &pipeline.sources[0].alignment;
    assert_eq!(alignment.method, Method::Correlation);
    assert!((alignment.shift - 17.375).abs() < 0.01, "{alignment:?}");
    assert!(alignment.confidence > 0.6, "{alignment:?}");
}

#[test]
fn a_profile_that_fits_everywhere_is_not_believed() {
    let reads: Vec<(f64, f64)> = (0..90).map(|index| (f64::from(index), f64::from(index) + 0.5)).collect();
    let job = job("3.41", &reads);
    let profile = job.write("host.trace.json", &chrome(&reads[30..50], 17.0));
    let pipeline = job.report(&profile, None).pipeline.unwrap();
    assert_eq!(pipeline.sources[0].alignment.method, Method::Failed);
    assert_eq!(pipeline.whole, None);
    // The user knows.
    let pipeline = job.report(&profile, Some(17.0)).pipeline.unwrap();
    assert_eq!(pipeline.sources[0].alignment.method, Method::Given);
    let whole = pipeline.whole.unwrap();
    assert!(close(whole.start, 30.0) && close(whole.seconds, 19.5), "{whole:?}");
}

#[test]
fn a_log_of_whole_seconds_is_refined_within_its_second() {
    let reads = bursts(60);
    let job = job("3.20", &reads);
    // The job began 0.640 s after the second that the log names.
    let begun = 1_700_000_000.64;
    let events: Vec<_> = reads.iter().map(|(start, end)| (LOADING, "cpu", *start, *end)).collect();
    let profile = job.write("a.pt.trace.json", &kineto(begun, &events));
    let pipeline = job.report(&profile, None).pipeline.unwrap();
    let alignment = &pipeline.sources[0].alignment;
    assert_eq!(alignment.method, Method::Refined);
    assert!((alignment.shift + begun).abs() < 0.01, "{alignment:?}");
    // Steps that repeat five times in the second fit five times in it.
    let steady: Vec<(f64, f64)> =
        (0..400).map(|index| (f64::from(index) * 0.2, f64::from(index) * 0.2 + 0.1)).collect();
    let periodic = self::job("3.20", &steady);
    let events: Vec<_> = steady[50..350].iter().map(|(start, end)| (LOADING, "cpu", *start, *end)).collect();
    let pipeline = periodic.report(&periodic.write("a.pt.trace.json", &kineto(begun, &events)), None).pipeline.unwrap();
    let alignment = &pipeline.sources[0].alignment;
    assert_eq!((alignment.method, alignment.uncertainty), (Method::Clocks, 0.5), "{alignment:?}");
    // Steps alone say nothing about I/O: then the second stays uncertain, and is said to be.
    let profile = job.write("b.pt.trace.json", &kineto(begun, &[("ProfilerStep#1", "cpu", 1.0, 2.0)]));
    let pipeline = job.report(&profile, None).pipeline.unwrap();
    let alignment = &pipeline.sources[0].alignment;
    assert_eq!((alignment.method, alignment.uncertainty), (Method::Clocks, 0.5));
}

#[test]
fn a_profile_of_another_day_is_not_taken_for_this_job() {
    let job = job("3.41", &[(1.0, 2.0), (4.0, 4.5)]);
    let profile = kineto(START + 86_400.0, &[("ProfilerStep#1", "cpu", 0.0, 4.0), (LOADING, "cpu", 1.0, 3.5)]);
    let pipeline = job.report(&job.write("a.pt.trace.json", &profile), None).pipeline.unwrap();
    assert_eq!(pipeline.sources[0].alignment.method, Method::Failed);
    // Its own shares hold nevertheless.
    assert!(close(pipeline.loading_share.unwrap(), 2.5 / 4.0));
}

#[test]
fn dftracer_knows_epochs_compute_and_fetching() {
    let job = job("3.41", &[(1.0, 2.0), (3.0, 4.0)]);
    let line = |name: &str, category: &str, start: f64, duration: f64, arguments: &str| {
        let start = (START + start) * 1e6;
        format!(
            r#"{{"ph":"X","name":"{name}","cat":"{category}","pid":1,"tid":1,"ts":{start:.0},"dur":{:.0},"args":{{{arguments}}}}}"#,
            duration * 1e6
        )
    };
    let lines = [
        "[".to_owned(),
        line("epoch", "pipeline", 1.0, 2.0, r#""epoch":1"#),
        line("epoch", "pipeline", 3.0, 2.0, r#""epoch":2"#),
        line("TorchFramework.compute", "ai", 1.5, 0.5, ""),
        line("fetch.iter", "dataloader", 1.0, 0.5, ""),
        line("read", "POSIX", 1.0, 1.0, ""),
    ];
    let pipeline = job.report(&job.write("trace.pfw", &lines.join("\n")), None).pipeline.unwrap();
    let epochs: Vec<_> = pipeline.epochs.iter().map(|epoch| (epoch.number, epoch.io, epoch.hidden)).collect();
    assert_eq!((epochs[0].0, epochs[1].0), (Some(1), Some(2)));
    assert!(close(epochs[0].1, 1.0) && close(epochs[0].2, 0.5) && close(epochs[1].2, 0.0), "{epochs:?}");
}

#[test]
fn the_shares_of_the_published_profiles_come_out() {
    let Some(folder) = fixtures("tensorboard") else { return };
    for (name, percent) in [
        ("workers_0_v2", 39.6),
        ("workers_4_v2", 1.0),
        ("workers_0_v1_arrayform", 24.4),
        ("workers_4_v1_arrayform", 0.9),
    ] {
        let path = folder.join(format!("kineto_resnet50/resnet50_num_{name}.pt.trace.json.gz"));
        let job = job("3.41", &[(1.0, 2.0)]);
        let pipeline = job.report(&path, None).pipeline.unwrap();
        let share = pipeline.loading_share.unwrap() * 100.0;
        assert!((share - percent).abs() < 0.05, "{name}: {share}");
    }
}

#[test]
fn every_column_of_an_input_pipeline_has_its_own_name() {
    let job = job("3.41", &[(1.0, 2.0)]);
    // Field numbers of a step, each with a time of its own.
    let times =
        [(2, 100.0), (3, 1.0), (5, 2.0), (6, 40.0), (7, 3.0), (8, 4.0), (9, 5.0), (10, 6.0), (11, 30.0), (12, 9.0)];
    let mut step = vec![1 << 3, 7];
    for (field, time) in times {
        step.push(field << 3 | 1);
        step.extend(f64::to_le_bytes(time));
    }
    let field = |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat();
    let one = field(4, &[field(1, b"x/PerGenericStepDetails"), field(2, &step)].concat());
    let path = job.folder.path().join("host.input_pipeline.pb");
    std::fs::write(&path, [one.clone(), one].concat()).unwrap();
    let pipeline = job.report(&path, None).pipeline.unwrap();
    let said = serde_json::to_value(&pipeline.input).unwrap();
    let expected = serde_json::json!({
        "step": 7, "step_time": 100.0, "device_compute": 40.0, "device_to_device": 3.0, "device_collectives": 0.0,
        "host_compute": 4.0, "host_prepare": 5.0, "input": 39.0, "input_wait": 30.0, "output": 2.0, "compile": 6.0,
        "unknown": 1.0,
    });
    assert_eq!(said[0]["steps"], serde_json::json!([expected, expected]));
    assert_eq!((&said[0]["steps_total"], &said[0]["total"]["output"]), (&2.into(), &4.0.into()));
    let total = pipeline.input[0].total;
    let parts: f64 = total.parts().iter().map(|(_, time)| time).sum();
    assert!(close(parts, total.step_time), "the parts of a step are all of it");
    assert!(close(pipeline.loading_share.unwrap(), 0.3));
}

#[test]
fn the_columns_of_published_input_pipelines_fill_their_steps() {
    let Some(folder) = fixtures("tensorboard") else { return };
    let job = job("3.41", &[(1.0, 2.0)]);
    for path in crate::harness::files(&folder, ".input_pipeline.pb") {
        let expected = crate::harness::json(&path.with_extension("pb.expected.json"));
        let input = job.report(&path, None).pipeline.unwrap().input.remove(0);
        assert_eq!(input.steps.len() as u64, expected["n_steps"].as_u64().unwrap());
        assert!(close(input.total.step_time, expected["sum_step_time_ms"].as_f64().unwrap()));
        for step in &input.steps {
            let parts: f64 = step.columns.parts().iter().map(|(_, time)| time).sum();
            assert!((parts - step.columns.step_time).abs() < 1e-3, "{}: {step:?}", path.display());
        }
        assert_eq!(input.operations.len() as u64, expected["n_input_ops"].as_u64().unwrap());
    }
}

#[test]
fn a_folder_gives_every_profile_once_with_its_clock() {
    let Some(folder) = fixtures("tensorboard") else { return };
    let (found, unread) =
        merge::read(&[folder.join("jax_run"), folder.join("tf_run"), folder.join("tbx_run")]).unwrap();
    assert!(unread.is_empty(), "{unread:?}");
    let mut names: Vec<(String, merge::Clock)> = found
        .iter()
        .map(|(path, activity)| (path.file_name().unwrap().to_string_lossy().into_owned(), activity.clock))
        .collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    let names: Vec<(&str, merge::Clock)> = names.iter().map(|(name, clock)| (name.as_str(), *clock)).collect();
    use merge::Clock::Epoch;
    // JAX wrote its profile twice; the one with a clock counts.
    let expected = [
        ("events.out.tfevents.1794769058.vm.161237.0.v2", Epoch),
        ("events.out.tfevents.1794769059.vm", Epoch),
        ("vm.xplane.pb", Epoch),
        ("vm.xplane.pb", Epoch),
    ];
    assert_eq!(names, expected);
    let steps = found.iter().map(|(_, activity)| activity.steps.len()).max().unwrap();
    assert!(steps > 3, "{steps}");
}

#[test]
fn what_is_no_profile_costs_only_itself() {
    let job = job("3.41", &[(1.0, 2.0)]);
    job.write("broken.xplane.pb", "\u{1}\u{2}\u{3}");
    job.write("good.pt.trace.json", &kineto(START, &[("ProfilerStep#1", "cpu", 0.0, 4.0)]));
    let report = job.report(job.folder.path(), None);
    assert_eq!(report.damage.len(), 1, "{:?}", report.damage);
    assert_eq!(report.pipeline.unwrap().sources.len(), 1);
}

#[test]
fn requests_and_steps_are_on_one_clock_in_a_chrome_trace() {
    let job = job("3.41", &[(10.0, 12.0), (11.0, 15.0)]);
    let profile = kineto(START, &[("ProfilerStep#1", "cpu", 10.0, 14.0), ("gemm", "kernel", 12.0, 14.0)]);
    let mut wanted = Wanted { profiles: vec![job.write("a.pt.trace.json", &profile)], ..Wanted::default() };
    wanted.part.requests = true;
    let report = Report::of(&JobSet::one(&job.log).unwrap(), &wanted).unwrap();
    let mut text = Vec::new();
    timeline(std::slice::from_ref(&report), &mut text).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let events: Vec<(String, i64, f64, f64)> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["ph"] == "X")
        .map(|event| {
            let number = |key: &str| event[key].as_f64().unwrap();
            (event["name"].as_str().unwrap().to_owned(), number("tid") as i64, number("ts"), number("dur"))
        })
        .collect();
    let expected = [
        // They overlap, and so are in two rows.
        ("read part-0.tfrecord", 0, 10e6, 2e6),
        ("read part-0.tfrecord", 1, 11e6, 4e6),
        ("step", 2, 10e6, 4e6),
        ("compute", 3, 12e6, 2e6),
    ];
    assert_eq!(events.len(), expected.len(), "{events:?}");
    for (event, (name, thread, start, duration)) in events.iter().zip(expected) {
        assert_eq!((event.0.as_str(), event.1), (name, thread));
        assert!((event.2 - start).abs() < 1.0 && (event.3 - duration).abs() < 1.0, "{event:?}");
    }
    assert_eq!(trace["traceEvents"][1]["args"]["requests"], 1);
}
