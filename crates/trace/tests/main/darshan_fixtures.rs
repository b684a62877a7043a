//! Every real log gives the sums and totals that Darshan's own library gives, except where that is known to be wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use tulpar_trace::darshan::{
    ApmpiRecord, ApxcRecord, Error, Heatmap, JobSet, Log, LustreRecord, Module, Operation, Record, Segment, Trace,
    Visitor, counters,
};

use crate::harness::{files, fixtures, is_close, json};

/// Logs of the time before the release of 3.41 that carry other structures than they say.
pub(crate) const PRE_RELEASE: [&str; 4] =
    ["snyders_ior-DFS_id531897", "snyders_ior-dfs_id529735", "shane_ior-HDF5_id545128", "snyder_ior-DFS_id1069383"];

#[derive(Default)]
struct Totals {
    records: BTreeMap<String, Vec<Record>>,
    traces: BTreeMap<String, Traced>,
    lustre: Vec<LustreRecord>,
    heatmaps: Vec<Heatmap>,
    apmpi: usize,
    apxc: usize,
}

#[derive(Default)]
struct Traced {
    traces: Vec<Trace>,
    first_write: BTreeMap<usize, Segment>,
    last_read: BTreeMap<usize, Segment>,
    segments: [u64; 2],
    bytes: [i64; 2],
    time: [f64; 2],
    instant: u64,
    span: Option<(f64, f64)>,
}

impl Visitor for Totals {
    fn record(&mut self, record: &Record) {
        self.records.entry(record.module.name()).or_default().push(record.clone());
    }

    fn trace(&mut self, trace: &Trace) {
        self.traces.entry(trace.module.name()).or_default().traces.push(trace.clone());
    }

    fn segments(&mut self, trace: &Trace, operation: Operation, segments: &[Segment]) {
        let traced = self.traces.entry(trace.module.name()).or_default();
        let index = traced.traces.len() - 1;
        match operation {
            Operation::Write => drop(traced.first_write.entry(index).or_insert(segments[0])),
            Operation::Read => drop(traced.last_read.insert(index, segments[segments.len() - 1])),
        }
        let which = usize::from(operation == Operation::Write);
        for segment in segments {
            traced.segments[which] += 1;
            traced.bytes[which] += segment.length;
            traced.time[which] += segment.end - segment.start;
            traced.instant += u64::from(segment.end == segment.start);
            let (first, last) = traced.span.unwrap_or((segment.start, segment.end));
            traced.span = Some((first.min(segment.start), last.max(segment.end)));
        }
    }

    fn lustre(&mut self, record: &LustreRecord) {
        self.lustre.push(record.clone());
    }

    fn heatmap(&mut self, record: &Heatmap) {
        self.heatmaps.push(record.clone());
    }

    fn apmpi(&mut self, _: &ApmpiRecord) {
        self.apmpi += 1;
    }

    fn apxc(&mut self, _: &ApxcRecord) {
        self.apxc += 1;
    }
}

fn same(what: &str, ours: Value, theirs: &Value) {
    let equal = match (ours.as_f64(), theirs.as_f64()) {
        (Some(a), Some(b)) if ours.is_f64() || theirs.is_f64() => is_close(a, b),
        _ => ours == *theirs,
    };
    assert!(equal, "{what}: here {ours}, there {theirs}");
}

#[test]
fn every_log_gives_the_sums_that_darshan_gives() {
    let Some(folder) = fixtures("darshan") else { return };
    let mut logs = files(&folder, ".darshan");
    logs.retain(|path| path.parent() == Some(&folder));
    assert!(logs.len() >= 60, "only {} logs", logs.len());
    for path in logs {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        compare(&path, stem, &json(&folder.join("expected").join(format!("{stem}.json"))));
    }
    let synthetic = folder.join("synthetic");
    let expected = json(&synthetic.join("syn_zlib_dxt1.expected.json"));
    compare(&synthetic.join("syn_zlib_dxt1.darshan"), "syn_zlib_dxt1", &expected);
}

fn compare(path: &Path, stem: &str, expected: &Value) {
    let is_pre_release = PRE_RELEASE.iter().any(|name| stem.starts_with(name));
    let mut log = Log::open(path).unwrap_or_else(|error| panic!("{stem}: {error}"));
    let mut totals = Totals::default();
    let damage = log.visit(&mut totals);
    assert!(log.names_damage().is_none(), "{stem}: {:?}", log.names_damage());
    assert!(damage.is_empty() || is_pre_release, "{stem}: {damage:?}");
    compare_job(&log, stem, &expected["job"], is_pre_release);
    let job = log.job();
    if !is_pre_release {
        same(stem, json!(job.command), &expected["exe"]);
        let mounts: BTreeSet<_> = job.mounts.iter().map(|mount| (&*mount.point, &*mount.kind)).collect();
        let theirs = expected["mounts"].as_array().unwrap().iter();
        assert_eq!(mounts, theirs.map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap())).collect());
    }
    same(stem, json!(log.names().len()), &expected["n_name_records"]);
    if let Some(names) = expected["name_records"].as_object() {
        for (id, name) in names {
            assert_eq!(log.names().get(id.parse().unwrap()), name.as_str(), "{stem}");
        }
    }
    let modules = expected["modules"].as_object().unwrap();
    let ours: BTreeSet<String> = log.header().modules.iter().map(|entry| entry.module.name()).collect();
    assert_eq!(ours, modules.keys().cloned().collect(), "{stem}");
    for entry in &log.header().modules {
        let theirs = &modules[&entry.module.name()];
        same(stem, json!(entry.length), &theirs["len"]);
        same(stem, json!(entry.version), &theirs["ver"]);
        same(stem, json!(entry.partial), &theirs["partial_flag"]);
    }
    for (module, theirs) in expected["records"].as_object().unwrap() {
        let entry = log.header().modules.iter().find(|entry| entry.module.name() == *module).unwrap();
        let what = format!("{stem} {module}");
        match module.as_str() {
            "DXT_POSIX" | "DXT_MPIIO" => compare_traces(&what, &totals.traces[module], theirs),
            "APMPI" if !is_pre_release => assert_eq!(totals.apmpi as i64, job.processes, "{what}"),
            "APXC" => assert!(totals.apxc > 0, "{what}"),
            "LUSTRE" if !is_pre_release => compare_lustre(&what, &totals.lustre, theirs),
            "HEATMAP" => compare_heatmaps(&what, &totals.heatmaps, theirs),
            "APMPI" | "LUSTRE" => {}
            // Their structure changed before the release.
            "DAOS" if is_pre_release => {}
            "BG/Q" => same(&what, json!(totals.records[module].len()), &theirs["n_records"]),
            _ => {
                let big = log.header().byte_order == tulpar_trace::darshan::ByteOrder::Big;
                let none = Vec::new();
                let records = totals.records.get(module).unwrap_or(&none);
                compare_records(&what, records, (entry.module, entry.version, big), theirs);
            }
        }
    }
}

fn compare_job<R>(log: &Log<R>, stem: &str, theirs: &Value, is_pre_release: bool) {
    let job = log.job();
    if is_pre_release && !stem.starts_with("snyder_ior") {
        assert!((1..=64).contains(&job.processes), "{stem}: {} processes", job.processes);
        assert!(stem.contains(&format!("id{}", job.id)), "{stem}: job {}", job.id);
        return;
    }
    same(stem, json!(job.uid), &theirs["uid"]);
    same(stem, json!(job.start_seconds), &theirs["start_time_sec"]);
    same(stem, json!(job.start_nanoseconds), &theirs["start_time_nsec"]);
    same(stem, json!(job.end_seconds), &theirs["end_time_sec"]);
    same(stem, json!(job.end_nanoseconds), &theirs["end_time_nsec"]);
    same(stem, json!(job.processes), &theirs["nprocs"]);
    same(stem, json!(job.id), &theirs["jobid"]);
    same(stem, json!(job.run_time()), &theirs["run_time"]);
    same(stem, json!(log.header().version.to_string()), &theirs["log_ver"]);
    same(stem, json!(job.metadata), &theirs["metadata"]);
}

/// Counters that Darshan's library garbles in old logs, with the reason in the fact sheet's words.
fn is_wrong_upstream((module, version, big): (Module, u32, bool), counter: &str) -> bool {
    let lost = ["POSIX_F_VARIANCE_RANK_TIME", "POSIX_F_VARIANCE_RANK_BYTES"];
    let not_swapped = ["POSIX_F_META_TIME", "POSIX_F_MAX_READ_TIME", "POSIX_F_MAX_WRITE_TIME"];
    module == Module::Posix
        && version < 4
        && ((matches!(version, 2 | 3) && lost.contains(&counter)) || (big && not_swapped.contains(&counter)))
}

fn compare_records(what: &str, records: &[Record], kind: (Module, u32, bool), theirs: &Value) {
    same(what, json!(records.len()), &theirs["n_records"]);
    let shared = records.iter().filter(|record| record.is_shared()).count();
    same(what, json!(shared), &theirs["n_shared_records"]);
    if records.is_empty() {
        return;
    }
    let (integers, floats) = counters::names(kind.0).unwrap();
    assert_eq!(theirs["counter_sums"].as_object().unwrap().len(), integers.len(), "{what}");
    for (index, name) in integers.iter().enumerate() {
        // Sums of record numbers (RENAMED_FROM) go beyond 64 bits.
        let sum: i128 = records.iter().map(|record| i128::from(record.integers[index])).sum();
        let sum = i64::try_from(sum).map_or(json!(sum as f64), |sum| json!(sum));
        same(&format!("{what} {name}"), sum, &theirs["counter_sums"][name]);
    }
    for (index, name) in floats.iter().enumerate() {
        let sum: f64 = records.iter().map(|record| record.floats[index]).sum();
        if is_wrong_upstream(kind, name) {
            assert!((0.0..1e6).contains(&sum), "{what} {name}: {sum}");
        } else {
            same(&format!("{what} {name}"), json!(sum), &theirs["fcounter_sums"][name]);
        }
    }
    for (record, first) in records.iter().zip(theirs["first_records"].as_array().unwrap()) {
        same(what, json!(record.id.to_string()), &first["id"]);
        same(what, json!(record.rank), &first["rank"]);
        if let (Some(ours), Some(theirs)) = (record.file, first["file_rec_id"].as_str()) {
            assert_eq!(ours.to_string(), theirs, "{what}");
        }
        for (name, value) in integers.iter().zip(&record.integers) {
            same(&format!("{what} first {name}"), json!(value), &first["counters"][name]);
        }
    }
}

fn compare_traces(what: &str, ours: &Traced, theirs: &Value) {
    let files: BTreeSet<u64> = ours.traces.iter().map(|trace| trace.id).collect();
    let ranks: BTreeSet<i64> = ours.traces.iter().map(|trace| trace.rank).collect();
    let hosts: BTreeSet<&str> = ours.traces.iter().map(|trace| &*trace.host).collect();
    same(what, json!(ours.traces.len()), &theirs["n_records"]);
    let counts = [files.len(), ranks.len(), hosts.len()];
    for (ours, name) in counts.into_iter().zip(["n_files", "n_ranks", "n_hosts"]) {
        same(what, json!(ours), &theirs[name]);
    }
    for (index, operation) in ["read", "write"].into_iter().enumerate() {
        same(what, json!(ours.segments[index]), &theirs[format!("{operation}_segments")]);
        same(what, json!(ours.bytes[index]), &theirs[format!("{operation}_bytes")]);
        same(what, json!(ours.time[index]), &theirs[format!("{operation}_time_sum")]);
    }
    same(what, json!(ours.instant), &theirs["zero_duration_segments"]);
    let (first, last) = ours.span.unwrap();
    same(what, json!(first), &theirs["min_start"]);
    same(what, json!(last), &theirs["max_end"]);
    for (index, (trace, first)) in ours.traces.iter().zip(theirs["first_records"].as_array().unwrap()).enumerate() {
        same(what, json!(trace.id.to_string()), &first["id"]);
        same(what, json!(trace.rank), &first["rank"]);
        same(what, json!(trace.host), &first["host"]);
        same(what, json!(trace.writes), &first["write_count"]);
        same(what, json!(trace.reads), &first["read_count"]);
        for (segment, theirs) in [
            (ours.first_write.get(&index), &first["first_write"][0]),
            (ours.last_read.get(&index), &first["last_read"][0]),
        ] {
            let Some(segment) = segment else { continue };
            same(what, json!(segment.offset), &theirs["offset"]);
            same(what, json!(segment.length), &theirs["length"]);
            same(what, json!(segment.start), &theirs["start_time"]);
            same(what, json!(segment.end), &theirs["end_time"]);
        }
    }
}

fn compare_lustre(what: &str, ours: &[LustreRecord], theirs: &Value) {
    same(what, json!(ours.len()), &theirs["n_records"]);
    let layouts: Vec<_> = ours.iter().flat_map(|record| &record.layouts).collect();
    same(what, json!(layouts.len()), &theirs["n_components"]);
    let targets: BTreeSet<i64> = layouts.iter().flat_map(|layout| layout.targets.iter().copied()).collect();
    same(what, json!(targets.len()), &theirs["distinct_osts"]);
    let sums = &theirs["counter_sums"];
    let sum = |pick: fn(&tulpar_trace::darshan::Layout) -> i64| json!(layouts.iter().map(|l| pick(l)).sum::<i64>());
    same(what, sum(|layout| layout.stripe_size), &sums["LUSTRE_COMP_STRIPE_SIZE"]);
    same(what, sum(|layout| layout.stripe_count), &sums["LUSTRE_COMP_STRIPE_COUNT"]);
    same(what, sum(|layout| layout.pattern), &sums["LUSTRE_COMP_STRIPE_PATTERN"]);
    same(what, sum(|layout| layout.flags), &sums["LUSTRE_COMP_FLAGS"]);
    same(what, sum(|layout| layout.extent_start), &sums["LUSTRE_COMP_EXT_START"]);
    same(what, sum(|layout| layout.extent_end), &sums["LUSTRE_COMP_EXT_END"]);
    same(what, sum(|layout| layout.mirror), &sums["LUSTRE_COMP_MIRROR_ID"]);
    for (record, first) in ours.iter().zip(theirs["first_records"].as_array().unwrap()) {
        same(what, json!(record.id.to_string()), &first["id"]);
        for (layout, first) in record.layouts.iter().zip(first["components"].as_array().unwrap()) {
            same(what, json!(layout.pool), &first["pool"]);
            same(what, json!(layout.targets), &first["ost_ids"]);
        }
    }
}

fn compare_heatmaps(what: &str, ours: &[Heatmap], theirs: &Value) {
    same(what, json!(ours.len()), &theirs["n_records"]);
    let written: i64 = ours.iter().flat_map(|map| &map.written).sum();
    same(what, json!(written), &theirs["write_sum"]);
    let read: i64 = ours.iter().flat_map(|map| &map.read).sum();
    same(what, json!(read), &theirs["read_sum"]);
    for (map, row) in ours.iter().zip(theirs["rows"].as_array().unwrap()) {
        same(what, json!(map.id.to_string()), &row["id"]);
        same(what, json!(map.rank), &row["rank"]);
        same(what, json!(map.bin_width), &row["bin_width_seconds"]);
        same(what, json!(map.written.len()), &row["nbins"]);
        same(what, json!(map.written.iter().sum::<i64>()), &row["write_sum"]);
        same(what, json!(map.read.iter().sum::<i64>()), &row["read_sum"]);
    }
}

#[test]
fn one_job_is_the_same_in_every_compression_and_byte_order() {
    let Some(folder) = fixtures("darshan/synthetic") else { return };
    let expected = json(&folder.join("EXPECTED.json"));
    for name in ["syn_zlib", "syn_bzip2", "syn_none", "syn_be", "syn_zlib_dxt1"] {
        let mut log = Log::open(&folder.join(format!("{name}.darshan"))).unwrap();
        let mut totals = Totals::default();
        assert!(log.visit(&mut totals).is_empty(), "{name}");
        let traced = &totals.traces["DXT_POSIX"];
        same(name, json!(traced.segments[0]), &expected["segments"]);
        same(name, json!(traced.bytes[0]), &expected["read_bytes"]);
        let threads: BTreeSet<u64> = traced.last_read.values().map(|segment| segment.thread).collect();
        let theirs = if name == "syn_zlib_dxt1" { json!([0]) } else { expected["threads"].clone() };
        same(name, json!(threads), &theirs);
        let sum = |index: usize| totals.records["POSIX"].iter().map(|record| record.integers[index]).sum::<i64>();
        same(name, json!(sum(counters::posix::READS)), &expected["POSIX_READS"]);
        same(name, json!(sum(counters::posix::SEQ_READS)), &expected["POSIX_SEQ_READS"]);
    }
}

#[test]
fn logs_of_darshan_two_are_refused_with_the_reason() {
    let Some(folder) = fixtures("darshan/old-2x") else { return };
    let logs = files(&folder, ".gz");
    assert!(!logs.is_empty());
    for path in logs {
        assert!(matches!(Log::open(&path), Err(Error::Old)), "{}", path.display());
    }
}

#[test]
fn the_logs_of_the_processes_of_one_job_are_one_job() {
    let Some(folder) = fixtures("darshan") else { return };
    let mut paths = files(&folder, ".darshan");
    paths.retain(|path| path.to_string_lossy().contains("sharma6_python") || path.ends_with("example.darshan"));
    let (sets, failed) = JobSet::group(&paths);
    assert!(failed.is_empty());
    let sizes: BTreeMap<i64, (usize, i64)> =
        sets.iter().map(|set| (set.id, (set.members.len(), set.processes()))).collect();
    assert_eq!(sizes[&378_736], (4, 4));
    let set = sets.iter().find(|set| set.id == 378_736).unwrap();
    assert_eq!(set.members.iter().map(|member| member.rank(0)).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(set.members.iter().all(|member| member.delay >= 0.0));
    assert!(set.members.iter().all(|member| set.run_time() >= member.delay + member.job.run_time()));
}
