//! From a node and its submit description to the jobs that it stands for.

use super::codes::{
    MACRO, NO_EFFECT, NO_FILE, NO_PROGRAM, NOT_CARRIED, QUEUE, QUOTING, SHARED_FOLDER, TOO_MUCH, UNDECLARED,
};
use super::dag::{Dag, Node, Submit};
use super::draft::{Draft, InFile, OutFile, Program, has_symbol};
use super::macros::{Macros, OPEN};
use super::queue::{Jobs, parse as parse_queue};
use super::report::{Place, Report};
use super::settings::{AT_THE_SITE, settings, without_job};
use super::submit::{Description, Queued};
use super::{Surroundings, paths, quoting};
use crate::pegasus::convert::names::Names;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::{Axis, AxisValues, Settings, Value};

/// Jobs of one node that differ in their input files become tasks of their own, but not more than this.
const MOST_TASKS: usize = 100_000;

pub(super) struct Describer<'a> {
    pub(super) dag: &'a Dag,
    pub(super) surroundings: &'a dyn Surroundings,
    pub(super) report: &'a mut Report,
    /// Of files and of the variables of task sets.
    pub(super) names: &'a mut Names,
    texts: FxHashMap<String, Option<Arc<str>>>,
    known: FxHashSet<Arc<Settings>>,
    /// How many `queue` statements were read: HTCondor gives each a number of its own, `$(Cluster)`.
    clusters: u32,
}

/// Commands in whose text a variable of `queue` can stay a symbol, as long as its values are plain words.
const SYMBOLIC: &[&str] = &[
    "arguments",
    "args",
    "output",
    "stdout",
    "error",
    "stderr",
    "transfer_output_files",
    "transfer_output_remaps",
    "environment",
    "env",
];

/// The values of one `queue`, looked up by their names.
pub(super) struct Values<'m, 'r> {
    pub(super) macros: &'m Macros,
    pub(super) surroundings: &'m dyn Surroundings,
    pub(super) report: &'r mut Report,
    pub(super) place: &'m Place,
    /// A variable of `queue` stands where only the value of each job will do.
    pub(super) by_job: bool,
}

impl Values<'_, '_> {
    pub(super) fn get(&mut self, key: &str) -> Option<String> {
        // A variable of `queue` may itself be a submit command.
        self.by_job |= self.macros.is_symbol(key);
        let value = self.macros.get(key)?;
        let text = self.expanded(value);
        self.by_job |= text.contains(OPEN) && !SYMBOLIC.contains(&key);
        Some(text)
    }

    pub(super) fn first(&mut self, keys: &[&str]) -> Option<String> {
        keys.iter().find_map(|key| self.get(key))
    }

    fn truth(&mut self, key: &str, usual: bool) -> bool {
        match self.get(key).map(|value| value.trim().to_ascii_lowercase()).as_deref() {
            Some("true" | "yes" | "1" | "t") => true,
            Some("false" | "no" | "0" | "f") => false,
            _ => usual,
        }
    }

    pub(super) fn expanded(&mut self, text: &str) -> String {
        let expanded = self.macros.expand(text, self.surroundings);
        for name in &expanded.undefined {
            let message = format!("`$({name})` is set nowhere; nothing takes its place");
            self.once(name, Diagnostic::warning(MACRO, None, message));
        }
        for name in &expanded.unknown {
            let message = format!("`{name}` cannot be known here");
            let help = "write the value itself";
            self.once(name, Diagnostic::error(MACRO, None, message).help(help));
        }
        self.by_job |= expanded.taken_apart;
        if expanded.too_long {
            self.error(TOO_MUCH, "macros stand for each other without end".to_owned());
        }
        expanded.text
    }

    pub(super) fn error(&mut self, code: &'static str, message: String) {
        self.report.once(self.place, message.clone(), Diagnostic::error(code, None, message));
    }

    pub(super) fn once(&mut self, about: &str, diagnostic: Diagnostic) {
        self.report.once(self.place, about, diagnostic);
    }
}

impl<'a> Describer<'a> {
    pub(super) fn new(
        dag: &'a Dag,
        surroundings: &'a dyn Surroundings,
        report: &'a mut Report,
        names: &'a mut Names,
    ) -> Self {
        let (texts, known) = (FxHashMap::default(), FxHashSet::default());
        Self { dag, surroundings, report, names, texts, known, clusters: 0 }
    }

    /// The jobs of a node, at least one.
    pub(super) fn drafts(&mut self, number: u32) -> Vec<Draft> {
        let node = &self.dag.nodes[number as usize];
        if node.noop {
            return vec![self.empty(number)];
        }
        let Some((text, place)) = self.text(node) else { return vec![self.empty(number)] };
        let mut macros = Macros::default();
        for variable in node.variables.iter().filter(|variable| !variable.append) {
            macros.set(&variable.name, &variable.value);
        }
        macros.set("JOB", &node.name);
        let mut description = Description {
            surroundings: self.surroundings,
            report: self.report,
            macros,
            queued: Vec::new(),
            attributes: Vec::new(),
            folder: &node.folder,
        };
        description.read(&text, &place, 0);
        let Description { macros, mut queued, attributes, .. } = description;
        for (name, place) in attributes {
            let message = format!("the attribute `{name}` of the job is not carried over");
            let finding = Diagnostic::warning(NO_EFFECT, None, message).help(AT_THE_SITE);
            self.report.once(&place, name, finding);
        }
        if queued.is_empty() {
            let span = node.place.span;
            queued.push(Queued { macros, statement: String::new(), place: Place { span, ..place } });
        }
        let mut drafts = Vec::new();
        for mut found in queued {
            for variable in node.variables.iter().filter(|variable| variable.append) {
                found.macros.set(&variable.name, &variable.value);
            }
            found.macros.set("JOB", &node.name);
            self.queued(number, found, &mut drafts);
        }
        if drafts.is_empty() {
            drafts.push(self.empty(number));
        }
        drafts
    }

    /// The text of a description, and where it begins.
    fn text(&mut self, node: &Node) -> Option<(Arc<str>, Place)> {
        match &node.submit {
            Submit::Inline(text, place) => Some((text.clone(), place.clone())),
            Submit::File(path) => {
                if !self.texts.contains_key(path) {
                    let text = self.surroundings.text(path).map(Arc::from);
                    if text.is_none() {
                        let message = format!("there is no submit description `{path}`, which `{}` names", node.name);
                        let help = "paths are relative to the folder of the DAG, or to DIR";
                        self.report.push(&node.place, Diagnostic::error(NO_FILE, None, message).help(help));
                    }
                    self.texts.insert(path.clone(), text);
                }
                let text = self.texts.get(path).cloned().flatten()?;
                Some((text, Place { file: Some(path.as_str().into()), line: 1, ..Place::default() }))
            }
        }
    }

    fn empty(&mut self, number: u32) -> Draft {
        let node = &self.dag.nodes[number as usize];
        Draft {
            node: number,
            name: node.name.clone(),
            axes: Vec::new(),
            program: Program::None,
            arguments: Vec::new(),
            stdin: None,
            stdout: None,
            stderr: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            says_outputs: true,
            settings: Arc::new(without_job(node)),
            success: None,
            place: node.place.clone(),
        }
    }

    fn queued(&mut self, number: u32, queued: Queued, drafts: &mut Vec<Draft>) {
        let Queued { mut macros, statement, place } = queued;
        self.clusters += 1;
        ["Cluster", "ClusterId"].iter().for_each(|name| macros.set(name, &self.clusters.to_string()));
        let folder = self.dag.nodes[number as usize].folder.clone();
        let mut values = Values {
            macros: &macros,
            surroundings: self.surroundings,
            report: self.report,
            place: &place,
            by_job: false,
        };
        let statement = values.expanded(&statement);
        let jobs = match parse_queue(&statement, &folder, self.surroundings) {
            Ok(jobs) => jobs,
            Err(why) => {
                let message =
                    format!("`queue {}` cannot be carried over: {why}", statement.lines().next().unwrap_or(""));
                return self.report.error(&place, QUEUE, message);
            }
        };
        let (names, rows) = match jobs {
            Jobs::Count(0) => return,
            Jobs::Count(1) => {
                let (draft, _) = self.job(number, &macros, &place);
                return drafts.push(draft);
            }
            Jobs::Count(count) => {
                let axis = self.names.unique("Process");
                let mut symbolic = macros.clone();
                for name in ["Process", "ProcId", "Step"] {
                    symbolic.symbol(name, &axis);
                }
                let values = AxisValues::Range { first: 0, last: count as i64 - 1, step: 1 };
                if let Some(draft) = self.task_set(number, &symbolic, &place, |_| {
                    Some(Axis { names: vec![axis.clone()], values: values.clone() })
                }) {
                    return drafts.push(draft);
                }
                let rows = (0..count.min(MOST_TASKS as u64 + 1)).map(|number| vec![Value::Integer(number as i64)]);
                (vec!["Process".to_owned()], rows.collect::<Vec<_>>())
            }
            Jobs::Rows { names, rows } => {
                let mut symbolic = macros.clone();
                let axes: Vec<String> = names.iter().map(|name| self.names.unique(name)).collect();
                for (name, axis) in names.iter().zip(&axes) {
                    symbolic.symbol(name, axis);
                }
                for (alias, of) in [("ProcId", "Process"), ("Row", "ItemIndex")] {
                    if let Some(at) = names.iter().position(|name| name == of) {
                        symbolic.symbol(alias, &axes[at]);
                    }
                }
                if let Some(draft) = self.task_set(number, &symbolic, &place, |draft| axis_of(draft, &axes, &rows)) {
                    return drafts.push(draft);
                }
                (names, rows)
            }
        };
        if rows.len() > MOST_TASKS {
            let message = format!("more than {MOST_TASKS} jobs differ in more than plain words");
            return self.report.error(&place, TOO_MUCH, message);
        }
        for (index, row) in rows.iter().enumerate() {
            let mut concrete = macros.clone();
            for (name, value) in names.iter().zip(row) {
                concrete.set(name, &value.to_string());
                match name.as_str() {
                    "Process" => ["ProcId", "Step"].iter().for_each(|alias| concrete.set(alias, &value.to_string())),
                    "ItemIndex" => concrete.set("Row", &value.to_string()),
                    _ => {}
                }
            }
            let (mut draft, _) = self.job(number, &concrete, &place);
            draft.name = format!("{}_{index}", draft.name);
            drafts.push(draft);
        }
    }

    /// All jobs as one, where they differ in plain words alone; findings count only then.
    fn task_set(
        &mut self,
        number: u32,
        symbolic: &Macros,
        place: &Place,
        axis: impl FnOnce(&Draft) -> Option<Axis>,
    ) -> Option<Draft> {
        let before = std::mem::take(self.report);
        let (mut draft, by_job) = self.job(number, symbolic, place);
        let said = std::mem::replace(self.report, before);
        if by_job {
            return None;
        }
        draft.axes.push(axis(&draft)?);
        self.report.absorb(said);
        Some(draft)
    }

    /// One job, and whether it has a variable of `queue` where a task set cannot have one.
    fn job(&mut self, number: u32, macros: &Macros, place: &Place) -> (Draft, bool) {
        let mut draft = self.empty(number);
        let node = &self.dag.nodes[number as usize];
        let mut values = Values { macros, surroundings: self.surroundings, report: self.report, place, by_job: false };
        let folder = match values.first(&["initialdir", "initial_dir", "job_iwd", "iwd"]) {
            Some(folder) if !folder.trim().is_empty() => paths::join(&node.folder, folder.trim()),
            _ => node.folder.clone(),
        };
        draft.program = program(node, &mut values);
        draft.arguments = match quoting::arguments(&values.first(&["arguments", "args"]).unwrap_or_default()) {
            Ok(words) => words,
            Err(why) => {
                values.error(QUOTING, format!("the arguments cannot be read: {why}"));
                Vec::new()
            }
        };
        let stream = |path: Option<String>| -> Option<String> {
            let path =
                path.map(|path| path.trim().to_owned()).filter(|path| !path.is_empty() && path != "/dev/null")?;
            Some(paths::join(&folder, &path))
        };
        draft.stdout = stream(values.first(&["output", "stdout"]));
        draft.stderr = stream(values.first(&["error", "stderr"]));
        draft.stdin = stream(values.first(&["input", "stdin"])).map(|path| in_file(&path, false));
        let list = values.get("transfer_input_files").unwrap_or_default();
        let keeps = values.truth("preserve_relative_paths", false);
        let input = |path: &str| {
            let mut file = in_file(&paths::join(&folder, path), path.ends_with('/'));
            let own = paths::clean(path);
            if keeps && !file.contents && paths::is_inside(&own) {
                file.name = own;
            }
            file
        };
        draft.inputs = split(&list).map(input).collect();
        outputs(&mut draft, &folder, &mut values);
        shared_folder(&draft, node, &mut values);
        draft.success = values.number("success_exit_code").map(|code| code as u8).filter(|code| *code != 0);
        let settings = settings(node, &mut values);
        let by_job = values.by_job;
        draft.settings = match self.known.get(&settings) {
            Some(known) => known.clone(),
            None => {
                let settings = Arc::new(settings);
                self.known.insert(settings.clone());
                settings
            }
        };
        (draft, by_job)
    }
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.trim().trim_matches('"').split([',', '\n']).map(str::trim).filter(|item| !item.is_empty())
}

fn in_file(path: &str, contents: bool) -> InFile {
    InFile { path: path.to_owned(), name: paths::last(path).to_owned(), contents }
}

fn program(node: &Node, values: &mut Values<'_, '_>) -> Program {
    const HERE: &[&str] = &["/bin/", "/sbin/", "/usr/", "/opt/", "/cvmfs/", "/nix/"];
    let Some(path) = values.get("executable").map(|path| path.trim().to_owned()).filter(|path| !path.is_empty()) else {
        if values.first(&["docker_image", "container_image"]).is_none() {
            values.error(NO_PROGRAM, format!("`{}` has no executable", node.name));
        } else {
            let message = format!("`{}` runs what its image starts by itself, which is not carried over", node.name);
            values.error(NO_PROGRAM, message);
        }
        return Program::None;
    };
    if HERE.iter().any(|folder| path.starts_with(folder)) {
        return Program::There(path);
    }
    if values.truth("transfer_executable", true) {
        return Program::Sent(paths::join(&node.folder, &path));
    }
    let in_image = values.first(&["docker_image", "container_image"]).is_some();
    Program::There(if path.contains('/') || in_image { path } else { format!("./{path}") })
}

/// The files that come back, and their names: HTCondor drops the folders of a name, unless it is to keep them, and renames what
/// arrives by the name under which it arrives.
fn outputs(draft: &mut Draft, folder: &str, values: &mut Values<'_, '_>) {
    let list = values.get("transfer_output_files");
    draft.says_outputs = list.is_some();
    let keeps = values.truth("preserve_relative_paths", false);
    let list = list.unwrap_or_default();
    let remaps = values.get("transfer_output_remaps").unwrap_or_default();
    let mut outputs: Vec<OutFile> = Vec::new();
    for made in split(&list) {
        let contents = made.ends_with('/');
        let arrives = if keeps { paths::clean(made) } else { paths::last(made).to_owned() };
        outputs.push(OutFile { made: paths::clean(made), path: arrives.clone(), arrives, contents });
    }
    for (from, to) in renames(&remaps) {
        let whole = |output: &&mut OutFile| !output.contents && output.arrives == from;
        let within = |output: &OutFile| from.strip_prefix(&output.arrives).is_some_and(|rest| rest.starts_with('/'));
        let target = if paths::is_url(to) {
            let message = format!("`{from}` is to go to `{to}`, which is not done");
            values.once(to, Diagnostic::warning(NOT_CARRIED, None, message).help("results lie under `results/`"));
            paths::last(from)
        } else {
            to
        };
        let target = paths::clean(target);
        if let Some(output) = outputs.iter_mut().find(whole) {
            output.path = target;
        } else if outputs.iter().any(|output| !output.contents && within(output))
            || (!draft.says_outputs && !from.contains('/'))
        {
            // A file of a folder that is brought back; or nothing says what is, and then it is all that is new.
            let made = paths::clean(from);
            outputs.insert(0, OutFile { made, path: target.clone(), arrives: target, contents: false });
        } else {
            let message = format!("`{from}={to}` renames nothing: no file arrives under the name `{from}`");
            let help = format!(
                "write `{}={to}`: HTCondor drops the folders of a file before it renames it",
                paths::last(from)
            );
            values.once(from, Diagnostic::warning(NO_EFFECT, None, message).help(help));
        }
    }
    for output in &mut outputs {
        output.path = paths::join(folder, &output.path);
        output.arrives = output.path.clone();
        if output.contents {
            let message =
                format!("what is in `{}` stays in a folder of that name; HTCondor would empty it", output.made);
            values.once("contents", Diagnostic::warning(NOT_CARRIED, None, message));
        }
    }
    draft.outputs = outputs;
}

/// `a=b; c=d` of `transfer_output_remaps`.
pub(crate) fn renames(remaps: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = remaps.trim().trim_matches('"').split(';').filter_map(|pair| pair.split_once('='));
    pairs.map(|(from, to)| (from.trim(), to.trim()))
}

/// Without file transfer a job reads and writes where it likes.
fn shared_folder(draft: &Draft, node: &Node, values: &mut Values<'_, '_>) {
    let transfers = values.get("should_transfer_files").unwrap_or_default().trim().to_ascii_lowercase();
    let silent = draft.inputs.is_empty() && draft.outputs.is_empty() && draft.stdin.is_none();
    if node.alone && !draft.says_outputs && draft.outputs.is_empty() && transfers == "yes" {
        let message =
            "which files the job makes is not said; HTCondor would bring back all, here only its streams stay";
        let help = "name them: `transfer_output_files = model.pt, metrics.json`, or nothing after the `=` for none";
        values.once("undeclared", Diagnostic::warning(UNDECLARED, None, message).help(help));
    }
    if transfers == "no" || (transfers != "yes" && silent && !draft.says_outputs) {
        let message = format!(
            "`{}` works in a folder that it shares with others; which files it reads and writes there cannot be known",
            node.name
        );
        let help = "here it gets a folder of its own with its declared files: name them with `transfer_input_files` and `transfer_output_files`";
        values.once("shared", Diagnostic::warning(SHARED_FOLDER, None, message).help(help));
    }
}

/// Rows with only the columns that make a difference, and at least one. `None` where a value is more than a plain word:
/// HTCondor puts it into the text before the text is taken apart.
fn axis_of(draft: &Draft, axes: &[String], rows: &[Vec<Value>]) -> Option<Axis> {
    let texts: Vec<&str> = draft.texts().collect();
    let in_template = |axis: &str, text: &str| text.contains(&format!("{{{axis}}}"));
    let used = |axis: &String| texts.iter().any(|text| has_symbol(text, axis) || in_template(axis, text));
    let mut kept: Vec<usize> = (0..axes.len()).filter(|column| used(&axes[*column])).collect();
    if rows.iter().any(|row| kept.iter().any(|column| !is_plain(&row[*column]))) {
        return None;
    }
    // The number of the job tells rows apart that are equal otherwise.
    if !kept.contains(&(axes.len() - 1)) {
        kept.push(axes.len() - 1);
    }
    let pick = |row: &Vec<Value>| -> Vec<Value> { kept.iter().map(|column| row[*column].clone()).collect() };
    Some(Axis {
        names: kept.iter().map(|column| axes[*column].clone()).collect(),
        values: AxisValues::Rows(rows.iter().map(pick).collect()),
    })
}

/// A word in which nothing separates, quotes or stands for something else.
fn is_plain(value: &Value) -> bool {
    let text = value.to_string();
    let special = |letter: char| letter.is_whitespace() || "\"'\\$,;=".contains(letter);
    !text.is_empty() && !text.contains(special)
}
