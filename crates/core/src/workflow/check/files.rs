//! Data entries for which there is no file, and those that nothing uses.

use super::sources;
use crate::catalogue::Chosen;
use crate::diagnostic::{Diagnostic, Findings, NO_FILE, UNUSED};
use crate::workflow::{DataFile, DataSource, FileSource, Workflow};

pub(super) fn check(workflow: &Workflow, listings: Option<&[Vec<DataFile>]>, findings: &mut Findings) {
    let mut used = vec![false; workflow.data.len()];
    for task in &workflow.tasks {
        for source in sources(task) {
            if let FileSource::Data(data) = source {
                used[data.index()] = true;
            }
        }
    }
    for (number, data) in workflow.data.iter().enumerate() {
        if !used[number] {
            // With errors elsewhere a misspelt name may well be meant to be this one.
            if !workflow.places.incomplete {
                findings.push(
                    Diagnostic::warning(UNUSED, data.span, format!("no task uses the data entry `{}`", data.name))
                        .help(format!(
                            "add it to `in:` of the task that needs it, as in `in: [{}]`, or remove it",
                            data.name
                        )),
                );
            }
            continue;
        }
        let missing = listings.and_then(|listings| listings.get(number)).is_some_and(Vec::is_empty);
        if !missing {
            continue;
        }
        let (reason, help) = match &data.source {
            // Reading has reported a source that it could not understand.
            DataSource::File(path) if path.is_empty() => continue,
            DataSource::File(path) => {
                (format!("there is no file `{path}`"), "check the path: it is relative to the folder of the workflow")
            }
            DataSource::Glob(pattern) => (
                format!("no file matches `{pattern}`"),
                "check the pattern: it is relative to the folder of the workflow, and `**` reaches into folders",
            ),
            DataSource::Directory(path) => (
                format!("the folder `{path}` is not there or has no files"),
                "check the path: it is relative to the folder of the workflow",
            ),
            DataSource::Manifest(path) => {
                (format!("the manifest `{path}` lists no files"), "write one path a line, relative to the manifest")
            }
            DataSource::Files(_) => ("it names no files".to_owned(), "write `name: path` pairs under `files`"),
            // The catalogue was asked, and what it did not know was reported.
            DataSource::Replicas(_) => continue,
            DataSource::Copies(copies) => {
                let names: Vec<&str> = copies.iter().map(Chosen::name).collect();
                (
                    format!("no file was found for `{}`", names.join("`, `")),
                    "check the places under `replicas:` of the catalogue",
                )
            }
            DataSource::Url(url) => (format!("`{url}` was not found"), "check the address, and whether it needs a key"),
        };
        findings.push(
            Diagnostic::error(NO_FILE, data.span, format!("nothing provides `{}`: {reason}", data.name)).help(help),
        );
    }
}
