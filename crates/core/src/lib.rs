//! The deciding half of Tulpar: text and inputs go in; diagnostics, plans, events and actions come out.
//!
//! Nothing here reads a clock, a file, an environment variable or a random source, starts a thread or
//! prints. Whoever calls hands over what was read and performs what is returned.

pub mod accept;
pub mod asynchrony;
pub mod calendar;
pub mod catalogue;
pub mod diagnostic;
pub mod engine;
pub mod event;
pub mod gang;
pub mod ids;
pub mod job;
pub mod journal_line;
pub mod key;
pub mod live;
pub mod parcel;
pub mod plan;
pub mod planner;
pub mod provenance;
pub mod resources;
pub mod rooms;
pub mod site;
pub mod units;
pub mod workflow;
pub mod yaml;

pub use engine::virtual_time;

/// Studies and trials: events and plans hold them, so whoever reads those needs their types.
pub use tulpar_hpo as hpo;
