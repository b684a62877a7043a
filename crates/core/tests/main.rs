//! The integration tests of the core: one binary, one module a part.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests may touch the world")]

mod asynchrony;
mod engine;
mod golden;
mod lang;
