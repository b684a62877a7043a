//! I/O of a job for people: a summary for the terminal, two jobs side by side, a page with charts. Does not know how
//! traces are read, and computes nothing of them.

mod heat;
mod lanes;
mod page;
mod sizes;
mod structure;
pub(crate) mod tasks;
mod text;
mod words;

pub use page::page;
pub use tasks::{TaskFinding, TaskIo};
pub use text::{comparison, text};
