//! The integration tests of the core: one binary, one module a part.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests may touch the world")]

mod asynchrony;
mod dagman;
mod dax3;
mod engine;
mod export;
mod golden;
mod htcondor;
mod lang;
mod pegasus;
mod planner;
mod wfformat;
