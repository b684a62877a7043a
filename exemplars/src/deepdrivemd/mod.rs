//! DeepDriveMD: simulations whose frames train a model that says where to simulate next.

mod autoencoder;
mod chain;
mod dynamics;
mod exploration;
mod frames;
mod infer;
mod outliers;
mod report;
mod simulate;

use crate::failure::Failure;
use clap::Subcommand;

/// One program of the workflow.
#[derive(Debug, Subcommand)]
pub enum Step {
    /// The conformation to begin with
    Generate(simulate::Generate),
    /// Molecular dynamics of a hairpin
    Simulate(simulate::Simulate),
    /// Contact maps of trajectories
    Aggregate(autoencoder::Aggregate),
    /// An autoencoder learns contact maps
    Train(autoencoder::Train),
    /// Conformations that the autoencoder finds unusual
    Infer(infer::Infer),
    /// What the study came to, as a page
    Report(report::Report),
}

/// Runs one step.
pub fn run(step: Step) -> Result<(), Failure> {
    match step {
        Step::Generate(options) => simulate::generate(&options),
        Step::Simulate(options) => simulate::simulate(&options),
        Step::Aggregate(options) => autoencoder::aggregate(&options),
        Step::Train(options) => autoencoder::train(&options),
        Step::Infer(options) => infer::infer(&options),
        Step::Report(options) => report::report(&options),
    }
}
