//! The network at work: trials, training, and what it says of galaxies that it has not seen.

use super::classes::CLASSES;
use super::dataset::Split;
use super::samples::Samples;
use super::vgg::{Vgg16, Vgg16Config};
use crate::failure::{Failure, write_json, write_whole};
use crate::learning::{Epoch, Judgement, Lesson, Plan, learn};
use crate::models;
use crate::options::{Computing, Scale, Seed};
use crate::trials::{Trial, say_epoch, say_result};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use clap::Args;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::path::{Path, PathBuf};

/// What is learnt from, and how.
#[derive(Debug, Args)]
pub struct Learning {
    /// Files of pictures
    #[arg(required = true)]
    pictures: Vec<PathBuf>,
    /// Weights to begin with: a model file of the same scale
    #[arg(long)]
    pretrained: Option<PathBuf>,
    /// Pictures a step
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
    /// How many of the first convolutions are transferred: they keep the weights that they begin with
    #[arg(long, default_value_t = 0)]
    transferred: usize,
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
    /// The best trial of a search: learning rate and transferred layers
    #[arg(long)]
    best: PathBuf,
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

#[derive(Debug, Args)]
pub struct Infer {
    /// Files of pictures; those that were held out are classified
    #[arg(required = true)]
    pictures: Vec<PathBuf>,
    #[arg(long)]
    model: PathBuf,
    /// The table to write: a galaxy a row, with its true class and the chance of each
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    computing: Computing,
}

/// One trial.
pub fn tune(options: &Tune) -> Result<(), Failure> {
    let (_, epochs) = taught(&options.learning, options.lr, options.transferred, options.epochs, None, say_epoch)?;
    let params = [("lr", options.lr.into()), ("transferred", options.transferred.into())];
    let params = params.map(|(name, value)| (name.to_owned(), value)).into();
    say_result(params, epochs.last(), options.report.as_deref())
}

/// Learns with the parameters that a search found best.
pub fn train(options: &Train) -> Result<(), Failure> {
    let best = Trial::load(&options.best)?;
    let lr = best.number("lr").ok_or_else(|| Failure::data(&options.best, "it has no parameter lr"))?;
    let transferred = best.number("transferred").unwrap_or(0.0) as usize;
    let checkpoint = options.checkpoint.as_deref();
    let (model, epochs) = taught(&options.learning, lr, transferred, options.epochs, checkpoint, say_epoch)?;
    models::save(&model, &options.model)?;
    write_json(&options.history, &epochs)
}

fn taught(
    learning: &Learning,
    lr: f64,
    transferred: usize,
    epochs: usize,
    checkpoint: Option<&Path>,
    told: impl FnMut(&Epoch),
) -> Result<(Vgg16, Vec<Epoch>), Failure> {
    let device = learning.computing.device()?;
    let lesson = Galaxies::new(Samples::load(&learning.pictures)?, learning.computing.scale)?;
    let plan = Plan { epochs, batch: learning.batch, learning_rate: lr, final_part: 0.05, seed: learning.seed.seed };
    let make = |device: &Device| {
        let network = Vgg16Config::at(learning.computing.scale, CLASSES.len()).init(device);
        let network = match &learning.pretrained {
            Some(path) => models::load(network, path)?,
            None => network,
        };
        Ok(network.frozen(transferred))
    };
    learn(&plan, &lesson, &device, checkpoint, make, told)
}

/// Classifies what was held out.
pub fn infer(options: &Infer) -> Result<(), Failure> {
    let device = options.computing.device()?;
    let lesson = Galaxies::new(Samples::load(&options.pictures)?, options.computing.scale)?;
    let network = Vgg16Config::at(options.computing.scale, CLASSES.len()).init(&device);
    let network = models::load(network, &options.model)?;
    let mut table = format!("file,class,{}\n", CLASSES.join(","));
    for items in lesson.samples.of(Split::Test).chunks(64) {
        let scores = network.forward(lesson.batch(items, None, &device));
        let chances =
            softmax(scores, 1).into_data().try_to_vec::<f32>().expect("scores are 32-bit floating-point numbers");
        for (at, chances) in items.iter().zip(chances.chunks(CLASSES.len())) {
            let chances: Vec<String> = chances.iter().map(|chance| format!("{chance:.6}")).collect();
            let class = CLASSES[usize::from(lesson.samples.classes[*at])];
            table += &format!("{},{class},{}\n", lesson.samples.names[*at], chances.join(","));
        }
    }
    write_whole(&options.out, table.as_bytes())
}

/// Galaxies to learn from.
struct Galaxies {
    samples: Samples,
    train: Vec<usize>,
}

impl Galaxies {
    fn new(samples: Samples, scale: Scale) -> Result<Self, Failure> {
        let side = Vgg16Config::at(scale, CLASSES.len()).side;
        if samples.side != side {
            return Err(Failure::options(format!(
                "the pictures have {} pixels along a side, this network takes {side}: give both steps the same --scale",
                samples.side
            )));
        }
        Ok(Self { train: samples.of(Split::Train), samples })
    }

    /// Pictures as numbers with mean 0 and deviation 1; turned and mirrored by chance while learning, since a galaxy has
    /// no top.
    fn batch(&self, items: &[usize], mut random: Option<&mut ChaCha8Rng>, device: &Device) -> Tensor<4> {
        let side = self.samples.side;
        let mut values = Vec::with_capacity(items.len() * 3 * side * side);
        for item in items {
            let pixels = self.samples.pixels_of(*item);
            let turn: u8 = random.as_mut().map_or(0, |random| random.random_range(0..8));
            for plane in pixels.chunks(side * side) {
                for row in 0..side {
                    for column in 0..side {
                        let (mut y, mut x) = if turn & 4 == 0 { (row, column) } else { (column, row) };
                        if turn & 2 != 0 {
                            y = side - 1 - y;
                        }
                        if turn & 1 != 0 {
                            x = side - 1 - x;
                        }
                        values.push((f32::from(plane[y * side + x]) / 255.0 - 0.5) * 6.0);
                    }
                }
            }
        }
        Tensor::from_data(TensorData::new(values, [items.len(), 3, side, side]), device)
    }

    fn truth(&self, items: &[usize], device: &Device) -> Tensor<1, Int> {
        let classes: Vec<i32> = items.iter().map(|item| i32::from(self.samples.classes[*item])).collect();
        Tensor::from_data(TensorData::new(classes, [items.len()]), device)
    }
}

impl Lesson<Vgg16> for Galaxies {
    fn items(&self) -> usize {
        self.train.len()
    }

    fn loss(&self, model: &Vgg16, items: &[usize], random: &mut ChaCha8Rng, device: &Device) -> Tensor<1> {
        let items: Vec<usize> = items.iter().map(|item| self.train[*item]).collect();
        let scores = model.forward(self.batch(&items, Some(random), device));
        CrossEntropyLossConfig::new().init(device).forward(scores, self.truth(&items, device))
    }

    fn judge(&self, model: &Vgg16, device: &Device) -> Judgement {
        let items = self.samples.of(Split::Validation);
        let (mut loss, mut right) = (0.0, 0);
        for items in items.chunks(64) {
            let scores = model.forward(self.batch(items, None, device));
            let truth = self.truth(items, device);
            let mean = CrossEntropyLossConfig::new().init(device).forward(scores.clone(), truth);
            loss += f64::from(mean.into_scalar::<f32>()) * items.len() as f64;
            let said = scores.into_data().try_to_vec::<f32>().expect("scores are 32-bit floating-point numbers");
            let truths = items.iter().map(|item| usize::from(self.samples.classes[*item]));
            right += said.chunks(CLASSES.len()).zip(truths).filter(|(scores, truth)| largest(scores) == *truth).count();
        }
        let count = items.len().max(1) as f64;
        Judgement { loss: loss / count, score: right as f64 / count }
    }
}

/// The place of the largest number.
pub(super) fn largest(numbers: &[f32]) -> usize {
    (0..numbers.len()).max_by(|one, other| numbers[*one].total_cmp(&numbers[*other])).unwrap_or(0)
}
