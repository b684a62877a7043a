//! From the text of any version to an [`Instance`].

use super::codes::{
    CYCLE, DUPLICATE, IMPOSSIBLE, NO_TASKS, NOT_RUN, ONE_SIDED, SHAPE, SYNTAX, TWO_MAKERS, TWO_SIZES, UNKNOWN_FILE,
    UNKNOWN_MACHINE, UNKNOWN_TASK, VERSION,
};
use super::{File, Instance, Machine, System, Task, graph, kind, raw};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Number;
use serde_json::error::Category;
use std::collections::BTreeMap;
use tulpar_core::diagnostic::{Diagnostic, Severity};
use tulpar_core::workflow::Span;

const KNOWN: &[&str] = &["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"];
/// Old versions count memory, and what is not from Pegasus also bytes, in thousands.
const KILO: f64 = 1000.0;

/// The instance, unless the text is no JSON or something in it contradicts itself; and everything to be said about it.
pub fn read(text: &str) -> (Option<Instance>, Vec<Diagnostic>) {
    let text = text.trim_start_matches('\u{feff}');
    let root: raw::Root = match serde_json::from_str(text) {
        Ok(root) => root,
        Err(error) => return (None, vec![refused(text, &error)]),
    };
    let mut reader = Reader { text, instance: Instance::default(), names: Names::default(), said: BTreeMap::new() };
    reader.root(root);
    reader.finish()
}

fn refused(text: &str, error: &serde_json::Error) -> Diagnostic {
    let start = text.lines().take(error.line().saturating_sub(1)).map(|line| line.len() + 1).sum::<usize>();
    let at = (start + error.column().saturating_sub(1)).min(text.len()) as u32;
    let span = Span { start: at, end: at };
    let what = error.to_string();
    let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what);
    match error.classify() {
        Category::Data => Diagnostic::error(SHAPE, span, format!("this is no WfFormat: {what}")),
        Category::Eof => Diagnostic::error(SYNTAX, span, format!("the text ends too early: {what}"))
            .help("was the file copied in full?"),
        Category::Syntax | Category::Io => Diagnostic::error(SYNTAX, span, format!("this is not valid JSON: {what}")),
    }
}

/// Findings of one kind: the first in full, the others counted, since an instance has thousands of tasks.
struct Said {
    severity: Severity,
    word: String,
    message: String,
    more: usize,
}

#[derive(Default)]
struct Names {
    tasks: FxHashMap<String, u32>,
    files: FxHashMap<String, u32>,
    machines: FxHashMap<String, u32>,
}

struct Reader<'t> {
    text: &'t str,
    instance: Instance,
    names: Names,
    said: BTreeMap<(&'static str, &'static str), Said>,
}

impl Reader<'_> {
    /// `word` is looked up in the text to show the place; `about` keeps different messages of one code apart.
    fn say(&mut self, severity: Severity, code: &'static str, about: &'static str, word: &str, message: String) {
        let said = self.said.entry((code, about));
        said.and_modify(|said| said.more += 1).or_insert_with(|| Said {
            severity,
            word: word.to_owned(),
            message,
            more: 0,
        });
    }

    fn error(&mut self, code: &'static str, about: &'static str, word: &str, message: String) {
        self.say(Severity::Error, code, about, word, message);
    }

    fn warn(&mut self, code: &'static str, about: &'static str, word: &str, message: String) {
        self.say(Severity::Warning, code, about, word, message);
    }

    fn root(&mut self, root: raw::Root) {
        let version = match root.schema_version {
            Some(raw::Version::Text(text)) => text,
            Some(raw::Version::Number(number)) => format!("{number:?}"),
            None => String::new(),
        };
        if !KNOWN.contains(&version.as_str()) {
            let message = match version.as_str() {
                "" => "the instance does not say its `schemaVersion`; it is read by its shape".to_owned(),
                version => format!("version {version} of WfFormat is not known; it is read by its shape"),
            };
            self.warn(VERSION, "", &version, message);
        }
        let system = root.runtime_system.or(root.wms);
        self.instance = Instance {
            name: root.name.unwrap_or_default(),
            description: root.description,
            version,
            created_at: root.created_at,
            system: system.map(|system| System { name: system.name, version: system.version, url: system.url }),
            ..Instance::default()
        };
        let workflow = root.workflow;
        match workflow.specification {
            Some(specification) => self.divided(specification, workflow.execution),
            None => {
                let makespan = workflow.makespan_in_seconds.or(workflow.makespan);
                self.instance.makespan = self.number(makespan, "makespan");
                self.instance.executed_at = workflow.executed_at;
                let tasks = if workflow.tasks.is_empty() { workflow.jobs } else { workflow.tasks };
                self.machines(workflow.machines);
                self.together(tasks);
            }
        }
    }

    /// 1.5 and 1.6: what is to be done and what was done are apart.
    fn divided(&mut self, specification: raw::Specification, execution: Option<raw::Execution>) {
        let declared = specification.files.is_some();
        for file in specification.files.unwrap_or_default() {
            let size = self.count(file.size_in_bytes, &file.id, 1.0).unwrap_or(0);
            if self.names.files.contains_key(&file.id) {
                self.error(DUPLICATE, "file", &file.id, format!("the file `{}` is declared twice", file.id));
            }
            let number = self.file(file.id);
            self.instance.files[number as usize].size = size;
        }
        let mut links = Vec::with_capacity(specification.tasks.len());
        for task in specification.tasks {
            let mut files = |names: Vec<String>| -> Vec<u32> {
                let mut found = Vec::with_capacity(names.len());
                for name in names {
                    if declared && !self.names.files.contains_key(&name) {
                        let message = format!("the file `{name}` is not declared under `files`; its size is not known");
                        self.warn(UNKNOWN_FILE, "", &name, message);
                    }
                    found.push(self.file(name));
                }
                each_once(found)
            };
            let inputs = files(task.input_files);
            let outputs = files(task.output_files);
            let name = task.name.unwrap_or_else(|| task.id.clone());
            self.task(Task { id: task.id, name, inputs, outputs, cores: 1.0, ..Task::default() });
            links.push((task.parents, task.children));
        }
        let mut categories = vec![None; self.instance.tasks.len()];
        if let Some(execution) = execution {
            self.instance.makespan = self.number(execution.makespan_in_seconds, "makespanInSeconds");
            self.instance.executed_at = execution.executed_at;
            self.machines(execution.machines);
            let mut seen = vec![false; self.instance.tasks.len()];
            for executed in execution.tasks {
                let Some(number) = self.names.tasks.get(&executed.id).map(|number| *number as usize) else {
                    let message = format!("`{}` was executed, but is no task of the specification", executed.id);
                    self.error(UNKNOWN_TASK, "execution", &executed.id, message);
                    continue;
                };
                if std::mem::replace(&mut seen[number], true) {
                    let message = format!("the execution of `{}` is recorded twice", executed.id);
                    self.error(DUPLICATE, "execution", &executed.id, message);
                    continue;
                }
                categories[number] = self.executed(number, executed);
            }
            for number in (0..seen.len()).filter(|number| !seen[*number]) {
                let id = self.instance.tasks[number].id.clone();
                self.warn(NOT_RUN, "", &id, format!("no execution of `{id}` is recorded; it counts as 0 s"));
            }
        }
        self.kinds(categories);
        self.edges(links, |names, id| names.tasks.get(id).copied().ok_or(0));
    }

    fn executed(&mut self, number: usize, executed: raw::Executed) -> Option<String> {
        let id = executed.id;
        let machines = executed.machines.into_iter().chain(executed.machine).map(|name| self.machine(name)).collect();
        let command = executed.command.unwrap_or_default();
        let found = Task {
            runtime: self.number(executed.runtime_in_seconds, &id),
            cores: self.number(executed.core_count.or(executed.core_share), &id).unwrap_or(1.0),
            gpus: self.number(executed.gpu_count, &id).unwrap_or(0.0),
            memory: self.count(executed.memory_in_bytes, &id, 1.0),
            read_bytes: self.count(executed.read_bytes, &id, 1.0),
            written_bytes: self.count(executed.written_bytes, &id, 1.0),
            average_cpu: self.number(executed.average_cpu, &id),
            energy_kwh: self.number(executed.energy, &id),
            average_watts: self.number(executed.power, &id),
            priority: executed.priority.and_then(|priority| priority.as_f64()),
            program: command.program,
            arguments: command.arguments,
            started_at: executed.executed_at,
            machines: each_once(machines),
            ..Task::default()
        };
        let task = &mut self.instance.tasks[number];
        let known = std::mem::take(task);
        *task = Task { id: known.id, name: known.name, inputs: known.inputs, outputs: known.outputs, ..found };
        executed.category
    }

    /// 1.0 to 1.4: each task carries everything, and names its parents by name.
    fn together(&mut self, tasks: Vec<raw::OldTask>) {
        let thousands = match &self.instance.system {
            Some(system) if system.name.eq_ignore_ascii_case("pegasus") => 1.0,
            _ => KILO,
        };
        let mut by_name: FxHashMap<String, (u32, u32)> = FxHashMap::default();
        let mut by_old_id: FxHashMap<String, u32> = FxHashMap::default();
        let mut links = Vec::with_capacity(tasks.len());
        let mut categories = Vec::with_capacity(tasks.len());
        for task in tasks {
            let number = self.instance.tasks.len() as u32;
            by_name.entry(task.name.clone()).or_insert((number, 0)).1 += 1;
            // WfCommons' own migration makes ids this way.
            let id = match &task.id {
                Some(id) if !task.name.contains(id.as_str()) => format!("{}_{id}", task.name),
                _ => task.name.clone(),
            };
            if let Some(old) = task.id {
                by_old_id.entry(old).or_insert(number);
            }
            let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
            for file in task.files {
                let name = file.path.unwrap_or_default() + &file.name;
                let size = self.count(file.size_in_bytes.or(file.size), &name, 1.0);
                let number = self.file(name);
                let known = &mut self.instance.files[number as usize];
                let before = known.size;
                known.size = before.max(size.unwrap_or(0));
                if size.is_some_and(|size| before != 0 && size != 0 && before != size) {
                    let name = known.id.clone();
                    self.warn(TWO_SIZES, "", &name, format!("the file `{name}` has two sizes; the larger one counts"));
                }
                match file.link.as_str() {
                    "input" => inputs.push(number),
                    "output" => outputs.push(number),
                    other => self.error(SHAPE, "link", other, format!("`{other}` is no kind of link")),
                }
            }
            let machines = task.machine.into_iter().map(|name| self.machine(name)).collect();
            let command = task.command.unwrap_or_default();
            let made = Task {
                runtime: self.number(task.runtime_in_seconds.or(task.runtime), &id),
                cores: self.number(task.cores, &id).unwrap_or(1.0),
                gpus: self.number(task.gpu_count, &id).unwrap_or(0.0),
                memory: self.either(task.memory_in_bytes, task.memory, &id, KILO),
                read_bytes: self.either(task.read_bytes, task.bytes_read, &id, thousands),
                written_bytes: self.either(task.written_bytes, task.bytes_written, &id, thousands),
                average_cpu: self.number(task.average_cpu, &id),
                energy_kwh: self.number(task.energy, &id),
                average_watts: self.number(task.avg_power, &id),
                priority: task.priority.and_then(|priority| priority.as_f64()),
                program: command.program,
                arguments: if command.arguments.is_empty() { task.arguments } else { command.arguments },
                inputs: each_once(inputs),
                outputs: each_once(outputs),
                machines,
                name: task.name,
                id,
                ..Task::default()
            };
            if made.runtime.is_none() {
                let id = made.id.clone();
                self.warn(NOT_RUN, "", &id, format!("no run time of `{id}` is recorded; it counts as 0 s"));
            }
            self.task(made);
            links.push((task.parents, task.children));
            categories.push(task.category);
        }
        self.kinds(categories);
        self.edges(links, |names, id| match by_name.get(id) {
            Some((number, 1)) => Ok(*number),
            Some((_, many)) => Err(*many),
            None => names.tasks.get(id).or_else(|| by_old_id.get(id)).copied().ok_or(0),
        });
    }

    fn task(&mut self, task: Task) {
        let number = self.instance.tasks.len() as u32;
        if self.names.tasks.insert(task.id.clone(), number).is_some() {
            self.error(DUPLICATE, "task", &task.id, format!("two tasks have the id `{}`", task.id));
        }
        self.instance.tasks.push(task);
    }

    fn file(&mut self, id: String) -> u32 {
        if let Some(number) = self.names.files.get(&id) {
            return *number;
        }
        let number = self.instance.files.len() as u32;
        self.instance.files.push(File { id: id.clone(), size: 0 });
        self.names.files.insert(id, number);
        number
    }

    fn machines(&mut self, machines: Vec<raw::Machine>) {
        for machine in machines {
            let name = machine.node_name;
            let number = self.instance.machines.len() as u32;
            if self.names.machines.insert(name.clone(), number).is_some() {
                self.error(DUPLICATE, "machine", &name, format!("the machine `{name}` is described twice"));
            }
            let made = Machine {
                system: machine.system,
                architecture: machine.architecture,
                release: machine.release,
                memory: self.either(machine.memory_in_bytes, machine.memory, &name, KILO),
                cores: self.count(machine.cpu.core_count.or(machine.cpu.count), &name, 1.0),
                megahertz: self.count(machine.cpu.speed_in_megahertz.or(machine.cpu.speed), &name, 1.0),
                vendor: machine.cpu.vendor,
                name,
            };
            self.instance.machines.push(made);
        }
    }

    fn machine(&mut self, name: String) -> u32 {
        if let Some(number) = self.names.machines.get(&name) {
            return *number;
        }
        self.warn(UNKNOWN_MACHINE, "", &name, format!("the machine `{name}` is not described"));
        let number = self.instance.machines.len() as u32;
        self.instance.machines.push(Machine { name: name.clone(), ..Machine::default() });
        self.names.machines.insert(name, number);
        number
    }

    /// A category when there is one, else a guess.
    fn kinds(&mut self, categories: Vec<Option<String>>) {
        for (task, category) in self.instance.tasks.iter_mut().zip(categories) {
            task.kind = category
                .filter(|category| !category.is_empty())
                .unwrap_or_else(|| kind::guess(&task.id, &task.name, task.program.as_deref()).to_owned());
        }
    }

    /// Parents, children and files together. `find` fails with the number of tasks that it could be.
    fn edges(&mut self, links: Vec<(Vec<String>, Vec<String>)>, find: impl Fn(&Names, &str) -> Result<u32, u32>) {
        let mut sides: FxHashMap<(u32, u32), u8> = FxHashMap::default();
        for (number, (parents, children)) in links.into_iter().enumerate() {
            let number = number as u32;
            for (ids, side) in [(parents, 1), (children, 2)] {
                for id in ids {
                    match find(&self.names, &id) {
                        Ok(other) => {
                            let edge = if side == 1 { (other, number) } else { (number, other) };
                            *sides.entry(edge).or_insert(0) |= side;
                        }
                        Err(0) => {
                            let task = &self.instance.tasks[number as usize].id;
                            let message = format!("`{task}` names `{id}`, but there is no such task");
                            self.error(UNKNOWN_TASK, "edge", &id, message);
                        }
                        Err(many) => {
                            let message = format!("`{id}` is the name of {many} tasks: which one is meant?");
                            self.error(DUPLICATE, "edge", &id, message);
                        }
                    }
                }
            }
        }
        self.file_edges(&mut sides);
        let mut edges: Vec<((u32, u32), u8)> = sides.into_iter().collect();
        edges.sort_unstable();
        // Before 1.5 a text need not name children.
        let both = edges.iter().any(|(_, side)| side & 2 != 0);
        for ((parent, child), side) in edges {
            let (one, other) = (&self.instance.tasks[parent as usize].id, &self.instance.tasks[child as usize].id);
            let half = match side & 3 {
                0 => Some(format!("`{other}` reads what `{one}` writes, but no edge says so; it is added")),
                1 if both => Some(format!("`{other}` names `{one}` as its parent, but is not named as its child")),
                2 => Some(format!("`{one}` names `{other}` as its child, but is not named as its parent")),
                _ => None,
            };
            if let Some(half) = half {
                let word = other.clone();
                self.warn(ONE_SIDED, if side & 3 == 0 { "file" } else { "task" }, &word, half);
            }
            self.instance.tasks[child as usize].parents.push(parent);
            self.instance.tasks[parent as usize].children.push(child);
        }
    }

    fn file_edges(&mut self, sides: &mut FxHashMap<(u32, u32), u8>) {
        let makers = graph::makers(&self.instance.tasks, self.instance.files.len());
        for number in 0..self.instance.tasks.len() {
            let task = &self.instance.tasks[number];
            let child = number as u32;
            for file in &task.inputs {
                if let Some(parent) = makers[*file as usize].filter(|parent| *parent != child) {
                    *sides.entry((parent, child)).or_insert(0) |= 4;
                }
            }
            let twice = task.outputs.iter().find(|file| makers[**file as usize] != Some(child));
            if let Some(name) = twice.map(|file| self.instance.files[*file as usize].id.clone()) {
                let message = format!("`{}` writes `{name}`, which another task writes too", task.id);
                self.warn(TWO_MAKERS, "", &name, message);
            }
        }
    }

    fn number(&mut self, number: Option<Number>, whose: &str) -> Option<f64> {
        let value = number?.as_f64().unwrap_or(f64::NAN);
        if value.is_finite() && value >= 0.0 {
            return Some(value);
        }
        self.error(IMPOSSIBLE, "", whose, format!("a number of `{whose}` cannot be: {value}"));
        None
    }

    fn count(&mut self, number: Option<Number>, whose: &str, factor: f64) -> Option<u64> {
        match number.as_ref().and_then(Number::as_u64).filter(|_| factor == 1.0) {
            Some(exact) => Some(exact),
            None => self.number(number, whose).map(|value| (value * factor).round() as u64),
        }
    }

    /// The key of newer versions in bytes, or the older one in its own unit.
    fn either(&mut self, bytes: Option<Number>, old: Option<Number>, whose: &str, factor: f64) -> Option<u64> {
        match bytes {
            Some(bytes) => self.count(Some(bytes), whose, 1.0),
            None => self.count(old, whose, factor),
        }
    }

    fn finish(mut self) -> (Option<Instance>, Vec<Diagnostic>) {
        if self.instance.tasks.is_empty() {
            self.error(NO_TASKS, "", "", "the instance has no tasks".to_owned());
        }
        let order = graph::order(&self.instance.tasks);
        if let Some(cycle) = graph::cycle(&self.instance.tasks, &order) {
            let ids: Vec<&str> = cycle.iter().map(|task| self.instance.tasks[*task as usize].id.as_str()).collect();
            let shown: Vec<&str> = ids.iter().copied().take(8).chain(ids.first().copied()).collect();
            let first = shown[0].to_owned();
            let message = format!("tasks wait for each other: {}", shown.join(" → "));
            self.error(CYCLE, "", &first, message);
        }
        let mut findings: Vec<Diagnostic> = self
            .said
            .into_iter()
            .map(|((code, _), said)| {
                let at = (!said.word.is_empty()).then(|| self.text.find(&format!("\"{}\"", said.word))).flatten();
                let span = at.map(|at| Span { start: at as u32 + 1, end: (at + 1 + said.word.len()) as u32 });
                let more = match said.more {
                    0 => String::new(),
                    more => format!(" (and {more} more like this)"),
                };
                Diagnostic { severity: said.severity, ..Diagnostic::error(code, span, said.message + &more) }
            })
            .collect();
        findings.sort_by_key(|finding| finding.span.map(|span| span.start));
        let good = !findings.iter().any(Diagnostic::is_error);
        (good.then_some(self.instance), findings)
    }
}

fn each_once(mut list: Vec<u32>) -> Vec<u32> {
    let mut seen = FxHashSet::default();
    list.retain(|item| seen.insert(*item));
    list
}
