//! The formats of the data sets, written and read with no other library: TFRecord, HDF5, NPZ. Readers read what the
//! writers here write, with the requests of the libraries that users have; they are no general readers.

pub(crate) mod checksum;
pub(crate) mod example;
pub(crate) mod hdf5;
pub(crate) mod npz;
pub(crate) mod record;
