//! The network at work: trials, training, and the masks that it draws for X-rays that it has not seen.

use super::pairs::{Pairs, TEST, TRAIN, VALIDATION};
use super::unet::{Unet, UnetConfig};
use crate::arrays::Arrays;
use crate::failure::Failure;
use crate::learning::{Judgement, Lesson};
use crate::metrics::overlap;
use crate::options::{Computing, Scale};
use crate::pictures::Picture;
use crate::training::{Asking, Attempt, Custom, Learning, Training};
use burn::tensor::activation::{log_sigmoid, sigmoid};
use burn::tensor::{Device, Tensor, TensorData};
use clap::Args;
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Infer {
    #[command(flatten)]
    asking: Asking,
    /// A folder for each mask as a picture
    #[arg(long)]
    masks: Option<PathBuf>,
}

const CUSTOM: Custom = Custom { batch: 32, final_part: 0.05 };

fn network(computing: &Computing) -> impl FnOnce(&Device) -> Unet {
    let scale = computing.scale;
    move |device| UnetConfig::at(scale).init(device)
}

/// One trial: learns from what is for learning, is judged by what is for judging.
pub fn tune(options: &Attempt) -> Result<(), Failure> {
    let chests = Chests::new(&options.learning, &[TRAIN], &[VALIDATION])?;
    options.run(CUSTOM, &[], &chests, network(&options.learning.computing), |model| model)
}

/// Learns with the parameters that a search found best, also from what judged the trials. Epochs are judged by the same
/// pairs, so their scores say how well it learns, not how well it will do.
pub fn train(options: &Training) -> Result<(), Failure> {
    let (_, lr) = options.best()?;
    let chests = Chests::new(&options.learning, &[TRAIN, VALIDATION], &[VALIDATION])?;
    options.run(CUSTOM, lr, &chests, network(&options.learning.computing), |model| model)
}

/// Draws masks for what was held out.
pub fn infer(options: &Infer) -> Result<(), Failure> {
    let Infer { asking, masks } = options;
    let pairs = Pairs::load(&asking.examples)?;
    let (network, device) = asking.network(network(&asking.computing))?;
    let chests = Chests { learnt: Vec::new(), judging: pairs.of(&[TEST]), pairs };
    chests.fit(asking.computing.scale)?;
    let side = chests.pairs.side;
    let mut drawn = Vec::new();
    for items in chests.judging.chunks(32) {
        drawn.extend(chests.drawn(&network, items, &device).1.iter().map(|value| u8::from(*value > 0.0)));
    }
    let names: Vec<&str> = chests.judging.iter().map(|at| chests.pairs.names[*at].as_str()).collect();
    if let Some(folder) = masks {
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
    arrays.save(&asking.out)
}

/// X-rays to learn from.
struct Chests {
    pairs: Pairs,
    learnt: Vec<usize>,
    judging: Vec<usize>,
}

impl Chests {
    fn new(learning: &Learning, learnt: &[u8], judging: &[u8]) -> Result<Self, Failure> {
        let pairs = Pairs::load(&learning.examples)?;
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
