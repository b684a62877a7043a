//! Submit descriptions of HTCondor: written exactly as meant, and checked before they are submitted.
//!
//! Nothing here starts a program or knows a pool; that is the executor's work.

pub mod items;
pub mod lint;
pub mod requirements;
pub mod submit;
