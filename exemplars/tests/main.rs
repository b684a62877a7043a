//! The steps as programs, and the workflows made of them.

#[path = "main/crisis.rs"]
mod crisis;
#[path = "main/deepdrivemd.rs"]
mod deepdrivemd;
#[path = "main/full.rs"]
mod full;
#[path = "main/galaxy.rs"]
mod galaxy;
#[cfg(feature = "wgpu")]
#[path = "main/gpu.rs"]
mod gpu;
#[path = "main/lung.rs"]
mod lung;
#[path = "main/pool.rs"]
mod pool;
#[path = "main/programs.rs"]
mod programs;
#[path = "main/published.rs"]
mod published;
#[path = "main/throughput.rs"]
mod throughput;
#[path = "main/workflows.rs"]
mod workflows;
