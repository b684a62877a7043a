//! `for:` — the values over which a task set runs.

use super::index::{Head, Index};
use super::reader::Reader;
use super::scope::{Meaning, Scope, scalar_value};
use super::template::is_identifier;
use super::{Axis, AxisValues, FileSource, OutputKind, Span, Value};
use crate::diagnostic::{Diagnostic, SCATTER, UNKNOWN_NAME};
use crate::ids::SetId;
use crate::yaml::{Kind, Node};
use rustc_hash::FxHashSet;

/// More tasks of one kind than any plan holds; a slip of the hand rather than a wish.
const MOST_TASKS: u64 = 10_000_000;

const ACCEPTED: &str = "write a range `1..6`, a list `[0.1, 0.01]`, or the name of files, such as `images`, `images by 100` or `frames by 4 as ready`";

/// Behind the size of a batch: batches are made as results come, not when all are there.
const AS_READY: &str = " as ready";

/// What is needed to read the scatter of one task.
pub(super) struct Context<'a, 'd> {
    pub(super) index: &'a Index<'d>,
    pub(super) heads: &'a [Head<'d>],
    pub(super) task: SetId,
}

/// Reads `for:` into axes, with the place of each axis' variable.
pub(super) fn read<'d>(
    reader: &mut Reader,
    context: &Context<'_, '_>,
    scope: &mut Scope<'d>,
    key: Node<'_>,
    node: Node<'d>,
) -> Vec<(Axis, Span)> {
    let mut axes = Vec::new();
    match node.kind() {
        Kind::Mapping => {
            for (variable, value) in node.entries() {
                let Some(name) = reader.name(variable, "a variable") else { continue };
                let values = values(reader, context, name, value);
                let files = matches!(values, Some(AxisValues::Files { .. } | AxisValues::Arrivals { .. }));
                scope.add(reader, name, if files { Meaning::File } else { Meaning::Variable }, variable.span());
                if let Some(values) = values {
                    axes.push((Axis { names: vec![name.to_owned()], values }, variable.span()));
                }
            }
        }
        Kind::Sequence => axes.extend(rows(reader, scope, node)),
        Kind::Scalar { text, .. } => {
            let diagnostic = Diagnostic::error(SCATTER, super::reader::place(key, node), "`for` needs a variable")
                .help(format!(
                    "write `for: {{part: {}}}`, and use `{{part}}` in the command",
                    if text.is_empty() { "1..6" } else { text }
                ));
            reader.report(diagnostic);
        }
    }
    if axes.is_empty() && node.size() == 0 && !matches!(node.kind(), Kind::Scalar { .. }) {
        reader.report(
            Diagnostic::error(SCATTER, node.span(), "`for` has no variable")
                .help("write `for: {part: 1..6}`, or remove it"),
        );
    }
    let mut tasks: u64 = 1;
    for (axis, _) in &axes {
        tasks = tasks.saturating_mul(known_length(&axis.values).unwrap_or(1));
    }
    if tasks > MOST_TASKS {
        reader.report(
            Diagnostic::error(SCATTER, node.span(), format!("this makes {tasks} tasks, more than {MOST_TASKS}"))
                .help("use fewer values, or let each task do more: `0..1000000 by 1000`"),
        );
        axes.clear();
    }
    axes
}

/// How many values there are, when that is known before the run.
pub(super) fn known_length(values: &AxisValues) -> Option<u64> {
    match values {
        AxisValues::Range { first, last, step } => {
            let forward = (*step > 0 && first <= last) || (*step < 0 && first >= last);
            Some(if forward { last.abs_diff(*first) / step.unsigned_abs() + 1 } else { 0 })
        }
        AxisValues::Rows(rows) => Some(rows.len() as u64),
        AxisValues::Trials(search) => Some(u64::from(search.trials)),
        AxisValues::Files { .. } | AxisValues::Arrivals { .. } => None,
    }
}

fn values(reader: &mut Reader, context: &Context<'_, '_>, variable: &str, node: Node<'_>) -> Option<AxisValues> {
    match node.kind() {
        Kind::Sequence => {
            let mut rows = Vec::with_capacity(node.size());
            let mut seen: FxHashSet<String> = FxHashSet::default();
            for item in node.items() {
                let value = element(reader, item)?;
                if !seen.insert(value.to_string()) {
                    let message = format!("`{value}` is there twice: the two tasks would be the same");
                    reader.report(Diagnostic::error(SCATTER, item.span(), message).help("remove one of them"));
                }
                rows.push(vec![value]);
            }
            if rows.is_empty() {
                reader.report(
                    Diagnostic::error(SCATTER, node.span(), format!("`{variable}` has no values")).help(ACCEPTED),
                );
                return None;
            }
            Some(AxisValues::Rows(rows))
        }
        Kind::Scalar { text, .. } if !node.is_null() => {
            let text = reader.bind(node, text)?;
            if text.contains("..") {
                range(reader, variable, node, &text)
            } else {
                files(reader, context, variable, node, &text)
            }
        }
        _ => {
            reader
                .wrong_shape(node, &format!("the values of `{variable}` must be a range, a list or the name of files"));
            None
        }
    }
}

fn element(reader: &mut Reader, item: Node<'_>) -> Option<Value> {
    match item.kind() {
        Kind::Scalar { text, quoted } if quoted || !item.is_null() => {
            let bound = reader.bind(item, text)?;
            Some(scalar_value(&bound, quoted))
        }
        _ => {
            reader.wrong_shape(item, "each value must be a number or a text");
            None
        }
    }
}

/// `for: [{lr: 0.1, seed: 1}, {lr: 0.2, seed: 5}]`: variables that advance together.
fn rows<'d>(reader: &mut Reader, scope: &mut Scope<'d>, node: Node<'d>) -> Option<(Axis, Span)> {
    let mut names: Vec<&'d str> = Vec::new();
    let mut rows = Vec::with_capacity(node.size());
    for (number, item) in node.items().enumerate() {
        if !matches!(item.kind(), Kind::Mapping) {
            reader.report(
                Diagnostic::error(SCATTER, item.span(), "each entry of this list must be a map of variables").help(
                    "write `for: {part: [a, b]}` for a list of values, or `for: [{part: a, seed: 1}, …]` for rows",
                ),
            );
            return None;
        }
        if number == 0 {
            for (key, _) in item.entries() {
                let name = reader.name(key, "a variable")?;
                scope.add(reader, name, Meaning::Variable, key.span());
                names.push(name);
            }
        }
        let mut row: Vec<Option<Value>> = vec![None; names.len()];
        for (key, value) in item.entries() {
            match names.iter().position(|name| Some(*name) == key.text()) {
                Some(column) => row[column] = Some(element(reader, value)?),
                None => {
                    let word = key.text().unwrap_or("");
                    let diagnostic = Diagnostic::error(SCATTER, key.span(), format!("the first row has no `{word}`"))
                        .suggest(word, names.iter().copied())
                        .help("every row has the same variables");
                    reader.report(diagnostic);
                    return None;
                }
            }
        }
        if let Some(column) = row.iter().position(Option::is_none) {
            reader.report(
                Diagnostic::error(SCATTER, item.span(), format!("this row has no `{}`", names[column]))
                    .help("every row has the same variables"),
            );
            return None;
        }
        rows.push(row.into_iter().flatten().collect());
    }
    if rows.is_empty() || names.is_empty() {
        return None;
    }
    let names = names.into_iter().map(str::to_owned).collect();
    Some((Axis { names, values: AxisValues::Rows(rows) }, node.span()))
}

/// Splits `images by 100` at the word `by`.
fn split_by(text: &str) -> (&str, Option<&str>) {
    match text.split_once(" by ") {
        Some((before, after)) => (before.trim(), Some(after.trim())),
        None => (text.trim(), None),
    }
}

fn range(reader: &mut Reader, variable: &str, node: Node<'_>, text: &str) -> Option<AxisValues> {
    let (bounds, by) = split_by(text);
    let (first, last) = bounds.split_once("..")?;
    let first = whole(reader, node, first.trim())?;
    let last = whole(reader, node, last.trim_start_matches(['.', '=']).trim())?;
    let step = match by {
        Some(by) => whole(reader, node, by)?,
        None => 1,
    };
    let fail = |reader: &mut Reader, message: String, help: String| {
        reader.report(Diagnostic::error(SCATTER, node.span(), message).help(help));
        None
    };
    if step == 0 {
        return fail(reader, "a range cannot advance by 0".to_owned(), format!("leave `by 0` out: `{first}..{last}`"));
    }
    if step > 0 && first > last {
        let message = format!("`{variable}` has no values: {first} is more than {last}");
        let help = match by {
            None => format!("to count down write `{first}..{last} by -1`"),
            Some(_) => format!("to count down write `{first}..{last} by -{step}`"),
        };
        return fail(reader, message, help);
    }
    if step < 0 && first < last {
        return fail(
            reader,
            format!("`{variable}` has no values: counting down from {first} never meets {last}"),
            format!("write `{last}..{first} by {step}`, or a positive step"),
        );
    }
    Some(AxisValues::Range { first, last, step })
}

/// A whole number, or a parameter that is one.
fn whole(reader: &mut Reader, node: Node<'_>, word: &str) -> Option<i64> {
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    let span =
        node.text().and_then(|text| text.find(word)).map_or(node.span(), |at| node.span_within(at, at + word.len()));
    match reader.params.get(word) {
        Some(Value::Integer(number)) => return Some(*number),
        Some(other) => {
            let message = format!("the parameter `{word}` is `{other}`, and a range needs a whole number");
            reader.report(Diagnostic::error(SCATTER, span, message).help(ACCEPTED));
        }
        None if is_identifier(word) => {
            let diagnostic = Diagnostic::error(UNKNOWN_NAME, span, format!("no parameter is called `{word}`"))
                .suggest(word, reader.params.keys().map(String::as_str))
                .help(format!("declare it: `params: {{{word}: 6}}`"));
            reader.report(diagnostic);
        }
        None => {
            let message = if word.is_empty() {
                "a range needs a number on both sides".to_owned()
            } else {
                format!("`{word}` is not a whole number")
            };
            reader.report(
                Diagnostic::error(SCATTER, span, message)
                    .help("write a range such as `1..6`, `1..parts` or `0..100 by 10`"),
            );
        }
    }
    None
}

fn files(
    reader: &mut Reader,
    context: &Context<'_, '_>,
    variable: &str,
    node: Node<'_>,
    text: &str,
) -> Option<AxisValues> {
    let (text, as_ready) = match text.trim_end().strip_suffix(AS_READY) {
        Some(before) => (before, true),
        None => (text, false),
    };
    let (name, by) = split_by(text);
    let span =
        node.text().and_then(|text| text.find(name)).map_or(node.span(), |at| node.span_within(at, at + name.len()));
    let dotted = name.split('.').all(is_identifier);
    if !dotted || reader.params.contains_key(name) {
        let diagnostic = Diagnostic::error(SCATTER, span, format!("`{variable}` cannot run over `{name}`"));
        let diagnostic =
            match Value::from_text(name) {
                Value::Integer(number) => diagnostic
                    .help(format!("for {number} tasks write `1..{number}`, for the single value `[{number}]`")),
                _ if reader.params.contains_key(name) => diagnostic
                    .help(format!("`{name}` is a parameter with one value; write `1..{name}` to count up to it")),
                _ if name.contains(['*', '/']) => diagnostic
                    .help(format!("give the files a name under `data:`, and write `{{{variable}: that_name}}`")),
                _ => diagnostic,
            };
        reader.report(diagnostic.help(ACCEPTED));
        return None;
    }
    let by = match by {
        None => None,
        Some(by) => match whole(reader, node, by)? {
            count @ 1..=0xffff_ffff => Some(count as u32),
            other => {
                reader.report(
                    Diagnostic::error(SCATTER, node.span(), format!("a batch cannot have {other} files"))
                        .help("write for example `images by 100`"),
                );
                return None;
            }
        },
    };
    let source = context.index.resolve(reader, context.heads, context.task, name, span)?;
    if as_ready {
        arrivals(reader, context, node, (name, span), source, by)
    } else {
        Some(AxisValues::Files { source, by })
    }
}

/// `frames by 4 as ready`: what is taken as it comes is one file from each of a known number of tasks.
fn arrivals(
    reader: &mut Reader,
    context: &Context<'_, '_>,
    node: Node<'_>,
    (name, span): (&str, Span),
    source: FileSource,
    by: Option<u32>,
) -> Option<AxisValues> {
    let FileSource::Output { task, output } = source else {
        reader.report(
            Diagnostic::error(SCATTER, span, format!("`{name}` is data: all of it is there before the run"))
                .help("leave `as ready` out; it is for files that other tasks make"),
        );
        return None;
    };
    let head = &context.heads[task.index()];
    let made = &head.outputs[output as usize];
    if made.kind != OutputKind::File || made.optional {
        let why = if made.optional { "may be missing" } else { "can be any number of files" };
        reader.report(
            Diagnostic::error(SCATTER, span, format!("`{name}` cannot be taken as it comes: it {why}"))
                .related(made.span, format!("`{}` of `{}` is here", made.name, head.name))
                .help("`as ready` counts results: it needs an output that is one file of each task")
                .help("or leave `as ready` out: the batches are made when all files are there"),
        );
        return None;
    }
    let Some(by) = by else {
        let message = "`as ready` needs to know how many results make a task";
        reader.report(
            Diagnostic::error(SCATTER, node.span(), message).help(format!("write for example `{name} by 4 as ready`")),
        );
        return None;
    };
    Some(AxisValues::Arrivals { task, output, by })
}
