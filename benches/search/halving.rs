//! Halving.
pub fn compare() {}
