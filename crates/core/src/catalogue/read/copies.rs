//! `replicas:` and `transformations:` of a catalogue: where copies of files and of programs are.

use super::{Mentioned, Parts};
use crate::catalogue::{Copy, Installation, LOCAL, Replica, Replicated, Transformation, is_url, pattern};
use crate::diagnostic::{BAD_VALUE, Diagnostic, MISSING_KEY};
use crate::ids::Digest;
use crate::workflow::reader::place;
use crate::workflow::{keys, paths};
use crate::yaml::{Kind, Node};

impl Parts {
    pub(super) fn replicas(&mut self, node: Node<'_>) {
        for (key, value) in self.reader.map(node, "`replicas`").into_iter().flatten() {
            if let Some(name) = key.text() {
                self.replica(name, key, value);
            }
        }
    }

    fn replica(&mut self, name: &str, key: Node<'_>, node: Node<'_>) {
        let (mut copies, mut size, mut sums, mut regex) = (Vec::new(), None, None, false);
        if !matches!(node.kind(), Kind::Mapping) {
            copies.extend(self.copy(LOCAL, node));
        }
        for (key, value) in node.entries() {
            match key.text().unwrap_or("") {
                "at" => copies = self.copies(value),
                "sha256" => sums = Some(value),
                "size" => size = self.bytes("size", value),
                "regex" => regex = self.reader.boolean(value, "`regex`").unwrap_or(false),
                _ => self.reader.unknown_key(key, "a replica", &[keys::REPLICA]),
            }
        }
        if copies.is_empty() {
            self.reader.report(
                Diagnostic::error(MISSING_KEY, place(key, node), format!("`{name}` has no copy anywhere"))
                    .help(format!("write where it is: `{name}: {{at: {{local: data/{name}}}}}`")),
            );
            return;
        }
        let Some(what) = self.what(name, regex, key) else { return };
        self.folders(&what, &mut copies);
        let sha256 = match (sums.map(|node| (node, node.kind())), &what) {
            (None, _) => None,
            (Some((node, Kind::Mapping)), Replicated::Directory(_) | Replicated::Pattern(_)) => {
                self.sums(&what, &copies, node);
                None
            }
            (Some((node, _)), Replicated::Name(_)) => self.digest(node),
            (Some((node, _)), _) => {
                let message = "the checksums of several files are a map of names: `sha256: {a.jpg: …}`";
                self.reader.wrong_shape(node, message);
                None
            }
        };
        self.catalogue.replicas.push(Replica { what, copies, sha256, size });
    }

    /// A slash at the end means a folder, `*` or `?` a pattern, as everywhere.
    fn what(&mut self, name: &str, regex: bool, key: Node<'_>) -> Option<Replicated> {
        if regex {
            if let Err(error) = pattern::compile(name) {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or("").trim().trim_start_matches("error: ").to_owned();
                self.reader.report(
                    Diagnostic::error(BAD_VALUE, key.span(), format!("`{name}` is not a regular expression"))
                        .label(reason)
                        .help("without `regex: true`, `*` and `?` are patterns as in file names"),
                );
                return None;
            }
            return Some(Replicated::Pattern(name.to_owned()));
        }
        if let Some(problem) = paths::problem(name) {
            self.reader.report(problem.diagnostic(key.span(), "the name of a file", name));
            return None;
        }
        Some(if name.ends_with('/') {
            Replicated::Directory(name.to_owned())
        } else if pattern::is_glob(name) {
            Replicated::Pattern(pattern::from_glob(name))
        } else {
            Replicated::Name(name.to_owned())
        })
    }

    /// The place of a folder is a folder; a folder as the place of a pattern means the file of that name in it.
    fn folders(&self, what: &Replicated, copies: &mut [Copy]) {
        for copy in copies {
            match what {
                Replicated::Directory(_) if !copy.place.ends_with('/') => copy.place.push('/'),
                Replicated::Pattern(_) if copy.place.ends_with('/') => copy.place.push_str("[0]"),
                _ => {}
            }
        }
    }

    fn copies(&mut self, node: Node<'_>) -> Vec<Copy> {
        let mut copies = Vec::new();
        for (site, places) in self.reader.map(node, "`at`").into_iter().flatten() {
            let Some(name) = site.text() else { continue };
            self.holder(name, site);
            match places.kind() {
                Kind::Sequence => {
                    for item in places.items() {
                        copies.extend(self.copy(name, item));
                    }
                }
                _ => copies.extend(self.copy(name, places)),
            }
        }
        copies
    }

    fn copy(&mut self, site: &str, node: Node<'_>) -> Option<Copy> {
        let place = self.reader.text(node, "the place of a copy")?;
        if place.is_empty() || place.contains(['\n', '\0']) {
            self.reader.report(
                Diagnostic::error(BAD_VALUE, node.span(), "this is not the place of a file")
                    .help("write a path or a URL"),
            );
            return None;
        }
        Some(Copy { site: site.to_owned(), place: place.to_owned() })
    }

    fn digest(&mut self, node: Node<'_>) -> Option<Digest> {
        let text = self.reader.text(node, "`sha256`")?;
        let digest = Digest::parse(&text.to_ascii_lowercase());
        if digest.is_none() {
            self.reader.report(
                Diagnostic::error(BAD_VALUE, node.span(), "this is not a SHA-256 checksum")
                    .label(format!("{} characters", text.chars().count()))
                    .help("it is 64 hexadecimal digits, as `sha256sum FILE` prints them"),
            );
        }
        digest
    }

    /// Checksums of files of a folder or pattern: each becomes a replica of its own.
    fn sums(&mut self, what: &Replicated, copies: &[Copy], node: Node<'_>) {
        let regex = match what {
            Replicated::Pattern(text) => pattern::compile(text).ok(),
            _ => None,
        };
        for (key, value) in node.entries() {
            let (Some(inner), Some(sha256)) = (key.text(), self.digest(value)) else { continue };
            let (name, copies) = match what {
                Replicated::Directory(directory) => {
                    let at = |copy: &Copy| Copy { site: copy.site.clone(), place: format!("{}{inner}", copy.place) };
                    (format!("{directory}{inner}"), copies.iter().map(at).collect())
                }
                Replicated::Pattern(_) => {
                    let filled = regex.as_ref().and_then(|regex| pattern::filled(regex, inner, copies));
                    let Some(copies) = filled else {
                        let message = format!("`{inner}` does not match the pattern that it stands under");
                        self.reader.report(Diagnostic::error(BAD_VALUE, key.span(), message));
                        continue;
                    };
                    (inner.to_owned(), copies)
                }
                Replicated::Name(_) => continue,
            };
            if let Some(problem) = paths::problem(&name) {
                self.reader.report(problem.diagnostic(key.span(), "the name of a file", &name));
                continue;
            }
            let what = Replicated::Name(name);
            self.catalogue.replicas.push(Replica { what, copies, sha256: Some(sha256), size: None });
        }
    }

    pub(super) fn transformation(&mut self, name: &str, key: Node<'_>, node: Node<'_>) {
        let (mut places, mut container) = (None, None);
        for (key, value) in self.reader.map(node, &format!("the transformation `{name}`")).into_iter().flatten() {
            match key.text().unwrap_or("") {
                "at" => places = Some(self.installations(value)).filter(|_| value.size() > 0),
                "container" => container = self.container_name(value),
                _ => self.reader.unknown_key(key, "a transformation", &[keys::TRANSFORMATION]),
            }
        }
        let Some(mut places) = places else {
            if matches!(node.kind(), Kind::Mapping) {
                self.reader.report(
                    Diagnostic::error(MISSING_KEY, key.span(), format!("the program `{name}` is nowhere"))
                        .help(format!("write where it is: `{name}: {{at: {{local: /usr/bin/{name}}}}}`")),
                );
            }
            return;
        };
        for place in &mut places {
            place.container = place.container.take().or_else(|| container.clone());
        }
        if places.is_empty() {
            return;
        }
        self.catalogue.transformations.push(Transformation { name: name.to_owned(), places });
    }

    fn installations(&mut self, node: Node<'_>) -> Vec<Installation> {
        let mut found = Vec::new();
        for (site, value) in self.reader.map(node, "`at`").into_iter().flatten() {
            let Some(name) = site.text() else { continue };
            self.holder(name, site);
            let (mut path, mut staged, mut container) = (None, None, None);
            match value.kind() {
                Kind::Mapping => {
                    for (key, value) in value.entries() {
                        match key.text().unwrap_or("") {
                            "path" => path = self.copy(name, value),
                            "staged" => staged = self.reader.boolean(value, "`staged`"),
                            "container" => container = self.container_name(value),
                            _ => self.reader.unknown_key(key, "a program of a site", &[keys::INSTALLATION]),
                        }
                    }
                    if path.is_none() {
                        self.reader.report(
                            Diagnostic::error(MISSING_KEY, site.span(), "where the program is on this site is missing")
                                .help("write `path: bin/galaxy`"),
                        );
                    }
                }
                _ => path = self.copy(name, value),
            }
            let Some(Copy { site, place }) = path else { continue };
            // Nothing is installed behind a URL: it has to be fetched.
            let staged = staged.unwrap_or(false) || is_url(&place);
            found.push(Installation { site, place, staged, container });
        }
        found
    }

    fn container_name(&mut self, node: Node<'_>) -> Option<String> {
        let name = self.reader.text(node, "`container`")?;
        self.mention(Mentioned::Container, name, node.span());
        Some(name.to_owned())
    }
}
