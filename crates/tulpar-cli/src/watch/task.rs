//! One task on the screen: why it is as it is, what it uses, what it wrote.

use super::app::App;
use super::draw::{Paint, blocks};
use super::rows::last_attempt;
use super::samples;
use crate::arguments::Stream;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;
use tulpar::view::duration;
use tulpar_core::ids::JobId;
use tulpar_core::job::Sample;
use tulpar_core::units::Bytes;

/// Of a log, so much is looked at.
const TAIL: u64 = 32 << 10;

pub(super) fn draw(frame: &mut Frame, area: Rect, app: &App, job: JobId, paint: &Paint) {
    let samples = last_attempt(&app.model, job).map_or(&[][..], |attempt| app.model.samples.of(attempt));
    let charts = if samples.len() > 1 { 5 } else { 0 };
    let log = (area.height / 3).max(4);
    let [words, use_, logs] =
        Layout::vertical([Constraint::Min(4), Constraint::Length(charts), Constraint::Length(log)]).areas(area);
    let said = app.model.explain(job);
    let lines = said.lines.iter().map(|line| Line::raw(line.clone()));
    let hints =
        said.hints.iter().map(|hint| Line::from(vec![Span::styled("hint: ", paint.bold()), Span::raw(hint.clone())]));
    let text: Vec<Line> = lines.chain(hints).collect();
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }).scroll((app.scroll, 0)), words);
    if charts > 0 {
        draw_use(frame, use_, samples, paint);
    }
    draw_log(frame, logs, app, job, paint);
}

/// Why it is as it is, where there is little room.
pub(super) fn draw_why(frame: &mut Frame, area: Rect, app: &App, job: JobId, paint: &Paint) {
    let said = app.model.explain(job);
    let lines: Vec<Line> = said.lines.iter().skip(1).map(|line| Line::raw(line.clone())).collect();
    let title = format!(" why {} has not run ", app.model.engine().graph().name(job));
    let block = Block::new().borders(Borders::TOP).title(title).border_style(paint.dim());
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), area);
}

fn draw_use(frame: &mut Frame, area: Rect, samples: &[Sample], paint: &Paint) {
    let width = usize::from(area.width.saturating_sub(34)).max(10);
    let rates: Vec<samples::Rate> = samples.windows(2).map(|pair| samples::rate(&pair[0], &pair[1])).collect();
    let last = rates.last().copied().unwrap_or_default();
    let row = |name: &str, now: String, most: String, values: Vec<f64>, number: usize| {
        let highest = values.iter().copied().fold(0.0, f64::max);
        Line::from(vec![
            Span::raw(format!("{name:<7}{now:>10}")),
            Span::styled(format!(" (most {most:>9}) "), paint.dim()),
            Span::styled(blocks(&squeezed(&values, width), highest), paint.series(number)),
        ])
    };
    let most = |of: fn(&samples::Rate) -> f64| rates.iter().map(of).fold(0.0, f64::max);
    let rate = |value: f64| format!("{}/s", Bytes(value as u64));
    let mut lines = vec![
        row(
            "cpu",
            format!("{:.0} %", last.cpu),
            format!("{:.0} %", most(|rate| rate.cpu)),
            rates.iter().map(|rate| rate.cpu).collect(),
            0,
        ),
        row(
            "memory",
            Bytes(last.rss).to_string(),
            Bytes(most(|rate| rate.rss as f64) as u64).to_string(),
            rates.iter().map(|rate| rate.rss as f64).collect(),
            1,
        ),
        row(
            "read",
            rate(last.read_per_second),
            rate(most(|rate| rate.read_per_second)),
            rates.iter().map(|rate| rate.read_per_second).collect(),
            2,
        ),
    ];
    match last.gpu_percent {
        Some(percent) => lines.push(row(
            "gpu",
            format!("{percent} %"),
            format!("{:.0} %", most(|rate| f64::from(rate.gpu_percent.unwrap_or(0)))),
            rates.iter().map(|rate| f64::from(rate.gpu_percent.unwrap_or(0))).collect(),
            3,
        )),
        None => lines.push(row(
            "write",
            rate(last.write_per_second),
            rate(most(|rate| rate.write_per_second)),
            rates.iter().map(|rate| rate.write_per_second).collect(),
            3,
        )),
    }
    let span = samples.last().map_or(0, |sample| sample.ms);
    let title = format!(" use over {} ", duration(Duration::from_millis(span)));
    let block = Block::new().borders(Borders::TOP).title(title).border_style(paint.dim());
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// As many values as there is room for: of those that share a place, the largest.
fn squeezed(values: &[f64], width: usize) -> Vec<f64> {
    if values.len() <= width {
        return values.to_vec();
    }
    (0..width)
        .map(|place| {
            let (from, to) = (place * values.len() / width, ((place + 1) * values.len() / width).max(1));
            values[from..to.max(from + 1)].iter().copied().fold(0.0, f64::max)
        })
        .collect()
}

pub(super) fn draw_log(frame: &mut Frame, area: Rect, app: &App, job: JobId, paint: &Paint) {
    let room = usize::from(area.height.saturating_sub(1));
    let folder = app.model.attempt_folder(job);
    let read = |stream: Stream| {
        let name = if stream == Stream::Stdout { "stdout" } else { "stderr" };
        folder.as_ref().map(|folder| tail(&folder.join(name))).unwrap_or_default()
    };
    let (stream, text) = match app.stream {
        Some(stream) => (stream, read(stream)),
        None => match read(Stream::Stderr) {
            text if text.trim().is_empty() => (Stream::Stdout, read(Stream::Stdout)),
            text => (Stream::Stderr, text),
        },
    };
    let name = if stream == Stream::Stdout { "stdout" } else { "stderr" };
    let task = app.model.engine().graph().name(job);
    let lines: Vec<&str> = text.lines().collect();
    let shown: Vec<Line> = match lines.len() {
        0 => vec![Line::styled("nothing yet, or nothing kept", paint.dim())],
        count => lines[count.saturating_sub(room)..].iter().map(|line| Line::raw(plain(line))).collect(),
    };
    let title = format!(" {name} of {task} ");
    let block = Block::new().borders(Borders::TOP).title(title).border_style(paint.dim());
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

/// Without what would move the cursor or change colours; of a line that was written over, what stands there last.
fn plain(line: &str) -> String {
    let last = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or(line);
    let mut out = String::with_capacity(last.len());
    let mut letters = last.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => {
                // An escape sequence goes up to its first letter.
                if letters.next_if_eq(&'[').is_some() {
                    while letters.next().is_some_and(|next| !next.is_ascii_alphabetic()) {}
                }
            }
            '\t' => out.push_str("    "),
            letter if letter.is_control() => {}
            letter => out.push(letter),
        }
    }
    out
}

fn tail(path: &Path) -> String {
    let Ok(mut file) = File::open(path) else { return String::new() };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = Vec::new();
    let from = length.saturating_sub(TAIL);
    if file.seek(SeekFrom::Start(from)).and_then(|_| file.take(TAIL).read_to_end(&mut bytes)).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match from {
        0 => text,
        // The first line is not whole.
        _ => text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_shown_without_what_would_disturb_the_screen() {
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m\tand\u{7} a bell"), "red    and a bell");
        assert_eq!(plain("epoch 1\repoch 2\r"), "epoch 2");
    }

    #[test]
    fn many_values_are_squeezed_without_losing_the_highest() {
        assert_eq!(squeezed(&[1.0, 9.0, 2.0, 3.0], 2), [9.0, 3.0]);
        assert_eq!(squeezed(&[1.0, 2.0], 5), [1.0, 2.0]);
    }
}
