//! What a user got wrong, as data: a stable code, the place in the text, the reason and a way out.
//!
//! It does not know how findings are printed, nor which file the text came from.

use crate::workflow::Span;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
}

/// One finding. All findings of a text are reported at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable, e.g. `W012`; see [`CODES`].
    pub code: &'static str,
    pub severity: Severity,
    /// `None` when the cause is not in the text, such as a parameter on the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// What happened, in one sentence without a full stop.
    pub message: String,
    /// A few words beside the marked place; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// What to do about it, one suggestion each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<String>,
    /// Other places that matter, each with a few words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    pub fn error(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            span: span.into(),
            message: message.into(),
            label: String::new(),
            help: Vec::new(),
            related: Vec::new(),
        }
    }

    pub fn warning(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    #[must_use]
    pub fn related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push((span, text.into()));
        self
    }

    /// Adds "did you mean" when one of the candidates is near, and nothing otherwise.
    #[must_use]
    pub fn suggest<'a>(self, word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        match did_you_mean(word, candidates) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Every code with what it stands for. A code is never given another meaning.
pub const CODES: &[(&str, &str)] = &[
    (SYNTAX, "the text is not valid YAML"),
    (DUPLICATE_KEY, "a key is written twice"),
    (TOO_DEEP, "nested too deep, or aliases that stand for too much"),
    (SHAPE, "a value of the wrong kind: a list where a map belongs, and the like"),
    (UNKNOWN_KEY, "an unknown key"),
    (RESERVED_KEY, "a key that is kept for a later version"),
    (MISSING_KEY, "a key that must be there is missing"),
    (BAD_NAME, "a name with characters that names cannot have"),
    (NAME_CLASH, "one name for two things in the same place"),
    (UNKNOWN_NAME, "a name that nothing has"),
    (AMBIGUOUS_NAME, "a name that several things have"),
    (QUANTITY, "a quantity or unit that cannot be read"),
    (BAD_VALUE, "a value that this key does not take"),
    (PARAMETER, "a parameter on the command line that does not fit, or is missing"),
    (TEMPLATE_NAME, "`{name}` of something that does not exist here"),
    (TEMPLATE_ATTRIBUTE, "`{name.attribute}` with an attribute that it does not have"),
    (UNSAFE_QUOTING, "`{name}` at a place of a shell line where no quoting is safe"),
    (SCATTER, "values of `for:` that cannot be read, or are none or far too many"),
    (AXIS_MISMATCH, "a consumer's scatter asks for values that its producer does not have"),
    (CONDITION, "a condition under `when:` that cannot be read"),
    (ESCAPE, "a file name that leads out of the sandbox, or that no file can have"),
    (CYCLE, "tasks that wait for each other"),
    (TWO_PRODUCERS, "one file that two tasks make"),
    (NO_FILE, "an input for which there is no file"),
    (IMPOSSIBLE_REQUEST, "a resource that no node of the site can ever give"),
    (UNUSED, "something that nothing uses"),
    (LONG_COMMAND, "more file names on a command line than systems allow"),
    (QUOTED_LIST, "several file names inside quotes, where they become one word"),
    (CONFLICT, "settings that exclude each other or have no effect together"),
    (MORE, "more findings than are worth listing"),
    (ABSENT, "`{name}` of a parameter that is not active in every trial, at a place that cannot be left out"),
];

pub const SYNTAX: &str = "W001";
pub const DUPLICATE_KEY: &str = "W002";
pub const TOO_DEEP: &str = "W003";
pub const SHAPE: &str = "W004";
pub const UNKNOWN_KEY: &str = "W005";
pub const RESERVED_KEY: &str = "W006";
pub const MISSING_KEY: &str = "W007";
pub const BAD_NAME: &str = "W008";
pub const NAME_CLASH: &str = "W009";
pub const UNKNOWN_NAME: &str = "W010";
pub const AMBIGUOUS_NAME: &str = "W011";
pub const QUANTITY: &str = "W012";
pub const BAD_VALUE: &str = "W013";
pub const PARAMETER: &str = "W014";
pub const TEMPLATE_NAME: &str = "W015";
pub const TEMPLATE_ATTRIBUTE: &str = "W016";
pub const UNSAFE_QUOTING: &str = "W017";
pub const SCATTER: &str = "W018";
pub const AXIS_MISMATCH: &str = "W019";
pub const CONDITION: &str = "W020";
pub const ESCAPE: &str = "W021";
pub const CYCLE: &str = "W022";
pub const TWO_PRODUCERS: &str = "W023";
pub const NO_FILE: &str = "W024";
pub const IMPOSSIBLE_REQUEST: &str = "W025";
pub const UNUSED: &str = "W026";
pub const LONG_COMMAND: &str = "W027";
pub const QUOTED_LIST: &str = "W028";
pub const CONFLICT: &str = "W029";
pub const MORE: &str = "W030";
pub const ABSENT: &str = "W031";

/// Line and column of the start of a span, both from 1; columns count characters.
pub fn line_column(text: &str, span: &Span) -> (usize, usize) {
    let mut at = (span.start as usize).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

/// The candidate nearest to a word, when it is near enough that a slip of the hand explains the difference.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    if letters.is_empty() || letters.len() > 64 {
        return None;
    }
    let limit = match letters.len() {
        1..=2 => 1,
        3..=5 => 2,
        length => length / 3 + 1,
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let allowed = best.map_or(limit, |(distance, _)| distance - 1);
        if let Some(distance) = edit_distance(&letters, candidate, allowed) {
            if distance == 0 {
                return Some(candidate);
            }
            best = Some((distance, candidate));
        }
    }
    // A word of which nothing is left is no slip of the hand.
    best.filter(|(distance, candidate)| *distance < letters.len().max(candidate.chars().count()))
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, substitutions and swaps of neighbours that lead from one to the other; `None` above the limit.
fn edit_distance(word: &[char], candidate: &str, limit: usize) -> Option<usize> {
    if candidate.len() > 4 * (word.len() + limit) {
        return None;
    }
    let other: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
    if word.len().abs_diff(other.len()) > limit {
        return None;
    }
    let mut before_previous: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in word.iter().enumerate() {
        let mut current = Vec::with_capacity(other.len() + 1);
        current.push(row + 1);
        for (column, candidate_letter) in other.iter().enumerate() {
            let substitution = previous[column] + usize::from(letter != candidate_letter);
            let mut least = substitution.min(previous[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && *letter == other[column - 1] && word[row - 1] == *candidate_letter {
                least = least.min(before_previous[column - 1] + 1);
            }
            current.push(least);
        }
        if current.iter().min().is_some_and(|least| *least > limit) {
            return None;
        }
        before_previous = std::mem::replace(&mut previous, current);
    }
    previous.last().copied().filter(|distance| *distance <= limit)
}

/// Collects findings: equal ones once, and no more than people read.
#[derive(Default)]
pub struct Findings {
    list: Vec<Diagnostic>,
    seen: rustc_hash::FxHashSet<(&'static str, Option<Span>, String)>,
    left_out: usize,
}

/// More than this tells nobody more.
const MOST_FINDINGS: usize = 1000;

impl Findings {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.len() >= MOST_FINDINGS {
            self.left_out += 1;
            return;
        }
        if self.seen.insert((diagnostic.code, diagnostic.span, diagnostic.message.clone())) {
            self.list.push(diagnostic);
        }
    }

    /// How many errors were found so far.
    pub fn errors(&self) -> usize {
        self.list.iter().filter(|diagnostic| diagnostic.is_error()).count() + self.left_out
    }

    pub fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }

    /// In the order of the text; findings without a place come first.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|diagnostic| diagnostic.span.map(|span| (span.start, span.end)));
        if self.left_out > 0 {
            self.list.push(Diagnostic::error(
                MORE,
                None,
                format!("{} more problems are not listed; repair the first ones and check again", self.left_out),
            ));
        }
        self.list
    }
}
