//! Charts as SVG, without a library: lines over epochs, and a matrix of counts. They are plain enough for print.

use crate::metrics::Confusion;
use std::fmt::Write;

const COLOURS: [&str; 4] = ["#0b6e99", "#c4501b", "#4d7c0f", "#7c3aed"];

/// One line of a chart.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    pub name: &'a str,
    pub values: Vec<f64>,
}

/// Lines over the numbers 1, 2, 3 …, with a title.
pub fn lines(title: &str, across: &str, lines: &[Line]) -> String {
    let (width, height, left, right, top, bottom) = (520.0, 280.0, 62.0, 16.0, 34.0, 44.0);
    let all = || lines.iter().flat_map(|line| line.values.iter().copied()).filter(|value| value.is_finite());
    let (mut low, mut high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    if !(low.is_finite() && high.is_finite()) {
        (low, high) = (0.0, 1.0);
    }
    if high - low < 1e-9 {
        (low, high) = (low - 0.5, high + 0.5);
    }
    let step = round_step((high - low) / 5.0);
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    (low, high) = (first as f64 * step, last as f64 * step);
    let count = lines.iter().map(|line| line.values.len()).max().unwrap_or(0).max(1);
    let x = |index: usize| {
        let part = if count == 1 { 0.5 } else { index as f64 / (count - 1) as f64 };
        left + part * (width - left - right)
    };
    let y = |value: f64| height - bottom - (value - low) / (high - low) * (height - top - bottom);
    let mut svg = opening(width, height, title);
    for number in first..=last {
        let value = number as f64 * step;
        let at = y(value);
        put(
            &mut svg,
            format_args!(
                "<line x1='{left}' x2='{}' y1='{at:.1}' y2='{at:.1}' stroke='#8884' stroke-width='1'/>\
             <text x='{}' y='{:.1}' text-anchor='end' font-size='11'>{}</text>\n",
                width - right,
                left - 6.0,
                at + 4.0,
                short(value, step)
            ),
        );
    }
    let every = count.div_ceil(10);
    for index in (0..count).step_by(every) {
        put(
            &mut svg,
            format_args!(
                "<text x='{:.1}' y='{}' text-anchor='middle' font-size='11'>{}</text>\n",
                x(index),
                height - bottom + 16.0,
                index + 1
            ),
        );
    }
    put(
        &mut svg,
        format_args!(
            "<text x='{}' y='{}' text-anchor='middle' font-size='11'>{}</text>\n",
            (left + width - right) / 2.0,
            height - 8.0,
            escaped(across)
        ),
    );
    let mut label = left;
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let points: Vec<String> =
            line.values.iter().enumerate().map(|(index, value)| format!("{:.1},{:.1}", x(index), y(*value))).collect();
        put(
            &mut svg,
            format_args!("<polyline fill='none' stroke='{colour}' stroke-width='2' points='{}'/>\n", points.join(" ")),
        );
        for point in &points {
            let (x, y) = point.split_once(',').unwrap_or(("0", "0"));
            put(&mut svg, format_args!("<circle cx='{x}' cy='{y}' r='3' fill='{colour}'/>\n"));
        }
        put(
            &mut svg,
            format_args!(
                "<rect x='{label}' y='24' width='10' height='3' fill='{colour}'/>\
             <text x='{}' y='29' font-size='11'>{}</text>\n",
                label + 14.0,
                escaped(line.name)
            ),
        );
        label += 30.0 + 6.5 * line.name.chars().count() as f64;
    }
    svg + "</svg>\n"
}

/// A matrix of counts: the more of its row, the darker.
pub fn confusion(title: &str, confusion: &Confusion) -> String {
    let longest = confusion.classes.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let (cell, left, top) = (64.0, 24.0 + 7.0 * longest as f64, 60.0);
    let classes = confusion.classes.len();
    let (width, height) = (left + cell * classes as f64 + 16.0, top + cell * classes as f64 + 44.0);
    let mut svg = opening(width, height, title);
    put(&mut svg, format_args!("<text x='{left}' y='40' font-size='11'>said to be</text>\n"));
    for (row, name) in confusion.classes.iter().enumerate() {
        let y = top + cell * row as f64;
        put(
            &mut svg,
            format_args!(
                "<text x='{}' y='{}' text-anchor='end' font-size='12'>{}</text>\n",
                left - 8.0,
                y + cell / 2.0 + 4.0,
                escaped(name)
            ),
        );
        let sum: usize = confusion.counts[row].iter().sum();
        for (column, count) in confusion.counts[row].iter().enumerate() {
            let x = left + cell * column as f64;
            let share = *count as f64 / sum.max(1) as f64;
            let ink = if share > 0.5 { "#fff" } else { "#111" };
            let lightness = 96.0 - 62.0 * share;
            put(
                &mut svg,
                format_args!(
                    "<rect x='{x}' y='{y}' width='{cell}' height='{cell}' fill='hsl(200 80% {lightness:.0}%)' stroke='#fff'/>\
                 <text x='{}' y='{}' text-anchor='middle' font-size='14' style='fill:{ink}'>{count}</text>\n",
                    x + cell / 2.0,
                    y + cell / 2.0 + 5.0
                ),
            );
        }
    }
    let below = top + cell * classes as f64;
    for (column, name) in confusion.classes.iter().enumerate() {
        let x = left + cell * (column as f64 + 0.5);
        // Words of a name stand below one another: five names side by side do not fit.
        for (line, word) in name.split(' ').enumerate() {
            put(
                &mut svg,
                format_args!(
                    "<text x='{x}' y='{}' text-anchor='middle' font-size='10'>{}</text>\n",
                    below + 14.0 + 12.0 * line as f64,
                    escaped(word)
                ),
            );
        }
    }
    svg + "</svg>\n"
}

/// The text with the five characters that mean something in XML written otherwise.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

fn opening(width: f64, height: f64, title: &str) -> String {
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' \
         font-family='sans-serif' role='img'>\n<style>text {{ fill: #111 }}</style>\n\
         <rect width='{width}' height='{height}' fill='#fff'/>\n<title>{0}</title>\n\
         <text x='12' y='16' font-size='13' font-weight='bold'>{0}</text>\n",
        escaped(title)
    )
}

fn put(svg: &mut String, text: std::fmt::Arguments) {
    // A String takes everything.
    let _ = svg.write_fmt(text);
}

/// The next larger of 1, 2, 5, 10, 20 … and their parts.
fn round_step(least: f64) -> f64 {
    let ten = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|factor| factor * ten).find(|step| *step >= least * 0.999).unwrap_or(10.0 * ten)
}

/// With as many digits as steps of this size need.
fn short(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    // Nothing below nought is written as −0.
    format!("{:.digits$}", if value == 0.0 { 0.0 } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_a_point_and_names_are_escaped() {
        let svg = lines("loss & score", "epoch", &[Line { name: "a<b", values: vec![1.0, 0.5, 0.25] }]);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("loss &amp; score") && svg.contains("a&lt;b") && !svg.contains("a<b"));
    }

    #[test]
    fn lines_stand_at_round_numbers() {
        let svg = lines("accuracy", "epoch", &[Line { name: "a", values: vec![0.4814, 1.0] }]);
        for label in [">0.4<", ">0.6<", ">0.8<", ">1.0<"] {
            assert!(svg.contains(label), "{label}: {svg}");
        }
        assert_eq!([0.11, 0.2, 0.3, 7.0, 130.0].map(round_step), [0.2, 0.2, 0.5, 10.0, 200.0]);
        assert_eq!([short(-0.0, 0.5), short(1500.0, 500.0), short(0.05, 0.05)], ["0.0", "1500", "0.05"]);
    }

    #[test]
    fn lines_without_values_are_a_chart_all_the_same() {
        let svg = lines(
            "nothing",
            "epoch",
            &[Line { name: "none", values: vec![] }, Line { name: "odd", values: vec![f64::NAN] }],
        );
        assert!(svg.ends_with("</svg>\n") && !svg.contains("inf"));
    }
}
