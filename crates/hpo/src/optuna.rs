//! Optuna's journal file as text: what a study writes there, and what others wrote. One line of JSON an operation.
//! Other storages of Optuna's keep the same trials, and share what is not about text.
//!
//! It knows neither files nor locks: whoever follows a file holds Optuna's lock (a symbolic link `<file>.lock`), hands the
//! new lines to [`Projection::read`], appends what [`Projection::lines`] gives, and lets go.

mod distribution;
mod foreign;
mod journal;
mod projection;
mod recent;

pub use distribution::{value as stored_value, written as stored_domain};
pub use foreign::{Foreign, requested, running, told};
pub use journal::{Journal, JournalError, StoredState, StoredTrial, without_odd_numbers};
pub use projection::{Projection, TRIAL, WRITER, end_of, origin_of, unwritten};
pub use recent::{Recent, Seen, Times};
