//! Lines as DAGMan and `condor_submit` see them: comments left out, continued lines joined, each with its place.

use super::report::Place;
use std::sync::Arc;
use tulpar_core::workflow::Span;

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) place: Place,
}

pub(crate) struct Lines<'t> {
    text: &'t str,
    at: usize,
    number: usize,
    file: Option<Arc<str>>,
    /// Where the text begins in the DAG, for one that stands inside it.
    base: usize,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str, file: Option<Arc<str>>) -> Self {
        Self::inside(text, &Place { file, line: 1, span: Span::default() })
    }

    /// A text that begins at this place of another.
    pub(crate) fn inside(text: &'t str, place: &Place) -> Self {
        Self { text, at: 0, number: place.line, file: place.file.clone(), base: place.span.start as usize }
    }

    /// The next line as it stands, with its start; `None` at the end.
    fn physical(&mut self) -> Option<(&'t str, usize)> {
        if self.at >= self.text.len() {
            return None;
        }
        let start = self.at;
        let rest = &self.text[start..];
        let (line, next) = match rest.find('\n') {
            Some(end) => (&rest[..end], start + end + 1),
            None => (rest, self.text.len()),
        };
        self.at = next;
        self.number += 1;
        Some((line.strip_suffix('\r').unwrap_or(line), start))
    }

    /// Lines up to one that is `end` alone, without looking into them. `None` when it never comes.
    pub(crate) fn until(&mut self, end: &str) -> Option<(&'t str, Place)> {
        let start = self.at;
        let span = Span { start: (self.base + start) as u32, end: (self.base + start) as u32 };
        let place = Place { file: self.file.clone(), line: self.number, span };
        while let Some((line, at)) = self.physical() {
            if line.trim() == end {
                return Some((&self.text[start..at], place));
            }
        }
        None
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        loop {
            let number = self.number;
            let (line, start) = self.physical()?;
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            // Letters that stand for symbols later must not come from outside.
            let mut text = trimmed.replace(|letter: char| ('\u{e000}'..='\u{e00f}').contains(&letter), "\u{fffd}");
            let end = start + line.len();
            while text.ends_with('\\') {
                text.pop();
                let Some((next, _)) = self.physical() else { break };
                let next = next.trim();
                if !next.starts_with('#') {
                    text.push_str(next);
                }
            }
            let lead = line.len() - line.trim_start().len();
            let end = end - (line.len() - lead - trimmed.len());
            let span = Span { start: (self.base + start + lead) as u32, end: (self.base + end) as u32 };
            return Some(Line { text, place: Place { file: self.file.clone(), line: number, span } });
        }
    }
}

/// Splits off the first word.
pub(crate) fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.find(char::is_whitespace) {
        Some(end) => (&text[..end], text[end..].trim_start()),
        None => (text, ""),
    }
}
