//! Optuna's journal file as text: what a study writes there, and what others wrote. One line of JSON an operation.
//!
//! It knows neither files nor locks: whoever follows a file holds Optuna's lock (a symbolic link `<file>.lock`), hands the
//! new lines to [`Projection::read`], appends what [`Projection::lines`] gives, and lets go.

mod distribution;
mod journal;
mod projection;

pub use journal::{Journal, JournalError, StoredState, StoredTrial};
pub use projection::{Foreign, Projection};
