//! XML as a stream of starts, texts and ends with their places. It knows nothing of workflows.

use super::codes::{ENTITY, SYNTAX, TOO_DEEP};
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use std::borrow::Cow;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::Span;

/// Deeper than any workflow, and far from any limit of a machine.
const DEEPEST: usize = 64;
const MOST_ATTRIBUTES: usize = 64;

#[derive(Debug)]
pub(super) struct Element {
    /// Without the prefix of a namespace.
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) span: Span,
}

impl Element {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first of these that is there: names changed between versions.
    pub(super) fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }
}

pub(super) enum Item<'t> {
    Start(Element),
    Text(Cow<'t, str>),
    End,
}

pub(super) struct Xml<'t> {
    reader: quick_xml::Reader<&'t [u8]>,
    text: &'t str,
    depth: usize,
    /// The root has ended.
    over: bool,
}

impl<'t> Xml<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut reader = quick_xml::Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Self { reader, text, depth: 0, over: false }
    }

    fn span(&self, start: u64) -> Span {
        let end = (self.reader.buffer_position() as usize).min(self.text.len());
        let start = (start as usize).min(end);
        // An element may have many lines; its first one is a good place to show.
        let line = self.text.as_bytes()[start..end].iter().position(|byte| *byte == b'\n');
        Span { start: start as u32, end: line.map_or(end, |line| start + line) as u32 }
    }

    /// `None` after the end of the root element.
    pub(super) fn next(&mut self) -> Result<Option<Item<'t>>, Box<Diagnostic>> {
        loop {
            let start = self.reader.buffer_position();
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let at = self.reader.error_position().min(self.text.len() as u64) as u32;
                    let span = Span { start: at, end: at };
                    return refuse(Diagnostic::error(SYNTAX, span, format!("this is not well-formed XML: {error}")));
                }
            };
            match event {
                Event::Start(tag) | Event::Empty(tag) => {
                    let span = self.span(start);
                    if self.over {
                        return refuse(Diagnostic::error(SYNTAX, span, "only one element may stand at the top"));
                    }
                    self.depth += 1;
                    if self.depth > DEEPEST {
                        return refuse(Diagnostic::error(
                            TOO_DEEP,
                            span,
                            format!("nested deeper than {DEEPEST} elements"),
                        ));
                    }
                    return element(&tag, span).map(|element| Some(Item::Start(element)));
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.over = self.depth == 0;
                    return Ok(Some(Item::End));
                }
                Event::Text(text) => {
                    if self.depth == 0 {
                        if text.trim().is_empty() {
                            continue;
                        }
                        return refuse(Diagnostic::error(SYNTAX, self.span(start), "text outside of all elements"));
                    }
                    return Ok(Some(Item::Text(text.xml10_content())));
                }
                Event::CData(text) => return Ok(Some(Item::Text(text.xml10_content()))),
                Event::GeneralRef(name) => {
                    let span = self.span(start);
                    if let Ok(Some(letter)) = name.resolve_char_ref() {
                        return Ok(Some(Item::Text(Cow::Owned(letter.to_string()))));
                    }
                    return match resolve_predefined_entity(&name) {
                        Some(text) => Ok(Some(Item::Text(Cow::Borrowed(text)))),
                        None => refuse(entity(span, &name)),
                    };
                }
                Event::DocType(kind) => {
                    // A name alone says nothing; declarations could define entities without end.
                    if kind.contains('[') || kind.contains("SYSTEM") || kind.contains("PUBLIC") {
                        let message = "the document type declares things of its own, which are never read";
                        return refuse(
                            Diagnostic::error(ENTITY, self.span(start), message)
                                .help("remove `<!DOCTYPE …>` and write what its entities stand for"),
                        );
                    }
                }
                Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
                Event::Eof if self.over => return Ok(None),
                Event::Eof => {
                    let at = self.text.len() as u32;
                    let message =
                        if self.depth > 0 { "the text ends inside an element" } else { "there is no element" };
                    return refuse(
                        Diagnostic::error(SYNTAX, Span { start: at, end: at }, message)
                            .help("was the file written and copied in full?"),
                    );
                }
            }
        }
    }
}

fn refuse<T>(diagnostic: Diagnostic) -> Result<T, Box<Diagnostic>> {
    Err(Box::new(diagnostic))
}

fn entity(span: Span, name: &str) -> Diagnostic {
    let shown: String = name.chars().take(40).collect();
    Diagnostic::error(ENTITY, span, format!("the entity `&{shown};` is not one of XML's own"))
        .help("XML knows `&amp;`, `&lt;`, `&gt;`, `&apos;` and `&quot;`; write `&amp;` for `&`")
}

fn element(tag: &BytesStart<'_>, span: Span) -> Result<Element, Box<Diagnostic>> {
    let name = tag.local_name().into_inner().to_owned();
    let mut attributes: Vec<(String, String)> = Vec::new();
    let mut found = tag.attributes();
    found.with_checks(false);
    for attribute in found {
        let attribute = attribute.or_else(|error| {
            refuse(Diagnostic::error(SYNTAX, span, format!("an attribute of `{name}` is broken: {error}")))
        })?;
        let key = attribute.key.into_inner();
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).or_else(|error| {
            refuse(Diagnostic::error(
                ENTITY,
                span,
                format!("the attribute `{key}` of `{name}` cannot be read: {error}"),
            ))
        })?;
        if attributes.len() == MOST_ATTRIBUTES {
            return refuse(Diagnostic::error(
                TOO_DEEP,
                span,
                format!("`{name}` has more than {MOST_ATTRIBUTES} attributes"),
            ));
        }
        if attributes.iter().any(|(known, _)| known == key) {
            return refuse(Diagnostic::error(SYNTAX, span, format!("`{name}` has the attribute `{key}` twice")));
        }
        attributes.push((key.to_owned(), value.into_owned()));
    }
    Ok(Element { name, attributes, span })
}
