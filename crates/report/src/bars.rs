//! Bars side by side as an SVG that stands inside a page: groups on one axis, a bar a series, error bars, units.
//!
//! Bars are told apart by colour and by texture, so that a grey print says as much. It computes nothing about runs.

use crate::frame::{Frame, GRID};
use crate::kinds::class;
use crate::markup::escape;
use crate::words::shown;
use std::fmt::Write;

const FRAME: Frame = Frame { height: 300.0, left: 78.0, top: 24.0, bottom: 42.0 };
/// A bar is not wider than this, however few there are.
const WIDEST: f64 = 90.0;

/// One bar; `None` leaves its place empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) mean: f64,
    /// What the error bar shows on either side.
    pub(crate) deviation: Option<f64>,
}

pub(crate) struct Bars<'b> {
    /// The title of the axis, with its unit: `makespan (s)`.
    pub(crate) what: &'b str,
    /// For those who cannot see it.
    pub(crate) said: &'b str,
    /// By group, a bar for each series in their order.
    pub(crate) groups: Vec<(String, Vec<Option<Bar>>)>,
}

impl Bars<'_> {
    pub(crate) fn svg(&self) -> String {
        let bars = || self.groups.iter().flat_map(|(_, bars)| bars.iter().flatten());
        let top = bars().map(|bar| bar.mean + bar.deviation.unwrap_or(0.0)).fold(0.0, f64::max) * 1.08;
        let top = if top > 0.0 { top } else { 1.0 };
        let y = |value: f64| FRAME.y(value.clamp(0.0, top), top);
        let mut svg = FRAME.begin(self.said, top);
        let slot = FRAME.wide() / self.groups.len().max(1) as f64;
        for (place, (name, group)) in self.groups.iter().enumerate() {
            let left = FRAME.left + slot * place as f64;
            let width = (slot * 0.8 / group.len().max(1) as f64).min(WIDEST);
            let first = left + (slot - width * group.len() as f64) / 2.0;
            for (series, bar) in group.iter().enumerate() {
                let Some(bar) = bar else { continue };
                let x = first + width * series as f64;
                self.bar(&mut svg, bar, series, (x, width), &y);
            }
            let _ = writeln!(
                svg,
                "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                left + slot / 2.0,
                FRAME.height - 18.0,
                escape(name)
            );
        }
        FRAME.end(&mut svg, self.what);
        svg
    }

    fn bar(&self, svg: &mut String, bar: &Bar, series: usize, (x, width): (f64, f64), y: &dyn Fn(f64) -> f64) {
        let at = y(bar.mean);
        let inner = width * 0.86;
        let from = x + (width - inner) / 2.0;
        let _ = write!(
            svg,
            "<g transform=\"scale({})\"><rect class=\"bar {}\" x=\"{:.0}\" y=\"{:.0}\" width=\"{:.0}\" \
             height=\"{:.0}\"/></g>",
            1.0 / GRID,
            class(series),
            from * GRID,
            at * GRID,
            inner * GRID,
            (FRAME.ground() - at) * GRID
        );
        let middle = x + width / 2.0;
        let mut label = at;
        if let Some(deviation) = bar.deviation {
            let (high, low) = (y(bar.mean + deviation), y(bar.mean - deviation));
            label = high;
            let cap = (inner / 3.0).min(8.0);
            let error = format!(
                "M{middle:.1} {high:.1}V{low:.1}M{:.1} {high:.1}h{:.1}M{:.1} {low:.1}h{:.1}",
                middle - cap,
                2.0 * cap,
                middle - cap,
                2.0 * cap
            );
            let _ = write!(svg, "<path class=\"halo\" d=\"{error}\"/><path class=\"error\" d=\"{error}\"/>");
        }
        // Numbers that would touch each other say nothing.
        if width >= 34.0 {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                label - 5.0,
                shown(bar.mean)
            );
        }
        svg.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_in_the_height_of_their_means_with_what_they_vary_by() {
        let bar = |mean, deviation| Some(Bar { mean, deviation });
        let groups = vec![("a & b".to_owned(), vec![bar(50.0, Some(10.0)), None, bar(100.0, None)])];
        let svg = Bars { what: "makespan (s)", said: "makespans", groups }.svg();
        // The axis goes up to 108; 234 units are high, so 50 begins 108.3 below the top.
        assert!(svg.contains("class=\"bar k0\"") && svg.contains("y=\"1497\""), "{svg}");
        assert!(svg.contains("class=\"bar k2\"") && !svg.contains("class=\"bar k1\""), "{svg}");
        assert_eq!(svg.matches("class=\"error\"").count(), 1);
        assert!(svg.contains("a &amp; b") && svg.contains(">makespan (s)<"), "{svg}");
    }
}
