//! What a kernel says of its own run.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clock::seconds;
use crate::error::Error;
use crate::meter::{Direction, Meter, Order, locked};
use crate::tally::Tally;
use crate::workload::Workload;

/// Times in seconds, shares of the run between 0 and 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    pub workload: Workload,
    pub process: u32,
    /// Seconds since the epoch.
    pub started: f64,
    pub run_time: f64,
    pub steps: u64,
    pub samples: u64,
    /// Bytes of samples.
    pub sample_bytes: u64,
    pub times: Shares,
    pub read: Accesses,
    pub write: Accesses,
    /// Opens, closes and questions for sizes.
    pub metadata: Latency,
    /// Sorted by name; those past the first [`Truth::LISTED`] are only counted.
    pub files: Vec<FileBytes>,
    pub files_used: u64,
}

/// Lengths of unions: a moment counts once, however many threads were in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// In reads and writes.
    pub io: f64,
    pub io_share: f64,
    pub compute: f64,
    /// In I/O while a step computed, and while none did.
    pub hidden: f64,
    pub exposed: f64,
    /// Hidden as a share of the time in I/O.
    pub overlap: f64,
    /// In which samples were made: read, checked, taken apart.
    pub pipeline: f64,
    pub pipeline_share: f64,
    /// In which there was a step.
    pub steps: f64,
    /// In which a step waited for its batch, and for a checkpoint.
    pub wait: f64,
    pub checkpoint: f64,
    /// Both, as a share of the time of all steps.
    pub wait_share: f64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Accesses {
    pub count: u64,
    pub bytes: u64,
    /// By Darshan's rules: after the end of the one before in this file; right at it; neither.
    pub sequential: u64,
    pub consecutive: u64,
    pub random: u64,
    /// The most frequent sizes with their counts.
    pub sizes: Vec<(u64, u64)>,
    pub median_size: u64,
    /// Half of the bytes were moved by calls no larger than this.
    pub median_byte_size: u64,
    /// Counts up to 100 bytes, 1 K, 10 K, 100 K, 1 M, 4 M, 10 M, 100 M, 1 G, and above.
    pub ranges: [u64; 10],
    pub latency: Latency,
}

/// Seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Of all calls and threads; may exceed the length of the run.
    pub sum: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBytes {
    pub path: String,
    pub opens: u64,
    pub reads: u64,
    pub bytes_read: u64,
    pub writes: u64,
    pub bytes_written: u64,
}

/// What the steps took, in nanoseconds.
#[derive(Default)]
pub(crate) struct Stepped {
    pub(crate) steps: u64,
    pub(crate) samples: u64,
    pub(crate) sample_bytes: u64,
    pub(crate) time: u64,
    pub(crate) wait: u64,
    pub(crate) checkpoint: u64,
}

impl From<&crate::histogram::Latencies> for Latency {
    fn from(latencies: &crate::histogram::Latencies) -> Latency {
        let percentile = |share| latencies.percentile(share) / 1e9;
        let (sum, max) = (seconds(latencies.sum), seconds(latencies.longest));
        Latency { sum, p50: percentile(0.5), p95: percentile(0.95), p99: percentile(0.99), max }
    }
}

impl Accesses {
    const SIZES: usize = 16;

    fn new(direction: &Direction) -> Accesses {
        Accesses {
            sizes: direction.sizes.common(Accesses::SIZES),
            median_size: direction.sizes.median(|_| 1),
            median_byte_size: direction.sizes.median(|size| size),
            ranges: direction.sizes.ranges(),
            latency: Latency::from(&direction.latencies),
            ..Accesses::default()
        }
    }

    fn add(&mut self, order: &Order) {
        self.count += order.count;
        self.bytes += order.bytes;
        self.sequential += order.sequential;
        self.consecutive += order.consecutive;
        self.random += order.count - order.sequential;
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Truth {
    /// More files than this are not listed one by one.
    pub const LISTED: usize = 10_000;

    pub(crate) fn new(workload: &Workload, meter: &Meter, tally: &Tally, stepped: &Stepped, run: (u64, u64)) -> Truth {
        let run_time = seconds(run.1 - run.0);
        let (mut read, mut write) = (Accesses::new(&tally.read), Accesses::new(&tally.written));
        let (mut files, mut files_used) = (Vec::new(), 0);
        for usage in meter.files() {
            let usage = locked(&usage);
            read.add(&usage.read);
            write.add(&usage.written);
            files_used += 1;
            if files.len() < Truth::LISTED {
                files.push(FileBytes {
                    path: usage.path.to_string_lossy().into_owned(),
                    opens: usage.opens,
                    reads: usage.read.count,
                    bytes_read: usage.read.bytes,
                    writes: usage.written.count,
                    bytes_written: usage.written.bytes,
                });
            }
        }
        let (io, hidden, pipeline) = (seconds(tally.io), seconds(tally.io_hidden), seconds(tally.pipeline));
        let (wait, checkpoint) = (seconds(stepped.wait), seconds(stepped.checkpoint));
        let times = Shares {
            io,
            io_share: share(io, run_time),
            compute: seconds(tally.computing),
            hidden,
            exposed: io - hidden,
            overlap: share(hidden, io),
            pipeline,
            pipeline_share: share(pipeline, run_time),
            steps: seconds(stepped.time),
            wait,
            checkpoint,
            wait_share: share(wait + checkpoint, seconds(stepped.time)),
        };
        Truth {
            workload: workload.clone(),
            process: std::process::id(),
            started: seconds(run.0),
            run_time,
            steps: stepped.steps,
            samples: stepped.samples,
            sample_bytes: stepped.sample_bytes,
            times,
            read,
            write,
            metadata: Latency::from(&tally.metadata),
            files,
            files_used,
        }
    }

    pub fn read(path: &Path) -> Result<Truth, Error> {
        let text = std::fs::read(path).map_err(Error::io("read", path))?;
        serde_json::from_slice(&text).map_err(|error| Error::io("read", path)(error.into()))
    }

    /// What the file system gave while it was asked.
    pub fn read_bytes_per_second(&self) -> f64 {
        share(self.read.bytes as f64, self.times.io)
    }

    pub fn samples_per_second(&self) -> f64 {
        share(self.samples as f64, self.run_time)
    }
}
