//! The commands of a DAG file, with its splices, sub-DAGs and included files.

use super::codes::{DUPLICATE, LINE, NO_FILE, NOT_CARRIED, NOT_RUN, REJECTED, TOO_MUCH, UNKNOWN_NODE};
use super::dag::{Dag, Node, Script, Submit, Variable};
use super::lines::{Line, Lines, word};
use super::report::{Place, Report};
use super::{Surroundings, paths};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tulpar_core::diagnostic::Diagnostic;

const DEEPEST: usize = 32;
const MOST_FILES: usize = 20_000;
const MOST_NODES: usize = 2_000_000;
const MOST_EDGES: usize = 20_000_000;

const COMMANDS: &[&str] = &[
    "job",
    "data",
    "subdag",
    "splice",
    "final",
    "provisioner",
    "service",
    "include",
    "submit-description",
    "parent",
    "vars",
    "retry",
    "priority",
    "script",
    "pre_skip",
    "done",
    "abort-dag-on",
    "category",
    "maxjobs",
    "config",
    "dot",
    "node_status_file",
    "jobstate_log",
    "set_job_attr",
    "env",
    "reject",
    "connect",
    "pin_in",
    "pin_out",
    "save_point_file",
];

/// They cannot be names of nodes.
const RESERVED: &[&str] = &["parent", "child", "all_nodes"];

pub(crate) fn is_command(word: &str) -> bool {
    COMMANDS.iter().any(|command| command.eq_ignore_ascii_case(word))
}

/// `None` when there is nothing to run; why is in the report.
pub(crate) fn parse(text: &str, surroundings: &dyn Surroundings, report: &mut Report) -> Option<Dag> {
    let mut parser = Parser { surroundings, report, dag: Dag::default(), index: FxHashMap::default(), files: 0 };
    let mut scope = Scope { prefix: String::new(), folder: String::new(), ..Scope::default() };
    parser.scope(text, None, &mut scope, 0);
    if parser.dag.nodes.is_empty() {
        parser.report.error(&Place::default(), LINE, "the DAG has no nodes");
        return None;
    }
    parser.dag.edges.sort_unstable();
    parser.dag.edges.dedup();
    Some(parser.dag)
}

/// One DAG file with what it includes: names in it mean its own nodes.
#[derive(Default)]
struct Scope {
    prefix: String,
    folder: String,
    /// The first of its nodes.
    start: usize,
    descriptions: FxHashMap<String, (Arc<str>, Place)>,
    groups: FxHashMap<String, Group>,
    /// Commands that may come before the nodes that they are about.
    later: Vec<Line>,
}

/// The ends of a splice or sub-DAG.
#[derive(Clone, Default)]
struct Group {
    sources: Vec<u32>,
    sinks: Vec<u32>,
}

struct Parser<'a> {
    surroundings: &'a dyn Surroundings,
    report: &'a mut Report,
    dag: Dag,
    index: FxHashMap<String, u32>,
    files: usize,
}

impl Parser<'_> {
    fn scope(&mut self, text: &str, file: Option<Arc<str>>, scope: &mut Scope, depth: usize) {
        scope.start = self.dag.nodes.len();
        self.text(text, file, scope, depth);
        for line in std::mem::take(&mut scope.later) {
            self.later(&line, scope);
        }
    }

    fn text(&mut self, text: &str, file: Option<Arc<str>>, scope: &mut Scope, depth: usize) {
        let mut lines = Lines::new(text, file);
        while let Some(line) = lines.next() {
            let (command, rest) = word(&line.text);
            match command.to_ascii_lowercase().as_str() {
                "job" => self.node(&line, rest, false, &mut lines, scope),
                "final" => {
                    if scope.prefix.is_empty() {
                        self.node(&line, rest, true, &mut lines, scope);
                    } else {
                        self.report.warning(&line.place, NOT_RUN, "a FINAL node inside a splice is never run");
                    }
                }
                kind @ ("data" | "provisioner" | "service") => {
                    let (name, _) = word(rest);
                    let message = format!("the {} node `{name}` is not run", kind.to_ascii_uppercase());
                    let help = match kind {
                        "data" => "let a job fetch or store the files, or declare them under `data:`",
                        "provisioner" => "Tulpar runs on sites that are there; start them before",
                        _ => "start what other jobs need beside them before the run",
                    };
                    self.report.push(&line.place, Diagnostic::warning(NOT_RUN, None, message).help(help));
                    if rest.ends_with('{') {
                        self.block(&line, &mut lines);
                    }
                }
                "submit-description" => {
                    let (name, open) = word(rest);
                    if open != "{" {
                        self.report.error(&line.place, LINE, "`SUBMIT-DESCRIPTION name {` begins a description");
                    } else if let Some(found) = self.block(&line, &mut lines) {
                        scope.descriptions.insert(name.to_owned(), found);
                    }
                }
                "splice" => self.splice(&line, rest, scope, depth),
                "subdag" => {
                    let (kind, rest) = word(rest);
                    if kind.eq_ignore_ascii_case("external") {
                        self.splice(&line, rest, scope, depth);
                    } else {
                        self.report.error(&line.place, LINE, "`SUBDAG EXTERNAL name file` is the only kind of sub-DAG");
                    }
                }
                "include" => {
                    let path = paths::join(&scope.folder, unquoted(rest));
                    if let Some(text) = self.read(&line.place, &path, depth) {
                        self.text(&text, Some(path.into()), scope, depth + 1);
                    }
                }
                "config" | "dot" | "node_status_file" | "jobstate_log" | "save_point_file" => {
                    let message = format!("`{}` has no effect here", command.to_ascii_uppercase());
                    self.report.warning(&line.place, NOT_CARRIED, message);
                }
                "reject" => {
                    let message = "the DAG is marked with `REJECT`, so that nobody runs it";
                    let help = "DAGMan writes that into what it could not read whole; mend the DAG and remove the line";
                    self.report.push(&line.place, Diagnostic::error(REJECTED, None, message).help(help));
                }
                "maxjobs" | "category" => {
                    let message = "categories and their limits are not carried over";
                    let help = "`cpus:` and `memory:` keep heavy tasks apart";
                    let diagnostic = Diagnostic::warning(NOT_CARRIED, None, message).help(help);
                    self.report.once(&line.place, "category", diagnostic);
                }
                "set_job_attr" | "env" => {
                    let message = format!("`{}` is not carried over: {rest}", command.to_ascii_uppercase());
                    let help = "give a task its variables in the submit description, with `environment`";
                    self.report.push(&line.place, Diagnostic::warning(NOT_CARRIED, None, message).help(help));
                }
                "connect" | "pin_in" | "pin_out" => {
                    let message = "pins of splices are not carried over";
                    let help = "write the edges with PARENT and CHILD";
                    self.report.push(&line.place, Diagnostic::error(NOT_CARRIED, None, message).help(help));
                }
                _ if is_command(command) => scope.later.push(line),
                _ => {
                    let message = format!("`{command}` is no command of DAGMan");
                    let diagnostic = Diagnostic::error(LINE, None, message).suggest(command, COMMANDS.iter().copied());
                    self.report.push(&line.place, diagnostic);
                }
            }
        }
    }

    fn block(&mut self, line: &Line, lines: &mut Lines<'_>) -> Option<(Arc<str>, Place)> {
        match lines.until("}") {
            Some((inside, place)) => Some((inside.into(), place)),
            None => {
                self.report.error(&line.place, LINE, "the `}` of this description is missing");
                None
            }
        }
    }

    fn read(&mut self, place: &Place, path: &str, depth: usize) -> Option<String> {
        self.files += 1;
        if depth >= DEEPEST || self.files > MOST_FILES {
            let message =
                format!("`{path}`: DAGs include each other deeper than {DEEPEST}, or more than {MOST_FILES} times");
            self.report.once(place, "", Diagnostic::error(TOO_MUCH, None, message));
            return None;
        }
        let text = self.surroundings.text(path);
        if text.is_none() {
            let message = format!("there is no file `{path}`");
            let help =
                "paths are relative to the folder of the DAG; a file that a node writes first cannot be read now";
            self.report.push(place, Diagnostic::error(NO_FILE, None, message).help(help));
        }
        text
    }

    fn node(&mut self, line: &Line, rest: &str, is_final: bool, lines: &mut Lines<'_>, scope: &Scope) {
        let (name, rest) = word(rest);
        let (submit, mut rest) = word(rest);
        if name.is_empty() || submit.is_empty() {
            self.report.error(&line.place, LINE, "a node is `JOB name description [DIR folder] [NOOP] [DONE]`");
            return;
        }
        self.name(line, name);
        let inline = if submit == "{" { self.block(line, lines) } else { None };
        if submit == "{" && inline.is_none() {
            return;
        }
        let (mut folder, mut noop, mut done) = (scope.folder.clone(), false, false);
        while !rest.is_empty() {
            let (option, after) = word(rest);
            rest = after;
            match option.to_ascii_lowercase().as_str() {
                "dir" => {
                    let (found, after) = word(rest);
                    folder = paths::join(&scope.folder, unquoted(found));
                    rest = after;
                }
                "noop" => noop = true,
                "done" => done = true,
                _ => self.report.error(&line.place, LINE, format!("a node has no option `{option}`")),
            }
        }
        let submit = match (inline, scope.descriptions.get(submit)) {
            (Some((text, place)), _) => Submit::Inline(text, place),
            (None, Some((text, place))) => Submit::Inline(text.clone(), place.clone()),
            (None, None) => Submit::File(paths::join(&folder, unquoted(submit))),
        };
        let name = format!("{}{name}", scope.prefix);
        if self.dag.nodes.len() >= MOST_NODES {
            let message = format!("the DAG has more than {MOST_NODES} nodes");
            self.report.once(&line.place, "nodes", Diagnostic::error(TOO_MUCH, None, message));
            return;
        }
        if self.index.insert(name.clone(), self.dag.nodes.len() as u32).is_some() || scope.groups.contains_key(&name) {
            self.report.error(&line.place, DUPLICATE, format!("two nodes have the name `{name}`"));
        }
        self.dag.nodes.push(Node {
            name,
            is_final,
            submit,
            folder,
            noop,
            done,
            variables: Vec::new(),
            retry: 0,
            priority: None,
            pre: None,
            post: None,
            pre_skip: None,
            alone: false,
            place: line.place.clone(),
        });
    }

    /// DAGMan refuses names that other commands would take for something else.
    fn name(&mut self, line: &Line, name: &str) {
        if name.contains('+') {
            let message = format!("the name `{name}` has a `+`, which stands between a splice and its node");
            self.report.error(&line.place, LINE, message);
        } else if RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name)) {
            self.report.error(&line.place, LINE, format!("`{name}` is a word of DAGMan and no name of a node"));
        }
    }

    /// A splice or a sub-DAG: its nodes come here under a longer name, and its ends are remembered.
    fn splice(&mut self, line: &Line, rest: &str, scope: &mut Scope, depth: usize) {
        let (name, rest) = word(rest);
        let (file, mut rest) = word(rest);
        if file.is_empty() {
            self.report.error(&line.place, LINE, "a splice is `SPLICE name file [DIR folder]`");
            return;
        }
        self.name(line, name);
        let mut folder = scope.folder.clone();
        let mut done = false;
        while !rest.is_empty() {
            let (option, after) = word(rest);
            rest = after;
            match option.to_ascii_lowercase().as_str() {
                "dir" => {
                    let (found, after) = word(rest);
                    folder = paths::join(&scope.folder, unquoted(found));
                    rest = after;
                }
                "done" | "noop" => done = true,
                _ => self.report.error(&line.place, LINE, format!("a splice has no option `{option}`")),
            }
        }
        let whole = format!("{}{name}", scope.prefix);
        if self.index.contains_key(&whole) || scope.groups.contains_key(name) {
            self.report.error(&line.place, DUPLICATE, format!("two nodes have the name `{whole}`"));
        }
        let path = paths::join(&folder, unquoted(file));
        let Some(text) = self.read(&line.place, &path, depth) else {
            scope.groups.insert(name.to_owned(), Group::default());
            return;
        };
        let first_edge = self.dag.edges.len();
        let mut inner = Scope { prefix: format!("{whole}+"), folder, ..Scope::default() };
        self.scope(&text, Some(path.into()), &mut inner, depth + 1);
        let nodes = inner.start..self.dag.nodes.len();
        let (mut has_parent, mut has_child) = (vec![false; nodes.len()], vec![false; nodes.len()]);
        for (parent, child) in &self.dag.edges[first_edge..] {
            has_child[*parent as usize - nodes.start] = true;
            has_parent[*child as usize - nodes.start] = true;
        }
        let ends = |taken: &[bool]| -> Vec<u32> {
            nodes.clone().filter(|node| !taken[node - nodes.start]).map(|node| node as u32).collect()
        };
        scope.groups.insert(name.to_owned(), Group { sources: ends(&has_parent), sinks: ends(&has_child) });
        if done {
            self.dag.nodes[nodes].iter_mut().for_each(|node| node.done = true);
        }
    }

    fn later(&mut self, line: &Line, scope: &Scope) {
        let (command, rest) = word(&line.text);
        match command.to_ascii_lowercase().as_str() {
            "parent" => self.edges(line, rest, scope),
            "vars" => self.variables(line, rest, scope),
            "script" => self.script(line, rest, scope),
            "abort-dag-on" => {
                let (name, code) = word(rest);
                self.nodes(line, name, scope);
                let message = format!("`ABORT-DAG-ON {name} {code}` is not carried over");
                let help = "what does not depend on a failed task goes on; `tulpar run --fail-fast` stops everything";
                self.report.once(&line.place, "abort", Diagnostic::warning(NOT_CARRIED, None, message).help(help));
            }
            "done" => {
                for node in self.nodes(line, word(rest).0, scope) {
                    self.dag.nodes[node as usize].done = true;
                }
            }
            command @ ("retry" | "priority" | "pre_skip") => {
                let (name, rest) = word(rest);
                let (number, more) = word(rest);
                let found = self.nodes(line, name, scope);
                let Ok(number) = number.parse::<i32>() else {
                    let message = format!("`{} {name}` needs a whole number", command.to_ascii_uppercase());
                    return self.report.error(&line.place, LINE, message);
                };
                if !more.is_empty() {
                    let message = format!("`{more}` is not carried over: every failure is tried again");
                    self.report.once(&line.place, "unless", Diagnostic::warning(NOT_CARRIED, None, message));
                }
                for node in found {
                    let node = &mut self.dag.nodes[node as usize];
                    match command {
                        "retry" => node.retry = number.max(0) as u32,
                        "priority" => node.priority = Some(number),
                        _ => node.pre_skip = Some(number),
                    }
                }
            }
            _ => {}
        }
    }

    /// The nodes that a name stands for: one, all of this file, or those of a splice.
    fn nodes(&mut self, line: &Line, name: &str, scope: &Scope) -> Vec<u32> {
        if name.eq_ignore_ascii_case("all_nodes") {
            return (scope.start as u32..self.dag.nodes.len() as u32).collect();
        }
        if let Some(node) = self.index.get(&format!("{}{name}", scope.prefix)) {
            return vec![*node];
        }
        if scope.groups.contains_key(name) {
            let message = format!("what is said of `{name}` as a whole is not carried over: {}", line.text);
            let help = "say it of its nodes, which are called `splice+node`";
            self.report.push(&line.place, Diagnostic::error(NOT_CARRIED, None, message).help(help));
            return Vec::new();
        }
        self.unknown(line, name, scope);
        Vec::new()
    }

    fn unknown(&mut self, line: &Line, name: &str, scope: &Scope) {
        let diagnostic = Diagnostic::error(UNKNOWN_NODE, None, format!("there is no node `{}{name}`", scope.prefix));
        let near = self.dag.nodes.len() < 10_000;
        let names = self.dag.nodes[scope.start..].iter().map(|node| &node.name[scope.prefix.len()..]);
        let diagnostic = if near { diagnostic.suggest(name, names) } else { diagnostic };
        self.report.push(&line.place, diagnostic);
    }

    fn edges(&mut self, line: &Line, rest: &str, scope: &Scope) {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let Some(middle) = words.iter().position(|word| word.eq_ignore_ascii_case("child")) else {
            return self.report.error(&line.place, LINE, "an edge is `PARENT name… CHILD name…`");
        };
        let mut ends = |names: &[&str], of: fn(&Group) -> &Vec<u32>| -> Vec<u32> {
            let mut found = Vec::with_capacity(names.len());
            for name in names {
                match (self.index.get(&format!("{}{name}", scope.prefix)), scope.groups.get(*name)) {
                    (Some(node), _) => found.push(*node),
                    (None, Some(group)) => found.extend(of(group)),
                    (None, None) => self.unknown(line, name, scope),
                }
            }
            found
        };
        let parents = ends(&words[..middle], |group| &group.sinks);
        let children = ends(&words[middle + 1..], |group| &group.sources);
        if words.len() < middle + 2 || middle == 0 {
            self.report.error(&line.place, LINE, "an edge is `PARENT name… CHILD name…`");
        }
        if self.dag.edges.len().saturating_add(parents.len().saturating_mul(children.len())) > MOST_EDGES {
            let message = format!("the DAG has more than {MOST_EDGES} edges");
            let help = "put a NOOP node between the parents and the children";
            self.report.once(&line.place, "edges", Diagnostic::error(TOO_MUCH, None, message).help(help));
            return;
        }
        let pairs = parents.iter().flat_map(|parent| children.iter().map(move |child| (*parent, *child)));
        self.dag.edges.extend(pairs);
    }

    fn variables(&mut self, line: &Line, rest: &str, scope: &Scope) {
        let (name, mut rest) = word(rest);
        let found = self.nodes(line, name, scope);
        let mut append = false;
        let mut list = Vec::new();
        while !rest.is_empty() {
            let (option, after) = word(rest);
            match option.to_ascii_lowercase().as_str() {
                "append" | "prepend" => {
                    append = option.eq_ignore_ascii_case("append");
                    rest = after;
                    continue;
                }
                _ => {}
            }
            let Some((key, value, after)) = definition(rest) else {
                let message = format!("a variable is `name=\"value\"`, which `{rest}` is not");
                return self.report.error(&line.place, LINE, message);
            };
            list.push(Variable { name: key.to_owned(), value, append });
            rest = after.trim_start();
        }
        for node in found {
            self.dag.nodes[node as usize].variables.extend(list.iter().cloned());
        }
    }

    fn script(&mut self, line: &Line, rest: &str, scope: &Scope) {
        let mut words: Vec<&str> = rest.split_whitespace().collect();
        if words.first().is_some_and(|word| word.eq_ignore_ascii_case("defer")) {
            let message = "`SCRIPT DEFER` is not carried over: a script that fails is not tried later";
            self.report.warning(&line.place, NOT_CARRIED, message);
            words.drain(..words.len().min(3));
        }
        if words.first().is_some_and(|word| word.eq_ignore_ascii_case("debug")) {
            words.drain(..words.len().min(3));
        }
        let [when, name, program @ ..] = &words[..] else {
            return self.report.error(&line.place, LINE, "a script is `SCRIPT PRE|POST name program arguments…`");
        };
        if program.is_empty() {
            return self.report.error(&line.place, LINE, "a script is `SCRIPT PRE|POST name program arguments…`");
        }
        let script =
            Script { words: program.iter().map(|word| (*word).to_owned()).collect(), place: line.place.clone() };
        let nodes = self.nodes(line, name, scope);
        match when.to_ascii_lowercase().as_str() {
            "pre" => nodes.iter().for_each(|node| self.dag.nodes[*node as usize].pre = Some(script.clone())),
            "post" => nodes.iter().for_each(|node| self.dag.nodes[*node as usize].post = Some(script.clone())),
            "hold" => self.report.warning(&line.place, NOT_CARRIED, "a HOLD script is not run"),
            other => self.report.error(&line.place, LINE, format!("there is no `SCRIPT {other}`")),
        }
    }
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('"')
}

/// `name="value"` with `\"` and `\\` undone, and what follows.
fn definition(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = text.split_once('=')?;
    let rest = rest.trim_start().strip_prefix('"')?;
    let mut value = String::new();
    let mut letters = rest.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((name.trim(), value, &rest[at + 1..])).filter(|(name, ..)| !name.is_empty()),
            '\\' => match letters.next() {
                Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                Some((_, other)) => value.extend(['\\', other]),
                None => return None,
            },
            letter => value.push(letter),
        }
    }
    None
}
