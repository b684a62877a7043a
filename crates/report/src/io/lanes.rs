//! I/O, compute and waiting above each other in the time that profiles cover: what hides behind what can be seen.

use std::fmt::Write;

use tulpar_trace::interval::Union;
use tulpar_trace::merge::Pipeline;

use super::heat::time_axis;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const LANE: f64 = 34.0;
const GAP: f64 = 12.0;
const COLUMNS: usize = 430;

pub(super) fn svg(pipeline: &Pipeline) -> Option<String> {
    let whole = pipeline.whole.filter(|whole| whole.seconds > 0.0)?;
    let lanes =
        [("I/O", &pipeline.io, "k0"), ("compute", &pipeline.compute, "k2"), ("waiting", &pipeline.loading, "k5")];
    let height = TOP + (LANE + GAP) * lanes.len() as f64 + 44.0;
    let mut svg = format!(
        "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"I/O, compute \
         and waiting over time\">\n"
    );
    let (wide, mut top) = (WIDTH - LEFT - RIGHT, TOP);
    for (name, union, class) in lanes {
        let bottom = top + LANE;
        let _ = writeln!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text><path class=\"grid\" \
             d=\"M{LEFT} {bottom}h{wide}M{LEFT} {top}h{wide}\"/>",
            LEFT - 10.0,
            top + LANE / 2.0 + 4.0
        );
        let mut path = format!("M0 {:.0}", bottom * 10.0);
        for (column, share) in shares(union, whole.start, whole.seconds).into_iter().enumerate() {
            let (from, to) = (column as f64, (column + 1) as f64);
            let x = |column: f64| (LEFT + wide * column / COLUMNS as f64) * 10.0;
            let y = (bottom - LANE * share) * 10.0;
            if column == 0 {
                path = format!("M{:.0} {:.0}", x(0.0), bottom * 10.0);
            }
            let _ = write!(path, "L{:.0} {y:.0}H{:.0}", x(from), x(to));
        }
        let _ = writeln!(
            svg,
            "<g transform=\"scale(0.1)\"><path class=\"band {class} fine\" d=\"{path}V{:.0}z\"/></g>",
            bottom * 10.0
        );
        top = bottom + GAP;
    }
    // The axis counts from the beginning of the profile.
    time_axis(&mut svg, whole.seconds, (LEFT, WIDTH - RIGHT), top - GAP);
    svg.push_str("</svg></div>\n");
    Some(svg.replace("time since the start (", "time since the start of the profile ("))
}

/// The share of each column that a union covers.
fn shares(union: &Union, start: f64, seconds: f64) -> Vec<f64> {
    let mut union = union.clone();
    let width = seconds / COLUMNS as f64;
    (0..COLUMNS)
        .map(|column| {
            let from = start + width * column as f64;
            (union.within(from, from + width).length() / width).clamp(0.0, 1.0)
        })
        .collect()
}
