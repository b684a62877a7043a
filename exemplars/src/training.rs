//! What every step takes that teaches or asks a network: options with one spelling and one meaning, and what is done with
//! them. What the network is and what it learns from is not known here.

use crate::failure::{Failure, write_json};
use crate::learning::{Epoch, Lesson, Plan, learn};
use crate::models;
use crate::options::{Computing, Seed};
use crate::trials::{Trial, say_epoch, say_result};
use burn::module::Module;
use burn::tensor::Device;
use clap::Args;
use std::path::{Path, PathBuf};

/// What is learnt from, and how.
#[derive(Debug, Args)]
pub struct Learning {
    /// Files of pre-processed examples
    #[arg(required = true)]
    pub examples: Vec<PathBuf>,
    /// Weights to begin with: a model file of the same scale
    #[arg(long)]
    pretrained: Option<PathBuf>,
    /// Examples a step; as published if not said, or as many as suit the small scale
    #[arg(long)]
    batch: Option<usize>,
    #[command(flatten)]
    pub computing: Computing,
    #[command(flatten)]
    seed: Seed,
}

/// One trial of a search.
#[derive(Debug, Args)]
pub struct Attempt {
    #[command(flatten)]
    pub learning: Learning,
    /// Learning rate
    #[arg(long)]
    lr: f64,
    /// So many times that learning rate: what a search varies
    #[arg(long, default_value_t = 1.0)]
    times: f64,
    #[arg(long, default_value_t = 1)]
    epochs: usize,
    /// A model file to write
    #[arg(long)]
    model: Option<PathBuf>,
    /// A file for parameters and result, where no search listens
    #[arg(long)]
    report: Option<PathBuf>,
}

/// Training with the parameters that a search found best.
#[derive(Debug, Args)]
pub struct Training {
    #[command(flatten)]
    pub learning: Learning,
    /// The best trial of a search: learning rate, and what else it chose
    #[arg(long)]
    best: PathBuf,
    /// The learning rate, where the search only chose how many `times` of it
    #[arg(long)]
    lr: Option<f64>,
    #[arg(long, default_value_t = 5)]
    epochs: usize,
    /// The state after the last epoch: written by this program, and read when it is started again
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// The model file to write
    #[arg(long)]
    model: PathBuf,
    /// The file for what each epoch came to
    #[arg(long)]
    history: PathBuf,
}

/// What a network is asked about.
#[derive(Debug, Args)]
pub struct Asking {
    /// Files of pre-processed examples; the network is asked about those that it has not learnt from
    #[arg(required = true)]
    pub examples: Vec<PathBuf>,
    #[arg(long)]
    model: PathBuf,
    /// The file to write
    #[arg(long)]
    pub out: PathBuf,
    #[command(flatten)]
    pub computing: Computing,
}

/// What a workflow decides about its training, whoever starts it.
#[derive(Debug, Clone, Copy)]
pub struct Custom {
    /// Examples a step where nobody says.
    pub batch: usize,
    /// The part of the learning rate that is left at the end.
    pub final_part: f64,
}

impl Learning {
    fn taught<M: Module>(
        &self,
        custom: Custom,
        (learning_rate, epochs): (f64, usize),
        checkpoint: Option<&Path>,
        lesson: &impl Lesson<M>,
        make: impl FnOnce(&Device) -> M,
        prepared: impl FnOnce(M) -> M,
    ) -> Result<(M, Vec<Epoch>), Failure> {
        let batch = self.batch.unwrap_or(custom.batch).max(1);
        let plan = Plan { epochs, batch, learning_rate, final_part: custom.final_part, seed: self.seed.seed };
        let make = |device: &Device| {
            let network = make(device);
            let network = match &self.pretrained {
                Some(path) => models::load(network, path)?,
                None => network,
            };
            Ok(prepared(network))
        };
        learn(&plan, lesson, &self.computing.device()?, checkpoint, make, say_epoch)
    }
}

impl Attempt {
    /// Learns, and says what it came to. `others` are the parameters beside the learning rate; `prepared` is done to a
    /// network whose weights are there.
    pub fn run<M: Module>(
        &self,
        custom: Custom,
        others: &[(&str, serde_json::Value)],
        lesson: &impl Lesson<M>,
        make: impl FnOnce(&Device) -> M,
        prepared: impl FnOnce(M) -> M,
    ) -> Result<(), Failure> {
        let learning_rate = self.lr * self.times;
        let how = (learning_rate, self.epochs);
        let (model, epochs) = self.learning.taught(custom, how, None, lesson, make, prepared)?;
        if let Some(path) = &self.model {
            models::save(&model, path)?;
        }
        let others = others.iter().cloned();
        let params = std::iter::once(("lr", learning_rate.into())).chain(others);
        let params = params.map(|(name, value)| (name.to_owned(), value)).collect();
        say_result(params, epochs.last(), self.report.as_deref())
    }
}

impl Training {
    /// The best trial, and its learning rate.
    pub fn best(&self) -> Result<(Trial, f64), Failure> {
        let best = Trial::load(&self.best)?;
        let lr = match (best.number("lr"), best.number("times"), self.lr) {
            (Some(lr), ..) => lr,
            (None, Some(times), Some(lr)) => lr * times,
            (None, Some(_), None) => {
                return Err(Failure::options("the best trial says how many times the learning rate: --lr says which"));
            }
            (None, None, _) => return Err(Failure::data(&self.best, "it has no parameter lr, and no times")),
        };
        Ok((best, lr))
    }

    /// Learns, or goes on from the checkpoint, and writes model and history.
    pub fn run<M: Module>(
        &self,
        custom: Custom,
        learning_rate: f64,
        lesson: &impl Lesson<M>,
        make: impl FnOnce(&Device) -> M,
        prepared: impl FnOnce(M) -> M,
    ) -> Result<(), Failure> {
        let how = (learning_rate, self.epochs);
        let checkpoint = self.checkpoint.as_deref();
        let (model, epochs) = self.learning.taught(custom, how, checkpoint, lesson, make, prepared)?;
        models::save(&model, &self.model)?;
        write_json(&self.history, &epochs)
    }
}

impl Asking {
    /// The network with the weights of the model file.
    pub fn network<M: Module>(&self, make: impl FnOnce(&Device) -> M) -> Result<(M, Device), Failure> {
        let device = self.computing.device()?;
        Ok((models::load(make(&device), &self.model)?, device))
    }
}
