//! Findings: what in the figures of a job costs time, how much, why, and what to do. Every rule has a code that stays, is
//! silent where it does not apply, and says what its numbers are. Does not read logs.

mod access;
mod overlap;
mod places;
mod ranks;
mod words;

pub use places::is_remote;

pub use crate::finding::{Finding, Severity};

use crate::report::{Group, Report};

type Rule = fn(&Report) -> Option<Finding>;

/// All rules.
const RULES: [Rule; 31] = [
    places::incomplete,
    overlap::not_overlapped,
    overlap::exposed,
    overlap::input_bound,
    overlap::too_few_readers,
    overlap::too_many_readers,
    overlap::checkpoint_stalls,
    access::small_hdf5_reads,
    access::amplified_hdf5_reads,
    access::small_npz_reads,
    access::default_tfrecord_buffer,
    access::small_reads,
    access::small_writes,
    access::random_over_stripes,
    access::random_reads,
    access::random_writes,
    access::not_aligned,
    access::small_shared,
    access::unshuffled,
    access::character,
    places::many_small_files,
    places::metadata,
    places::imports,
    places::plain_and_remote,
    places::read_again,
    places::bulk_through_stdio,
    places::text_data,
    ranks::all_read_everything,
    ranks::imbalance,
    ranks::uneven_bytes,
    ranks::independent_mpi_io,
];

/// What is found, worst first, and by what it may save.
pub fn findings(report: &Report) -> Vec<Finding> {
    let mut found: Vec<Finding> = RULES.iter().filter_map(|rule| rule(report)).collect();
    let gain = |finding: &Finding| finding.gain.unwrap_or(0.0);
    found.sort_by(|a, b| a.severity.cmp(&b.severity).then(gain(b).total_cmp(&gain(a))).then(a.code.cmp(b.code)));
    found
}

/// Seconds of the run that better I/O could save at most: what is exposed where that is known, else all time in I/O.
fn at_stake(report: &Report) -> f64 {
    let io = report.io.as_ref().map(|io| io.overall);
    match report.pipeline.as_ref().and_then(|pipeline| pipeline.whole) {
        Some(whole) => in_the_run(report, whole.exposed).min(io.unwrap_or(f64::INFINITY)),
        None => io.unwrap_or(0.0),
    }
}

/// Seconds of the run for seconds of the time that profiles cover: the rest, which nobody watched, is taken to be alike.
fn in_the_run(report: &Report, seconds: f64) -> f64 {
    match report.pipeline.as_ref().and_then(|pipeline| pipeline.whole) {
        Some(whole) if whole.seconds > 0.0 && report.job.run_time > whole.seconds => {
            seconds * report.job.run_time / whole.seconds
        }
        _ => seconds,
    }
}

/// The part of the time in I/O that files of a group took.
fn share_of(report: &Report, seconds: f64) -> f64 {
    let all: f64 = report.roles.iter().map(Group::time).sum();
    if all > 0.0 { (seconds / all).clamp(0.0, 1.0) } else { 0.0 }
}

/// The share of the run in I/O that matters.
fn stake_share(report: &Report) -> f64 {
    if report.job.run_time > 0.0 { at_stake(report) / report.job.run_time } else { 0.0 }
}

/// A finding about what takes hardly any time is only a note.
fn by_stake(report: &Report, seconds: f64, otherwise: Severity) -> Severity {
    let share = share_of(report, seconds) * stake_share(report);
    match share {
        share if share >= 0.05 => otherwise,
        share if share >= 0.005 => otherwise.max(Severity::Warning),
        _ => Severity::Note,
    }
}

/// Names of the listed files that a test picks, first ones first.
fn named(report: &Report, pick: impl Fn(&crate::report::FileReport) -> bool) -> Vec<String> {
    report.files.iter().filter(|file| pick(file)).take(5).map(|file| file.name.clone()).collect()
}

/// Files of a format.
fn format(report: &Report, format: crate::analysis::Format) -> Option<&Group> {
    report.formats.iter().find(|group| group.name == format.name())
}
