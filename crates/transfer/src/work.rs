//! One file of a list on its way: what is to be moved, and what earlier attempts left. It does not know how it is moved.

use crate::target::Target;
use crate::types::Transfer;
use std::time::Instant;

/// One file of the list, with what is known of earlier attempts.
pub(crate) struct Work<'a> {
    pub(crate) index: usize,
    pub(crate) group: usize,
    pub(crate) transfer: &'a Transfer,
    pub(crate) attempts: u32,
    pub(crate) begun: Option<Instant>,
    /// What an interrupted download left, to go on from.
    pub(crate) partial: Option<Partial>,
}

/// Done by one thread, in one go: the results are in the order of the batch.
pub(crate) type Batch<'a> = Vec<Work<'a>>;

/// What an interrupted download left: the bytes under their temporary name, their hash so far, and the proof that
/// the rest belongs to them.
pub(crate) struct Partial {
    pub(crate) target: Target,
    pub(crate) validator: Option<String>,
}
