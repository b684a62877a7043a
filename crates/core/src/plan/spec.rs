//! From a job to what is run: its files, its command with every value in place, its cache key.

use super::graph::Graph;
use super::scatter::{self, Bound};
use crate::event::Key;
use crate::ids::{AttemptId, Digest, JobId};
use crate::job::{CommandLine, InputFile, InputFiles, JobSpec, OutputFile, OutputSpec, Source};
use crate::resources::Request;
use crate::workflow::template::{self, TemplateError, Values};
use crate::workflow::{FileSource, Limits, OutputKind, Run, Settings, Task, Template, Value};
use std::sync::Arc;

/// What is needed to say what a job is: the graph, and what the jobs above it have left.
#[derive(Clone, Copy)]
pub struct SpecContext<'a> {
    pub graph: &'a Graph,
    pub outputs: &'a [Option<Arc<[OutputFile]>>],
}

impl<'a> SpecContext<'a> {
    /// Everything that is needed to run one attempt of a job whose inputs exist. An error when a file's
    /// name, known only now, cannot be written safely where the command wants it.
    pub fn spec(
        &self,
        attempt: AttemptId,
        request: &Request,
        node: &str,
        gpus: Vec<String>,
    ) -> Result<JobSpec, TemplateError> {
        let task = self.task(attempt.job);
        let environment = &task.settings.environment;
        let names = self.names(attempt.job);
        let command = names.command(task)?;
        let lists: Vec<String> = names.lists(task);
        let variables = environment.variables.iter().map(|(name, value)| (name.clone(), names.plain(value))).collect();
        let outputs = names.outputs;
        let inputs = names
            .inputs
            .into_iter()
            .map(|input| {
                let list = lists.contains(&input.name).then(|| list_path(&input.name));
                InputFiles { list, ..input }
            })
            .collect();
        Ok(JobSpec {
            attempt,
            name: self.graph.name(attempt.job),
            command,
            variables,
            secrets: environment.secrets.clone(),
            container: environment.container.clone(),
            venv: environment.venv.clone(),
            conda: environment.conda.clone(),
            inputs,
            outputs,
            checkpoint: task.settings.checkpoint.clone(),
            limits: Limits { memory: request.memory, time: request.time, grace: task.settings.grace },
            milli_cpus: request.milli_cpus,
            gpus,
            node: node.to_owned(),
        })
    }

    /// What decides whether an earlier result may stand for this job.
    pub fn key(&self, job: JobId) -> Key {
        let task = self.task(job);
        let names = self.names(job);
        let command = match names.command(task) {
            Ok(CommandLine::Shell { shell, line }) => format!("{shell} -c {line}"),
            Ok(CommandLine::Arguments(arguments)) => serde_json::to_string(&arguments).expect("strings are plain data"),
            // It will be refused before it runs, so its key is never used.
            Err(error) => error.to_string(),
        };
        let outputs = names
            .outputs
            .iter()
            .map(|output| format!("{}={}{}", output.name, output.path, kind_mark(output)))
            .collect::<Vec<_>>()
            .join("\n");
        // Without outputs there is no content to share: only the very same task has been done already.
        let outputs = if outputs.is_empty() { format!("none of {}", self.graph.name(job)) } else { outputs };
        let digest =
            |(position, input): (usize, &InputFiles)| (input.name.clone(), self.input_digest(job, position, input));
        let inputs = names.inputs.iter().enumerate().map(digest).collect();
        Key { command, environment: self.environment_key(&task.settings, &names), outputs, inputs }
    }

    /// The files of every input, those of scatter variables included.
    pub fn inputs(&self, job: JobId) -> Vec<InputFiles> {
        let mut inputs: Vec<InputFiles> = self
            .task(job)
            .inputs
            .iter()
            .map(|input| InputFiles { name: input.name.clone(), files: self.files(job, input.source), list: None })
            .collect();
        for axis in self.graph.axes_of(self.graph.set_of(job)) {
            let Some(name) = axis.names.first() else { continue };
            let files: Arc<[InputFile]> = match self.graph.variable(job, name) {
                Some(Bound::File(file)) => Arc::new([file.clone()]),
                Some(Bound::Batch(files, _)) => files.into(),
                _ => continue,
            };
            inputs.push(InputFiles { name: name.clone(), files, list: None });
        }
        inputs
    }

    /// The value of a parameter or scatter variable.
    pub fn value(&self, job: JobId, name: &str) -> Option<Value> {
        match self.graph.variable(job, name) {
            Some(Bound::Value(value)) => Some(value),
            Some(other) => Some(Value::Text(other.label())),
            None => self.graph.plan().workflow.params.get(name).cloned(),
        }
    }

    fn task(&self, job: JobId) -> &'a Task {
        self.graph.plan().task(self.graph.set_of(job))
    }

    fn files(&self, job: JobId, source: FileSource) -> Arc<[InputFile]> {
        match source {
            FileSource::Data(data) => self.graph.plan().files[data.index()].clone(),
            FileSource::Output { task, output } => self
                .graph
                .selected(job, task)
                .into_iter()
                .filter_map(|producer| self.outputs[producer.index()].as_ref())
                .flat_map(|files| files.iter())
                .filter(|file| file.output == output)
                .map(|file| InputFile {
                    path: file.path.clone(),
                    source: Source::Object,
                    size: file.size,
                    digest: file.digest,
                })
                .collect(),
        }
    }

    fn names(&self, job: JobId) -> Names<'a> {
        let mut names = Names { context: *self, job, inputs: self.inputs(job), outputs: Vec::new() };
        names.outputs = self
            .task(job)
            .outputs
            .iter()
            .map(|output| OutputSpec {
                name: output.name.clone(),
                path: names.plain(&output.path).trim_end_matches('/').to_owned(),
                kind: output.kind,
                optional: output.optional,
            })
            .collect();
        names
    }

    /// Declared inputs come first and in their order; those of scatter variables follow.
    fn input_digest(&self, job: JobId, position: usize, input: &InputFiles) -> Digest {
        let declared = self.task(job).inputs.get(position);
        match declared.map(|input| input.source) {
            Some(FileSource::Data(data)) => self.graph.data_digest(data),
            _ => files_digest(&input.files),
        }
    }

    fn environment_key(&self, settings: &Settings, names: &Names<'_>) -> String {
        let environment = &settings.environment;
        let known = &self.graph.plan().environments;
        let mut lines = Vec::new();
        let software =
            [("container", &environment.container), ("venv", &environment.venv), ("conda", &environment.conda)];
        for (kind, value) in software {
            if let Some(value) = value {
                let digest = known.get(value).map(|digest| format!(" {digest}")).unwrap_or_default();
                lines.push(format!("{kind} {value}{digest}"));
            }
        }
        for (name, value) in &environment.variables {
            lines.push(format!("{name}={}", names.plain(value)));
        }
        lines.extend(environment.secrets.iter().map(|name| format!("secret {name}")));
        lines.join("\n")
    }
}

/// The content of some files under their names, whatever their order.
pub(super) fn files_digest(files: &[InputFile]) -> Digest {
    crate::key::files_digest(files.iter().map(|file| (file.path.as_str(), file.digest)))
}

/// What the names in a job's templates mean.
struct Names<'a> {
    context: SpecContext<'a>,
    job: JobId,
    inputs: Vec<InputFiles>,
    outputs: Vec<OutputSpec>,
}

impl Names<'_> {
    fn command(&self, task: &Task) -> Result<CommandLine, TemplateError> {
        let mut look_up = |name: &str, attribute: &str| self.look_up(name, attribute);
        match &task.run {
            Run::Shell(line) => {
                let shell = task.settings.shell.clone().unwrap_or_else(|| "sh".to_owned());
                Ok(CommandLine::Shell { shell, line: template::shell(&line.0, &mut look_up)? })
            }
            Run::Arguments(arguments) => {
                let mut words = Vec::new();
                for argument in arguments {
                    words.extend(template::argument(&argument.0, &mut look_up)?);
                }
                Ok(CommandLine::Arguments(words))
            }
        }
    }

    /// Of paths and variables: reading has refused every name that is not known.
    fn plain(&self, template: &Template) -> String {
        template::plain(&template.0, &mut |name, attribute| self.look_up(name, attribute))
            .unwrap_or_else(|_| template.0.to_string())
    }

    /// Inputs of which some template wants the list file.
    fn lists(&self, task: &Task) -> Vec<String> {
        let templates: Vec<&Template> = match &task.run {
            Run::Shell(line) => vec![line],
            Run::Arguments(arguments) => arguments.iter().collect(),
        };
        let variables = task.settings.environment.variables.values();
        templates
            .into_iter()
            .chain(variables)
            .flat_map(|template| template::references(&template.0))
            .filter(|reference| reference.attribute == "list")
            .map(|reference| reference.name.to_owned())
            .collect()
    }

    fn input_values(&self, input: &InputFiles, attribute: &str) -> Option<Values<'static>> {
        match attribute {
            "list" => return Some(Values::one(list_path(&input.name))),
            "index" => {
                let axes = self.context.graph.axes_of(self.context.graph.set_of(self.job));
                let row = axes
                    .iter()
                    .zip(scatter::rows(axes, self.context.graph.index_of(self.job)))
                    .find_map(|(axis, row)| axis.names.contains(&input.name).then_some(row))?;
                return Some(Values::one((row + 1).to_string()));
            }
            _ => {}
        }
        let paths: Vec<&str> = input.files.iter().map(|file| file.path.as_str()).collect();
        Some(match template::file_values(&paths, attribute)? {
            Values::One(one) => Values::one(one.into_owned()),
            Values::Many(many) => Values::many(many.into_iter().map(|one| one.into_owned())),
        })
    }

    fn look_up(&self, name: &str, attribute: &str) -> Option<Values<'static>> {
        if let Some(input) = self.inputs.iter().find(|input| input.name == name) {
            return self.input_values(input, attribute);
        }
        if let Some(output) = self.outputs.iter().find(|output| output.name == name) {
            return output_values(output, attribute);
        }
        if let Some(value) = self.context.value(self.job, name) {
            return Some(Values::one(value.to_string()));
        }
        let request = &self.context.task(self.job).settings.request;
        match name {
            "cpus" => Some(Values::one(request.milli_cpus.div_ceil(1000).to_string())),
            "gpus" => Some(Values::one(request.gpus.to_string())),
            _ => None,
        }
    }
}

/// A directory is meant by its path, and so is the place of a pattern: a glob would match nothing yet.
fn output_values(output: &OutputSpec, attribute: &str) -> Option<Values<'static>> {
    match (attribute, output.kind) {
        ("", OutputKind::Pattern) | ("dir", OutputKind::Pattern | OutputKind::File) => {
            Some(Values::one(template::output_directory(&output.path).to_owned()))
        }
        ("", _) | ("dir", OutputKind::Directory) => Some(Values::one(output.path.clone())),
        _ => None,
    }
}

fn list_path(name: &str) -> String {
    format!(".tulpar-lists/{name}")
}

fn kind_mark(output: &OutputSpec) -> &'static str {
    match (output.kind, output.optional) {
        (OutputKind::Directory, false) => "/",
        (OutputKind::Directory, true) => "/?",
        (_, true) => "?",
        (_, false) => "",
    }
}
