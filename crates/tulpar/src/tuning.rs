//! The workflow of a search that has no file: one command, a space, and objectives.
//!
//! The workflow is text like any other: from there on a search is a run.

use crate::Failure;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};
use std::path::{Component, Path};
use tulpar_core::hpo::{Objective, Parameter, Pruner, Sampler, Settings, Space, Study, Value, Values};

/// What people call the file that `--client` prints.
const CLIENT: &str = "tulpar_client.py";

/// A search of one command, in the words of the command line.
#[derive(Clone, Debug, Default)]
pub struct SearchCommand {
    /// The program of a trial, with the parameters as `{lr}`.
    pub words: Vec<String>,
    /// Parameters, as `NAME=DOMAIN`.
    pub space: Vec<String>,
    pub minimize: Vec<String>,
    pub maximize: Vec<String>,
    pub sampler: Option<String>,
    pub pruner: Option<String>,
    pub trials: Option<u32>,
    pub parallel: Option<u32>,
    pub seed: Option<u64>,
    /// Where Optuna sees the study, and its name there.
    pub storage: Option<String>,
    pub study: Option<String>,
    /// No trial begins when the search took so long.
    pub budget: Option<String>,
    pub gpu_hours: Option<String>,
    pub constraints: Vec<String>,
    /// Parameters to try first, as `NAME=VALUE,…`.
    pub starts: Vec<String>,
    /// Files and folders that the program needs and the command does not name.
    pub with: Vec<String>,
    /// Files that a trial leaves, as `NAME=PATH`.
    pub out: Vec<String>,
    pub cpus: Option<String>,
    pub gpus: Option<String>,
    pub memory: Option<String>,
    pub time: Option<String>,
    pub container: Option<String>,
    /// The name of the run.
    pub name: String,
}

impl SearchCommand {
    /// The workflow of a command, with the existing files of the folder that it names.
    pub fn text(&self, folder: &Path) -> Result<String, Failure> {
        let command = self;
        let settings = self.settings()?;
        let files = named_files(folder, command)?;
        let names: Vec<String> = (1..=files.len()).map(|number| format!("file_{number}")).collect();
        let run = match command.words.as_slice() {
            [line] if line.contains(char::is_whitespace) => json!(line),
            words => json!(words),
        };
        let mut search = json!({
            "space": settings.space,
            "sampler": settings.sampler,
            "pruner": settings.pruner,
            "seed": settings.seed,
        });
        for (key, names) in [("minimize", &command.minimize), ("maximize", &command.maximize)] {
            set(&mut search, key, &(!names.is_empty()).then_some(names));
        }
        set(&mut search, "trials", &self.trials);
        set(&mut search, "time", &command.budget);
        set(&mut search, "gpu_hours", &command.gpu_hours);
        set(&mut search, "constraints", &(!command.constraints.is_empty()).then_some(&command.constraints));
        set(&mut search, "start", &(!settings.starts.is_empty()).then_some(&settings.starts));
        set(&mut search, "parallel", &self.parallel);
        set(&mut search, "storage", &self.storage);
        set(&mut search, "study", &self.study);
        let mut task = json!({"search": search, "run": run});
        let out = outputs(command)?;
        set(&mut task, "in", &(!names.is_empty()).then_some(&names));
        set(&mut task, "out", &(!out.is_empty()).then_some(out));
        set(&mut task, "cpus", &command.cpus);
        set(&mut task, "gpus", &command.gpus);
        set(&mut task, "memory", &command.memory);
        set(&mut task, "time", &command.time);
        set(&mut task, "container", &command.container);
        let data: Map<String, Json> = names.iter().cloned().zip(files.into_iter().map(Json::from)).collect();
        // JSON is YAML too.
        let mut workflow = json!({"workflow": command.name, "tasks": {"search": task}});
        set(&mut workflow, "data", &(!data.is_empty()).then_some(data));
        Ok(format!("{workflow:#}\n"))
    }

    pub fn settings(&self) -> Result<Settings, Failure> {
        let command = self;
        if command.minimize.is_empty() && command.maximize.is_empty() {
            let hint =
                "say `--minimize loss` or `--maximize accuracy`; the program prints that number: {\"loss\": 0.2}";
            return Err(Failure::usage_with("nothing says what is better", hint));
        }
        if command.space.is_empty() {
            let hint = "say for example `--space 'lr=log(1e-5,1e-1)'`, and `{lr}` in the command";
            return Err(Failure::usage_with("there is nothing to be tried", hint));
        }
        if self.trials.is_none() && command.budget.is_none() && command.gpu_hours.is_none() {
            let hint = "say `--trials 50`, or `--budget 2h` or `--gpu-hours 10`";
            return Err(Failure::usage_with("nothing says when the search is over", hint));
        }
        let parameters = command.space.iter().map(|text| {
            Parameter::parse(&with_choices(text)).map_err(|error| {
                let hint = "write NAME=DOMAIN with log(1e-5,1e-1), float(0,1), int(1,8) or choice(adam,sgd)";
                Failure::usage_with(format!("--space '{text}': {error}"), hint)
            })
        });
        let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
        let space = Space::new(parameters).map_err(|error| Failure::usage(format!("--space: {error}")))?;
        let smaller = command.minimize.iter().map(|name| Objective::minimize(name));
        let settings = Settings {
            space,
            objectives: smaller.chain(command.maximize.iter().map(|name| Objective::maximize(name))).collect(),
            sampler: understood::<Sampler>("sampler", command.sampler.as_deref())?,
            pruner: understood::<Pruner>("pruner", command.pruner.as_deref())?,
            seed: self.seed.unwrap_or_default(),
            starts: command.starts.iter().map(|text| start(text)).collect::<Result<_, _>>()?,
        };
        match Study::new(settings.clone()) {
            Ok(_) => Ok(settings),
            Err(error) => Err(Failure::usage(error.to_string())),
        }
    }
}

/// `opt=[adam,sgd]`, as one would write it in a workflow.
fn with_choices(text: &str) -> String {
    let listed = text.split_once('=').and_then(|(name, rest)| {
        let inside = rest.trim().strip_prefix('[')?.strip_suffix(']')?;
        Some(format!("{name}=choice({inside})"))
    });
    listed.unwrap_or_else(|| text.to_owned())
}

/// `lr=0.001,layers=3`
fn start(text: &str) -> Result<Values, Failure> {
    let values = text.split(',').map(|part| {
        let (name, value) = part.split_once('=')?;
        Some((name.trim().to_owned(), Value::parse(value.trim())))
    });
    values.collect::<Option<Values>>().ok_or_else(|| {
        let hint = "write the parameters with commas between them: `--start 'lr=0.001,layers=3'`";
        Failure::usage_with(format!("--start '{text}': names and values are wanted"), hint)
    })
}

/// A name, or JSON where it has settings of its own.
fn understood<T: DeserializeOwned + Default>(option: &str, text: Option<&str>) -> Result<T, Failure> {
    let Some(text) = text else { return Ok(T::default()) };
    let json = serde_json::from_str(text).unwrap_or_else(|_| Json::from(text));
    serde_json::from_value(json).map_err(|error| Failure::usage(format!("--{option} {text}: {error}")))
}

fn set(object: &mut Json, key: &str, value: &Option<impl serde::Serialize>) {
    if let Some(value) = value {
        object[key] = json!(value);
    }
}

fn outputs(command: &SearchCommand) -> Result<Map<String, Json>, Failure> {
    let output = |text: &String| match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), Json::from(path))),
        _ => Err(Failure::usage_with(
            format!("--out '{text}': a name and a path are wanted"),
            "write for example `--out 'model=model-{trial}.pt'`, and `{model}` in the command",
        )),
    };
    command.out.iter().map(output).collect()
}

/// Files and folders of the project that the command names, once each, and those that were asked for.
fn named_files(folder: &Path, command: &SearchCommand) -> Result<Vec<String>, Failure> {
    let mut found: Vec<String> = Vec::new();
    for path in &command.with {
        match inside(folder, path) {
            Some(path) => found.push(path),
            None => {
                let message = format!("--with {path}: there is no such file or folder below this one");
                return Err(Failure::usage_with(message, "a trial gets files of the folder in which it is started"));
            }
        }
    }
    // A program that has it beside itself imports it.
    found.extend(inside(folder, CLIENT));
    let words = command.words.iter().flat_map(|word| word.split_whitespace());
    // `--config=small.yaml` names a file too.
    let words = words.flat_map(|word| word.split('='));
    found.extend(words.filter(|word| !word.starts_with('-')).filter_map(|word| inside(folder, word)));
    // Sorted, a folder stands before what is in it, which comes with it.
    found.sort();
    found.dedup_by(|path, before| path == before || (before.ends_with('/') && path.starts_with(before.as_str())));
    Ok(found)
}

/// A path as `data:` names it, if there is something and it is below the folder.
fn inside(folder: &Path, word: &str) -> Option<String> {
    let parts = Path::new(word).components().filter(|part| *part != Component::CurDir);
    let names: Option<Vec<&str>> = parts
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let path = names.filter(|names| !names.is_empty())?.join("/");
    let is_pattern = path.contains(['{', '*', '?', '[']);
    match folder.join(&path) {
        found if is_pattern || !found.exists() => None,
        found if found.is_dir() => Some(format!("{path}/")),
        _ => Some(path),
    }
}
