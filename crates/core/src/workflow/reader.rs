//! From nodes to plain values, with a finding wherever a node is not what its place asks for.
//!
//! It knows shapes, names and parameters, but no key of the language.

use super::template::{self, Values, is_identifier};
use super::{Span, Value, keys};
use crate::diagnostic::{
    BAD_NAME, BAD_VALUE, Diagnostic, Findings, QUANTITY, RESERVED_KEY, SHAPE, TEMPLATE_NAME, UNKNOWN_KEY, did_you_mean,
};
use crate::units::UnitError;
use crate::yaml::{Entries, Kind, Node};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// How many candidates all suggestions together may look at: a million misspelt names shall not take hours.
const CANDIDATES: usize = 20_000_000;

pub(crate) struct Reader {
    pub(crate) findings: Findings,
    pub(crate) params: BTreeMap<String, Value>,
    candidates: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self { findings: Findings::default(), params: BTreeMap::new(), candidates: CANDIDATES }
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.findings.push(diagnostic);
    }

    /// Adds "did you mean", unless so much was searched already that it would take too long.
    pub(crate) fn suggest<'a>(
        &mut self,
        diagnostic: Diagnostic,
        word: &str,
        candidates: impl ExactSizeIterator<Item = &'a str>,
    ) -> Diagnostic {
        match self.candidates.checked_sub(candidates.len()) {
            Some(left) => {
                self.candidates = left;
                diagnostic.suggest(word, candidates)
            }
            None => diagnostic,
        }
    }

    /// The entries of a map. `what` is as in "`tasks` must be a map of …".
    pub(crate) fn map<'d>(&mut self, node: Node<'d>, what: &str) -> Option<Entries<'d>> {
        if matches!(node.kind(), Kind::Mapping) {
            return Some(node.entries());
        }
        let message = format!("{what} must be a map, that is `key: value` pairs");
        let mut diagnostic =
            Diagnostic::error(SHAPE, node.span(), message).label(format!("this is {}", describe(node)));
        if matches!(node.kind(), Kind::Sequence) {
            diagnostic = diagnostic.help("write a name and a colon in place of each `-`");
        }
        self.report(diagnostic);
        None
    }

    pub(crate) fn wrong_shape(&mut self, node: Node<'_>, message: &str) {
        let mut diagnostic =
            Diagnostic::error(SHAPE, node.span(), message).label(format!("this is {}", describe(node)));
        if let Some(text) = braces_without_quotes(node) {
            diagnostic = diagnostic.help(format!("YAML reads `{text}` as a map; put it in quotes: \"{text}\""));
        }
        self.report(diagnostic);
    }

    /// A scalar as text.
    pub(crate) fn text<'d>(&mut self, node: Node<'d>, what: &str) -> Option<&'d str> {
        match node.kind() {
            Kind::Scalar { text, .. } if !node.is_null() => Some(text),
            _ => {
                self.wrong_shape(node, &format!("{what} must be a single value"));
                None
            }
        }
    }

    /// A scalar with the parameters in it put in place.
    pub(crate) fn bound_text<'d>(&mut self, node: Node<'d>, what: &str) -> Option<Cow<'d, str>> {
        let text = self.text(node, what)?;
        self.bind(node, text)
    }

    pub(crate) fn bind<'d>(&mut self, node: Node<'d>, text: &'d str) -> Option<Cow<'d, str>> {
        if !text.contains('{') {
            return Some(Cow::Borrowed(text));
        }
        let unknown: Vec<_> = template::references(text)
            .filter(|reference| !reference.attribute.is_empty() || !self.params.contains_key(reference.name))
            .collect();
        for reference in &unknown {
            let span = node.span_within(reference.span.start as usize, reference.span.end as usize);
            let written = &text[reference.span.start as usize..reference.span.end as usize];
            let diagnostic = Diagnostic::error(
                TEMPLATE_NAME,
                span,
                format!("no parameter is called `{}`", &written[1..written.len() - 1]),
            )
            .suggest(reference.name, self.params.keys().map(String::as_str))
            .help(format!("only parameters can be used here; for the text itself write `{{{written}}}`"));
            self.report(diagnostic);
        }
        if !unknown.is_empty() {
            return None;
        }
        let params = &self.params;
        template::plain(text, &mut |name, _| params.get(name).map(|value| Values::one(value.to_string())))
            .ok()
            .map(Cow::Owned)
    }

    /// A list of scalars, or one scalar in place of a list of one.
    pub(crate) fn words<'d>(&mut self, node: Node<'d>, what: &str) -> Vec<(Node<'d>, &'d str)> {
        match node.kind() {
            Kind::Sequence => node
                .items()
                .filter_map(|item| Some((item, self.text(item, &format!("each entry of {what}"))?)))
                .collect(),
            Kind::Scalar { text, .. } if !node.is_null() => vec![(node, text)],
            _ => {
                self.wrong_shape(node, &format!("{what} must be a list"));
                Vec::new()
            }
        }
    }

    pub(crate) fn boolean(&mut self, node: Node<'_>, what: &str) -> Option<bool> {
        let text = self.text(node, what)?;
        match text {
            "true" | "on" | "yes" => Some(true),
            "false" | "off" | "no" => Some(false),
            _ => {
                self.report(Diagnostic::error(
                    BAD_VALUE,
                    node.span(),
                    format!("{what} is `true` or `false`, not `{text}`"),
                ));
                None
            }
        }
    }

    /// A quantity read by one of the parsers of `units`.
    pub(crate) fn quantity<T>(
        &mut self,
        node: Node<'_>,
        key: &str,
        parse: fn(&str) -> Result<T, UnitError>,
        accepted: &str,
        units: &[&str],
    ) -> Option<T> {
        let text = self.bound_text(node, &format!("`{key}`"))?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                let mut diagnostic = Diagnostic::error(QUANTITY, node.span(), format!("`{key}`: {error}"));
                match &error {
                    UnitError::NoUnit(number) if number.contains(char::is_alphabetic) => {}
                    UnitError::NoUnit(number) if units.contains(&"Gbit/s") => {
                        diagnostic = diagnostic.help(format!("did you mean `{number} Mbit/s`, or `{number} MB/s`?"));
                    }
                    UnitError::NoUnit(number) if units.contains(&"GB") => {
                        diagnostic = diagnostic.help(format!("did you mean `{number} GB`, or `{number} MB`?"));
                    }
                    UnitError::NoUnit(number) => {
                        diagnostic = diagnostic.help(format!("did you mean `{number} min`, or `{number} s`?"));
                    }
                    other => {
                        if let Some(near) = other.unit().and_then(|unit| did_you_mean(unit, units.iter().copied())) {
                            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
                        }
                    }
                }
                self.report(diagnostic.help(accepted));
                None
            }
        }
    }

    /// A name that may be given to things; reports and returns `None` for others.
    pub(crate) fn name<'d>(&mut self, node: Node<'d>, what: &str) -> Option<&'d str> {
        let text = node.text()?;
        if is_identifier(text) {
            return Some(text);
        }
        let fixed: String = text
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' })
            .collect();
        let fixed = if is_identifier(&fixed) { fixed } else { format!("_{fixed}") };
        let mut diagnostic = Diagnostic::error(BAD_NAME, node.span(), format!("`{text}` cannot be the name of {what}"))
            .help("names have letters, digits, `_` and `-`, and do not begin with a digit");
        let kept = fixed.chars().filter(char::is_ascii_alphanumeric).count();
        if is_identifier(&fixed) && fixed.len() < 40 && kept * 2 >= text.chars().count() {
            diagnostic = diagnostic.help(format!("for example `{fixed}`"));
        }
        self.report(diagnostic);
        None
    }

    /// Reports a key that `tables` do not have. `what` is as in "a task has no key …".
    pub(crate) fn unknown_key(&mut self, key: Node<'_>, what: &str, tables: &[&[&'static str]]) {
        let Some(text) = key.text() else { return };
        if keys::RESERVED.contains(&text) {
            self.report(
                Diagnostic::error(RESERVED_KEY, key.span(), format!("`{text}` is kept for a later version of Tulpar"))
                    .help("remove it, or give it another name if it is one of your own"),
            );
            return;
        }
        let known = || tables.iter().flat_map(|table| table.iter().copied());
        let exact = ELSEWHERE.iter().find(|(other, _)| *other == text).map(|(_, key)| *key);
        let ours = |near: &&str| known().any(|key| key == *near);
        let near =
            exact.filter(ours).or_else(|| did_you_mean(text, known())).or_else(|| near_elsewhere(text).filter(ours));
        let diagnostic = Diagnostic::error(UNKNOWN_KEY, key.span(), format!("{what} has no key `{text}`"));
        let diagnostic = match near {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("it can have {}", list(known()))),
        };
        self.report(diagnostic);
    }
}

/// Words of other systems, which no edit distance connects with ours.
const ELSEWHERE: &[(&str, &str)] = &[
    ("command", "run"),
    ("cmd", "run"),
    ("script", "run"),
    ("commands", "run"),
    ("exec", "run"),
    ("args", "run"),
    ("input", "in"),
    ("inputs", "in"),
    ("output", "out"),
    ("outputs", "out"),
    ("produces", "out"),
    ("needs", "after"),
    ("depends", "after"),
    ("depends_on", "after"),
    ("requires", "after"),
    ("dependencies", "after"),
    ("scatter", "for"),
    ("foreach", "for"),
    ("for_each", "for"),
    ("matrix", "for"),
    ("with_items", "for"),
    ("if", "when"),
    ("condition", "when"),
    ("mem", "memory"),
    ("ram", "memory"),
    ("mem_mb", "memory"),
    ("cpu", "cpus"),
    ("cores", "cpus"),
    ("threads", "cpus"),
    ("ncpus", "cpus"),
    ("gpu", "gpus"),
    ("walltime", "time"),
    ("timeout", "time"),
    ("max_time", "time"),
    ("image", "container"),
    ("docker", "container"),
    ("singularity", "container"),
    ("apptainer", "container"),
    ("environment", "env"),
    ("variables", "env"),
    ("vars", "env"),
    ("retries", "retry"),
    ("attempts", "retry"),
    ("max_retries", "retry"),
    ("name", "workflow"),
    ("doc", "about"),
    ("description", "about"),
    ("title", "about"),
    ("steps", "tasks"),
    ("jobs", "tasks"),
    ("rules", "tasks"),
    ("stages", "tasks"),
    ("parameters", "params"),
    ("config", "params"),
    ("sources", "data"),
    ("temporary", "temp"),
    ("program", "programs"),
    ("executable", "programs"),
    ("transformation", "programs"),
    ("expected_time", "runtime"),
];

/// Our key for a misspelt word of another system.
fn near_elsewhere(word: &str) -> Option<&'static str> {
    let near = did_you_mean(word, ELSEWHERE.iter().map(|(other, _)| *other).filter(|other| other.len() > 5))?;
    ELSEWHERE.iter().find(|(other, _)| *other == near).map(|(_, key)| *key)
}

/// `a, b or c`
pub(crate) fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "nothing".to_owned(),
    }
}

/// What a node is, for people.
pub(crate) fn describe(node: Node<'_>) -> &'static str {
    match node.kind() {
        Kind::Sequence => "a list",
        Kind::Mapping => "a map",
        Kind::Scalar { .. } if node.is_null() => "nothing",
        Kind::Scalar { quoted: true, .. } => "a text",
        Kind::Scalar { text, .. } => match Value::from_text(text) {
            Value::Bool(_) => "true or false",
            Value::Text(_) => "a text",
            _ => "a number",
        },
    }
}

/// `{name}` that YAML took for a map with one key and no value.
fn braces_without_quotes<'d>(node: Node<'d>) -> Option<&'d str> {
    let mut entries = node.entries();
    let (key, value) = entries.next()?;
    let only = entries.next().is_none() && value.is_null();
    (only && key.text().is_some_and(is_identifier)).then(|| node.source()).filter(|source| source.starts_with('{'))
}

/// The place of a key when its value has none of its own, such as nothing at all.
pub(crate) fn place(key: Node<'_>, value: Node<'_>) -> Span {
    if value.is_null() { key.span() } else { value.span() }
}
