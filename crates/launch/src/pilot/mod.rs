//! A pilot: a worker that stays, asks a driver for attempts over one connection, and runs them until it must go.
//!
//! It dials out, since workers can rarely be reached. What it is sent it runs once, with the [`Launcher`]; it knows no
//! plan and no scheduler. When the driver is out of reach it goes on for the time of its *lease*, and tries to come back.

mod agent;
pub mod channel;
mod ending;
pub mod inflow;
mod life;
pub mod message;
mod options;
pub mod outbox;
mod store;
#[cfg(test)]
mod tests;

pub use ending::{files_below, lay_checkpoint};
pub use life::{PilotError, pilot_main};
pub use options::PilotOptions;

#[cfg(doc)]
use crate::Launcher;
