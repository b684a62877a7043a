//! The network at work: trials, training, and what it says of galaxies that it has not seen.

use super::classes::CLASSES;
use super::dataset::Split;
use super::samples::Samples;
use super::vgg::{Vgg16, Vgg16Config};
use crate::failure::{Failure, write_whole};
use crate::learning::{Judgement, Lesson};
use crate::options::{Computing, Scale};
use crate::training::{Asking, Attempt, Custom, Training};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use clap::Args;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Tune {
    #[command(flatten)]
    attempt: Attempt,
    /// How many of the first convolutions are transferred: they keep the weights that they begin with
    #[arg(long, default_value_t = 0)]
    transferred: usize,
}

const CUSTOM: Custom = Custom { batch: 32, final_part: 0.05 };

fn network(computing: &Computing) -> impl FnOnce(&Device) -> Vgg16 {
    let scale = computing.scale;
    move |device| Vgg16Config::at(scale, CLASSES.len()).init(device)
}

/// One trial.
pub fn tune(options: &Tune) -> Result<(), Failure> {
    let (learning, transferred) = (&options.attempt.learning, options.transferred);
    let lesson = Galaxies::load(&learning.examples, learning.computing.scale)?;
    let others = [("transferred", transferred.into())];
    options.attempt.run(CUSTOM, &others, &lesson, network(&learning.computing), |model| model.frozen(transferred))
}

/// Learns with the parameters that a search found best.
pub fn train(options: &Training) -> Result<(), Failure> {
    let (best, lr) = options.best()?;
    let transferred = best.number("transferred").unwrap_or(0.0) as usize;
    let computing = &options.learning.computing;
    let lesson = Galaxies::load(&options.learning.examples, computing.scale)?;
    options.run(CUSTOM, lr, &lesson, network(computing), |model| model.frozen(transferred))
}

/// Classifies what was held out: a galaxy a row, with its true class and the chance of each.
pub fn infer(options: &Asking) -> Result<(), Failure> {
    let lesson = Galaxies::load(&options.examples, options.computing.scale)?;
    let (network, device) = options.network(network(&options.computing))?;
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
    fn load(files: &[PathBuf], scale: Scale) -> Result<Self, Failure> {
        let samples = Samples::load(files)?;
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
