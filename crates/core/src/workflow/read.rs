//! From the text of a workflow to the model, with every problem at once.
//!
//! Two passes over the tasks: the first learns what each makes, the second what each needs, so that order
//! in the file does not matter. What cannot be read is reported and left out.

use super::axes::{self, AxisPlaces};
use super::index::{Head, Index};
use super::reader::Reader;
use super::settings::{self, Interner, Layer};
use super::task::{self, Common};
use super::{Hook, Span, Task, Workflow, declarations, keys, outputs};
use crate::diagnostic::{BAD_NAME, Diagnostic, MISSING_KEY};
use crate::ids::SetId;
use crate::yaml::{Document, Kind, Node};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Reads a workflow and binds its parameters, with `overrides` from the command line. `None` when there is
/// nothing left to check; a workflow that comes with errors is good for more findings, not for a run.
pub fn read(text: &str, overrides: &BTreeMap<String, String>) -> (Option<Workflow>, Vec<Diagnostic>) {
    let mut reader = Reader::new();
    let (document, diagnostics) = Document::parse(text);
    diagnostics.into_iter().for_each(|diagnostic| reader.report(diagnostic));
    let workflow = document.and_then(|document| decode(&mut reader, &document, overrides));
    let workflow = workflow.map(|mut workflow| {
        workflow.places.incomplete = reader.findings.has_errors();
        workflow
    });
    (workflow, reader.findings.finish())
}

/// Reads hooks that are for every run, from a file that has nothing else: `hooks:` with commands by occasion.
pub fn read_hooks(text: &str) -> (Vec<Hook>, Vec<Diagnostic>) {
    let mut reader = Reader::new();
    let (document, diagnostics) = Document::parse(text);
    diagnostics.into_iter().for_each(|diagnostic| reader.report(diagnostic));
    let mut hooks = Vec::new();
    if let Some(document) = document {
        for (key, value) in reader.map(document.root(), "the configuration").into_iter().flatten() {
            match key.text() {
                Some("hooks") => hooks.extend(settings::hooks(&mut reader, value)),
                _ => reader.unknown_key(key, "the configuration", &[&["hooks"]]),
            }
        }
    }
    (hooks, reader.findings.finish())
}

/// The names of the parameters that a workflow declares, whatever else is wrong with it.
pub fn parameters(text: &str) -> Vec<String> {
    let Some(document) = Document::parse(text).0 else { return Vec::new() };
    let top = document.root().entries();
    let params = top.filter(|(key, _)| key.text() == Some("params"));
    params.flat_map(|(_, value)| value.entries()).filter_map(|(key, _)| key.text().map(str::to_owned)).collect()
}

/// The top-level nodes.
#[derive(Default)]
struct Top<'d> {
    name: Option<Node<'d>>,
    about: Option<Node<'d>>,
    params: Option<Node<'d>>,
    data: Option<Node<'d>>,
    defaults: Option<Node<'d>>,
    groups: Option<Node<'d>>,
    hooks: Option<Node<'d>>,
    metadata: Option<Node<'d>>,
    tasks: Option<Node<'d>>,
}

fn decode(reader: &mut Reader, document: &Document<'_>, overrides: &BTreeMap<String, String>) -> Option<Workflow> {
    let root = document.root();
    let mut top = Top::default();
    for (key, value) in reader.map(root, "a workflow")? {
        let place = match key.text() {
            Some("workflow") => &mut top.name,
            Some("about") => &mut top.about,
            Some("params") => &mut top.params,
            Some("data") => &mut top.data,
            Some("defaults") => &mut top.defaults,
            Some("groups") => &mut top.groups,
            Some("hooks") => &mut top.hooks,
            Some("metadata") => &mut top.metadata,
            Some("tasks") => &mut top.tasks,
            _ => {
                reader.unknown_key(key, "a workflow", &[keys::TOP]);
                continue;
            }
        };
        // A key with nothing after it says nothing, except where something must be said.
        if !value.is_null() || matches!(key.text(), Some("workflow" | "tasks")) {
            *place = Some(value);
        }
    }
    let start = Span { start: root.span().start, end: root.span().start };
    let name = match top.name {
        Some(node) => workflow_name(reader, node).unwrap_or_default(),
        None => {
            reader.report(
                Diagnostic::error(MISSING_KEY, start, "the workflow has no name")
                    .help("begin the file with `workflow: my-name`"),
            );
            String::new()
        }
    };
    let doc = top.about.and_then(|node| reader.text(node, "`about`")).unwrap_or("").to_owned();
    declarations::params(reader, top.params, overrides);
    let data = declarations::data(reader, top.data);
    let defaults = top.defaults.map_or_else(Layer::new, |node| Layer::read_all(reader, node, "`defaults`"));
    let mut groups = FxHashMap::default();
    for (key, value) in top.groups.and_then(|node| reader.map(node, "`groups`")).into_iter().flatten() {
        let Some(name) = reader.name(key, "a group") else { continue };
        groups.insert(name, Layer::read_all(reader, value, &format!("the group `{name}`")));
    }
    let hooks = top.hooks.map(|node| settings::hooks(reader, node)).unwrap_or_default();
    let metadata = top.metadata.map(|node| declarations::metadata(reader, node)).unwrap_or_default();
    let Some(tasks) = top.tasks.filter(|node| !node.is_null()) else {
        reader.report(
            Diagnostic::error(MISSING_KEY, start, "the workflow has no tasks")
                .help("add `tasks:` with at least one task that has `run:`"),
        );
        return None;
    };
    let (mut heads, nodes) = heads(reader, tasks)?;
    let mut interner = Interner::new(reader, defaults);
    let mut decoded: Vec<Task> = Vec::with_capacity(heads.len());
    let mut axis_places = AxisPlaces::default();
    {
        let index = Index::new(&data, &heads);
        let common = Common { data: &data, heads: &heads, index, groups };
        let mut places = Vec::new();
        for (number, node) in nodes.into_iter().enumerate() {
            let set = SetId::from(number);
            decoded.push(task::read(reader, &common, &mut interner, set, node, &mut places));
            if !places.is_empty() {
                axis_places.insert(set, std::mem::take(&mut places));
            }
        }
    }
    for (task, head) in decoded.iter_mut().zip(&mut heads) {
        task.outputs = std::mem::take(&mut head.outputs);
    }
    axes::check(reader, &decoded, &axis_places);
    let params = std::mem::take(&mut reader.params);
    Some(Workflow {
        name,
        doc,
        params,
        data,
        tasks: decoded,
        members: Vec::new(),
        hooks,
        metadata,
        places: interner.places,
    })
}

/// The name of a workflow names the folders of its runs too.
fn workflow_name(reader: &mut Reader, node: Node<'_>) -> Option<String> {
    let name = reader.text(node, "`workflow`")?;
    if is_workflow_name(name) {
        return Some(name.to_owned());
    }
    let shown: String = name.escape_debug().take(60).collect();
    let dots = if shown.len() < name.len() { "…" } else { "" };
    reader.report(
        Diagnostic::error(BAD_NAME, node.span(), format!("`{shown}{dots}` cannot be the name of a workflow"))
            .help("its runs are kept in folders of that name: it has no `/` and no control character, does not begin with `.` or `-`, and is at most 200 bytes long"),
    );
    None
}

/// True if folders and commands can be called so, with the number of a run after it.
fn is_workflow_name(name: &str) -> bool {
    let bad = |letter: char| letter == '/' || letter.is_control();
    !name.is_empty() && name.len() <= LONGEST_NAME && !name.starts_with(['.', '-']) && !name.contains(bad)
}

/// A file name has at most 255 bytes almost everywhere; the rest is for the number of the run and for marks.
pub const LONGEST_NAME: usize = 200;

/// The first pass: names and outputs of all tasks.
fn heads<'d>(reader: &mut Reader, tasks: Node<'d>) -> Option<(Vec<Head<'d>>, Vec<Node<'d>>)> {
    let entries = reader.map(tasks, "`tasks`")?;
    let count = tasks.size() / 2;
    let mut heads = Vec::with_capacity(count);
    let mut nodes = Vec::with_capacity(count);
    for (key, value) in entries {
        let Some(name) = reader.name(key, "a task") else { continue };
        let mut found = Vec::new();
        let mut searches = false;
        if matches!(value.kind(), Kind::Mapping) {
            for (key, value) in value.entries() {
                match key.text() {
                    Some("out") => {
                        found = outputs::read(reader, key, value);
                        found.shrink_to_fit();
                    }
                    Some("search") => searches = true,
                    _ => {}
                }
            }
        }
        heads.push(Head { name, span: key.span(), outputs: found, searches });
        nodes.push(value);
    }
    Some((heads, nodes))
}
