//! Judges a file system by a kernel: makes the data, lets a process of its own run the kernel on data that nobody has in
//! memory, reads the same bytes in large pieces beside it. Who starts the process says so with a function: a tracer may
//! be put around it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::generate::{Generated, generate};
use crate::kernel::Kernel;
use crate::raw::{Raw, evict, read_raw};
use crate::run::{Outputs, run};
use crate::truth::Truth;
use crate::workload::{Rank, Workload};

/// How long steps compute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compute {
    /// As the workload says.
    Set,
    /// So long that the share of I/O is near the published one, with what this file system gives.
    Published,
}

/// What the process of a kernel is to do; handed over as a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub workload: Workload,
    /// Where the data sets are.
    pub dir: PathBuf,
    /// Where truth, profile and checkpoints go.
    pub out: PathBuf,
    pub processes: u64,
}

impl Job {
    pub fn read(path: &Path) -> Result<Job, Error> {
        let text = fs::read(path).map_err(Error::io("read", path))?;
        serde_json::from_slice(&text).map_err(|error| Error::io("read", path)(error.into()))
    }

    pub fn write(&self) -> Result<PathBuf, Error> {
        fs::create_dir_all(&self.out).map_err(Error::io("make the folder", &self.out))?;
        let path = self.out.join("job.json");
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::io("write", &path)(error.into()))?;
        fs::write(&path, text).map_err(Error::io("write", &path))?;
        Ok(path)
    }

    /// Where one of the processes writes.
    pub fn outputs(&self, rank: u64) -> Outputs {
        let folder = if self.processes > 1 { self.out.join(format!("rank-{rank}")) } else { self.out.clone() };
        Outputs { folder }
    }

    /// Runs one of the processes, in this one.
    pub fn run(&self, rank: u64) -> Result<Truth, Error> {
        run(&self.workload, &self.dir, &self.outputs(rank), Rank { number: rank, of: self.processes })
    }

    /// What the processes said.
    pub fn truths(&self) -> Result<Vec<Truth>, Error> {
        (0..self.processes.max(1)).map(|rank| Truth::read(&self.outputs(rank).truth())).collect()
    }
}

/// What was found, with every process of the kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    pub kernel: Kernel,
    /// Whether the system was asked to forget the data before they were read.
    pub cold: bool,
    pub data: Generated,
    /// Seconds to make the data; none where they were there.
    pub generate_seconds: Option<f64>,
    pub truths: Vec<Truth>,
    pub raw: Raw,
    pub out: PathBuf,
}

/// Makes the data, runs the kernel through `start`, and reads the same bytes raw.
pub fn bench(
    mut job: Job,
    cold: bool,
    compute: Compute,
    start: &dyn Fn(&Path) -> Result<(), Error>,
) -> Result<Outcome, Error> {
    job.workload.check()?;
    let begun = Instant::now();
    let data = generate(&job.workload.data, &job.dir, &|_| {})?;
    let generate_seconds = (!data.reused).then(|| begun.elapsed().as_secs_f64());
    let forget = || if cold { evict(&job.workload.data, &job.dir) } else { Ok(()) };
    if !cold {
        read_raw(&job.workload.data, &job.dir, u64::MAX)?;
    }
    if compute == Compute::Published {
        forget()?;
        job.workload.compute = calibrated(&job)?;
    }
    forget()?;
    start(&job.write()?)?;
    let truths = job.truths()?;
    forget()?;
    let most = truths.iter().map(|truth| truth.read.bytes).sum();
    let raw = read_raw(&job.workload.data, &job.dir, most)?;
    Ok(Outcome { kernel: job.workload.data.kernel, cold, data, generate_seconds, truths, raw, out: job.out })
}

/// Steps that are looked at to learn how long their reads take.
const LOOKED_AT: u64 = 32;

/// How long a step must compute for the published share.
fn calibrated(job: &Job) -> Result<Duration, Error> {
    let mut short = job.clone();
    short.workload.steps = Some(job.workload.steps.unwrap_or(LOOKED_AT).min(LOOKED_AT));
    short.workload.compute = Duration::ZERO;
    short.workload.checkpoints = None;
    short.out = job.out.join("calibration");
    short.processes = 1;
    let truth = short.run(0)?;
    // More was read than these steps took, where samples are read ahead.
    let step = truth.sample_bytes as f64 / truth.steps.max(1) as f64;
    let reading = truth.times.io * (step / truth.read.bytes.max(1) as f64);
    Ok(job.workload.data.kernel.published().compute(Duration::from_secs_f64(reading)))
}

impl Outcome {
    fn sum(&self, of: impl Fn(&Truth) -> f64) -> f64 {
        self.truths.iter().map(of).sum()
    }

    fn worst(&self, of: impl Fn(&Truth) -> f64) -> f64 {
        self.truths.iter().map(of).fold(0.0, f64::max)
    }

    fn mean(&self, of: impl Fn(&Truth) -> f64) -> f64 {
        self.sum(of) / self.truths.len().max(1) as f64
    }

    /// What the file system gave all processes together while they asked.
    pub fn read_bytes_per_second(&self) -> f64 {
        self.sum(Truth::read_bytes_per_second)
    }

    /// Against large reads in order.
    pub fn ratio(&self) -> f64 {
        let raw = self.raw.bytes_per_second();
        if raw > 0.0 { self.read_bytes_per_second() / raw } else { 0.0 }
    }

    pub fn samples_per_second(&self) -> f64 {
        self.sum(Truth::samples_per_second)
    }

    /// Seconds of a read: 50, 95 and 99 % take no longer, in the slowest process.
    pub fn latencies(&self) -> [f64; 3] {
        let latency = |truth: &Truth| truth.read.latency;
        [
            self.worst(|truth| latency(truth).p50),
            self.worst(|truth| latency(truth).p95),
            self.worst(|truth| latency(truth).p99),
        ]
    }

    /// Share of the steps' time that waits for data or checkpoints, in the mean.
    pub fn wait_share(&self) -> f64 {
        self.mean(|truth| truth.times.wait_share)
    }

    pub fn io_share(&self) -> f64 {
        self.mean(|truth| truth.times.io_share)
    }

    /// Share of the time in I/O that is hidden behind compute.
    pub fn hidden_share(&self) -> f64 {
        let io = self.sum(|truth| truth.times.io);
        if io > 0.0 { self.sum(|truth| truth.times.hidden) / io } else { 0.0 }
    }

    /// The size of most requests that are not for a few bytes, and its share of all reads.
    pub fn common_size(&self) -> (u64, f64) {
        let Some(truth) = self.truths.first() else { return (0, 0.0) };
        let (size, count) = truth.read.sizes.first().copied().unwrap_or((0, 0));
        (size, count as f64 / truth.read.count.max(1) as f64)
    }

    /// Share of reads that begin after the end of the one before in the same file.
    pub fn sequential_share(&self) -> f64 {
        let count = self.sum(|truth| truth.read.count as f64);
        if count > 0.0 { self.sum(|truth| truth.read.sequential as f64) / count } else { 0.0 }
    }
}
