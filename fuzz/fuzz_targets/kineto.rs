//! PyTorch's profiles.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(profile) = tulpar_trace::profile::kineto::Profile::read(bytes) {
        drop(profile.loading_share());
    }
});
