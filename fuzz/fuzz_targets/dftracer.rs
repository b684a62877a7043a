//! dftracer's lines.
#![no_main]

use tulpar_trace::profile::dftracer;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    drop(dftracer::read(bytes, |event| drop(dftracer::bytes(event))));
});
