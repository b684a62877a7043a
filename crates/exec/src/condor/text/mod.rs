//! HTCondor's own texts: its job event log, the reasons of its holds, and the machines of a pool.
//!
//! Nothing here starts a program or knows a pool; that is the executor's work.

pub mod hold;
pub mod log;
pub mod pool;
