//! (opens with what it is)

pub mod data;
pub mod journal;
