//! Lungs: X-rays of chests and the outlines that people drew become pairs to learn from, and UNet learns to draw them.

mod evaluation;
mod pairs;
mod segmentation;
mod synthesis;
pub mod unet;

use crate::failure::Failure;
use crate::training::{Attempt, Training};
use crate::trials;
use clap::Subcommand;

/// One program of the workflow.
#[derive(Debug, Subcommand)]
pub enum Step {
    /// Make a synthetic data set in the published layout
    Generate(synthesis::Generate),
    /// Find X-rays with masks, and say which are for learning, judging and testing
    Split(pairs::MakeSplit),
    /// Resize and normalise one part of the pairs, and make two new pairs of each that is for learning
    Preprocess(pairs::Preprocess),
    /// One trial of a search: learn a little, and say how well that went
    Tune(Attempt),
    /// The best of trials that were jobs of their own
    Choose(trials::Choose),
    /// Learn, with a checkpoint after every epoch
    Train(Training),
    /// Draw masks for X-rays that were held out
    Infer(segmentation::Infer),
    /// How well masks overlap, with pictures
    Evaluate(evaluation::Evaluate),
}

/// Runs one step.
pub fn run(step: Step) -> Result<(), Failure> {
    match step {
        Step::Generate(step) => synthesis::generate(&step),
        Step::Split(step) => pairs::make_split(&step),
        Step::Preprocess(step) => pairs::preprocess(&step),
        Step::Tune(step) => segmentation::tune(&step),
        Step::Choose(step) => trials::choose(&step),
        Step::Train(step) => segmentation::train(&step),
        Step::Infer(step) => segmentation::infer(&step),
        Step::Evaluate(step) => evaluation::evaluate(&step),
    }
}
