//! Tree-structured Parzen estimators, multivariate: a density over the good trials and one over the rest; of points
//! drawn from the first, the one whose ratio is highest is next. Trials on the way count among the rest, so that many
//! at once do not all look at the same place. What an ask costs does not grow with the number of trials.

mod mixture;

use super::quasi::Halton;
use super::{Context, TpeSettings, bits};
use crate::history::PRUNED;
use crate::random::Stream;
use crate::space::{Point, Space};
use crate::trial::Trial;
use mixture::Mixture;
use std::collections::BTreeSet;

/// The most trials that count as good.
const GOOD: usize = 25;
/// Of the rest so many of the best, and as many spread over what remains, stand for all.
const REST: usize = 128;
/// So many of the trials on the way, the youngest.
const PENDING: usize = 128;

#[derive(Debug, Clone)]
pub(crate) struct Tpe {
    settings: TpeSettings,
    halton: Halton,
    /// Points that were given out, where they can be counted: none is given out again while a candidate is new.
    given: Option<BTreeSet<Vec<Option<u64>>>>,
}

impl Tpe {
    pub(crate) fn new(settings: TpeSettings, space: &Space, halton: Halton) -> Self {
        let countable = (0..space.len()).all(|at| space.domain(at).cells().is_some());
        Self { settings, halton, given: countable.then(BTreeSet::new) }
    }

    pub(crate) fn begun(&mut self, trial: &Trial) {
        if let Some(given) = &mut self.given {
            given.insert(bits(&trial.point));
        }
    }

    pub(crate) fn suggest(&self, context: &Context<'_>, stream: &mut Stream) -> Point {
        if context.history.informative < self.settings.startup.max(1) {
            return context.space.at_units(&self.halton.units(context.number));
        }
        let (good, rest) = if context.history.objectives() == 1 { split(context) } else { split_front(context) };
        let good = Mixture::new(context.space, context.history, &good);
        let rest = Mixture::new(context.space, context.history, &rest);
        let mut best: Option<(bool, f64, Point)> = None;
        for _ in 0..self.settings.candidates {
            let point = good.sample(context.space, stream);
            let units = context.space.to_units(&point);
            let score =
                good.log_density(context.space, &point, &units) - rest.log_density(context.space, &point, &units);
            let new = self.given.as_ref().is_none_or(|given| !given.contains(&bits(&point)));
            if best.as_ref().is_none_or(|(newer, highest, _)| (new, score) > (*newer, *highest)) {
                best = Some((new, score, point));
            }
        }
        best.map_or_else(|| super::random(context.space, stream), |(_, _, point)| point)
    }
}

/// Trials with their weights.
type Weighted = Vec<(u32, f64)>;

fn split(context: &Context<'_>) -> (Weighted, Weighted) {
    let ranked = &context.history.ranked;
    let usable = ranked.partition_point(|rank| rank.class <= PRUNED);
    let good = good_count(context.history.informative, context.history.pending.len()).min(usable.max(1));
    let best = ranked[..good].iter().map(|rank| (rank.number, 1.0)).collect();
    (best, thinned(context, ranked.len() - good, |at| ranked[good + at].number))
}

/// One in ten, and fewer the more are on the way: what is known then is old, and must be made more of. With 64 at once and one
/// in ten, new trials would still lie around the first ones when the budget is over.
fn good_count(informative: usize, pending: usize) -> usize {
    let one_in = 10 + 10 * (pending + 1).ilog2() as usize / 3;
    informative.div_ceil(one_in).clamp(1, GOOD)
}

/// The rest, best first, few enough that an ask costs the same for a thousand trials and for a million.
fn thinned(context: &Context<'_>, rest: usize, number: impl Fn(usize) -> u32) -> Weighted {
    let near = rest.min(REST);
    let mut weighted: Weighted = (0..near).map(|at| (number(at), 1.0)).collect();
    let far = rest - near;
    let kept = far.min(REST);
    for at in 0..kept {
        weighted.push((number(near + at * far / kept), far as f64 / kept as f64));
    }
    let pending = context.history.pending.len();
    let weight = pending as f64 / pending.clamp(1, PENDING) as f64;
    weighted.extend(context.history.pending.iter().rev().take(PENDING).map(|number| (*number, weight)));
    weighted
}

/// With several objectives the good ones are the first fronts, the most spread first.
fn split_front(context: &Context<'_>) -> (Weighted, Weighted) {
    let history = context.history;
    // Older trials than these seldom are on a front that newer ones are not.
    let from = history.ended.len().saturating_sub(1000);
    let recent: Vec<u32> = history.ended[from..].to_vec();
    let (known, failed): (Vec<u32>, Vec<u32>) =
        recent.into_iter().partition(|number| history.losses(*number).iter().all(|loss| loss.is_finite()));
    let order = super::nsga::by_front(context.trials, history, &known);
    let good = good_count(known.len(), history.pending.len()).min(order.len().max(1));
    let mut rest: Vec<u32> = order[good.min(order.len())..].to_vec();
    rest.extend(failed);
    (
        order[..good.min(order.len())].iter().map(|number| (*number, 1.0)).collect(),
        thinned(context, rest.len(), |at| rest[at]),
    )
}
