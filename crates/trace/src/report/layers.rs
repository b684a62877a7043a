//! The layers of a job in figures: what its counters say, and what single requests say where they were traced.

use serde::Serialize;

use crate::analysis::{Analysis, Direction, Latencies, Layer, Sizes};
use crate::interval::Union;

/// One layer: POSIX, MPI-IO, STDIO or DFS. Upper layers move their bytes through lower ones: never add them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LayerReport {
    pub layer: &'static str,
    pub files: usize,
    pub opens: i64,
    /// Opens, stats, seeks, syncs.
    pub metadata_calls: i64,
    /// Sums over ranks and threads, in seconds.
    pub read_time: f64,
    pub write_time: f64,
    pub metadata_time: f64,
    /// Seconds of the slowest rank, and bytes a second over it, as `darshan-parser --perf` has them.
    pub slowest_time: f64,
    pub bandwidth: Option<f64>,
    /// Requests of a rank under way while it has any, where they were traced.
    pub in_flight_of_rank: Option<f64>,
    pub read: DirectionReport,
    pub write: DirectionReport,
}

/// Reads or writes of a layer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DirectionReport {
    pub requests: u64,
    pub bytes: i64,
    pub sequential: u64,
    pub consecutive: u64,
    pub random: u64,
    /// The following only where single requests were traced. Bytes a second while anything was under way.
    pub bandwidth: Option<f64>,
    /// Seconds in which any rank was in such a request.
    pub seconds: Option<f64>,
    /// Requests under way while any is: how many readers work at once.
    pub in_flight: Option<f64>,
    pub latency: Option<Percentiles>,
    /// Bytes of a request.
    pub least: Option<i64>,
    pub median: Option<i64>,
    pub greatest: Option<i64>,
    pub sizes: Vec<Bucket>,
}

/// Seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Percentiles {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// Requests above the bound of the bucket before, up to and including `up_to` bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bucket {
    pub up_to: Option<i64>,
    pub requests: u64,
    pub bytes: u64,
    pub seconds: f64,
}

impl Layer {
    pub fn name(self) -> &'static str {
        match self {
            Layer::Posix => "POSIX",
            Layer::MpiIo => "MPI-IO",
            Layer::Stdio => "STDIO",
            Layer::Dfs => "DFS",
        }
    }
}

pub(super) fn of(analysis: &Analysis) -> Vec<LayerReport> {
    Layer::ALL.into_iter().filter_map(|layer| one(analysis, layer)).collect()
}

fn one(analysis: &Analysis, layer: Layer) -> Option<LayerReport> {
    let traced = analysis.traced.get(&layer);
    let performance = analysis.performance.get(&layer);
    if traced.is_none() && performance.is_none() {
        return None;
    }
    let mut report = LayerReport {
        layer: layer.name(),
        files: 0,
        opens: 0,
        metadata_calls: 0,
        read_time: 0.0,
        write_time: 0.0,
        metadata_time: 0.0,
        slowest_time: performance.map_or(0.0, |performance| performance.time()),
        bandwidth: performance.and_then(|performance| performance.bandwidth()).map(|mib| mib * f64::from(1 << 20)),
        in_flight_of_rank: traced.and_then(|summary| {
            let alone: f64 = summary.ranks.values().map(Union::settled_length).sum();
            (alone > 0.0).then(|| (summary.read.seconds + summary.write.seconds) / alone)
        }),
        read: DirectionReport::of(traced.map(|summary| &summary.read)),
        write: DirectionReport::of(traced.map(|summary| &summary.write)),
    };
    let mut counted = (crate::analysis::Pattern::default(), crate::analysis::Pattern::default());
    let mut bytes = (0i64, 0i64);
    for counts in analysis.files.rows.values().filter_map(|row| row.layer(layer)) {
        report.files += 1;
        report.opens = report.opens.saturating_add(counts.opens);
        report.metadata_calls = report.metadata_calls.saturating_add(counts.metadata_calls);
        report.read_time += counts.read_time;
        report.write_time += counts.write_time;
        report.metadata_time += counts.metadata_time;
        bytes = (bytes.0.saturating_add(counts.bytes_read), bytes.1.saturating_add(counts.bytes_written));
        counted.0.extend(counts.reads);
        counted.1.extend(counts.writes);
    }
    // Counters are complete where traces are cut for want of memory.
    if performance.is_some() {
        report.read.count(counted.0, bytes.0);
        report.write.count(counted.1, bytes.1);
    }
    Some(report)
}

impl DirectionReport {
    fn of(traced: Option<&Direction>) -> DirectionReport {
        let mut empty = DirectionReport::default();
        let Some(direction) = traced else { return empty };
        empty.count(direction.pattern, i64::try_from(direction.bytes).unwrap_or(i64::MAX));
        empty.bandwidth = direction.bandwidth();
        let length = direction.busy;
        empty.seconds = Some(length);
        empty.in_flight = (length > 0.0).then(|| direction.seconds / length);
        empty.latency = Percentiles::of(&direction.latencies);
        empty.least = direction.lengths.least();
        empty.median = direction.lengths.median();
        empty.greatest = direction.lengths.greatest();
        empty.sizes = buckets(&direction.sizes);
        empty
    }

    fn count(&mut self, pattern: crate::analysis::Pattern, bytes: i64) {
        self.requests = pattern.accesses;
        self.bytes = bytes;
        self.sequential = pattern.sequential;
        self.consecutive = pattern.consecutive;
        self.random = pattern.random();
    }
}

impl Percentiles {
    fn of(latencies: &Latencies) -> Option<Percentiles> {
        Some(Percentiles {
            p50: latencies.percentile(0.5)?,
            p95: latencies.percentile(0.95)?,
            p99: latencies.percentile(0.99)?,
            max: latencies.percentile(1.0)?,
        })
    }
}

fn buckets(sizes: &Sizes) -> Vec<Bucket> {
    (0..sizes.requests.len())
        .map(|index| Bucket {
            up_to: Sizes::BOUNDS.get(index).copied(),
            requests: sizes.requests[index],
            bytes: sizes.bytes[index],
            seconds: sizes.seconds[index],
        })
        .collect()
}
