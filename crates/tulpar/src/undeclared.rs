//! Files that a task read although none of its inputs names them, as far as its I/O was recorded (`io: count`).

use crate::failure::Failure;
use crate::{reached, records};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tulpar_core::ids::SetId;
use tulpar_core::job::{InputFile, Source};
use tulpar_core::plan::Plan;
use tulpar_core::workflow::FileSource;
use tulpar_exec::environments;
use tulpar_exec::folder::{Project, RunFolder};

/// More files than this are counted, not listed.
const MOST_TOLD: usize = 10;

/// The fields of a record that count here.
#[derive(Deserialize)]
struct Recorded {
    name: String,
    #[serde(default)]
    io: Option<Elsewhere>,
}

#[derive(Deserialize)]
struct Elsewhere {
    #[serde(default)]
    read_elsewhere: Vec<String>,
}

/// The files that the tasks of a set read beside their inputs.
#[derive(Serialize)]
pub struct Undeclared {
    pub task: String,
    pub files: Vec<String>,
    /// The lines to write so that Tulpar sees changes of them.
    pub declare: Vec<String>,
}

/// Of all task sets of a run whose I/O was recorded.
pub fn of_run(project: &Project, folder: &RunFolder, plan: &Plan) -> Result<Vec<Undeclared>, Failure> {
    if !plan.workflow.tasks.iter().any(|task| task.settings.io.is_some()) {
        return Ok(Vec::new());
    }
    let mut sets: BTreeMap<SetId, BTreeSet<PathBuf>> = BTreeMap::new();
    records::each(folder, |record: Recorded| {
        let Some(io) = record.io.filter(|io| !io.read_elsewhere.is_empty()) else { return };
        let set = record.name.split('[').next().unwrap_or_default();
        if let Some(set) = plan.set_named(set) {
            sets.entry(set).or_default().extend(io.read_elsewhere.iter().map(|path| source_of(path)));
        }
    })?;
    let told = sets.into_iter().map(|(set, read)| among(project.root(), plan, set, read));
    Ok(told.filter(|told| !told.files.is_empty()).collect())
}

/// Of one task, by its name in the run that did the work.
pub fn of_task(project: &Project, folder: &RunFolder, plan: &Plan, set: SetId, name: &str) -> Undeclared {
    let mut read = BTreeSet::new();
    if plan.task(set).settings.io.is_some() {
        // An explanation without it is better than none.
        let _ = records::each(folder, |record: Recorded| {
            if record.name == name {
                let files = record.io.map(|io| io.read_elsewhere).unwrap_or_default();
                read = files.iter().map(|path| source_of(path)).collect();
            }
        });
    }
    among(project.root(), plan, set, read)
}

/// Python reads the compiled form of a module, which comes from this file.
fn source_of(path: &str) -> PathBuf {
    let path = Path::new(path);
    let source = || -> Option<PathBuf> {
        let folder = path.parent().filter(|folder| folder.ends_with("__pycache__"))?.parent()?;
        let stem = path.file_name()?.to_str()?.split('.').next()?;
        Some(folder.join(format!("{stem}.py")))
    };
    source().unwrap_or_else(|| path.to_owned())
}

/// Those of the files that neither the inputs nor the environment of a task cover, and that are still there.
fn among(project: &Path, plan: &Plan, set: SetId, read: BTreeSet<PathBuf>) -> Undeclared {
    let task = plan.task(set);
    let inputs = task.inputs.iter().filter_map(|input| match input.source {
        FileSource::Data(data) => plan.files.get(data.index()),
        FileSource::Output { .. } | FileSource::Latest { .. } | FileSource::Search { .. } => None,
    });
    let place = |file: &InputFile| match &file.source {
        Source::Path(path) => Some(project.join(path)),
        _ => None,
    };
    let declared: BTreeSet<PathBuf> = inputs.flat_map(|files| files.iter().filter_map(place)).collect();
    let environment = &task.settings.environment;
    let venv = environment.venv.as_ref().map(|name| project.join(name));
    let conda = environment.conda.as_ref().and_then(|name| environments::conda_folder(project, name));
    let environments: Vec<PathBuf> = venv.into_iter().chain(conda).collect();
    let is_undeclared = |path: &PathBuf| {
        !declared.contains(path)
            && reached::is_of_somebody(project, path)
            && path.is_file()
            && !environments.iter().any(|environment| environments::covers(environment, path))
    };
    let files: Vec<PathBuf> = read.into_iter().filter(is_undeclared).collect();
    let declare: BTreeSet<String> =
        files.iter().map(|file| reached::advice(project, &plan.workflow, package(file))).collect();
    let shown = |file: &PathBuf| file.strip_prefix(project).unwrap_or(file).display().to_string();
    Undeclared {
        task: task.name.clone(),
        files: files.iter().map(shown).collect(),
        declare: declare.into_iter().collect(),
    }
}

/// The folder of the outermost package of a module; another file is itself.
fn package(file: &Path) -> &Path {
    let packages = file.ancestors().skip(1).take_while(|folder| folder.join("__init__.py").is_file());
    packages.last().unwrap_or(file)
}

impl Undeclared {
    /// `src/lab/a.py, src/lab/b.py and 3 more`
    pub fn names(&self) -> String {
        let shown = self.files.iter().take(MOST_TOLD).cloned().collect::<Vec<_>>().join(", ");
        match self.files.len().saturating_sub(MOST_TOLD) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::source_of;
    use std::path::Path;

    #[test]
    fn the_compiled_form_of_a_module_stands_for_its_source() {
        assert_eq!(source_of("/p/lab/__pycache__/stats.cpython-311.pyc"), Path::new("/p/lab/stats.py"));
        assert_eq!(source_of("/p/table.csv"), Path::new("/p/table.csv"));
    }
}
