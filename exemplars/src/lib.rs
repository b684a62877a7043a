//! The programs of Tulpar's exemplars. Every step reads files, writes files and ends; what has to do with neural networks
//! in general is in the modules here, what one workflow computes is in the module of its name.

pub mod arrays;
pub mod charts;
pub mod checkpoint;
pub mod crisis;
pub mod deepdrivemd;
pub mod failure;
pub mod folder;
pub mod galaxy;
pub mod learning;
pub mod lung;
pub mod metrics;
pub mod models;
pub mod options;
pub mod page;
pub mod pets;
pub mod pictures;
pub mod seeds;
pub mod temporary;
pub mod training;
pub mod trials;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "tulpar-exemplars", version, about = "The steps of Tulpar's exemplar workflows")]
struct Arguments {
    #[command(subcommand)]
    workflow: Workflow,
}

#[derive(Debug, Subcommand)]
enum Workflow {
    /// Pictures of galaxies, sorted into five classes by VGG-16
    #[command(subcommand)]
    Galaxy(galaxy::Step),
    /// Lungs found in chest X-rays by UNet
    #[command(subcommand)]
    Lung(lung::Step),
    /// Messages and pictures from crises: informative or not, by BiLSTM and ResNet-50
    #[command(subcommand)]
    Crisis(crisis::Step),
    /// Molecular dynamics steered by an autoencoder
    #[command(subcommand)]
    Deepdrivemd(deepdrivemd::Step),
    /// Cats and dogs: one network, many, and their mean
    #[command(subcommand)]
    Pets(pets::Step),
}

/// Runs the step that the arguments name. Exit codes: 0 done, 1 failed, 2 arguments that cannot be understood.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let wrong = error.use_stderr();
            // Nothing is left to say it on if this fails.
            let _ = error.print();
            return ExitCode::from(if wrong { 2 } else { 0 });
        }
    };
    let ended = match arguments.workflow {
        Workflow::Galaxy(step) => galaxy::run(step),
        Workflow::Lung(step) => lung::run(step),
        Workflow::Crisis(step) => crisis::run(step),
        Workflow::Deepdrivemd(step) => deepdrivemd::run(step),
        Workflow::Pets(step) => pets::run(step),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(1)
        }
    }
}
