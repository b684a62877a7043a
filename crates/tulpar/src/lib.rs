//! The library under the command line: reading, planning, starting, driving, resuming and inspecting runs, as typed functions.
//!
//! It knows neither arguments nor a terminal: warnings and findings go to the [`Messages`] that the caller passes. The
//! binary, the live page, tests and language bindings call the same functions.

pub mod ancestry;
pub mod asynchronous;
pub mod audit;
mod by_hand;
pub mod changes;
mod choices;
pub mod cleaning;
mod conditions;
pub mod declared;
pub mod driving;
pub mod dry_run;
pub mod earlier;
mod energy;
pub mod executable;
pub mod executors;
pub mod exemplars;
pub mod explanation;
mod failure;
pub mod findings;
pub mod forecast;
pub mod foreign;
pub mod history;
mod hooks;
mod imports;
pub mod lineage;
mod mended;
mod messages;
pub mod outputs;
pub mod page;
pub mod pegasus;
mod pilots;
pub mod plan_source;
pub mod planning;
pub mod prediction;
pub mod prepare;
pub mod projection;
mod queueing;
mod reached;
mod recall;
pub mod records;
pub mod replay;
mod repository;
pub mod results;
mod revised;
pub mod run_report;
pub mod running;
pub mod runs;
pub mod scenarios;
pub mod searching;
pub mod settings;
pub mod shrinking;
pub mod simulate;
pub mod statistics;
pub mod status;
pub mod stores;
pub mod story;
pub mod streams;
mod studies;
pub mod subworkflow;
pub mod together;
pub mod traced;
pub mod trial;
pub mod tuning;
pub mod undeclared;
pub mod used;
pub mod verify;
pub mod view;

pub use choices::{
    CatalogueChoice, HookChoice, LaunchChoice, PilotChoice, PlanningChoice, ResourceChoice, Several, WorkflowChoice,
    WorldChoice,
};
pub use failure::Failure;
pub use messages::{DataReading, Messages, Silent};
pub use running::{Begun, ResumeRequest, RunRequest, VERSION, resume, start};
