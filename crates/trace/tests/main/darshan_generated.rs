//! Logs written here from literal numbers: conversions, shifts, streams and clocks that no real log covers alone.

use std::io::Cursor;

use tulpar_trace::darshan::{Heatmap, Log, LustreRecord, Module, Operation, Record, Segment, Trace, Visitor, counters};

use crate::generator::Recipe;
use crate::harness::peak;

#[derive(Default)]
struct All {
    records: Vec<Record>,
    segments: Vec<(Trace, Operation, Segment)>,
    lustre: Vec<LustreRecord>,
    heatmaps: Vec<Heatmap>,
}

impl Visitor for All {
    fn record(&mut self, record: &Record) {
        self.records.push(record.clone());
    }

    fn segments(&mut self, trace: &Trace, operation: Operation, segments: &[Segment]) {
        self.segments.extend(segments.iter().map(|segment| (trace.clone(), operation, *segment)));
    }

    fn heatmap(&mut self, record: &Heatmap) {
        self.heatmaps.push(record.clone());
    }

    fn lustre(&mut self, record: &LustreRecord) {
        self.lustre.push(record.clone());
    }
}

fn read(recipe: &Recipe) -> (Log<Cursor<Vec<u8>>>, All) {
    let mut log = Log::new(Cursor::new(recipe.build())).unwrap();
    let mut all = All::default();
    let damage = log.visit(&mut all);
    assert!(damage.is_empty(), "{damage:?}");
    (log, all)
}

/// A POSIX record of 1, 2, 3 … and 0.5, 1.5, 2.5 …
fn counting(recipe: &Recipe, integers: i64, floats: i64) -> Vec<u8> {
    let mut bytes = recipe.words(&[7, 2]);
    bytes.extend(recipe.words(&(1..=integers).collect::<Vec<_>>()));
    bytes.extend(recipe.floats(&(0..floats).map(|value| value as f64 + 0.5).collect::<Vec<_>>()));
    bytes
}

#[test]
fn old_posix_records_get_minus_one_for_counters_that_did_not_exist() {
    for big_endian in [false, true] {
        let mut recipe = Recipe { big_endian, ..Recipe::new("3.10") };
        recipe.modules = vec![(1, 3, counting(&recipe, 64, 17))];
        let (_, all) = read(&recipe);
        let record = &all.records[0];
        assert_eq!(record.integers[..14], [1, -1, -1, 2, 3, 4, 5, 6, 7, 8, -1, -1, 0, 9]);
        assert_eq!(record.integers.len(), 69);
        // The values that Darshan's own library loses, and those that it does not swap.
        assert_eq!(record.floats[counters::posix::F_VARIANCE_RANK_TIME], 15.5);
        assert_eq!(record.floats[counters::posix::F_VARIANCE_RANK_BYTES], 16.5);
        assert_eq!(record.floats[counters::posix::F_META_TIME], 10.5);
        recipe.modules = vec![(1, 2, counting(&recipe, 64, 15))];
        let (_, all) = read(&recipe);
        assert_eq!(all.records[0].floats[..6], [0.5, 1.5, 2.5, -1.0, -1.0, 3.5]);
    }
}

#[test]
fn posix_records_of_version_one_that_mix_in_streams_are_left_out() {
    let mut recipe = Recipe::new("3.00");
    let mut without_streams = counting(&recipe, 68, 15);
    without_streams[16 + 6 * 8..][..8].copy_from_slice(&0i64.to_le_bytes());
    let bytes = [counting(&recipe, 68, 15), without_streams].concat();
    recipe.modules = vec![(1, 1, bytes)];
    let (_, all) = read(&recipe);
    assert_eq!(all.records.len(), 1);
    // The four counters of streams are gone: 1 to 6, then 11.
    assert_eq!(all.records[0].integers[..12], [1, -1, -1, 2, 3, 4, 5, 6, 11, 12, -1, -1]);
}

#[test]
fn numbers_of_modules_in_old_logs_are_moved_to_those_of_today() {
    for (version, slots) in [("3.00", [4, 8, 9]), ("3.10", [4, 8, 9]), ("3.21", [5, 9, 10]), ("3.41", [5, 10, 11])] {
        let mut recipe = Recipe::new(version);
        recipe.partial = 1 << slots[1];
        recipe.modules = slots.map(|slot| (slot, 0, b"?".to_vec())).to_vec();
        let log = Log::new(Cursor::new(recipe.build())).unwrap();
        let found: Vec<_> = log.header().modules.iter().map(|entry| (entry.module, entry.partial)).collect();
        let expected = [(Module::PnetcdfFile, false), (Module::DxtPosix, true), (Module::DxtMpiIo, false)];
        assert_eq!(found, expected, "{version}");
    }
}

#[test]
fn segments_come_with_threads_and_in_any_compression() {
    for (compression, big_endian) in [(0, false), (1, false), (2, false), (0, true), (1, true), (2, true)] {
        let mut recipe = Recipe { compression, big_endian, ..Recipe::new("3.41") };
        let writes = [(0, 10, 0.25, 0.5, 77)];
        let reads = [(10, 20, 1.0, 1.5, 78), (30, 40, 2.0, 2.0, 79)];
        let traces = [recipe.trace((7, 0), true, &writes, &reads), recipe.trace((8, 3), true, &[], &reads)];
        recipe.modules = vec![(10, 2, traces.concat())];
        let (log, all) = read(&recipe);
        let rows: Vec<_> = all
            .segments
            .iter()
            .map(|(trace, operation, segment)| {
                (
                    log.names().get(trace.id).unwrap(),
                    trace.rank,
                    *operation,
                    segment.offset,
                    segment.length,
                    segment.thread,
                )
            })
            .collect();
        let (first, second) = ("/data/train/part-0.tfrecord", "/data/model.h5");
        assert_eq!(
            rows,
            [
                (first, 0, Operation::Write, 0, 10, 77),
                (first, 0, Operation::Read, 10, 20, 78),
                (first, 0, Operation::Read, 30, 40, 79),
                (second, 3, Operation::Read, 10, 20, 78),
                (second, 3, Operation::Read, 30, 40, 79),
            ]
        );
        assert_eq!((all.segments[1].2.start, all.segments[1].2.end), (1.0, 1.5));
        assert_eq!(all.segments[0].0.host, "node01");
    }
}

#[test]
fn mpi_io_traces_of_version_one_have_no_offsets() {
    let mut recipe = Recipe::new("3.10");
    recipe.modules = vec![(9, 1, recipe.trace((7, 0), false, &[(123, 10, 0.0, 1.0, 0)], &[]))];
    let (_, all) = read(&recipe);
    assert_eq!((all.segments[0].2.offset, all.segments[0].2.length), (-1, 10));
}

#[test]
fn the_job_says_when_with_which_command_and_how_surely() {
    let (new, old) = (read(&Recipe::new("3.41")).0, read(&Recipe::new("3.21")).0);
    assert_eq!(new.job().run_time(), 100.5);
    assert_eq!(new.job().start(), 1_700_000_000.25);
    assert_eq!(new.job().start_uncertainty(), 0.0);
    assert_eq!(old.job().run_time(), 101.0);
    assert_eq!(old.job().start_uncertainty(), 1.0);
    for log in [new, old] {
        assert_eq!(log.job().command, "python train.py --epochs 2");
        assert_eq!(log.job().metadata["h"], "romio_no_indep_rw=true;cb_nodes=4");
        assert_eq!(log.job().mounts[0].point, "/data");
    }
}

#[test]
fn the_first_name_that_is_not_empty_counts() {
    for version in ["3.00", "3.10", "3.41"] {
        let mut recipe = Recipe::new(version);
        recipe.names = vec![(1, ""), (2, "a"), (1, "b"), (2, "c"), (3, "")];
        let (log, _) = read(&recipe);
        let mut names: Vec<_> = log.names().iter().collect();
        names.sort_unstable();
        assert_eq!(names, [(1, "b"), (2, "a"), (3, "")], "{version}");
    }
}

#[test]
fn stripes_belong_to_the_components_in_order_and_unused_ones_are_left_out() {
    let mut recipe = Recipe::new("3.41");
    let mut bytes = recipe.words(&[7, -1, 3, 3]);
    for numbers in [[1 << 20, 1, 0, 0, 0, 100, 0], [4 << 20, 2, 0, 0, 100, -1, 0], [-1, 0, 0, 0, 0, 0, 0]] {
        bytes.extend(recipe.words(&numbers));
        bytes.extend(b"flash\0\0\0\0\0\0\0\0\0\0\0");
    }
    bytes.extend(recipe.words(&[5, 6, 7]));
    recipe.modules = vec![(8, 2, bytes)];
    let (_, all) = read(&recipe);
    let layouts = &all.lustre[0].layouts;
    assert_eq!(layouts.iter().map(|layout| layout.targets.as_slice()).collect::<Vec<_>>(), [&[5][..], &[6, 7]]);
    assert_eq!(layouts[1].pool, "flash");
}

#[test]
fn heat_maps_that_differ_by_one_bin_are_brought_to_the_first() {
    let mut recipe = Recipe::new("3.41");
    let map = |rank: i64, width: f64, written: &[i64], read: &[i64]| {
        let head = [recipe.words(&[9, rank]), recipe.floats(&[width]), recipe.words(&[written.len() as i64, 0, 0])];
        [head.concat(), recipe.words(written), recipe.words(read)].concat()
    };
    let maps = [
        map(0, 0.1, &[1, 2], &[3, 4]),
        map(1, 0.1, &[5, 6, 7], &[8, 9, 10]),
        map(2, 0.1, &[11], &[12]),
        map(3, 0.2, &[13], &[14]),
    ];
    recipe.modules = vec![(15, 1, maps.concat())];
    let (_, all) = read(&recipe);
    let rows: Vec<_> = all.heatmaps.iter().map(|map| (map.written.as_slice(), map.read.as_slice())).collect();
    assert_eq!(rows, [(&[1, 2][..], &[3, 4][..]), (&[5, 6], &[8, 9]), (&[11, 0], &[12, 0]), (&[13], &[14])]);
}

#[test]
fn a_million_segments_pass_through_a_megabyte() {
    struct Count(u64);
    impl Visitor for Count {
        fn segments(&mut self, _: &Trace, _: Operation, segments: &[Segment]) {
            self.0 += segments.len() as u64;
        }
    }
    let mut recipe = Recipe::new("3.41");
    let reads: Vec<_> = (0..1000).map(|index| (index * 100, 100, index as f64, index as f64 + 0.5, 1)).collect();
    let trace = recipe.trace((7, 0), true, &[], &reads);
    recipe.modules = vec![(10, 2, trace.repeat(1000))];
    let mut log = Log::new(Cursor::new(recipe.build())).unwrap();
    let mut count = Count(0);
    let (damage, peak) = peak(|| log.visit(&mut count));
    assert!(damage.is_empty());
    assert_eq!(count.0, 1_000_000);
    assert!(peak < 1 << 20, "{peak} bytes");
}
