//! DAGs of HTCondor with their submit descriptions: rule by rule, as whole workflows, and against hostile texts.

mod alone;
mod files;
mod hostile;
mod nodes;
mod scripts;
mod submit;

use std::collections::{BTreeMap, BTreeSet};
use tulpar_core::diagnostic::{Diagnostic, line_column};
use tulpar_core::workflow::{self, Run, Task, Workflow};
use tulpar_formats::dagman::{self, Found, Surroundings};

/// Files as literal texts.
#[derive(Default)]
pub(crate) struct Files(BTreeMap<String, String>);

impl Files {
    pub(crate) fn of(list: &[(&str, &str)]) -> Self {
        Self(list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }
}

impl Surroundings for Files {
    fn text(&self, path: &str) -> Option<String> {
        self.0.get(path).cloned()
    }

    fn found(&self, path: &str) -> Found {
        match self.0.keys().any(|known| known.starts_with(&format!("{path}/"))) {
            true => Found::Directory,
            false if self.0.contains_key(path) => Found::File,
            false => Found::Nothing,
        }
    }

    fn matching(&self, pattern: &str) -> Vec<String> {
        let (head, tail) = pattern.split_once('*').unwrap_or((pattern, ""));
        let folders = self.0.keys().flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at]));
        let fits = |path: &&str| {
            let middle = path.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail));
            middle.is_some_and(|middle| !middle.contains('/'))
        };
        let all: BTreeSet<&str> = folders.chain(self.0.keys().map(String::as_str)).filter(fits).collect();
        all.into_iter().map(str::to_owned).collect()
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "HOME").then(|| "/home/someone".to_owned())
    }
}

/// The workflow with every finding as `line code message`; line 0 has no place in the DAG.
fn read(dag: &str, files: &[(&str, &str)]) -> (Option<Workflow>, Vec<String>) {
    let (workflow, findings) = dagman::read("test.dag", dag, &Files::of(files));
    (workflow, said(dag, &findings))
}

fn said(dag: &str, findings: &[Diagnostic]) -> Vec<String> {
    let line = |finding: &Diagnostic| finding.span.map_or(0, |span| line_column(dag, &span).0);
    findings.iter().map(|finding| format!("{} {} {}", line(finding), finding.code, finding.message)).collect()
}

/// The workflow, which also must be a good one of Tulpar: written, it reads as the same.
fn good(dag: &str, files: &[(&str, &str)]) -> Workflow {
    let (workflow, found) = read(dag, files);
    assert_eq!(found, Vec::<String>::new());
    let workflow = workflow.expect("a workflow");
    let written = workflow::write(&workflow);
    let (again, findings) = workflow::read(&written, &BTreeMap::new());
    assert!(findings.iter().all(|finding| !finding.is_error()), "{findings:?}\n{written}");
    assert_eq!(workflow::write(&again.expect("a workflow")), written);
    workflow
}

fn task<'w>(workflow: &'w Workflow, name: &str) -> &'w Task {
    workflow.tasks.iter().find(|task| task.name == name).unwrap_or_else(|| panic!("no task {name}"))
}

fn line(task: &Task) -> &str {
    match &task.run {
        Run::Shell(line) => &line.0,
        _ => panic!("a shell line"),
    }
}

/// Of each task, the names of those that it waits for: by files or by order.
fn waits(workflow: &Workflow) -> BTreeMap<String, Vec<String>> {
    use tulpar_core::workflow::FileSource;
    let name = |set: tulpar_core::ids::SetId| workflow.tasks[set.index()].name.clone();
    let of = |task: &Task| {
        let made = task.inputs.iter().filter_map(|input| match input.source {
            FileSource::Output { task, .. } | FileSource::Search { task, .. } => Some(name(task)),
            FileSource::Data(_) | FileSource::Latest { .. } => None,
        });
        let mut all: Vec<String> = made.chain(task.after.iter().map(|set| name(*set))).collect();
        all.sort();
        all.dedup();
        all
    };
    workflow.tasks.iter().map(|task| (task.name.clone(), of(task))).collect()
}

/// A description whose files are all declared: none.
const TRUE: &str = "executable = /bin/true\ntransfer_output_files =\nqueue\n";
