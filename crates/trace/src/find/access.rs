//! Sizes and order of requests.

use super::words::{bytes, count, percent, seconds};
use super::{Finding, Severity, at_stake, by_stake, format, named, share_of};
use crate::analysis::{Format, Role};
use crate::report::{Group, Report};

/// Fewer requests than this never matter.
const MANY: u64 = 1000;
/// What a request should move.
const GOOD_REQUEST: f64 = (1 << 20) as f64;
/// Below this, latency is nearly all of a request's time.
const SMALL_MEAN: f64 = (128 << 10) as f64;

/// What is left when the same bytes come in good requests: their number falls, and with it the time spent in latency.
fn saved_by_larger(report: &Report, group: &Group) -> f64 {
    let after = (group.bytes_read as f64 / GOOD_REQUEST).max(1.0) / group.reads.max(1) as f64;
    at_stake(report) * share_of(report, group.read_time) * (1.0 - after.clamp(0.05, 1.0))
}

fn sizes(group: &Group) -> String {
    format!(
        "{} reads of {} on average, {} of them of at most 1 MiB; {} over all ranks",
        count(group.reads),
        bytes(group.mean_read()),
        percent(group.small_reads as f64 / group.reads.max(1) as f64),
        seconds(group.read_time)
    )
}

fn is_small(group: &Group, mean: f64) -> bool {
    group.reads > MANY && group.mean_read() < mean
}

pub(super) fn small_hdf5_reads(report: &Report) -> Option<Finding> {
    let group = format(report, Format::Hdf5).filter(|group| is_small(group, SMALL_MEAN))?;
    Some(
        Finding::new(
            "IO01",
            by_stake(report, group.read_time, Severity::High),
            "HDF5 files are read in small pieces",
            "HDF5 reads one chunk, and one block of its index, at a time: with small chunks nearly all time is latency",
        )
        .because(sizes(group))
        .saving(saved_by_larger(report, group))
        .by(&[
            "make chunks of about 1 MiB that hold whole samples: h5repack -l DATASET:CHUNK=… old.h5 new.h5",
            "read several samples with one call (dataset[i:i+n]), not one each",
            "give the chunk cache room: h5py.File(path, rdcc_nbytes=256*2**20, rdcc_nslots=100003)",
        ])
        .on(named(report, |file| file.format == Format::Hdf5 && file.reads > 0)),
    )
}

/// Needs Darshan's HDF5 module, which counts what the program asked for.
pub(super) fn amplified_hdf5_reads(report: &Report) -> Option<Finding> {
    let group = format(report, Format::Hdf5)?;
    let asked = report.totals.dataset_bytes_read as f64;
    let factor = group.bytes_read as f64 / asked;
    (asked > 1e6 && factor >= 2.0).then(|| {
        Finding::new(
            "IO02",
            by_stake(report, group.read_time, Severity::High),
            format!("HDF5 reads {factor:.1} times what the program asks for"),
            "a chunk is read whole, however little of it is wanted, and again when it has left the chunk cache",
        )
        .because(format!("the program asked for {}, HDF5 read {}", bytes(asked), bytes(group.bytes_read as f64)))
        .saving(at_stake(report) * share_of(report, group.read_time) * (1.0 - 1.0 / factor))
        .by(&[
            "cut chunks the way samples are read: one or a few whole samples a chunk",
            "make the chunk cache hold the chunks that are in use: rdcc_nbytes of h5py.File",
        ])
        .on(named(report, |file| file.format == Format::Hdf5 && file.reads > 0))
    })
}

pub(super) fn small_npz_reads(report: &Report) -> Option<Finding> {
    let group = format(report, Format::Npz).filter(|group| is_small(group, SMALL_MEAN))?;
    Some(
        Finding::new(
            "IO03",
            by_stake(report, group.read_time, Severity::Warning),
            "NPZ files are read in small pieces",
            "an NPZ is a zip archive: its index and every array are read, checked and unpacked piece by piece, on one core",
        )
        .because(sizes(group))
        .saving(saved_by_larger(report, group))
        .by(&[
            "store arrays as NPY and map them: numpy.load(path, mmap_mode='r')",
            "pack many small arrays into one HDF5, Zarr or TFRecord file with chunks of about 1 MiB",
        ])
        .on(named(report, |file| file.format == Format::Npz && file.reads > 0)),
    )
}

pub(super) fn default_tfrecord_buffer(report: &Report) -> Option<Finding> {
    let group = format(report, Format::TfRecord)?;
    let mean = group.mean_read();
    // TensorFlow reads 256 KiB at a time unless told otherwise; a file's last read is shorter.
    (group.reads > MANY && (150_000.0..=262_144.0).contains(&mean)).then(|| {
        Finding::new(
            "IO04",
            by_stake(report, group.read_time, Severity::Warning),
            "TFRecord files are read with the default buffer of 256 KiB",
            "each read waits for the one before: larger ones move more bytes for the same latency",
        )
        .because(sizes(group))
        .saving(at_stake(report) * share_of(report, group.read_time) * 0.5)
        .by(&[
            "tf.data.TFRecordDataset(files, buffer_size=8 << 20, num_parallel_reads=tf.data.AUTOTUNE)",
            "interleave files: files.interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE)",
        ])
        .on(named(report, |file| file.format == Format::TfRecord && file.reads > 0))
    })
}

pub(super) fn small_reads(report: &Report) -> Option<Finding> {
    let told = [Format::Hdf5, Format::Npz].map(Format::name);
    let group = report
        .formats
        .iter()
        .filter(|group| matches!(group.role, Role::Data | Role::Other | Role::Checkpoint))
        .filter(|group| !told.contains(&&*group.name) && is_small(group, SMALL_MEAN))
        .filter(|group| group.small_reads as f64 > 0.1 * group.reads as f64 || group.small_reads == 0)
        // Images and the like are small because they are: packing them is another finding.
        .filter(|group| group.reads > 4 * group.files as u64)
        .max_by(|a, b| a.read_time.total_cmp(&b.read_time))?;
    Some(
        Finding::new(
            "IO05",
            by_stake(report, group.read_time, Severity::High),
            format!("files are read in small pieces ({})", group.name),
            "every request pays the latency of the file system, whatever it moves: from about 1 MiB on the bytes dominate",
        )
        .because(sizes(group))
        .saving(saved_by_larger(report, group))
        .by(&[
            "read ahead in large blocks: open(path, 'rb', buffering=4 << 20), or a buffer_size where the reader has one",
            "read whole batches with one call instead of one sample after the other",
        ])
        .on(named(report, |file| file.format.name() == group.name && file.reads > 0)),
    )
}

pub(super) fn small_writes(report: &Report) -> Option<Finding> {
    let (mut writes, mut small, mut written, mut time) = (0u64, 0u64, 0i64, 0.0);
    for group in report.roles.iter().filter(|group| group.role != Role::Log) {
        writes = writes.saturating_add(group.writes);
        small = small.saturating_add(group.small_writes);
        written = written.saturating_add(group.bytes_written);
        time += group.write_time;
    }
    let mean = written as f64 / writes.max(1) as f64;
    (small > MANY && small as f64 > 0.1 * writes as f64 && mean < SMALL_MEAN).then(|| {
        let after = (written as f64 / GOOD_REQUEST).max(1.0) / writes as f64;
        Finding::new(
            "IO06",
            by_stake(report, time, Severity::High),
            "files are written in small pieces",
            "every write pays the latency of the file system, and small ones cannot be spread over its servers",
        )
        .because(format!(
            "{} writes of {} on average, {} of them of at most 1 MiB; {} over all ranks",
            count(writes),
            bytes(mean),
            percent(small as f64 / writes as f64),
            seconds(time)
        ))
        .saving(at_stake(report) * share_of(report, time) * (1.0 - after.clamp(0.05, 1.0)))
        .by(&[
            "collect in memory and write at once: open(path, 'wb', buffering=8 << 20), or io.BytesIO first",
            "write logs less often, and to a local disk",
        ])
        .on(named(report, |file| {
            file.writes > 100 && file.bytes_written < (file.writes as i64).saturating_mul(1 << 17)
        }))
    })
}

/// Of one file, so that the finding says which.
pub(super) fn random_over_stripes(report: &Report) -> Option<Finding> {
    let scattered = |file: &&crate::report::FileReport| {
        file.stripes > 1 && file.reads > MANY && file.random_reads as f64 > 0.2 * file.reads as f64
    };
    let file = report.files.iter().filter(scattered).max_by(|a, b| a.read_time.total_cmp(&b.read_time))?;
    Some(
        Finding::new(
            "IO07",
            by_stake(report, file.read_time, Severity::High),
            format!("a file striped over {} targets is read at random places", file.stripes),
            "each small read goes to another server, none of which can read ahead; locks and seeks take the time",
        )
        .because(format!(
            "{} of {} reads are at random places, of {} on average, {} over all ranks",
            percent(file.random_reads as f64 / file.reads as f64),
            count(file.reads),
            bytes(file.bytes_read as f64 / file.reads as f64),
            seconds(file.read_time)
        ))
        .saving(at_stake(report) * share_of(report, file.read_time) * 0.5)
        .by(&[
            "shuffle whole blocks instead of samples: read a large block, shuffle inside it",
            "copy the file to a local disk or to memory before training, if it fits",
            "for reads of a few kB one stripe is enough: lfs setstripe -c 1; many stripes are for large reads",
        ])
        .on(vec![file.name.clone()]),
    )
}

pub(super) fn random_reads(report: &Report) -> Option<Finding> {
    let group = report.role(Role::Data)?;
    let share = group.random_reads as f64 / group.reads.max(1) as f64;
    // The first read of a file is counted as random: files that are read at once are not.
    let scattered = group.random_reads.saturating_sub(group.opens.max(0).cast_unsigned());
    (share > 0.2 && scattered > MANY && random_over_stripes(report).is_none()).then(|| {
        Finding::new(
            "IO08",
            by_stake(report, group.read_time, Severity::Warning),
            "data are read at random places",
            "disks and servers read ahead for nothing; shuffling needs randomness between samples, not between requests",
        )
        .because(format!(
            "{} of {} reads of data are at random places; mean size {}",
            percent(share),
            count(group.reads),
            bytes(group.mean_read())
        ))
        .saving(at_stake(report) * share_of(report, group.read_time) * 0.3)
        .by(&[
            "shuffle the order of files, and samples inside a buffer in memory: dataset.shuffle(10_000)",
            "store the data in the order of access, or in shards that are read from beginning to end",
            "copy the data to a local SSD before training, if they fit",
        ])
        .on(named(report, |file| file.random_reads > MANY))
    })
}

pub(super) fn random_writes(report: &Report) -> Option<Finding> {
    let writes = &report.layer("POSIX")?.write;
    let time: f64 = report.roles.iter().map(|group| group.write_time).sum();
    let written = report.roles.iter().filter(|group| group.writes > 0);
    let files = written.fold(0i64, |files, group| files.saturating_add(group.opens.max(0)));
    // The first write of a file is counted as random.
    let scattered = writes.random.saturating_sub(files.cast_unsigned());
    let share = writes.random as f64 / writes.requests.max(1) as f64;
    (share > 0.2 && scattered > MANY).then(|| {
        Finding::new(
            "IO28",
            by_stake(report, time, Severity::Warning),
            "files are written at random places",
            "blocks that are written in part are read first, and servers cannot gather what does not come in order",
        )
        .because(format!("{} of {} writes are at random places", percent(share), count(writes.requests)))
        .saving(at_stake(report) * share_of(report, time) * 0.3)
        .by(&[
            "write records in the order of the file, or append and keep an index",
            "collect in memory and write whole blocks",
        ])
        .on(named(report, |file| file.writes > MANY))
    })
}

/// Where the file system's block is known: what begins inside one is read before it is written.
pub(super) fn not_aligned(report: &Report) -> Option<Finding> {
    let writes = &report.layer("POSIX")?.write;
    let all = report.layer("POSIX")?.read.requests.saturating_add(writes.requests);
    let share = report.totals.file_not_aligned as f64 / all.max(1) as f64;
    let time: f64 = report.roles.iter().map(|group| group.write_time).sum();
    // Reads come from memory and from read-ahead; where most requests are reads it is in the note on the kind of work.
    (share > 0.1 && writes.requests > MANY && writes.requests > all / 2).then(|| {
        Finding::new(
            "IO29",
            by_stake(report, time, Severity::Warning),
            "writes begin inside blocks of the file system",
            "a block that is written in part is read first and locked meanwhile, for others that write beside it too",
        )
        .because(format!("{} of requests begin at no multiple of the file system's block", percent(share)))
        .by(&[
            "HDF5: H5Pset_alignment, or h5py.File(path, 'w', alignment_threshold=…, alignment_interval=1 << 20)",
            "on Lustre, let the stripe be a multiple of what one call writes: lfs setstripe -S 4M",
        ])
    })
}

/// Of files that all ranks of an MPI program write or read.
pub(super) fn small_shared(report: &Report) -> Option<Finding> {
    let totals = &report.totals;
    let small = |small: u64, all: u64| small > MANY && small as f64 > 0.1 * all as f64;
    let reads = small(totals.shared_small_reads, totals.shared_reads);
    let writes = small(totals.shared_small_writes, totals.shared_writes);
    (report.job.processes >= 2 && (reads || writes)).then(|| {
        let mut finding = Finding::new(
            "IO30",
            by_stake(report, totals.shared_time, Severity::High),
            "ranks share files in small pieces",
            "small requests of many ranks to one file wait for its locks, one after the other",
        );
        let word = |word: &str, small: u64, all: u64| {
            format!("{} of {} {word} of shared files are of at most 1 MiB", count(small), count(all))
        };
        if reads {
            finding = finding.because(word("reads", totals.shared_small_reads, totals.shared_reads));
        }
        if writes {
            finding = finding.because(word("writes", totals.shared_small_writes, totals.shared_writes));
        }
        finding.by(&[
            "let MPI merge them: collective calls, MPI_File_write_all, or h5py with dataset.collective",
            "or a file for each rank or node, merged afterwards",
        ])
    })
}

pub(super) fn unshuffled(report: &Report) -> Option<Finding> {
    let order = report.files_in_order.filter(|order| *order >= 0.9)?;
    let group = report.role(Role::Data).filter(|group| group.files >= 8)?;
    Some(
        Finding::new(
            "IO09",
            Severity::Note,
            "shards are read in the order of their names",
            "samples that were stored together are seen together, in every epoch: training may suffer, and all ranks ask \
             the same servers at the same time",
        )
        .because(format!("{} of the {} data files were opened right after one that is before them by name", percent(order), group.files))
        .by(&[
            "tf.data.Dataset.list_files(pattern, shuffle=True), or shuffle the list of files every epoch",
            "if this was validation or inference, it is as it should be",
        ]),
    )
}

/// What Drishti says of the kind of work, in one note.
pub(super) fn character(report: &Report) -> Option<Finding> {
    let posix = report.layer("POSIX")?;
    let (reads, writes) = (posix.read.requests, posix.write.requests);
    let all = reads.saturating_add(writes);
    if all == 0 {
        return None;
    }
    let kind = |read: f64, written: f64| match (read - written) / (read + written).max(1.0) {
        difference if difference > 0.1 => "mostly reads",
        difference if difference < -0.1 => "mostly writes",
        _ => "reads and writes alike",
    };
    let order = |direction: &crate::report::DirectionReport| {
        let part = |count: u64| percent(count as f64 / direction.requests.max(1) as f64);
        format!(
            "{} consecutive, {} sequential, {} random",
            part(direction.consecutive),
            part(direction.sequential),
            part(direction.random)
        )
    };
    let mut finding = Finding::new(
        "IO10",
        Severity::Note,
        format!(
            "{} by requests, {} by bytes",
            kind(reads as f64, writes as f64),
            kind(posix.read.bytes as f64, posix.write.bytes as f64)
        ),
        "what kind of work this is decides which of the other findings matter",
    );
    if reads > 0 {
        finding = finding.because(format!("reads: {}", order(&posix.read)));
    }
    if writes > 0 {
        finding = finding.because(format!("writes: {}", order(&posix.write)));
    }
    let unaligned = report.totals.file_not_aligned as f64 / all as f64;
    if unaligned > 0.1 {
        finding = finding
            .because(format!("{} of requests begin at no multiple of the file system's block", percent(unaligned)));
    }
    Some(finding)
}
