//! Workflows as users write them: reading, checking, and the model that the planner works on.

mod absent;
mod axes;
mod check;
pub mod condition;
mod declarations;
pub mod expression;
mod index;
pub mod keys;
pub mod model;
mod model_settings;
mod outputs;
pub mod paths;
pub mod planned;
mod quoting;
mod read;
pub(crate) mod reader;
pub(crate) mod request;
mod scatter;
mod scope;
mod search;
mod settings;
mod shell;
mod task;
pub mod template;
mod unsafe_place;
mod variants;
mod write;
mod write_settings;

pub use check::{check, misses};
pub use model::*;
pub use model_settings::*;
pub use read::LONGEST_NAME;
pub use read::{parameters, read, read_hooks};
pub use unsafe_place::UnsafePlace;
pub use write::write;
