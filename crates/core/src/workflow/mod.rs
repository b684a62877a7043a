//! Workflows as users write them: reading, checking, and the model that the planner works on.

pub mod condition;
pub mod model;
mod shell;
pub mod template;

pub use model::*;
pub use shell::UnsafePlace;
