//! The integration tests of the core: one binary, one module a part.

mod lang;
