//! Published studies repeated: generators of their workflows, their figures, and comparisons with Tulpar's own plans.
//!
//! Nothing of the product depends on what a study printed. It reads no file and prints nothing.

pub mod compare;
pub mod published;
