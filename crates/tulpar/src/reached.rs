//! Files that tasks reach by absolute paths, past their inputs: they are found, and nobody sees when they change.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::{DataFile, FileSource, Run, Task, Workflow};
use tulpar_exec::environments;

/// Reading more would keep `check` from being quick.
const MOST_TASKS: usize = 1000;
const LONGEST: u64 = 1 << 20;

/// Programs, libraries and what is there for a moment.
const SYSTEM: [&str; 17] = [
    "/bin", "/boot", "/dev", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/run", "/sbin",
    "/sys", "/tmp", "/usr", "/var",
];

/// `files` has the files of each data entry. A workflow of another system is told of each path once: it may have a job for
/// every line of a table.
pub(crate) fn undeclared(
    project: &Path,
    workflow: &Workflow,
    files: &[Vec<DataFile>],
    is_foreign: bool,
) -> Vec<Diagnostic> {
    let home = std::env::var("HOME").ok().filter(|home| home.starts_with('/'));
    let mut scripts = Scripts::default();
    let mut found = Vec::new();
    let mut told: BTreeSet<PathBuf> = BTreeSet::new();
    for task in workflow.tasks.iter().take(MOST_TASKS) {
        let entries = task.inputs.iter().filter_map(|input| match input.source {
            FileSource::Data(data) => files.get(data.index()),
            FileSource::Output { .. } | FileSource::Latest { .. } | FileSource::Search { .. } => None,
        });
        let given: Vec<&DataFile> = entries.flatten().collect();
        let environment = &task.settings.environment;
        let conda = environment.conda.as_ref().and_then(|name| environments::conda_folder(project, name));
        let known = [&environment.venv, &environment.container].into_iter().flatten();
        let known: Vec<PathBuf> = known.map(|name| project.join(name)).chain(conda).collect();
        // Of the whole project no task declares everything.
        let is_covered = |path: &Path| {
            known.iter().any(|known| path.starts_with(known))
                || path != project && given.iter().any(|file| project.join(&file.from).starts_with(path))
        };
        if !is_foreign {
            told.clear();
        }
        let own = paths_of(task, home.as_deref()).into_iter().map(|path| (None, path));
        let of_scripts = given.iter().filter(|file| file.from.ends_with(".py") && file.size <= LONGEST);
        let of_scripts = of_scripts.flat_map(|file| {
            let paths = scripts.paths(project, &file.from, home.as_deref());
            paths.into_iter().map(|path| (Some(file.from.as_str()), path))
        });
        for (by, path) in own.chain(of_scripts) {
            if path.exists() && is_of_somebody(project, &path) && !is_covered(&path) && told.insert(path.clone()) {
                let finding = finding(task, by, &path);
                found.push(match is_foreign {
                    false => finding.help(advice(project, workflow, &path)),
                    true => finding.help(
                        "let it be sent along: `type: stageable` in a catalogue of Pegasus, `transfer_executable = true` or \
                         `transfer_input_files` in a submit file",
                    ),
                });
            }
        }
    }
    found
}

/// The paths in a task's commands and variables, and of the programs that a catalogue says are installed.
fn paths_of(task: &Task, home: Option<&str>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let others = task.variants.iter().filter_map(|variant| variant.run.as_ref());
    for run in std::iter::once(&task.run).chain(others) {
        match run {
            Run::Shell(line) => found.extend(absolute_paths(&line.0, home)),
            Run::Arguments(words) => words.iter().for_each(|word| found.extend(absolute_paths(&word.0, home))),
            Run::Planned(_) => {}
        }
    }
    let environment = &task.settings.environment;
    // No shell reads a variable: `$HOME` is no path there.
    environment.variables.values().for_each(|value| found.extend(absolute_paths(&value.0, None)));
    // In a container a place is one of its image.
    if environment.container.is_none() {
        let places = environment.programs.iter().filter_map(|program| program.place.as_ref());
        found.extend(places.filter(|place| place.starts_with('/')).map(PathBuf::from));
    }
    found
}

/// Scripts that were read once, whatever the number of tasks that have them.
#[derive(Default)]
struct Scripts {
    paths: HashMap<String, Vec<PathBuf>>,
}

impl Scripts {
    /// The absolute paths that stand in the strings of a script and are there.
    fn paths(&mut self, project: &Path, script: &str, home: Option<&str>) -> Vec<PathBuf> {
        if let Some(known) = self.paths.get(script) {
            return known.clone();
        }
        let text = std::fs::read_to_string(project.join(script)).unwrap_or_default();
        let mut found: Vec<PathBuf> = Vec::new();
        for string in literals(&text).filter(|string| string.contains('/')) {
            // A path with spaces is one path where it is the whole string.
            found.extend(string.starts_with('/').then(|| PathBuf::from(string.trim_end_matches(['/', '.']))));
            found.extend(absolute_paths(string, home));
        }
        found.retain(|path| path.as_os_str().len() > 1 && path.exists());
        found.dedup();
        self.paths.insert(script.to_owned(), found.clone());
        found
    }
}

/// The strings of a Python script on one line each: those over several lines are mostly descriptions.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let quote = bytes[at];
            at += 1;
            match quote {
                b'#' => at += bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at),
                b'"' | b'\'' => {
                    let triple = [quote; 3];
                    if bytes[at - 1..].starts_with(&triple) {
                        let rest = &bytes[at + 2..];
                        let end = rest.windows(3).position(|window| window == triple).unwrap_or(rest.len());
                        at = (at + 2 + end + 3).min(bytes.len());
                        continue;
                    }
                    let start = at;
                    while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
                        at += if bytes[at] == b'\\' { 2 } else { 1 };
                    }
                    let end = at.min(bytes.len());
                    at = end + 1;
                    return Some(text.get(start..end).unwrap_or_default());
                }
                _ => {}
            }
        }
        None
    })
}

/// The words of a text that are absolute paths, up to the first place that is not known yet. What is written to is left out.
/// `home` stands for `~` and `$HOME`.
fn absolute_paths(text: &str, home: Option<&str>) -> Vec<PathBuf> {
    let ends = |letter: char| letter.is_whitespace() || "\"'`=:;,()&|<\\".contains(letter);
    let words = text.replace('>', " >");
    let mut is_target = false;
    let mut found = Vec::new();
    for word in words.split(ends).filter(|word| !word.is_empty()) {
        let is_written = std::mem::replace(&mut is_target, word == ">") || word.starts_with('>');
        let word = at_home(word, home);
        if is_written || !word.starts_with('/') {
            continue;
        }
        let known = match word.find(['{', '$', '*', '?']) {
            Some(at) => &word[..word[..at].rfind('/').unwrap_or(0)],
            None => word.trim_end_matches(['/', '.']),
        };
        if known.len() > 1 {
            found.push(PathBuf::from(known));
        }
    }
    found
}

/// A word that begins with the home folder, in full.
fn at_home<'w>(word: &'w str, home: Option<&str>) -> Cow<'w, str> {
    let rest = ["~", "$HOME", "${HOME}", "${{HOME}}"].iter().find_map(|name| word.strip_prefix(name));
    match (home, rest.filter(|rest| rest.is_empty() || rest.starts_with('/'))) {
        (Some(home), Some(rest)) => Cow::Owned(format!("{}{rest}", home.trim_end_matches('/'))),
        _ => Cow::Borrowed(word),
    }
}

/// A file of the project or of a person, not one of the system and not one of an installation such as `~/.pyenv`.
pub(crate) fn is_of_somebody(project: &Path, path: &Path) -> bool {
    match path.strip_prefix(project) {
        Ok(inside) => !inside.starts_with(".tulpar") && !inside.starts_with(".git"),
        Err(_) => {
            let is_hidden = path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
            !is_hidden && !SYSTEM.iter().any(|system| path.starts_with(system)) && !project.starts_with(path)
        }
    }
}

fn finding(task: &Task, by: Option<&str>, path: &Path) -> Diagnostic {
    let who = match by {
        Some(script) => format!("`{script}` of task `{}`", task.name),
        None => format!("task `{}`", task.name),
    };
    let message = format!("{who} reaches `{}`, which is none of its inputs", path.display());
    Diagnostic::warning("W043", task.span, message).label("Tulpar does not see when it changes, and reuses old results")
}

/// The line to write so that Tulpar sees changes of a file or folder.
pub(crate) fn advice(project: &Path, workflow: &Workflow, path: &Path) -> String {
    if path == project {
        return "declare the files that it needs under `data:` and `in:`, and leave out the path".to_owned();
    }
    let environment = path.ancestors().find(|folder| folder.join("pyvenv.cfg").is_file());
    let place = |path: &Path| path.strip_prefix(project).unwrap_or(path).display().to_string();
    if let Some(environment) = environment {
        return format!("write `venv: {}`", place(environment));
    }
    let name = free_name(workflow, &place(path));
    if path.is_dir() {
        let folder = place(path);
        let instead = match folder.starts_with('/') {
            true => format!("`{{{name}.dir}}` is where the task sees its files"),
            false => format!("write `{folder}` in place of the absolute path"),
        };
        return format!("declare it under `data:` as `{name}: {folder}/`, add `{name}` to `in:`; {instead}");
    }
    format!("declare it under `data:` as `{name}: {}`, add `{name}` to `in:`, and write `{{{name}}}`", place(path))
}

/// A name for a file or folder that means nothing else in the workflow.
pub(crate) fn free_name(workflow: &Workflow, path: &str) -> String {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let stem: String = last.split('.').find(|part| !part.is_empty()).unwrap_or("file").to_owned();
    let letters = |letter: char| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '_' };
    let mut name: String = stem.chars().map(letters).collect();
    if !name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
        name.insert(0, '_');
    }
    let is_taken = |name: &str| {
        let of_task = |task: &Task| task.name == name || task.outputs.iter().any(|output| output.name == name);
        workflow.data.iter().any(|data| data.name == name)
            || workflow.params.contains_key(name)
            || workflow.tasks.iter().any(of_task)
    };
    while is_taken(&name) {
        name.push_str(if last.ends_with(".py") && !name.contains("_module") { "_module" } else { "_file" });
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{absolute_paths, literals};
    use std::path::Path;

    #[test]
    fn absolute_paths_are_found_wherever_they_stand() {
        let text = "cd /home/me/code && PYTHONPATH=/a/b:/c python3 x/y.py --in=/d/{x}.csv '/e f' \"/g/$n\" > /h 2>>/i sys.path.insert(0, \"/j/\")";
        let found = absolute_paths(text, None);
        let expected = ["/home/me/code", "/a/b", "/c", "/d", "/e", "/g", "/j"];
        assert_eq!(found.iter().map(|path| path.as_path()).collect::<Vec<_>>(), expected.map(Path::new));
    }

    #[test]
    fn the_home_folder_is_known_by_three_names() {
        let text = "PYTHONPATH=$HOME/lib:${{HOME}}/x python3 -c \"open(os.path.expanduser(\\\"~/data.txt\\\"))\" $HOMES/no a~/no ~ $HOME";
        let found = absolute_paths(text, Some("/home/me/"));
        let expected = ["/home/me/lib", "/home/me/x", "/home/me/data.txt", "/home/me", "/home/me"];
        assert_eq!(found.iter().map(|path| path.as_path()).collect::<Vec<_>>(), expected.map(Path::new));
    }

    #[test]
    fn strings_are_found_outside_of_comments_and_descriptions() {
        let text =
            "\"\"\"a '/b'\n\"\"\"\n# '/c'\nx = '/d' + r\"/e\" + f'/f/{x}' + 'it\\'s' + \"it's\"\ny = 'open\nz = \"/g";
        assert_eq!(literals(text).collect::<Vec<_>>(), ["/d", "/e", "/f/{x}", "it\\'s", "it's", "open", "/g"]);
    }
}
