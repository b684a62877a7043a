//! The script of one job: it finds its inputs in the folder where it starts, and leaves its outputs there.

use crate::pegasus::convert::command::word;
use std::fmt::Write as _;
use tulpar_core::gang::gang;
use tulpar_core::job::{CommandLine, JobSpec, OutputSpec};
use tulpar_core::workflow::template::references;
use tulpar_core::workflow::{OutputKind, Task};

/// An archive whose files become inputs. The token stands for them in the command.
pub(super) struct Unpacked {
    pub(super) token: String,
    pub(super) archive: String,
}

/// The checkpoint of a job whose names hold patterns.
pub(super) const CHECKPOINT: &str = "checkpoint.tar";

pub(super) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

pub(super) fn write(
    spec: &JobSpec,
    task: &Task,
    unpacked: &[Unpacked],
    made: &[(&OutputSpec, Option<String>)],
) -> Result<String, String> {
    known_only_later(spec, task, unpacked)?;
    let mut text = String::from("#!/bin/bash\n");
    let title: String = spec.name.chars().filter(|letter| !letter.is_control()).collect();
    let _ = writeln!(text, "# {title}");
    text.push_str("# It finds its inputs where it starts, and leaves its outputs there.\nset -e\n");
    for (name, value) in &spec.variables {
        let _ = writeln!(text, "export {name}={}", word(value));
    }
    for name in &spec.secrets {
        let _ = writeln!(text, "export {name}=\"$(cat secrets/{name})\"");
    }
    if let Some(venv) = &spec.venv {
        let _ = writeln!(text, ". {}", word(&format!("{}/bin/activate", venv.trim_end_matches('/'))));
    }
    if let Some(conda) = &spec.conda {
        let _ = writeln!(text, "eval \"$(conda shell.bash hook)\"\nconda activate {}", word(conda));
    }
    folders(spec, made, &mut text);
    for (number, found) in unpacked.iter().enumerate() {
        // Only their archive knows which files there are.
        let archive = word(&found.archive);
        let _ = writeln!(text, "mapfile -t files_{number} < <(tar --quoting-style=literal -xvf {archive})");
    }
    for input in &spec.inputs {
        let Some(list) = &input.list else { continue };
        let words: Vec<String> = input.files.iter().map(|file| expanded(&word(&file.path), unpacked)).collect();
        let folder = list.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let _ = writeln!(text, "mkdir -p {}\nprintf '%s\\n' {} > {}", word(folder), words.join(" "), word(list));
    }
    let command = on_all_nodes(task, expanded(&command(&spec.command), unpacked), unpacked)?;
    let patterns = spec.checkpoint.as_ref().filter(|checkpoint| checkpoint.files.iter().any(|file| is_pattern(file)));
    match patterns {
        None => {
            let _ = writeln!(text, "(\n{command}\n)");
        }
        Some(checkpoint) => {
            let globs: Vec<String> = checkpoint.files.iter().map(|file| glob(file)).collect();
            let _ = write!(
                text,
                "[ ! -e {CHECKPOINT} ] || tar -xf {CHECKPOINT}\nset +e\n(\nset -e\n{command}\n)\ncode=$?\nset -e\n\
                 if [ $code = 85 ]; then\n  shopt -s nullglob globstar\n  tar -cf {CHECKPOINT} -- {}\nfi\n\
                 [ $code = 0 ] || exit $code\n",
                globs.join(" ")
            );
        }
    }
    for (output, archive) in made {
        match archive {
            Some(archive) => pack(output, archive, &mut text),
            None => {
                let path = word(&output.path);
                let _ = writeln!(text, "[ -e {path} ] || {{ echo {path} was not made >&2; exit 1; }}");
            }
        }
    }
    Ok(text)
}

/// A task on several nodes is started once on each of them. Only Slurm gives several.
fn on_all_nodes(task: &Task, command: String, unpacked: &[Unpacked]) -> Result<String, String> {
    let request = &task.settings.request;
    let words = gang(request);
    if words.is_empty() {
        return Ok(command);
    }
    if task.settings.environment.container.is_some() {
        return Err("it runs on several nodes in a container, and its script cannot start one on each".to_owned());
    }
    if !unpacked.is_empty() {
        return Err("it runs on several nodes, and reads files that are known only when they are there".to_owned());
    }
    let words: Vec<String> = words.iter().map(|one| word(one)).collect();
    Ok(format!(
        "export TULPAR_NODES={} TULPAR_FIRST_NODE=\"$SLURMD_NODENAME\"\n{} bash -e -c {}",
        request.nodes,
        words.join(" "),
        word(&command)
    ))
}

/// How many files there are, and what the first one is called, is not known when the script is written.
fn known_only_later(spec: &JobSpec, task: &Task, unpacked: &[Unpacked]) -> Result<(), String> {
    let unknown = |name: &str| {
        let files = spec.inputs.iter().filter(|input| input.name == name).flat_map(|input| input.files.iter());
        files.into_iter().any(|file| unpacked.iter().any(|found| found.token == file.path))
    };
    for template in task.run.templates().iter().chain(task.settings.environment.variables.values()) {
        for reference in references(&template.0) {
            if matches!(reference.attribute, "count" | "name" | "stem" | "ext") && unknown(reference.name) {
                let place = format!("{{{}.{}}}", reference.name, reference.attribute);
                return Err(format!("its command has `{place}`, which is known only when the files are there"));
            }
        }
    }
    let variables = spec.variables.values();
    match variables.into_iter().any(|value| unpacked.iter().any(|found| value.contains(&found.token))) {
        true => Err("its environment names files that are known only when they are there".to_owned()),
        false => Ok(()),
    }
}

fn folders(spec: &JobSpec, made: &[(&OutputSpec, Option<String>)], text: &mut String) {
    let mut folders = tulpar_core::rooms::rooms(&spec.outputs, &spec.command);
    folders.extend(made.iter().any(|(_, archive)| archive.is_some()).then_some(super::jobs::ARCHIVES));
    folders.sort();
    folders.dedup();
    if !folders.is_empty() {
        let words: Vec<String> = folders.iter().map(|folder| word(folder)).collect();
        let _ = writeln!(text, "mkdir -p {}", words.join(" "));
    }
}

fn command(command: &CommandLine) -> String {
    match command {
        CommandLine::Shell { shell, line } if shell == "sh" || shell == "bash" => line.clone(),
        CommandLine::Shell { shell, line } => format!("{} -e -c {}", word(shell), word(line)),
        CommandLine::Arguments(words) => words.iter().map(|one| word(one)).collect::<Vec<_>>().join(" "),
    }
}

/// The command with what was unpacked in place of its token.
fn expanded(line: &str, unpacked: &[Unpacked]) -> String {
    let mut line = line.to_owned();
    // The longest first: one token may begin another.
    let mut order: Vec<usize> = (0..unpacked.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(unpacked[*number].token.len()));
    for number in order {
        let token = &unpacked[number].token;
        let array = format!("\"${{files_{number}[@]}}\"");
        line = line.replace(&format!("'{token}'"), &array).replace(&format!("\"{token}\""), &array);
        line = line.replace(token.as_str(), &array);
    }
    line
}

/// A pattern for the shell, of which only the pattern letters keep their meaning.
fn glob(path: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_@%+:,./-*?[]!".contains(letter);
    path.chars().map(|letter| if plain(letter) { letter.to_string() } else { format!("\\{letter}") }).collect()
}

fn pack(output: &OutputSpec, archive: &str, text: &mut String) {
    let path = word(output.path.trim_end_matches('/'));
    let _ = match output.kind {
        OutputKind::Directory => writeln!(text, "mapfile -t made < <(find {path} -type f | LC_ALL=C sort)"),
        _ => writeln!(text, "shopt -s nullglob globstar\nmade=({})\nshopt -u nullglob globstar", glob(&output.path)),
    };
    if output.kind == OutputKind::Pattern && !output.optional {
        let _ = writeln!(text, "[ ${{#made[@]}} -gt 0 ] || {{ echo {path}: no such file was made >&2; exit 1; }}");
    }
    if output.kind == OutputKind::File {
        // A name without a pattern stands for itself whether it is there or not.
        let _ = writeln!(text, "[ -e {path} ] || made=()");
    }
    let _ = writeln!(
        text,
        "printf '%s\\n' \"${{made[@]}}\" | sed '/^$/d' | tar -cf {} --verbatim-files-from -T -",
        word(archive)
    );
}
