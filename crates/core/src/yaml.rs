//! YAML (and so JSON) text into a compact tree whose every node knows its place in the text.
//!
//! It knows no workflow: it reports syntax errors, keys written twice, and documents that are too deep or
//! that aliases blow up. It never panics. Only `builder` knows the YAML library.
//!
//! A file with a million tasks has some sixteen million nodes, so a node is twenty bytes, a scalar that
//! stands in the text as it reads is not copied, and an alias stays a reference.

mod builder;

use crate::diagnostic::{Diagnostic, TOO_DEEP};
use crate::workflow::Span;

/// Deeper than any workflow needs, shallow enough for recursive readers.
const DEEPEST: usize = 64;
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
        let (document, complete, diagnostics) = builder::build(text);
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
