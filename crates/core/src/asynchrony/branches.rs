//! Independent branches and the degrees of asynchronicity.
//!
//! A branch ends in a sink. Which sinks a set leads to is found for blocks of sinks at a time, one pass over the edges
//! a block; a hash stands for all of them together. Sinks with equal needs are told apart by nobody above them and
//! share a place in the blocks.

use super::allocation::{Allocation, Demand};
use super::model::Model;
use super::packing::most_that_fit;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// How much asynchronicity there is: 0 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Degrees {
    /// DOA_dep: independent branches, that is sinks, less one.
    pub dependencies: usize,
    /// DOA_res: over all ranks, the largest number of distinct branches whose complete task sets of that rank fit
    /// into the allocation together, less one. A branch is the set of sinks that a task set leads to.
    pub resources: usize,
    /// The largest value that DOA_res can have; it differs where counting exactly would take too long.
    pub resources_at_most: usize,
    /// The rank where that many branches fit.
    pub rank: usize,
    /// WLA, Eq. 1: the lesser of both.
    pub wla: usize,
}

impl Model {
    /// DOA_dep.
    pub fn doa_dep(&self) -> usize {
        self.sinks().count().saturating_sub(1)
    }

    pub fn degrees(&self, allocation: &Allocation) -> Degrees {
        let dependencies = self.doa_dep();
        let limit = allocation.limit();
        let reach = self.reach();
        let (mut least, mut most, mut at) = (0, 0, 0);
        for (rank, members) in self.ranks().into_iter().enumerate() {
            if members.len() <= least {
                continue;
            }
            // A sink leads to itself alone, and so does nobody else of its rank.
            let mut known: FxHashMap<u128, usize> = FxHashMap::default();
            let mut demands: Vec<Demand> = Vec::new();
            for set in members {
                let demand = self.sets()[set].demand();
                match reach[set] {
                    Reach::Sink => demands.push(demand),
                    Reach::Below(hash) => {
                        let group = *known.entry(hash).or_insert(demands.len());
                        match demands.get_mut(group) {
                            Some(sum) => *sum = sum.plus(demand),
                            None => demands.push(demand),
                        }
                    }
                }
            }
            if demands.len() <= least {
                continue;
            }
            let count = most_that_fit(&demands, limit);
            if count.least > least {
                (least, at) = (count.least, rank);
            }
            most = most.max(count.most);
        }
        let resources = least.saturating_sub(1);
        let resources_at_most = most.max(least).saturating_sub(1);
        Degrees { dependencies, resources, resources_at_most, rank: at, wla: dependencies.min(resources) }
    }

    /// Which sets lead to every sink: what comes before the first fork.
    pub(super) fn before_fork(&self) -> Vec<bool> {
        // Followed upwards by counting: a set leads to every sink if the sinks below it are all there are.
        let reach = self.reach();
        let everything = self.everything();
        let sinks = self.sinks().count();
        reach
            .into_iter()
            .map(|reach| match reach {
                Reach::Sink => sinks == 1,
                Reach::Below(hash) => hash == everything,
            })
            .collect()
    }

    fn reach(&self) -> Vec<Reach> {
        let classes = self.sink_classes();
        let count = self.sets().len();
        let mut hashes = vec![EMPTY; count];
        let mut masks = vec![[0u64; WORDS]; count];
        let blocks = classes.count.div_ceil(BLOCK);
        for block in 0..blocks {
            for set in self.order().rev() {
                let mut mask = [0u64; WORDS];
                let children = self.children(set);
                if children.is_empty() {
                    let class = classes.of[set] as usize;
                    if class / BLOCK == block {
                        let bit = class % BLOCK;
                        mask[bit / 64] = 1 << (bit % 64);
                    }
                } else {
                    for child in children {
                        let below = &masks[*child as usize];
                        mask.iter_mut().zip(below).for_each(|(mask, below)| *mask |= below);
                    }
                    hashes[set] = fold(hashes[set], block, &mask);
                }
                masks[set] = mask;
            }
        }
        (0..count)
            .map(|set| if self.children(set).is_empty() { Reach::Sink } else { Reach::Below(hashes[set]) })
            .collect()
    }

    /// The hash of a set that leads to every sink.
    fn everything(&self) -> u128 {
        let count = self.sink_classes().count;
        let mut hash = EMPTY;
        for block in 0..count.div_ceil(BLOCK) {
            let mut mask = [0u64; WORDS];
            for bit in 0..BLOCK.min(count - block * BLOCK) {
                mask[bit / 64] |= 1 << (bit % 64);
            }
            hash = fold(hash, block, &mask);
        }
        hash
    }

    fn sink_classes(&self) -> Classes {
        let mut known: FxHashMap<&[usize], u32> = FxHashMap::default();
        let mut of = vec![0; self.sets().len()];
        for sink in self.sinks() {
            let next = known.len() as u32;
            of[sink] = *known.entry(&self.sets()[sink].needs).or_insert(next);
        }
        Classes { of, count: known.len() }
    }
}

#[derive(Clone, Copy)]
enum Reach {
    Sink,
    /// The hash of the sinks below.
    Below(u128),
}

struct Classes {
    /// Of each sink, its class; of others nothing.
    of: Vec<u32>,
    count: usize,
}

const WORDS: usize = 8;
const BLOCK: usize = WORDS * 64;
const EMPTY: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// Takes up one block. Words without a bit leave no trace, so blocks that a set does not touch cost no hashing.
fn fold(hash: u128, block: usize, mask: &[u64; WORDS]) -> u128 {
    let mut hash = hash;
    for (at, word) in mask.iter().enumerate().filter(|(_, word)| **word != 0) {
        let place = (block * WORDS + at) as u128;
        hash ^= u128::from(*word) | (place << 64);
        hash = hash.wrapping_mul(0x2d99_787a_9f3c_51b1_7c6f_e95d_c0e1_22a5);
        hash ^= hash >> 61;
    }
    hash
}
