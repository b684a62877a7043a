//! I/O of a job for people: a summary for the terminal, two jobs side by side. Does not know how traces are read.

mod text;
mod words;

pub use text::{comparison, text};
