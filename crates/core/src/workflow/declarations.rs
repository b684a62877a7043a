//! `params:` and `data:`: what is known before any task.

use super::reader::{Reader, describe, place};
use super::{Data, DataSource, Metadata, Span, Value, Words, keys};
use crate::diagnostic::{BAD_VALUE, Diagnostic, ESCAPE, MISSING_KEY, PARAMETER, SHAPE};
use crate::ids::Digest;
use crate::yaml::{Kind, Node};
use std::collections::BTreeMap;

/// Binds the parameters: the values of the file, or what the command line says in their place.
pub(super) fn params(reader: &mut Reader, node: Option<Node<'_>>, overrides: &BTreeMap<String, String>) {
    let mut declared: BTreeMap<String, (Option<Value>, Span)> = BTreeMap::new();
    if let Some(entries) = node.and_then(|node| reader.map(node, "`params`")) {
        for (key, value) in entries {
            let Some(name) = reader.name(key, "a parameter") else { continue };
            let Kind::Scalar { text, quoted } = value.kind() else {
                reader.report(
                    Diagnostic::error(SHAPE, value.span(), format!("the parameter `{name}` must be one value"))
                        .label(format!("this is {}", describe(value)))
                        .help("write a list under `for:` of the task that runs over it"),
                );
                continue;
            };
            let default = if value.is_null() {
                None
            } else if quoted {
                Some(Value::Text(text.to_owned()))
            } else {
                if matches!(text.to_ascii_lowercase().as_str(), "yes" | "no" | "on" | "off") {
                    reader.report(
                        Diagnostic::warning(
                            BAD_VALUE,
                            value.span(),
                            format!("`{text}` is a text here, not true or false"),
                        )
                        .help(format!("write `true` or `false`, or \"{text}\" in quotes if you mean the word")),
                    );
                }
                Some(Value::from_text(text))
            };
            declared.insert(name.to_owned(), (default, place(key, value)));
        }
    }
    for (name, text) in overrides {
        match declared.get_mut(name) {
            Some((value, span)) => match overridden(value.as_ref(), text) {
                Ok(new) => *value = Some(new),
                Err(kind) => {
                    let default = value.as_ref().map(Value::to_string).unwrap_or_default();
                    reader.report(
                        Diagnostic::error(
                            PARAMETER,
                            *span,
                            format!("`--param {name}={text}`: `{name}` must be {kind}"),
                        )
                        .label("declared here")
                        .help(format!("write for example `--param {name}={default}`")),
                    );
                }
            },
            None => {
                let diagnostic = Diagnostic::error(
                    PARAMETER,
                    None,
                    format!("`--param {name}={text}`: the workflow has no parameter `{name}`"),
                )
                .suggest(name, declared.keys().map(String::as_str));
                let diagnostic = if diagnostic.help.is_empty() {
                    let known: Vec<&str> = declared.keys().map(String::as_str).collect();
                    diagnostic.help(if known.is_empty() {
                        "it has no parameters; declare them under `params:`".to_owned()
                    } else {
                        format!("it has {}", super::reader::list(known.into_iter()))
                    })
                } else {
                    diagnostic
                };
                reader.report(diagnostic);
            }
        }
    }
    for (name, (value, span)) in declared {
        let value = value.unwrap_or_else(|| {
            reader.report(
                Diagnostic::error(PARAMETER, span, format!("the parameter `{name}` has no value"))
                    .help(format!("give it with `--param {name}=…`, or write a default here")),
            );
            Value::Text(String::new())
        });
        reader.params.insert(name, value);
    }
}

/// The text of an override as a value of the default's type; the error names the type.
fn overridden(default: Option<&Value>, text: &str) -> Result<Value, &'static str> {
    match (default, Value::from_text(text)) {
        (None, value) => Ok(value),
        (Some(Value::Text(_)), _) => Ok(Value::Text(text.to_owned())),
        (Some(Value::Bool(_)), value @ Value::Bool(_)) => Ok(value),
        (Some(Value::Bool(_)), _) => Err("`true` or `false`"),
        (Some(Value::Integer(_)), value @ Value::Integer(_)) => Ok(value),
        (Some(Value::Integer(_)), _) => Err("a whole number"),
        (Some(Value::Number(_) | Value::Written { .. }), value) if value.number().is_some() => Ok(value),
        (Some(Value::Number(_) | Value::Written { .. }), _) => Err("a number"),
    }
}

/// `metadata:` of a workflow: about itself, its tasks and its files.
pub(super) fn metadata(reader: &mut Reader, node: Node<'_>) -> Metadata {
    let mut found = Metadata::default();
    for (key, value) in reader.map(node, "`metadata`").into_iter().flatten() {
        match key.text() {
            Some("workflow") => found.workflow = words(reader, value),
            Some("tasks") => found.tasks = described(reader, value),
            Some("files") => found.files = described(reader, value),
            _ => reader.unknown_key(key, "`metadata`", &[&["workflow", "tasks", "files"]]),
        }
    }
    found
}

fn described(reader: &mut Reader, node: Node<'_>) -> BTreeMap<String, Words> {
    let mut found = BTreeMap::new();
    for (key, value) in reader.map(node, "an entry of `metadata`").into_iter().flatten() {
        if let Some(name) = reader.text(key, "a name") {
            found.insert(name.to_owned(), words(reader, value));
        }
    }
    found
}

fn words(reader: &mut Reader, node: Node<'_>) -> Words {
    let mut found = Words::new();
    for (key, value) in reader.map(node, "an entry of `metadata`").into_iter().flatten() {
        if let (Some(name), Some(text)) = (reader.text(key, "a name"), reader.text(value, "metadata")) {
            found.insert(name.to_owned(), text.to_owned());
        }
    }
    found
}

/// The entries under `data:`.
pub(super) fn data(reader: &mut Reader, node: Option<Node<'_>>) -> Vec<Data> {
    let mut data = Vec::new();
    let Some(entries) = node.and_then(|node| reader.map(node, "`data`")) else { return data };
    for (key, value) in entries {
        let Some(name) = reader.name(key, "a data entry") else { continue };
        // A source that could not be read keeps its name known, so that its users are not reported too.
        let source = source(reader, key, value).unwrap_or_else(|| DataSource::File(String::new()));
        let sha256 = sums(reader, value, &source);
        data.push(Data { name: name.to_owned(), source, sha256, span: key.span() });
    }
    data
}

fn source(reader: &mut Reader, key: Node<'_>, value: Node<'_>) -> Option<DataSource> {
    if !matches!(value.kind(), Kind::Mapping) {
        let text = path(reader, value)?;
        return Some(by_form(text));
    }
    let mut found = None;
    let mut count = 0;
    for (inner, value) in value.entries() {
        if inner.text() == Some("files") {
            count += 1;
            found = Some(DataSource::Files(named_files(reader, value)));
            continue;
        }
        if inner.text() == Some("replica") {
            count += 1;
            found = Some(DataSource::Replicas(replicas(reader, value)));
            continue;
        }
        if inner.text() == Some("sha256") {
            continue;
        }
        let made: fn(String) -> DataSource = match inner.text() {
            Some("path") => by_form,
            Some("manifest") => DataSource::Manifest,
            Some("url") => DataSource::Url,
            _ => {
                reader.unknown_key(inner, "a data entry", &[keys::DATA]);
                continue;
            }
        };
        count += 1;
        found = path(reader, value).map(made);
    }
    if count != 1 {
        let message = format!(
            "`{}` must have exactly one of `path`, `manifest`, `url`, `files` and `replica`",
            key.text().unwrap_or("")
        );
        reader.report(Diagnostic::error(MISSING_KEY, key.span(), message));
        return None;
    }
    found
}

/// `sha256: {name: sum}` beside `files`.
fn sums(reader: &mut Reader, entry: Node<'_>, source: &DataSource) -> BTreeMap<String, Digest> {
    let mut sums = BTreeMap::new();
    let is_sums = |(inner, _): &(Node<'_>, Node<'_>)| inner.text() == Some("sha256");
    let found = match entry.kind() {
        Kind::Mapping => entry.entries().find(is_sums),
        _ => None,
    };
    let Some((key, value)) = found else { return sums };
    let DataSource::Files(files) = source else {
        let message = "`sha256` gives the sums of files that have names: it stands beside `files`";
        reader.report(Diagnostic::error(BAD_VALUE, key.span(), message).help("write `files: {name: path}` too"));
        return sums;
    };
    for (name, sum) in reader.map(value, "`sha256`").into_iter().flatten() {
        let (Some(path), Some(text)) = (name.text(), reader.text(sum, "`sha256`")) else { continue };
        match Digest::parse(&text.to_ascii_lowercase()) {
            Some(_) if !files.contains_key(path) => {
                let message = format!("`{path}` is not among the `files`");
                reader.report(Diagnostic::error(BAD_VALUE, name.span(), message));
            }
            Some(digest) => drop(sums.insert(path.to_owned(), digest)),
            None => reader.report(
                Diagnostic::error(BAD_VALUE, sum.span(), "this is not a SHA-256 checksum")
                    .help("it is 64 hexadecimal digits, as `sha256sum FILE` prints them"),
            ),
        }
    }
    sums
}

/// `replica: name`, or a list of names, of files that the catalogue knows.
fn replicas(reader: &mut Reader, node: Node<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (node, text) in reader.words(node, "`replica`") {
        let Some(name) = reader.bind(node, text) else { continue };
        match super::paths::problem(&name) {
            Some(problem) => reader.report(problem.diagnostic(node.span(), "the name of a replica", &name)),
            None if names.iter().any(|known| *known == name) => {}
            None => names.push(name.into_owned()),
        }
    }
    names
}

/// `files: {name in the sandbox: path or URL}`
fn named_files(reader: &mut Reader, node: Node<'_>) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (key, value) in reader.map(node, "`files`").into_iter().flatten() {
        let Some(name) = key.text().and_then(|text| reader.bind(key, text)) else { continue };
        if let Some(problem) = super::paths::problem(&name) {
            reader.report(problem.diagnostic(key.span(), "the name of a file", &name));
            continue;
        }
        if let Some(place) = path(reader, value) {
            files.insert(name.into_owned(), place);
        }
    }
    files
}

fn path(reader: &mut Reader, node: Node<'_>) -> Option<String> {
    let text = reader.bound_text(node, "a data entry")?;
    if text.is_empty() || text.contains(['\n', '\0']) {
        reader.report(
            Diagnostic::error(ESCAPE, node.span(), "this is not the name of a file")
                .help("write a path such as `data/labels.csv`"),
        );
        return None;
    }
    Some(text.into_owned())
}

/// What a path means follows from how it looks.
fn by_form(text: String) -> DataSource {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    if !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
        DataSource::Url(text)
    } else if text.contains(['*', '?', '[']) {
        // Folders that match: everything below each of them.
        DataSource::Glob(if text.ends_with('/') { format!("{text}**") } else { text })
    } else if text.ends_with('/') {
        DataSource::Directory(text)
    } else {
        DataSource::File(text)
    }
}
