//! I/O of a job for people: a summary for the terminal. Does not know how traces are read.

mod text;

pub use text::text;
