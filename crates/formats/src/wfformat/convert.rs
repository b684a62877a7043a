//! From a recorded run to a workflow: the commands as they were recorded, connected by their files.
//!
//! A record does not say where input files are, nor how its words were quoted; both are said to the user.

use super::codes::{LOOSE_WORDS, NO_COMMAND, UNSAFE_NAME};
use super::{Instance, OURS, Task as Recorded};
use crate::pegasus::convert::command::{escape, word};
use crate::pegasus::convert::names::{Names, plain};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tulpar_core::diagnostic::{Diagnostic, Findings};
use tulpar_core::ids::{DataId, SetId};
use tulpar_core::job::CommandLine;
use tulpar_core::resources::Request;
use tulpar_core::workflow::{
    Data, DataSource, FileSource, Hints, Input, Output, OutputKind, Run, Settings, Span, Task, Workflow,
};

pub fn convert(instance: &Instance) -> (Workflow, Vec<Diagnostic>) {
    let mut findings = Findings::default();
    let ours = instance.system.as_ref().is_some_and(|system| system.name == OURS);
    let paths = paths(instance, ours, &mut findings);
    let makers = instance.makers();
    let mut names = Names::default();
    let file_names: Vec<String> = paths.iter().map(|path| names.unique(path)).collect();
    let mut data: Vec<Data> = Vec::new();
    let mut data_of: FxHashMap<u32, DataId> = FxHashMap::default();
    let mut settings: FxHashMap<Settings, Arc<Settings>> = FxHashMap::default();
    let mut task_names = Names::default();
    let mut tasks = Vec::with_capacity(instance.tasks.len());
    let span = Span::default();
    // Of each file, which output of its maker it is.
    let mut position = vec![0; instance.files.len()];
    for (number, task) in instance.tasks.iter().enumerate() {
        let made = task.outputs.iter().filter(|file| makers[**file as usize] == Some(number as u32));
        made.enumerate().for_each(|(at, file)| position[*file as usize] = at as u32);
    }
    let mut without_command: Vec<&str> = Vec::new();
    for (number, task) in instance.tasks.iter().enumerate() {
        let mut inputs = Vec::with_capacity(task.inputs.len());
        for file in &task.inputs {
            let index = *file as usize;
            let source = match makers[index] {
                Some(maker) if maker == number as u32 => continue,
                Some(maker) => FileSource::Output { task: SetId::from(maker as usize), output: position[index] },
                None => FileSource::Data(*data_of.entry(*file).or_insert_with(|| {
                    let place = BTreeMap::from([(paths[index].clone(), instance.files[index].id.clone())]);
                    data.push(Data {
                        name: file_names[index].clone(),
                        source: DataSource::Files(place),
                        sha256: Default::default(),
                        span,
                    });
                    DataId::from(data.len() - 1)
                })),
            };
            inputs.push(Input { name: file_names[index].clone(), source, bypass: false, program: false, span });
        }
        let made = task.outputs.iter().map(|file| *file as usize).filter(|file| makers[*file] == Some(number as u32));
        let outputs = made
            .filter_map(|file| {
                let path = escape(&paths[file])?;
                let name = file_names[file].clone();
                let size = Some(instance.files[file].size);
                let kind = OutputKind::File;
                Some(Output { name, path, kind, optional: false, temporary: false, register: false, size, span })
            })
            .collect();
        let by_files: FxHashSet<u32> = task.inputs.iter().filter_map(|file| makers[*file as usize]).collect();
        let after = task.parents.iter().filter(|parent| !by_files.contains(parent));
        let milli_cpus = (task.cores * 1000.0).clamp(1.0, f64::from(u32::MAX)) as u32;
        let gpus = task.gpus.ceil().clamp(0.0, f64::from(u32::MAX)) as u32;
        let gpu_share = if task.gpus < 1.0 { (task.gpus * 1000.0).round() as u32 } else { 0 };
        let runtime = task.runtime.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let wanted = Settings {
            request: Request { milli_cpus, gpus, gpu_share, ..Request::default() },
            hints: Hints {
                runtime,
                program: Some(task.kind.clone()).filter(|kind| *kind != task.id),
                ..Hints::default()
            },
            ..Settings::default()
        };
        let settings = settings.entry(wanted).or_insert_with_key(|settings| Arc::new(settings.clone()));
        if task.program.is_none() && task.arguments.is_empty() {
            without_command.push(&task.id);
        }
        let run = line(task, !ours);
        let run = escape(&run).unwrap_or_else(|| {
            let message = format!("doubled braces in the command of `{}` cannot be carried over", task.id);
            findings.push(Diagnostic::error(LOOSE_WORDS, None, message).help("put a space between the two braces"));
            tulpar_core::workflow::Template("".into())
        });
        tasks.push(Task {
            name: task_names.unique(&task.id),
            scatter: Vec::new(),
            inputs,
            outputs,
            after: after.map(|parent| SetId::from(*parent as usize)).collect(),
            run: Run::Shell(run),
            variants: Vec::new(),
            when: None,
            settings: settings.clone(),
            span,
        });
    }
    remarks(instance, &without_command, &mut findings);
    let mut workflow = Workflow { name: plain(&instance.name), data, tasks, ..Workflow::default() };
    workflow.places.incomplete = findings.has_errors();
    (workflow, findings.finish())
}

fn remarks(instance: &Instance, without_command: &[&str], findings: &mut Findings) {
    if let [first, others @ ..] = without_command {
        let more = if others.is_empty() { String::new() } else { format!(" and {} more tasks", others.len()) };
        findings.push(
            Diagnostic::warning(NO_COMMAND, None, format!("no command is recorded for `{first}`{more}"))
                .help("such a task fails when it is run; write its command under `run:`"),
        );
    }
    if without_command.len() < instance.tasks.len() {
        findings.push(
            Diagnostic::warning(
                LOOSE_WORDS,
                None,
                "commands are recorded as loose words: how they were quoted is lost",
            )
            .help("look through the `run:` lines before the first run; programs and inputs must be on this machine"),
        );
    }
}

/// The recorded words in one line. Makeflow repeats the program as the first argument; Tulpar's `echo echo` means it.
fn line(task: &Recorded, repeats: bool) -> String {
    let program = task.program.as_deref().unwrap_or("").trim();
    let repeated = repeats && task.arguments.first().is_some_and(|first| first.rsplit('/').next() == Some(program));
    let head = Some(program).filter(|program| !program.is_empty() && !repeated);
    let words: Vec<&str> = head.into_iter().chain(task.arguments.iter().map(String::as_str)).collect();
    if words.is_empty() {
        return format!("echo no command was recorded for {} >&2; exit 1", word(&task.id));
    }
    words.join(" ")
}

/// A command as recorded words: joined by spaces they are its line again, quotes and all.
pub fn words(command: &CommandLine) -> Vec<String> {
    match command {
        CommandLine::Arguments(arguments) => arguments.iter().map(|argument| word(argument)).collect(),
        CommandLine::Shell { line, .. } => match line.trim() {
            "" => Vec::new(),
            line => line.split(' ').map(str::to_owned).collect(),
        },
    }
}

/// What tasks see each file as: its last name where that is unique, else all of its id. Ids of ours are what tasks saw.
fn paths(instance: &Instance, ours: bool, findings: &mut Findings) -> Vec<String> {
    let last = |id: &str| id.rsplit('/').next().unwrap_or(id).to_owned();
    let mut count: FxHashMap<String, u32> = FxHashMap::default();
    for file in &instance.files {
        *count.entry(last(&file.id)).or_insert(0) += 1;
    }
    let mut path = |id: &str| {
        let short = last(id);
        let chosen = if count[&short] == 1 && !ours { short } else { id.trim_start_matches('/').to_owned() };
        if chosen.is_empty() || chosen.split('/').any(|part| part.is_empty() || part == ".." || part == ".") {
            findings.push(Diagnostic::error(UNSAFE_NAME, None, format!("`{id}` cannot name a file of a task")));
        }
        chosen
    };
    instance.files.iter().map(|file| path(&file.id)).collect()
}
