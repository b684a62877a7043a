//! The functions of the C library that are stood before. Each calls the next one with the arguments it got and gives its
//! result on, `errno` included; what is kept is kept after that.

mod descriptors;
mod formatted;
mod metadata;
mod programs;
mod streams;
mod transfers;

use core::sync::atomic::Ordering;

use crate::files::{Descriptor, Entry, IGNORED};

pub(crate) type Size = usize;
pub(crate) type Signed = isize;
pub(crate) type Offset = i64;

/// The entries of a descriptor that is known already.
fn posix_entry(descriptor: &Descriptor) -> Option<Entry> {
    known(descriptor.posix.load(Ordering::Relaxed))
}

fn stdio_entry(descriptor: &Descriptor) -> Option<Entry> {
    known(descriptor.stdio.load(Ordering::Relaxed))
}

fn known(unit: u32) -> Option<Entry> {
    (unit != 0 && unit != IGNORED).then(|| Entry::at(unit))
}
