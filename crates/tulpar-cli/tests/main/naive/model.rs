//! The naive engine: it computes every task of a world, in order, and remembers nothing.
//!
//! It reads commands as the shell would and scripts by their first line, so it knows the result of any task on any
//! contents. Only the points that a search tries are taken from the run: the engine says what came of them.

use super::world::{Kind, LARGE, Script, Source, Task, World, written};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex};
use tulpar_core::ids::Digest;

/// Texts by path.
pub(crate) type Files = BTreeMap<String, String>;

/// One task with everything that its result depends on, and its result.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) set: String,
    pub(crate) command: String,
    pub(crate) variables: BTreeMap<String, String>,
    /// Of a trial, the point that it tries.
    pub(crate) point: Option<Value>,
    pub(crate) inputs: BTreeMap<String, Files>,
    /// None when its program fails.
    pub(crate) outputs: Option<Files>,
}

impl Job {
    /// Everything that can change its result.
    pub(crate) fn key(&self) -> String {
        format!("{}\n{:?}\n{:?}\n{:?}", self.command, self.variables, self.point, self.inputs)
    }
}

/// The result of a search, as the run shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// The point of each trial, and the same as the text that its program got.
    pub(crate) points: BTreeMap<String, (Value, String)>,
    pub(crate) best: String,
    pub(crate) trials: String,
    pub(crate) best_trial: u64,
}

/// The true outcome of a world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Truth {
    pub(crate) jobs: BTreeMap<String, Job>,
    pub(crate) skipped: BTreeSet<String>,
}

impl Truth {
    /// The files that people see under `results/`.
    pub(crate) fn results(&self) -> Files {
        self.jobs.values().filter_map(|job| job.outputs.clone()).flatten().collect()
    }

    /// The files of an output of a task, by the task that left them.
    fn files_of(&self, set: &str, wanted: impl Fn(&str) -> bool) -> Option<Files> {
        let jobs = self.jobs.values().filter(|job| job.set == set && wanted(&job.name));
        jobs.map(|job| job.outputs.clone())
            .collect::<Option<Vec<Files>>>()
            .map(|all| all.into_iter().flatten().collect())
    }
}

pub(crate) fn hex(text: &str) -> String {
    static LARGE_ONES: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);
    if !text.starts_with(LARGE) {
        return Digest::of(text.as_bytes()).to_string();
    }
    let mut known = LARGE_ONES.lock().expect("unpoisoned");
    known.entry(text.to_owned()).or_insert_with(|| Digest::of(written(text).as_bytes()).to_string()).clone()
}

/// The digest of an input: of its only file, or over all of them.
pub(crate) fn digest(files: &Files) -> String {
    if files.len() == 1 {
        return files.values().next().map(|text| hex(text)).expect("one");
    }
    let lines: String = files.iter().map(|(path, text)| format!("{path}\0{}\n", hex(text))).collect();
    hex(&lines)
}

/// Computes everything. Without `found`, searches and what takes their results are left out.
pub(crate) fn recompute(world: &World, found: &BTreeMap<String, Found>) -> Truth {
    let mut truth = Truth::default();
    for task in &world.tasks {
        let elements = elements(world, &truth, task, found);
        if world.is_skipped(&task.name) {
            truth.skipped.extend(elements.iter().map(|element| name(task, element)));
            continue;
        }
        for element in elements {
            if let Some(job) = compute(world, &truth, task, &element, found) {
                truth.jobs.insert(job.name.clone(), job);
            }
        }
    }
    truth
}

/// One task of a set: the text of its value, and its file where it is one.
struct Element {
    value: String,
    file: Option<(String, String)>,
}

fn elements(world: &World, truth: &Truth, task: &Task, found: &BTreeMap<String, Found>) -> Vec<Element> {
    let over =
        |files: Files| files.into_iter().map(|file| Element { value: file.0.clone(), file: Some(file) }).collect();
    let counted = |many: i64| (1..=many).map(|value| Element { value: value.to_string(), file: None }).collect();
    match &task.kind {
        Kind::Plain | Kind::Large | Kind::Split | Kind::Keep(_) => vec![Element { value: String::new(), file: None }],
        Kind::Files => over(list(world, "d/")),
        Kind::Values => counted(world.param("n")),
        Kind::Pieces(split) => over(truth.files_of(split, |_| true).unwrap_or_default()),
        Kind::Search(search) if found.contains_key(&task.name) => counted(i64::from(search.trials)),
        Kind::Search(_) => Vec::new(),
    }
}

fn list(world: &World, folder: &str) -> Files {
    world.files().into_iter().filter(|(path, _)| path.starts_with(folder)).collect()
}

fn name(task: &Task, element: &Element) -> String {
    let Element { value, .. } = element;
    match &task.kind {
        Kind::Plain | Kind::Large | Kind::Split | Kind::Keep(_) => task.name.clone(),
        Kind::Files => format!("{}[f={value}]", task.name),
        Kind::Values => format!("{}[i={value}]", task.name),
        Kind::Pieces(split) => format!("{}[q{split}={value}]", task.name),
        Kind::Search(_) => format!("{}[trial={value}]", task.name),
    }
}

fn compute(
    world: &World,
    truth: &Truth,
    task: &Task,
    element: &Element,
    found: &BTreeMap<String, Found>,
) -> Option<Job> {
    let mut job = Job { name: name(task, element), set: task.name.clone(), ..Job::default() };
    let all = world.files();
    let data = |path: String| BTreeMap::from([(path.clone(), all[&path].clone())]);
    job.inputs.insert(format!("s{}", task.script), data(format!("s{}.sh", task.script)));
    for source in &task.inputs {
        let (name, files) = match source {
            Source::Data(index) => (format!("i{index}"), data(format!("i{index}.txt"))),
            Source::List => ("list".into(), list(world, "d/")),
            Source::Large => ("large".into(), data("large.txt".into())),
            Source::Many => ("many".into(), list(world, "m/")),
            Source::Task(above) => {
                // Tasks over the same values take what the task of the same value left.
                let same = match (&world.task(above).kind, &task.kind) {
                    (Kind::Files, Kind::Files) => Some(format!("{above}[f={}]", element.value)),
                    (Kind::Values, Kind::Values) => Some(format!("{above}[i={}]", element.value)),
                    (Kind::Pieces(one), Kind::Pieces(other)) if one == other => {
                        Some(format!("{above}[q{one}={}]", element.value))
                    }
                    _ => None,
                };
                let wanted = |name: &str| same.as_ref().is_none_or(|same| same == name);
                (format!("{above}o"), truth.files_of(above, wanted)?)
            }
        };
        job.inputs.insert(name, files);
    }
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    if let Some((path, text)) = &element.file {
        let name = if let Kind::Pieces(split) = &task.kind { format!("q{split}") } else { "f".into() };
        let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".txt").to_owned();
        names.insert(format!("{name}.stem"), stem);
        job.inputs.insert(name, BTreeMap::from([(path.clone(), text.clone())]));
    }
    names.extend(["i", "trial"].map(|name| (name.to_owned(), element.value.clone())));
    names.extend(["n", "p0", "p1"].map(|name| (name.to_owned(), world.param(name).to_string())));
    job.variables.extend(task.variable.map(|value| ("E0".to_owned(), value.to_string())));
    let mut received = String::new();
    match &task.kind {
        Kind::Search(_) => {
            let (point, text) = found[&task.name].points.get(&job.name)?;
            names.insert("x".into(), point["x"].to_string());
            (job.point, received) = (Some(point.clone()), text.clone());
        }
        Kind::Keep(search) => {
            let found = found.get(search)?;
            let best = format!("{search}[trial={}]", found.best_trial);
            job.inputs.insert("best".into(), BTreeMap::from([(format!("{search}.best.json"), found.best.clone())]));
            job.inputs
                .insert("trials".into(), BTreeMap::from([(format!("{search}.trials.csv"), found.trials.clone())]));
            job.inputs.insert(format!("{search}o"), truth.files_of(search, |name| name == best)?);
        }
        _ => {}
    }
    for (name, files) in &job.inputs {
        names.insert(name.clone(), files.keys().cloned().collect::<Vec<_>>().join(" "));
    }
    let stem = job.name.clone();
    let outputs = match &task.kind {
        Kind::Keep(_) => vec![("o", ".txt"), ("b", "-best.json"), ("c", "-trials.csv")],
        _ => vec![("o", ".txt")],
    };
    let label = label(task, element, &stem);
    for (letter, ending) in outputs {
        names.insert(format!("{}{letter}", task.name), format!("{label}{ending}"));
    }
    job.command = filled(&task.command(), &names);
    let sandbox: Files = job.inputs.values().flatten().map(|(path, text)| (path.clone(), text.clone())).collect();
    let mut variables = job.variables.clone();
    variables.insert("TULPAR_PARAMETERS".into(), received);
    job.outputs = evaluate(&job.command, &variables, &sandbox);
    Some(job)
}

fn label(task: &Task, element: &Element, whole: &str) -> String {
    match &task.kind {
        Kind::Plain | Kind::Large | Kind::Split | Kind::Keep(_) => whole.to_owned(),
        Kind::Values | Kind::Search(_) => format!("{}-{}", task.name, element.value),
        Kind::Files | Kind::Pieces(_) => {
            let stem = element.value.rsplit('/').next().unwrap_or_default().trim_end_matches(".txt");
            format!("{}-{stem}", task.name)
        }
    }
}

fn filled(template: &str, names: &BTreeMap<String, String>) -> String {
    names.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// The files that a command leaves in a folder with these files; none when it fails.
pub(crate) fn evaluate(command: &str, variables: &BTreeMap<String, String>, sandbox: &Files) -> Option<Files> {
    let mut left = Files::new();
    if let Some(looped) = command.strip_prefix("mkdir -p ") {
        let (_, rest) = looped.split_once("; for k in $(seq ")?;
        let (many, rest) = rest.split_once("); do ")?;
        let body = rest.strip_suffix("; done")?;
        for k in 1..=many.parse::<u32>().ok()? {
            left.extend(evaluate(&body.replace("$k", &k.to_string()), variables, sandbox)?);
        }
        return Some(left);
    }
    for part in command.split("; ") {
        let words: Vec<&str> = part.split(' ').collect();
        match words[..] {
            ["cp", from, to] => drop(left.insert(to.to_owned(), sandbox.get(from)?.clone())),
            ["sh", script, ref arguments @ ..] => {
                let (out, text) = program(script, arguments, variables, sandbox)?;
                left.insert(out, text);
            }
            _ => return None,
        }
    }
    Some(left)
}

fn program(
    path: &str,
    arguments: &[&str],
    variables: &BTreeMap<String, String>,
    sandbox: &Files,
) -> Option<(String, String)> {
    let script = Script::read(sandbox.get(path)?).filter(|script| !script.broken)?;
    let (path, version) = (path.trim_end_matches(".sh"), script.version);
    let e0 = variables.get("E0").map_or("unset", String::as_str);
    let (out, mut text, files) = if script.trial {
        let [out, label, _, files @ ..] = arguments else { return None };
        let received = variables.get("TULPAR_PARAMETERS")?;
        (out, format!("{label} {path} v{version} {e0}\n{received}\n"), files)
    } else {
        let [label, word, files @ .., ">", out] = arguments else { return None };
        let large = if label.starts_with('L') { LARGE } else { "" };
        (out, format!("{large}{label} {word} {path} v{version} {e0}\n"), files)
    };
    for file in files {
        let read = sandbox.get(*file)?;
        let last = read.lines().last().filter(|_| read.starts_with(LARGE));
        read.lines().chain(last).for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    Some(((*out).to_owned(), text))
}

/// The loss that the program of a trial says.
pub(crate) fn loss(world: &World, task: &Task, point: &Value) -> f64 {
    let x = point["x"].as_f64().expect("a number");
    match &task.kind {
        Kind::Search(search) if search.float => x,
        _ => (x - 3.0).powi(2) + f64::from(world.scripts[task.script].version),
    }
}
