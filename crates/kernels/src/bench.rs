//! Judges a file system by a kernel: makes the data, lets a process of its own run the kernel on data that nobody has in
//! memory, reads the same bytes in large pieces beside it. Who starts the process says so with a function: a tracer may
//! be put around it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::generate::{Generated, generate};
use crate::kernel::Kernel;
use crate::raw::{Raw, evict, read_raw};
use crate::run::{Outputs, run};
use crate::truth::Truth;
use crate::workload::{Rank, Workload};

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

    /// Removes what a former run wrote, so that nobody takes it for what this one did.
    fn clear(&self) -> Result<(), Error> {
        for folder in fs::read_dir(&self.out).into_iter().flatten().flatten() {
            let (path, name) = (folder.path(), folder.file_name().to_string_lossy().into_owned());
            if name.starts_with("rank-") && path.is_dir() {
                fs::remove_dir_all(&path).map_err(Error::io("remove the former", &path))?;
            }
            let ours = ["truth.json", ".pt.trace.json", ".ckpt", ".darshan"].iter().any(|end| name.ends_with(end));
            if ours || name.starts_with("events.out.tfevents.") {
                fs::remove_file(&path).map_err(Error::io("remove the former", &path))?;
            }
        }
        Ok(())
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

/// Makes the data, runs the kernel through `start`, and reads the same bytes raw, before and after: the better counts,
/// since others may use the storage too.
pub fn bench(job: Job, cold: bool, start: &dyn Fn(&Path) -> Result<(), Error>) -> Result<Outcome, Error> {
    job.workload.check()?;
    job.clear()?;
    let begun = Instant::now();
    let data = generate(&job.workload.data, &job.dir, &|_| {})?;
    let generate_seconds = (!data.reused).then(|| begun.elapsed().as_secs_f64());
    let forget = || if cold { evict(&job.workload.data, &job.dir) } else { Ok(()) };
    forget()?;
    let mut raw = read_raw(&job.workload.data, &job.dir, u64::MAX)?;
    forget()?;
    start(&job.write()?)?;
    let truths = job.truths()?;
    forget()?;
    let most = truths.iter().map(|truth| truth.read.bytes).sum();
    let after = read_raw(&job.workload.data, &job.dir, most)?;
    // What was in memory before nobody asked for it is no measure.
    if !cold || after.bytes_per_second() > raw.bytes_per_second() {
        raw = after;
    }
    Ok(Outcome { kernel: job.workload.data.kernel, cold, data, generate_seconds, truths, raw, out: job.out })
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

    /// Share of the time in which samples were made: read, checked, taken apart.
    pub fn pipeline_share(&self) -> f64 {
        self.mean(|truth| truth.times.pipeline_share)
    }

    /// Share of the time in I/O that is hidden behind compute.
    pub fn hidden_share(&self) -> f64 {
        let io = self.sum(|truth| truth.times.io);
        if io > 0.0 { self.sum(|truth| truth.times.hidden) / io } else { 0.0 }
    }

    /// Half of the reads are no larger than the first; half of the bytes come in reads no larger than the second.
    pub fn sizes(&self) -> (u64, u64) {
        self.truths.first().map_or((0, 0), |truth| (truth.read.median_size, truth.read.median_byte_size))
    }

    /// Share of reads that begin after the end of the one before in the same file.
    pub fn sequential_share(&self) -> f64 {
        let count = self.sum(|truth| truth.read.count as f64);
        if count > 0.0 { self.sum(|truth| truth.read.sequential as f64) / count } else { 0.0 }
    }
}
