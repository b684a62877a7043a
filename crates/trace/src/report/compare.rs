//! Two runs side by side: the same figures of both, and which findings came and went. Does not say which run is better.

use serde::Serialize;

use super::Report;
use crate::finding::Finding;

/// What a figure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Seconds,
    Bytes,
    Rate,
    Share,
    Count,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    pub what: &'static str,
    pub unit: Unit,
    pub before: Option<f64>,
    pub after: Option<f64>,
    /// After over before.
    pub ratio: Option<f64>,
}

/// One run against another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub figures: Vec<Figure>,
    /// Findings of the first run that the second has not, and the other way round.
    pub gone: Vec<Finding>,
    pub new: Vec<Finding>,
}

type Take = fn(&Report) -> Option<f64>;

const FIGURES: [(&str, Unit, Take); 19] = [
    ("run time", Unit::Seconds, |report| Some(report.job.run_time)),
    ("processes", Unit::Count, |report| Some(report.job.processes as f64)),
    ("time in I/O", Unit::Seconds, |report| report.io.as_ref().map(|io| io.overall)),
    ("share of the run in I/O", Unit::Share, |report| report.io.as_ref().map(|io| io.share)),
    ("slowest rank in I/O", Unit::Seconds, |report| report.io.as_ref()?.slowest_rank.map(|rank| rank.seconds)),
    ("exposed I/O", Unit::Seconds, |report| report.pipeline.as_ref()?.whole.map(|whole| whole.exposed)),
    ("I/O hidden behind compute", Unit::Share, |report| {
        let whole = report.pipeline.as_ref()?.whole?;
        (whole.io > 0.0).then(|| whole.hidden / whole.io)
    }),
    ("steps waiting for data", Unit::Share, |report| report.pipeline.as_ref()?.loading_share),
    ("bytes read", Unit::Bytes, |report| Some(report.bytes_read as f64)),
    ("bytes written", Unit::Bytes, |report| Some(report.bytes_written as f64)),
    ("reads", Unit::Count, |report| Some(report.layer("POSIX")?.read.requests as f64)),
    ("mean size of a read", Unit::Bytes, |report| {
        let read = &report.layer("POSIX")?.read;
        (read.requests > 0).then(|| read.bytes as f64 / read.requests as f64)
    }),
    ("median size of a read", Unit::Bytes, |report| Some(report.layer("POSIX")?.read.median? as f64)),
    ("read bandwidth", Unit::Rate, |report| report.layer("POSIX")?.read.bandwidth),
    ("write bandwidth", Unit::Rate, |report| report.layer("POSIX")?.write.bandwidth),
    ("latency of reads, median", Unit::Seconds, |report| Some(report.layer("POSIX")?.read.latency?.p50)),
    ("latency of reads, p99", Unit::Seconds, |report| Some(report.layer("POSIX")?.read.latency?.p99)),
    ("metadata calls", Unit::Count, |report| Some(report.layer("POSIX")?.metadata_calls as f64)),
    ("files", Unit::Count, |report| Some(report.files_total as f64)),
];

impl Comparison {
    pub fn of(before: &Report, after: &Report) -> Comparison {
        let figures = FIGURES
            .iter()
            .map(|(what, unit, take)| {
                let (before, after) = (take(before), take(after));
                let ratio = before.zip(after).filter(|(before, _)| *before > 0.0).map(|(before, after)| after / before);
                Figure { what, unit: *unit, before, after, ratio }
            })
            .filter(|figure| figure.before.is_some() || figure.after.is_some())
            .collect();
        let missing = |from: &Report, other: &Report| -> Vec<Finding> {
            let is_known = |finding: &&Finding| !other.findings.iter().any(|known| known.code == finding.code);
            from.findings.iter().filter(is_known).cloned().collect()
        };
        Comparison { figures, gone: missing(before, after), new: missing(after, before) }
    }
}
