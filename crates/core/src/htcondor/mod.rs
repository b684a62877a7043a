//! HTCondor's own texts: submit descriptions that are written exactly as meant, and its job event log.
//!
//! Nothing here starts a program or knows a pool; that is the executor's work.

pub mod hold;
pub mod items;
pub mod lint;
pub mod log;
pub mod pool;
pub mod requirements;
pub mod submit;
