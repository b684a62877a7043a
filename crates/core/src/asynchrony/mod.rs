//! The asynchronicity model: how much the parts of a workflow can overlap, and what that can save.
//!
//! After Pascuzzi, Kilic, Turilli and Jha, "Asynchronous Execution of Heterogeneous Tasks in ML-driven HPC Workflows"
//! (2023). A workflow is a graph of task sets; from it follow ranks, the degrees of asynchronicity (by dependencies,
//! by resources, and the lesser of them: WLA), the times of Eq. 2 to 7 and lower bounds. [`RULES`] says for every
//! figure which rule gives it, and where the published figures follow another one.
//!
//! There are two granularities. A [`Model`] is a graph of whatever its caller calls a task set: of a native workflow
//! the entries under `tasks:`, one for each iteration; of an imported one, where each task is an entry, single
//! tasks. [`Model::merged`] puts equal tasks of one kind and rank together. Counts of branches and lower bounds are
//! those of the graph as it was declared; times and masking are those of the merged sets, because only those are task
//! sets in the sense of the paper. [`Degrees`] of both are given where they differ.
//!
//! Nothing is simulated here, and nothing is known of nodes but how many tasks of a set run on them at once.

mod allocation;
mod analysis;
mod bounds;
mod branches;
mod from_graph;
mod iterations;
mod merge;
mod model;
mod packing;
mod rules;
mod times;

pub use allocation::{Allocation, NodeGroup, Waves};
pub use analysis::{Analysis, Obstacle, SetRow, analyse};
pub use bounds::Bounds;
pub use branches::Degrees;
pub use from_graph::{FromGraph, from_graph};
pub use iterations::{Iterated, Stage, equation_6, equation_7};
pub use merge::Merged;
pub use model::{Model, ModelError, TaskSet};
pub use rules::{RULES, Remark, Rule};
pub use times::{Asynchronous, Branch, IterationTime, Masked, Sequential, Serialised, improvement};
