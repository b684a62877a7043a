//! DeepDriveMD: simulations whose frames train a model that says where to simulate next.

use crate::failure::Failure;
use clap::Subcommand;

/// One program of the workflow.
#[derive(Debug, Subcommand)]
pub enum Step {}

/// Runs one step.
pub fn run(step: Step) -> Result<(), Failure> {
    match step {}
}
