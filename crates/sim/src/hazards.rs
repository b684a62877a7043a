//! Moments at which something befalls a whole node, for every node a sequence of its own.

use crate::random::{Purpose, Stream};
use std::collections::HashMap;
use std::time::Duration;
use tulpar_core::ids::NodeId;
use tulpar_core::units::Timestamp;

pub(crate) struct Hazard {
    seed: u64,
    purpose: Purpose,
    mean: Duration,
    nodes: HashMap<NodeId, (Stream, Vec<Timestamp>)>,
}

impl Hazard {
    pub(crate) fn new(seed: u64, purpose: Purpose, mean: Duration) -> Self {
        Self { seed, purpose, mean: mean.max(Duration::from_millis(1)), nodes: HashMap::new() }
    }

    /// The first moment after `from` and before `until`, if there is one.
    pub(crate) fn first(&mut self, node: NodeId, from: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let (stream, moments) = self
            .nodes
            .entry(node)
            .or_insert_with(|| (Stream::new(self.seed, self.purpose, [node.0, 0, 0]), Vec::new()));
        // No further than is asked for: `until` may be centuries away.
        while moments.last().is_none_or(|last| *last <= from) {
            let last = moments.last().copied().unwrap_or(Timestamp(0));
            moments.push(last.plus(self.mean.mul_f64(stream.exponential())));
        }
        let next = moments.partition_point(|moment| *moment <= from);
        moments.get(next).copied().filter(|moment| *moment < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_meets_its_moments_whoever_asks_and_in_whatever_order() {
        let hazard = || Hazard::new(3, Purpose::Eviction, Duration::from_secs(100));
        let at = |seconds: u64| Timestamp(seconds * 1_000_000);
        let (mut one, mut other) = (hazard(), hazard());
        let early = one.first(NodeId(0), at(0), at(5000)).unwrap();
        let late = one.first(NodeId(0), at(4000), at(9000)).unwrap();
        assert_eq!(other.first(NodeId(0), at(4000), at(9000)), Some(late));
        assert_eq!(other.first(NodeId(0), at(0), at(5000)), Some(early));
        assert_ne!(one.first(NodeId(1), at(0), at(5000)), Some(early));
        assert_eq!(one.first(NodeId(0), early, early), None);
    }
}
