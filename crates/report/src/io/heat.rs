//! Bytes over time as a map: rows are ranks or files, shades are rates on a logarithmic scale. Shades differ in lightness,
//! so that everybody and every printer tells them apart.

use std::fmt::Write;

use tulpar_trace::report::HeatMap;

use super::words::rate;
use crate::chart::time_unit;
use crate::frame::ticks;
use crate::markup::escape;
use crate::words::number;

const WIDTH: f64 = 960.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 44.0;
const SHADES: usize = 6;
/// Rates below this share of the greatest are the faintest shade.
const FAINTEST: f64 = 1e-5;

/// What a map shows.
pub(super) struct Map<'m> {
    pub(super) map: &'m HeatMap,
    /// Reads or writes.
    pub(super) written: bool,
    /// What a row is: `rank`.
    pub(super) row: &'static str,
    /// Room for the names of rows.
    pub(super) left: f64,
}

impl Map<'_> {
    fn cells(&self, row: usize) -> &[f64] {
        let row = &self.map.rows[row];
        if self.written { &row.written } else { &row.read }
    }

    /// The greatest rate, in bytes a second.
    fn greatest(&self) -> f64 {
        let most =
            (0..self.map.rows.len()).flat_map(|row| self.cells(row)).fold(0.0, |most: f64, cell| most.max(*cell));
        if self.map.bin_width > 0.0 { most / self.map.bin_width } else { 0.0 }
    }

    /// Nothing, if nothing was moved.
    pub(super) fn svg(&self) -> Option<String> {
        let greatest = self.greatest();
        let (rows, bins) = (self.map.rows.len(), self.map.bins());
        if greatest <= 0.0 || bins == 0 {
            return None;
        }
        let (word, class) = if self.written { ("written", "w") } else { ("read", "r") };
        let high = (420.0 / rows as f64).clamp(4.0, 20.0);
        let wide = (WIDTH - self.left - RIGHT) / bins as f64;
        let bottom = TOP + high * rows as f64;
        let height = bottom + BOTTOM;
        let mut svg = legend(word, class, greatest);
        let _ = writeln!(
            svg,
            "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"bytes \
             {word} over time by {}\">",
            self.row
        );
        let every = (14.0 / high).ceil().max(1.0) as usize;
        for row in 0..rows {
            let y = TOP + high * row as f64;
            if row.is_multiple_of(every) {
                let name = &self.map.rows[row].name;
                let _ = writeln!(
                    svg,
                    "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}<title>{}</title></text>",
                    self.left - 8.0,
                    y + high / 2.0 + 4.0,
                    escape(&shortened(name, self.left)),
                    escape(name)
                );
            }
            self.draw_row(&mut svg, row, (y, high), wide, (class, greatest));
        }
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{left} {TOP}V{bottom:.1}H{right:.1}\"/>",
            left = self.left,
            right = WIDTH - RIGHT
        );
        self.time_axis(&mut svg, bottom, bins);
        let _ = writeln!(
            svg,
            "<text class=\"title\" transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n\
             </svg></div>",
            TOP + high * rows as f64 / 2.0,
            self.row
        );
        Some(svg)
    }

    /// Neighbours of one shade are one piece.
    fn draw_row(&self, svg: &mut String, row: usize, (y, high): (f64, f64), wide: f64, (class, greatest): (&str, f64)) {
        let shade = |bytes: f64| shade(bytes / self.map.bin_width, greatest);
        let cells = self.cells(row);
        let mut begin = 0;
        while begin < cells.len() {
            let own = shade(cells[begin]);
            let length = cells[begin..].iter().take_while(|cell| shade(**cell) == own).count();
            if let Some(own) = own {
                let _ = write!(
                    svg,
                    "<path class=\"{class}{own}\" d=\"M{:.1} {y:.1}h{:.1}v{:.1}h-{:.1}z\"/>",
                    self.left + begin as f64 * wide,
                    length as f64 * wide,
                    (high - if high > 8.0 { 1.0 } else { 0.3 }),
                    length as f64 * wide,
                );
            }
            begin += length;
        }
        svg.push('\n');
    }

    fn time_axis(&self, svg: &mut String, bottom: f64, bins: usize) {
        let until = self.map.bin_width * bins as f64;
        time_axis(svg, until, (self.left, WIDTH - RIGHT), bottom);
    }
}

/// Time from zero, below a chart.
pub(super) fn time_axis(svg: &mut String, until: f64, (left, right): (f64, f64), bottom: f64) {
    let (unit, name) = time_unit(until);
    for tick in ticks(until / unit, 8) {
        let at = left + (right - left) * tick * unit / until.max(1e-12);
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{at:.1} {bottom:.1}v5\"/><text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{}</text>",
            bottom + 18.0,
            number(tick)
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">time since the start ({name})</text>",
        left + (right - left) / 2.0,
        bottom + 36.0
    );
}

/// 1 for the faintest.
fn shade(rate: f64, greatest: f64) -> Option<usize> {
    if rate <= 0.0 {
        return None;
    }
    let depth = (rate / greatest).max(FAINTEST).log10() / FAINTEST.log10();
    Some(SHADES - ((depth * SHADES as f64) as usize).min(SHADES - 1))
}

fn legend(word: &str, class: &str, greatest: f64) -> String {
    let mut html = format!("<ul class=\"legend\"><li>{word}:</li>");
    for number in 1..=SHADES {
        let from = greatest * FAINTEST.powf((SHADES - number + 1) as f64 / SHADES as f64);
        let to = greatest * FAINTEST.powf((SHADES - number) as f64 / SHADES as f64);
        // Fractions of a byte a second say nothing.
        if to < 1.0 {
            continue;
        }
        let text = if number == 1 || from < 1.0 {
            format!("up to {}", rate(to))
        } else {
            format!("{} – {}", rate(from), rate(to))
        };
        let _ = write!(
            html,
            "<li><svg class=\"swatch\" viewBox=\"0 0 14 14\"><path class=\"{class}{number}\" d=\"M0 0h14v14h-14z\"/></svg>{text}</li>"
        );
    }
    html.push_str("</ul>\n");
    html
}

/// The end of a path says most.
fn shortened(name: &str, room: f64) -> String {
    let most = ((room - 30.0) / 6.6) as usize;
    let length = name.chars().count();
    if length <= most {
        return name.to_owned();
    }
    let end: String = name.chars().skip(length + 1 - most.max(2)).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::{shade, shortened};

    #[test]
    fn shades_are_steps_of_the_logarithm() {
        let rates = [0.0, 1e-9, 1e-5, 0.9e-4, 1e-2, 0.2, 1.0];
        assert_eq!(rates.map(|rate| shade(rate, 1.0)), [None, Some(1), Some(1), Some(2), Some(4), Some(6), Some(6)]);
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(shortened("/data/train/part-00017.tfrecord", 130.0), "…00017.tfrecord");
        assert_eq!(shortened("7", 60.0), "7");
    }
}
