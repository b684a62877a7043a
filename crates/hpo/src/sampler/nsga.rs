//! NSGA-II in steady state: a population of the best fronts, most spread; children of two of its members by crossing
//! and mutation. Each trial that ends competes at once, so no generation is waited for.

use super::{Context, NsgaSettings};
use crate::history::History;
use crate::math::pow;
use crate::random::Stream;
use crate::space::{Point, Space};
use crate::trial::{State, Trial};

#[derive(Debug, Clone)]
pub(crate) struct Nsga {
    settings: NsgaSettings,
    /// Numbers with their losses and broken constraints.
    population: Vec<Member>,
}

#[derive(Debug, Clone)]
struct Member {
    number: u32,
    losses: Vec<f64>,
    violation: f64,
}

impl Member {
    fn of(history: &History, trial: &Trial) -> Self {
        Self { number: trial.number, losses: history.losses(trial.number).to_vec(), violation: trial.violation() }
    }

    /// Constraints first, then the objectives.
    fn dominates(&self, other: &Self) -> bool {
        if self.violation != other.violation {
            return self.violation < other.violation;
        }
        dominates(&self.losses, &other.losses)
    }
}

pub(crate) fn dominates(one: &[f64], other: &[f64]) -> bool {
    one.iter().zip(other).all(|(one, other)| one <= other) && one.iter().zip(other).any(|(one, other)| one < other)
}

impl Nsga {
    pub(crate) fn new(settings: NsgaSettings) -> Self {
        Self { settings, population: Vec::new() }
    }

    pub(crate) fn ended(&mut self, history: &History, trial: &Trial) {
        if trial.state != State::Complete {
            return;
        }
        self.population.push(Member::of(history, trial));
        if self.population.len() > self.settings.population {
            let worst = ordered(&self.population).pop().unwrap_or_default();
            self.population.remove(worst);
        }
    }

    pub(crate) fn suggest(&self, context: &Context<'_>, stream: &mut Stream) -> Point {
        if self.population.len() < self.settings.population.min(4).max(self.settings.population / 2) {
            return super::random(context.space, stream);
        }
        let order = ordered(&self.population);
        let mut parent = || {
            let (one, other) = (stream.below(order.len()), stream.below(order.len()));
            self.population[order[one.min(other)]].number
        };
        let (mother, father) = (parent(), parent());
        let (mother, father) = (context.history.units(mother), context.history.units(father));
        cross(context.space, mother, father, stream)
    }
}

/// Simulated binary crossover and polynomial mutation on the unit cube; choices are taken from either parent.
fn cross(space: &Space, mother: &[f64], father: &[f64], stream: &mut Stream) -> Point {
    const ETA_CROSS: f64 = 10.0;
    const ETA_MUTATE: f64 = 20.0;
    let rate = (1.0 / space.len() as f64).max(0.02);
    let child: Vec<f64> = (0..space.len())
        .map(|at| {
            let (swap, spread) = (stream.uniform() < 0.5, stream.uniform());
            let (mutate, bend) = (stream.uniform() < rate, stream.uniform());
            let (a, b) = if swap { (mother[at], father[at]) } else { (father[at], mother[at]) };
            let mut unit = match (a.is_nan(), b.is_nan()) {
                (true, true) => return bend,
                (true, false) => b,
                (false, true) => a,
                (false, false) if space.domain(at).is_choice() => a,
                (false, false) => {
                    let beta = if spread < 0.5 {
                        pow(2.0 * spread, 1.0 / (ETA_CROSS + 1.0))
                    } else {
                        pow(0.5 / (1.0 - spread), 1.0 / (ETA_CROSS + 1.0))
                    };
                    0.5 * ((1.0 + beta) * a + (1.0 - beta) * b)
                }
            };
            if mutate && space.domain(at).is_choice() {
                return bend;
            }
            if mutate {
                unit += if bend < 0.5 {
                    pow(2.0 * bend, 1.0 / (ETA_MUTATE + 1.0)) - 1.0
                } else {
                    1.0 - pow(2.0 * (1.0 - bend), 1.0 / (ETA_MUTATE + 1.0))
                };
            }
            unit.clamp(0.0, 1.0)
        })
        .collect();
    space.at_units(&child)
}

/// Trials, the first front first and within a front the most spread first.
pub(crate) fn by_front(trials: &[Trial], history: &History, numbers: &[u32]) -> Vec<u32> {
    let members: Vec<Member> = numbers.iter().map(|number| Member::of(history, &trials[*number as usize])).collect();
    ordered(&members).into_iter().map(|at| numbers[at]).collect()
}

/// Places of members by front, then by crowding distance.
fn ordered(members: &[Member]) -> Vec<usize> {
    let mut beaten_by: Vec<usize> = vec![0; members.len()];
    let mut beats: Vec<Vec<usize>> = vec![Vec::new(); members.len()];
    for one in 0..members.len() {
        for other in one + 1..members.len() {
            if members[one].dominates(&members[other]) {
                beats[one].push(other);
                beaten_by[other] += 1;
            } else if members[other].dominates(&members[one]) {
                beats[other].push(one);
                beaten_by[one] += 1;
            }
        }
    }
    let mut order = Vec::with_capacity(members.len());
    let mut front: Vec<usize> = (0..members.len()).filter(|at| beaten_by[*at] == 0).collect();
    while !front.is_empty() {
        let spread = crowding(members, &front);
        let mut sorted: Vec<usize> = (0..front.len()).collect();
        sorted.sort_by(|a, b| spread[*b].total_cmp(&spread[*a]).then(a.cmp(b)));
        order.extend(sorted.iter().map(|at| front[*at]));
        let mut next = Vec::new();
        for &one in &front {
            for &other in &beats[one] {
                beaten_by[other] -= 1;
                if beaten_by[other] == 0 {
                    next.push(other);
                }
            }
        }
        next.sort_unstable();
        front = next;
    }
    order
}

/// How far the neighbours of each lie, along every objective.
fn crowding(members: &[Member], front: &[usize]) -> Vec<f64> {
    let mut distance = vec![0.0; front.len()];
    for objective in 0..members[front[0]].losses.len() {
        let loss = |at: usize| members[front[at]].losses[objective];
        let mut sorted: Vec<usize> = (0..front.len()).collect();
        sorted.sort_by(|a, b| loss(*a).total_cmp(&loss(*b)));
        let (first, last) = (sorted[0], sorted[front.len() - 1]);
        let range = loss(last) - loss(first);
        distance[first] = f64::INFINITY;
        distance[last] = f64::INFINITY;
        if range > 0.0 && range.is_finite() {
            for window in sorted.windows(3) {
                distance[window[1]] += (loss(window[2]) - loss(window[0])) / range;
            }
        }
    }
    distance
}
