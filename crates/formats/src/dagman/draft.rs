//! The jobs of nodes before they are connected: texts may hold symbols, files are known by their paths on the submit side.

use super::macros::{CLOSE, OPEN, RETRY};
use super::report::Place;
use crate::pegasus::convert::command::{escape, word};
use std::sync::Arc;
use tulpar_core::workflow::{Axis, Settings, Template};

#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) node: u32,
    /// What the task is to be called.
    pub(super) name: String,
    pub(super) axes: Vec<Axis>,
    pub(super) program: Program,
    pub(super) arguments: Vec<String>,
    pub(super) stdin: Option<InFile>,
    /// Paths on the submit side.
    pub(super) stdout: Option<String>,
    pub(super) stderr: Option<String>,
    pub(super) inputs: Vec<InFile>,
    pub(super) outputs: Vec<OutFile>,
    /// False when HTCondor would bring back whatever is new.
    pub(super) says_outputs: bool,
    pub(super) settings: Arc<Settings>,
    /// The exit code that means success, where it is not 0.
    pub(super) success: Option<u8>,
    pub(super) place: Place,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Program {
    /// No job: only scripts, or nothing at all.
    None,
    /// Sent along, from this path on the submit side.
    Sent(String),
    /// Run where it is.
    There(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct InFile {
    /// On the submit side.
    pub(super) path: String,
    /// What the job calls it.
    pub(super) name: String,
    /// Of a directory, what is in it.
    pub(super) contents: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct OutFile {
    /// Where the job leaves it: a file or a folder.
    pub(super) made: String,
    /// On the submit side.
    pub(super) path: String,
    /// Where HTCondor would put it there; `path` is another where several jobs write it.
    pub(super) arrives: String,
    /// Of a folder, what is in it.
    pub(super) contents: bool,
}

impl Draft {
    /// Every text in which a symbol makes a difference only for the one job.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let outputs = self.outputs.iter().flat_map(|output| [output.made.as_str(), output.path.as_str()]);
        let streams = [&self.stdout, &self.stderr].into_iter().flatten().map(String::as_str);
        let variables = self.settings.environment.variables.values().map(|value| &*value.0);
        self.arguments.iter().map(String::as_str).chain(outputs).chain(streams).chain(variables)
    }
}

pub(super) fn has_symbol(text: &str, symbol: &str) -> bool {
    text.contains(&format!("{OPEN}{symbol}{CLOSE}"))
}

/// The number of the retry, which only the attempt knows.
pub(super) fn is_late(text: &str) -> bool {
    text.contains(RETRY)
}

enum Piece<'t> {
    Text(&'t str),
    Symbol(&'t str),
    Retry,
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find([OPEN, RETRY]) {
        if at > 0 {
            found.push(Piece::Text(&rest[..at]));
        }
        let letter = rest[at..].chars().next().unwrap_or(OPEN);
        rest = &rest[at + letter.len_utf8()..];
        if letter != OPEN {
            found.push(Piece::Retry);
        } else if let Some((name, after)) = rest.split_once(CLOSE) {
            found.push(Piece::Symbol(name));
            rest = after;
        }
    }
    if !rest.is_empty() {
        found.push(Piece::Text(rest));
    }
    found
}

/// As the user wrote it.
pub(super) fn written(text: &str) -> String {
    let mut out = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Symbol(name) => out.extend(["$(", name, ")"]),
            Piece::Retry => out.push_str("$(RETRY)"),
        }
    }
    out
}

/// One word of a shell line, with symbols as `{name}`. `None` for doubled braces.
pub(super) fn shell_word(text: &str) -> Option<String> {
    let mut out = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(&escape(&word(text))?.0),
            Piece::Symbol(name) => {
                out.push('{');
                out.push_str(name);
                out.push('}');
            }
            Piece::Retry => out.push_str("$((TULPAR_ATTEMPT - 1))"),
        }
    }
    Some(if out.is_empty() { "''".to_owned() } else { out })
}

/// A path or value with symbols as `{name}`; the number of the retry is 0.
pub(super) fn template(text: &str) -> Option<Template> {
    let mut out = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(&escape(text)?.0),
            Piece::Symbol(name) => {
                out.push('{');
                out.push_str(name);
                out.push('}');
            }
            Piece::Retry => out.push('0'),
        }
    }
    Some(Template(out.into()))
}
