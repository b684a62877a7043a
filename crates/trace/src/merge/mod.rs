//! I/O and profiles on one clock: what a program computed and waited for, beside what it read and wrote, and how much of
//! the I/O hides behind the compute. Times are seconds since the start of the job.
//!
//! Does not judge.

mod activity;
mod align;
mod names;
mod overlap;
mod sources;

pub use activity::{Activity, Clock, Kind, Step};
pub use align::{Alignment, Method, align, correlate};
pub use overlap::{Part, Pipeline, Source, merge};
pub use sources::{Found, Unread, read};
