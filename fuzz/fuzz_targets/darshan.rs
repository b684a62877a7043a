//! Darshan logs: header, job, names and every module, whatever the bytes say.
#![no_main]

use std::io::Cursor;

use tulpar_trace::darshan::{Log, Visitor};

struct Everything;

impl Visitor for Everything {}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(mut log) = Log::new(Cursor::new(bytes)) {
        drop(log.visit(&mut Everything));
        drop(log.names().iter().count());
    }
});
