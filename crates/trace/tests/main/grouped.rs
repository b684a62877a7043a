//! Which logs are of one job: by their numbers, their times, and who forked whom.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use tulpar_trace::darshan::write::Writer;
use tulpar_trace::darshan::{Job, JobSet};

use crate::harness::{files, fixtures};

/// A log of one process: its name, the number of its job, its parent, when it began and ended.
fn log(folder: &Path, name: &str, id: i64, fork_parent: Option<i64>, (start, end): (i64, i64)) -> PathBuf {
    let path = folder.join(name);
    let mut metadata = BTreeMap::from([("lib_ver".to_owned(), "3.5.0".to_owned())]);
    metadata.extend(fork_parent.map(|parent| ("fork_parent".to_owned(), parent.to_string())));
    let job = Job {
        uid: 1000,
        id,
        processes: 1,
        start_seconds: start,
        start_nanoseconds: 0,
        end_seconds: end,
        end_nanoseconds: 0,
        metadata,
        command: "python train.py".to_owned(),
        mounts: Vec::new(),
        coarse: false,
    };
    Writer::new(BufWriter::new(File::create(&path).unwrap()), &job).unwrap().finish(&[]).unwrap();
    path
}

/// The names of the logs of each job.
fn grouped(paths: &[PathBuf]) -> Vec<Vec<String>> {
    let (sets, failed) = JobSet::group(paths);
    assert!(failed.is_empty());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    sets.iter().map(|set| set.members.iter().map(|member| name(&member.path)).collect()).collect()
}

#[test]
fn workers_are_joined_to_the_process_that_forked_them() {
    let folder = tempfile::tempdir().unwrap();
    let one = |name, id, parent, times| log(folder.path(), name, id, parent, times);
    // Without a scheduler the number of a job is that of its process.
    let paths = [
        one("worker-1", 502, Some(500), (110, 180)),
        one("main", 500, None, (100, 200)),
        one("worker-2", 503, Some(500), (150, 190)),
        // A worker of a worker, and a program of the same time that has nothing to do with these.
        one("worker-3", 504, Some(503), (151, 160)),
        one("stranger", 900, None, (100, 200)),
        // The same process number, days later.
        one("later", 505, Some(500), (90_000, 90_010)),
    ];
    assert_eq!(grouped(&paths), [vec!["main", "worker-1", "worker-2", "worker-3"], vec!["stranger"], vec!["later"]]);
}

#[test]
fn workers_whose_parent_left_no_log_are_one_job() {
    let folder = tempfile::tempdir().unwrap();
    let one = |name, id, times| log(folder.path(), name, id, Some(500), times);
    let paths = [one("a", 501, (100, 200)), one("b", 502, (100, 200)), one("c", 503, (5000, 5100))];
    assert_eq!(grouped(&paths), [vec!["a", "b"], vec!["c"]]);
}

#[test]
fn the_same_number_at_another_time_is_another_job() {
    let folder = tempfile::tempdir().unwrap();
    let one = |name, times| log(folder.path(), name, 42, None, times);
    let paths = [
        one("first", (100, 200)),
        one("beside", (150, 250)),
        // It begins where the one before ended, and after a pause.
        one("next", (250, 300)),
        one("tomorrow", (90_000, 90_100)),
    ];
    assert_eq!(grouped(&paths), [vec!["first", "beside", "next"], vec!["tomorrow"]]);
}

#[test]
fn the_processes_of_a_training_that_started_one_after_the_other_stay_one_job() {
    let Some(folder) = fixtures("darshan") else { return };
    let mut paths = files(&folder, ".darshan");
    paths.retain(|path| path.to_string_lossy().contains("snyder_python3_id3116902"));
    let (sets, _) = JobSet::group(&paths);
    // All ran beside the first two, which ran longest.
    assert_eq!(sets.iter().map(|set| set.members.len()).collect::<Vec<_>>(), [12]);
}
