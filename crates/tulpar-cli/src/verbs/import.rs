//! `tulpar import`: a workflow of another system in Tulpar's own language.

use crate::arguments::ImportArguments;
use crate::failure::Exit;
use crate::findings;
use crate::print;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::findings::Text;
use tulpar::foreign::{self, Format};
use tulpar::prepare::project_of;
use tulpar::settings;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::{self, DataSource, Workflow};

pub(crate) fn import(folder: Option<&Path>, arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    let here = folder.unwrap_or(Path::new("."));
    let file = here.join(&arguments.file);
    let text = settings::read(&file)?;
    let format = Format::of(&text);
    if format == Format::Native {
        let other = "nor a DAX, a DAGMan file or a WfFormat instance";
        return Err(Failure::usage_with(
            format!("{} is not a Pegasus workflow, {other}", file.display()),
            "workflows of Tulpar need no conversion; other formats are not read",
        ));
    }
    let project = project_of(&file)?;
    let name = file.display().to_string();
    let conf = arguments.conf.as_ref().map(|conf| here.join(conf));
    let site = arguments.site.as_deref();
    let converted = foreign::read(format, project.root(), &name, &text, conf.as_deref(), site)?;
    let mut found = converted.findings;
    // A workflow of Tulpar must have neither tasks that wait for each other nor two that make one file.
    let complete = converted.workflow.as_ref().filter(|_| !tulpar::findings::any_error(&found));
    let wrong = complete.map(|workflow| workflow::check(workflow, None, None)).unwrap_or_default();
    found.extend(wrong.into_iter().filter(Diagnostic::is_error));
    findings::show(&Text { name, text: &converted.text }, &found);
    let Some(mut workflow) = converted.workflow.filter(|_| !tulpar::findings::any_error(&found)) else {
        return Err(Failure::Findings);
    };
    make_relative(&mut workflow, project.root());
    let Some(output) = &arguments.output else {
        print::bytes(workflow::write(&workflow).as_bytes());
        return Ok(Exit::Done.into());
    };
    let output = here.join(output);
    if !beside(&output, project.root()) {
        make_absolute(&mut workflow, project.root());
    }
    std::fs::write(&output, workflow::write(&workflow))
        .map_err(|source| Failure::Write { path: output.clone(), source })?;
    print::note(&format!("{} tasks written to {}", workflow.tasks.len(), output.display()));
    Ok(Exit::Done.into())
}

fn beside(output: &Path, folder: &Path) -> bool {
    let parent = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    parent.canonicalize().is_ok_and(|parent| folder.canonicalize().is_ok_and(|folder| parent == folder))
}

fn places(workflow: &mut Workflow) -> impl Iterator<Item = &mut String> {
    let files = workflow.data.iter_mut().filter_map(|data| match &mut data.source {
        DataSource::Files(files) => Some(files.values_mut()),
        _ => None,
    });
    files.flatten().filter(|place| !place.contains("://"))
}

/// So that the folder can be moved: `${PWD}` in a Pegasus workflow stands for it.
fn make_relative(workflow: &mut Workflow, folder: &Path) {
    for place in places(workflow) {
        if let Ok(inside) = Path::new(&*place).strip_prefix(folder) {
            *place = inside.display().to_string();
        }
    }
}

/// Paths are relative to the file that names them, and this one lies elsewhere.
fn make_absolute(workflow: &mut Workflow, folder: &Path) {
    for place in places(workflow) {
        *place = folder.join(&*place).display().to_string();
    }
}
