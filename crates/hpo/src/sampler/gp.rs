//! A Gaussian process over the whole space (Matérn 5/2, one length for each parameter) and the logarithm of the expected
//! improvement, climbed from the most promising places. Trials on the way are believed to give what is predicted.
//!
//! How smooth the function is (the hyper-parameters) is fitted to the first so many trials, at counts that grow by a
//! twelfth: a pure function of what ended, and cheap on the whole.

mod acquisition;
mod kernel;
mod model;

use super::quasi::Halton;
use super::{Context, GpSettings};
use crate::history::{History, PRUNED};
use crate::random::Stream;
use crate::space::{Point, Space};
use kernel::Smoothness;
use model::Model;

/// More trials than these are represented by the best and the latest.
const MOST: usize = 384;
/// Smoothness is fitted to so many at most.
const FITTED: usize = 96;

#[derive(Debug, Clone)]
pub(crate) struct Gp {
    settings: GpSettings,
    halton: Halton,
}

/// What one answer computed that the next can use. It changes no answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// To how many trials the smoothness was fitted, and what came out.
    fitted: Option<(usize, Smoothness)>,
    model: Option<Model>,
}

impl Gp {
    pub(crate) fn new(settings: GpSettings, halton: Halton) -> Self {
        Self { settings, halton }
    }

    pub(crate) fn suggest(&self, context: &Context<'_>, stream: &mut Stream, memory: &mut Memory) -> Point {
        let history = context.history;
        if history.informative < self.settings.startup.max(2) {
            return context.space.at_units(&self.halton.units(context.number));
        }
        let kinds: Vec<bool> = (0..context.space.len()).map(|at| context.space.domain(at).is_choice()).collect();
        let count = fit_count(history.ended.len());
        if memory.fitted.as_ref().is_none_or(|(known, _)| *known != count) {
            let chosen = representatives(context.space, history, &history.ended[..count], FITTED);
            let data = observations(history, &chosen);
            memory.fitted = Some((count, kernel::fit(&kinds, &data, context.seed)));
            memory.model = None;
        }
        let Some((_, smoothness)) = &memory.fitted else { return super::random(context.space, stream) };
        let chosen = representatives(context.space, history, &history.ended, MOST);
        let data = observations(history, &chosen);
        let mut model = match memory.model.take() {
            Some(model) if model.begins(&chosen) => model,
            _ => Model::new(smoothness.clone(), kinds),
        };
        model.observe(&chosen, data);
        let pending: Vec<Vec<f64>> =
            history.pending.iter().rev().take(MOST / 2).map(|number| filled(history.units(*number))).collect();
        let point = acquisition::best(context.space, &mut model, &pending, stream);
        memory.model = Some(model);
        point
    }
}

/// Places with losses.
pub(super) struct Data {
    pub(super) places: Vec<Vec<f64>>,
    pub(super) losses: Vec<f64>,
}

/// What is not active lies in the middle: its parent tells it apart.
pub(crate) fn filled(units: &[f64]) -> Vec<f64> {
    units.iter().map(|unit| if unit.is_nan() { 0.5 } else { *unit }).collect()
}

fn fit_count(ended: usize) -> usize {
    let mut count = 48;
    if ended <= count {
        return ended;
    }
    while count + count / 12 <= ended {
        count += count / 12;
    }
    count
}

/// All, in the order of their ends, or the best half and the latest half.
fn representatives(_space: &Space, history: &History, ended: &[u32], most: usize) -> Vec<u32> {
    if ended.len() <= most {
        return ended.to_vec();
    }
    let latest = &ended[ended.len() - most / 2..];
    let older = &ended[..ended.len() - most / 2];
    let mut sorted: Vec<u32> = older.to_vec();
    sorted.sort_by(|a, b| history.loss(*a).total_cmp(&history.loss(*b)).then(a.cmp(b)));
    sorted.truncate(most / 2);
    sorted.sort_unstable();
    sorted.extend(latest);
    sorted
}

/// Standardised; those without a value, or that break constraints, count as the worst, and outliers no more than that
/// of what is far from the rest: how bad something hopeless is teaches nothing about where the best lies.
fn observations(history: &History, chosen: &[u32]) -> Data {
    let classes: std::collections::BTreeMap<u32, u8> = if history.ranked.last().is_some_and(|rank| rank.class > PRUNED)
    {
        history.ranked.iter().filter(|rank| rank.class > PRUNED).map(|rank| (rank.number, rank.class)).collect()
    } else {
        std::collections::BTreeMap::new()
    };
    let known = |number: &u32| !classes.contains_key(number) && history.loss(*number).is_finite();
    let mut sorted: Vec<f64> =
        chosen.iter().filter(|number| known(number)).map(|number| history.loss(*number)).collect();
    sorted.sort_by(f64::total_cmp);
    let quantile = |share: f64| sorted.get((share * sorted.len() as f64) as usize).copied().unwrap_or(0.0);
    let middle = quantile(0.5);
    let ceiling = middle + 4.0 * (middle - quantile(0.0)).max(quantile(0.75) - middle);
    let worst = sorted.last().copied().unwrap_or(0.0).min(ceiling);
    let losses: Vec<f64> =
        chosen.iter().map(|number| if known(number) { history.loss(*number).min(ceiling) } else { worst }).collect();
    let mean = losses.iter().sum::<f64>() / losses.len().max(1) as f64;
    let variance = losses.iter().map(|loss| (loss - mean) * (loss - mean)).sum::<f64>() / losses.len().max(1) as f64;
    let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    Data {
        places: chosen.iter().map(|number| filled(history.units(*number))).collect(),
        losses: losses.iter().map(|loss| (loss - mean) / deviation).collect(),
    }
}
