//! What a description names in the file system and in its list of items, looked up through the caller's eyes.

use super::codes::{ITEMS, LOG_PLACE, MANY, MISSING, SHORT};
use super::returned::Returned;
use super::statements::{Assignment, Queue, Statements, files};
use crate::dagman::macros::Macros;
use crate::dagman::queue::{Jobs, parse};
use crate::dagman::{Found, Surroundings, paths};
use rustc_hash::FxHashSet;
use tulpar_core::catalogue::submit_commands::canonical;
use tulpar_core::diagnostic::Diagnostic;

/// More jobs at once burden the schedd; pools ask for `max_idle` above it.
const MANY_JOBS: u64 = 10_000;
/// From so many on, starting a job costs more than a short one computes.
const MANY_SHORT: u64 = 1_000;
const SHORT_SECONDS: f64 = 300.0;
/// Looks at the file system, so that a lint stays quick.
const MOST_LOOKS: usize = 20_000;

/// One way in which a description is used: a node of a DAG, or on its own.
pub(super) struct Use {
    /// Of `VARS`.
    pub(super) variables: Vec<(String, String)>,
    /// Where it is submitted.
    pub(super) folder: String,
}

pub(super) struct Looking<'a> {
    pub(super) world: &'a dyn Surroundings,
    pub(super) in_dag: bool,
    /// What jobs before make; `None` where that cannot be known.
    pub(super) made: Option<&'a FxHashSet<String>>,
    pub(super) looks: usize,
    pub(super) said: FxHashSet<(&'static str, String)>,
}

impl Looking<'_> {
    pub(super) fn check(&mut self, found: &Statements, used: &Use, findings: &mut Vec<Diagnostic>) {
        let mut macros = Macros::default();
        used.variables.iter().for_each(|(name, value)| macros.set(name, value));
        for assignment in found.assignments.iter().filter(|assignment| !assignment.conditional) {
            macros.set(&assignment.key, &assignment.value);
            macros.set(&assignment.name, &assignment.value);
        }
        if found.queues.is_empty() {
            self.job(found, &macros, used, findings);
        }
        for queue in &found.queues {
            self.queue(found, queue, &macros, used, findings);
        }
    }

    fn queue(
        &mut self,
        found: &Statements,
        queue: &Queue,
        macros: &Macros,
        used: &Use,
        findings: &mut Vec<Diagnostic>,
    ) {
        let expanded = macros.expand(&queue.statement, self.world);
        if !expanded.undefined.is_empty() || !expanded.unknown.is_empty() {
            return;
        }
        let jobs = match parse(&expanded.text, &used.folder, self.world) {
            Ok(jobs) => jobs,
            Err(why) => {
                if self.said.insert(("queue", why.clone())) {
                    let first = queue.statement.lines().next().unwrap_or_default();
                    findings.push(Diagnostic::error(MISSING, queue.span, format!("`queue {first}`: {why}")));
                }
                return;
            }
        };
        let count = match &jobs {
            Jobs::Count(count) => *count,
            Jobs::Rows { rows, .. } => rows.len() as u64,
        };
        self.count(found, queue, count, findings);
        let mut returned = Returned::default();
        match jobs {
            Jobs::Count(count) => {
                for number in 0..count.min(2) {
                    let mut own = macros.clone();
                    ["Process", "ProcId", "Step"].iter().for_each(|name| own.set(name, &number.to_string()));
                    returned.job(found, queue, &own, self.world, findings);
                }
                self.job(found, macros, used, findings);
            }
            Jobs::Rows { names, rows } => {
                self.items(queue, &expanded.text, &used.folder, names.len() - 3, findings);
                for row in rows {
                    let mut own = macros.clone();
                    for (name, value) in names.iter().zip(&row) {
                        own.set(name, &value.to_string());
                        own.set(&canonical(&name.to_ascii_lowercase()), &value.to_string());
                    }
                    returned.job(found, queue, &own, self.world, findings);
                    self.job(found, &own, used, findings);
                    if self.looks >= MOST_LOOKS {
                        return;
                    }
                }
            }
        }
    }

    fn count(&mut self, found: &Statements, queue: &Queue, count: u64, findings: &mut Vec<Diagnostic>) {
        let late = ["max_idle", "max_materialize"].iter().any(|name| found.get(name).is_some());
        if count >= MANY_JOBS && !late && self.said.insert(("many", String::new())) {
            let message = format!("{count} jobs enter the queue at once");
            let help = "add `max_idle = 10000`, so that HTCondor makes them as others start";
            findings.push(Diagnostic::warning(MANY, queue.span, message).help(help));
        }
        let limit = ["allowed_execute_duration", "allowed_job_duration"];
        let seconds = limit.iter().filter_map(|name| found.value(name)?.trim().parse::<f64>().ok()).next();
        if count >= MANY_SHORT && seconds.is_some_and(|seconds| seconds < SHORT_SECONDS) {
            let message = format!("{count} jobs of less than five minutes: starting them takes longer than they do");
            let help = "let a job do several of them, so that it takes at least five minutes";
            findings.push(Diagnostic::warning(SHORT, queue.span, message).help(help));
        }
    }

    /// An item's line that leaves a variable empty, or is blank, gets what the first job had.
    fn items(&mut self, queue: &Queue, statement: &str, folder: &str, names: usize, findings: &mut Vec<Diagnostic>) {
        let Some((_, list)) = statement.split_once("from") else { return };
        let (text, file) = match list.trim().strip_prefix('(') {
            Some(inside) => (inside.trim_end_matches(')').trim_start_matches('\n').to_owned(), None),
            None => {
                let path = paths::join(folder, list.trim().trim_matches('"'));
                let Some(text) = self.world.text(&path) else { return };
                (text, Some(path))
            }
        };
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
        let short = lines.find(|(_, line)| {
            let values = line.split(|letter: char| letter == ',' || letter.is_whitespace());
            values.filter(|value| !value.is_empty()).count() < names
        });
        if let Some((number, _)) = short {
            let place = file.map_or(String::new(), |file| format!("`{file}` "));
            if self.said.insert(("items", place.clone())) {
                let line = number + 1;
                let message = format!(
                    "line {line} of {place}the items has no value for every variable: that job takes over what the first job had"
                );
                let help = "remove empty lines, and write a value for each variable";
                findings.push(Diagnostic::warning(ITEMS, queue.span, message).help(help));
            }
        }
    }

    fn job(&mut self, found: &Statements, macros: &Macros, used: &Use, findings: &mut Vec<Diagnostic>) {
        let folder = match found.get("initialdir").and_then(|own| self.expanded(own, macros)) {
            Some(own) => paths::join(&used.folder, &own),
            None => used.folder.clone(),
        };
        let sent = !found
            .value("transfer_executable")
            .is_some_and(|value| ["false", "no", "0"].contains(&value.trim().to_ascii_lowercase().as_str()));
        if let Some(program) = found.get("executable").filter(|_| sent)
            && let Some(path) = self.expanded(program, macros)
        {
            let path = paths::join(&used.folder, &path);
            self.exists(&path, program, "the executable", findings);
        }
        for name in ["transfer_input_files", "input"] {
            let Some(list) = found.get(name) else { continue };
            let Some(text) = self.expanded(list, macros) else { continue };
            for file in files(&text).filter(|file| !paths::is_url(file) && !file.contains(['*', '?', '['])) {
                let path = paths::join(&folder, file);
                let known = self.made.is_some_and(|made| made.contains(&path));
                // In a DAG a job before may make it.
                if !known && (!self.in_dag || self.made.is_some()) {
                    self.exists(&path, list, "an input; HTCondor says so only when the job runs", findings);
                }
            }
        }
        for name in ["log", "output", "error"] {
            let Some(stream) = found.get(name) else { continue };
            let Some(path) = self.expanded(stream, macros).filter(|path| !path.is_empty()) else { continue };
            let path = paths::join(&folder, &path);
            if self.in_dag && name == "log" && (path.starts_with("/tmp/") || path.starts_with("/var/tmp/")) {
                if self.said.insert(("log", path.clone())) {
                    let message =
                        format!("DAGMan refuses a log in `{}`, which not every machine shares", paths::folder(&path));
                    let help = "put it beside the DAG, or drop the line: DAGMan keeps a log of its own";
                    findings.push(Diagnostic::error(LOG_PLACE, stream.span, message).help(help));
                }
                continue;
            }
            let parent = paths::folder(&path);
            if !parent.is_empty()
                && self.look(parent) == Found::Nothing
                && self.said.insert(("folder", parent.to_owned()))
            {
                let message =
                    format!("there is no folder `{parent}` for `{name}`; HTCondor says so only when the job runs");
                findings.push(Diagnostic::error(MISSING, stream.span, message).help(format!("`mkdir -p {parent}`")));
            }
        }
    }

    fn exists(&mut self, path: &str, named: &Assignment, what: &str, findings: &mut Vec<Diagnostic>) {
        if self.look(path) == Found::Nothing && self.said.insert(("file", path.to_owned())) {
            let message = format!("there is no file `{path}`, {what}");
            findings.push(Diagnostic::error(MISSING, named.span, message));
        }
    }

    fn look(&mut self, path: &str) -> Found {
        self.looks += 1;
        if self.looks > MOST_LOOKS { Found::File } else { self.world.found(path) }
    }

    /// The value, when all in it is known.
    pub(super) fn expanded(&self, found: &Assignment, macros: &Macros) -> Option<String> {
        known(&found.value, macros, self.world)
    }
}

pub(super) fn known(value: &str, macros: &Macros, world: &dyn Surroundings) -> Option<String> {
    let expanded = macros.expand(value, world);
    let late = expanded.text.contains(|letter: char| ('\u{e000}'..='\u{e00f}').contains(&letter));
    let known = expanded.undefined.is_empty() && expanded.unknown.is_empty() && !expanded.too_long && !late;
    known.then(|| expanded.text.trim().to_owned())
}
