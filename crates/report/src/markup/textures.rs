//! Textures for bars and bands: colours alone are lost in a grey print.
//!
//! One for each class of colour, drawn in tenths of a unit, as charts are. Colours stay with the style sheet.

use crate::kinds::MOST_KINDS;
use crate::kinds::class;
use std::fmt::Write;

/// Lines over the colour: nothing, two slants, both axes, crosses, dots, and wider ones of these.
const LINES: [&str; MOST_KINDS + 1] = [
    "",
    "M0 80L80 0M-20 20L20 -20M60 100L100 60",
    "M0 0L80 80M-20 60L20 100M60 -20L100 20",
    "M0 40H80",
    "M40 0V80",
    "M0 0L80 80M0 80L80 0",
    "M30 40h20M70 0h20M-10 0h20M70 80h20M-10 80h20",
    "M0 20H80M0 60H80",
    "M20 0V80M60 0V80",
    "M40 0V80M0 40H80",
    "M0 40L40 0M40 80L80 40",
];

/// An element that shows nothing and is referred to by the style sheet.
pub(super) fn definitions() -> String {
    let mut svg =
        String::from("<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>\n");
    for (place, lines) in LINES.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<pattern id=\"t{place}\" class=\"{}\" width=\"80\" height=\"80\" patternUnits=\"userSpaceOnUse\"><rect \
             width=\"80\" height=\"80\" fill=\"currentColor\"/><path class=\"lines\" d=\"{lines}\"/></pattern>",
            class(place)
        );
    }
    svg.push_str("</defs></svg>\n");
    svg
}

/// A small square of a legend.
pub(super) fn swatch(shape: &str, kind: usize) -> String {
    format!(
        "<svg class=\"swatch\" viewBox=\"0 0 140 140\"><rect class=\"{shape} {}\" width=\"140\" height=\"140\"/></svg>",
        class(kind)
    )
}
