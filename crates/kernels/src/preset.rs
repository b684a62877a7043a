//! The data set and the workload of each kernel, as large as asked for and read as its application reads.

use crate::kernel::{EXTENT_CHUNKS, EXTENTS, FFN_SHARE, Kernel, SIDE, VIEW, VOLUME, VOXEL_CHUNKS, VOXELS};
use crate::workload::{Checkpoints, Compute, DataSet, Workload};

impl Kernel {
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
}
