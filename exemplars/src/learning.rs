//! The loop that every model here learns in: epochs of shuffled batches, Adam, a checkpoint after each epoch. What is
//! learnt and how it is judged, the caller says.

use crate::checkpoint::Checkpoint;
use crate::failure::Failure;
use crate::models;
use crate::seeds::{generator, shuffled};
use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Bytes, Device, Tensor};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How to learn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    pub epochs: usize,
    pub batch: usize,
    pub learning_rate: f64,
    /// The learning rate falls along half a cosine to this part of itself at the end; 1 keeps it.
    pub final_part: f64,
    pub seed: u64,
}

/// What an epoch came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    pub epoch: usize,
    /// Mean loss of the batches, while learning.
    pub training_loss: f64,
    /// Loss on what is held out.
    pub loss: f64,
    /// What the workflow calls good on what is held out: accuracy, Dice.
    pub score: f64,
}

/// What was seen on held-out items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    pub loss: f64,
    pub score: f64,
}

/// What is learnt from.
pub trait Lesson<M: Module> {
    /// How many items there are to learn from.
    fn items(&self) -> usize;
    /// The loss of a model on some of them. `random` is for what is made up on the fly and depends on seed, epoch and
    /// batch only.
    fn loss(&self, model: &M, items: &[usize], random: &mut ChaCha8Rng, device: &Device) -> Tensor<1>;
    /// How good a model is on what is held out.
    fn judge(&self, model: &M, device: &Device) -> Judgement;
}

/// Learns, or goes on where the checkpoint stopped, and gives the model and all its epochs. `told` hears of each epoch,
/// also of those before the checkpoint. `make` makes the model to begin with, perhaps with pretrained or frozen parts.
pub fn learn<M: Module>(
    plan: &Plan,
    lesson: &impl Lesson<M>,
    device: &Device,
    checkpoint: Option<&Path>,
    make: impl FnOnce(&Device) -> Result<M, Failure>,
    mut told: impl FnMut(&Epoch),
) -> Result<(M, Vec<Epoch>), Failure> {
    let _drawn_by_us_only = models::random_numbers();
    let device = device.clone().autodiff();
    let mut model = models::fresh(plan.seed, &device, make)?;
    let mut optimiser = AdamConfig::new().init();
    let mut epochs = Vec::new();
    let name = serde_json::json!({"plan": plan, "items": lesson.items()}).to_string();
    if let Some(path) = checkpoint
        && let Some(found) = Checkpoint::load(path)?
    {
        if found.lesson != name {
            return Err(Failure::data(
                path,
                format!("it is the checkpoint of {}; remove it to learn {name}", found.lesson),
            ));
        }
        model = models::filled(model, &found.model).map_err(|what| Failure::data(path, what))?;
        optimiser =
            optimiser.from_bytes(Bytes::from_bytes_vec(found.optimiser)).map_err(|error| Failure::data(path, error))?;
        epochs = found.epochs;
        epochs.iter().for_each(&mut told);
    }
    for number in epochs.len() + 1..=plan.epochs {
        let training_loss;
        (model, training_loss) = teach(plan, lesson, &device, number, model, &mut optimiser);
        let Judgement { loss, score } = lesson.judge(&model.valid(), &device.clone().without_autodiff());
        epochs.push(Epoch { epoch: number, training_loss, loss, score });
        if let Some(path) = checkpoint {
            let optimiser = optimiser.into_bytes().map_err(|error| Failure::Optimiser { what: error.to_string() })?;
            let (lesson, model) = (name.clone(), models::arrays(&model));
            Checkpoint { lesson, epochs: epochs.clone(), model, optimiser: optimiser.to_vec() }.save(path)?;
        }
        epochs.last().into_iter().for_each(&mut told);
    }
    Ok((model.valid(), epochs))
}

/// One epoch: the model after it, and its mean loss on the way.
fn teach<M: Module>(
    plan: &Plan,
    lesson: &impl Lesson<M>,
    device: &Device,
    epoch: usize,
    mut model: M,
    optimiser: &mut ModuleOptimizer,
) -> (M, f64) {
    let order = shuffled(&mut generator(plan.seed, "order", epoch as u64), lesson.items());
    let batches = order.len().div_ceil(plan.batch).max(1);
    let mut sum = 0.0;
    for (number, items) in order.chunks(plan.batch).enumerate() {
        let step = ((epoch - 1) * batches + number) as u64;
        let mut random = generator(plan.seed, "batch", step);
        device.seed(random.random());
        let loss = lesson.loss(&model, items, &mut random, device);
        sum += f64::from(loss.clone().into_scalar::<f32>()) * items.len() as f64;
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(learning_rate(plan, step as f64 / (plan.epochs * batches) as f64), model, gradients);
    }
    (model, sum / order.len().max(1) as f64)
}

fn learning_rate(plan: &Plan, part_done: f64) -> f64 {
    let height = 0.5 * (1.0 + (std::f64::consts::PI * part_done).cos());
    plan.learning_rate * (plan.final_part + (1.0 - plan.final_part) * height)
}

/// The line of JSON about an epoch that a search and its dashboards read.
pub fn epoch_line(epoch: &Epoch) -> String {
    serde_json::json!({
        "epoch": epoch.epoch, "loss": epoch.loss, "score": epoch.score, "training_loss": epoch.training_loss,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_falls_to_its_final_part() {
        let plan = Plan { epochs: 2, batch: 8, learning_rate: 0.1, final_part: 0.25, seed: 1 };
        let rates: Vec<String> =
            [0.0, 0.5, 1.0].iter().map(|part| format!("{:.4}", learning_rate(&plan, *part))).collect();
        assert_eq!(rates, ["0.1000", "0.0625", "0.0250"]);
    }
}
