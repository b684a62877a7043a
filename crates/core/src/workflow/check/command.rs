//! Commands that grow beyond what systems allow when all names of an input are put into them.

use super::paths_of::Known;
use crate::diagnostic::{Diagnostic, Findings, LONG_COMMAND};
use crate::workflow::template;
use crate::workflow::{DataFile, FileSource, OutputKind, Run, Task, Workflow};

/// Linux refuses a single argument above 128 KiB, and a shell line is one; all arguments together may
/// take about 2 MB. A margin is left for the rest of the command and for the environment.
const LONGEST_LINE: u64 = 120_000;
const LONGEST_ARGUMENTS: u64 = 1_800_000;

pub(super) fn check(workflow: &Workflow, listings: Option<&[Vec<DataFile>]>, findings: &mut Findings) {
    for task in &workflow.tasks {
        if task.inputs.is_empty() {
            continue;
        }
        let others = task.variants.iter().filter_map(|variant| variant.run.as_ref());
        for run in std::iter::once(&task.run).chain(others) {
            check_run(workflow, listings, task, run, findings);
        }
    }
}

fn check_run(workflow: &Workflow, listings: Option<&[Vec<DataFile>]>, task: &Task, run: &Run, findings: &mut Findings) {
    let limit = if matches!(run, Run::Arguments(_)) { LONGEST_ARGUMENTS } else { LONGEST_LINE };
    let templates = run.templates();
    for input in &task.inputs {
        let Some((files, bytes)) = size(workflow, listings, task, input.source).filter(|(_, bytes)| *bytes > limit)
        else {
            continue;
        };
        let named = templates
            .iter()
            .flat_map(|template| template::references(&template.0))
            .any(|reference| reference.name == input.name && reference.attribute.is_empty());
        if named {
            let name = &input.name;
            findings.push(
                Diagnostic::error(
                    LONG_COMMAND,
                    input.span,
                    format!(
                        "`{{{name}}}` puts {files} file names on the command line of `{}`, more than systems allow",
                        task.name
                    ),
                )
                .label(format!("about {} kB of names", bytes / 1000))
                .help(format!("use `{{{name}.list}}`, a file with one name a line"))
                .help(format!("or `{{{name}.dir}}`, the folder that holds them")),
            );
        }
    }
}

/// Number and total length of the names of an input, where they are known.
fn size(
    workflow: &Workflow,
    listings: Option<&[Vec<DataFile>]>,
    consumer: &Task,
    source: FileSource,
) -> Option<(u64, u64)> {
    match source {
        FileSource::Data(data) => {
            let files = listings?.get(data.index())?;
            Some((files.len() as u64, files.iter().map(|file| file.path.len() as u64 + 1).sum()))
        }
        FileSource::Latest { .. } => None,
        FileSource::Search { .. } => Some((1, 64)),
        FileSource::Output { task, output } => {
            let producer = &workflow.tasks[task.index()];
            let output = producer.outputs.get(output as usize).filter(|output| output.kind == OutputKind::File)?;
            // Axes that the consumer shares select one value each.
            let shared = |name: &String| consumer.scatter.iter().any(|axis| axis.names.contains(name));
            let gathered = producer.scatter.iter().filter(|axis| !axis.names.iter().any(shared));
            let mut count: u64 = 1;
            for axis in gathered {
                count = count.saturating_mul(Known::new(axis, listings)?.len());
            }
            Some((count, count.saturating_mul(output.path.0.len() as u64 + 1)))
        }
    }
}
