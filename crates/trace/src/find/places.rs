//! Where files lie, how many they are, and how often they are opened and read.

use super::words::{bytes, count, percent, seconds};
use super::{Finding, Severity, at_stake, by_stake, format, named, share_of, stake_share};
use crate::analysis::{Format, Role};
use crate::report::Report;

/// Kinds of file systems behind a network, as the kernel calls them.
const REMOTE: [&str; 18] = [
    "lustre",
    "gpfs",
    "nfs",
    "nfs4",
    "beegfs",
    "ceph",
    "panfs",
    "cifs",
    "smb3",
    "wekafs",
    "fuse.sshfs",
    "orangefs",
    "dvs",
    "afs",
    "9p",
    "fuse.glusterfs",
    "fuse.ceph",
    "fuse.juicefs",
];
/// What fits into the memory or onto the disk of a node today.
const FITS: f64 = 64e9;

pub(super) fn incomplete(report: &Report) -> Option<Finding> {
    (!report.partial.is_empty()).then(|| {
        Finding::new(
            "IO17",
            Severity::Warning,
            format!("the trace is incomplete: {}", report.partial.join(", ")),
            "a fixed amount of room is kept for records, and these modules needed more: all figures are too low",
        )
        .because(format!("{} files and {} logs are known", count(report.files_total as u64), report.job.logs))
        .by(&[
            "give Darshan more: DARSHAN_MODMEM=64, and MAX_RECORDS 100000 POSIX,DXT_POSIX in the file of DARSHAN_CONFIG_PATH",
            "leave out what does not matter: NAME_EXCLUDE .pyc$,^/usr,^/proc * in the same file",
            "tulpar io record --trace keeps 4,194,304 requests of each process, and more with TULPAR_IO_SEGMENTS=20000000",
        ])
    })
}

pub(super) fn many_small_files(report: &Report) -> Option<Finding> {
    let group = report.role(Role::Data)?;
    let mean = group.unique_bytes / group.files.max(1) as f64;
    (group.files >= 1000 && group.unique_bytes > 0.0 && mean < 1e6).then(|| {
        let time = group.metadata_time + group.read_time;
        Finding::new(
            "IO18",
            by_stake(report, time, Severity::High),
            "the data are many small files",
            "opening and finding a file costs more than reading it: every sample asks the metadata server several times",
        )
        .because(format!("{} data files of {} on average", count(group.files as u64), bytes(mean)))
        .because(format!(
            "{:.1} metadata calls for each file, {} of the data files' time",
            group.metadata_calls as f64 / group.files as f64,
            percent(group.metadata_time / group.time().max(1e-12))
        ))
        .saving(at_stake(report) * share_of(report, time) * 0.7)
        .by(&[
            "pack samples into files of 100 MB and more: TFRecord, WebDataset (tar), HDF5, Zarr, Parquet",
            "or copy the data to a local disk as one archive before training",
        ])
    })
}

/// Calls that move nothing.
pub(super) fn metadata(report: &Report) -> Option<Finding> {
    let posix = report.layer("POSIX")?;
    let data = report.role(Role::Data)?;
    let per_rank = posix.metadata_time / report.job.processes.max(1) as f64;
    let run = report.job.run_time;
    let requests = data.reads.saturating_add(data.writes).max(1);
    let samples = data.samples.filter(|samples| *samples > 0 && data.samples_files == data.files);
    let per_sample = samples.map(|samples| data.metadata_calls as f64 / samples as f64);
    let storm = data.metadata_calls > 10_000 && data.metadata_calls.cast_unsigned() > requests.saturating_mul(2);
    (run > 0.0 && (per_rank / run >= 0.05 || per_rank >= 30.0 || storm)).then(|| {
        let mut finding = Finding::new(
            "IO19",
            if per_rank / run >= 0.1 {
                Severity::High
            } else {
                by_stake(report, data.metadata_time, Severity::Warning)
            },
            "metadata calls take the place of reading",
            "opens, stats and seeks move nothing, and on a parallel file system one server answers them for everybody",
        )
        .because(format!(
            "{} of metadata calls for each process on average ({} of the run)",
            seconds(per_rank),
            percent(per_rank / run)
        ))
        .because(format!(
            "data files: {} metadata calls for {} requests that move bytes",
            count(data.metadata_calls.max(0).cast_unsigned()),
            count(requests)
        ));
        if let Some(per_sample) = per_sample {
            finding = finding.because(format!("{per_sample:.1} metadata calls a sample"));
        }
        finding.saving(per_rank.min(at_stake(report).max(per_rank)) * 0.8).by(&[
            "open each file once and keep it open: one handle for each worker, not one for each sample",
            "list folders once and keep the list; do not ask for sizes and times of files again",
            "pack samples into fewer files",
        ])
    })
}

/// Every process of a Python program looks for its modules in every folder of its path.
pub(super) fn imports(report: &Report) -> Option<Finding> {
    let code = report.role(Role::Code)?;
    let remote = code.file_system.as_deref().is_some_and(is_remote);
    let processes = report.job.processes.max(1);
    let per_process = code.time() / processes as f64;
    let run = report.job.run_time;
    (code.metadata_calls > 10_000 && (per_process >= 0.02 * run || per_process >= 10.0)).then(|| {
        Finding::new(
            "IO20",
            if per_process >= 0.1 * run { Severity::High } else { Severity::Warning },
            "loading of code and libraries is slow",
            "each process asks for thousands of small files when it starts, all of them at once and of the same server",
        )
        .because(format!(
            "{} calls on {} files of code by {} processes, {} each",
            count(code.metadata_calls.max(0).cast_unsigned()),
            count(code.files as u64),
            processes,
            seconds(per_process)
        ))
        .because(if remote {
            "they lie on a network file system".to_owned()
        } else {
            "where they lie is not known".to_owned()
        })
        .saving(per_process * 0.8)
        .by(&[
            "put the environment into one file: a container image (Apptainer), or a squashfs",
            "copy the environment to the local disk of the node before the start",
        ])
    })
}

/// Whether a kind of file system is reached over a network.
pub fn is_remote(kind: &str) -> bool {
    REMOTE.contains(&kind)
}

pub(super) fn plain_and_remote(report: &Report) -> Option<Finding> {
    let group = [Format::Npy, Format::Text]
        .into_iter()
        .filter_map(|kind| format(report, kind))
        .max_by_key(|group| group.bytes_read)?;
    let kind = group.file_system.as_deref().filter(|kind| is_remote(kind))?;
    let matters = stake_share(report) * share_of(report, group.read_time) >= 0.1;
    // Small requests are not bound by the bytes.
    (matters && group.bytes_read >= 1 << 30 && group.mean_read() >= 256e3).then(|| {
        Finding::new(
            "IO21",
            Severity::Warning,
            "uncompressed data come over the network",
            "the bytes are what takes the time: a fast compressor halves them and unpacks faster than the network delivers",
        )
        .because(format!(
            "{} of {} from {kind} in requests of {}",
            bytes(group.bytes_read as f64),
            group.name,
            bytes(group.mean_read())
        ))
        .saving(at_stake(report) * share_of(report, group.read_time) * 0.4)
        .by(&[
            "store with a fast compressor: HDF5 or Zarr with Blosc/LZ4, TFRecord with ZLIB, Parquet with zstd",
            "store in the type that is trained with: float16 or uint8 instead of float64",
        ])
    })
}

pub(super) fn read_again(report: &Report) -> Option<Finding> {
    let group = report.role(Role::Data)?;
    // What several ranks read once each is no second epoch: that is another finding.
    let times = group.times_read? / group.readers_per_byte.unwrap_or(1.0).max(1.0);
    if times < 1.9 {
        return None;
    }
    let matters = stake_share(report) * share_of(report, group.read_time) >= 0.02;
    (matters && group.unique_bytes > 1e6 && group.unique_bytes <= FITS).then(|| {
        Finding::new(
            "IO22",
            if stake_share(report) >= 0.1 { Severity::High } else { Severity::Warning },
            format!("the same data are read {times:.1} times by those who read them, and would fit into memory"),
            "after the first epoch nothing new comes from the file system",
        )
        .because(format!(
            "{} read, of {} that are different",
            bytes(group.bytes_read as f64),
            bytes(group.unique_bytes)
        ))
        .saving(at_stake(report) * share_of(report, group.read_time) * (1.0 - 1.0 / times))
        .by(&[
            "TensorFlow: dataset.cache() after reading, or cache('/local/scratch/…')",
            "PyTorch: keep decoded samples in the dataset, with persistent_workers=True",
            "copy the data to the local disk of the node, or to /dev/shm, before the first epoch",
        ])
    })
}

pub(super) fn bulk_through_stdio(report: &Report) -> Option<Finding> {
    let stdio = report.layer("STDIO")?;
    let moved = stdio.read.bytes.saturating_add(stdio.write.bytes);
    let all = report.bytes_read.saturating_add(report.bytes_written).max(1);
    let requests = stdio.read.requests.saturating_add(stdio.write.requests).max(1);
    // stdio with large requests passes them on as they are.
    let mean = moved as f64 / requests as f64;
    (moved as f64 > 0.1 * all as f64 && moved > 100_000_000 && mean < 64e3).then(|| {
        let time = stdio.read_time + stdio.write_time;
        Finding::new(
            "IO23",
            by_stake(report, time, Severity::Warning),
            "much goes through the buffers of the C library",
            "stdio moves bytes in pieces of 4 KiB, each copied once more, and its requests are in no trace",
        )
        .because(format!("{} of {} through stdio, in calls of {}", bytes(moved as f64), bytes(all as f64), bytes(mean)))
        .by(&[
            "write through larger buffers: setvbuf(file, NULL, _IOFBF, 4 << 20), or pwrite",
            "use the format's own library for bulk data",
        ])
    })
}

pub(super) fn text_data(report: &Report) -> Option<Finding> {
    let group = format(report, Format::Text).filter(|group| group.bytes_read >= 100_000_000)?;
    Some(
        Finding::new(
            "IO24",
            by_stake(report, group.read_time, Severity::Warning),
            "data are read as text",
            "text is several times larger than the numbers in it, and is parsed again in every epoch",
        )
        .because(format!("{} of text in {} files", bytes(group.bytes_read as f64), group.files))
        .by(&["convert once: Parquet for tables, NPY, HDF5 or TFRecord for arrays"])
        .on(named(report, |file| file.format == Format::Text && file.reads > 0)),
    )
}
