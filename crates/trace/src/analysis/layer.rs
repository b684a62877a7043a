//! One layer of I/O (POSIX, MPI-IO, STDIO, DFS): totals from its counters; sizes, latencies, order and times from its trace.

use std::collections::BTreeMap;

use super::histogram::{Latencies, Lengths, Sizes};
use super::kind::Role;
use super::pattern::{Follower, Pattern};
use crate::darshan::{Module, Operation, Segment};
use crate::interval::Union;

/// A layer that moves bytes. The upper ones move theirs through the lower ones: never add POSIX and MPI-IO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    Posix,
    MpiIo,
    Stdio,
    /// DAOS' file system, which POSIX does not see.
    Dfs,
}

impl Layer {
    pub const ALL: [Layer; 4] = [Layer::Posix, Layer::MpiIo, Layer::Stdio, Layer::Dfs];

    pub fn of(module: Module) -> Option<Layer> {
        match module {
            Module::Posix | Module::DxtPosix => Some(Layer::Posix),
            Module::MpiIo | Module::DxtMpiIo => Some(Layer::MpiIo),
            Module::Stdio => Some(Layer::Stdio),
            Module::Dfs => Some(Layer::Dfs),
            _ => None,
        }
    }
}

/// All reads or all writes of a layer, as traced.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Direction {
    pub requests: u64,
    pub bytes: u64,
    /// Sum of durations, which overlap between threads and ranks.
    pub seconds: f64,
    pub sizes: Sizes,
    pub lengths: Lengths,
    pub latencies: Latencies,
    pub pattern: Pattern,
    /// Seconds in which any rank was in such a request, when all is read.
    pub busy: f64,
}

impl Direction {
    /// Bytes a second while anything was under way.
    pub fn bandwidth(&self) -> Option<f64> {
        (self.busy > 0.0).then(|| self.bytes as f64 / self.busy)
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct LayerSummary {
    pub read: Direction,
    pub write: Direction,
    /// When each rank was in a request.
    pub ranks: BTreeMap<i64, Union>,
    /// When any rank was.
    pub times: Union,
    /// Segments that are no request: negative lengths, times that are no numbers or run backwards.
    pub nonsense: u64,
    /// When each rank was in a request, by role of the file and direction: every other set of times follows from these.
    spans: BTreeMap<(i64, Role, Operation), Union>,
    followers: [Follower; 2],
}

impl LayerSummary {
    pub(super) fn begin_trace(&mut self) {
        self.followers = [Follower::default(); 2];
    }

    /// Folds segments in; `each` gets the times of those that are requests.
    pub(super) fn add(
        &mut self,
        (rank, role): (i64, Role),
        operation: Operation,
        segments: &[Segment],
        delay: f64,
        mut each: impl FnMut((f64, f64), &Segment),
    ) {
        let (direction, follower) = match operation {
            Operation::Read => (&mut self.read, &mut self.followers[0]),
            Operation::Write => (&mut self.write, &mut self.followers[1]),
        };
        let times = self.spans.entry((rank, role, operation)).or_default();
        for segment in segments {
            let (start, end) = (segment.start + delay, segment.end + delay);
            if segment.length < 0 || !start.is_finite() || !end.is_finite() || end < start {
                self.nonsense += 1;
                continue;
            }
            let seconds = end - start;
            direction.requests += 1;
            direction.bytes = direction.bytes.saturating_add(segment.length.cast_unsigned());
            direction.seconds += seconds;
            direction.sizes.add(segment.length, seconds);
            direction.lengths.add(segment.length);
            direction.latencies.add(seconds);
            follower.follow(&mut direction.pattern, segment.offset, segment.length);
            times.add(start, end);
            each((start, end), segment);
        }
    }

    /// When all is read: the times of ranks and of all together, from what was kept apart until now. Gives when
    /// checkpoints were written. Pieces are held twice at most, by rank and over all, as there may be millions.
    pub(super) fn finish(&mut self) -> Union {
        let mut checkpoints = Union::new();
        let spans = std::mem::take(&mut self.spans);
        for (operation, direction) in [(Operation::Read, &mut self.read), (Operation::Write, &mut self.write)] {
            let mut times = Union::new();
            for ((_, role, _), union) in spans.iter().filter(|((_, _, own), _)| *own == operation) {
                times.extend(union);
                if (*role, operation) == (Role::Checkpoint, Operation::Write) {
                    checkpoints.extend(union);
                }
            }
            direction.busy = times.length();
            if self.times.held() == 0 {
                self.times = times;
            } else {
                self.times.extend(&times);
            }
        }
        for ((rank, _, _), mut union) in spans {
            union.settle();
            match self.ranks.entry(rank) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(union);
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => entry.get_mut().extend(&union),
            }
        }
        self.ranks.values_mut().for_each(Union::settle);
        self.times.settle();
        checkpoints.settle();
        checkpoints
    }
}
