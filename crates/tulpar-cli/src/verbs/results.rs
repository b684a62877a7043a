//! `tulpar export --format table`: the tasks of a sweep as one table, a row a task: its variables, how it ended, how long it
//! took, and the numbers that it left in JSON files or, as a trial, said.

use crate::failure::Exit;
use crate::print;
use crate::reporting::ExportArguments;
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::view;
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_report::TableFormat;

pub(crate) fn table(
    folder: Option<&Path>,
    project: &Project,
    run: RunFolder,
    arguments: &ExportArguments,
) -> Result<ExitCode, Failure> {
    let format = match &arguments.out {
        None => TableFormat::Csv,
        Some(out) => TableFormat::of(&out.to_string_lossy()).ok_or_else(|| {
            let message = format!("{} does not say which kind of table it is", out.display());
            Failure::usage_with(message, "let its name end with .csv, .json or .parquet")
        })?,
    };
    let name = run.name.clone();
    let table = tulpar::results::table(project, run, arguments.task.as_deref(), &Terminal)?;
    let bytes = table.write(format);
    match &arguments.out {
        None => print::bytes(&bytes),
        Some(out) => {
            let path = folder.unwrap_or(Path::new(".")).join(out);
            std::fs::write(&path, bytes).map_err(|source| Failure::Write { path: path.clone(), source })?;
            let rows = view::count(table.len(), "row");
            print::note(&format!("{rows} of {} written to {}", name, path.display()));
        }
    }
    Ok(Exit::Done.into())
}
