//! TensorFlow's input-pipeline analysis.
#![no_main]

use tulpar_trace::profile::input_pipeline::InputPipeline;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(found) = InputPipeline::parse(bytes) {
        drop(found.waiting_share());
    }
});
