//! YAML (and so JSON) text into a compact tree whose every node knows its place in the text.
//!
//! The only file that knows the YAML library. It knows no workflow: it reports syntax errors, keys
//! written twice, and documents that are too deep or that aliases blow up. It never panics.
//!
//! A file with a million tasks has some sixteen million nodes, so a node is twenty bytes, a scalar that
//! stands in the text as it reads is not copied, and an alias stays a reference.

use crate::diagnostic::{DUPLICATE_KEY, Diagnostic, SHAPE, SYNTAX, TOO_DEEP};
use crate::workflow::Span;
use rustc_hash::FxHashMap;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

/// Deeper than any workflow needs, shallow enough for recursive readers.
const DEEPEST: usize = 64;
/// How many nodes all aliases together may stand for.
const MOST_ALIASED: u64 = 1_000_000;
const LONGEST: usize = u32::MAX as usize;
const MERGE: &str = "<<";

/// A parsed text. Nodes lie in the order of the text, each before what it contains.
pub struct Document<'t> {
    text: &'t str,
    /// Scalars that do not stand in the text as they read: escapes, folded lines, block indentation.
    cooked: String,
    nodes: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    end: u32,
    /// Scalars: where the text begins. Collections: the index after the last node inside. Aliases: the target.
    first: u32,
    /// Scalars: the length of the text. Collections: how many nodes lie directly inside.
    second: u32,
    tag: Tag,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tag {
    Plain,
    Quoted,
    /// As `Plain` and `Quoted`, with its text in `cooked`.
    CookedPlain,
    CookedQuoted,
    Sequence,
    Mapping,
    /// A mapping with a merge key in it.
    Merging,
    Alias,
}

/// A node of a document. Aliases are followed: their nodes are never seen.
#[derive(Clone, Copy)]
pub struct Node<'d> {
    document: &'d Document<'d>,
    index: u32,
}

/// What a node is, with what it holds.
#[derive(Clone, Copy)]
pub enum Kind<'d> {
    Scalar { text: &'d str, quoted: bool },
    Sequence,
    Mapping,
}

impl<'d> Node<'d> {
    fn entry(&self) -> &'d Entry {
        &self.document.nodes[self.index as usize]
    }

    pub fn span(&self) -> Span {
        let entry = self.entry();
        Span { start: entry.start, end: entry.end }
    }

    /// The text of the node as the user wrote it, quotes and all.
    pub fn source(&self) -> &'d str {
        let entry = self.entry();
        self.document.text.get(entry.start as usize..entry.end as usize).unwrap_or("")
    }

    pub fn kind(&self) -> Kind<'d> {
        let entry = self.entry();
        let (from, quoted) = match entry.tag {
            Tag::Plain => (self.document.text, false),
            Tag::Quoted => (self.document.text, true),
            Tag::CookedPlain => (self.document.cooked.as_str(), false),
            Tag::CookedQuoted => (self.document.cooked.as_str(), true),
            Tag::Sequence => return Kind::Sequence,
            Tag::Mapping | Tag::Merging => return Kind::Mapping,
            Tag::Alias => unreachable!("`at` follows aliases"),
        };
        let start = entry.first as usize;
        Kind::Scalar { text: &from[start..start + entry.second as usize], quoted }
    }

    /// A scalar's text, whatever its style; `None` for collections.
    pub fn text(&self) -> Option<&'d str> {
        match self.kind() {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// True for nothing at all, `~` and `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.kind(), Kind::Scalar { text: "" | "~" | "null", quoted: false })
    }

    /// True when the scalar stands in the text as it reads, so that offsets agree.
    pub fn is_verbatim(&self) -> bool {
        matches!(self.entry().tag, Tag::Plain | Tag::Quoted)
    }

    /// The place of a part of a scalar's text, as near as the text allows.
    pub fn span_within(&self, start: usize, end: usize) -> Span {
        let entry = self.entry();
        if self.is_verbatim() {
            return Span { start: entry.first + start as u32, end: entry.first + end as u32 };
        }
        // The scalar was unescaped or unfolded: find the same word, the same number of times, in the source.
        let whole = self.span();
        let (Some(text), source) = (self.text(), self.source()) else { return whole };
        let Some(word) = text.get(start..end).filter(|word| !word.is_empty()) else { return whole };
        let earlier = text[..start].matches(word).count();
        match source.match_indices(word).nth(earlier) {
            Some((at, _)) => {
                let start = whole.start + at as u32;
                Span { start, end: start + word.len() as u32 }
            }
            None => whole,
        }
    }

    /// What a sequence holds; nothing for other nodes.
    pub fn items(&self) -> Items<'d> {
        let entry = self.entry();
        let end = if entry.tag == Tag::Sequence { entry.first } else { self.index + 1 };
        Items { document: self.document, next: self.index + 1, end }
    }

    /// Keys and values of a mapping in the order of the text, merge keys resolved; nothing for other nodes.
    pub fn entries(&self) -> Entries<'d> {
        let entry = self.entry();
        match entry.tag {
            Tag::Mapping => Entries::Plain(Items { document: self.document, next: self.index + 1, end: entry.first }),
            Tag::Merging => {
                let mut list = Vec::new();
                self.merge_into(&mut list, 0);
                Entries::Merged(list.into_iter())
            }
            _ => Entries::Merged(Vec::new().into_iter()),
        }
    }

    /// How many nodes lie directly inside; for a mapping keys and values both.
    pub fn size(&self) -> usize {
        match self.entry().tag {
            Tag::Sequence | Tag::Mapping | Tag::Merging => self.entry().second as usize,
            _ => 0,
        }
    }

    fn merge_into(&self, list: &mut Vec<(Node<'d>, Node<'d>)>, depth: usize) {
        let mut items = Items { document: self.document, next: self.index + 1, end: self.entry().first };
        let mut merged = Vec::new();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            if is_merge(&key) {
                merged.push(value);
            } else if !list.iter().any(|(known, _)| known.text() == key.text()) {
                list.push((key, value));
            }
        }
        if depth > DEEPEST {
            return;
        }
        for value in merged {
            match value.kind() {
                Kind::Mapping => value.merge_into(list, depth + 1),
                Kind::Sequence => value
                    .items()
                    .filter(|item| matches!(item.kind(), Kind::Mapping))
                    .for_each(|item| item.merge_into(list, depth + 1)),
                Kind::Scalar { .. } => {}
            }
        }
    }
}

fn is_merge(key: &Node<'_>) -> bool {
    matches!(key.kind(), Kind::Scalar { text: MERGE, quoted: false })
}

pub struct Items<'d> {
    document: &'d Document<'d>,
    next: u32,
    end: u32,
}

impl<'d> Iterator for Items<'d> {
    type Item = Node<'d>;

    fn next(&mut self) -> Option<Node<'d>> {
        if self.next >= self.end {
            return None;
        }
        let index = self.next;
        self.next = self.document.after(index);
        Some(self.document.at(index))
    }
}

pub enum Entries<'d> {
    Plain(Items<'d>),
    Merged(std::vec::IntoIter<(Node<'d>, Node<'d>)>),
}

impl<'d> Iterator for Entries<'d> {
    type Item = (Node<'d>, Node<'d>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Entries::Plain(items) => items.next().zip(items.next()),
            Entries::Merged(list) => list.next(),
        }
    }
}

impl<'t> Document<'t> {
    /// Reads one document. `None` when nothing useful could be read; then there is an error.
    pub fn parse(text: &'t str) -> (Option<Self>, Vec<Diagnostic>) {
        if text.len() >= LONGEST {
            return (None, vec![Diagnostic::error(TOO_DEEP, None, "the file is larger than 4 GB")]);
        }
        let mut builder = Builder::new(text);
        let complete = builder.run();
        let Builder { document, diagnostics, .. } = builder;
        (Some(document).filter(|document| complete && !document.nodes.is_empty()), diagnostics)
    }

    pub fn root(&self) -> Node<'_> {
        self.at(0)
    }

    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The node at an index, behind the alias if it is one. Aliases point at what is no alias.
    fn at(&self, index: u32) -> Node<'_> {
        let entry = &self.nodes[index as usize];
        Node { document: self, index: if entry.tag == Tag::Alias { entry.first } else { index } }
    }

    fn after(&self, index: u32) -> u32 {
        let entry = &self.nodes[index as usize];
        match entry.tag {
            Tag::Sequence | Tag::Mapping | Tag::Merging => entry.first,
            _ => index + 1,
        }
    }
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
        let strides = if ascii {
            Vec::new()
        } else {
            text.char_indices().step_by(STRIDE).map(|(byte, _)| byte as u32).collect()
        };
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
        diagnostic = diagnostic.help("inside `{…}` a text with braces must stand in quotes: `{result: \"part-{part}.npy\"}`");
    } else if value.starts_with('{') || value.starts_with('[') {
        diagnostic = diagnostic.help(format!("a value that begins with `{}` must stand in quotes", &value[..1]));
    } else if value.contains(": ") || value.ends_with(':') {
        diagnostic = diagnostic.help("put the text in quotes, or after `|` on lines of its own: `: ` inside it begins a map");
    } else if value.starts_with(['*', '&', '!', '%', '@', '`', '"', '\'']) {
        diagnostic = diagnostic.help("put the whole text in quotes, or after `|` on lines of its own");
    } else if diagnostic.help.is_empty() {
        diagnostic = diagnostic.help("check quotes, brackets and indentation of this line and the one above");
    }
    diagnostic
}
