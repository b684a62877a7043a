//! A submit description as the statements that stand in it, with their places; nothing is evaluated.
//!
//! It does not know what commands mean.

use super::codes::LINE;
use crate::dagman::lines::{Lines, word};
use tulpar_core::catalogue::submit_commands::canonical;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::Span;

#[derive(Clone, Debug)]
pub(super) struct Assignment {
    /// As it is written.
    pub(super) key: String,
    /// In small letters, and one of several names for the same.
    pub(super) name: String,
    pub(super) value: String,
    pub(super) span: Span,
    /// Inside an `if`: whether it counts is not known here.
    pub(super) conditional: bool,
    /// How many `queue` statements stand before it.
    pub(super) round: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// What follows `queue`, with a list over several lines.
    pub(super) statement: String,
    pub(super) span: Span,
}

#[derive(Default)]
pub(super) struct Statements {
    pub(super) assignments: Vec<Assignment>,
    pub(super) queues: Vec<Queue>,
    /// What was included or taken from a template may say more than stands here.
    pub(super) open: bool,
}

impl Statements {
    pub(super) fn read(text: &str, findings: &mut Vec<Diagnostic>) -> Self {
        let mut found = Self::default();
        let mut lines = Lines::new(text, None);
        let mut depth = 0_usize;
        while let Some(line) = lines.next() {
            let (first, rest) = word(&line.text);
            let span = line.place.span;
            let keyword = first.trim_start_matches('@').to_ascii_lowercase();
            if !rest.starts_with('=') && !line.text.starts_with('+') {
                match keyword.as_str() {
                    "if" => {
                        depth += 1;
                        continue;
                    }
                    "endif" => {
                        depth = depth.saturating_sub(1);
                        continue;
                    }
                    "elif" | "else" | "error" | "warning" => continue,
                    "include" | "use" | "template" => {
                        found.open = true;
                        continue;
                    }
                    "queue" => {
                        let mut statement = rest.trim().to_owned();
                        if statement.contains('(') && !statement.contains(')') {
                            statement.push('\n');
                            statement.push_str(lines.until(")").map_or("", |(inside, _)| inside));
                            statement.push(')');
                        }
                        found.queues.push(Queue { statement, span });
                        continue;
                    }
                    _ => {}
                }
            }
            let Some((key, value)) = line.text.split_once('=') else {
                let message = format!("`{}` is no command of a submit description", line.text);
                findings.push(Diagnostic::error(LINE, span, message).help("a command is `name = value`, or `queue`"));
                continue;
            };
            let (mut key, mut value) = (key.trim(), value.trim().to_owned());
            if let Some(name) = key.strip_suffix('@') {
                key = name.trim();
                value = lines.until(&format!("@{value}")).map_or(String::new(), |(inside, _)| inside.trim().to_owned());
            }
            found.assignments.push(Assignment {
                key: key.to_owned(),
                name: canonical(&key.to_ascii_lowercase()),
                value,
                span,
                conditional: depth > 0,
                round: found.queues.len(),
            });
        }
        found
    }

    /// The last of this name, as far as can be said.
    pub(super) fn get(&self, name: &str) -> Option<&Assignment> {
        self.assignments.iter().rev().find(|assignment| assignment.name == name)
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(|assignment| assignment.value.as_str())
    }
}

/// The names of a list of files.
pub(super) fn files(value: &str) -> impl Iterator<Item = &str> {
    value.trim().trim_matches('"').split([',', '\n']).map(str::trim).filter(|name| !name.is_empty())
}

/// Whether an expression names an attribute, whatever its case and whatever stands before the dot.
pub(super) fn names(expression: &str, attribute: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let (text, wanted) = (expression.to_ascii_lowercase(), attribute.to_ascii_lowercase());
    let mut from = 0;
    while let Some(at) = text[from..].find(&wanted) {
        let (start, end) = (from + at, from + at + wanted.len());
        let before = start.checked_sub(1).is_some_and(|at| letter(text.as_bytes()[at]));
        let after = text.as_bytes().get(end).is_some_and(|byte| letter(*byte));
        if !before && !after {
            return true;
        }
        from = end;
    }
    false
}
