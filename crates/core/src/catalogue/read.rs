//! A catalogue from YAML, with every problem at once. What cannot be read is reported and left out.
//!
//! It knows the shapes, not the world: whether a path exists or a server answers is for others to try.

mod copies;
mod sites;

use super::{Catalogue, Container, LOCAL, Link};
use crate::diagnostic::{Diagnostic, MISSING_KEY, UNKNOWN_NAME};
use crate::units::{
    BANDWIDTH_ACCEPTED, BANDWIDTH_UNITS, BYTE_UNITS, BYTES_ACCEPTED, DURATION_ACCEPTED, TIME_UNITS, parse_bandwidth,
    parse_bytes, parse_duration,
};
use crate::workflow::reader::{Reader, list, place};
use crate::workflow::{Span, keys};
use crate::yaml::{Document, Kind, Node};
use std::collections::BTreeSet;
use std::time::Duration;

/// Reads a catalogue, or a site file, which is one that has only sites.
pub fn read(text: &str) -> (Catalogue, Vec<Diagnostic>) {
    read_after(text, &Catalogue::default())
}

/// Reads a catalogue that may name the sites and containers of earlier ones.
pub fn read_after(text: &str, earlier: &Catalogue) -> (Catalogue, Vec<Diagnostic>) {
    let mut reader = Reader::new();
    let (document, diagnostics) = Document::parse(text);
    diagnostics.into_iter().for_each(|diagnostic| reader.report(diagnostic));
    let mut parts = Parts { reader, ..Parts::default() };
    if let Some(document) = &document {
        parts.top(document.root());
        parts.check_mentions(earlier);
    }
    (parts.catalogue, parts.reader.findings.finish())
}

/// What is read so far.
#[derive(Default)]
struct Parts {
    reader: Reader,
    catalogue: Catalogue,
    /// Names that the file gives, also to what could not be read: those who mention it are not wrong.
    sites: BTreeSet<String>,
    containers: BTreeSet<String>,
    /// Names that must mean something, once all of the file is known.
    mentions: Vec<Mention>,
}

struct Mention {
    what: Mentioned,
    name: String,
    span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mentioned {
    Site,
    /// A site that holds copies, which may be as far away as a web server that nobody describes.
    Holder,
    Container,
}

impl Parts {
    fn top(&mut self, root: Node<'_>) {
        let mut found = false;
        for (key, value) in self.reader.map(root, "a catalogue").into_iter().flatten() {
            let name = key.text().unwrap_or("");
            found |= keys::CATALOGUE.contains(&name);
            if value.is_null() && keys::CATALOGUE.contains(&name) {
                continue;
            }
            match name {
                "sites" => self.each(value, "sites", Self::site),
                "links" => self.links(value),
                "replicas" => self.replicas(value),
                "transformations" => self.each(value, "transformations", Self::transformation),
                "containers" => self.each(value, "containers", Self::container),
                _ => self.reader.unknown_key(key, "a catalogue", &[keys::CATALOGUE]),
            }
        }
        if !found && matches!(root.kind(), Kind::Mapping) {
            self.reader.report(
                Diagnostic::error(MISSING_KEY, root.span(), "the file declares nothing")
                    .help(format!("a catalogue has {}", list(keys::CATALOGUE.iter().copied())))
                    .help("write for example `sites: {small: {nodes: 2, cpus: 8, memory: 32 GB}}`"),
            );
        }
    }

    /// The entries of a map whose keys are names.
    fn each(&mut self, node: Node<'_>, what: &str, mut read: impl FnMut(&mut Self, &str, Node<'_>, Node<'_>)) {
        let one = format!("one of `{what}`");
        for (key, value) in self.reader.map(node, &format!("`{what}`")).into_iter().flatten() {
            if let Some(name) = self.reader.name(key, &one) {
                read(self, name, key, value);
            }
        }
    }

    fn mention(&mut self, what: Mentioned, name: &str, span: Span) {
        self.mentions.push(Mention { what, name: name.to_owned(), span });
    }

    fn site_name(&mut self, node: Node<'_>, what: &str) -> Option<String> {
        let name = self.reader.text(node, what)?;
        self.mention(Mentioned::Site, name, node.span());
        Some(name.to_owned())
    }

    fn bytes(&mut self, key: &str, node: Node<'_>) -> Option<u64> {
        self.reader.quantity(node, key, parse_bytes, BYTES_ACCEPTED, BYTE_UNITS).map(|bytes| bytes.0)
    }

    fn links(&mut self, node: Node<'_>) {
        if !matches!(node.kind(), Kind::Sequence) {
            self.reader.wrong_shape(node, "`links` must be a list");
            return;
        }
        for item in node.items() {
            self.link(item);
        }
    }

    fn link(&mut self, node: Node<'_>) {
        let (mut from, mut to, mut bandwidth, mut latency) = (None, None, None, Duration::ZERO);
        let mut complete = true;
        for (key, value) in self.reader.map(node, "a link").into_iter().flatten() {
            match key.text().unwrap_or("") {
                "between" => {
                    let ends: Vec<_> = self.reader.words(value, "`between`");
                    if let [one, other] = ends[..] {
                        self.mention(Mentioned::Site, one.1, one.0.span());
                        self.mention(Mentioned::Site, other.1, other.0.span());
                        (from, to) = (Some(one.1.to_owned()), Some(other.1.to_owned()));
                    } else {
                        complete = false;
                        let message = "`between` must be a list of two sites, as in `[local, cluster]`";
                        self.reader.wrong_shape(value, message);
                    }
                }
                "from" => from = self.site_name(value, "`from`"),
                "to" => to = self.site_name(value, "`to`"),
                "bandwidth" => {
                    let units = BANDWIDTH_UNITS;
                    bandwidth = self.reader.quantity(value, "bandwidth", parse_bandwidth, BANDWIDTH_ACCEPTED, units);
                    complete &= bandwidth.is_some();
                }
                "latency" => {
                    let read = self.reader.quantity(value, "latency", parse_duration, DURATION_ACCEPTED, TIME_UNITS);
                    latency = read.unwrap_or(latency);
                }
                _ => self.reader.unknown_key(key, "a link", &[keys::LINK]),
            }
        }
        match (from, to, bandwidth) {
            (Some(from), Some(to), Some(bandwidth)) => {
                self.catalogue.links.push(Link { from, to, bandwidth, latency });
            }
            _ if complete && matches!(node.kind(), Kind::Mapping) => self.reader.report(
                Diagnostic::error(MISSING_KEY, node.span(), "a link needs two sites and a bandwidth")
                    .help("write for example `{between: [local, cluster], bandwidth: 10 Gbit/s, latency: 5 ms}`"),
            ),
            _ => {}
        }
    }

    fn container(&mut self, name: &str, key: Node<'_>, node: Node<'_>) {
        self.containers.insert(name.to_owned());
        let mut container = Container { name: name.to_owned(), image: String::new(), site: None, size: None };
        if !matches!(node.kind(), Kind::Mapping) {
            container.image = self.reader.text(node, "an image").unwrap_or("").to_owned();
        }
        for (key, value) in node.entries() {
            match key.text().unwrap_or("") {
                "image" => container.image = self.reader.text(value, "`image`").unwrap_or("").to_owned(),
                "site" => container.site = self.site_name(value, "`site`"),
                "size" => container.size = self.bytes("size", value),
                _ => self.reader.unknown_key(key, "a container", &[keys::CONTAINER]),
            }
        }
        if container.image.is_empty() {
            self.reader.report(
                Diagnostic::error(MISSING_KEY, place(key, node), format!("the container `{name}` has no image"))
                    .help("write for example `{image: tools.sif}` or `{image: docker://python:3.12}`"),
            );
            return;
        }
        self.catalogue.containers.push(container);
    }

    fn check_mentions(&mut self, earlier: &Catalogue) {
        let mut sites = std::mem::take(&mut self.sites);
        sites.extend(earlier.sites.iter().map(|site| site.name.clone()).chain([LOCAL.to_owned()]));
        let mut containers = std::mem::take(&mut self.containers);
        containers.extend(earlier.containers.iter().map(|container| container.name.clone()));
        for Mention { what, name, span } in std::mem::take(&mut self.mentions) {
            let diagnostic = match what {
                Mentioned::Site if !sites.contains(&name) => {
                    Diagnostic::error(UNKNOWN_NAME, span, format!("no site is called `{name}`"))
                        .suggest(&name, sites.iter().map(String::as_str))
                        .help("describe it under `sites:`, in this file or in one that is read before it")
                }
                Mentioned::Holder if !sites.contains(&name) => {
                    Diagnostic::warning(UNKNOWN_NAME, span, format!("no site is called `{name}`"))
                        .suggest(&name, sites.iter().map(String::as_str))
                        .help("what it holds is used only when no site that is described has it")
                }
                // What looks like an image is one.
                Mentioned::Container if !containers.contains(&name) && !name.contains(['/', '.', ':']) => {
                    Diagnostic::error(UNKNOWN_NAME, span, format!("no container is called `{name}`"))
                        .suggest(&name, containers.iter().map(String::as_str))
                        .help("describe it under `containers:`, or write the image itself: `tools.sif`, `docker://…`")
                }
                _ => continue,
            };
            self.reader.report(diagnostic);
        }
    }
}
