//! I/O and profiles on one clock: what a program computed and waited for, beside what it read and wrote, and how much of
//! the I/O hides behind the compute. Times are seconds since the start of the job.
//!
//! Does not judge.

mod activity;
mod align;
mod columns;
mod names;
mod overlap;
mod ranks;
mod sources;

pub use activity::{Activity, Clock, Kind, Step, Writer};
pub use align::{Alignment, Method, align, correlate};
pub use columns::{Columns, HostInput, InputColumns, OperationColumns, StepColumns};
pub(crate) use overlap::is_compared;
pub use overlap::{Io, Part, Pipeline, Scope, Source, merge};
pub use ranks::ranks;
pub use sources::{Found, Unread, read};
