//! What `{name}` means inside one task, and findings about names that mean nothing there.

use super::reader::{Reader, list};
use super::template::{
    self, FILE_VARIABLE_ATTRIBUTES, INPUT_ATTRIBUTES, OUTPUT_ATTRIBUTES, Reference, TemplateError, Values,
};
use super::{Axis, AxisValues, Span, Value};
use crate::diagnostic::{
    ABSENT, Diagnostic, NAME_CLASH, QUOTED_LIST, TEMPLATE_ATTRIBUTE, TEMPLATE_NAME, UNSAFE_QUOTING, did_you_mean,
};
use crate::yaml::Node;
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Parameter,
    /// A scatter variable with values of its own.
    Variable,
    /// A parameter of a search: its value is known when the trial is asked for.
    Sampled,
    /// A parameter of a search that is inactive in some trials.
    Conditional,
    /// A scatter variable that stands for a file, or for a batch of them.
    File,
    Input,
    Output,
    /// A program of the catalogue.
    Program,
    /// `{cpus}` and `{gpus}`.
    Request,
}

impl Meaning {
    fn describe(self) -> &'static str {
        match self {
            Meaning::Parameter => "a parameter",
            Meaning::Variable | Meaning::File => "a variable of `for:`",
            Meaning::Sampled | Meaning::Conditional => "a parameter of the search",
            Meaning::Input => "an input",
            Meaning::Output => "an output",
            Meaning::Program => "a program",
            Meaning::Request => "what the task asks for",
        }
    }

    fn attributes(self) -> &'static [&'static str] {
        match self {
            Meaning::File => FILE_VARIABLE_ATTRIBUTES,
            Meaning::Input => INPUT_ATTRIBUTES,
            Meaning::Output => OUTPUT_ATTRIBUTES,
            _ => &[],
        }
    }
}

/// Names that every task has.
pub(super) const ALWAYS: &[&str] = &["cpus", "gpus"];

/// What a template is for, which decides what it may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Command,
    OutputPath,
    Label,
    Variable,
}

/// The names of one task, beside the parameters.
#[derive(Default)]
pub(super) struct Scope<'d> {
    names: Vec<(&'d str, Meaning, Span)>,
    /// Positions of the names, once they are so many that looking through them takes long.
    positions: FxHashMap<&'d str, usize>,
}

/// Below this a look through the list is quicker than hashing.
const MANY_NAMES: usize = 32;

impl<'d> Scope<'d> {
    /// Adds a name; reports when it already means something else.
    pub(super) fn add(&mut self, reader: &mut Reader, name: &'d str, meaning: Meaning, span: Span) {
        if let Some((_, other, earlier)) = self.find(name) {
            reader.report(
                Diagnostic::error(
                    NAME_CLASH,
                    span,
                    format!("`{name}` is {} and also {} of this task", meaning.describe(), other.describe()),
                )
                .related(*earlier, format!("{} here", other.describe()))
                .help(rename(meaning, name)),
            );
            return;
        }
        if reader.params.contains_key(name) {
            reader.report(
                Diagnostic::error(NAME_CLASH, span, format!("`{name}` is {} and also a parameter", meaning.describe()))
                    .help(rename(meaning, name)),
            );
        }
        self.names.push((name, meaning, span));
        if self.names.len() == MANY_NAMES {
            self.positions.extend(self.names.iter().enumerate().map(|(position, (name, ..))| (*name, position)));
        } else if self.names.len() > MANY_NAMES {
            self.positions.insert(name, self.names.len() - 1);
        }
    }

    /// Parameters of the search that have no value in some trials.
    pub(super) fn may_be_absent<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        for name in names {
            if let Some((_, meaning, _)) = self.names.iter_mut().find(|(other, ..)| *other == name) {
                *meaning = Meaning::Conditional;
            }
        }
    }

    /// Refuses a parameter that may be absent where its word cannot be left out.
    pub(super) fn check_needed(&self, reader: &mut Reader, needed: &[Reference<'_>], place: &dyn Fn(Span) -> Span) {
        for reference in needed {
            let name = reference.name;
            if self.meaning(reader, name) == Some(Meaning::Conditional) {
                reader.report(
                    Diagnostic::error(
                        ABSENT,
                        place(reference.span),
                        format!("`{{{name}}}` is not active in every trial, and cannot be left out here"),
                    )
                    .help(format!(
                        "write `--{name} {{{name}}}` or `{name}={{{name}}}`, without quotes: it goes as a whole"
                    ))
                    .help(format!(
                        "or name it in `env:`, or let the program read it: its default counts where `{name}` is absent"
                    )),
                );
            }
        }
    }

    fn find(&self, name: &str) -> Option<&(&'d str, Meaning, Span)> {
        match self.names.len() < MANY_NAMES {
            true => self.names.iter().find(|(other, ..)| *other == name),
            false => self.positions.get(name).map(|position| &self.names[*position]),
        }
    }

    pub(super) fn meaning(&self, reader: &Reader, name: &str) -> Option<Meaning> {
        match self.find(name) {
            Some((_, meaning, _)) => Some(*meaning),
            None if reader.params.contains_key(name) => Some(Meaning::Parameter),
            None if ALWAYS.contains(&name) => Some(Meaning::Request),
            None => None,
        }
    }

    pub(super) fn known<'a>(
        &'a self,
        reader: &'a Reader,
        accept: impl Fn(Meaning) -> bool + 'a,
    ) -> impl Iterator<Item = &'a str> {
        let own = self.names.iter().map(|(name, meaning, _)| (*name, *meaning));
        let params = reader.params.keys().map(|name| (name.as_str(), Meaning::Parameter));
        let always = ALWAYS.iter().map(|name| (*name, Meaning::Request));
        own.chain(params).chain(always).filter(move |(_, meaning)| accept(*meaning)).map(|(name, _)| name)
    }

    /// Checks every `{name}` of a template. `place` gives the span of a part of it.
    pub(super) fn check(&self, reader: &mut Reader, text: &str, purpose: Use, place: &dyn Fn(Span) -> Span) {
        if !text.contains('{') {
            return;
        }
        for reference in template::references(text) {
            self.check_reference(reader, &reference, purpose, place(reference.span));
        }
    }

    fn check_reference(&self, reader: &mut Reader, reference: &Reference<'_>, purpose: Use, span: Span) {
        let Reference { name, attribute, .. } = *reference;
        let written = if attribute.is_empty() { name.to_owned() } else { format!("{name}.{attribute}") };
        let allowed = |meaning| match purpose {
            Use::Command => true,
            Use::OutputPath | Use::Label => matches!(meaning, Meaning::Parameter | Meaning::Variable | Meaning::File),
            Use::Variable => true,
        };
        let Some(meaning) = self.meaning(reader, name) else {
            let diagnostic = Diagnostic::error(TEMPLATE_NAME, span, format!("nothing is called `{name}` here"));
            let near = did_you_mean(name, self.known(reader, allowed));
            let diagnostic = match near {
                Some(near) => diagnostic.help(format!("did you mean `{{{near}}}`?")),
                None => {
                    let known = list(self.known(reader, allowed).take(20));
                    diagnostic.help(format!("known here: {known}; add files to `in:` to use them"))
                }
            };
            reader.report(diagnostic.help(format!("for the text itself write `{{{{{written}}}}}`")));
            return;
        };
        if !allowed(meaning) {
            let (purpose, known) = match purpose {
                Use::Label => ("a label", "labels are known"),
                _ => ("a path of `out:`", "the names of outputs are known"),
            };
            let known = match meaning {
                Meaning::Sampled | Meaning::Conditional => {
                    "outputs of trials are told apart without it, or by `{trial}`".to_owned()
                }
                _ => format!("use parameters and variables of `for:`: {known} before the task runs"),
            };
            reader.report(
                Diagnostic::error(
                    TEMPLATE_NAME,
                    span,
                    format!("`{{{name}}}` is {}; {purpose} cannot depend on it", meaning.describe()),
                )
                .help(known),
            );
            return;
        }
        let attributes = meaning.attributes();
        if !attribute.is_empty() && !attributes.contains(&attribute) {
            let diagnostic = Diagnostic::error(TEMPLATE_ATTRIBUTE, span, format!("`{name}` has no `.{attribute}`"))
                .label(format!("`{name}` is {}", meaning.describe()))
                .suggest(attribute, attributes.iter().copied());
            let diagnostic = if attributes.is_empty() {
                diagnostic.help(format!("write `{{{name}}}`; only files have attributes"))
            } else {
                diagnostic.help(format!(
                    "it has {}",
                    list(
                        attributes
                            .iter()
                            .map(|attribute| format!(".{attribute}"))
                            .collect::<Vec<_>>()
                            .iter()
                            .map(String::as_str)
                    )
                ))
            };
            reader.report(diagnostic);
        } else if purpose == Use::OutputPath && attribute == "list" {
            reader.report(
                Diagnostic::error(
                    TEMPLATE_ATTRIBUTE,
                    span,
                    format!("`{{{written}}}` is a file of the sandbox, not a name for an output"),
                )
                .help(format!("write `{{{name}.stem}}` or `{{{name}.index}}`")),
            );
        }
    }

    /// Checks a shell line: its names, and places where no quoting is safe. `several` tells which inputs
    /// may be more than one file.
    pub(super) fn check_shell(
        &self,
        reader: &mut Reader,
        node: Node<'_>,
        text: &str,
        axes: &[Axis],
        several: &dyn Fn(&str) -> bool,
    ) {
        if !text.contains('{') {
            return;
        }
        let place = |span: Span| node.span_within(span.start as usize, span.end as usize);
        self.check(reader, text, Use::Command, &place);
        for (reference, reason) in template::unsafe_places(text) {
            reader.report(
                Diagnostic::error(UNSAFE_QUOTING, place(reference.span), reason.to_string()).help(reason.help()),
            );
        }
        self.check_needed(reader, &template::needed_references(text), &place);
        self.check_values(reader, node, text, axes);
        for reference in template::quoted_references(text) {
            if reference.attribute.is_empty() && several(reference.name) {
                let name = reference.name;
                reader.report(
                    Diagnostic::warning(
                        QUOTED_LIST,
                        place(reference.span),
                        format!("all files of `{name}` become one word inside these quotes"),
                    )
                    .help("remove the quotes: each file name is quoted for you")
                    .help(format!("or use `{{{name}.list}}`, a file with one name a line")),
                );
            }
        }
    }
}

impl Scope<'_> {
    /// Some places take a plain word but not every value: tries those that are known.
    fn check_values(&self, reader: &mut Reader, node: Node<'_>, text: &str, axes: &[Axis]) {
        // Line breaks matter elsewhere too, but only parameters could have them and those are tried anyway.
        let delicate = ["((", "<<", " -c", "-ec", "eval", "ssh"].iter().any(|sign| text.contains(sign));
        let mut attempts: Vec<Option<(&str, &Value)>> = vec![None];
        for axis in axes.iter().filter(|_| delicate) {
            if let AxisValues::Rows(rows) = &axis.values {
                let columns = axis.names.iter().enumerate();
                attempts.extend(
                    columns.flat_map(|(column, name)| rows.iter().map(move |row| Some((name.as_str(), &row[column])))),
                );
            }
        }
        for attempt in attempts {
            let rendered = template::shell(text, &mut |name, _| {
                let value = match attempt {
                    Some((variable, value)) if variable == name => Some(value),
                    _ => reader.params.get(name),
                };
                Some(value.map_or(Values::one("1"), |value| Values::one(value.to_string())))
            });
            let Err(TemplateError::Unsafe { name, place: reason }) = rendered else { continue };
            let Some(reference) = template::references(text).find(|reference| reference.name == name) else { continue };
            let value = attempt.map(|(_, value)| value).or_else(|| reader.params.get(&name));
            // Without a value of its own it is the place that is wrong, which is reported already.
            let Some(value) = value.filter(|_| template::unsafe_places(text).is_empty()).map(ToString::to_string)
            else {
                continue;
            };
            let span = node.span_within(reference.span.start as usize, reference.span.end as usize);
            reader.report(
                Diagnostic::error(UNSAFE_QUOTING, span, reason.to_string())
                    .label(format!("`{name}` is `{}`", value.escape_debug()))
                    .help(reason.help()),
            );
            return;
        }
    }
}

fn rename(meaning: Meaning, name: &str) -> String {
    match meaning {
        Meaning::Input => format!("give the input another name: `in: {{my_{name}: {name}}}`"),
        _ => "rename one of them, so that it is clear what the name means".to_owned(),
    }
}

/// A scalar of a list or of `for:` as a value.
pub(super) fn scalar_value(text: &str, quoted: bool) -> Value {
    if quoted { Value::Text(text.to_owned()) } else { Value::from_text(text) }
}
