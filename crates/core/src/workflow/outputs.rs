//! `out:` — what a task makes.

use super::reader::{Reader, place};
use super::template::is_identifier;
use super::{Output, OutputKind, Template, keys};
use crate::diagnostic::{BAD_NAME, Diagnostic, MISSING_KEY, NAME_CLASH};
use crate::units::{BYTE_UNITS, BYTES_ACCEPTED, parse_bytes};
use crate::yaml::{Kind, Node};

pub(super) fn read(reader: &mut Reader, key: Node<'_>, node: Node<'_>) -> Vec<Output> {
    let mut outputs = Vec::new();
    match node.kind() {
        Kind::Mapping => {
            for (name, value) in node.entries() {
                let Some(text) = reader.name(name, "an output") else { continue };
                if let Some(output) = output(reader, text, name, value) {
                    outputs.push(output);
                }
            }
        }
        Kind::Scalar { .. } if node.is_null() => {
            reader.report(
                Diagnostic::error(MISSING_KEY, key.span(), "`out` is empty")
                    .help("write what the task makes, as in `out: {model: model.bin}`, or remove it"),
            );
        }
        _ => {
            for (node, path) in reader.words(node, "`out`") {
                let Some(output) = unnamed(reader, node, path) else { continue };
                match outputs.iter().find(|other: &&Output| other.name == output.name) {
                    None => outputs.push(output),
                    Some(earlier) => reader.report(
                        Diagnostic::error(NAME_CLASH, output.span, format!("two outputs are called `{}`", output.name))
                            .related(earlier.span, "the other one is here")
                            .help("name them yourself: `out: {first: a/x.csv, second: b/x.csv}`"),
                    ),
                }
            }
        }
    }
    outputs
}

fn output(reader: &mut Reader, name: &str, key: Node<'_>, node: Node<'_>) -> Option<Output> {
    let mut path = Some(node);
    let (mut optional, mut temporary, mut register, mut size) = (false, false, false, None);
    // `out: {model}` is a map with nothing in it: the path is missing, not a map of options.
    if matches!(node.kind(), Kind::Mapping) {
        path = None;
        for (inner, value) in node.entries() {
            match inner.text() {
                Some("path") => path = Some(value),
                Some("optional") => optional = reader.boolean(value, "`optional`").unwrap_or(false),
                Some("register") => register = reader.boolean(value, "`register`").unwrap_or(false),
                Some("size") => {
                    let read = reader.quantity(value, "size", parse_bytes, BYTES_ACCEPTED, BYTE_UNITS);
                    size = read.map(|bytes| bytes.0);
                }
                Some("temp") => temporary = reader.boolean(value, "`temp`").unwrap_or(false),
                _ => reader.unknown_key(inner, "an output", &[keys::OUTPUT]),
            }
        }
    }
    let Some(path) = path.filter(|path| !path.is_null()) else {
        reader.report(
            Diagnostic::error(MISSING_KEY, key.span(), format!("the output `{name}` has no path"))
                .help(format!("write `{name}: {name}.csv`, the name of the file that the task leaves")),
        );
        return None;
    };
    let text = reader.text(path, &format!("the path of `{name}`"))?;
    let kind = kind(text);
    let span = place(key, path);
    Some(Output {
        name: name.to_owned(),
        path: Template(plain(text).into()),
        kind,
        optional,
        temporary,
        register,
        size,
        span,
    })
}

/// An output that is only a path takes its name from the file.
fn unnamed(reader: &mut Reader, node: Node<'_>, path: &str) -> Option<Output> {
    let file = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file);
    if !is_identifier(stem) {
        let quoted = if path.contains(['{', '*', '[', ',', '#']) { format!("\"{path}\"") } else { path.to_owned() };
        reader.report(
            Diagnostic::error(BAD_NAME, node.span(), format!("the output `{path}` needs a name"))
                .label(format!("`{stem}` cannot be one"))
                .help(format!("write `out: {{result: {quoted}}}`, and use `{{result}}` in the command")),
        );
        return None;
    }
    let name = stem.to_owned();
    Some(Output {
        name,
        path: Template(plain(path).into()),
        kind: kind(path),
        optional: false,
        temporary: false,
        register: false,
        size: None,
        span: node.span(),
    })
}

/// One file has one name: `./x` is `x`.
fn plain(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

fn kind(path: &str) -> OutputKind {
    if path.ends_with('/') {
        OutputKind::Directory
    } else if path.contains(['*', '?', '[']) {
        OutputKind::Pattern
    } else {
        OutputKind::File
    }
}
