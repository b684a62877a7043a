//! Event files: framing, checksums, and the messages inside, which checksums would hide from the fuzzer.
#![no_main]

use tulpar_trace::tensorboard::{self, Event};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    drop(tensorboard::read(bytes, drop));
    if let Ok(event) = Event::parse(bytes) {
        drop(event.scalars().count());
    }
});
