//! What a user chose for a whole run: how asynchronous it is, in which order what is ready starts, how nodes are packed.

use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Reuse results of earlier runs.
    pub cache: bool,
    /// After the first failure that no task tolerates, start nothing more.
    pub fail_fast: bool,
    #[serde(default)]
    pub mode: Mode,
    /// `None`: what suits the mode. With barriers that is `oldest`; `adaptive` takes the critical path, unless a
    /// rollout shows that another order ends earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    #[serde(default)]
    pub packing: Packing,
    /// The run must be over this long after it began: what cannot end by then is not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walltime: Option<Duration>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            cache: true,
            fail_fast: false,
            mode: Mode::default(),
            order: None,
            packing: Packing::default(),
            walltime: None,
        }
    }
}

/// What separates tasks beside their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Iterations one after another, and in each a barrier between its ranks.
    Sequential,
    /// Iterations follow each other at the distance of one rank; a barrier between all ranks.
    Staggered,
    /// Nothing but data.
    #[default]
    Adaptive,
}

impl Mode {
    pub const ALL: [(&'static str, Self); 3] =
        [("sequential", Self::Sequential), ("staggered", Self::Staggered), ("adaptive", Self::Adaptive)];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, value)| *value == self).expect("all values are listed").0
    }
}

/// Which of the ready jobs is the most urgent, among those of equal priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The longest way to the end of the workflow, in time where it is known.
    #[default]
    CriticalPath,
    /// The earliest iteration, then the order of the file.
    Oldest,
    /// What is nearest to the beginning.
    Breadth,
    /// What is nearest to the end, to finish what has begun.
    Depth,
    /// The longest task.
    Longest,
    /// The task that asks for most.
    Largest,
}

impl Order {
    pub const ALL: [(&'static str, Self); 6] = [
        ("critical-path", Self::CriticalPath),
        ("oldest", Self::Oldest),
        ("breadth", Self::Breadth),
        ("depth", Self::Depth),
        ("longest", Self::Longest),
        ("largest", Self::Largest),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, value)| *value == self).expect("all values are listed").0
    }
}

/// Which node a job goes to, among those that have room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// Where it leaves cores and memory for the GPUs that are free; elsewhere only when there is no such node.
    #[default]
    Protect,
    /// Never where it would leave a GPU without the cores and memory that GPU tasks to come ask for.
    Strict,
    /// The first node that has room.
    FirstFit,
}

impl Packing {
    pub const ALL: [(&'static str, Self); 3] =
        [("protect", Self::Protect), ("strict", Self::Strict), ("first-fit", Self::FirstFit)];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, value)| *value == self).expect("all values are listed").0
    }
}
