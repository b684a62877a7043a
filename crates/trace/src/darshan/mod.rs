//! Darshan 3.x logs: `Log::open` reads what is small (header, job, names), `Log::visit` streams the modules through a
//! `Visitor`, a block of segments at a time. Damage in a module costs that module's rest and is reported; it never hides
//! the other modules.
//!
//! Does not know how the records of several modules relate to each other, nor what is good or bad about them.

mod autoperf;
mod bytes;
pub mod counters;
mod dxt;
mod error;
mod header;
mod heatmap;
mod job;
mod log;
mod lustre;
mod module;
mod names;
mod records;
mod region;
mod set;
pub mod write;

pub use autoperf::{ApmpiHeader, ApmpiRecord, ApxcHeader, ApxcRecord};
pub use bytes::ByteOrder;
pub use dxt::{Operation, Segment, Trace};
pub use error::{Damage, Error};
pub use header::{Compression, Header, ModuleEntry, Version};
pub use heatmap::Heatmap;
pub use job::{Job, Mount};
pub use log::{Log, Visitor};
pub use lustre::{Layout, LustreRecord};
pub use module::Module;
pub use names::Names;
pub use records::Record;
pub use set::{JobSet, Member};
