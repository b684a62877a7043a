//! What a kernel is to do: the data set, and how it is read.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::kernel::{Kernel, SIDE, VOLUME};
use crate::random::Random;

/// A data set; its bytes follow from these numbers alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataSet {
    pub kernel: Kernel,
    pub seed: u64,
    pub files: u64,
    /// In the mean, where files differ. Of FFN: what is drawn a volume and epoch.
    pub samples_per_file: u64,
    /// In the mean, where samples differ.
    pub sample_bytes: u64,
    /// How far samples, and their number a file, may be from the mean, as a share of it.
    pub spread: f64,
}

/// What is written while training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoints {
    /// Steps between.
    pub every: u64,
    pub bytes: u64,
}

/// How long steps compute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compute {
    /// Seconds a step.
    Seconds(f64),
    /// So long that I/O has this share of the time since the begin: the share is known beforehand, whatever the file
    /// system gives.
    Share(f64),
}

/// Which of several equal processes this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    pub number: u64,
    pub of: u64,
}

impl Rank {
    pub const ALONE: Rank = Rank { number: 0, of: 1 };
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    pub data: DataSet,
    /// Samples a step.
    pub batch: u64,
    pub epochs: u64,
    /// At most this many steps, whatever the epochs say.
    pub steps: Option<u64>,
    pub compute: Compute,
    /// Threads that read; none: the step itself reads, on demand.
    pub workers: u64,
    /// Samples that are read ahead of the step.
    pub prefetch: u64,
    /// The largest request of a reader that has a choice: the buffer of TFRecord, the pieces of an array of NPZ.
    pub request: u64,
    pub checkpoints: Option<Checkpoints>,
}

/// Larger would not be what any loader asks for, and a buffer of it is held by every thread.
const LARGEST_REQUEST: u64 = 256 << 20;

impl Workload {
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Workload(text.to_owned()));
        if self.batch == 0 || self.epochs == 0 || self.steps == Some(0) {
            return wrong("a batch, an epoch and a step are at least one");
        }
        if self.data.files == 0 || self.data.samples_per_file == 0 || self.data.sample_bytes == 0 {
            return wrong("a data set needs at least one file with one sample of one byte");
        }
        match self.compute {
            Compute::Seconds(seconds) if !(0.0..1e6).contains(&seconds) => {
                return wrong("a step computes between no time and a million seconds");
            }
            Compute::Share(share) if !(0.001..=1.0).contains(&share) => {
                return wrong("the share of I/O is between 0.1 % and 100 %");
            }
            _ => {}
        }
        if !(1..=LARGEST_REQUEST).contains(&self.request) {
            return wrong("a request has between 1 byte and 256 MB");
        }
        if self.workers > 1024 {
            return wrong("more than 1024 threads that read are no loader that anybody has");
        }
        if self.checkpoints.is_some_and(|checkpoints| checkpoints.every == 0) {
            return wrong("a checkpoint every 0 steps is none: leave it away");
        }
        Ok(())
    }
}

impl DataSet {
    /// The folder of the data set.
    pub fn folder(&self, dir: &Path) -> PathBuf {
        dir.join(self.kernel.name())
    }

    /// The path of a file of the data set.
    pub fn path(&self, dir: &Path, file: u64) -> PathBuf {
        let name = match self.kernel {
            Kernel::ImageNet => format!("train-{file:05}-of-{:05}.tfrecord", self.files),
            Kernel::CosmicTagger => format!("cosmic-{file:03}.h5"),
            Kernel::Ffn => format!("volume-{file:05}.h5"),
            Kernel::CosmoFlow => format!("univ-{file:05}.tfrecord"),
            Kernel::Frnn => format!("shot-{file:07}.npz"),
        };
        self.folder(dir).join(name)
    }

    /// Samples of a file.
    pub fn samples(&self, file: u64) -> u64 {
        let spread = if self.kernel == Kernel::ImageNet { self.spread } else { 0.0 };
        Random::new(self.seed, &[0, file]).around(self.samples_per_file, spread).max(1)
    }

    /// Bytes of a sample.
    pub fn bytes_of(&self, file: u64, sample: u64) -> u64 {
        Random::new(self.seed, &[1, file, sample]).around(self.sample_bytes, self.spread).max(1)
    }

    /// Samples of an epoch.
    pub fn epoch(&self) -> u64 {
        (0..self.files).map(|file| self.samples(file)).sum()
    }

    /// Bytes of samples in an epoch, in the mean.
    pub fn bytes(&self) -> u64 {
        self.files.saturating_mul(self.samples_per_file).saturating_mul(self.sample_bytes)
    }

    /// Bytes of data on the disk, in the mean.
    pub fn stored(&self) -> u64 {
        match self.kernel {
            Kernel::Ffn => self.files.saturating_mul((SIDE * VOLUME).pow(3)),
            _ => self.bytes(),
        }
    }

    /// What a sample contains.
    pub(crate) fn content(&self, file: u64, sample: u64) -> Random {
        Random::new(self.seed, &[2, file, sample])
    }
}
