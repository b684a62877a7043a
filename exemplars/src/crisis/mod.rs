//! Crisis: two pipelines, text and pictures, and their fusion.

mod evaluate;
pub(crate) mod examples;
mod fusion;
mod generate;
mod glove;
pub(crate) mod images;
pub(crate) mod resnet;
mod scenes;
mod text;
mod tweets;
mod words;

use crate::failure::Failure;
use crate::training::{Asking, Training};
use crate::trials;
use clap::Subcommand;

/// One program of the workflow.
#[derive(Debug, Subcommand)]
pub enum Step {
    /// A small data set in the layout of CrisisMMD 2.0
    Generate(generate::Generate),
    /// Messages without links, symbols and stop words, with the vectors of their words
    CleanText(text::Clean),
    /// Pictures as squares of one size
    Resize(images::Resize),
    /// One trial of the BiLSTM
    TuneText(examples::Tune),
    /// One trial of the ResNet-50
    TuneImage(examples::Tune),
    /// The best of several trials, where no search chooses it
    Choose(trials::Choose),
    /// The BiLSTM learns with the best parameters
    TrainText(Training),
    /// The ResNet-50 learns with the best parameters
    TrainImage(Training),
    /// What the BiLSTM says of messages that it has not learnt from
    InferText(Asking),
    /// What the ResNet-50 says of pictures that it has not learnt from
    InferImage(Asking),
    /// Both together
    Fuse(fusion::Fuse),
    /// How good each is, as a page
    Evaluate(evaluate::Evaluate),
}

/// Runs one step.
pub fn run(step: Step) -> Result<(), Failure> {
    match step {
        Step::Generate(options) => generate::generate(&options),
        Step::CleanText(options) => text::clean(&options),
        Step::Resize(options) => images::resize(&options),
        Step::TuneText(options) => examples::tune(&text::Messages::load(&options.attempt.learning.examples)?, &options),
        Step::TuneImage(options) => {
            let learning = &options.attempt.learning;
            examples::tune(&images::Pictures::load(&learning.examples, learning.computing.scale)?, &options)
        }
        Step::Choose(options) => trials::choose(&options),
        Step::TrainText(options) => examples::train(&text::Messages::load(&options.learning.examples)?, &options),
        Step::TrainImage(options) => {
            let learning = &options.learning;
            examples::train(&images::Pictures::load(&learning.examples, learning.computing.scale)?, &options)
        }
        Step::InferText(options) => examples::infer(&text::Messages::load(&options.examples)?, &options),
        Step::InferImage(options) => {
            examples::infer(&images::Pictures::load(&options.examples, options.computing.scale)?, &options)
        }
        Step::Fuse(options) => fusion::fuse(&options),
        Step::Evaluate(options) => evaluate::evaluate(&options),
    }
}
