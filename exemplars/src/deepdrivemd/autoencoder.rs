//! The autoencoder: contact maps in, a few numbers in the middle, contact maps out. How it learns, and where it puts a
//! conformation.

use super::frames::{Frame, pairs, read_all, written};
use crate::arrays::Arrays;
use crate::failure::{Failure, write_json, write_whole};
use crate::learning::{Judgement, Lesson, Plan, learn};
use crate::models;
use crate::options::{Computing, Scale, Seed};
use crate::trials::say_epoch;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::{relu, sigmoid};
use burn::tensor::{Device, Tensor, TensorData};
use clap::Args;
use rand_chacha::ChaCha8Rng;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Aggregate {
    /// Trajectories
    #[arg(required = true)]
    frames: Vec<PathBuf>,
    /// The file of contact maps to write
    #[arg(long)]
    out: PathBuf,
    /// A trajectory to write, with all frames
    #[arg(long)]
    all: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Train {
    /// Files of contact maps
    #[arg(required = true)]
    maps: Vec<PathBuf>,
    #[arg(long, default_value_t = 20)]
    epochs: usize,
    #[arg(long, default_value_t = 64)]
    batch: usize,
    #[arg(long, default_value_t = 0.003)]
    lr: f64,
    /// The state after the last epoch: written by this program, and read when it is started again
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// The model file to write
    #[arg(long)]
    model: PathBuf,
    /// The file for what each epoch came to
    #[arg(long)]
    history: Option<PathBuf>,
    #[command(flatten)]
    computing: Computing,
    #[command(flatten)]
    seed: Seed,
}

/// The network.
#[derive(Module, Debug)]
pub(super) struct Autoencoder {
    encoder: Vec<Linear>,
    decoder: Vec<Linear>,
}

impl Autoencoder {
    pub(super) fn new(scale: Scale, device: &Device) -> Self {
        let contacts = pairs().count();
        let sizes: &[usize] = match scale {
            Scale::Small => &[contacts, 64, 16, 3],
            Scale::Full => &[contacts, 512, 128, 10],
        };
        let layer = |pair: [usize; 2]| LinearConfig::new(pair[0], pair[1]).init(device);
        let forth = sizes.windows(2).map(|pair| layer([pair[0], pair[1]])).collect();
        let back = sizes.windows(2).rev().map(|pair| layer([pair[1], pair[0]])).collect();
        Self { encoder: forth, decoder: back }
    }

    /// The few numbers in the middle.
    pub(super) fn encode(&self, maps: Tensor<2>) -> Tensor<2> {
        through(&self.encoder, maps)
    }

    fn forward(&self, maps: Tensor<2>) -> Tensor<2> {
        sigmoid(through(&self.decoder, self.encode(maps)))
    }
}

fn through(layers: &[Linear], mut values: Tensor<2>) -> Tensor<2> {
    for (at, layer) in layers.iter().enumerate() {
        values = layer.forward(values);
        if at + 1 < layers.len() {
            values = relu(values);
        }
    }
    values
}

/// Trajectories become contact maps.
pub(super) fn aggregate(options: &Aggregate) -> Result<(), Failure> {
    let frames = read_all(&options.frames)?;
    let maps: Vec<u8> = frames.iter().flat_map(Frame::contacts).collect();
    let mut arrays = Arrays::default();
    arrays.insert_bytes("maps", vec![frames.len(), pairs().count()], maps);
    arrays.save(&options.out)?;
    options.all.as_ref().map_or(Ok(()), |path| write_whole(path, written(&frames).as_bytes()))
}

/// Learns from contact maps.
pub(super) fn train(options: &Train) -> Result<(), Failure> {
    let device = options.computing.device()?;
    let lesson = Maps::load(&options.maps)?;
    let plan = Plan {
        epochs: options.epochs,
        batch: options.batch,
        learning_rate: options.lr,
        final_part: 0.05,
        seed: options.seed.seed,
    };
    let make = |device: &Device| Ok(Autoencoder::new(options.computing.scale, device));
    let (model, epochs) = learn(&plan, &lesson, &device, options.checkpoint.as_deref(), make, say_epoch)?;
    models::save(&model, &options.model)?;
    options.history.as_ref().map_or(Ok(()), |path| write_json(path, &epochs))
}

/// Where a trained network puts conformations.
pub(super) fn latent(model: &Path, computing: &Computing, frames: &[Frame]) -> Result<Vec<Vec<f64>>, Failure> {
    let device = computing.device()?;
    let network = models::load(Autoencoder::new(computing.scale, &device), model)?;
    let mut points = Vec::with_capacity(frames.len());
    for some in frames.chunks(512) {
        let maps: Vec<u8> = some.iter().flat_map(Frame::contacts).collect();
        let encoded = network.encode(tensor(&maps, &device));
        let width = encoded.dims()[1];
        let values = encoded.into_data().try_to_vec::<f32>().expect("latent numbers are 32-bit floating-point numbers");
        points.extend(values.chunks(width).map(|point| point.iter().map(|x| f64::from(*x)).collect()));
    }
    Ok(points)
}

fn tensor(maps: &[u8], device: &Device) -> Tensor<2> {
    let values: Vec<f32> = maps.iter().map(|contact| f32::from(*contact) / 255.0).collect();
    let width = pairs().count();
    Tensor::from_data(TensorData::new(values, [maps.len() / width, width]), device)
}

/// Contact maps to learn from; every tenth is held out.
struct Maps {
    learnt: Vec<u8>,
    held_out: Vec<u8>,
}

impl Maps {
    fn load(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut maps = Self { learnt: Vec::new(), held_out: Vec::new() };
        for path in paths {
            let arrays = Arrays::load(path)?;
            let (shape, values) = arrays.bytes("maps").map_err(|what| Failure::data(path, what))?;
            if shape.get(1) != Some(&pairs().count()) {
                return Err(Failure::data(path, format!("its maps do not have {} contacts each", pairs().count())));
            }
            for (at, map) in values.chunks(pairs().count()).enumerate() {
                if at % 10 == 9 { maps.held_out.extend(map) } else { maps.learnt.extend(map) }
            }
        }
        if maps.held_out.is_empty() {
            return Err(Failure::options("there are fewer than ten contact maps to learn from: simulate longer"));
        }
        Ok(maps)
    }
}

impl Lesson<Autoencoder> for Maps {
    fn items(&self) -> usize {
        self.learnt.len() / pairs().count()
    }

    fn loss(&self, model: &Autoencoder, items: &[usize], _: &mut ChaCha8Rng, device: &Device) -> Tensor<1> {
        let width = pairs().count();
        let maps: Vec<u8> =
            items.iter().flat_map(|item| &self.learnt[item * width..(item + 1) * width]).copied().collect();
        let maps = tensor(&maps, device);
        (model.forward(maps.clone()) - maps).square().mean()
    }

    /// The score is the part of all contacts that come out on the right side of one half.
    fn judge(&self, model: &Autoencoder, device: &Device) -> Judgement {
        let said = model.forward(tensor(&self.held_out, device)).into_data();
        let said = said.try_to_vec::<f32>().expect("contacts are 32-bit floating-point numbers");
        let (mut loss, mut right) = (0.0, 0);
        for (said, truth) in said.iter().zip(&self.held_out) {
            let truth = f32::from(*truth) / 255.0;
            loss += f64::from((said - truth).powi(2));
            right += usize::from((*said > 0.5) == (truth > 0.5));
        }
        let count = self.held_out.len() as f64;
        Judgement { loss: loss / count, score: right as f64 / count }
    }
}
