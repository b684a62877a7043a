//! (opens with what it is)

pub mod journal;
