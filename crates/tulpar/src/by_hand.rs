//! How to run a task again by hand: lines for a shell that make its folder, show it its files and variables, and run it.
//!
//! They are made from the plan and the results above, as the attempt itself was; nothing is run here.

use crate::history::attempt_folder;
use crate::replay::Replayed;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tulpar_core::engine::State;
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{CommandLine, InputFile, InputFiles, JobSpec, OutputSpec, ScriptWork, Source};
use tulpar_core::plan::member_spec;
use tulpar_core::workflow::planned::{Cluster, MemberInput, MemberSource};
use tulpar_core::workflow::{OutputKind, Value};
use tulpar_exec::driver::path_of;
use tulpar_exec::folder::Project;

#[derive(Serialize)]
pub(crate) struct ByHand {
    /// What the lines do, and what they cannot.
    pub(crate) note: String,
    pub(crate) lines: Vec<String>,
}

/// Where files that an earlier task of a cluster makes will be, by the paths under which a later one sees them.
type Made = BTreeMap<String, String>;

/// For a job whose inputs are there; none for work on files alone, and while its inputs are being made.
pub(crate) fn of(project: &Project, replayed: &Replayed, job: JobId) -> Option<ByHand> {
    let engine = &replayed.engine;
    if matches!(engine.state(job), State::Waiting | State::Skipped) && engine.attempts(job) == 0 {
        return None;
    }
    let attempt = AttemptId { job, n: engine.attempts(job).max(1) };
    let spec = engine.spec_context().spec(attempt, 0, engine.request(job), "by-hand", Vec::new()).ok()?;
    match spec.script.as_ref().map(|script| &script.work) {
        Some(ScriptWork::Operation(_)) => return None,
        Some(ScriptWork::Cluster { cluster, params }) => return Some(tasks(project, &spec, cluster, params)),
        Some(ScriptWork::Command) | None => {}
    }
    let sandbox = attempt_folder(&replayed.folder, attempt).join("work");
    let mut lines = Vec::new();
    let note = if sandbox.is_dir() {
        lines.push(format!("cd {}", quoted(&sandbox.display().to_string())));
        "In the folder that its last attempt left, with its inputs and what it wrote so far."
    } else {
        let folder = format!("by-hand-{}.{}", job.0, attempt.n);
        lines.push(format!("mkdir {folder} && cd {folder}"));
        show_files(project, &spec, &Made::new(), &mut lines);
        "In a new folder, with links to the very files that it was given."
    };
    let mut note = note.to_owned();
    variables(&spec, &mut lines, &mut note);
    enter(project.root(), &spec, &mut lines);
    lines.push(command(project.root(), &spec));
    Some(ByHand { note, lines })
}

/// The tasks of a cluster, each in a folder of its own, one after another.
fn tasks(project: &Project, job: &JobSpec, cluster: &Cluster, params: &BTreeMap<String, Value>) -> ByHand {
    let folder = format!("by-hand-{}.{}", job.attempt.job.0, job.attempt.n);
    let mut lines = vec![format!("mkdir {folder} && cd {folder}")];
    let mut note = format!(
        "Its {} tasks one after another, each in a new folder, with links to the very files that it was given.",
        cluster.members.len()
    );
    let mut outputs: Vec<Vec<OutputSpec>> = Vec::new();
    for (index, member) in cluster.members.iter().enumerate() {
        let number = index + 1;
        let mut made = Made::new();
        let given = member.inputs.iter().map(|input| given(job, input, &outputs, &mut made));
        let spec = given
            .collect::<Option<Vec<InputFiles>>>()
            .and_then(|inputs| member_spec(member, params, inputs, job.attempt, &job.node, job.gpus.clone()).ok());
        let Some(spec) = spec else {
            lines.push(format!(
                "# {}: takes files whose names are known only when the others have run",
                member.task.name
            ));
            note.push_str(" They end where names of files are known only when the tasks before have run.");
            break;
        };
        // A failure ends all of it, and the shell that it is typed into goes on.
        if index > 0
            && let Some(last) = lines.last_mut()
        {
            last.push_str(" &&");
        }
        lines.push(format!("# {} ({number} of {})", member.task.name, cluster.members.len()));
        lines.push("( set -e".to_owned());
        lines.push(format!("mkdir {number} && cd {number}"));
        show_files(project, &spec, &made, &mut lines);
        variables(&spec, &mut lines, &mut note);
        enter(project.root(), &spec, &mut lines);
        lines.push(command(project.root(), &spec));
        lines.push(")".to_owned());
        outputs.push(spec.outputs);
    }
    ByHand { note, lines }
}

/// The files of an input of a cluster's task. None where only running those before it tells their names.
fn given(job: &JobSpec, input: &MemberInput, outputs: &[Vec<OutputSpec>], made: &mut Made) -> Option<InputFiles> {
    let mut files = Vec::new();
    for source in &input.from {
        match source {
            MemberSource::Input(position) => files.extend(job.inputs.get(*position as usize)?.files.iter().cloned()),
            MemberSource::Made { member, output } => {
                let output = outputs.get(*member as usize)?.get(*output as usize)?;
                if output.kind != OutputKind::File {
                    return None;
                }
                let up = "../".repeat(output.path.matches('/').count() + 1);
                made.insert(output.path.clone(), format!("{up}{}/{}", member + 1, output.path));
                files.push(InputFile {
                    path: output.path.clone(),
                    source: Source::Object,
                    size: 0,
                    digest: Digest([0; 32]),
                });
            }
        }
    }
    Some(InputFiles { name: input.name.clone(), files: files.into(), list: None })
}

/// Links to its inputs, and the folders that its outputs go to.
fn show_files(project: &Project, spec: &JobSpec, made: &Made, lines: &mut Vec<String>) {
    let inputs = &spec.inputs;
    let files = || inputs.iter().flat_map(|input| input.files.iter());
    let lists = inputs.iter().filter_map(|input| input.list.as_deref());
    let folder_of = |path: &str| path.rsplit_once('/').map(|(folder, _)| quoted(folder));
    let outputs = spec.outputs.iter().map(|output| output.path.as_str());
    let paths = files().map(|file| file.path.as_str()).chain(lists).chain(outputs);
    let folders: BTreeSet<String> =
        paths.filter_map(folder_of).filter(|folder| !folder.contains(['*', '?', '['])).collect();
    if !folders.is_empty() {
        lines.push(format!("mkdir -p {}", folders.into_iter().collect::<Vec<_>>().join(" ")));
    }
    let mut shown = BTreeSet::new();
    for file in files() {
        if shown.insert(&file.path) {
            let known = || path_of(project, file).display().to_string();
            let source = made.get(&file.path).cloned().unwrap_or_else(known);
            lines.push(format!("ln -s {} {}", quoted(&source), quoted(&file.path)));
        }
    }
    for input in inputs {
        if let Some(list) = &input.list {
            let paths: Vec<String> = input.files.iter().map(|file| quoted(&file.path)).collect();
            lines.push(format!("printf '%s\\n' {} > {}", paths.join(" "), quoted(list)));
        }
    }
}

fn variables(spec: &JobSpec, lines: &mut Vec<String>, note: &mut String) {
    let threads = spec.milli_cpus.div_ceil(1000).max(1);
    lines.push(format!("export OMP_NUM_THREADS={threads}"));
    lines.extend(spec.variables.iter().map(|(name, value)| format!("export {name}={}", quoted(value))));
    if !spec.secrets.is_empty() {
        let secrets = format!(" Set its secrets yourself: {}.", spec.secrets.join(", "));
        if !note.contains(&secrets) {
            note.push_str(&secrets);
        }
    }
}

fn enter(root: &Path, spec: &JobSpec, lines: &mut Vec<String>) {
    if let Some(venv) = &spec.venv {
        lines.push(format!(". {}", quoted(&root.join(venv).join("bin/activate").display().to_string())));
    }
    if let Some(conda) = &spec.conda {
        let folder = root.join(conda);
        let which = if folder.is_dir() { folder.display().to_string() } else { conda.clone() };
        lines.push(format!("conda activate {}", quoted(&which)));
    }
}

fn command(root: &Path, spec: &JobSpec) -> String {
    let words: Vec<String> = match &spec.command {
        CommandLine::Arguments(words) => words.clone(),
        CommandLine::Shell { shell, line } => {
            let shell = if shell.trim().is_empty() { "sh" } else { shell };
            shell.split_ascii_whitespace().map(str::to_owned).chain(["-e".into(), "-c".into(), line.clone()]).collect()
        }
    };
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let plain = words.join(" ");
    let Some(image) = &spec.container else { return plain };
    let file = root.join(image.trim_start_matches("file://"));
    if file.is_file() {
        let image = quoted(&file.display().to_string());
        return format!("apptainer exec --bind {} --pwd \"$PWD\" {image} {plain}", quoted(&root.display().to_string()));
    }
    let image = quoted(image.trim_start_matches("docker://"));
    let root = quoted(&format!("{0}:{0}:ro", root.display()));
    format!("podman run --rm -v {root} -v \"$PWD:$PWD\" -w \"$PWD\" {image} {plain}")
}

/// As one word of a shell's line.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_would_read_more_into_them() {
        assert_eq!(quoted("a/b-1.txt"), "a/b-1.txt");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$HOME"), "'$HOME'");
    }
}
