//! Events of the YAML library into nodes. The only file that knows that library.

use super::{DEEPEST, Document, Entry, Node, Tag, is_merge};
use crate::diagnostic::{DUPLICATE_KEY, Diagnostic, SHAPE, SYNTAX, TOO_DEEP};
use crate::workflow::Span;
use rustc_hash::FxHashMap;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

/// How many nodes all aliases together may stand for.
const MOST_ALIASED: u64 = 1_000_000;

/// Reads a text; false when not to its end.
pub(super) fn build(text: &str) -> (Document<'_>, bool, Vec<Diagnostic>) {
    let mut builder = Builder::new(text);
    let complete = builder.run();
    (builder.document, complete, builder.diagnostics)
}

/// A collection that is not closed yet.
struct Open {
    index: u32,
    /// Nodes inside, with what aliases stand for.
    weight: u64,
    anchor: usize,
}

struct Builder<'t> {
    document: Document<'t>,
    diagnostics: Vec<Diagnostic>,
    places: Places<'t>,
    open: Vec<Open>,
    /// By anchor: its node and weight; `None` while it is still open.
    anchors: FxHashMap<usize, Option<(u32, u64)>>,
    aliased: u64,
    documents: usize,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            document: Document { text, cooked: String::new(), nodes: Vec::new() },
            diagnostics: Vec::new(),
            places: Places::new(text),
            open: Vec::new(),
            anchors: FxHashMap::default(),
            aliased: 0,
            documents: 0,
        }
    }

    /// False when the text could not be read to its end.
    fn run(&mut self) -> bool {
        let mut parser = Parser::new_from_str(self.document.text);
        while let Some(event) = parser.next_event() {
            match event {
                Ok((Event::StreamEnd, _)) => break,
                Ok((event, span)) => {
                    let span = self.places.span(span.start, span.end);
                    if !self.take(event, span) {
                        return false;
                    }
                }
                Err(error) => {
                    let diagnostic = syntax_error(self.document.text, self.places.byte(*error.marker()), error.info());
                    self.diagnostics.push(diagnostic);
                    return false;
                }
            }
        }
        if self.document.nodes.is_empty() {
            self.diagnostics.push(Diagnostic::error(SYNTAX, None, "the file is empty"));
        }
        true
    }

    fn take(&mut self, event: Event<'t>, span: Span) -> bool {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.diagnostics.push(
                        Diagnostic::error(SYNTAX, span, "a second document begins here")
                            .help("a file holds one document: remove this `---` and what follows"),
                    );
                    return false;
                }
            }
            Event::Scalar(value, style, anchor, tag) => {
                let quoted = style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix == "str");
                self.scalar(&value, quoted, span, anchor);
            }
            Event::SequenceStart(anchor, _) => return self.begin(Tag::Sequence, anchor, span),
            Event::MappingStart(anchor, _) => return self.begin(Tag::Mapping, anchor, span),
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(anchor) => return self.alias(anchor, span),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        true
    }

    fn push(&mut self, entry: Entry) -> u32 {
        let index = self.document.nodes.len() as u32;
        self.document.nodes.push(entry);
        if let Some(open) = self.open.last_mut() {
            open.weight += 1;
            self.document.nodes[open.index as usize].second += 1;
        }
        index
    }

    fn scalar(&mut self, value: &str, quoted: bool, span: Span, anchor: usize) {
        let source = self.document.text.get(span.start as usize..span.end as usize).unwrap_or("");
        let margin = usize::from(source.len() == value.len() + 2);
        let verbatim = source.get(margin..source.len() - margin) == Some(value);
        let (tag, first) = if verbatim {
            (if quoted { Tag::Quoted } else { Tag::Plain }, span.start + margin as u32)
        } else {
            let first = self.document.cooked.len() as u32;
            self.document.cooked.push_str(value);
            (if quoted { Tag::CookedQuoted } else { Tag::CookedPlain }, first)
        };
        let end = span.start + source.trim_end().len() as u32;
        let index = self.push(Entry { start: span.start, end, first, second: value.len() as u32, tag });
        if anchor != 0 {
            self.anchors.insert(anchor, Some((index, 1)));
        }
    }

    fn begin(&mut self, tag: Tag, anchor: usize, span: Span) -> bool {
        if self.open.len() >= DEEPEST {
            self.diagnostics.push(
                Diagnostic::error(TOO_DEEP, span, format!("nested more than {DEEPEST} levels deep"))
                    .help("check the brackets and the indentation above this place"),
            );
            return false;
        }
        let index = self.push(Entry { start: span.start, end: span.end, first: 0, second: 0, tag });
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        self.open.push(Open { index, weight: 1, anchor });
        true
    }

    fn end(&mut self, span: Span) {
        let Some(open) = self.open.pop() else { return };
        let after = self.document.nodes.len() as u32;
        let entry = &mut self.document.nodes[open.index as usize];
        entry.first = after;
        // The end of a block is noticed only at the next word: leave the space between out.
        let inside = self.document.text.get(entry.start as usize..span.end as usize).unwrap_or("");
        entry.end = (entry.start + inside.trim_end().len() as u32).max(entry.end);
        if let Some(above) = self.open.last_mut() {
            above.weight = above.weight.saturating_add(open.weight - 1);
        }
        if open.anchor != 0 {
            self.anchors.insert(open.anchor, Some((open.index, open.weight)));
        }
        if self.document.nodes[open.index as usize].tag == Tag::Mapping {
            self.check_keys(open.index);
        }
    }

    fn alias(&mut self, anchor: usize, span: Span) -> bool {
        let Some(Some((target, weight))) = self.anchors.get(&anchor).copied() else {
            self.diagnostics.push(
                Diagnostic::error(TOO_DEEP, span, "an alias to something that contains it")
                    .help("what `*name` repeats must end before it"),
            );
            return false;
        };
        self.aliased = self.aliased.saturating_add(weight);
        if self.aliased > MOST_ALIASED {
            self.diagnostics.push(
                Diagnostic::error(TOO_DEEP, span, format!("aliases stand for more than {MOST_ALIASED} values"))
                    .help("use `for:` to make many equal tasks"),
            );
            return false;
        }
        self.push(Entry { start: span.start, end: span.end, first: target, second: 0, tag: Tag::Alias });
        if let Some(open) = self.open.last_mut() {
            open.weight = open.weight.saturating_add(weight);
        }
        true
    }

    /// Finds keys that are no text or written twice, and marks mappings that merge others.
    fn check_keys(&mut self, mapping: u32) {
        const FEW: usize = 24;
        let mut found = Vec::new();
        let mut merging = false;
        {
            let node = Node { document: &self.document, index: mapping };
            let many = node.size() / 2 > FEW;
            let mut seen: Vec<Node<'_>> = Vec::new();
            let mut seen_many: FxHashMap<&str, Node<'_>> = FxHashMap::default();
            for (key, _) in node.entries() {
                let Some(text) = key.text() else {
                    found.push(
                        Diagnostic::error(SHAPE, key.span(), "a key must be a word")
                            .help("a value that begins with `{` or `[` must stand in quotes"),
                    );
                    continue;
                };
                if is_merge(&key) {
                    merging = true;
                    continue;
                }
                let earlier = if many {
                    seen_many.insert(text, key)
                } else {
                    let earlier = seen.iter().find(|other| other.text() == Some(text)).copied();
                    seen.push(key);
                    earlier
                };
                if let Some(earlier) = earlier {
                    found.push(
                        Diagnostic::error(DUPLICATE_KEY, key.span(), format!("`{text}` is written twice"))
                            .label("again here")
                            .related(earlier.span(), "first here")
                            .help("remove one of them, or give it another name"),
                    );
                }
            }
        }
        if merging {
            self.document.nodes[mapping as usize].tag = Tag::Merging;
        }
        self.diagnostics.append(&mut found);
    }
}

/// From the character counts of the YAML library to byte offsets.
struct Places<'t> {
    text: &'t str,
    ascii: bool,
    /// The byte offset of every [`STRIDE`]th character; empty for ASCII.
    strides: Vec<u32>,
    /// The last place asked for: the next one is usually near.
    last: (usize, usize),
}

const STRIDE: usize = 1024;

impl<'t> Places<'t> {
    fn new(text: &'t str) -> Self {
        let ascii = text.is_ascii();
        let strides =
            if ascii { Vec::new() } else { text.char_indices().step_by(STRIDE).map(|(byte, _)| byte as u32).collect() };
        Self { text, ascii, strides, last: (0, 0) }
    }

    fn span(&mut self, start: Marker, end: Marker) -> Span {
        let start = self.byte(start);
        Span { start, end: self.byte(end).max(start) }
    }

    fn byte(&mut self, marker: Marker) -> u32 {
        let character = marker.index();
        if self.ascii {
            return character.min(self.text.len()) as u32;
        }
        let (mut at, mut byte) = self.last;
        if character < at || character - at > STRIDE {
            let stride = (character / STRIDE).min(self.strides.len().saturating_sub(1));
            at = stride * STRIDE;
            byte = self.strides.get(stride).map_or(0, |byte| *byte as usize);
        }
        for letter in self.text[byte..].chars().take(character - at) {
            byte += letter.len_utf8();
            at += 1;
        }
        self.last = (at, byte);
        byte as u32
    }
}

/// The library's words are about grammar; add what people usually did.
fn syntax_error(text: &str, at: u32, info: &str) -> Diagnostic {
    let at = (at as usize).min(text.len());
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].lines().next().unwrap_or("");
    let end = at + text[at..].chars().next().map_or(0, char::len_utf8);
    let span = Span { start: at as u32, end: end as u32 };
    let mut diagnostic = Diagnostic::error(SYNTAX, span, format!("this is not valid YAML: {info}"));
    let value = line.split_once(": ").map_or("", |(_, value)| value.trim());
    if line[..line.len() - line.trim_start().len()].contains('\t') {
        diagnostic = diagnostic.help("indent with spaces: YAML does not allow tabs there");
    }
    if info.contains("quoted scalar") {
        diagnostic = diagnostic.help("close the quotes at the end of the text");
    } else if value.starts_with('{') && value[1..].contains('{') {
        diagnostic =
            diagnostic.help("inside `{…}` a text with braces must stand in quotes: `{result: \"part-{part}.npy\"}`");
    } else if value.starts_with('{') || value.starts_with('[') {
        diagnostic = diagnostic.help(format!("a value that begins with `{}` must stand in quotes", &value[..1]));
    } else if value.contains(": ") || value.ends_with(':') {
        diagnostic =
            diagnostic.help("put the text in quotes, or after `|` on lines of its own: `: ` inside it begins a map");
    } else if value.starts_with(['*', '&', '!', '%', '@', '`', '"', '\'']) {
        diagnostic = diagnostic.help("put the whole text in quotes, or after `|` on lines of its own");
    } else if diagnostic.help.is_empty() {
        diagnostic = diagnostic.help("check quotes, brackets and indentation of this line and the one above");
    }
    diagnostic
}
