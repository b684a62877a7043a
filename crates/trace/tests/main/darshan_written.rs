//! What is written is read again as it was.

use std::collections::BTreeMap;
use std::io::Cursor;

use tulpar_trace::darshan::write::Writer;
use tulpar_trace::darshan::{Job, Log, Module, Mount, Operation, Record, Segment, Trace, Visitor, counters};

#[derive(Default)]
struct All {
    records: Vec<Record>,
    segments: Vec<(Trace, Operation, Segment)>,
}

impl Visitor for All {
    fn record(&mut self, record: &Record) {
        self.records.push(record.clone());
    }

    fn segments(&mut self, trace: &Trace, operation: Operation, segments: &[Segment]) {
        self.segments.extend(segments.iter().map(|segment| (trace.clone(), operation, *segment)));
    }
}

fn job() -> Job {
    Job {
        uid: 1000,
        id: 77,
        processes: 3,
        start_seconds: 1_700_000_000,
        start_nanoseconds: 5,
        end_seconds: 1_700_000_009,
        end_nanoseconds: 6,
        metadata: BTreeMap::from([("lib_ver".to_owned(), "x".to_owned()), ("two".to_owned(), "a b".to_owned())]),
        command: "python train.py --batch 8".to_owned(),
        mounts: vec![Mount { point: "/data".to_owned(), kind: "lustre".to_owned() }],
        coarse: false,
    }
}

fn record(module: Module, id: u64, rank: i64) -> Record {
    let (integers, floats) = counters::names(module).unwrap();
    Record {
        module,
        id,
        rank,
        file: None,
        integers: (0..integers.len() as i64).map(|value| value * 3 - rank).collect(),
        floats: (0..floats.len()).map(|value| value as f64 / 7.0).collect(),
        servers: Vec::new(),
        trailer: Vec::new(),
    }
}

fn segment(offset: i64) -> Segment {
    Segment { offset, length: 4096, start: offset as f64 / 1e6, end: offset as f64 / 1e6 + 0.5, thread: 0 }
}

#[test]
fn a_written_log_is_read_as_it_was() {
    let mut writer = Writer::new(Cursor::new(Vec::new()), &job()).unwrap();
    writer.names([(7, b"/data/a".to_vec()), (8, b"/data/b".to_vec())]).unwrap();
    let records = [record(Module::Posix, 7, 0), record(Module::Posix, 8, 2), record(Module::Stdio, 8, 1)];
    for (module, version) in [(Module::Posix, 4), (Module::Stdio, 2)] {
        let of = records.iter().filter(|record| record.module == module);
        writer.module(module, version, |region| of.clone().try_for_each(|record| region.record(record))).unwrap();
    }
    writer
        .module(Module::DxtPosix, 1, |region| {
            region.trace(7, 2, "node-with-a-name", 1, 2)?;
            region.segments([segment(5), segment(0), segment(4096)])
        })
        .unwrap();
    let file = writer.finish(&[Module::DxtPosix]).unwrap();
    let mut log = Log::new(file).unwrap();
    assert_eq!(*log.job(), job());
    assert_eq!((log.names().get(7), log.names().get(8), log.names().len()), (Some("/data/a"), Some("/data/b"), 2));
    let modules: Vec<(Module, u32, bool)> =
        log.header().modules.iter().map(|entry| (entry.module, entry.version, entry.partial)).collect();
    assert_eq!(modules, [(Module::Posix, 4, false), (Module::Stdio, 2, false), (Module::DxtPosix, 1, true)]);
    let mut all = All::default();
    assert!(log.visit(&mut all).is_empty());
    assert_eq!(all.records, records);
    let trace =
        Trace { module: Module::DxtPosix, id: 7, rank: 2, host: "node-with-a-name".to_owned(), writes: 1, reads: 2 };
    assert_eq!(
        all.segments,
        [
            (trace.clone(), Operation::Write, segment(5)),
            (trace.clone(), Operation::Read, segment(0)),
            (trace, Operation::Read, segment(4096))
        ]
    );
}

#[test]
fn what_does_not_fit_into_the_description_of_a_job_is_cut() {
    let long = Job {
        command: "é".repeat(5000),
        mounts: (0..500).map(|number| Mount { point: format!("/m{number}"), kind: "nfs".to_owned() }).collect(),
        ..job()
    };
    let file = Writer::new(Cursor::new(Vec::new()), &long).unwrap().finish(&[]).unwrap();
    let read = Log::new(file).unwrap().job().clone();
    assert!(long.command.starts_with(&read.command) && read.command.len() > 2000, "{}", read.command.len());
    assert!(!read.mounts.is_empty() && read.mounts == long.mounts[..read.mounts.len()]);
    assert!(read.metadata == long.metadata && Log::new(Cursor::new(Vec::<u8>::new())).is_err());
}
