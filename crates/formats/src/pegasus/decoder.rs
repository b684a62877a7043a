//! From nodes to plain values, leniently: files of the real world break Pegasus' own schemas.

use super::codes::{MISSING_KEY, SHAPE, UNKNOWN_KEY};
use tulpar_core::diagnostic::{Diagnostic, Findings, line_column};
use tulpar_core::yaml::{Kind, Node};

/// Collects findings about one text. Those about a catalogue name its file and line, because places of
/// findings mean the workflow.
pub(super) struct Decoder<'f> {
    findings: &'f mut Findings,
    file: Option<(&'f str, &'f str)>,
}

impl<'f> Decoder<'f> {
    pub(super) fn new(findings: &'f mut Findings, file: Option<(&'f str, &'f str)>) -> Self {
        Self { findings, file }
    }

    pub(super) fn report(&mut self, mut diagnostic: Diagnostic) {
        if let Some((name, text)) = self.file {
            diagnostic.message = match diagnostic.span.take() {
                Some(span) => format!("{name}:{}: {}", line_column(text, &span).0, diagnostic.message),
                None => format!("{name}: {}", diagnostic.message),
            };
            diagnostic.related.clear();
        }
        self.findings.push(diagnostic);
    }

    /// Calls back for every entry of a map, without the extension keys `x-…`. Nothing at all is an empty map.
    pub(super) fn map<'d>(
        &mut self,
        node: Node<'d>,
        what: &str,
        mut each: impl FnMut(&mut Self, &'d str, Node<'d>, Node<'d>),
    ) {
        if node.is_null() {
            return;
        }
        if !matches!(node.kind(), Kind::Mapping) {
            self.report(Diagnostic::error(SHAPE, node.span(), format!("{what} must be a map")));
            return;
        }
        for (key, value) in node.entries() {
            match key.text() {
                Some(text) if text.starts_with("x-") => {}
                Some(text) => each(self, text, key, value),
                None => self.report(Diagnostic::error(SHAPE, key.span(), format!("a key of {what} must be a text"))),
            }
        }
    }

    /// Calls back for every entry of a list. Nothing at all is an empty list.
    pub(super) fn list<'d>(&mut self, node: Node<'d>, what: &str, mut each: impl FnMut(&mut Self, Node<'d>)) {
        if node.is_null() {
            return;
        }
        if !matches!(node.kind(), Kind::Sequence) {
            self.report(Diagnostic::error(SHAPE, node.span(), format!("{what} must be a list")));
            return;
        }
        node.items().for_each(|item| each(self, item));
    }

    /// A scalar of any type as it is written; nothing at all is an empty text.
    pub(super) fn text<'d>(&mut self, node: Node<'d>, what: &str) -> &'d str {
        match node.kind() {
            Kind::Scalar { .. } if node.is_null() => "",
            Kind::Scalar { text, .. } => text,
            _ => {
                self.report(Diagnostic::error(SHAPE, node.span(), format!("{what} must be a single value")));
                ""
            }
        }
    }

    pub(super) fn owned(&mut self, node: Node<'_>, what: &str) -> Option<String> {
        Some(self.text(node, what).to_owned()).filter(|text| !text.is_empty())
    }

    /// YAML's own words for true, as Pegasus' parsers read them.
    pub(super) fn truth(&mut self, node: Node<'_>, what: &str) -> bool {
        let text = self.text(node, what);
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => true,
            "false" | "no" | "off" | "" => false,
            _ => {
                let message = format!("{what} is `true` or `false`, not `{text}`");
                self.report(Diagnostic::error(super::codes::BAD_VALUE, node.span(), message));
                false
            }
        }
    }

    pub(super) fn unknown(&mut self, key: Node<'_>, what: &str, known: &[&str]) {
        let word = key.text().unwrap_or("");
        let diagnostic =
            Diagnostic::warning(UNKNOWN_KEY, key.span(), format!("{what} has no key `{word}`; it is ignored"));
        self.report(diagnostic.suggest(word, known.iter().copied()));
    }

    pub(super) fn missing(&mut self, node: Node<'_>, what: &str, key: &str) {
        let span = node.span();
        // A whole map would be marked: its first words are enough to find it.
        let start = tulpar_core::workflow::Span { start: span.start, end: span.end.min(span.start + 1) };
        self.report(Diagnostic::error(MISSING_KEY, start, format!("{what} has no `{key}`")));
    }
}
