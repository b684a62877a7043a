//! What the records of a job mean: time in I/O as unions of intervals, requests by size and latency, order of access,
//! files, performance. One pass over all logs of a job; segments are folded in as they come and never held.
//!
//! Does not judge, print or align with other traces.

mod coverage;
mod files;
mod fold;
mod histogram;
mod job;
mod kind;
mod layer;
mod pattern;
mod performance;
mod requests;
mod timeline;
mod totals;
mod traced;

pub use coverage::Coverage;
pub use files::{ByRank, Counts, FileRow, FileTable};
pub use histogram::{Latencies, Lengths, Sizes};
pub use job::{Analysis, IoTime, Options};
pub use kind::{Format, Role};
pub use layer::{Direction, Layer, LayerSummary};
pub use pattern::Pattern;
pub use performance::{Category, Performance};
pub use requests::{Request, Requests};
pub use timeline::Timeline;
pub use totals::{Straggler, Totals, Uneven};
pub use traced::FileTrace;
