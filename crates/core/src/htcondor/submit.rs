//! A submit description as ordered commands whose values come out in the job's ClassAd exactly as meant.
//!
//! What was measured on a pool (23.9) decides the escapes, since `condor_submit` accepts most mistakes silently:
//! `$` starts macros everywhere, a closing backslash joins lines, and the fields of an items file are apart
//! only by U+001F, and that only where jobs are materialized late. What cannot be written is an error, never
//! another value. It does not know which commands exist: see the rules of `lint`.

use std::fmt::Write as _;

/// The separator of an items file. Blanks and commas may then stand in the fields.
const FIELD_END: char = '\u{1f}';

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
    #[error("an empty value would be taken for the one of the job before")]
    Empty,
    #[error("{found} values for {expected} variables")]
    Fields { expected: usize, found: usize },
    #[error("several variables need `max_idle` or `max_materialize`: only then HTCondor keeps their values apart")]
    NotLate,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{command}` of the submit description: {reason}")]
pub struct SubmitError {
    pub command: String,
    pub reason: Unwritable,
}

/// The right side of a command, escaped; or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value(Result<String, Unwritable>);

impl Value {
    /// Text as it is: a path, a number, a ClassAd expression.
    pub fn plain(text: &str) -> Self {
        if text.trim() != text {
            return Self(Err(Unwritable::BlankEdge));
        }
        Self(escaped(text))
    }

    /// What a macro holds: an item's variable, `ClusterId`, `Process`.
    pub fn reference(name: &str) -> Self {
        match is_name(name) {
            true => Self(Ok(format!("$({name})"))),
            false => Self(Err(Unwritable::Name(name.to_owned()))),
        }
    }

    /// Several parts without anything between, such as `out.` and a reference.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self(self.0.and_then(|left| next.0.map(|right| left + &right)))
    }

    /// A string as a ClassAd literal.
    pub fn string(text: &str) -> Self {
        Self(escaped(&format!("\"{}\"", text.replace('"', "\\\""))))
    }

    /// Words for `arguments`, each arriving as one word whatever it holds.
    pub fn arguments<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let words: Vec<String> = words.into_iter().map(quoted).collect();
        Self(escaped(&format!("\"{}\"", words.join(" ").replace('"', "\"\""))))
    }

    /// Variables for `environment`. All jobs of one `queue` need the same names: HTCondor 23.9 gives a job
    /// also what only the jobs before it had set.
    pub fn environment<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut words = Vec::new();
        for (name, value) in variables {
            if name.is_empty() || name.contains(|letter: char| letter == '=' || letter.is_whitespace()) {
                return Self(Err(Unwritable::Name(name.to_owned())));
            }
            let value = if value.is_empty() { String::new() } else { quoted(value) };
            words.push(format!("{name}={value}"));
        }
        Self(escaped(&format!("\"{}\"", words.join(" ").replace('"', "\"\""))))
    }

    /// File names for a transfer list. Blanks and quotes are fine there, commas are not.
    pub fn files<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut list = Vec::new();
        for name in names {
            if name.contains(',') {
                return Self(Err(Unwritable::Comma(name.to_owned())));
            }
            if name.is_empty() || name.trim() != name {
                return Self(Err(Unwritable::BlankEdge));
            }
            list.push(name);
        }
        Self(escaped(&list.join(", ")))
    }

    /// Where outputs go, as name in the sandbox and name at home, for `transfer_output_remaps`.
    pub fn remaps<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut list = Vec::new();
        for (from, to) in pairs {
            for name in [from, to] {
                if name.contains([';', '\\']) {
                    return Self(Err(Unwritable::Remap(name.to_owned())));
                }
                if name.is_empty() || name.trim() != name {
                    return Self(Err(Unwritable::BlankEdge));
                }
            }
            list.push(format!("{}={to}", from.replace('=', "\\=")));
        }
        Self(escaped(&format!("\"{}\"", list.join("; "))))
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
        Self(Ok(number.to_string()))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self(Ok(truth.to_string()))
    }
}

#[derive(Clone, Debug)]
enum Queue {
    Times(u64),
    From { variables: Vec<String>, file: Value },
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

    /// One job a line of a file that [`item_line`] wrote.
    #[must_use]
    pub fn queue_from<'a>(mut self, variables: impl IntoIterator<Item = &'a str>, file: &str) -> Self {
        let variables = variables.into_iter().map(str::to_owned).collect();
        self.queue = Some(Queue::From { variables, file: Value::plain(file) });
        self
    }

    fn says(&self, command: &str) -> bool {
        self.commands.iter().any(|(name, _)| name.eq_ignore_ascii_case(command))
    }

    pub fn to_text(&self) -> Result<String, SubmitError> {
        let refused = |command: &str, reason: Unwritable| SubmitError { command: command.to_owned(), reason };
        let mut text = String::new();
        for line in &self.comment {
            let line: String = line.chars().filter(|letter| !letter.is_control()).collect();
            // A comment that ends in a backslash would take the next line with it.
            let _ = writeln!(text, "# {}", line.trim_end_matches('\\'));
        }
        for (command, value) in &self.commands {
            let bare = command.strip_prefix("My.").unwrap_or(command);
            if !is_name(bare) {
                return Err(refused(command, Unwritable::Name(command.clone())));
            }
            let value = value.0.as_ref().map_err(|reason| refused(command, reason.clone()))?;
            // A backslash at the end would join the next line; a macro without a value is nothing.
            let end = if value.ends_with('\\') { "$(NOTHING:)" } else { "" };
            let _ = writeln!(text, "{command} = {value}{end}");
        }
        match &self.queue {
            None => {}
            Some(Queue::Times(times)) => {
                let _ = writeln!(text, "queue {times}");
            }
            Some(Queue::From { variables, file }) => {
                if let Some(name) = variables.iter().find(|name| !is_name(name)) {
                    return Err(refused("queue", Unwritable::Name(name.clone())));
                }
                if variables.len() > 1 && !self.says("max_idle") && !self.says("max_materialize") {
                    return Err(refused("queue", Unwritable::NotLate));
                }
                let file = file.0.as_ref().map_err(|reason| refused("queue", reason.clone()))?;
                let _ = writeln!(text, "queue {} from {file}", variables.join(","));
            }
        }
        Ok(text)
    }
}

/// One line of an items file, with its line break: the values of `variables` in their order.
pub fn item_line<'a>(variables: usize, values: impl IntoIterator<Item = &'a Value>) -> Result<String, Unwritable> {
    let mut line = String::new();
    let mut found = 0;
    for value in values {
        let value = value.0.as_ref().map_err(Clone::clone)?;
        if value.trim() != value {
            return Err(Unwritable::BlankEdge);
        }
        if found > 0 {
            line.push(FIELD_END);
        }
        line.push_str(value);
        found += 1;
    }
    if found != variables {
        return Err(Unwritable::Fields { expected: variables, found });
    }
    if line.is_empty() {
        return Err(Unwritable::Empty);
    }
    if line.ends_with('\\') {
        // The separator keeps the line from being joined with the next.
        line.push(FIELD_END);
    }
    line.push('\n');
    Ok(line)
}

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
