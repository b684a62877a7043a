//! What reports say of logs: tables, sharing, order, parts, two jobs side by side; on logs made of literal numbers.

use tulpar_trace::analysis::Role;
use tulpar_trace::collect;
use tulpar_trace::darshan::JobSet;
use tulpar_trace::report::{Comparison, Report, Wanted};

use crate::generator::Recipe;
use crate::harness::fixtures;

type Reads<'a> = &'a [(i64, i64, f64, f64, i64)];

fn log(names: &[(u64, &'static str)], traces: &[(i64, i64, Reads<'_>)]) -> tempfile::NamedTempFile {
    let mut recipe = Recipe::new("3.41");
    recipe.names = names.to_vec();
    let bytes: Vec<u8> =
        traces.iter().flat_map(|(id, rank, reads)| recipe.trace((*id, *rank), false, &[], reads)).collect();
    recipe.modules = vec![(10, 1, bytes)];
    let file = tempfile::Builder::new().suffix(".darshan").tempfile().unwrap();
    std::fs::write(file.path(), recipe.build()).unwrap();
    file
}

fn report(file: &tempfile::NamedTempFile, wanted: &Wanted) -> Report {
    Report::of(&JobSet::one(file.path()).unwrap(), wanted).unwrap()
}

#[test]
fn bytes_that_several_ranks_read_are_told_from_those_read_again() {
    let names = [(7, "/data/a.tfrecord"), (8, "/data/b.tfrecord"), (9, "/data/c.npy")];
    let whole: Reads<'_> = &[(0, 1000, 1.0, 2.0, 0)];
    let twice: Reads<'_> = &[(0, 1000, 1.0, 2.0, 0), (0, 1000, 3.0, 4.0, 0)];
    let half: Reads<'_> = &[(500, 500, 1.0, 2.0, 0)];
    let file = log(&names, &[(7, 0, whole), (7, 1, whole), (8, 0, twice), (9, 0, whole), (9, 1, half)]);
    let report = report(&file, &Wanted::default());
    let figures = |name: &str| {
        let file = report.files.iter().find(|file| file.name.ends_with(name)).unwrap();
        (file.unique_bytes, file.readers_per_byte)
    };
    assert_eq!(figures("a.tfrecord"), (Some(1000.0), Some(2.0)));
    assert_eq!(figures("b.tfrecord"), (Some(1000.0), Some(1.0)));
    assert_eq!(figures("c.npy"), (Some(1000.0), Some(1.5)));
    // 1000 + 1000 of a and 2000 of b, of 2000 bytes that are different.
    let group = report.formats.iter().find(|group| group.name == "TFRecord").unwrap();
    assert_eq!((group.files, group.unique_bytes, group.readers_per_byte), (2, 2000.0, Some(1.5)));
}

#[test]
fn a_part_of_a_job_can_be_asked_for() {
    let names = [(7, "/data/a.h5"), (8, "/log/b.txt")];
    let file = log(
        &names,
        &[(7, 0, &[(0, 1000, 1.0, 2.0, 0)]), (7, 1, &[(0, 500, 2.0, 3.0, 0)]), (8, 0, &[(0, 9, 5.0, 6.0, 0)])],
    );
    let seconds = |wanted: &Wanted| report(&file, wanted).io.unwrap().overall;
    let mut wanted = Wanted::default();
    assert_eq!(seconds(&wanted), 3.0);
    wanted.part.files = Some(collect::pattern("/data/*.h5").unwrap());
    assert_eq!(seconds(&wanted), 2.0);
    wanted.part.ranks = Some([1].into());
    assert_eq!(seconds(&wanted), 1.0);
    wanted.part.bin = Some(0.5);
    let map = report(&file, &wanted).ranks_over_time;
    // 100.5 s in bins of half a second; the only read lies in the fifth and sixth.
    assert_eq!(map.bins(), 201);
    assert!((map.bin_width - 0.5).abs() < 1e-9);
    let filled: Vec<usize> = (0..201).filter(|bin| map.rows[0].read[*bin] > 0.0).collect();
    assert_eq!(filled, [4, 5]);
}

#[test]
fn files_over_time_are_those_with_the_most_bytes_in_the_bins_that_were_asked_for() {
    // The largest file comes last, after more files than have timelines.
    let names: Vec<(u64, &'static str)> = vec![(9999, "/data/large.bin")];
    let small: Reads<'_> = &[(0, 10, 1.0, 2.0, 0)];
    let mut traces: Vec<(i64, i64, Reads<'_>)> = (1..3000).map(|id| (id, 0, small)).collect();
    traces.push((9999, 0, &[(0, 1_000_000, 50.0, 50.2, 0)]));
    let mut wanted = Wanted::default();
    wanted.part.bin = Some(0.5);
    let report = report(&log(&names, &traces), &wanted);
    let map = &report.files_over_time;
    assert!((map.bin_width - 0.5).abs() < 1e-9 && map.bins() == 201, "{} {}", map.bin_width, map.bins());
    let row = map.rows.iter().find(|row| row.name == "/data/large.bin").unwrap();
    assert_eq!(row.read[100], 1_000_000.0);
    assert_eq!(map.left_out, 3000 - map.rows.len());
}

#[test]
fn files_whose_names_say_nothing_are_data_where_they_are_read() {
    let names = [(7, "/data/tokens.bin"), (8, "/out/state.dat"), (9, "/data/a.npz")];
    let mut recipe = Recipe::new("3.41");
    recipe.names = names.to_vec();
    let read = [(0, 1000, 1.0, 2.0, 0)];
    let traces = [
        recipe.trace((7, 0), false, &[], &read),
        recipe.trace((8, 0), false, &[(0, 5000, 1.0, 2.0, 0)], &read),
        recipe.trace((9, 0), false, &[], &read),
    ];
    recipe.modules = vec![(10, 1, traces.concat())];
    let file = tempfile::Builder::new().suffix(".darshan").tempfile().unwrap();
    std::fs::write(file.path(), recipe.build()).unwrap();
    let report = report(&file, &Wanted::default());
    let files = |role| report.role(role).map_or(0, |group| group.files);
    assert_eq!((files(Role::Data), files(Role::Other)), (2, 1));
}

#[test]
fn the_same_log_gives_the_same_report() {
    let Some(folder) = fixtures("darshan") else { return };
    let mut paths = crate::harness::files(&folder, ".darshan");
    paths.retain(|path| path.to_string_lossy().contains("sharma6_python"));
    let text = || {
        let (sets, _) = JobSet::group(&paths);
        serde_json::to_string(&Report::of(&sets[0], &Wanted::default()).unwrap()).unwrap()
    };
    let first = text();
    assert!((0..3).all(|_| text() == first));
}

#[test]
fn the_order_of_files_shows_whether_they_were_shuffled() {
    const NAMES: [&str; 4] = ["/d/a.npz", "/d/b.npz", "/d/c.npz", "/d/d.npz"];
    let names: Vec<(u64, &'static str)> =
        NAMES.iter().enumerate().map(|(index, name)| (index as u64 + 1, *name)).collect();
    let in_order = |starts: [f64; 4]| {
        let reads: Vec<Vec<_>> = starts.iter().map(|start| vec![(0, 10, *start, start + 0.1, 0)]).collect();
        let traces: Vec<(i64, i64, Reads<'_>)> =
            reads.iter().enumerate().map(|(index, reads)| (index as i64 + 1, 0, &reads[..])).collect();
        report(&log(&names, &traces), &Wanted::default()).files_in_order
    };
    assert_eq!(in_order([1.0, 2.0, 3.0, 4.0]), Some(1.0));
    assert_eq!(in_order([3.0, 4.0, 1.0, 2.0]), Some(2.0 / 3.0));
    assert_eq!(in_order([4.0, 3.0, 2.0, 1.0]), Some(0.0));
}

#[test]
fn samples_are_counted_where_the_files_are_at_hand() {
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("x.tfrecord");
    let mut bytes = Vec::new();
    for length in [5u64, 0, 300] {
        bytes.extend(length.to_le_bytes());
        bytes.extend(vec![0; 4 + length as usize + 4]);
    }
    std::fs::write(&records, &bytes).unwrap();
    let array = folder.path().join("y.npy");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (42, 3), }";
    let mut text = b"\x93NUMPY\x01\x00".to_vec();
    text.extend((header.len() as u16).to_le_bytes());
    text.extend(header.as_bytes());
    std::fs::write(&array, text).unwrap();
    let leak = |path: &std::path::Path| -> &'static str { Box::leak(path.display().to_string().into_boxed_str()) };
    let names = [(7, leak(&records)), (8, leak(&array)), (9, "/nowhere/z.jpg")];
    let read: Reads<'_> = &[(0, 10, 1.0, 2.0, 0)];
    let file = log(&names, &[(7, 0, read), (8, 0, read), (9, 0, read)]);
    let samples = |look| -> Vec<Option<u64>> {
        let report = report(&file, &Wanted { look, ..Wanted::default() });
        let mut files = report.files;
        files.sort_by(|a, b| a.name.rsplit('/').next().cmp(&b.name.rsplit('/').next()));
        files.iter().map(|file| file.samples).collect()
    };
    assert_eq!(samples(true), [Some(3), Some(42), Some(1)]);
    assert_eq!(samples(false), [None, None, Some(1)]);
}

#[test]
fn two_jobs_side_by_side_show_what_changed() {
    let names = [(7, "/data/a.tfrecord")];
    let before = report(&log(&names, &[(7, 0, &[(0, 1000, 0.0, 4.0, 0)])]), &Wanted::default());
    let mut after = report(&log(&names, &[(7, 0, &[(0, 1000, 0.0, 1.0, 0)])]), &Wanted::default());
    after.partial.push("DXT_POSIX".to_owned());
    after.findings = tulpar_trace::find::findings(&after);
    let comparison = Comparison::of(&before, &after);
    let ratio = |what: &str| comparison.figures.iter().find(|figure| figure.what == what).unwrap().ratio;
    assert_eq!((ratio("time in I/O"), ratio("read bandwidth"), ratio("bytes written")), (Some(0.25), Some(4.0), None));
    assert!(comparison.new.iter().any(|finding| finding.code == "IO17"));
    assert!(!comparison.gone.iter().any(|finding| finding.code == "IO17"));
}

#[test]
fn logs_are_found_in_folders_and_by_patterns() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.darshan", "b.darshan", "c.txt", "deep/d.darshan"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let names = |path: &str| -> Vec<String> {
        let found = collect::logs(&[folder.path().join(path)]).unwrap();
        found.iter().map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string()).collect()
    };
    assert_eq!(names(""), ["a.darshan", "b.darshan", "deep/d.darshan"]);
    assert_eq!(names("*.darshan"), ["a.darshan", "b.darshan"]);
    assert_eq!(names("**/*.darshan"), ["a.darshan", "b.darshan", "deep/d.darshan"]);
    assert_eq!(names("c.txt"), ["c.txt"]);
    let error = collect::logs(&[folder.path().join("x*")]).unwrap_err().to_string();
    assert!(error.starts_with("no Darshan log (*.darshan) in "), "{error}");
    assert!(collect::logs(&[folder.path().join("gone.darshan")]).is_err());
}

#[test]
fn a_log_with_only_a_heat_map_has_a_timeline() {
    let Some(folder) = fixtures("darshan") else { return };
    let set = JobSet::one(&folder.join("e3sm_io_heatmap_only.darshan")).unwrap();
    let report = Report::of(&set, &Wanted::default()).unwrap();
    let moved: f64 = report.ranks_over_time.rows.iter().flat_map(|row| row.read.iter().chain(&row.written)).sum();
    assert!(moved > 1e9, "{moved}");
}

#[test]
fn the_cosmic_tagger_is_told_what_vanidl_left_to_people() {
    let Some(folder) = fixtures("darshan") else { return };
    let set = JobSet::one(&folder.join("vanidl_test_cosmictagger.darshan")).unwrap();
    let report = Report::of(&set, &Wanted::default()).unwrap();
    let codes: Vec<&str> = report.findings.iter().map(|finding| finding.code).collect();
    // Reads of a few kB from HDF5, on ranks that all read the same file, one of them much longer than the others.
    for code in ["IO01", "IO26"] {
        assert!(codes.contains(&code), "{code} is not in {codes:?}");
    }
}

#[test]
fn ranks_that_do_no_io_count_in_the_mean() {
    // The job has four ranks, of which one reads for 60 of 100.5 s.
    let file = log(&[(7, "/data/a.npz")], &[(7, 0, &[(0, 1000, 1.0, 61.0, 0)])]);
    let report = report(&file, &Wanted::default());
    assert_eq!(report.job.trainers, 4);
    assert_eq!(report.io.as_ref().unwrap().mean_rank, 15.0);
    assert!(report.findings.iter().any(|finding| finding.code == "IO26"), "{:?}", report.findings);
}

#[test]
fn sizes_of_requests_have_a_least_a_median_and_a_greatest() {
    let reads: Vec<_> = [100, 4096, 4096, 4096, 1 << 20].map(|length| (0, length, 1.0, 2.0, 0)).to_vec();
    let report = report(&log(&[(7, "/data/a.npz")], &[(7, 0, &reads)]), &Wanted::default());
    let read = &report.layer("POSIX").unwrap().read;
    assert_eq!((read.least, read.median, read.greatest), (Some(100), Some(4096), Some(1 << 20)));
}
