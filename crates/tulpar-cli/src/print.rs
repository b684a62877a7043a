//! Words for people: colour only where it is wanted, data to stdout, everything else to stderr.

use crate::arguments::Color;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU8, Ordering};

static CHOICE: AtomicU8 = AtomicU8::new(0);

pub(crate) fn set_colour(color: Color) {
    CHOICE.store(color as u8, Ordering::Relaxed);
}

fn coloured(is_terminal: bool) -> bool {
    let choice = CHOICE.load(Ordering::Relaxed);
    if choice == Color::Always as u8 {
        true
    } else if choice == Color::Never as u8 {
        false
    } else {
        is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }
}

pub(crate) fn colour_on_stderr() -> bool {
    coloured(std::io::stderr().is_terminal())
}

pub(crate) fn colour_on_stdout() -> bool {
    coloured(std::io::stdout().is_terminal())
}

/// How a word is to look on a terminal. Everything must be understandable without it.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    Bold,
    Dim,
    Good,
    Bad,
    Warn,
}

impl Style {
    pub(crate) fn paint(self, text: &str, colour: bool) -> String {
        if !colour {
            return text.to_owned();
        }
        let code = match self {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Good => "32",
            Style::Bad => "31",
            Style::Warn => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Who closes the terminal still has a run that must stop as it should: what cannot be said is not.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", clean(text, colour_on_stderr()));
}

/// Text in which nothing can move the cursor, clear the screen or set a title: names and words of tasks are in it.
/// Line breaks, tabs and, where there is colour, our own colours stay.
fn clean(text: &str, colour: bool) -> Cow<'_, str> {
    let harmful = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let ours = OURS.iter().find(|code| colour && rest.starts_with(**code)).copied().unwrap_or_default();
        if !ours.is_empty() {
            out.push_str(ours);
            rest = &rest[ours.len()..];
            continue;
        }
        out.push(if harmful(letter) { char::REPLACEMENT_CHARACTER } else { letter });
        rest = &rest[letter.len_utf8()..];
    }
    Cow::Owned(out)
}

/// The text that [`Style::paint`] writes.
const OURS: &[&str] = &["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];

pub(crate) fn error(message: &str) {
    say(&format!("{}: {message}", Style::Bad.paint("error", colour_on_stderr())));
}

pub(crate) fn warning(message: &str) {
    say(&format!("{}: {message}", Style::Warn.paint("warning", colour_on_stderr())));
}

pub(crate) fn hint(message: &str) {
    say(&format!("{}: {message}", Style::Bold.paint("hint", colour_on_stderr())));
}

/// Something for the person, not for a pipe.
pub(crate) fn note(message: &str) {
    say(message);
}

/// A line of data. A closed pipe ends the program quietly, as `head` expects.
pub(crate) fn line(text: &str) {
    if writeln!(std::io::stdout(), "{}", clean(text, colour_on_stdout())).is_err() {
        #[expect(clippy::exit, reason = "nobody is left to read")]
        std::process::exit(0);
    }
}

pub(crate) fn bytes(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
        #[expect(clippy::exit, reason = "nobody is left to read")]
        std::process::exit(0);
    }
}

pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => line(&text),
        Err(cause) => error(&format!("cannot write JSON: {cause}")),
    }
}

/// Rows in columns as wide as they need to be; the last column is left ragged. Numbers go to the right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let numeric: Vec<bool> = (0..header.len())
        .map(|column| {
            let mut cells = rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_empty()).peekable();
            cells.peek().is_some()
                && cells
                    .all(|cell| cell.starts_with(|first: char| first.is_ascii_digit() || first == '-' || first == '<'))
        })
        .collect();
    let colour = colour_on_stdout();
    let format_row = |cells: &[String]| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let pad = widths[column].saturating_sub(cell.chars().count());
            if numeric[column] {
                text.push_str(&" ".repeat(pad));
                text.push_str(cell);
            } else {
                text.push_str(cell);
                if column + 1 < cells.len() {
                    text.push_str(&" ".repeat(pad));
                }
            }
            if column + 1 < cells.len() {
                text.push_str("  ");
            }
        }
        text
    };
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
    line(&Style::Bold.paint(&format_row(&header), colour));
    for row in rows {
        line(&format_row(row));
    }
}
