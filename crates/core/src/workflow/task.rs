//! One entry under `tasks:`, once the names of all tasks and outputs are known.

use super::index::{Head, Index};
use super::reader::{Reader, list};
use super::scope::{Meaning, Scope, Use};
use super::settings::{Interner, Layer};
use super::template::{self, is_identifier};
use super::{
    Axis, AxisValues, Condition, Data, DataSource, FileSource, Finding, Input, Iteration, Output, OutputKind, Run,
    Span, Task, Template, axes, condition, keys, scatter, search, variants,
};
use crate::diagnostic::{BAD_NAME, CONDITION, CONFLICT, Diagnostic, MISSING_KEY, UNKNOWN_NAME};
use crate::ids::SetId;
use crate::yaml::{Kind, Node};
use rustc_hash::FxHashMap;

/// What all tasks of a workflow have in common.
pub(super) struct Common<'d> {
    pub(super) data: &'d [Data],
    pub(super) heads: &'d [Head<'d>],
    pub(super) index: Index<'d>,
    pub(super) groups: FxHashMap<&'d str, Layer>,
}

/// The nodes of a task's keys, found in one pass.
#[derive(Default)]
struct Parts<'d> {
    scatter: Option<(Node<'d>, Node<'d>)>,
    inputs: Option<Node<'d>>,
    after: Option<Node<'d>>,
    run: Option<(Node<'d>, Node<'d>)>,
    variants: Option<Node<'d>>,
    when: Option<Node<'d>>,
    group: Option<Node<'d>>,
    search: Option<(Node<'d>, Node<'d>)>,
}

/// Reads a task. Its outputs were read before; whatever fails is left out, so that more can be checked.
pub(super) fn read<'d>(
    reader: &mut Reader,
    common: &'d Common<'d>,
    interner: &mut Interner,
    set: SetId,
    node: Node<'d>,
    axis_places: &mut Vec<Span>,
) -> Task {
    let head = &common.heads[set.index()];
    let mut parts = Parts::default();
    let mut layer = Layer::new();
    let entries = if node.is_null() { None } else { reader.map(node, &format!("the task `{}`", head.name)) };
    for (key, value) in entries.into_iter().flatten() {
        match key.text().unwrap_or("") {
            "for" => parts.scatter = Some((key, value)),
            "in" => parts.inputs = Some(value),
            "after" => parts.after = Some(value),
            "run" => parts.run = Some((key, value)),
            "variants" => parts.variants = Some(value),
            "when" => parts.when = Some(value),
            "group" => parts.group = Some(value),
            "search" => parts.search = Some((key, value)),
            "about" => {
                reader.text(value, "`about`");
            }
            "out" => {}
            _ => {
                if !layer.read(reader, key, value) {
                    reader.unknown_key(key, "a task", &[keys::TASK, keys::SETTINGS]);
                }
            }
        }
    }
    let group = parts.group.and_then(|node| {
        let name = reader.text(node, "`group`")?;
        let found = common.groups.get(name);
        if found.is_none() {
            let diagnostic = Diagnostic::error(UNKNOWN_NAME, node.span(), format!("there is no group `{name}`"))
                .suggest(name, common.groups.keys().copied())
                .help("declare it under `groups:`");
            reader.report(diagnostic);
        }
        found
    });
    let settings = interner.settings(reader, group, &layer);
    let mut scope = Scope::default();
    let mut axes: Vec<Axis> = Vec::new();
    if let Some((key, node)) = parts.scatter {
        let context = scatter::Context { index: &common.index, heads: common.heads, task: set };
        for (axis, span) in scatter::read(reader, &context, &mut scope, key, node) {
            axes.push(axis);
            axis_places.push(span);
        }
    }
    if let Some((key, node)) = parts.search
        && let Some((axis, span)) = search::read(reader, &mut scope, key, node, &axes)
    {
        axes.push(axis);
        axis_places.push(span);
    }
    let inputs = parts.inputs.map(|node| inputs(reader, common, set, &mut scope, node)).unwrap_or_default();
    let place_of = |key: &str| {
        let layers = [Some(&layer), group, Some(&interner.defaults)];
        layers.into_iter().flatten().find_map(|layer| layer.place(key)).unwrap_or(head.span)
    };
    for program in &settings.environment.programs {
        scope.add(reader, &program.name, Meaning::Program, place_of("programs"));
    }
    for output in &head.outputs {
        scope.add(reader, &output.name, Meaning::Output, output.span);
    }
    for output in &head.outputs {
        let within = |span: Span| part_of(output.span, &output.path.0, span);
        scope.check(reader, &output.path.0, Use::OutputPath, &within);
    }
    if let Some(label) = &settings.hints.label {
        let place = place_of("label");
        scope.check(reader, label, Use::Label, &|span| part_of(place, label, span));
    }
    let after = parts.after.map(|node| after(reader, common, node)).unwrap_or_default();
    let several = |name: &str| several(common, &axes, &inputs, name);
    let command = |reader: &mut Reader, part| run(reader, &scope, head, part, &axes, &several, &layer);
    let run = command(reader, parts.run);
    let variants = parts.variants.map(|node| {
        variants::read(reader, node, &settings.request, |reader, key, node| command(reader, Some((key, node))))
    });
    if let Some(Iteration::Variable(name)) = &settings.iteration {
        axes::check_iteration(reader, head.name, &axes, name, place_of("iteration"));
    }
    let when = parts.when.and_then(|node| when(reader, &scope, node));
    for (name, value) in &settings.environment.variables {
        let place = layer
            .variable_place(name)
            .or_else(|| group.and_then(|group| group.variable_place(name)))
            .or_else(|| interner.defaults.variable_place(name))
            .unwrap_or(head.span);
        scope.check(reader, &value.0, Use::Variable, &|span| part_of(place, &value.0, span));
    }
    Task {
        name: head.name.to_owned(),
        scatter: axes,
        inputs,
        outputs: Vec::new(),
        after,
        run,
        variants: variants.unwrap_or_default(),
        when,
        settings,
        span: head.span,
    }
}

/// The place of a part of a text whose node is gone: exact when the text stands there as it reads.
fn part_of(whole: Span, text: &str, part: Span) -> Span {
    let length = (whole.end - whole.start) as usize;
    let margin = match length.checked_sub(text.len()) {
        Some(0) => 0,
        Some(2) => 1,
        _ => return whole,
    };
    Span { start: whole.start + margin + part.start, end: whole.start + margin + part.end }
}

/// What an input that is a map may say beside its source.
#[derive(Clone, Copy, Default)]
struct Flags {
    bypass: bool,
    program: bool,
    /// Where it is written.
    latest: Option<Span>,
}

fn inputs<'d>(
    reader: &mut Reader,
    common: &Common<'_>,
    set: SetId,
    scope: &mut Scope<'d>,
    node: Node<'d>,
) -> Vec<Input> {
    let mut found =
        Vec::with_capacity(if matches!(node.kind(), Kind::Mapping) { node.size() / 2 } else { node.size().max(1) });
    let mut add = |reader: &mut Reader, name: &'d str, source: &str, place: Node<'_>, at: Node<'_>, flags: Flags| {
        scope.add(reader, name, Meaning::Input, at.span());
        if let Some(source) = common.index.resolve(reader, common.heads, set, source, place.span()) {
            let Flags { bypass, program, latest } = flags;
            let source = match (source, latest) {
                (FileSource::Output { task, output }, Some(_)) => FileSource::Latest { task, output },
                (FileSource::Search { .. }, Some(span)) => {
                    reader.report(
                        Diagnostic::error(CONFLICT, span, format!("`{name}` is what a search found: it is found once"))
                            .help("remove `latest`"),
                    );
                    source
                }
                (FileSource::Data(_), Some(span)) => {
                    reader.report(
                        Diagnostic::error(CONFLICT, span, format!("`{name}` is data: it has only one version"))
                            .help("remove `latest`; it is for what other tasks make again and again"),
                    );
                    source
                }
                _ => source,
            };
            found.push(Input { name: name.to_owned(), source, span: place.span(), bypass, program });
        }
    };
    match node.kind() {
        Kind::Mapping => {
            for (key, value) in node.entries() {
                let Some(name) = reader.name(key, "an input") else { continue };
                if value.is_null() {
                    add(reader, name, name, key, key, Flags::default());
                } else if matches!(value.kind(), Kind::Mapping) {
                    let (mut from, mut flags) = ((key, name), Flags::default());
                    for (inner, value) in value.entries() {
                        match inner.text().unwrap_or("") {
                            "from" => from = reader.text(value, "`from`").map_or(from, |text| (value, text)),
                            "bypass" => flags.bypass = reader.boolean(value, "`bypass`").unwrap_or(false),
                            "program" => flags.program = reader.boolean(value, "`program`").unwrap_or(false),
                            "latest" => {
                                let on = reader.boolean(value, "`latest`").unwrap_or(false);
                                flags.latest = on.then_some(inner.span());
                            }
                            _ => reader.unknown_key(inner, "an input", &[keys::INPUT]),
                        }
                    }
                    add(reader, name, from.1, from.0, key, flags);
                } else if let Some(source) = reader.text(value, &format!("the input `{name}`")) {
                    add(reader, name, source, value, key, Flags::default());
                }
            }
        }
        _ => {
            for (node, source) in reader.words(node, "`in`") {
                let name = source.rsplit('.').next().unwrap_or(source);
                // `search.best(3).model` is of the three best trials; whether it is one is for the index to say.
                let of_several = |part: &str| part.starts_with("best(") && part.ends_with(')');
                if source.split('.').all(|part| is_identifier(part) || of_several(part)) {
                    add(reader, name, source, node, node, Flags::default());
                } else {
                    let diagnostic =
                        Diagnostic::error(BAD_NAME, node.span(), format!("`{source}` is not the name of an input"));
                    reader.report(if source.contains(['/', '*', '.']) {
                        diagnostic.help("files are named once, under `data:` or by the task that makes them, and used by that name here")
                    } else {
                        diagnostic.help("write the name of a data entry or output, or `task.output`")
                    });
                }
            }
        }
    }
    found
}

fn after(reader: &mut Reader, common: &Common<'_>, node: Node<'_>) -> Vec<SetId> {
    let mut found = Vec::new();
    for (node, name) in reader.words(node, "`after`") {
        match common.index.task(name) {
            Some(set) if !found.contains(&set) => found.push(set),
            Some(_) => {}
            None => {
                let mut diagnostic = Diagnostic::error(UNKNOWN_NAME, node.span(), format!("there is no task `{name}`"));
                match name.split_once('.').filter(|(task, _)| common.index.task(task).is_some()) {
                    Some((task, _)) => diagnostic = diagnostic.help(format!("`after` names tasks: write `{task}`")),
                    None => diagnostic = reader.suggest(diagnostic, name, common.index.task_names()),
                }
                reader.report(diagnostic);
            }
        }
    }
    found
}

fn run(
    reader: &mut Reader,
    scope: &Scope<'_>,
    head: &Head<'_>,
    part: Option<(Node<'_>, Node<'_>)>,
    axes: &[Axis],
    several: &dyn Fn(&str) -> bool,
    layer: &Layer,
) -> Run {
    let nothing = || Run::Shell(Template("".into()));
    let Some((key, node)) = part else {
        reader.report(
            Diagnostic::error(MISSING_KEY, head.span, format!("the task `{}` has no `run`", head.name))
                .help("add `run:` with the command, for example `run: python train.py {data} --out {model}`"),
        );
        return nothing();
    };
    match node.kind() {
        Kind::Scalar { text, .. } if !text.trim().is_empty() && !node.is_null() => {
            scope.check_shell(reader, node, text, axes, several);
            Run::Shell(Template(text.into()))
        }
        Kind::Sequence if node.size() > 0 => {
            let mut arguments: Vec<Template> = Vec::with_capacity(node.size());
            for item in node.items() {
                // An empty text in quotes is an argument too.
                let text = match item.kind() {
                    Kind::Scalar { text, quoted: true } => text,
                    _ => match reader.text(item, "each argument of `run`") {
                        Some(text) => text,
                        None => continue,
                    },
                };
                let place = |span: Span| item.span_within(span.start as usize, span.end as usize);
                scope.check(reader, text, Use::Command, &place);
                arguments.push(Template(text.into()));
            }
            let texts: Vec<&str> = arguments.iter().map(|argument| &*argument.0).collect();
            for (at, item) in node.items().enumerate().take(texts.len()) {
                let needed = template::needed_in_argument(&texts, at);
                scope.check_needed(reader, &needed, &|span| item.span_within(span.start as usize, span.end as usize));
            }
            if let Some(span) = layer.place("shell") {
                reader.report(
                    Diagnostic::warning(CONFLICT, span, "`shell` has no effect: `run` is a list, which no shell reads")
                        .related(key.span(), "the list is here")
                        .help("write `run` as one text to use a shell"),
                );
            }
            Run::Arguments(arguments)
        }
        Kind::Mapping => {
            reader.wrong_shape(node, "`run` must be a shell line, or a list of a program and its arguments");
            nothing()
        }
        _ => {
            reader.report(
                Diagnostic::error(MISSING_KEY, key.span(), format!("`run` of the task `{}` is empty", head.name))
                    .help("write a shell line, or a list of a program and its arguments"),
            );
            nothing()
        }
    }
}

fn when(reader: &mut Reader, scope: &Scope<'_>, node: Node<'_>) -> Option<Condition> {
    let text = reader.text(node, "`when`")?;
    let place = |span: Span| node.span_within(span.start as usize, span.end as usize);
    let (condition, mentions) = match condition::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let diagnostic = Diagnostic::error(
                CONDITION,
                place(error.span),
                format!("this condition cannot be read: {}", error.reason),
            );
            reader.report(match error.help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            });
            return None;
        }
    };
    for mention in mentions {
        let name = mention.name.as_str();
        let span = place(mention.span);
        let field = !mention.fields.is_empty();
        let fits = |meaning| match field {
            true => meaning == Meaning::Input,
            false => matches!(meaning, Meaning::Parameter | Meaning::Variable),
        };
        match scope.meaning(reader, name) {
            Some(meaning) if fits(meaning) => {}
            Some(Meaning::Input) => reader.report(
                Diagnostic::error(CONDITION, span, format!("`{name}` is a file; a condition needs a value in it"))
                    .help(format!("name a field of the JSON file, for example `{name}.accuracy >= 0.9`")),
            ),
            Some(_) if field => reader.report(
                Diagnostic::error(
                    CONDITION,
                    span,
                    format!("`{name}` is not an input of this task, so it has no fields"),
                )
                .help(format!("add the JSON file to `in:`, or write `{name}` alone")),
            ),
            Some(_) => reader.report(
                Diagnostic::error(CONDITION, span, format!("`{name}` cannot be used in a condition"))
                    .help("use parameters, variables of `for:`, and fields of JSON files that are inputs"),
            ),
            None => {
                let known: Vec<&str> = scope.known(reader, fits).collect();
                let mut diagnostic = Diagnostic::error(
                    CONDITION,
                    span,
                    if field {
                        format!("no input of this task is called `{name}`")
                    } else {
                        format!("no parameter or variable is called `{name}`")
                    },
                );
                diagnostic = diagnostic.suggest(name, known.iter().copied());
                diagnostic = diagnostic.help(if field {
                    format!("add it to `in:`; the value `{}` is read from that JSON file", mention.fields.join("."))
                } else if known.is_empty() {
                    "text must stand in quotes".to_owned()
                } else {
                    format!("known here: {}; text must stand in quotes", list(known.into_iter().take(20)))
                });
                reader.report(diagnostic);
            }
        }
    }
    Some(condition)
}

/// Whether an input or variable may stand for more than one file.
fn several(common: &Common<'_>, axes: &[Axis], inputs: &[Input], name: &str) -> bool {
    if let Some(input) = inputs.iter().find(|input| input.name == name) {
        return match input.source {
            FileSource::Data(data) => match &common.data[data.index()].source {
                DataSource::File(_) | DataSource::Url(_) => false,
                DataSource::Files(files) => files.len() > 1,
                DataSource::Replicas(names) => {
                    !matches!(&names[..], [one] if !one.contains(['*', '?']) && !one.ends_with('/'))
                }
                _ => true,
            },
            FileSource::Search { finding: Finding::Best | Finding::Trials, .. } => false,
            FileSource::Search { finding: Finding::Top { .. } | Finding::Front(_), .. } => true,
            FileSource::Output { task, output }
            | FileSource::Latest { task, output }
            | FileSource::Search { task, finding: Finding::Output(output) } => {
                let output: Option<&Output> = common.heads[task.index()].outputs.get(output as usize);
                output.is_some_and(|output| output.kind != OutputKind::File)
            }
        };
    }
    axes.iter().any(|axis| {
        axis.names.iter().any(|other| other == name)
            && matches!(axis.values, AxisValues::Files { by: Some(_), .. } | AxisValues::Arrivals { .. })
    })
}
