//! What lies in data files: HDF5, TFRecord, NPY and NPZ.
#![no_main]

use std::io::Cursor;

use tulpar_trace::structure::{Limits, hdf5, numpy, record};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::SHOWN;
    let found = [
        hdf5::read(Cursor::new(bytes), limits),
        record::read(bytes, limits),
        numpy::array(bytes),
        numpy::archive(Cursor::new(bytes), limits),
    ];
    for found in found {
        assert!(found.objects.len() <= limits.objects);
        drop((found.samples(), serde_json::to_string(&found.objects).expect("JSON")));
    }
});
