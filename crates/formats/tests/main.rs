//! The integration tests of the formats: one binary, one module per format.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests may touch the world")]

mod dagman;
mod dax3;
mod export;
mod htcondor;
mod pegasus;
mod wfformat;
