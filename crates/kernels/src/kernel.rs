//! The five applications whose I/O was published, as kernels: what their data look like, how they read them, and what
//! was found.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::workload::{Checkpoints, Compute, DataSet, Workload};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    ImageNet,
    CosmicTagger,
    Ffn,
    CosmoFlow,
    Frnn,
}

/// What was measured of the application on 128 nodes of Theta with four processes each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Published {
    pub application: &'static str,
    pub format: &'static str,
    /// Share of the run in I/O.
    pub io_share: f64,
    /// Share of the time in I/O that is hidden behind compute; where only words were given, 0 for none and nothing for
    /// "mostly".
    pub hidden: Option<f64>,
    /// Share of the run in the data pipeline: reading, checking, taking apart. Given of two of them.
    pub pipeline_share: Option<f64>,
    /// Bytes a second of all processes together.
    pub bandwidth: f64,
    pub pattern: &'static str,
    pub requests: &'static str,
}

/// Bytes of a chunk of voxels, and of one of extents, in the data of CosmicTagger.
pub(crate) const VOXELS: u64 = 6144;
pub(crate) const EXTENTS: u64 = 2048;
/// Chunks of each that make an image.
pub(crate) const VOXEL_CHUNKS: u64 = 7;
pub(crate) const EXTENT_CHUNKS: u64 = 2;
/// Length of a side of a chunk of FFN, in voxels of one byte; chunks a side of a volume; chunks a side of what a step
/// reads.
pub(crate) const SIDE: u64 = 40;
pub(crate) const VOLUME: u64 = 4;
pub(crate) const VIEW: u64 = 2;
/// Share of the data that a process of FFN reads.
const FFN_SHARE: f64 = 0.33;
/// Channels of a signal of FRNN, and bytes of its clock.
pub(crate) const CHANNELS: u64 = 14;

impl Kernel {
    pub const ALL: [Kernel; 5] = [Kernel::ImageNet, Kernel::CosmicTagger, Kernel::Ffn, Kernel::CosmoFlow, Kernel::Frnn];

    pub fn name(self) -> &'static str {
        match self {
            Kernel::ImageNet => "imagenet",
            Kernel::CosmicTagger => "cosmictagger",
            Kernel::Ffn => "ffn",
            Kernel::CosmoFlow => "cosmoflow",
            Kernel::Frnn => "frnn",
        }
    }

    pub fn published(self) -> Published {
        let (application, format, (io_share, hidden, pipeline_share), bandwidth, pattern, requests) = match self {
            Kernel::ImageNet => (
                "ImageNet",
                "TFRecord",
                (0.143, None, Some(0.28)),
                32e9,
                "sequential in a file, on demand, mostly overlapped",
                "256 KB",
            ),
            Kernel::CosmicTagger => (
                "CosmicTagger",
                "HDF5",
                (0.22, Some(22.54 / 227.24), None),
                10.43e6,
                "sequential, before every step",
                "2 KB, 6 KB",
            ),
            Kernel::Ffn => (
                "Flood-filling network",
                "HDF5",
                (0.184, Some(0.0), None),
                10e9,
                "random image, then sequential; no overlap",
                "62 KB, ~100 B",
            ),
            Kernel::CosmoFlow => {
                ("CosmoFlow", "TFRecord", (0.12, Some(0.98), Some(0.23)), 36e9, "almost all hidden", "256 KB")
            }
            Kernel::Frnn => (
                "Fusion RNN",
                "NPZ",
                (0.42, Some(0.0), None),
                29e9,
                "files random, sequential inside; no overlap",
                "2 MB, few 100 B",
            ),
        };
        Published { application, format, io_share, hidden, pipeline_share, bandwidth, pattern, requests }
    }

    /// A data set of about this many bytes.
    pub fn data(self, bytes: u64, seed: u64) -> DataSet {
        let (files, samples_per_file, sample_bytes, spread) = match self {
            Kernel::ImageNet => {
                let samples = (bytes >> 18).max(1);
                let files = samples.isqrt().clamp(samples.min(4), 1024);
                (files, samples.div_ceil(files), 1 << 18, 0.25)
            }
            Kernel::CosmicTagger => {
                let image = VOXEL_CHUNKS * VOXELS + EXTENT_CHUNKS * EXTENTS;
                (1, (bytes / image).max(1), image, 0.0)
            }
            Kernel::Ffn => {
                let chunk = SIDE.pow(3);
                let files = (bytes / (chunk * VOLUME.pow(3))).max(1);
                let views = VOLUME.pow(3) as f64 * FFN_SHARE / VIEW.pow(3) as f64;
                (files, (views.round() as u64).max(1), chunk * VIEW.pow(3), 0.0)
            }
            Kernel::CosmoFlow => {
                let samples = (bytes >> 22).max(1);
                let files = (samples / 2).clamp(1, 1024);
                (files, samples.div_ceil(files), 1 << 22, 0.0)
            }
            // The longest signal is two megabytes.
            Kernel::Frnn => ((bytes / (7 << 18)).max(1), 1, 7 << 18, 1.0 / 7.0),
        };
        DataSet { kernel: self, seed, files, samples_per_file, sample_bytes, spread }
    }

    /// The kernel with a data set of about this many bytes, read as the application does, with a compute that a current
    /// accelerator takes.
    pub fn workload(self, bytes: u64) -> Workload {
        let (batch, epochs, compute, workers, prefetch, request) = match self {
            Kernel::ImageNet => (64, 1, 0.07, 2, 128, 1 << 18),
            // The queue of its loader holds a few images, so that a tenth of a batch is read ahead.
            Kernel::CosmicTagger => (32, 1, 0.02, 1, 3, VOXELS),
            Kernel::Ffn => (1, 1, 0.01, 0, 0, SIDE.pow(3)),
            Kernel::CosmoFlow => (1, 4, 0.0055, 2, 8, 1 << 18),
            Kernel::Frnn => (4, 1, 0.02, 0, 0, 2 << 20),
        };
        let checkpoints = (self == Kernel::CosmicTagger).then_some(Checkpoints { every: 50, bytes: 16 << 20 });
        let data = self.data(bytes, 1);
        let compute = Compute::Seconds(compute);
        Workload { data, batch, epochs, steps: None, compute, workers, prefetch, request, checkpoints }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Kernel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Kernel, Error> {
        let known = Kernel::ALL.into_iter().find(|kernel| text.eq_ignore_ascii_case(kernel.name()));
        known.ok_or_else(|| {
            let names: Vec<&str> = Kernel::ALL.iter().map(|kernel| kernel.name()).collect();
            Error::Workload(format!("there is no kernel {text:?}; there are {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Kernel;

    #[test]
    fn a_data_set_is_about_as_large_as_asked_for() {
        for kernel in Kernel::ALL {
            let data = kernel.data(256 << 20, 1);
            let whole = data.stored();
            assert!((whole as f64 / f64::from(256 << 20) - 1.0).abs() < 0.06, "{kernel}: {whole}");
            assert!(kernel.data(0, 1).bytes() > 0);
        }
    }

    #[test]
    fn names_are_read_back() {
        for kernel in Kernel::ALL {
            assert_eq!(kernel.name().parse::<Kernel>().unwrap(), kernel);
        }
        let error = "mnist".parse::<Kernel>().unwrap_err().to_string();
        assert_eq!(error, "there is no kernel \"mnist\"; there are imagenet, cosmictagger, ffn, cosmoflow, frnn");
    }
}
