//! Galaxies: pictures and votes of the Galaxy Zoo 2 become a data set of five classes, and VGG-16 learns to tell them.

mod classes;
mod classifier;
mod dataset;
mod evaluation;
mod samples;
mod synthesis;
pub mod vgg;

use crate::failure::Failure;
use crate::training::{Asking, Training};
use crate::trials;
use clap::Subcommand;

/// One program of the workflow.
#[derive(Debug, Subcommand)]
pub enum Step {
    /// Make a synthetic data set in the published layout
    Generate(synthesis::Generate),
    /// Keep galaxies whose votes are clear, with their class, and split them
    Dataset(dataset::MakeDataset),
    /// Crop, downscale and whiten one part of the pictures
    Preprocess(samples::Preprocess),
    /// Make more pictures of rare classes for learning
    Augment(samples::Augment),
    /// One trial of a search: learn a little, and say how well that went
    Tune(classifier::Tune),
    /// The best of trials that were jobs of their own
    Choose(trials::Choose),
    /// Learn, with a checkpoint after every epoch
    Train(Training),
    /// Classify the pictures that were held out
    Infer(Asking),
    /// Confusion matrix, accuracy and plots
    Evaluate(evaluation::Evaluate),
}

/// Runs one step.
pub fn run(step: Step) -> Result<(), Failure> {
    match step {
        Step::Generate(step) => synthesis::generate(&step),
        Step::Dataset(step) => dataset::make_dataset(&step),
        Step::Preprocess(step) => samples::preprocess(&step),
        Step::Augment(step) => samples::augment(&step),
        Step::Tune(step) => classifier::tune(&step),
        Step::Choose(step) => trials::choose(&step),
        Step::Train(step) => classifier::train(&step),
        Step::Infer(step) => classifier::infer(&step),
        Step::Evaluate(step) => evaluation::evaluate(&step),
    }
}
