//! The five applications whose I/O was published, as kernels: what their data look like, how they read them, and what
//! was found.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

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
pub(crate) const FFN_SHARE: f64 = 0.33;
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
    fn names_are_read_back() {
        for kernel in Kernel::ALL {
            assert_eq!(kernel.name().parse::<Kernel>().unwrap(), kernel);
        }
        let error = "mnist".parse::<Kernel>().unwrap_err().to_string();
        assert_eq!(error, "there is no kernel \"mnist\"; there are imagenet, cosmictagger, ffn, cosmoflow, frnn");
    }
}
