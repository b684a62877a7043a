//! `tulpar lint`: hand-written submit descriptions and DAGs, looked through before HTCondor sees them.

use crate::arguments::LintArguments;
use crate::failure::Exit;
use crate::findings;
use crate::print;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::findings::Text;
use tulpar::foreign::Folder;
use tulpar::{settings, view};
use tulpar_core::diagnostic::Severity;
use tulpar_formats::htcondor::lint::{self, Linted};

pub(crate) fn lint(folder: Option<&Path>, arguments: &LintArguments) -> Result<ExitCode, Failure> {
    let mut views = Vec::new();
    let (mut files, mut errors, mut warnings) = (0, 0, 0);
    for file in &arguments.files {
        let path = folder.unwrap_or(Path::new("")).join(file);
        let text = settings::read(&path)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let absolute = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let linted = lint::lint(&name, &absolute.to_string_lossy(), &text, &Folder(parent.to_owned()));
        for Linted { file, text, findings } in &linted {
            let named = shown(parent, file);
            let text = Text { name: named.to_string_lossy().into_owned(), text };
            files += 1;
            errors += findings.iter().filter(|finding| finding.is_error()).count();
            warnings += findings.iter().filter(|finding| finding.severity == Severity::Warning).count();
            if arguments.json {
                views.extend(
                    tulpar::findings::views(&text, findings).iter().filter_map(|view| serde_json::to_value(view).ok()),
                );
            } else {
                findings::show(&text, findings);
            }
        }
    }
    if arguments.json {
        print::json(&views);
    }
    match errors {
        0 if arguments.json => {}
        0 => print::line(&format!("{}: good; {}", view::count(files, "file"), view::count(warnings, "warning"))),
        _ => print::note(&format!("{}, {}", view::count(errors, "error"), view::count(warnings, "warning"))),
    }
    Ok(if errors > 0 { Exit::BadInput.into() } else { Exit::Done.into() })
}

/// As the user would type it.
fn shown(parent: &Path, file: &str) -> PathBuf {
    let parent = if parent == Path::new(".") { Path::new("") } else { parent };
    parent.join(file)
}
