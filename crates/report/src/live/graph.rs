//! The graph of a run as people think of it: one node a kind of task, however many tasks there are.

use crate::kinds;
use serde::Serialize;
use std::collections::BTreeSet;
use tulpar_core::ids::SetId;
use tulpar_core::plan::Plan;

/// More nodes than this are no picture: kinds that differ by a number only are then one.
const MOST_NODES: usize = 60;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetGraph {
    pub nodes: Vec<SetNode>,
    /// From what makes to what waits for it.
    pub edges: Vec<(u32, u32)>,
    /// Which node each task set of the plan belongs to.
    #[serde(skip)]
    pub of: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetNode {
    pub name: String,
    /// How many nodes are before it, on the longest way.
    pub rank: u32,
    /// Not needed for what was asked with `--until`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unwanted: bool,
}

/// The kinds of tasks of a plan, and which wait for which.
pub fn set_graph(plan: &Plan) -> SetGraph {
    let (mut names, mut of) = kinds::by_program(plan);
    if names.len() > MOST_NODES {
        (names, of) = kinds::without_numbers(&names, &of);
    }
    let mut edges = BTreeSet::new();
    for set in (0..of.len()).map(SetId::from) {
        for producer in plan.producers(set) {
            let edge = (of[producer.index()], of[set.index()]);
            if edge.0 != edge.1 {
                edges.insert(edge);
            }
        }
    }
    let edges: Vec<(u32, u32)> = edges.into_iter().collect();
    let ranks = ranks(names.len(), &edges);
    let wanted = plan.wanted();
    let mut unwanted = vec![true; names.len()];
    of.iter().zip(&wanted).filter(|(_, wanted)| **wanted).for_each(|(kind, _)| unwanted[*kind as usize] = false);
    let node = |((name, rank), unwanted)| SetNode { name, rank, unwanted };
    let nodes = names.into_iter().zip(ranks).zip(unwanted).map(node).collect();
    SetGraph { nodes, edges, of }
}

/// The longest way to each node. Kinds may wait for each other in a circle though their tasks do not; there the first of
/// them is taken as the beginning.
fn ranks(count: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    let mut waits = vec![0u32; count];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (from, to) in edges {
        waits[*to as usize] += 1;
        after[*from as usize].push(*to as usize);
    }
    let mut ranks = vec![0u32; count];
    let mut placed = vec![false; count];
    let mut ready: Vec<usize> = (0..count).filter(|node| waits[*node] == 0).collect();
    loop {
        let Some(node) = ready.pop().or_else(|| placed.iter().position(|placed| !placed)) else { return ranks };
        if std::mem::replace(&mut placed[node], true) {
            continue;
        }
        for next in &after[node] {
            if placed[*next] {
                continue;
            }
            ranks[*next] = ranks[*next].max(ranks[node] + 1);
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.push(*next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_stands_after_all_that_it_waits_for() {
        assert_eq!(ranks(5, &[(0, 1), (1, 2), (0, 2), (2, 4), (3, 4)]), [0, 1, 2, 0, 3]);
    }

    #[test]
    fn kinds_that_wait_for_each_other_are_ranked_too() {
        assert_eq!(ranks(3, &[(0, 1), (1, 0), (1, 2)]), [0, 1, 2]);
    }
}
