//! XSpace: planes, lines, events and their statistics.
#![no_main]

use tulpar_trace::profile::xplane::Space;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(space) = Space::parse(bytes) else { return };
    for plane in &space.planes {
        for line in &plane.lines {
            for event in line.events().flatten() {
                drop(space.span(line, &event));
                drop(plane.number(&event, "step_num"));
            }
        }
    }
});
