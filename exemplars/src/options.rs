//! Options that several steps have, with one spelling and one meaning.

use crate::failure::Failure;
use burn::tensor::Device;
use clap::{Args, ValueEnum};

/// How large the model and its pictures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// Minutes on two cores
    Small,
    /// The published architecture
    Full,
}

/// Where tensors live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Where {
    Cpu,
    Gpu,
}

/// What every step with random numbers takes.
#[derive(Debug, Clone, Args)]
pub struct Seed {
    /// The same seed gives the same result, bit for bit on one machine with one number of threads
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// What every step with a neural network takes.
#[derive(Debug, Clone, Args)]
pub struct Computing {
    /// Threads to compute with; all cores if not said
    #[arg(long)]
    pub threads: Option<usize>,
    /// The graphics card needs a program that was built with `--features wgpu`
    #[arg(long, value_enum, default_value = "cpu")]
    pub device: Where,
    /// How large the model is
    #[arg(long, value_enum, default_value = "small")]
    pub scale: Scale,
}

impl Computing {
    /// Sets the number of threads and gives the device.
    pub fn device(&self) -> Result<Device, Failure> {
        if let Some(threads) = self.threads {
            // It can only be set once a process; tests, which run several steps in one, share the first.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build_global();
        }
        match self.device {
            Where::Cpu => Ok(Device::flex()),
            #[cfg(feature = "wgpu")]
            Where::Gpu => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(not(feature = "wgpu"))]
            Where::Gpu => Err(Failure::options(
                "this program was built for the CPU only; build it with `cargo build --release --features wgpu`",
            )),
        }
    }
}
