//! What charts have in common: an SVG of a page's width, the place inside its margins, the axis of values with lines, numbers
//! and a title. It draws nothing of what is between.

use crate::markup::escape;
use crate::words::number;
use std::fmt::Write;

pub(crate) const WIDTH: f64 = 960.0;
pub(crate) const RIGHT: f64 = 14.0;
/// Shapes are written in whole tenths of a unit: a third of the bytes, and what the textures are made for.
pub(crate) const GRID: f64 = 10.0;

/// The margins of a chart; beside it is as much as all charts have.
pub(crate) struct Frame {
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Frame {
    pub(crate) fn wide(&self) -> f64 {
        WIDTH - self.left - RIGHT
    }

    pub(crate) fn high(&self) -> f64 {
        self.height - self.top - self.bottom
    }

    /// Where the axis lies that things stand on.
    pub(crate) fn ground(&self) -> f64 {
        self.top + self.high()
    }

    /// The height of a value, of which `most` is at the top.
    pub(crate) fn y(&self, value: f64, most: f64) -> f64 {
        self.top + self.high() * (1.0 - value / most)
    }

    /// The beginning, with words for those who cannot see it and the lines of the axis up to `most`.
    pub(crate) fn begin(&self, said: &str, most: f64) -> String {
        let lines: Vec<(f64, String)> = ticks(most, 5).into_iter().map(|tick| (tick / most, number(tick))).collect();
        self.begin_with(said, &lines)
    }

    /// The same, with these lines: how high they are, of 1, and what they mean.
    pub(crate) fn begin_with(&self, said: &str, lines: &[(f64, String)]) -> String {
        let mut svg = format!(
            "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">\n",
            self.height,
            escape(said)
        );
        for (unit, word) in lines {
            let at = self.y(*unit, 1.0);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{} {at:.1}h{}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                self.left,
                self.wide(),
                self.left - 8.0,
                at + 4.0,
                escape(word)
            );
        }
        svg
    }

    /// The axis below: where its ticks are, of 1, what they mean, and what it is.
    pub(crate) fn below(&self, svg: &mut String, ticks: &[(f64, String)], what: &str) {
        for (unit, word) in ticks {
            let at = self.left + self.wide() * unit;
            let _ = writeln!(
                svg,
                "<path class=\"axis\" d=\"M{at:.1} {}v5\"/><text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{}</text>",
                self.ground(),
                self.ground() + 18.0,
                escape(word)
            );
        }
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            self.left + self.wide() / 2.0,
            self.height - 8.0,
            escape(what)
        );
    }

    /// The end, with the axes and the title of the one for values.
    pub(crate) fn end(&self, svg: &mut String, what: &str) {
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{} {}V{}h{}\"/><text class=\"title\" transform=\"translate(14 {:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>\n</svg></div>",
            self.left,
            self.top,
            self.ground(),
            self.wide(),
            self.top + self.high() / 2.0,
            escape(what)
        );
    }
}

/// Round numbers from 0 up to a largest one, about as many as wanted.
pub(crate) fn ticks(most: f64, wanted: usize) -> Vec<f64> {
    if !most.is_finite() || most <= 0.0 {
        return vec![0.0];
    }
    let rough = most / wanted as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(rough);
    (0..).map(|number| f64::from(number) * step).take_while(|tick| *tick <= most * 1.0001).collect()
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn ticks_are_round_numbers_up_to_the_largest() {
        assert_eq!(ticks(504.0, 5), [0.0, 200.0, 400.0]);
        assert_eq!(ticks(18.0, 5), [0.0, 5.0, 10.0, 15.0]);
        assert_eq!(ticks(2.0, 5), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(ticks(1323.0, 8), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0, 1200.0]);
        assert_eq!(ticks(0.0, 5), [0.0]);
    }
}
