//! Tests of the crate from outside.

#[path = "main/analyses.rs"]
mod analyses;
#[path = "main/harness.rs"]
mod harness;
#[path = "main/optuna.rs"]
mod optuna;
#[path = "main/properties.rs"]
mod properties;
#[path = "main/pruning.rs"]
mod pruning;
#[path = "main/spaces.rs"]
mod spaces;
#[path = "main/studies.rs"]
mod studies;
