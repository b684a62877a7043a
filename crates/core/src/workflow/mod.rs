//! Workflows as users write them: reading, checking, and the model that the planner works on.

pub mod model;

pub use model::*;
