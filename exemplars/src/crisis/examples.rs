//! What both networks have in common: examples with one of two classes, learnt from, judged with or held out. What an
//! example is, a text or a picture, is not known here.

use super::tweets::{CLASSES, SPLITS};
use crate::arrays::Arrays;
use crate::failure::{Failure, write_whole};
use crate::learning::{Judgement, Lesson};
use crate::options::Computing;
use crate::training::{Asking, Attempt, Custom, Training};
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use clap::Args;
use rand_chacha::ChaCha8Rng;

#[derive(Debug, Args)]
pub struct Tune {
    #[command(flatten)]
    pub(crate) attempt: Attempt,
    /// Part of the network that is switched off by chance while learning
    #[arg(long, default_value_t = 0.0)]
    dropout: f64,
}

/// The classes and splits of examples, as they are kept in files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalogue {
    pub(crate) names: Vec<String>,
    pub(crate) labels: Vec<u8>,
    pub(crate) splits: Vec<u8>,
}

impl Catalogue {
    pub(crate) fn put(&self, arrays: &mut Arrays) {
        arrays.insert_bytes("labels", vec![self.labels.len()], self.labels.clone());
        arrays.insert_bytes("splits", vec![self.splits.len()], self.splits.clone());
        arrays.texts.insert("names".into(), self.names.join("\n"));
    }

    pub(super) fn take(&mut self, arrays: &Arrays) -> Result<(), String> {
        self.labels.extend(arrays.bytes("labels")?.1);
        self.splits.extend(arrays.bytes("splits")?.1);
        self.names.extend(arrays.texts.get("names").ok_or("it has no names")?.lines().map(str::to_owned));
        if self.names.len() != self.labels.len() || self.splits.len() != self.labels.len() {
            return Err("it does not have as many names as labels".into());
        }
        Ok(())
    }

    fn of(&self, split: u8) -> Vec<usize> {
        (0..self.splits.len()).filter(|at| self.splits[*at] == split).collect()
    }
}

/// Examples that a network can be asked about.
pub(crate) trait Examples<M: Module> {
    /// What the two classes are called.
    fn classes(&self) -> [&'static str; 2] {
        CLASSES
    }
    fn catalogue(&self) -> &Catalogue;
    /// What the network says of some of them. `random` is there while learning.
    fn scores(&self, model: &M, items: &[usize], random: Option<&mut ChaCha8Rng>, device: &Device) -> Tensor<2>;
    /// A network with initial weights.
    fn make(&self, computing: &Computing, dropout: f64, device: &Device) -> M;
    /// Examples a step where nobody says.
    fn usual_batch(&self, computing: &Computing) -> usize;
}

struct Teaching<'a, E>(&'a E, Vec<usize>);

impl<M: Module, E: Examples<M>> Lesson<M> for Teaching<'_, E> {
    fn items(&self) -> usize {
        self.1.len()
    }

    fn loss(&self, model: &M, items: &[usize], random: &mut ChaCha8Rng, device: &Device) -> Tensor<1> {
        let items: Vec<usize> = items.iter().map(|item| self.1[*item]).collect();
        let scores = self.0.scores(model, &items, Some(random), device);
        let labels: Vec<i32> = items.iter().map(|item| i32::from(self.0.catalogue().labels[*item])).collect();
        let truth = Tensor::<1, Int>::from_data(TensorData::new(labels, [items.len()]), device);
        CrossEntropyLossConfig::new().init(device).forward(scores, truth)
    }

    fn judge(&self, model: &M, device: &Device) -> Judgement {
        let catalogue = self.0.catalogue();
        let items = catalogue.of(1);
        let (mut loss, mut right) = (0.0, 0);
        for (item, chance) in items.iter().zip(chances(self.0, model, &items, device)) {
            let informative = catalogue.labels[*item] == 1;
            loss -= f64::from(if informative { chance } else { 1.0 - chance }).max(1e-7).ln();
            right += usize::from((chance > 0.5) == informative);
        }
        let count = items.len().max(1) as f64;
        Judgement { loss: loss / count, score: f64::from(right as u32) / count }
    }
}

/// The chance that each of these is informative.
fn chances<M: Module, E: Examples<M>>(examples: &E, model: &M, items: &[usize], device: &Device) -> Vec<f32> {
    let mut chances = Vec::with_capacity(items.len());
    for some in items.chunks(64) {
        let said = softmax(examples.scores(model, some, None, device), 1).into_data();
        let said = said.try_to_vec::<f32>().expect("scores are 32-bit floating-point numbers");
        chances.extend(said.chunks(CLASSES.len()).map(|pair| pair[1]));
    }
    chances
}

/// One trial.
pub(crate) fn tune<M: Module, E: Examples<M>>(examples: &E, options: &Tune) -> Result<(), Failure> {
    let Tune { attempt, dropout } = options;
    let computing = &attempt.learning.computing;
    let make = |device: &Device| examples.make(computing, *dropout, device);
    attempt.run(
        custom::<M, E>(examples, computing),
        &[("dropout", (*dropout).into())],
        &teaching::<M, E>(examples),
        make,
        |model| model,
    )
}

/// Learns with the parameters that a search found best.
pub(crate) fn train<M: Module, E: Examples<M>>(examples: &E, options: &Training) -> Result<(), Failure> {
    let (best, lr) = options.best()?;
    let dropout = best.number("dropout").unwrap_or(0.0);
    let computing = &options.learning.computing;
    let make = |device: &Device| examples.make(computing, dropout, device);
    options.run(custom::<M, E>(examples, computing), lr, &teaching::<M, E>(examples), make, |model| model)
}

fn custom<M: Module, E: Examples<M>>(examples: &E, computing: &Computing) -> Custom {
    Custom { batch: examples.usual_batch(computing), final_part: 0.02 }
}

fn teaching<M: Module, E: Examples<M>>(examples: &E) -> Teaching<'_, E> {
    Teaching(examples, examples.catalogue().of(0))
}

/// Classifies what was not learnt from: an example a row, with the chance that it is of the second class.
pub(crate) fn infer<M: Module, E: Examples<M>>(examples: &E, options: &Asking) -> Result<(), Failure> {
    let (network, device) = options.network(|device| examples.make(&options.computing, 0.0, device))?;
    let catalogue = examples.catalogue();
    let mut table = String::from("name,split,class,chance\n");
    for (split, name) in SPLITS.iter().enumerate().skip(1) {
        let items = catalogue.of(split as u8);
        for (item, chance) in items.iter().zip(chances(examples, &network, &items, &device)) {
            let class = examples.classes()[usize::from(catalogue.labels[*item])];
            table += &format!("{},{},{class},{chance:.6}\n", catalogue.names[*item], name);
        }
    }
    write_whole(&options.out, table.as_bytes())
}
