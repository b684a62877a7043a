//! The network at work: trials, training, and the masks that it draws for X-rays that it has not seen.

use super::pairs::{Pairs, TEST, TRAIN, VALIDATION};
use super::unet::{Unet, UnetConfig};
use crate::arrays::Arrays;
use crate::failure::{Failure, write_json};
use crate::learning::{Epoch, Judgement, Lesson, Plan, learn};
use crate::metrics::overlap;
use crate::models;
use crate::options::{Computing, Scale, Seed};
use crate::pictures::Picture;
use crate::trials::{Trial, say_epoch, say_result};
use burn::tensor::activation::{log_sigmoid, sigmoid};
use burn::tensor::{Device, Tensor, TensorData};
use clap::Args;
use rand_chacha::ChaCha8Rng;
use std::path::{Path, PathBuf};

/// What is learnt from, and how.
#[derive(Debug, Args)]
pub struct Learning {
    /// Files of pairs
    #[arg(required = true)]
    pairs: Vec<PathBuf>,
    /// Weights to begin with: a model file of the same scale
    #[arg(long)]
    pretrained: Option<PathBuf>,
    /// Pairs a step
    #[arg(long, default_value_t = 32)]
    batch: usize,
    #[command(flatten)]
    computing: Computing,
    #[command(flatten)]
    seed: Seed,
}

#[derive(Debug, Args)]
pub struct Tune {
    #[command(flatten)]
    learning: Learning,
    /// Learning rate
    #[arg(long)]
    lr: f64,
    #[arg(long, default_value_t = 1)]
    epochs: usize,
    /// A file for parameters and result, where no search listens
    #[arg(long)]
    report: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Train {
    #[command(flatten)]
    learning: Learning,
    /// The best trial of a search: learning rate
    #[arg(long)]
    best: PathBuf,
    #[arg(long, default_value_t = 25)]
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

#[derive(Debug, Args)]
pub struct Infer {
    /// Files of pairs; masks are drawn for those that were held out
    #[arg(required = true)]
    pairs: Vec<PathBuf>,
    #[arg(long)]
    model: PathBuf,
    /// The file for all masks
    #[arg(long)]
    out: PathBuf,
    /// A folder for each mask as a picture
    #[arg(long)]
    masks: Option<PathBuf>,
    #[command(flatten)]
    computing: Computing,
}

/// One trial: learns from what is for learning, is judged by what is for judging.
pub fn tune(options: &Tune) -> Result<(), Failure> {
    let chests = Chests::new(&options.learning, &[TRAIN], &[VALIDATION])?;
    let (_, epochs) = taught(&options.learning, &chests, options.lr, options.epochs, None)?;
    let params = [("lr".to_owned(), options.lr.into())].into();
    say_result(params, epochs.last(), options.report.as_deref())
}

/// Learns with the parameters that a search found best, also from what judged the trials. Epochs are judged by the same
/// pairs, so their scores say how well it learns, not how well it will do.
pub fn train(options: &Train) -> Result<(), Failure> {
    let best = Trial::load(&options.best)?;
    let lr = best.number("lr").ok_or_else(|| Failure::data(&options.best, "it has no parameter lr"))?;
    let chests = Chests::new(&options.learning, &[TRAIN, VALIDATION], &[VALIDATION])?;
    let (model, epochs) = taught(&options.learning, &chests, lr, options.epochs, options.checkpoint.as_deref())?;
    models::save(&model, &options.model)?;
    write_json(&options.history, &epochs)
}

fn taught(
    learning: &Learning,
    chests: &Chests,
    learning_rate: f64,
    epochs: usize,
    checkpoint: Option<&Path>,
) -> Result<(Unet, Vec<Epoch>), Failure> {
    let plan = Plan { epochs, batch: learning.batch, learning_rate, final_part: 0.05, seed: learning.seed.seed };
    let make = |device: &Device| {
        let network = UnetConfig::at(learning.computing.scale).init(device);
        match &learning.pretrained {
            Some(path) => models::load(network, path),
            None => Ok(network),
        }
    };
    learn(&plan, chests, &learning.computing.device()?, checkpoint, make, say_epoch)
}

/// Draws masks for what was held out.
pub fn infer(options: &Infer) -> Result<(), Failure> {
    let device = options.computing.device()?;
    let pairs = Pairs::load(&options.pairs)?;
    let network = models::load(UnetConfig::at(options.computing.scale).init(&device), &options.model)?;
    let chests = Chests { learnt: Vec::new(), judging: pairs.of(&[TEST]), pairs };
    chests.fit(options.computing.scale)?;
    let side = chests.pairs.side;
    let mut drawn = Vec::new();
    for items in chests.judging.chunks(32) {
        drawn.extend(chests.drawn(&network, items, &device).1.iter().map(|value| u8::from(*value > 0.0)));
    }
    let names: Vec<&str> = chests.judging.iter().map(|at| chests.pairs.names[*at].as_str()).collect();
    if let Some(folder) = &options.masks {
        for (name, mask) in names.iter().zip(drawn.chunks(side * side)) {
            let mask = Picture {
                channels: 1,
                height: side,
                width: side,
                values: mask.iter().map(|set| f32::from(*set)).collect(),
            };
            let stem = name.strip_suffix(".png").unwrap_or(name);
            mask.write(&folder.join(format!("{stem}_mask.png")))?;
        }
    }
    let mut arrays = Arrays::default();
    arrays.insert_bytes("masks", vec![names.len(), 1, side, side], drawn);
    arrays.texts.insert("names".into(), names.iter().map(|name| format!("{name}\n")).collect());
    arrays.save(&options.out)
}

/// X-rays to learn from.
struct Chests {
    pairs: Pairs,
    learnt: Vec<usize>,
    judging: Vec<usize>,
}

impl Chests {
    fn new(learning: &Learning, learnt: &[u8], judging: &[u8]) -> Result<Self, Failure> {
        let pairs = Pairs::load(&learning.pairs)?;
        let chests = Self { learnt: pairs.of(learnt), judging: pairs.of(judging), pairs };
        chests.fit(learning.computing.scale)?;
        Ok(chests)
    }

    fn fit(&self, scale: Scale) -> Result<(), Failure> {
        let side = UnetConfig::at(scale).side;
        match self.pairs.side == side {
            true => Ok(()),
            false => Err(Failure::options(format!(
                "the pictures have {} pixels along a side, this network takes {side}: give both steps the same --scale",
                self.pairs.side
            ))),
        }
    }

    fn tensor(&self, values: Vec<f32>, channels: usize, device: &Device) -> Tensor<4> {
        let side = self.pairs.side;
        let count = values.len() / (channels * side * side);
        Tensor::from_data(TensorData::new(values, [count, channels, side, side]), device)
    }

    /// Numbers with mean 0 and deviation 1, the same in all three channels.
    fn pictures(&self, items: &[usize], device: &Device) -> Tensor<4> {
        let mut values = Vec::with_capacity(items.len() * 3 * self.pairs.side * self.pairs.side);
        for item in items {
            for _ in 0..3 {
                values.extend(self.pairs.picture(*item).iter().map(|byte| (f32::from(*byte) / 255.0 - 0.5) * 6.0));
            }
        }
        self.tensor(values, 3, device)
    }

    fn masks(&self, items: &[usize], device: &Device) -> Tensor<4> {
        let values = items.iter().flat_map(|item| self.pairs.mask(*item)).map(|set| f32::from(*set)).collect();
        self.tensor(values, 1, device)
    }

    /// What a network draws, and its loss.
    fn drawn(&self, model: &Unet, items: &[usize], device: &Device) -> (f64, Vec<f32>) {
        let drawn = model.forward(self.pictures(items, device));
        let loss = loss_of(drawn.clone(), self.masks(items, device)).into_scalar::<f32>();
        (f64::from(loss), drawn.into_data().try_to_vec::<f32>().expect("masks are 32-bit floating-point numbers"))
    }
}

/// Cross entropy, which judges pixels, and what Dice lacks of one, which judges the mask as a whole.
fn loss_of(drawn: Tensor<4>, truth: Tensor<4>) -> Tensor<1> {
    let right = truth.clone() * log_sigmoid(drawn.clone()) + (-truth.clone() + 1.0) * log_sigmoid(-drawn.clone());
    let likely = sigmoid(drawn);
    let both = (likely.clone() * truth.clone()).sum();
    let dice = (both * 2.0 + 1.0) / (likely.sum() + truth.sum() + 1.0);
    -right.mean() - dice + 1.0
}

impl Lesson<Unet> for Chests {
    fn items(&self) -> usize {
        self.learnt.len()
    }

    fn loss(&self, model: &Unet, items: &[usize], _: &mut ChaCha8Rng, device: &Device) -> Tensor<1> {
        let items: Vec<usize> = items.iter().map(|item| self.learnt[*item]).collect();
        loss_of(model.forward(self.pictures(&items, device)), self.masks(&items, device))
    }

    fn judge(&self, model: &Unet, device: &Device) -> Judgement {
        let (mut loss, mut dice) = (0.0, 0.0);
        let size = self.pairs.side * self.pairs.side;
        for items in self.judging.chunks(32) {
            let (mean, drawn) = self.drawn(model, items, device);
            loss += mean * items.len() as f64;
            for (item, drawn) in items.iter().zip(drawn.chunks(size)) {
                let said: Vec<bool> = drawn.iter().map(|value| *value > 0.0).collect();
                let truth: Vec<bool> = self.pairs.mask(*item).iter().map(|set| *set > 0).collect();
                dice += overlap(&truth, &said).dice;
            }
        }
        let count = self.judging.len().max(1) as f64;
        Judgement { loss: loss / count, score: dice / count }
    }
}
