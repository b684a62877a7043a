//! Every rule of the findings: a report that makes it speak, and the nearest one that does not.

use tulpar_trace::analysis::{Format, Role, Straggler, Uneven};
use tulpar_trace::find::{Finding, Severity, findings};
use tulpar_trace::merge::{Part, Pipeline};
use tulpar_trace::report::{
    Burst, DirectionReport, FileReport, Group, IoShare, LayerReport, Percentiles, RankTime, Report,
};

/// A job of 100 s on four ranks that spends 40 s in I/O, as traced, and whose findings are all silent.
fn quiet() -> Report {
    let mut report = Report::default();
    report.job.run_time = 100.0;
    report.job.processes = 4;
    report.job.trainers = 4;
    report.io = Some(IoShare {
        traced: true,
        overall: 40.0,
        share: 0.4,
        mean_rank: 10.0,
        slowest_rank: Some(RankTime { rank: 2, seconds: 11.0 }),
        ranks: (0..4).map(|rank| RankTime { rank, seconds: 10.0 }).collect(),
        ..IoShare::default()
    });
    report.layers.push(LayerReport {
        layer: "POSIX",
        in_flight_of_rank: Some(4.0),
        read: DirectionReport { in_flight: Some(16.0), ..DirectionReport::default() },
        ..LayerReport::default()
    });
    report
}

/// Data of a format, in a table of formats and of roles.
fn with(mut report: Report, format: Format, change: impl Fn(&mut Group)) -> Report {
    let mut group = Group {
        name: format.name().to_owned(),
        role: format.role(),
        files: 10,
        bytes_read: 10 << 30,
        reads: 10 << 10,
        opens: 40,
        read_time: 40.0,
        unique_bytes: (10u64 << 30) as f64,
        times_read: Some(1.0),
        readers_per_byte: Some(1.0),
        ..Group::default()
    };
    change(&mut group);
    report.roles.push(Group { name: format.role().name().to_owned(), ..group.clone() });
    report.formats.push(group);
    report
}

fn posix(mut report: Report, change: impl Fn(&mut LayerReport)) -> Report {
    change(&mut report.layers[0]);
    report
}

fn beside(mut report: Report, whole: Part, loading_share: Option<f64>) -> Report {
    report.pipeline = Some(Pipeline {
        whole: Some(whole),
        loading_share,
        steps_total: 1,
        steps_seconds: whole.seconds,
        steps: vec![whole],
        ..Pipeline::default()
    });
    report
}

fn overlapped(io: f64, hidden: f64) -> Part {
    Part { seconds: 100.0, io, hidden, exposed: io - hidden, compute: 50.0, ..Part::default() }
}

fn find(report: &Report, code: &str) -> Option<Finding> {
    findings(report).into_iter().find(|finding| finding.code == code)
}

/// Speaks with this severity in the first report, not at all in the second.
fn told(code: &str, severity: Severity, speaks: Report, silent: Report) -> Finding {
    let finding = find(&speaks, code).unwrap_or_else(|| panic!("{code} is silent"));
    assert_eq!(finding.severity, severity, "{code}");
    assert!(!finding.evidence.is_empty() && !finding.reason.is_empty(), "{code} says nothing");
    let wrong = find(&silent, code);
    assert!(wrong.is_none(), "{code} speaks without need: {wrong:?}");
    finding
}

#[test]
fn a_job_without_trouble_has_no_findings() {
    assert_eq!(findings(&quiet()), []);
    assert_eq!(findings(&with(quiet(), Format::TfRecord, |_| {})), []);
    assert_eq!(findings(&Report::default()), []);
}

#[test]
fn small_hdf5_reads_are_found_with_what_larger_ones_save() {
    let small = |reads| with(quiet(), Format::Hdf5, move |group| group.reads = reads);
    // 10 GiB in a million reads are 10 kB each; ten thousand are 1 MiB each.
    let finding = told("IO01", Severity::High, small(1 << 20), small(10 << 10));
    // All of the 40 s is at stake; 10,240 requests instead of 1,048,576 leave the least that is believed, 5 %.
    assert!((finding.gain.unwrap() - 38.0).abs() < 1e-9);
    assert!(finding.advice.iter().any(|advice| advice.contains("h5repack")));
    // Half a second of a run of 100 s is no reason to act.
    let mut short = small(1 << 20);
    short.io.as_mut().unwrap().overall = 0.2;
    assert_eq!(find(&short, "IO01").unwrap().severity, Severity::Note);
}

#[test]
fn hdf5_that_reads_more_than_it_was_asked_for_is_found() {
    let asked = |bytes| {
        let mut report = with(quiet(), Format::Hdf5, |_| {});
        report.totals.dataset_bytes_read = bytes;
        report
    };
    let finding = told("IO02", Severity::High, asked(2 << 30), asked(8 << 30));
    assert_eq!(finding.title, "HDF5 reads 5.0 times what the program asks for");
    assert!((finding.gain.unwrap() - 32.0).abs() < 1e-9);
    // Without Darshan's HDF5 module nothing is known.
    assert_eq!(find(&asked(0), "IO02"), None);
}

#[test]
fn small_reads_of_npz_tfrecord_and_others_are_found() {
    let reads = |format, reads| with(quiet(), format, move |group| group.reads = reads);
    told("IO03", Severity::Warning, reads(Format::Npz, 1 << 20), reads(Format::Npz, 10 << 10));
    // 256 KiB each: TensorFlow's default; then 1 MiB each.
    told("IO04", Severity::Warning, reads(Format::TfRecord, 40 << 10), reads(Format::TfRecord, 10 << 10));
    told("IO05", Severity::High, reads(Format::Parquet, 1 << 20), reads(Format::Parquet, 10 << 10));
    // HDF5 has its own finding, and a sample a file is another one.
    assert_eq!(find(&reads(Format::Hdf5, 1 << 20), "IO05"), None);
    let images = with(quiet(), Format::Image, |group| (group.reads, group.files) = (1 << 20, 1 << 20));
    assert_eq!(find(&images, "IO05"), None);
}

#[test]
fn small_writes_are_found() {
    let writes = |bytes| {
        with(quiet(), Format::Other, move |group| {
            (group.writes, group.small_writes, group.bytes_written, group.write_time) = (5000, 5000, bytes, 40.0);
        })
    };
    told("IO06", Severity::High, writes(5000 * 1000), writes(5000 * 1_000_000));
}

#[test]
fn random_reads_are_found_and_stripes_told_apart() {
    let file = |stripes| {
        let mut report = with(quiet(), Format::Hdf5, |group| group.random_reads = 8000);
        let read = FileReport {
            stripes,
            reads: 10_000,
            random_reads: 8000,
            bytes_read: 620_000_000,
            read_time: 40.0,
            ..FileReport::default()
        };
        report.files.push(read);
        report
    };
    let finding = told("IO07", Severity::High, file(4), file(1));
    assert_eq!(finding.title, "a file striped over 4 targets is read at random places");
    told("IO08", Severity::Warning, file(1), file(4));
    // The first read of each file counts as random: many files that are read at once are not read at random places.
    let many = with(quiet(), Format::TfRecord, |group| (group.random_reads, group.opens) = (8000, 8000));
    assert_eq!(find(&many, "IO08"), None);
}

#[test]
fn shards_in_the_order_of_their_names_are_noted() {
    let order = |order| Report { files_in_order: Some(order), ..with(quiet(), Format::TfRecord, |_| {}) };
    told("IO09", Severity::Note, order(1.0), order(0.5));
}

#[test]
fn the_kind_of_work_is_noted() {
    let requests = |reads| {
        posix(quiet(), move |posix| {
            posix.read = DirectionReport {
                requests: reads,
                bytes: 1000,
                consecutive: reads / 2,
                sequential: reads / 2,
                random: reads / 2,
                ..DirectionReport::default()
            };
        })
    };
    let finding = told("IO10", Severity::Note, requests(10), requests(0));
    assert_eq!(finding.title, "mostly reads by requests, mostly reads by bytes");
    assert_eq!(finding.evidence, ["reads: 50 % consecutive, 50 % sequential, 50 % random"]);
}

#[test]
fn io_that_takes_turns_with_compute_is_found() {
    let finding = told(
        "IO11",
        Severity::High,
        beside(quiet(), overlapped(40.0, 2.0), None),
        beside(quiet(), overlapped(40.0, 30.0), None),
    );
    assert!((finding.gain.unwrap() - 38.0).abs() < 1e-9);
    // Partly hidden: another finding. And what is all hidden, none.
    told(
        "IO12",
        Severity::Warning,
        beside(quiet(), overlapped(40.0, 20.0), None),
        beside(quiet(), overlapped(40.0, 38.0), None),
    );
    let hidden = beside(quiet(), overlapped(40.0, 38.0), None);
    assert_eq!(findings(&hidden), []);
}

#[test]
fn steps_that_wait_for_data_are_found() {
    let waiting = |share| beside(quiet(), Part { seconds: 10.0, ..Part::default() }, Some(share));
    let finding = told("IO13", Severity::High, waiting(0.396), waiting(0.01));
    assert_eq!(finding.evidence, ["40 % of the steps' time is waiting for data"]);
    // Of ten seconds that were profiled in a hundred that ran.
    assert!((finding.gain.unwrap() - 39.6).abs() < 1e-9);
    // Steps that are not listed one by one count too.
    let mut many = waiting(0.396);
    many.pipeline.as_mut().unwrap().steps.clear();
    assert!((find(&many, "IO13").unwrap().gain.unwrap() - 39.6).abs() < 1e-9);
}

#[test]
fn a_short_profile_speaks_for_the_whole_run() {
    // Two of a hundred seconds were profiled, and one of them is exposed I/O.
    let short = Part { seconds: 2.0, io: 1.2, hidden: 0.2, exposed: 1.0, compute: 0.8, ..Part::default() };
    let slow = |report| with(report, Format::Hdf5, |group| group.reads = 1 << 20);
    let finding = find(&beside(slow(quiet()), short, None), "IO01").unwrap();
    assert_eq!(finding.severity, Severity::High);
    // Half of the run would be 50 s, but only 40 s are in I/O at all.
    assert!((finding.gain.unwrap() - 40.0 * (1.0 - 0.05)).abs() < 1e-9, "{:?}", finding.gain);
}

#[test]
fn too_few_and_too_many_readers_are_found() {
    let readers = |in_flight, p99| {
        posix(with(quiet(), Format::TfRecord, |_| {}), move |posix| {
            let latency = Some(Percentiles { p50: 0.001, p95: p99, p99, max: p99 });
            posix.in_flight_of_rank = Some(in_flight / 4.0);
            posix.read =
                DirectionReport { requests: 10_240, in_flight: Some(in_flight), latency, ..DirectionReport::default() };
        })
    };
    // Four ranks: what they do at once is not what each of them does.
    told("IO14", Severity::Warning, readers(4.0, 0.002), readers(24.0, 0.002));
    told("IO15", Severity::Warning, readers(64.0, 0.2), readers(64.0, 0.01));
    assert_eq!(find(&readers(16.0, 0.2), "IO15"), None);
    // One process with 32 workers, each of them a process with one read.
    let workers = |in_flight| {
        let mut report = readers(in_flight, 0.2);
        (report.job.processes, report.job.trainers) = (33, 1);
        report.layers[0].in_flight_of_rank = Some(1.0);
        report
    };
    told("IO15", Severity::Warning, workers(30.0), workers(4.0));
    told("IO14", Severity::Warning, workers(1.2), workers(30.0));
}

#[test]
fn checkpoints_that_stop_training_are_found() {
    let written = |seconds| {
        let mut report =
            with(quiet(), Format::Checkpoint, |group| (group.bytes_written, group.bytes_read) = (1 << 30, 0));
        let burst = Burst { start: 10.0, end: 10.0 + seconds, writing: seconds, exposed: None };
        report.checkpoints = vec![burst; 2];
        report
    };
    let finding = told("IO16", Severity::High, written(8.0), written(1.0));
    assert!((finding.gain.unwrap() - 12.8).abs() < 1e-9);
    // Pauses between writes are no writing, and what is written while training goes on does not stop it.
    let mut paused = written(8.0);
    paused.checkpoints.iter_mut().for_each(|burst| burst.writing = 1.0);
    assert_eq!(find(&paused, "IO16"), None);
    let mut beside = written(8.0);
    beside.checkpoints.iter_mut().for_each(|burst| burst.exposed = Some(0.5));
    assert_eq!(find(&beside, "IO16"), None);
    // Through stdio nothing is traced: the time that its writers counted.
    let untraced = |time| {
        with(quiet(), Format::Checkpoint, move |group| (group.bytes_written, group.write_time) = (1 << 30, time))
    };
    told("IO16", Severity::Warning, untraced(10.0), untraced(1.0));
}

#[test]
fn an_incomplete_trace_is_found() {
    let partial = Report { partial: vec!["DXT_POSIX".to_owned()], ..quiet() };
    told("IO17", Severity::Warning, partial, quiet());
}

#[test]
fn many_small_files_and_metadata_are_found() {
    let files = |files: usize| {
        with(quiet(), Format::Image, move |group| {
            (group.files, group.unique_bytes, group.metadata_calls, group.metadata_time) =
                (files, 20_000.0 * 110e3, 120_000, 10.0);
        })
    };
    told("IO18", Severity::High, files(20_000), files(100));
    let metadata = |time| posix(with(quiet(), Format::TfRecord, |_| {}), move |posix| posix.metadata_time = time);
    // Of four processes: 25 s each, then 1 s each.
    told("IO19", Severity::High, metadata(100.0), metadata(4.0));
    let per_sample = posix(
        with(quiet(), Format::Image, |group| {
            (group.metadata_calls, group.samples, group.samples_files) = (40_960, Some(1024), 10);
        }),
        |posix| posix.metadata_time = 1.0,
    );
    let evidence = find(&per_sample, "IO19").unwrap().evidence;
    assert!(evidence.contains(&"40.0 metadata calls a sample".to_owned()), "{evidence:?}");
}

#[test]
fn slow_loading_of_code_is_found() {
    let code = |time| {
        with(quiet(), Format::Code, move |group| {
            (group.metadata_calls, group.metadata_time, group.read_time) = (50_000, time, 0.0)
        })
    };
    told("IO20", Severity::Warning, code(20.0), code(1.0));
}

#[test]
fn plain_data_over_the_network_are_found() {
    let plain = |kind: &'static str| with(quiet(), Format::Npy, move |group| group.file_system = Some(kind.to_owned()));
    told("IO21", Severity::Warning, plain("lustre"), plain("ext4"));
    // Compressed formats are not plain.
    let packed = with(quiet(), Format::Npz, |group| group.file_system = Some("lustre".to_owned()));
    assert_eq!(find(&packed, "IO21"), None);
}

#[test]
fn data_that_are_read_again_are_found() {
    let times = |times: f64| with(quiet(), Format::Npy, move |group| group.times_read = Some(times));
    let finding = told("IO22", Severity::High, times(4.0), times(1.0));
    assert!((finding.gain.unwrap() - 30.0).abs() < 1e-9);
    // Four ranks that read all of it once have read nothing again.
    let once = with(quiet(), Format::Npy, |group| (group.times_read, group.readers_per_byte) = (Some(4.0), Some(4.0)));
    assert_eq!(find(&once, "IO22"), None);
    let huge = with(quiet(), Format::Npy, |group| (group.times_read, group.unique_bytes) = (Some(4.0), 1e13));
    assert_eq!(find(&huge, "IO22"), None);
}

#[test]
fn bulk_through_stdio_and_text_are_found() {
    let stdio = |requests| {
        let mut report = quiet();
        report.bytes_written = 1 << 30;
        let write = DirectionReport { requests, bytes: 1 << 30, ..DirectionReport::default() };
        report.layers.push(LayerReport { layer: "STDIO", write, write_time: 10.0, ..LayerReport::default() });
        report
    };
    told("IO23", Severity::Note, stdio(1 << 20), stdio(1 << 10));
    let text = |bytes| with(quiet(), Format::Text, move |group| group.bytes_read = bytes);
    told("IO24", Severity::Warning, text(1 << 30), text(1 << 20));
}

#[test]
fn ranks_that_all_read_everything_are_found() {
    let readers = |readers, times: f64| {
        with(quiet(), Format::TfRecord, move |group| {
            (group.readers_per_byte, group.times_read) = (Some(readers), Some(times))
        })
    };
    let finding = told("IO25", Severity::High, readers(4.0, 4.0), readers(1.0, 1.0));
    assert!((finding.gain.unwrap() - 30.0).abs() < 1e-9);
    // Ten epochs that are shuffled over all ranks look like that too.
    let shuffled = find(&readers(3.9, 10.0), "IO25").unwrap();
    assert_eq!((shuffled.severity, shuffled.gain), (Severity::Note, None));
    // One process reads everything, of course.
    let mut alone = readers(1.0, 1.0);
    alone.job.processes = 1;
    assert_eq!(find(&alone, "IO25"), None);
}

#[test]
fn a_rank_that_lags_is_found_in_traces_and_in_counters() {
    let slowest = |seconds| {
        let mut report = quiet();
        report.io.as_mut().unwrap().slowest_rank = Some(RankTime { rank: 2, seconds });
        report
    };
    let finding = told("IO26", Severity::High, slowest(40.0), slowest(12.0));
    assert_eq!(finding.title, "rank 2 is in I/O longer than the others");
    assert!((finding.gain.unwrap() - 30.0).abs() < 1e-9);
    let counted = |slowest| {
        let mut report = quiet();
        report.io = None;
        report.totals.straggler = Some(Straggler { file: 7, rank: 3, slowest, fastest: 1.0 });
        report
    };
    told("IO26", Severity::Warning, counted(9.0), counted(1.2));
    // One training, and the shell that started it.
    let mut alone = slowest(40.0);
    (alone.job.processes, alone.job.trainers) = (3, 1);
    assert_eq!(find(&alone, "IO26"), None);
}

#[test]
fn mpi_io_without_collective_calls_is_found_only_where_it_is_used() {
    let calls = |independent, collective| {
        let mut report = quiet();
        (report.totals.independent_writes, report.totals.collective_writes) = (independent, collective);
        report
    };
    told("IO27", Severity::Warning, calls(5000, 0), calls(5000, 10));
    assert_eq!(find(&calls(0, 0), "IO27"), None);
}

#[test]
fn writes_at_random_places_and_inside_blocks_are_found() {
    let writes = |random, not_aligned| {
        let mut report = posix(quiet(), move |posix| {
            posix.write = DirectionReport { requests: 10_000, random, ..DirectionReport::default() };
        });
        report.totals.file_not_aligned = not_aligned;
        with(report, Format::Other, |group| (group.writes, group.write_time, group.opens) = (10_000, 40.0, 10))
    };
    told("IO28", Severity::Warning, writes(8000, 0), writes(500, 0));
    told("IO29", Severity::Warning, writes(0, 5000), writes(0, 10));
}

#[test]
fn shared_files_in_small_or_uneven_pieces_are_found() {
    let small = |small| {
        let mut report = with(quiet(), Format::Hdf5, |_| {});
        let totals = &mut report.totals;
        (totals.shared_writes, totals.shared_small_writes, totals.shared_time) = (20_000, small, 40.0);
        report
    };
    told("IO30", Severity::High, small(19_000), small(900));
    let uneven = |least: u64| {
        let mut report = quiet();
        report.totals.uneven = Some(Uneven { file: 7, most: 1 << 30, least });
        report
    };
    told("IO31", Severity::Note, uneven(1 << 20), uneven((1 << 30) - 5));
}

#[test]
fn the_worst_comes_first() {
    let report = Report {
        partial: vec!["POSIX".to_owned()],
        files_in_order: Some(1.0),
        ..with(quiet(), Format::Hdf5, |group| group.reads = 1 << 20)
    };
    let all: Vec<(&str, Severity)> = findings(&report).iter().map(|finding| (finding.code, finding.severity)).collect();
    assert_eq!(all, [("IO01", Severity::High), ("IO17", Severity::Warning), ("IO09", Severity::Note)]);
    assert_eq!(report.role(Role::Data).unwrap().reads, 1 << 20);
}
