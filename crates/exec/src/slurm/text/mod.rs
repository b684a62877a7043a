//! Slurm's languages: the batch script that is written for a group of jobs, the tables that its commands print, what its
//! states and reasons mean, and what its nodes can take. It starts no command: `exec::slurm` does.
//!
//! Tables come from `squeue -o` and `scontrol -o` rather than from `--json`: the letters of the former have kept their
//! meaning since version 2, while the latter is missing in builds without its library, differs between data parsers
//! (numbers became `{set, infinite, number}`, states became lists) and prints every field of every job.

pub mod cluster;
pub mod devices;
pub mod lists;
pub mod script;
pub mod state;
pub mod table;
