//! Python modules that lie beside a declared script and are imported by it, but are not declared: its task would not find them.

use crate::reached;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::{DataFile, FileSource, Task, Workflow};

/// Reading more would keep `check` from being quick.
const MOST_TASKS: usize = 1000;
const LONGEST: u64 = 1 << 20;

/// `files` has the files of each data entry.
pub(crate) fn undeclared(project: &Path, workflow: &Workflow, files: &[Vec<DataFile>]) -> Vec<Diagnostic> {
    let mut imported: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut found = Vec::new();
    let mut told = BTreeSet::new();
    for task in workflow.tasks.iter().take(MOST_TASKS) {
        let entries = task.inputs.iter().filter_map(|input| match input.source {
            FileSource::Data(data) => files.get(data.index()),
            FileSource::Output { .. } | FileSource::Latest { .. } | FileSource::Search { .. } => None,
        });
        let given: Vec<&DataFile> = entries.flatten().collect();
        let scripts = given.iter().filter(|file| file.from.ends_with(".py") && file.size <= LONGEST);
        for script in scripts {
            let modules = imported.entry(&script.from).or_insert_with(|| modules_beside(project, &script.from));
            for module in modules.iter() {
                let below = format!("{module}/");
                let is_given = given.iter().any(|file| file.from == *module || file.from.starts_with(&below));
                if !is_given && told.insert((task.name.clone(), module.clone())) {
                    found.push(finding(workflow, task, &script.from, module, project.join(module).is_dir()));
                }
            }
        }
    }
    found
}

fn finding(workflow: &Workflow, task: &Task, script: &str, module: &str, is_folder: bool) -> Diagnostic {
    let name = reached::free_name(workflow, module);
    let place = if is_folder { format!("{module}/") } else { module.to_owned() };
    Diagnostic::warning(
        "W042",
        task.span,
        format!("`{script}` imports `{module}`, which task `{}` will not see", task.name),
    )
    .label("a task sees only its declared inputs")
    .help(format!("declare it under `data:` as `{name}: {place}`, and add `{name}` to `in:`"))
}

/// The files and packages in the folder of a script that it imports.
fn modules_beside(project: &Path, script: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(project.join(script)).unwrap_or_default();
    let folder = script.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
    let place = |module: String| {
        let [file, package] = [format!("{folder}{module}.py"), format!("{folder}{module}")];
        if project.join(&file).is_file() {
            return Some(file);
        }
        let is_package = project.join(&package).join("__init__.py").is_file();
        is_package.then_some(package)
    };
    imports(&text).into_iter().filter_map(place).filter(|module| module != script).collect()
}

/// The first names of all modules that a text imports.
fn imports(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let first = |words: &str| -> Option<String> {
        let name: &str = words.trim().trim_start_matches('.').split(['.', ' ', ',', ';', '(']).next()?;
        let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        is_name.then(|| name.to_owned())
    };
    for line in text.lines().map(str::trim) {
        if let Some(names) = line.strip_prefix("import ") {
            found.extend(names.split('#').next().unwrap_or_default().split(',').filter_map(first));
        } else if let Some((module, names)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import ")) {
            if module.trim().chars().all(|letter| letter == '.') {
                found.extend(names.split('#').next().unwrap_or_default().split(',').filter_map(first));
            } else {
                found.extend(first(module));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::imports;

    #[test]
    fn imports_are_found_in_every_form() {
        let text = "import os, common\nfrom a.b import c\n  from .near import x\nfrom . import p, q  # why\nimport n.m as k\nx = 'from nowhere'\n";
        let found: Vec<String> = imports(text).into_iter().collect();
        assert_eq!(found, ["a", "common", "n", "near", "os", "p", "q"]);
    }
}
