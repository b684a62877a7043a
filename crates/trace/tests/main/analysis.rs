//! The analysis against Darshan's own figures on real logs, and against sums that can be done by hand.

use std::io::Write;
use std::path::Path;

use serde_json::Value;
use tulpar_trace::analysis::{Analysis, ByRank, Category, Layer, Sizes, Uneven};
use tulpar_trace::darshan::JobSet;
use tulpar_trace::darshan::counters::posix;
use tulpar_trace::report::{Report, Wanted};

use crate::darshan_fixtures::PRE_RELEASE;
use crate::generator::Recipe;
use crate::harness::{files, fixtures, json, peak};

fn analyse(path: &Path) -> Analysis {
    Analysis::of(&JobSet::one(path).unwrap())
}

/// Darshan prints six decimals.
fn same(what: &str, ours: f64, theirs: &Value) {
    // MPI-IO knows no offsets, for which Darshan says -1; a figure that is not there was garbled in its output.
    let Some(theirs) = theirs.as_f64().map(|theirs| theirs.max(0.0)) else { return };
    assert!((ours - theirs).abs() <= 2e-6 + 1e-6 * theirs.abs(), "{what}: here {ours}, there {theirs}");
}

#[test]
fn performance_is_that_of_darshan_parser() {
    let Some(folder) = fixtures("darshan") else { return };
    let mut seen = 0;
    for (name, layers) in json(&folder.join("expected/_perf.json")).as_object().unwrap() {
        let path = folder.join(name);
        // Old big-endian logs: Darshan's own times are garbage there.
        if PRE_RELEASE.iter().any(|known| name.starts_with(known)) {
            continue;
        }
        if !path.exists() || name.contains("ppc64-3.0") || name.contains("ppc64-3.1") {
            continue;
        }
        let analysis = analyse(&path);
        for (layer, key) in [(Layer::Posix, "POSIX"), (Layer::MpiIo, "MPI-IO"), (Layer::Stdio, "STDIO")] {
            let Some(theirs) = layers.get(key) else { continue };
            // This log has a record with a negative time, which hides the others of its rank in Darshan's sum.
            if (name.as_str(), layer) == ("example.darshan", Layer::Stdio) {
                continue;
            }
            seen += 1;
            let ours = &analysis.performance[&layer];
            let what = format!("{name} {key}");
            same(&what, ours.total.bytes as f64, &theirs["total_bytes"]);
            same(&what, ours.shared_time, &theirs["shared files: time_by_slowest"]);
            let (_, metadata, transfer) = ours.slowest_rank().unwrap_or_default();
            same(&what, metadata + transfer, &theirs["unique files: slowest_rank_io_time"]);
            same(&what, metadata, &theirs["unique files: slowest_rank_meta_only_time"]);
            same(&what, transfer, &theirs["unique files: slowest_rank_rw_only_time"]);
            same(&what, ours.time(), &theirs["agg_time_by_slowest"]);
            same(&what, ours.bandwidth().unwrap_or(0.0), &theirs["agg_perf_by_slowest"]);
            let categories: [(&str, Category); 6] = [
                ("total", ours.total),
                ("read_only", ours.read_only),
                ("write_only", ours.write_only),
                ("read_write", ours.read_write),
                ("unique", ours.unique),
                ("shared", ours.shared),
            ];
            for (kind, category) in categories {
                let theirs = &theirs["files"][kind];
                same(&format!("{what} {kind} files"), category.files as f64, &theirs["count"]);
                same(&format!("{what} {kind} bytes"), category.bytes as f64, &theirs["total_bytes"]);
                // Theirs adds the greatest offset of files of some processes to that of files of all.
                if kind == "shared" {
                    continue;
                }
                same(&format!("{what} {kind} offset"), category.max_offset as f64, &theirs["max_offset"]);
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn traces_agree_with_counters() {
    let Some(folder) = fixtures("darshan/synthetic") else { return };
    for name in ["syn_zlib.darshan", "syn_bzip2.darshan", "syn_none.darshan", "syn_be.darshan"] {
        let analysis = analyse(&folder.join(name));
        let read = &analysis.traced[&Layer::Posix].read;
        assert_eq!((read.pattern.accesses, read.pattern.sequential), (1600, 1397));
        let mut counted = [0u64; 2];
        for row in analysis.files.rows.values() {
            counted[0] += row.posix.unwrap().reads.consecutive;
            counted[1] += row.posix.unwrap().bytes_read as u64;
        }
        assert_eq!([read.pattern.consecutive, read.bytes], counted);
        assert_eq!(read.sizes.requests.iter().sum::<u64>(), 1600);
        let spread: f64 = analysis.timeline.total().iter().map(|cell| cell[0]).sum();
        assert!((spread - read.bytes as f64).abs() < 1.0, "{spread}");
    }
}

#[test]
fn the_time_of_the_log_that_vanidl_got_wrong_is_right() {
    let Some(folder) = fixtures("darshan") else { return };
    let mut analysis = analyse(&folder.join("vanidl_test_cosmictagger.darshan"));
    let posix = &analysis.traced[&Layer::Posix];
    assert_eq!(posix.read.requests + posix.write.requests, 313_872);
    let sum = (posix.read.seconds + posix.write.seconds) / posix.ranks.len() as f64;
    // VaniDL says 46.40 s; the fact sheet's true mean is 16.12 s, without the few files that VaniDL leaves out.
    assert!((16.0..16.4).contains(&sum), "{sum}");
    let time = analysis.io_time().unwrap();
    assert!(time.mean(1) <= sum + 1e-9);
    let (slowest, seconds) = time.slowest().unwrap();
    assert_eq!(slowest, 0);
    assert!((35.0..41.0).contains(&seconds), "{seconds}");
    assert!(time.overall >= seconds && time.overall <= analysis.run_time);
}

fn written(recipe: &Recipe) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&recipe.build()).unwrap();
    file
}

#[test]
fn overlapping_requests_of_threads_files_and_layers_count_once() {
    let mut recipe = Recipe::new("3.41");
    let first = recipe.trace((7, 0), false, &[], &[(0, 1000, 1.0, 3.0, 0), (1000, 1000, 2.0, 4.0, 0)]);
    let second = recipe.trace((8, 0), false, &[(5, 100, 3.5, 5.0, 0)], &[]);
    let third = recipe.trace((7, 1), false, &[], &[(0, 500, 4.5, 6.5, 0)]);
    let above = recipe.trace((7, 0), false, &[], &[(0, 2000, 0.5, 4.0, 0)]);
    recipe.modules = vec![(10, 1, [first, second, third].concat()), (11, 2, above)];
    let file = written(&recipe);
    let mut analysis = analyse(file.path());
    assert!(analysis.damage.is_empty());
    let time = analysis.io_time().unwrap();
    assert_eq!(time.ranks.into_iter().collect::<Vec<_>>(), [(0, 4.5), (1, 2.0)]);
    assert_eq!(time.overall, 6.0);
    let posix = analysis.traced.get_mut(&Layer::Posix).unwrap();
    assert_eq!((posix.read.bytes, posix.write.bytes), (2500, 100));
    assert_eq!(posix.read.bandwidth(), Some(500.0));
    // A first access at the beginning is neither sequential nor consecutive; the one that follows it is both.
    let pattern = posix.read.pattern;
    assert_eq!((pattern.accesses, pattern.sequential, pattern.consecutive, pattern.random()), (3, 1, 1, 2));
    // The bytes of 1000 from 2 s to 4 s and of 500 from 4.5 s to 6.5 s are where their times are.
    let width = analysis.timeline.bin_width;
    let between = |from: f64, to: f64| -> f64 {
        let bins = analysis.timeline.total();
        bins.iter()
            .enumerate()
            .filter(|(bin, _)| (from..to).contains(&((*bin as f64 + 0.5) * width)))
            .map(|(_, cell)| cell[0])
            .sum()
    };
    assert!((between(0.0, 100.5) - 2500.0).abs() < 1e-6);
    assert!((between(4.2, 7.0) - 500.0).abs() < 1e-6);
}

#[test]
fn the_processes_of_one_job_are_analysed_as_one() {
    let Some(folder) = fixtures("darshan") else { return };
    let mut paths = files(&folder, ".darshan");
    paths.retain(|path| path.to_string_lossy().contains("sharma6_python"));
    let (sets, _) = JobSet::group(&paths);
    assert_eq!(sets.len(), 1);
    let together = Analysis::of(&sets[0]);
    assert!(together.damage.is_empty());
    assert_eq!(together.processes, 4);
    let apart: Vec<_> = paths.iter().map(|path| analyse(path)).collect();
    let sum = |pick: fn((i64, i64)) -> i64| apart.iter().map(|analysis| pick(analysis.bytes())).sum::<i64>();
    assert_eq!(together.bytes(), (sum(|bytes| bytes.0), sum(|bytes| bytes.1)));
    assert!(together.bytes().0 > 0);
    assert!(together.files.rows.values().all(|row| row.name.is_some()));
    let most = apart.iter().map(|analysis| analysis.files.rows.len()).max().unwrap();
    assert!(together.files.rows.len() >= most);
    // Every worker imports the same modules: files that several processes opened are seen as such.
    assert!(together.performance[&Layer::Posix].shared.files > 0);
}

#[test]
fn sizes_fall_into_the_buckets_of_darshan() {
    let buckets = [0, 100, 101, 1024, 1025, 10_240, 1 << 20, (1 << 20) + 1, 1 << 30, (1 << 30) + 1].map(Sizes::bucket);
    assert_eq!(buckets, [0, 0, 1, 1, 2, 2, 4, 5, 8, 9]);
}

#[test]
fn latencies_give_percentiles() {
    let mut recipe = Recipe::new("3.41");
    let reads: Vec<_> = (1..=1000).map(|index| (0, 1, 0.0, f64::from(index) * 1e-4, 0)).collect();
    recipe.modules = vec![(10, 1, recipe.trace((7, 0), false, &[], &reads))];
    let file = written(&recipe);
    let analysis = analyse(file.path());
    let latencies = &analysis.traced[&Layer::Posix].read.latencies;
    for (share, seconds) in [(0.5, 0.05), (0.95, 0.095), (0.99, 0.099), (1.0, 0.1)] {
        let ours = latencies.percentile(share).unwrap();
        assert!((ours / seconds - 1.0).abs() < 0.032, "{share}: {ours}");
    }
    assert_eq!(latencies.count(), 1000);
}

#[test]
fn segments_that_are_none_are_counted_and_left_out() {
    let mut recipe = Recipe::new("3.41");
    let reads =
        [(0, -5, 0.0, 1.0, 0), (0, 5, f64::NAN, 1.0, 0), (0, 5, 2.0, 1.0, 0), (i64::MAX, i64::MAX, 0.0, 1.0, 0)];
    recipe.modules = vec![(10, 1, recipe.trace((7, i64::MAX), false, &[], &reads))];
    let file = written(&recipe);
    let mut analysis = analyse(file.path());
    assert_eq!(analysis.traced[&Layer::Posix].nonsense, 3);
    let said: Vec<String> = analysis.damage.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["3 traced requests of POSIX: the data make no sense: their times or lengths cannot be"]);
    assert_eq!(analysis.io_time().unwrap().overall, 1.0);
}

#[test]
fn what_goes_through_daos_is_counted_and_what_is_not_looked_at_is_named() {
    let Some(folder) = fixtures("darshan") else { return };
    let name = "snyder_ior-DFS_id4681120-53379_5-8-15060-3270540599978592154_1.darshan";
    let analysis = analyse(&folder.join(name));
    // IOR moved 16 MiB each way, and POSIX saw nothing of it.
    let dfs: Vec<_> = analysis.files.rows.values().filter_map(|row| row.dfs).collect();
    let sum = |pick: fn(&tulpar_trace::analysis::Counts) -> i64| dfs.iter().map(pick).sum::<i64>();
    assert_eq!((sum(|counts| counts.bytes_read), sum(|counts| counts.bytes_written)), (16 << 20, 16 << 20));
    let (read, written) = analysis.bytes();
    assert!(read >= 16 << 20 && written >= 16 << 20, "{read} {written}");
    assert_eq!(analysis.unread.iter().map(|module| module.name()).collect::<Vec<_>>(), ["DAOS"]);
}

#[test]
fn a_small_log_of_many_ranks_and_files_takes_little_memory() {
    // Every trace is of another rank and another file, and they compress to nearly nothing.
    let mut recipe = Recipe::new("3.41");
    let mut bytes = Vec::new();
    for index in 0..120_000 {
        bytes.extend(recipe.trace((index, index), false, &[], &[(0, 1, 1.0, 2.0, 0)]));
    }
    recipe.modules = vec![(10, 1, bytes)];
    let file = written(&recipe);
    let size = file.as_file().metadata().unwrap().len();
    assert!(size < 1 << 20, "{size} bytes");
    let options = tulpar_trace::analysis::Options { bin: Some(1e-3), ..Default::default() };
    let (analysis, peak) = peak(|| Analysis::of_some(&JobSet::one(file.path()).unwrap(), &options));
    assert!(peak < 160 << 20, "{peak} bytes for a log of {size}");
    // Nothing is lost in the sums, and what is not apart is named.
    assert_eq!(analysis.bytes().0, 120_000);
    assert!(analysis.damage.iter().any(|damage| damage.part.contains("files of")), "{:?}", analysis.damage);
}

#[test]
fn what_ranks_moved_of_a_file_is_known_where_each_has_a_record() {
    let mut recipe = Recipe::new("3.41");
    let record = |rank: i64, read: i64| {
        let mut integers = [0; 69];
        integers[posix::BYTES_READ] = read;
        [recipe.words(&[7, rank]), recipe.words(&integers), recipe.floats(&[0.0; 17])].concat()
    };
    let records = [record(0, 64 << 20), record(1, 1 << 20), record(2, 48 << 20)].concat();
    recipe.modules = vec![(1, 4, records)];
    let file = written(&recipe);
    let row = analyse(file.path()).files.rows[&7].clone();
    assert_eq!(row.by_rank, Some(ByRank { ranks: 3, least: 1 << 20, most: 64 << 20 }));
    let report = Report::of(&JobSet::one(file.path()).unwrap(), &Wanted::default()).unwrap();
    assert_eq!(report.totals.uneven, Some(Uneven { file: 7, most: 64 << 20, least: 1 << 20 }));
    assert_eq!(report.totals.uneven_name.as_deref(), Some("/data/train/part-0.tfrecord"));
}

#[test]
fn names_that_cannot_be_read_are_named_as_such() {
    let recipe = Recipe { compression: 2, ..Recipe::new("3.41") };
    let mut bytes = recipe.build();
    // The names end without the NUL of the last one.
    let end = bytes.len() - 1;
    bytes[end] = b'x';
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    let damage = analyse(file.path()).damage;
    assert_eq!(damage.iter().map(|damage| damage.part.as_str()).collect::<Vec<_>>(), ["names of files"]);
}

#[test]
fn only_wanted_ranks_are_in_a_heat_map() {
    let Some(folder) = fixtures("darshan") else { return };
    let set = JobSet::one(&folder.join("e3sm_io_heatmap_only.darshan")).unwrap();
    let options = tulpar_trace::analysis::Options { ranks: Some([3].into()), ..Default::default() };
    let analysis = Analysis::of_some(&set, &options);
    assert!(analysis.timeline.rows().all(|(rank, _)| rank == 3));
}
