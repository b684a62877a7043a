//! A workflow as the text that reads as it: `read(write(w))` is `w` again, places aside.
//!
//! It writes what the language can say. Settings that several tasks share become a group.

use super::template::{self, Values};
use super::write_settings::bytes;
use super::{
    Axis, AxisValues, Comparison, Condition, Data, DataSource, FileSource, Finding, Input, Metadata, Operand, Output,
    Run, Search, Settings, Task, Value, Words, Workflow,
};
use crate::catalogue::Chosen;
use crate::units::Bytes;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use tulpar_hpo::Direction;

pub fn write(workflow: &Workflow) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "workflow: {}", scalar(&workflow.name));
    if !workflow.doc.is_empty() {
        let _ = writeln!(out, "about: {}", text(&workflow.doc, 2));
    }
    if !workflow.params.is_empty() {
        out.push_str("params:\n");
        for (name, value) in &workflow.params {
            let _ = writeln!(out, "  {name}: {}", plain_value(value));
        }
    }
    if !workflow.data.is_empty() {
        out.push_str("data:\n");
        workflow.data.iter().for_each(|entry| data(&mut out, entry));
    }
    let groups = groups(&workflow.tasks);
    if !groups.names.is_empty() {
        out.push_str("groups:\n");
        for (settings, name) in &groups.names {
            let _ = writeln!(out, "  {name}:");
            settings_of(&mut out, settings, 4);
        }
    }
    super::write_settings::hooks(&mut out, &workflow.hooks, 0);
    metadata(&mut out, &workflow.metadata);
    out.push_str("tasks:\n");
    workflow.tasks.iter().for_each(|found| task(&mut out, workflow, found, &groups));
    out
}

fn metadata(out: &mut String, all: &Metadata) {
    if all.is_empty() {
        return;
    }
    out.push_str("metadata:\n");
    let words = |out: &mut String, indent: usize, words: &Words| {
        for (name, value) in words {
            let _ = writeln!(out, "{:indent$}{}: {}", "", quoted(name), quoted(value));
        }
    };
    if !all.workflow.is_empty() {
        out.push_str("  workflow:\n");
        words(out, 4, &all.workflow);
    }
    for (title, entries) in [("tasks", &all.tasks), ("files", &all.files)] {
        if !entries.is_empty() {
            let _ = writeln!(out, "  {title}:");
        }
        for (name, entry) in entries {
            let _ = writeln!(out, "    {}:", quoted(name));
            words(out, 6, entry);
        }
    }
}

/// Settings that more than one task has, in the order of the tasks.
#[derive(Default)]
struct Groups {
    names: Vec<(Arc<Settings>, String)>,
    by_settings: FxHashMap<Arc<Settings>, usize>,
}

fn groups(tasks: &[Task]) -> Groups {
    let mut counts: FxHashMap<&Settings, usize> = FxHashMap::default();
    for task in tasks {
        *counts.entry(&task.settings).or_default() += 1;
    }
    let usual = Settings::default();
    let mut groups = Groups::default();
    for task in tasks {
        let shared = counts[&*task.settings] > 1 && *task.settings != usual;
        if shared && !groups.by_settings.contains_key(&task.settings) {
            let name = format!("group_{}", groups.names.len() + 1);
            groups.by_settings.insert(task.settings.clone(), groups.names.len());
            groups.names.push((task.settings.clone(), name));
        }
    }
    groups
}

fn data(out: &mut String, entry: &Data) {
    let name = &entry.name;
    match &entry.source {
        DataSource::File(place) | DataSource::Glob(place) | DataSource::Directory(place) => {
            let _ = writeln!(out, "  {name}: {}", scalar(&escaped(place)));
        }
        DataSource::Manifest(place) => {
            let _ = writeln!(out, "  {name}: {{manifest: {}}}", scalar(&escaped(place)));
        }
        DataSource::Url(place) => {
            let _ = writeln!(out, "  {name}: {{url: {}}}", scalar(&escaped(place)));
        }
        DataSource::Replicas(names) => replicas(out, name, names.iter().map(String::as_str)),
        // Where they are is known from the catalogue again.
        DataSource::Copies(copies) => replicas(out, name, copies.iter().map(Chosen::name)),
        DataSource::Files(files) if files.is_empty() => {
            let _ = writeln!(out, "  {name}: {{files: {{}}}}");
        }
        DataSource::Files(files) => {
            let _ = writeln!(out, "  {name}:\n    files:");
            for (path, place) in files {
                let _ = writeln!(out, "      {}: {}", scalar(&escaped(path)), scalar(&escaped(place)));
            }
            if !entry.sha256.is_empty() {
                let _ = writeln!(out, "    sha256:");
            }
            for (path, sum) in &entry.sha256 {
                let _ = writeln!(out, "      {}: {}", scalar(path), quoted(&sum.hex()));
            }
        }
    }
}

fn replicas<'n>(out: &mut String, name: &str, replicas: impl Iterator<Item = &'n str>) {
    let names: Vec<String> = replicas.map(|name| quoted(&escaped(name))).collect();
    let _ = match &names[..] {
        [only] => writeln!(out, "  {name}: {{replica: {only}}}"),
        _ => writeln!(out, "  {name}: {{replica: [{}]}}", names.join(", ")),
    };
}

fn task(out: &mut String, workflow: &Workflow, task: &Task, groups: &Groups) {
    let _ = writeln!(out, "  {}:", task.name);
    axes(out, workflow, &task.scatter);
    inputs(out, workflow, &task.inputs);
    outputs(out, &task.outputs);
    if !task.after.is_empty() {
        let names: Vec<&str> = task.after.iter().map(|set| workflow.tasks[set.index()].name.as_str()).collect();
        let _ = writeln!(out, "    after: [{}]", names.join(", "));
    }
    match groups.by_settings.get(&task.settings) {
        Some(group) => {
            let _ = writeln!(out, "    group: {}", groups.names[*group].1);
        }
        None => settings_of(out, &task.settings, 4),
    }
    if let Some(condition) = &task.when {
        let _ = writeln!(out, "    when: {}", quoted(&condition_text(condition, false)));
    }
    command(out, &task.run, 4);
    variants(out, task);
}

fn command(out: &mut String, run: &Run, indent: usize) {
    match run {
        Run::Shell(line) => {
            let _ = writeln!(out, "{:indent$}run: {}", "", text(&line.0, indent + 2));
        }
        Run::Arguments(words) => {
            let _ = writeln!(out, "{:indent$}run:", "");
            for word in words {
                let _ = writeln!(out, "{:indent$}  - {}", "", quoted(&word.0));
            }
        }
        // A plan is no workflow of a user's: it is never written as one.
        Run::Planned(_) => {
            let _ = writeln!(out, "{:indent$}run: ':'", "");
        }
    }
}

fn variants(out: &mut String, task: &Task) {
    if task.variants.is_empty() {
        return;
    }
    out.push_str("    variants:\n");
    for variant in &task.variants {
        let lines = super::write_settings::variant(variant, &task.settings.request);
        if lines.is_empty() && variant.run.is_none() {
            out.push_str("      - {}\n");
            continue;
        }
        let mut text = String::new();
        for (key, value) in lines {
            let _ = writeln!(text, "        {key}: {value}");
        }
        if let Some(run) = &variant.run {
            command(&mut text, run, 8);
        }
        // Its first key stands behind the dash.
        let _ = write!(out, "      - {}", text.trim_start());
    }
}

fn source(workflow: &Workflow, source: FileSource) -> String {
    match source {
        FileSource::Data(data) => workflow.data[data.index()].name.clone(),
        FileSource::Output { task, output } | FileSource::Latest { task, output } => {
            let task = &workflow.tasks[task.index()];
            format!("{}.{}", task.name, task.outputs[output as usize].name)
        }
        FileSource::Search { task, finding } => {
            let task = &workflow.tasks[task.index()];
            match finding {
                Finding::Best => format!("{}.best", task.name),
                Finding::Trials => format!("{}.trials", task.name),
                Finding::Output(output) => format!("{}.best.{}", task.name, task.outputs[output as usize].name),
                Finding::Top { trials, output } => {
                    format!("{}.best({trials}).{}", task.name, task.outputs[output as usize].name)
                }
                Finding::Front(output) => format!("{}.front.{}", task.name, task.outputs[output as usize].name),
            }
        }
    }
}

fn axes(out: &mut String, workflow: &Workflow, axes: &[Axis]) {
    let mut axes = axes;
    if let [elements @ .., Axis { values: AxisValues::Trials(found), .. }] = axes {
        search(out, found);
        axes = elements;
    }
    if axes.is_empty() {
        return;
    }
    out.push_str("    for:\n");
    for axis in axes {
        match &axis.values {
            AxisValues::Rows(rows) if axis.names.len() > 1 => {
                for row in rows {
                    let columns = axis.names.iter().zip(row);
                    let columns: Vec<String> =
                        columns.map(|(name, value)| format!("{name}: {}", bound_value(value))).collect();
                    let _ = writeln!(out, "      - {{{}}}", columns.join(", "));
                }
            }
            values => {
                let values = match values {
                    AxisValues::Range { first, last, step: 1 } => format!("{first}..{last}"),
                    AxisValues::Range { first, last, step } => format!("{first}..{last} by {step}"),
                    AxisValues::Files { source: from, by: None } => source(workflow, *from),
                    AxisValues::Files { source: from, by: Some(by) } => format!("{} by {by}", source(workflow, *from)),
                    AxisValues::Arrivals { task, output, by } => {
                        let from = FileSource::Output { task: *task, output: *output };
                        format!("{} by {by} as ready", source(workflow, from))
                    }
                    AxisValues::Trials(_) => continue,
                    AxisValues::Rows(rows) => {
                        let values: Vec<String> = rows.iter().flatten().map(bound_value).collect();
                        format!("[{}]", values.join(", "))
                    }
                };
                let _ = writeln!(out, "      {}: {values}", axis.names[0]);
            }
        }
    }
}

fn search(out: &mut String, search: &Search) {
    let study = &search.study;
    let _ = writeln!(out, "    search:\n      trials: {}", search.trials);
    if let Some(parallel) = search.parallel {
        let _ = writeln!(out, "      parallel: {parallel}");
    }
    if let Some(time) = search.time {
        let _ = writeln!(out, "      time: {} ms", time.as_millis());
    }
    if let Some(time) = search.gpu_time {
        let _ = writeln!(out, "      gpu_hours: {}", time.as_secs_f64() / 3600.0);
    }
    if !search.constraints.is_empty() {
        let limits = search.constraints.iter().map(|limit| {
            let sign = if limit.at_most { "<=" } else { ">=" };
            quoted(&format!("{} {sign} {}", limit.name, limit.bound))
        });
        let _ = writeln!(out, "      constraints: [{}]", limits.collect::<Vec<_>>().join(", "));
    }
    for (key, text) in [("storage", &search.storage), ("study", &search.name)] {
        if let Some(text) = text {
            let _ = writeln!(out, "      {key}: {}", quoted(text));
        }
    }
    for (key, direction) in [("minimize", Direction::Minimize), ("maximize", Direction::Maximize)] {
        let names = study.objectives.iter().filter(|objective| objective.direction == direction);
        let names: Vec<String> = names.map(|objective| quoted(&objective.name)).collect();
        if !names.is_empty() {
            let _ = writeln!(out, "      {key}: [{}]", names.join(", "));
        }
    }
    // JSON is YAML too.
    let json = |value: serde_json::Result<String>| value.unwrap_or_default();
    let _ = writeln!(out, "      space: {}", json(serde_json::to_string(&study.space)));
    let _ = writeln!(out, "      sampler: {}", json(serde_json::to_string(&study.sampler)));
    let _ = writeln!(out, "      pruner: {}", json(serde_json::to_string(&study.pruner)));
    let _ = writeln!(out, "      seed: {}", study.seed);
    if !study.starts.is_empty() {
        let _ = writeln!(out, "      start: {}", json(serde_json::to_string(&study.starts)));
    }
}

fn inputs(out: &mut String, workflow: &Workflow, inputs: &[Input]) {
    if inputs.is_empty() {
        return;
    }
    let sources: Vec<String> = inputs.iter().map(|input| source(workflow, input.source)).collect();
    let latest = |input: &Input| matches!(input.source, FileSource::Latest { .. });
    let special = |input: &Input| input.bypass || input.program || latest(input);
    let named =
        |(input, source): (&Input, &String)| source.rsplit('.').next() == Some(input.name.as_str()) && !special(input);
    out.push_str("    in:\n");
    if inputs.iter().zip(&sources).all(named) {
        for source in sources {
            let _ = writeln!(out, "      - {source}");
        }
    } else {
        for (input, source) in inputs.iter().zip(sources) {
            let flags = flags([("bypass", input.bypass), ("program", input.program), ("latest", latest(input))]);
            let _ = match flags.is_empty() {
                true => writeln!(out, "      {}: {source}", input.name),
                false => writeln!(out, "      {}: {{from: {source}{flags}}}", input.name),
            };
        }
    }
}

fn outputs(out: &mut String, outputs: &[Output]) {
    if outputs.is_empty() {
        return;
    }
    out.push_str("    out:\n");
    for output in outputs {
        let path = scalar(&output.path.0);
        let size = output.size.map(|size| format!(", size: {}", bytes(Bytes(size)))).unwrap_or_default();
        let options = [("optional", output.optional), ("temp", output.temporary), ("register", output.register)];
        let options = flags(options) + &size;
        let _ = match options.is_empty() {
            true => writeln!(out, "      {}: {path}", output.name),
            false => writeln!(out, "      {}: {{path: {path}{options}}}", output.name),
        };
    }
}

/// `, name: true` for those that are on.
fn flags<const N: usize>(flags: [(&str, bool); N]) -> String {
    flags.into_iter().filter(|(_, on)| *on).map(|(name, _)| format!(", {name}: true")).collect()
}

fn settings_of(out: &mut String, settings: &Settings, indent: usize) {
    super::write_settings::write(out, settings, indent);
}

fn condition_text(condition: &Condition, nested: bool) -> String {
    let joined = |parts: &[Condition], word: &str| {
        let text = parts.iter().map(|part| condition_text(part, true)).collect::<Vec<_>>().join(word);
        if nested { format!("({text})") } else { text }
    };
    match condition {
        Condition::All(parts) => joined(parts, " and "),
        Condition::Any(parts) => joined(parts, " or "),
        Condition::Not(part) => format!("not {}", condition_text(part, true)),
        Condition::Truth(operand) => operand_text(operand),
        Condition::Compare { left, operator, right } => {
            let operator = match operator {
                Comparison::Equal => "==",
                Comparison::NotEqual => "!=",
                Comparison::Less => "<",
                Comparison::LessOrEqual => "<=",
                Comparison::Greater => ">",
                Comparison::GreaterOrEqual => ">=",
            };
            format!("{} {operator} {}", operand_text(left), operand_text(right))
        }
    }
}

fn operand_text(operand: &Operand) -> String {
    match operand {
        Operand::Literal(Value::Text(text)) if text.contains('"') => format!("'{text}'"),
        Operand::Literal(Value::Text(text)) => format!("\"{text}\""),
        Operand::Literal(value) => value.to_string(),
        Operand::Variable(name) => name.clone(),
        Operand::Field { input, pointer } => format!("{input}{}", pointer.replace('/', ".")),
    }
}

/// Where parameters are put in when reading: names in braces are doubled to stay as they are.
pub(super) fn escaped(text: &str) -> String {
    if !text.contains('{') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut at = 0;
    for reference in template::references(text) {
        let (start, end) = (reference.span.start as usize, reference.span.end as usize);
        let _ = write!(out, "{}{{{}}}", &text[at..start], &text[start..end]);
        at = end;
    }
    out.push_str(&text[at..]);
    debug_assert!(template::plain(&out, &mut |_, _| Some(Values::one(""))).is_ok());
    out
}

fn plain_value(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        other => other.to_string(),
    }
}

fn bound_value(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(&escaped(text)),
        other => other.to_string(),
    }
}

/// A text that may have several lines: as a block where that reads as it is.
fn text(text: &str, indent: usize) -> String {
    let blockable = text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && !text.ends_with("\n\n")
        && text != "\n"
        && text.chars().all(|letter| letter == '\n' || letter == '\t' || !is_special(letter));
    if !blockable {
        return scalar(text);
    }
    let mut out = if text.ends_with('\n') { "|".to_owned() } else { "|-".to_owned() };
    for line in text.trim_end_matches('\n').split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent));
            out.push_str(line);
        }
    }
    out
}

/// One value: without quotes where nobody could take it for anything else.
pub(super) fn scalar(text: &str) -> String {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || b"_./".contains(&byte));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./-+@%".contains(&byte);
    let word =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    // A dot first may begin a number: `.5`, `.inf`.
    let number = text.starts_with('.') && text.as_bytes().get(1).is_none_or(|byte| !b"/.".contains(byte));
    if first && !word && !number && text.bytes().all(plain) { text.to_owned() } else { quoted(text) }
}

fn is_special(letter: char) -> bool {
    // What YAML takes for line breaks or forbids, beside the usual control characters.
    letter.is_control() || matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            other if is_special(other) => {
                let _ = write!(out, "\\u{:04x}", other as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
