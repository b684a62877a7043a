//! What fits together into an allocation, by totals: how many of some demands, and in how many rounds all of them.

use super::allocation::{DIMENSIONS, Demand};

/// How many demands fit together: so many certainly do, and more than so many certainly do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) least: usize,
    pub(super) most: usize,
}

/// Steps from one resource to another when demands are weighed.
const STEPS: usize = 8;

/// The largest number of demands that fit together.
///
/// With one scarce resource the smallest ones are the answer. With several the question is hard, so demands are
/// sorted by several weighted sums of their shares: each order gives a choice that fits and a number that no choice
/// can exceed. Where the best of both meet, the count is exact.
pub(super) fn most_that_fit(demands: &[Demand], limit: Demand) -> Count {
    let fitting: Vec<Demand> = demands.iter().copied().filter(|demand| demand.fits(limit)).collect();
    let sum = fitting.iter().fold(Demand::default(), |sum, demand| sum.plus(*demand));
    let scarce: Vec<usize> = (0..DIMENSIONS).filter(|dimension| sum.0[*dimension] > limit.0[*dimension]).collect();
    let mut count = Count { least: 0, most: fitting.len() };
    if scarce.is_empty() {
        count.least = fitting.len();
        return count;
    }
    for weights in weights(&scarce) {
        let share = |demand: &Demand| -> f64 {
            (0..DIMENSIONS).map(|at| weights[at] * demand.0[at] as f64 / limit.0[at].max(1) as f64).sum()
        };
        let mut order: Vec<(f64, Demand)> = fitting.iter().map(|demand| (share(demand), *demand)).collect();
        order.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut shares = 0.0;
        // A little more than 1, so that rounding never hides a choice.
        let most = order
            .iter()
            .take_while(|(share, _)| {
                shares += share;
                shares <= 1.0 + 1e-9
            })
            .count();
        let mut held = Demand::default();
        let mut least = 0;
        for (_, demand) in &order {
            let with = held.plus(*demand);
            if with.fits(limit) {
                held = with;
                least += 1;
            }
        }
        count.least = count.least.max(least);
        count.most = count.most.min(most);
        if count.least >= count.most {
            break;
        }
    }
    count.most = count.most.max(count.least);
    count
}

/// Weights that add up to 1, over the scarce resources only; each resource alone comes first.
fn weights(scarce: &[usize]) -> Vec<[f64; DIMENSIONS]> {
    let mut weights = Vec::new();
    let weight = |parts: &[(usize, usize)]| {
        let mut weight = [0.0; DIMENSIONS];
        parts.iter().for_each(|(at, part)| weight[*at] = *part as f64 / STEPS as f64);
        weight
    };
    weights.extend(scarce.iter().map(|at| weight(&[(*at, STEPS)])));
    for (position, one) in scarce.iter().enumerate() {
        for other in &scarce[position + 1..] {
            weights.extend((1..STEPS).map(|part| weight(&[(*one, part), (*other, STEPS - part)])));
        }
    }
    if let [one, two, three] = scarce[..] {
        for first in 1..STEPS - 1 {
            weights.extend(
                (1..STEPS - first)
                    .map(|second| weight(&[(one, first), (two, second), (three, STEPS - first - second)])),
            );
        }
    }
    weights
}

/// Rounds that stay open for what comes later; more would make wide ranks quadratic.
const OPEN: usize = 16;

/// Puts demands, in their order, into rounds that fit together: each into the first open round with room for it. What
/// is larger than the limit has a round to itself and whoever needs nothing. Of each demand, the number of its round.
pub(super) fn rounds(demands: impl Iterator<Item = Demand>, limit: Demand) -> Vec<usize> {
    let mut held: Vec<Demand> = Vec::new();
    demands
        .map(|demand| {
            let demand = demand.at_most(limit);
            let open = held.len().saturating_sub(OPEN);
            let found = (open..held.len()).find(|round| held[*round].plus(demand).fits(limit));
            let round = found.unwrap_or_else(|| {
                held.push(Demand::default());
                held.len() - 1
            });
            held[round] = held[round].plus(demand);
            round
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Demand = Demand([10, 10, u64::MAX]);

    fn count(demands: &[(u64, u64)]) -> Count {
        let demands: Vec<Demand> = demands.iter().map(|(cpus, gpus)| Demand([*cpus, *gpus, 0])).collect();
        most_that_fit(&demands, LIMIT)
    }

    #[test]
    fn all_fit_when_their_sum_does() {
        assert_eq!(count(&[(5, 5), (5, 5)]), Count { least: 2, most: 2 });
        assert_eq!(count(&[]), Count { least: 0, most: 0 });
    }

    #[test]
    fn what_does_not_fit_alone_never_counts() {
        assert_eq!(count(&[(11, 0), (0, 11)]), Count { least: 0, most: 0 });
    }

    #[test]
    fn with_one_scarce_resource_the_smallest_count() {
        assert_eq!(count(&[(9, 0), (4, 0), (3, 0), (3, 0)]), Count { least: 3, most: 3 });
    }

    #[test]
    fn with_two_scarce_resources_balance_counts() {
        // By cores alone or by GPUs alone only two fit; the three in the middle fit together.
        let demands = [(0, 9), (0, 9), (9, 0), (9, 0), (3, 3), (3, 3), (3, 3)];
        assert_eq!(count(&demands).least, 3);
    }

    #[test]
    fn rounds_are_filled_first_fit() {
        let demands = [(6, 0), (5, 0), (4, 0), (20, 0), (0, 3), (5, 0)];
        let demands = demands.into_iter().map(|(cpus, gpus)| Demand([cpus, gpus, 0]));
        assert_eq!(rounds(demands, LIMIT), [0, 1, 0, 2, 0, 1]);
    }
}
