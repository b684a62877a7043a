//! The formats of other systems: Pegasus 5, DAX 3, DAGMan and submit descriptions, and WfFormat.
//!
//! Each reader turns text into findings and a workflow; each writer does the reverse. Nothing here reads a file or knows the
//! engine.

pub mod dagman;
pub mod export;
pub mod htcondor;
pub mod pegasus;
pub mod wfformat;
