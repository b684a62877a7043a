//! I/O and compute: what is not hidden, what waits, and how many readers work at once.

use super::words::{bytes, percent, seconds};
use super::{Finding, Severity, at_stake, in_the_run, named, share_of, stake_share};
use crate::analysis::{Format, Role};
use crate::merge::Part;
use crate::report::{Burst, Report};

fn whole(report: &Report) -> Option<Part> {
    report.pipeline.as_ref()?.whole.filter(|whole| whole.seconds > 0.0 && whole.io > 0.0)
}

fn evidence(whole: &Part) -> String {
    format!(
        "in {} that the profile covers: {} in I/O, {} of it hidden behind compute, {} exposed ({} of the time)",
        seconds(whole.seconds),
        seconds(whole.io),
        percent(whole.hidden / whole.io),
        seconds(whole.exposed),
        percent(whole.share(whole.exposed))
    )
}

const PREFETCH: [&str; 3] = [
    "PyTorch: DataLoader(num_workers=4, prefetch_factor=4, persistent_workers=True, pin_memory=True)",
    "TensorFlow: end the pipeline with .prefetch(tf.data.AUTOTUNE), read with num_parallel_reads",
    "read the next batch in a thread while this one computes, where the loader is your own",
];

pub(super) fn not_overlapped(report: &Report) -> Option<Finding> {
    let whole = whole(report)?;
    (whole.share(whole.io) >= 0.05 && whole.compute > 0.0 && whole.hidden < 0.2 * whole.io).then(|| {
        Finding::new(
            "IO11",
            if whole.share(whole.exposed) >= 0.1 { Severity::High } else { Severity::Warning },
            "reading and computing take turns",
            "the next batch is read only when the one before was computed: devices wait for files, files for devices",
        )
        .because(evidence(&whole))
        .saving(at_stake(report).min(in_the_run(report, whole.compute)))
        .by(&PREFETCH)
    })
}

pub(super) fn exposed(report: &Report) -> Option<Finding> {
    let whole = whole(report)?;
    (whole.share(whole.exposed) >= 0.1 && whole.hidden >= 0.2 * whole.io).then(|| {
        Finding::new(
            "IO12",
            if whole.share(whole.exposed) >= 0.25 { Severity::High } else { Severity::Warning },
            "compute does not hide all of the I/O",
            "reading is slower than computing: prefetching helps only until its buffer is empty",
        )
        .because(evidence(&whole))
        .saving(at_stake(report))
        .by(&[
            "more readers at once: num_workers, num_parallel_reads, until the bandwidth no longer grows",
            "fewer bytes: compress, crop or down-sample when the data are written, cast to the type that is trained with",
            "nearer data: copy them to a local disk or cache them in memory in the first epoch",
        ])
    })
}

pub(super) fn input_bound(report: &Report) -> Option<Finding> {
    let pipeline = report.pipeline.as_ref()?;
    let share = pipeline.loading_share.filter(|share| *share >= 0.1)?;
    let mut finding = Finding::new(
        "IO13",
        if share >= 0.25 { Severity::High } else { Severity::Warning },
        "steps wait for the input pipeline",
        "the time is spent before the step can begin: in reading, decoding, or handing over of batches",
    )
    .because(format!("{} of the steps' time is waiting for data", percent(share)));
    if let Some(whole) = whole(report) {
        // Waiting without I/O is decoding.
        let in_io = whole.share(whole.exposed);
        finding = finding
            .because(format!("{} of the time is exposed I/O; the rest of the waiting is preparation", percent(in_io)));
    }
    Some(finding.saving(in_the_run(report, share * pipeline.steps_seconds)).by(&PREFETCH))
}

pub(super) fn too_few_readers(report: &Report) -> Option<Finding> {
    let read = &report.layer("POSIX")?.read;
    let in_flight = read.in_flight?;
    // What ranks of one program do at once says nothing of how many readers each of them has.
    let in_flight = match report.job.trainers {
        ..=1 => in_flight,
        _ => report.layer("POSIX")?.in_flight_of_rank?,
    };
    let each = if report.job.trainers > 1 { " by a rank" } else { "" };
    let busiest = report.role(Role::Data)?;
    let matters = stake_share(report) * share_of(report, busiest.read_time) >= 0.1;
    (matters && in_flight < 1.5 && read.requests > 100).then(|| {
        Finding::new(
            "IO14",
            Severity::Warning,
            "hardly ever more than one read is under way",
            "one reader at a time gets the latency of the file system, not its bandwidth",
        )
        .because(format!(
            "{in_flight:.2} reads under way{each} on average while any is; {}/s",
            bytes(read.bandwidth.unwrap_or(0.0))
        ))
        .saving(at_stake(report) * share_of(report, busiest.read_time) * 0.5)
        .by(&[
            "PyTorch: DataLoader(num_workers=N): begin with 4 for each device",
            "TensorFlow: num_parallel_reads and num_parallel_calls = tf.data.AUTOTUNE; interleave several files",
        ])
    })
}

pub(super) fn too_many_readers(report: &Report) -> Option<Finding> {
    let read = &report.layer("POSIX")?.read;
    let (in_flight, latency) = (read.in_flight?, read.latency?);
    // Workers of a data loader are processes too: what counts is how many reads each of those causes that train.
    let each = in_flight / report.job.trainers.max(1) as f64;
    (each >= 8.0 && latency.p99 >= 20.0 * latency.p50 && latency.p99 >= 0.05 && read.requests > 1000).then(
        || {
            Finding::new(
            "IO15",
            Severity::Warning,
            "so many reads are under way that they hold each other up",
            "beyond what the file system can do at once, more readers only make each other wait",
        )
        .because(format!(
            "{each:.1} reads under way for each process that trains; latency {} in the middle, {} for the slowest hundredth",
            seconds(latency.p50),
            seconds(latency.p99)
        ))
        .by(&["halve num_workers or num_parallel_reads and compare: tulpar io compare before.darshan after.darshan"])
        },
    )
}

pub(super) fn checkpoint_stalls(report: &Report) -> Option<Finding> {
    let run = report.job.run_time;
    let group = report.role(Role::Checkpoint).filter(|group| group.bytes_written > 0)?;
    let writing: f64 = report.checkpoints.iter().map(|burst| burst.writing).sum();
    // Without a trace of them (STDIO has none) the time of all writers is known, and mostly there is one.
    let (time, how) = if writing > 0.0 {
        // What computes meanwhile does not stand still.
        let stalled = |burst: &Burst| burst.exposed.unwrap_or(burst.writing);
        let longest = report.checkpoints.iter().map(stalled).fold(0.0, f64::max);
        let traced = report.checkpoints.iter().map(stalled).sum();
        (traced, format!("{} times, {} at the longest", report.checkpoints.len(), seconds(longest)))
    } else {
        (group.write_time, "summed over the ranks that write".to_owned())
    };
    (run > 0.0 && time / run >= 0.05).then(|| {
        Finding::new(
            "IO16",
            if time / run >= 0.15 { Severity::High } else { Severity::Warning },
            "training stands still while checkpoints are written",
            "a checkpoint is written by the process that trains, to a file system that is far away",
        )
        .because(format!(
            "{} for {} in {} files ({}); {} of the run; {}",
            seconds(time),
            bytes(group.bytes_written as f64),
            group.files,
            how,
            percent(time / run),
            rate(group.bytes_written as f64, time)
        ))
        .saving(time * 0.8)
        .by(&[
            "write in the background: torch.distributed.checkpoint.async_save, or a copy in memory and a thread",
            "write to the local disk of the node and copy away from there",
            "write less often, and only what is needed to go on",
        ])
        .on(named(report, |file| file.format == Format::Checkpoint && file.bytes_written > 0))
    })
}

fn rate(amount: f64, time: f64) -> String {
    if time > 0.0 { format!("{}/s", bytes(amount / time)) } else { String::new() }
}
