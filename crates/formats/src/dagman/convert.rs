//! From nodes to tasks: each job in a folder of its own, with exactly the files that it names.

use super::codes::{BRACES, FINAL};
use super::connect::{Connections, Made};
use super::dag::{Dag, Node, Script};
use super::describe::Describer;
use super::draft::{Draft, InFile, Program, shell_word, template};
use super::report::Report;
use super::{Found, Surroundings, paths, script};
use crate::pegasus::convert::names::{Names, plain};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::ids::{DataId, SetId};
use tulpar_core::workflow::{
    Data, DataSource, FileSource, Input, Output, OutputKind, Run, Span, Task, Template, Workflow,
};

/// Programs and files from elsewhere are shown here, so that no two of them meet.
const STAGED: &str = ".staged";

pub(super) fn convert(name: &str, dag: &Dag, surroundings: &dyn Surroundings, report: &mut Report) -> Workflow {
    let mut names = Names::default();
    let mut drafts = Vec::new();
    let mut describer = Describer::new(dag, surroundings, report, &mut names);
    for (number, node) in dag.nodes.iter().enumerate() {
        if !node.done {
            drafts.extend(describer.drafts(number as u32));
        }
    }
    let mut task_names = Names::default();
    let task_names: Vec<String> = drafts.iter().map(|draft| task_names.unique(&draft.name)).collect();
    let mut connections = Connections::new(dag, drafts, &task_names);
    connections.streams(report);
    connections.outputs(report);
    let mut builder = Builder {
        dag,
        surroundings,
        report,
        names,
        data: Vec::new(),
        data_of: FxHashMap::default(),
        shown: FxHashMap::default(),
        output_names: FxHashMap::default(),
    };
    let sources: Vec<Vec<Source>> =
        (0..connections.drafts.len() as u32).map(|draft| builder.sources(draft, &mut connections)).collect();
    let mut tasks: Vec<Task> = Vec::with_capacity(connections.drafts.len());
    for (number, sources) in sources.iter().enumerate() {
        let task = builder.task(&connections, number, &task_names[number], sources);
        tasks.push(task);
    }
    builder.order(&connections, &mut tasks);
    let data = builder.data;
    let mut workflow = Workflow { name: plain(name), data, tasks, ..Workflow::default() };
    workflow.places.incomplete = report.has_errors();
    workflow
}

/// Where a file that a task reads comes from, and how the sandbox shows it.
struct Source {
    input: Input,
    /// Where the sandbox has it.
    shown: String,
    /// What the job calls it.
    name: String,
    role: Role,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Program,
    Pre,
    Post,
    File,
    Contents,
}

struct Builder<'a> {
    dag: &'a Dag,
    surroundings: &'a dyn Surroundings,
    report: &'a mut Report,
    names: Names,
    data: Vec<Data>,
    /// By where the sandbox shows it.
    data_of: FxHashMap<String, DataId>,
    /// By path on the submit side and whether it is a program.
    shown: FxHashMap<(String, bool), String>,
    output_names: FxHashMap<(u32, u32), String>,
}

impl Builder<'_> {
    fn sources(&mut self, number: u32, connections: &mut Connections<'_>) -> Vec<Source> {
        let draft = connections.drafts[number as usize].clone();
        let node = &self.dag.nodes[draft.node as usize];
        let mut wanted: Vec<(InFile, Role)> = Vec::new();
        let file = |path: &str| InFile { path: path.to_owned(), name: paths::last(path).to_owned(), contents: false };
        if let Program::Sent(path) = &draft.program {
            wanted.push((file(path), Role::Program));
        }
        for (script, role) in [(&node.pre, Role::Pre), (&node.post, Role::Post)] {
            if let Some(path) = script.as_ref().and_then(|script| sent(node, script)) {
                wanted.push((file(&path), role));
            }
        }
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        for file in draft.inputs.iter().chain(&draft.stdin) {
            if seen.insert(&file.path) {
                wanted.push((file.clone(), if file.contents { Role::Contents } else { Role::File }));
            }
        }
        let mut found: Vec<Source> = Vec::with_capacity(wanted.len());
        for (file, role) in wanted {
            let made = connections
                .maker(number, &file.path)
                .or_else(|| connections.guess(number, &file.path, self.surroundings, self.report))
                .filter(|made| made.draft != number);
            let (source, shown, name) = match made {
                Some(made) => self.made(made, &file.path, connections),
                None => self.data(&file.path, matches!(role, Role::Program | Role::Pre | Role::Post), draft.place.span),
            };
            let program = role == Role::Program;
            let input = Input { name, source, bypass: false, program, span: draft.place.span };
            found.push(Source { input, shown, name: file.name, role });
        }
        found
    }

    fn made(&mut self, made: Made, path: &str, connections: &Connections<'_>) -> (FileSource, String, String) {
        let output = &connections.drafts[made.draft as usize].outputs[made.output as usize];
        let name = self.output_name(made.draft, made.output, &output.path);
        let source = FileSource::Output { task: SetId::from(made.draft as usize), output: made.output };
        (source, connections.shown(made, path), name)
    }

    fn output_name(&mut self, draft: u32, output: u32, path: &str) -> String {
        let names = &mut self.names;
        let plain: String = path.replace(|letter: char| ('\u{e000}'..='\u{e00f}').contains(&letter), "_");
        self.output_names.entry((draft, output)).or_insert_with(|| names.unique(&plain)).clone()
    }

    /// A file that exists before the run.
    fn data(&mut self, path: &str, program: bool, span: Span) -> (FileSource, String, String) {
        let key = (path.to_owned(), program);
        let shown = match self.shown.get(&key) {
            Some(shown) => shown.clone(),
            None => {
                // A file of the folder keeps its path; programs and what is elsewhere get a place of their own.
                let own = paths::is_inside(path) && !program;
                let mut shown = if own { path.to_owned() } else { format!("{STAGED}/{}", paths::last(path)) };
                let mut number = 2;
                while self.data_of.contains_key(&shown) {
                    shown = format!("{STAGED}/{number}/{}", paths::last(path));
                    number += 1;
                }
                let directory = own && self.surroundings.found(path) == Found::Directory;
                let source = match directory {
                    true => DataSource::Directory(format!("{path}/")),
                    false => DataSource::Files(BTreeMap::from([(shown.clone(), path.to_owned())])),
                };
                self.data_of.insert(shown.clone(), DataId::from(self.data.len()));
                self.data.push(Data { name: self.names.unique(path), source, sha256: Default::default(), span });
                self.shown.insert(key, shown.clone());
                shown
            }
        };
        let data = self.data_of[&shown];
        (FileSource::Data(data), shown, self.data[data.index()].name.clone())
    }

    fn task(&mut self, connections: &Connections<'_>, number: usize, name: &str, sources: &[Source]) -> Task {
        let draft = &connections.drafts[number];
        let node = &self.dag.nodes[draft.node as usize];
        let span = draft.place.span;
        let mut outputs = Vec::with_capacity(draft.outputs.len());
        for (position, output) in draft.outputs.iter().enumerate() {
            let name = self.output_name(number as u32, position as u32, &output.path);
            let slash = if output.contents { "/" } else { "" };
            let Some(path) = template(&format!("{}{slash}", output.path)) else {
                self.braces(draft, &output.path);
                continue;
            };
            let kind = if output.contents { OutputKind::Directory } else { OutputKind::File };
            let (optional, temporary, register, size) = (false, false, false, None);
            outputs.push(Output { name, path, kind, optional, temporary, register, size, span });
        }
        let line = self.line(draft, node, sources);
        let mut inputs: Vec<Input> = sources.iter().map(|source| source.input.clone()).collect();
        inputs.sort_by(|one, other| one.name.cmp(&other.name));
        inputs.dedup_by(|one, other| one.name == other.name);
        Task {
            name: name.to_owned(),
            scatter: draft.axes.clone(),
            inputs,
            outputs,
            after: Vec::new(),
            run: Run::Shell(Template(line.into())),
            variants: Vec::new(),
            when: None,
            settings: draft.settings.clone(),
            span,
        }
    }

    fn braces(&mut self, draft: &Draft, text: &str) {
        let message = format!("doubled braces around a name cannot be carried over: `{text}`");
        let help = "put a space or a quote between the two braces";
        self.report.push(&draft.place, Diagnostic::error(BRACES, None, message).help(help));
    }

    fn word(&mut self, draft: &Draft, text: &str) -> String {
        shell_word(text).unwrap_or_else(|| {
            self.braces(draft, text);
            "''".to_owned()
        })
    }

    /// The shell stops at the first line that fails.
    fn line(&mut self, draft: &Draft, node: &Node, sources: &[Source]) -> String {
        let mut lines: Vec<String> = Vec::new();
        let mut moves: Vec<String> = Vec::new();
        let mut folders: FxHashSet<&str> = FxHashSet::default();
        for stream in [&draft.stdout, &draft.stderr].into_iter().flatten() {
            let folder = paths::folder(stream);
            if !folder.is_empty() && folders.insert(folder) {
                lines.push(format!("mkdir -p {}", self.word(draft, folder)));
            }
        }
        for output in draft.outputs.iter().filter(|output| output.made != output.path) {
            let (from, to) = (self.word(draft, &output.made), self.word(draft, &output.path));
            let folder = paths::folder(&output.path);
            // Not before the program, which may make the folder itself.
            if !folder.is_empty() && folders.insert(folder) {
                moves.push(format!("mkdir -p {}", self.word(draft, folder)));
            }
            // A missing file fails the task when its outputs are collected, unless a POST script decides.
            moves.push(format!("[ ! -e {from} ] || mv {from} {to}"));
        }
        let mut installed: FxHashSet<&str> = FxHashSet::default();
        for source in sources {
            let shown = self.word(draft, &source.shown);
            match source.role {
                Role::Program | Role::Pre | Role::Post => {
                    if installed.insert(&source.name) {
                        // A copy, never a link: interpreters follow links and look for modules beside the original.
                        lines.push(format!(
                            "install -m 755 {shown} {}",
                            self.word(draft, &format!("./{}", source.name))
                        ));
                    }
                }
                Role::Contents => lines.push(format!("ln -s {shown}/* .")),
                Role::File if source.shown != source.name => {
                    let folder = paths::folder(&source.name);
                    if !folder.is_empty() && folders.insert(folder) {
                        lines.push(format!("mkdir -p {}", self.word(draft, folder)));
                    }
                    lines.push(format!("ln -s {shown} {}", self.word(draft, &source.name)));
                }
                Role::File => {}
            }
        }
        if let Some(pre) = &node.pre {
            let line = self.script(draft, node, pre);
            match node.pre_skip {
                Some(code) => lines.push(format!("{line} || {{ PRE=$?; [ $PRE = {code} ] && exit 0; exit $PRE; }}")),
                None => lines.push(line),
            }
        }
        let mut command = self.command(draft);
        if let (Some(code), None, Some(line)) = (draft.success, &node.post, &command) {
            command = Some(format!("CODE=0\n{line} || CODE=$?\n[ $CODE = {code} ] || exit $((CODE ? CODE : 1))"));
        }
        match (&node.post, command) {
            (Some(post), command) => {
                lines.push("RETURN=0".to_owned());
                lines.extend(command.map(|command| format!("{command} || RETURN=$?")));
                lines.append(&mut moves);
                let line = self.script(draft, node, post);
                lines.push(line);
            }
            (None, command) => {
                lines.extend(command);
                lines.append(&mut moves);
            }
        }
        if lines.is_empty() {
            lines.push("true".to_owned());
        }
        lines.join("\n")
    }

    fn command(&mut self, draft: &Draft) -> Option<String> {
        let program = match &draft.program {
            Program::None => return None,
            Program::Sent(path) => format!("./{}", paths::last(path)),
            Program::There(path) => path.clone(),
        };
        let mut words = Vec::with_capacity(draft.arguments.len() + 4);
        words.push(self.word(draft, &program));
        for argument in &draft.arguments {
            let word = self.word(draft, argument);
            words.push(word);
        }
        if let Some(file) = &draft.stdin {
            words.push(format!("< {}", self.word(draft, &file.name)));
        }
        if let Some(path) = &draft.stdout {
            words.push(format!("> {}", self.word(draft, path)));
        }
        match &draft.stderr {
            Some(path) if draft.stdout.as_ref() == Some(path) => words.push("2>&1".to_owned()),
            Some(path) => words.push(format!("2> {}", self.word(draft, path))),
            None => {}
        }
        Some(words.join(" "))
    }

    fn script(&mut self, draft: &Draft, node: &Node, found: &Script) -> String {
        let program = match sent(node, found) {
            Some(path) => format!("./{}", paths::last(&path)),
            None => found.words[0].clone(),
        };
        let mut words = vec![self.word(draft, &program)];
        words.extend(script::words(node, found, self.report));
        words.join(" ")
    }

    /// What tasks wait for beside their files. FINAL nodes wait for everything that nothing else waits for.
    fn order(&mut self, connections: &Connections<'_>, tasks: &mut [Task]) {
        let by_files: Vec<FxHashSet<SetId>> = tasks
            .iter()
            .map(|task| {
                let made = task.inputs.iter().filter_map(|input| match input.source {
                    FileSource::Output { task, .. } | FileSource::Search { task, .. } => Some(task),
                    FileSource::Data(_) | FileSource::Latest { .. } => None,
                });
                made.collect()
            })
            .collect();
        let mut has_child = vec![false; self.dag.nodes.len()];
        for (parent, child) in &self.dag.edges {
            has_child[*parent as usize] = true;
            for after in connections.drafts_of(*child) {
                let waits = connections.drafts_of(*parent).map(|before| SetId::from(before as usize));
                let known = &by_files[after as usize];
                tasks[after as usize].after.extend(waits.filter(|before| !known.contains(before)));
            }
        }
        for (number, node) in self.dag.nodes.iter().enumerate().filter(|(_, node)| node.is_final && !node.done) {
            let message = format!("the FINAL node `{}` runs only when everything else went well", node.name);
            self.report.push(&node.place, Diagnostic::warning(FINAL, None, message));
            let ends = (0..self.dag.nodes.len()).filter(|other| *other != number && !has_child[*other]);
            let ends: Vec<SetId> = ends
                .flat_map(|node| connections.drafts_of(node as u32))
                .map(|draft| SetId::from(draft as usize))
                .collect();
            for draft in connections.drafts_of(number as u32) {
                let known = &by_files[draft as usize];
                tasks[draft as usize].after.extend(ends.iter().filter(|before| !known.contains(before)));
            }
        }
    }
}

/// The path of a script that is sent along; one of the system is run where it is.
fn sent(node: &Node, script: &Script) -> Option<String> {
    let program = script.words.first()?;
    let system = ["/bin/", "/usr/", "/opt/", "/sbin/"].iter().any(|folder| program.starts_with(folder));
    (!system).then(|| paths::join(&node.folder, program))
}
