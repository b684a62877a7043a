//! The planner: from what is to be computed to which jobs run where, with which files, in which order.
//!
//! Passes in this order: reduce (what is done already), place (which site), cluster (which tasks share a job), stage
//! (which files move when), cleanup (what is removed when). Each records its decisions. It is pure, and knows nothing
//! of attempts, processes or the time.

mod abstraction;
mod layout;
mod options;
mod partition;

pub use abstraction::{Abstract, Builder, Circle, File, FileId, GroupId, Image, Task, TaskId};
pub use layout::{Decision, Job, JobId, JobKind, Layout, Pass, SiteId, Traffic};
pub use options::{Cleanup, Clustering, Options, SiteChoice};
pub use partition::Partition;
