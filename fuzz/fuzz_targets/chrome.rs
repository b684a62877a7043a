//! Chrome traces, compressed and not.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    drop(tulpar_trace::profile::chrome::read(bytes, |event| drop(event.span())));
});
