//! Reads what other tools recorded about the I/O and the time of a program: Darshan logs, TensorBoard event files,
//! profiler traces, dftracer. Every reader is one pass with bounded memory over a file that may be damaged or hostile.
//!
//! It knows nothing of workflows, runs, terminals and pages, and no other Tulpar crate.

pub mod analysis;
pub mod collect;
pub mod darshan;
mod examine;
pub mod find;
mod finding;
mod gzip;
pub mod interval;
pub mod merge;
pub mod profile;
mod protobuf;
pub mod report;
pub mod structure;
pub mod tensorboard;
