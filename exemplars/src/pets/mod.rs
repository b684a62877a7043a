//! Cats and dogs, the walk-through of throughput machine learning: one network, many, and their mean. The network and how
//! it learns are those of the pictures of the crisis workflow.

mod drawing;
mod ensemble;

use crate::arrays::Arrays;
use crate::crisis::examples::{self, Catalogue, Examples};
use crate::crisis::images::Pictures;
use crate::crisis::resnet::{Resnet50, Resnet50Config};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::options::{Computing, Scale, Seed};
use crate::seeds::generator;
use crate::training::{Asking, Training};
use burn::tensor::{Device, Tensor};
use clap::{Args, Subcommand};
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;

pub(super) const CLASSES: [&str; 2] = ["cat", "dog"];

/// One program of the workflow.
#[derive(Debug, Subcommand)]
pub enum Step {
    /// Drawn cats and dogs, in files called cat.N.jpg and dog.N.jpg
    Generate(Generate),
    /// Pictures as squares of one size; the class is in the name of the file
    Prepare(Prepare),
    /// One trial
    Tune(examples::Tune),
    /// One network
    Train(Training),
    /// What a network says of pictures that it has not learnt from
    Infer(Asking),
    /// What several networks say together
    Ensemble(ensemble::Ensemble),
}

#[derive(Debug, Args)]
pub struct Generate {
    /// The folder to write to
    #[arg(long)]
    out: PathBuf,
    /// How many pictures
    #[arg(long, default_value_t = 400)]
    count: u64,
    #[command(flatten)]
    seed: Seed,
}

#[derive(Debug, Args)]
pub struct Prepare {
    /// The folder with the pictures, or an archive of it whose name ends in .tar
    #[arg(long)]
    pictures: PathBuf,
    #[arg(long, value_enum, default_value = "small")]
    scale: Scale,
    /// The file to write
    #[arg(long)]
    out: PathBuf,
}

/// Runs one step.
pub fn run(step: Step) -> Result<(), Failure> {
    match step {
        Step::Generate(options) => generate(&options),
        Step::Prepare(options) => prepare(&options),
        Step::Tune(options) => {
            let learning = &options.attempt.learning;
            examples::tune(&Pets(Pictures::load(&learning.examples, learning.computing.scale)?), &options)
        }
        Step::Train(options) => {
            let learning = &options.learning;
            examples::train(&Pets(Pictures::load(&learning.examples, learning.computing.scale)?), &options)
        }
        Step::Infer(options) => {
            examples::infer(&Pets(Pictures::load(&options.examples, options.computing.scale)?), &options)
        }
        Step::Ensemble(options) => ensemble::ensemble(&options),
    }
}

fn generate(options: &Generate) -> Result<(), Failure> {
    for number in 0..options.count {
        let class = (number % 2) as usize;
        let name = format!("{}.{}.jpg", CLASSES[class], number / 2);
        let mut random = generator(options.seed.seed, "pet", number);
        drawing::pet(&mut random, class == 1).write(&options.out.join(name))?;
    }
    Ok(())
}

/// Seven in ten are learnt from, one judges, two are held out, by the order of their names: no chance is needed, and a
/// resumed task has the same ones.
fn prepare(options: &Prepare) -> Result<(), Failure> {
    let side = Resnet50Config::at(options.scale, CLASSES.len()).side;
    let folder = Folder::open(&options.pictures, |name| class_of(name).is_some())?;
    let mut catalogue = Catalogue::default();
    let mut pixels = Vec::new();
    for (number, name) in folder.names()?.into_iter().filter(|name| class_of(name).is_some()).enumerate() {
        pixels.extend(folder.picture(&name, 3)?.resized(side, side).to_bytes());
        catalogue.labels.extend(class_of(&name));
        catalogue.splits.push([0, 0, 2, 0, 0, 1, 0, 2, 0, 0][number % 10]);
        catalogue.names.push(name);
    }
    if catalogue.names.is_empty() {
        return Err(Failure::data(&options.pictures, "it has no file whose name begins with cat. or dog."));
    }
    let mut arrays = Arrays::default();
    arrays.insert_bytes("pixels", vec![catalogue.names.len(), 3, side, side], pixels);
    catalogue.put(&mut arrays);
    arrays.save(&options.out)
}

fn class_of(name: &str) -> Option<u8> {
    let word = name.split('.').next()?;
    CLASSES.iter().position(|class| *class == word).map(|class| class as u8)
}

struct Pets(Pictures);

impl Examples<Resnet50> for Pets {
    fn classes(&self) -> [&'static str; 2] {
        CLASSES
    }

    fn catalogue(&self) -> &Catalogue {
        self.0.catalogue()
    }

    fn scores(&self, model: &Resnet50, items: &[usize], random: Option<&mut ChaCha8Rng>, device: &Device) -> Tensor<2> {
        self.0.scores(model, items, random, device)
    }

    fn make(&self, computing: &Computing, dropout: f64, device: &Device) -> Resnet50 {
        self.0.make(computing, dropout, device)
    }

    fn usual_batch(&self, computing: &Computing) -> usize {
        self.0.usual_batch(computing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_is_the_first_word_of_the_name() {
        assert_eq!(
            ["cat.7.jpg", "dog.12.jpg", "catalogue.jpg", "readme"].map(class_of),
            [Some(0), Some(1), None, None]
        );
    }
}
