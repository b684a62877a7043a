//! Data-loading kernels with the access patterns of published deep-learning applications: they make data sets in the
//! real formats, read them as the real loaders do, emulate the compute between, and say what they did.
//!
//! What a kernel says of itself is measured around its own calls, so that what a tracer reports can be checked against
//! it. Knows no other Tulpar crate, no tracer and no terminal.

mod bench;
mod clock;
mod error;
mod format;
mod generate;
mod histogram;
mod interval;
mod kernel;
mod load;
mod meter;
mod order;
mod preset;
mod profile;
mod queue;
mod random;
mod raw;
mod run;
mod tally;
mod truth;
mod workload;

pub use bench::{Job, Outcome, bench};
pub use error::Error;
pub use generate::{Generated, generate};
pub use kernel::{Kernel, Published};
pub use raw::{Raw, evict, read_raw};
pub use run::{Outputs, run};
pub use truth::{Accesses, FileBytes, Latency, Shares, Truth};
pub use workload::{Checkpoints, Compute, DataSet, Rank, Workload};
