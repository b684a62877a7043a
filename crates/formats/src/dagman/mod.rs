//! Workflows of HTCondor: a `.dag` file and the submit descriptions that it names, or one submit description alone,
//! into Tulpar's own workflow.
//!
//! It reads no file: whoever calls answers what [`Surroundings`] asks. What DAGMan or HTCondor could do and this cannot is
//! a finding with a code of its own, never silence.

mod codes;
mod connect;
mod convert;
pub(crate) mod dag;
pub(crate) mod describe;
mod draft;
pub(crate) mod lines;
pub(crate) mod macros;
pub(crate) mod parse;
pub(crate) mod paths;
pub(crate) mod queue;
pub(crate) mod quoting;
pub(crate) mod report;
mod script;
mod settings;
mod submit;

pub use codes::CODES;

use dag::{Dag, Node};
use lines::{Lines, word};
use report::{Place, Report};
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::Workflow;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    File,
    Directory,
}

/// What lies around a DAG. Paths are as the files write them, relative to the folder of the DAG.
pub trait Surroundings {
    /// The text of a submit description, splice, sub-DAG or included file.
    fn text(&self, path: &str) -> Option<String>;
    fn found(&self, path: &str) -> Found;
    /// The paths that a pattern with `*` or `?` matches, sorted.
    fn matching(&self, pattern: &str) -> Vec<String>;
    /// `$ENV(NAME)`.
    fn variable(&self, name: &str) -> Option<String>;
}

/// True for a text whose first command is one of DAGMan's.
pub fn is_dag(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| {
        let mut words = line.split_whitespace();
        let command = words.next().unwrap_or_default();
        !command.ends_with(':') && words.next().is_some_and(|word| word != "=") && parse::is_command(command)
    })
}

/// The workflow as Tulpar runs it; `name` is the name of the DAG file, without its folder.
pub fn read(name: &str, text: &str, surroundings: &dyn Surroundings) -> (Option<Workflow>, Vec<Diagnostic>) {
    let mut report = Report::default();
    let dag = parse::parse(text, surroundings, &mut report);
    let workflow = dag.map(|dag| {
        let name = name.rsplit('/').next().unwrap_or(name);
        let name = name.strip_suffix(".dag").unwrap_or(name);
        convert::convert(name, &dag, surroundings, &mut report)
    });
    (workflow, report.finish())
}

/// True for a submit description: commands `name = value`, and what to queue.
pub fn is_submit(text: &str) -> bool {
    let mut assigns = false;
    let mut rest = Lines::new(text, None);
    while let Some(line) = rest.next() {
        let (first, after) = word(&line.text);
        if first.eq_ignore_ascii_case("queue") && !after.starts_with('=') {
            return assigns;
        }
        let keyword =
            ["if", "elif", "else", "endif", "include", "use"].iter().any(|word| first.eq_ignore_ascii_case(word));
        match line.text.split_once('=') {
            Some((name, value)) => {
                let name = name.trim();
                let marked = name.trim_start_matches('+').trim_end_matches('@').trim_end();
                let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
                if marked.is_empty() || !marked.chars().all(plain) {
                    return false;
                }
                if name.ends_with('@') {
                    rest.until(&format!("@{}", value.trim()));
                }
                assigns = true;
            }
            None if keyword => {}
            None => return false,
        }
    }
    false
}

/// A submit description alone as a workflow of one task set; `name` is the name of its file, without its folder.
pub fn read_submit(name: &str, text: &str, surroundings: &dyn Surroundings) -> (Option<Workflow>, Vec<Diagnostic>) {
    let mut report = Report::default();
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let place = Place { line: 1, ..Place::default() };
    let dag = Dag { nodes: vec![Node::alone(name, text, place)], edges: Vec::new() };
    let workflow = convert::convert(name, &dag, surroundings, &mut report);
    (Some(workflow), report.finish())
}
