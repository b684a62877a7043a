//! Two producers of one file, and file names that escape: both need the paths with every value in place.

use super::paths_of::{Known, Path, task_label};
use crate::diagnostic::{Diagnostic, ESCAPE, Findings, TWO_PRODUCERS};
use crate::workflow::paths;
use crate::workflow::template;
use crate::workflow::{AxisValues, DataFile, DataSource, Output, OutputKind, Task, Workflow};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

/// Who makes a file: enough to write its path again, so that equal hashes can be told from equal paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    Data { entry: u32, file: u32 },
    Task { task: u32, output: u32, number: u32 },
}

struct Makers<'a> {
    workflow: &'a Workflow,
    listings: Option<&'a [Vec<DataFile>]>,
    by_hash: FxHashMap<u64, Maker>,
}

pub(super) fn check(workflow: &Workflow, listings: Option<&[Vec<DataFile>]>, findings: &mut Findings) {
    let mut makers = Makers { workflow, listings, by_hash: FxHashMap::default() };
    makers.add_data(findings);
    let mut buffer = String::new();
    for (number, task) in workflow.tasks.iter().enumerate() {
        let known: Option<Vec<Known<'_>>> = task.scatter.iter().map(|axis| Known::new(axis, listings)).collect();
        for (position, output) in task.outputs.iter().enumerate() {
            let Some(path) = Path::new(workflow, &task.scatter, output) else { continue };
            if without_variable(task, output, &path, listings, findings) {
                continue;
            }
            match &known {
                Some(known) => makers.add_output((number, position), &path, known, &mut buffer, findings),
                None => {
                    let outline = path.outline();
                    if let Some(problem) = paths::problem(&outline) {
                        findings.push(problem.diagnostic(output.span, &described(task, output), &output.path.0));
                    }
                }
            }
        }
    }
}

fn described(task: &Task, output: &Output) -> String {
    format!("the output `{}` of `{}`", output.name, task.name)
}

/// A scatter whose tasks would all write the same file. Patterns are exempt: each task's files are its own.
fn without_variable(
    task: &Task,
    output: &Output,
    path: &Path<'_>,
    listings: Option<&[Vec<DataFile>]>,
    findings: &mut Findings,
) -> bool {
    if output.kind == OutputKind::Pattern {
        return false;
    }
    for (position, axis) in task.scatter.iter().enumerate() {
        let several = Known::new(axis, listings).is_none_or(|known| known.len() > 1);
        if path.uses(position) || !several {
            continue;
        }
        let variable = &axis.names[0];
        let name = &output.path.0;
        let (stem, rest) =
            match name.trim_end_matches('/').rfind('.').filter(|dot| !name[*dot..].contains('/') && *dot > 0) {
                Some(dot) => name.split_at(dot),
                None if name.ends_with('/') => (name.trim_end_matches('/'), "/"),
                None => (&name[..], ""),
            };
        let variable = match axis.values {
            AxisValues::Files { .. } => format!("{variable}.stem"),
            AxisValues::Arrivals { .. } => format!("{variable}.index"),
            AxisValues::Range { .. } | AxisValues::Rows(_) | AxisValues::Trials(_) => variable.clone(),
        };
        findings.push(
            Diagnostic::error(
                TWO_PRODUCERS,
                output.span,
                format!("every task of `{}` makes the same `{name}`", task.name),
            )
            .help(format!("add {{{variable}}} to the name, for example `{stem}-{{{variable}}}{rest}`")),
        );
        return true;
    }
    false
}

impl Makers<'_> {
    fn add_data(&mut self, findings: &mut Findings) {
        for (entry, data) in self.workflow.data.iter().enumerate() {
            let mut escaped = false;
            match (self.listings.and_then(|listings| listings.get(entry)), &data.source) {
                (Some(files), _) => {
                    for (file, found) in files.iter().enumerate() {
                        if let Some(problem) =
                            paths::problem(&found.path).filter(|_| !std::mem::replace(&mut escaped, true))
                        {
                            findings.push(problem.diagnostic(
                                data.span,
                                &format!("a file of `{}`", data.name),
                                &found.path,
                            ));
                        }
                        self.by_hash
                            .entry(hash(&found.path))
                            .or_insert(Maker::Data { entry: entry as u32, file: file as u32 });
                    }
                }
                (None, DataSource::File(path)) if !path.is_empty() => {
                    self.by_hash.entry(hash(plain(path))).or_insert(Maker::Data { entry: entry as u32, file: 0 });
                }
                _ => {}
            }
        }
    }

    /// `place` is the position of the task, and of the output in it.
    fn add_output(
        &mut self,
        place: (usize, usize),
        path: &Path<'_>,
        known: &[Known<'_>],
        buffer: &mut String,
        findings: &mut Findings,
    ) {
        let task = &self.workflow.tasks[place.0];
        let output = &task.outputs[place.1];
        let count: u64 = known.iter().map(Known::len).product();
        for combination in 0..count.min(u64::from(u32::MAX)) {
            buffer.clear();
            path.write(known, combination, buffer);
            if let Some(problem) = paths::problem(buffer) {
                let what = match task.scatter.is_empty() {
                    true => described(task, output),
                    false => format!(
                        "the output `{}` of `{}`",
                        output.name,
                        task_label(&task.name, &task.scatter, known, combination)
                    ),
                };
                findings.push(problem.diagnostic(output.span, &what, buffer));
                return;
            }
            if output.kind == OutputKind::Pattern {
                continue;
            }
            let here = Maker::Task { task: place.0 as u32, output: place.1 as u32, number: combination as u32 };
            let file = buffer.trim_end_matches('/');
            let mut key = hash(file);
            while let Some(maker) = self.by_hash.get(&key).copied() {
                if self.path_of(maker) == file {
                    self.report(here, maker, file, findings);
                    return;
                }
                // Equal hashes of different paths: try the next place.
                key = key.wrapping_add(1);
            }
            self.by_hash.insert(key, here);
        }
    }

    fn path_of(&self, maker: Maker) -> String {
        match maker {
            Maker::Data { entry, file } => {
                let listed = self.listings.and_then(|listings| listings.get(entry as usize)?.get(file as usize));
                match (listed, &self.workflow.data[entry as usize].source) {
                    (Some(file), _) => file.path.clone(),
                    (None, DataSource::File(path)) => plain(path).to_owned(),
                    _ => String::new(),
                }
            }
            Maker::Task { task, output, number } => {
                let task = &self.workflow.tasks[task as usize];
                let known: Option<Vec<Known<'_>>> =
                    task.scatter.iter().map(|axis| Known::new(axis, self.listings)).collect();
                let mut text = String::new();
                if let (Some(known), Some(path)) =
                    (known, Path::new(self.workflow, &task.scatter, &task.outputs[output as usize]))
                {
                    path.write(&known, u64::from(number), &mut text);
                }
                text.trim_end_matches('/').to_owned()
            }
        }
    }

    fn label(&self, maker: Maker) -> String {
        match maker {
            Maker::Data { entry, .. } => format!("the data entry `{}`", self.workflow.data[entry as usize].name),
            Maker::Task { task, number, .. } => {
                let task = &self.workflow.tasks[task as usize];
                let known: Option<Vec<Known<'_>>> =
                    task.scatter.iter().map(|axis| Known::new(axis, self.listings)).collect();
                format!("`{}`", task_label(&task.name, &task.scatter, &known.unwrap_or_default(), u64::from(number)))
            }
        }
    }

    fn report(&self, here: Maker, earlier: Maker, file: &str, findings: &mut Findings) {
        let Maker::Task { task, output, .. } = here else { return };
        let span = self.workflow.tasks[task as usize].outputs[output as usize].span;
        if file.is_empty() {
            findings.push(Diagnostic::error(ESCAPE, span, "an output has no name"));
            return;
        }
        let names = &self.workflow.tasks[task as usize];
        let own = matches!(earlier, Maker::Task { task: other, .. } if other == task) && !names.scatter.is_empty();
        if own {
            let path = &names.outputs[output as usize].path.0;
            let used = |name: &str| template::references(path).any(|reference| reference.name == name);
            let (used, unused): (Vec<&str>, Vec<&str>) = names
                .scatter
                .iter()
                .flat_map(|axis| axis.names.iter())
                .map(String::as_str)
                .partition(|name| used(name));
            let add: Vec<String> = match unused.is_empty() {
                true => used.iter().map(|name| format!("`{{{name}}}`")).collect(),
                false => unused.iter().map(|name| format!("`{{{name}}}`")).collect(),
            };
            findings.push(
                Diagnostic::error(
                    TWO_PRODUCERS,
                    span,
                    format!("{} and {} both make `{file}`", self.label(earlier), self.label(here)),
                )
                .help(format!("add {} to the name", add.join(" or "))),
            );
            return;
        }
        let (message, help, place) = match earlier {
            Maker::Data { entry, .. } => (
                format!("{} makes `{file}`, which is already a file of {}", self.label(here), self.label(earlier)),
                "give the output another name: data is never overwritten",
                self.workflow.data[entry as usize].span,
            ),
            Maker::Task { task, output, .. } => (
                format!("{} and {} both make `{file}`", self.label(earlier), self.label(here)),
                "give one of them another name, or a folder of its own",
                self.workflow.tasks[task as usize].outputs[output as usize].span,
            ),
        };
        let diagnostic = Diagnostic::error(TWO_PRODUCERS, span, message).help(help);
        findings.push(if place == span { diagnostic } else { diagnostic.related(place, "the other one is here") });
    }
}

fn plain(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}
