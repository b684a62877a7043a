//! HDF5 of the earliest format, which every version of the library reads: superblock 0, one group of datasets, chunks
//! found through a B-tree of version 1. No filters, no attributes, whole chunks.

mod layout;
mod read;
mod write;

pub(crate) use layout::{Dataset, Element};
pub(crate) use read::Reader;
pub(crate) use write::write;
