//! The doing half of Tulpar: the driver loop, the journal, executors, the cache, files in and out.
//!
//! It decides nothing that the engine decides, and knows no SQL, no HTML and no terminal.

pub mod both;
mod bundle;
pub mod cache;
pub mod condor;
pub mod data;
pub mod drill;
pub mod driver;
pub mod environments;
pub mod executor;
pub mod folder;
pub mod hooks;
mod images;
pub mod journal;
pub mod live;
pub mod local;
pub mod machine;
pub mod pilots;
pub mod pins;
pub mod publish;
pub mod remote;
pub mod slurm;
pub mod storage;
