//! A submit description as ordered commands whose values come out in the job's ClassAd exactly as meant.
//!
//! What was measured on a pool (23.9) decides the escapes, since `condor_submit` accepts most mistakes silently:
//! `$` starts macros everywhere and a closing backslash joins lines. What cannot be written is an error, never
//! another value. It does not know which commands exist: see the rules of `lint`.

use super::items::Items;
use std::fmt::Write as _;

/// Why a value cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    #[error("a line break or another control character cannot be written there")]
    Control,
    #[error("`$` three times before a name or a parenthesis cannot be written there")]
    Dollars,
    #[error("HTCondor drops blanks at the ends of a value")]
    BlankEdge,
    #[error("`{0}` is no name for this")]
    Name(String),
    #[error("`{0}` has a comma, which HTCondor takes for the end of a file name")]
    Comma(String),
    #[error("`{0}` has `;` or a backslash, which HTCondor cannot rename")]
    Remap(String),
    #[error("`{0}` is empty in one item and not in the first, from which HTCondor would then take it")]
    Inherited(String),
    #[error("`{0}` sets other environment variables than in the first item, whose variables all jobs would get")]
    Environment(String),
    #[error("{found} values for {expected} variables")]
    Fields { expected: usize, found: usize },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{command}` of the submit description: {reason}")]
pub struct SubmitError {
    pub command: String,
    pub reason: Unwritable,
}

/// The right side of a command, escaped; or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub(crate) text: Result<String, Unwritable>,
    pub(super) after: After,
}

/// What a later job of the same `queue` has of the first one, where its own value is this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// The first job's value, as this one is empty.
    All,
    /// The first job's variables, as environments are merged: the names of this one.
    Variables(Vec<String>),
}

impl Value {
    fn of(text: Result<String, Unwritable>) -> Self {
        Self { text, after: After::Nothing }
    }

    fn listed(text: Result<String, Unwritable>, empty: bool) -> Self {
        Self { text, after: if empty { After::All } else { After::Nothing } }
    }

    /// Text as it is: a path, a number, a ClassAd expression.
    pub fn plain(text: &str) -> Self {
        if text.trim() != text {
            return Self::of(Err(Unwritable::BlankEdge));
        }
        Self::listed(escaped(text), text.is_empty())
    }

    /// What a macro holds: an item's variable, `ClusterId`, `Process`.
    pub fn reference(name: &str) -> Self {
        match is_name(name) {
            true => Self::of(Ok(format!("$({name})"))),
            false => Self::of(Err(Unwritable::Name(name.to_owned()))),
        }
    }

    /// Several parts without anything between, such as `out.` and a reference.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self::of(self.text.and_then(|left| next.text.map(|right| left + &right)))
    }

    /// A string as a ClassAd literal.
    pub fn string(text: &str) -> Self {
        Self::of(escaped(&literal(text)))
    }

    /// Words for `arguments`, each arriving as one word whatever it holds.
    pub fn arguments<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let words: Vec<String> = words.into_iter().map(quoted).collect();
        Self::of(escaped(&format!("\"{}\"", words.join(" ").replace('"', "\"\""))))
    }

    /// Variables for `environment`. All jobs of one `queue` need the same names.
    pub fn environment<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut words, mut names) = (Vec::new(), Vec::new());
        for (name, value) in variables {
            if name.is_empty() || name.contains(|letter: char| letter == '=' || letter.is_whitespace()) {
                return Self::of(Err(Unwritable::Name(name.to_owned())));
            }
            let value = if value.is_empty() { String::new() } else { quoted(value) };
            words.push(format!("{name}={value}"));
            names.push(name.to_owned());
        }
        names.sort_unstable();
        let text = escaped(&format!("\"{}\"", words.join(" ").replace('"', "\"\"")));
        Self { text, after: After::Variables(names) }
    }

    /// File names for a transfer list. Blanks and quotes are fine there, commas are not.
    pub fn files<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut list = Vec::new();
        for name in names {
            if name.contains(',') {
                return Self::of(Err(Unwritable::Comma(name.to_owned())));
            }
            if name.is_empty() || name.trim() != name {
                return Self::of(Err(Unwritable::BlankEdge));
            }
            list.push(name);
        }
        Self::listed(escaped(&list.join(", ")), list.is_empty())
    }

    /// Where outputs go, as name in the sandbox and name at home, for `transfer_output_remaps`.
    pub fn remaps<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut list = Vec::new();
        for (from, to) in pairs {
            for name in [from, to] {
                if name.contains([';', '\\']) {
                    return Self::of(Err(Unwritable::Remap(name.to_owned())));
                }
                if name.is_empty() || name.trim() != name {
                    return Self::of(Err(Unwritable::BlankEdge));
                }
            }
            list.push(format!("{}={to}", from.replace('=', "\\=")));
        }
        Self::listed(escaped(&format!("\"{}\"", list.join("; "))), list.is_empty())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::plain(&text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::of(Ok(number.to_string()))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::of(Ok(truth.to_string()))
    }
}

#[derive(Clone, Debug)]
enum Queue {
    Times(u64),
    From { variables: Vec<String>, file: Value, macros: Vec<&'static str> },
}

/// Commands in the order given; one given again replaces the earlier in its place.
#[derive(Clone, Debug, Default)]
pub struct Description {
    comment: Vec<String>,
    commands: Vec<(String, Value)>,
    queue: Option<Queue>,
}

impl Description {
    pub fn new() -> Self {
        Self::default()
    }

    /// Lines at the top for whoever reads the file.
    #[must_use]
    pub fn comment(mut self, text: &str) -> Self {
        self.comment.extend(text.lines().map(str::to_owned));
        self
    }

    #[must_use]
    pub fn set(mut self, command: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        match self.commands.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(command)) {
            Some(known) => known.1 = value,
            None => self.commands.push((command.to_owned(), value)),
        }
        self
    }

    /// An attribute of the job that HTCondor itself gives no meaning: `My.WantGPULab = true`.
    #[must_use]
    pub fn custom(self, attribute: &str, value: impl Into<Value>) -> Self {
        self.set(&format!("My.{attribute}"), value)
    }

    #[must_use]
    pub fn arguments<'a>(self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.set("arguments", Value::arguments(words))
    }

    #[must_use]
    pub fn environment<'a>(self, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.set("environment", Value::environment(variables))
    }

    #[must_use]
    pub fn queue(mut self, times: u64) -> Self {
        self.queue = Some(Queue::Times(times));
        self
    }

    /// One job an item; `items.to_text()` belongs into that file.
    #[must_use]
    pub fn queue_from(mut self, items: &Items, file: &str) -> Self {
        let variables = items.variables().to_vec();
        self.queue = Some(Queue::From { variables, file: Value::plain(file), macros: items.macros() });
        self
    }

    pub fn to_text(&self) -> Result<String, SubmitError> {
        let refused = |command: &str, reason: Unwritable| SubmitError { command: command.to_owned(), reason };
        let mut text = String::new();
        for line in &self.comment {
            let line: String = line.chars().filter(|letter| !letter.is_control()).collect();
            // A comment that ends in a backslash would take the next line with it.
            let _ = writeln!(text, "{}", format!("# {}", line.trim_end_matches('\\')).trim_end());
        }
        if let Some(Queue::From { macros, .. }) = &self.queue {
            for definition in macros {
                let _ = writeln!(text, "{definition}");
            }
        }
        for (command, value) in &self.commands {
            let bare = command.strip_prefix("My.").unwrap_or(command);
            if !is_name(bare) {
                return Err(refused(command, Unwritable::Name(command.clone())));
            }
            let value = value.text.as_ref().map_err(|reason| refused(command, reason.clone()))?;
            let end = if value.ends_with('\\') { NOTHING } else { "" };
            let _ = writeln!(text, "{command} = {value}{end}");
        }
        match &self.queue {
            None => {}
            Some(Queue::Times(times)) => {
                let _ = writeln!(text, "queue {times}");
            }
            Some(Queue::From { variables, file, .. }) => {
                if let Some(name) = variables.iter().find(|name| !is_name(name)) {
                    return Err(refused("queue", Unwritable::Name(name.clone())));
                }
                let file = file.text.as_ref().map_err(|reason| refused("queue", reason.clone()))?;
                let _ = writeln!(text, "queue {} from {file}", variables.join(","));
            }
        }
        Ok(text)
    }
}

/// A macro without a value is nothing, and keeps a closing backslash from joining the next line.
pub(super) const NOTHING: &str = "$(NOTHING:)";

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !text.starts_with(|letter: char| letter.is_ascii_digit())
}

/// One word in single quotes where it needs them.
fn quoted(word: &str) -> String {
    match word.is_empty() || word.contains(|letter: char| letter == '\'' || letter.is_whitespace()) {
        true => format!("'{}'", word.replace('\'', "''")),
        false => word.to_owned(),
    }
}

/// A string in an expression. A backslash stands for itself unless a quote follows it.
fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\""))
}

/// The same in a question to the queue: what stands for two dollars there becomes two dollars only when a slot is found.
pub fn literal_in_queue(text: &str) -> String {
    let mut held = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let after = rest[at..].trim_start_matches('$');
        let run = &rest[at..rest.len() - after.len()];
        held.push_str(&rest[..at]);
        held.push_str(if run.len() == 2 { "$$(DOLLARDOLLAR)" } else { run });
        rest = after;
    }
    literal(&(held + rest))
}

/// `$` and `$$` as HTCondor gives them back: the first when submitting, the second when a slot is found.
fn escaped(text: &str) -> Result<String, Unwritable> {
    if text.contains(|letter: char| letter.is_control() && letter != '\t') {
        return Err(Unwritable::Control);
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        rest = &rest[at..];
        let after = rest.trim_start_matches('$');
        let run = rest.len() - after.len();
        let name = after.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
        match run {
            1 => result.push_str("$(DOLLAR)"),
            2 => result.push_str("$$(DOLLARDOLLAR)"),
            _ if name.is_empty() || name.starts_with(['(', '[']) => return Err(Unwritable::Dollars),
            _ => result.push_str(&rest[..run]),
        }
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}
