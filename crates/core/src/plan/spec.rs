//! From a job to what is run: its files, its command with every value in place, its cache key.

use super::graph::Graph;
use super::outputs::Outputs;
use super::scatter::{self, Bound};
use crate::event::{Key, MemberPublication};
use crate::ids::{AttemptId, Digest, JobId, SetId};
use crate::job::{
    CommandLine, InputFile, InputFiles, JobSpec, OutputFile, OutputSpec, Place, Script, ScriptWork, Source,
};
use crate::resources::Request;
use crate::workflow::planned::{self, Member, MemberSource, Operation, Planned, Work};
use crate::workflow::template::{self, TemplateError, Values};
use crate::workflow::{
    AxisValues, FileSource, Finding, Limits, OutputKind, Run, Settings, Task, Template, Value, Variant,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is needed to say what a job is: the graph, and what the jobs above it have left.
#[derive(Clone, Copy)]
pub struct SpecContext<'a> {
    pub graph: &'a Graph,
    pub outputs: &'a dyn Outputs,
}

impl<'a> SpecContext<'a> {
    /// Everything that is needed to run one attempt of a job whose inputs exist. An error when a file's
    /// name, known only now, cannot be written safely where the command wants it. `variant` says which way of doing
    /// it: 0 is the task's own, the others are counted from 1.
    pub fn spec(
        &self,
        attempt: AttemptId,
        variant: u32,
        request: &Request,
        node: &str,
        gpus: Vec<String>,
    ) -> Result<JobSpec, TemplateError> {
        let task = self.task(attempt.job);
        let mut names = self.names(attempt.job);
        names.variant = variant.checked_sub(1).and_then(|index| task.variants.get(index as usize));
        let mut spec = names.spec(attempt, self.graph.name(attempt.job), request, node, gpus)?;
        let planned = task.run.planned();
        spec.script = planned.and_then(|planned| self.script(attempt.job, planned, &spec.name)).map(Box::new);
        Ok(spec)
    }

    /// What a planned job does beyond its command, if anything.
    fn script(&self, job: JobId, planned: &Planned, name: &str) -> Option<Script> {
        let work = match &planned.work {
            Work::Task(_) if planned.staging.is_none() && planned.images.is_empty() => return None,
            Work::Task(_) => ScriptWork::Command,
            Work::Cluster(cluster) => {
                ScriptWork::Cluster { cluster: cluster.clone(), params: self.params(job).clone() }
            }
            Work::Operation(operation) => ScriptWork::Operation(operation.clone()),
        };
        let push = planned.staging.as_ref().filter(|_| pushes(&planned.work));
        Some(Script {
            work,
            push: push.map(|staging| format!("{}/{}", staging.url, planned::job_folder(name))),
            threads: planned.staging.as_ref().map_or(1, |staging| staging.threads),
            images: planned.images.clone(),
        })
    }

    /// The outputs that a job declares.
    pub fn outputs(&self, job: JobId) -> Vec<OutputSpec> {
        self.names(job).outputs
    }

    /// What decides whether an earlier result may stand for this job.
    pub fn key(&self, job: JobId) -> Key {
        let task = self.task(job);
        let names = self.names(job);
        let digest =
            |(position, input): (usize, &InputFiles)| (input.name.clone(), self.input_digest(job, position, input));
        let inputs = names.inputs.iter().enumerate().map(digest).collect();
        self.key_of(&names, &self.graph.name(job), &task.settings, inputs)
    }

    /// Everything that can change a result belongs to the key: the command with its values, the contents of inputs,
    /// the software, and every variable that the workflow or a search gives the task, whether or not the command names it
    /// (the parameters of a trial reach its program as `TULPAR_PARAMETERS`, and the names of its objectives too).
    ///
    /// These do not belong to it, because they say how fast or where a task runs, not what it computes: the request (cores,
    /// memory, GPUs, time, and the thread counts and devices that follow from it), which a retry or a site may raise; the
    /// variant, because variants are declared to compute the same, and one is chosen only when there is room; the run, the
    /// attempt and the task's name, which identify an execution. A program whose result depends on the number of cores
    /// says so with `{cpus}` in its command or in `env:`. Secrets count by name: a new token is no new result.
    fn key_of(&self, names: &Names<'_>, name: &str, settings: &Settings, mut inputs: BTreeMap<String, Digest>) -> Key {
        let command = match names.command() {
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
        // A list file says the order of its names, which the command does not.
        for list in names.lists() {
            let files = names.inputs.iter().filter(|input| input.name == list).flat_map(|input| input.files.iter());
            let order = crate::key::list_digest(files.map(|file| file.path.as_str()));
            inputs.insert(format!("{list}.list"), order);
        }
        // Without outputs there is no content to share: only the very same task has been done already.
        let outputs = if outputs.is_empty() { format!("none of {name}") } else { outputs };
        Key { command, environment: self.environment_key(settings, names), outputs, inputs }
    }

    /// What each task of a cluster that ended well left, under the key that the task has by itself.
    pub fn members(&self, job: JobId) -> Vec<MemberPublication> {
        let Some(Planned { work: Work::Cluster(cluster), .. }) = self.task(job).run.planned() else {
            return Vec::new();
        };
        let inputs = self.inputs(job);
        let left = self.outputs.left_by(job).cloned().unwrap_or_default();
        let places: FxHashMap<(u32, u32), u32> =
            cluster.exports.iter().enumerate().map(|(place, export)| (*export, place as u32)).collect();
        // A job leaves its outputs in their order.
        let left_by = |member: u32, output: u32| {
            let files = places.get(&(member, output)).map_or(&left[..0], |place| {
                let from = left.partition_point(|file| file.output < *place);
                &left[from..from + left[from..].partition_point(|file| file.output == *place)]
            });
            files.iter().map(move |file| OutputFile { output, ..file.clone() })
        };
        let object = |file: OutputFile| InputFile {
            path: file.path,
            source: Source::Object,
            size: file.size,
            digest: file.digest,
        };
        let params = self.params(job);
        let publication = |(index, member): (usize, &Member)| {
            let files = |source: &MemberSource| match *source {
                MemberSource::Input(input) => inputs[input as usize].files.to_vec(),
                MemberSource::Made { member, output } => left_by(member, output).map(object).collect(),
            };
            let given = member.inputs.iter().map(|input| {
                let files = input.from.iter().flat_map(files).collect();
                InputFiles { name: input.name.clone(), files, list: None }
            });
            let value = |name: &str| member.values.get(name).or_else(|| params.get(name)).cloned();
            let names = Names::new(&member.task, given.collect(), value, |name| numbered(&member.values, name));
            let digests = names.inputs.iter().map(|input| (input.name.clone(), files_digest(&input.files))).collect();
            let key = self.key_of(&names, &member.task.name, &member.task.settings, digests);
            let outputs = 0..member.task.outputs.len() as u32;
            let outputs = outputs.flat_map(|output| left_by(index as u32, output)).collect();
            MemberPublication { name: member.task.name.clone(), key, outputs }
        };
        cluster.members.iter().enumerate().map(publication).collect()
    }

    /// The files of every input, those of scatter variables included.
    pub fn inputs(&self, job: JobId) -> Vec<InputFiles> {
        let mut inputs: Vec<InputFiles> = self
            .task(job)
            .inputs
            .iter()
            .enumerate()
            .map(|(position, input)| {
                let mut files = self.files(job, position as u32, input.source);
                if let Some(further) = further(self.task(job), position) {
                    let rest = further.iter().map(|source| self.files(job, position as u32, *source));
                    files = std::iter::once(files).chain(rest).flat_map(|files| files.to_vec()).collect();
                }
                InputFiles { name: input.name.clone(), files, list: None }
            })
            .collect();
        for axis in self.graph.axes_of(self.graph.set_of(job)) {
            let Some(name) = axis.names.first() else { continue };
            let files: Arc<[InputFile]> = match self.graph.variable(job, name) {
                Some(Bound::File(file)) => Arc::new([file.clone()]),
                Some(Bound::Batch(..)) if let Some(source) = arrivals(self.task(job), name) => {
                    self.files(job, u32::MAX, source)
                }
                Some(Bound::Batch(files, _)) => files.into(),
                _ => continue,
            };
            inputs.push(InputFiles { name: name.clone(), files, list: None });
        }
        inputs
    }

    /// The label of a job, with its values in place: what has one label goes into one cluster.
    pub fn label(&self, job: JobId) -> Option<String> {
        let label = self.task(job).settings.hints.label.as_ref()?;
        Some(match label.contains('{') {
            true => self.names(job).plain(&Template(label.as_str().into())),
            false => label.clone(),
        })
    }

    /// The value of a parameter or scatter variable.
    pub fn value(&self, job: JobId, name: &str) -> Option<Value> {
        match self.graph.variable(job, name) {
            Some(Bound::Value(value)) => Some(value),
            Some(other) => Some(Value::Text(other.label())),
            None => {
                let fixed = self.task(job).run.planned().and_then(|planned| planned.values.get(name));
                fixed.or_else(|| self.params(job).get(name)).cloned()
            }
        }
    }

    fn params(&self, job: JobId) -> &'a BTreeMap<String, Value> {
        self.graph.plan().workflow.params_of(self.graph.set_of(job))
    }

    fn task(&self, job: JobId) -> &'a Task {
        self.graph.plan().task(self.graph.set_of(job))
    }

    /// The files of the input at a position.
    fn files(&self, job: JobId, position: u32, source: FileSource) -> Arc<[InputFile]> {
        let (task, output, makers) = match source {
            FileSource::Data(data) => return self.graph.plan().files[data.index()].clone(),
            FileSource::Output { task, output } => (task, output, self.graph.selected(job, task)),
            FileSource::Latest { task, output } => {
                (task, output, self.graph.version(job, position, task).into_iter().collect())
            }
            FileSource::Search { task, finding: Finding::Output(output) } => {
                let searches = self.graph.searches_for(job, task).into_iter();
                (task, output, searches.filter_map(|search| self.graph.best(search)).collect())
            }
            FileSource::Search { task, finding: Finding::Top { trials, output } } => {
                let searches = self.graph.searches_for(job, task).into_iter();
                (task, output, searches.flat_map(|search| self.graph.top(search, trials as usize)).collect())
            }
            FileSource::Search { task, finding: Finding::Front(output) } => {
                let searches = self.graph.searches_for(job, task).into_iter();
                (task, output, searches.flat_map(|search| self.graph.front(search)).collect())
            }
            FileSource::Search { task, finding } => {
                let searches = self.graph.searches_for(job, task).into_iter();
                return searches.filter_map(|search| self.graph.found(search, finding)).collect();
            }
        };
        let left = makers.into_iter().filter_map(|maker| Some((maker, self.outputs.left_by(maker)?)));
        left.flat_map(|(maker, files)| files.iter().map(move |file| (maker, file)))
            .filter(|(_, file)| file.output == output)
            .map(|(maker, file)| InputFile {
                path: file.path.clone(),
                source: self.source_of(task, maker, file),
                size: file.size,
                digest: file.digest,
            })
            .collect()
    }

    /// Where a consumer finds a result: where its producer pushed it to, if it did.
    fn source_of(&self, producer: SetId, maker: JobId, file: &OutputFile) -> Source {
        let task = self.graph.plan().task(producer);
        let planned = task.run.planned().filter(|planned| pushes(&planned.work));
        match planned.and_then(|planned| planned.staging.as_ref()) {
            Some(staging) => Source::Remote(format!(
                "{}/{}",
                staging.url,
                planned::staged_result(&self.graph.name(maker), file.output, &file.path)
            )),
            None => Source::Object,
        }
    }

    fn names(&self, job: JobId) -> Names<'a> {
        let context = *self;
        let number = move |name: &str| context.number(job, name);
        Names::new(self.task(job), self.inputs(job), move |name| context.value(job, name), number)
    }

    /// The number of the file that a scatter variable stands for, counted from 1.
    fn number(&self, job: JobId, name: &str) -> Option<u32> {
        if let Some(planned) = self.task(job).run.planned() {
            return numbered(&planned.values, name);
        }
        let axes = self.graph.axes_of(self.graph.set_of(job));
        let rows = scatter::rows(axes, self.graph.index_of(job));
        axes.iter().zip(rows).find_map(|(axis, row)| axis.names.iter().any(|other| other == name).then_some(row + 1))
    }

    /// Declared inputs come first and in their order; those of scatter variables follow.
    /// The content of each input of a job, by its name.
    pub(super) fn input_digests(&self, job: JobId) -> impl Iterator<Item = (String, Digest)> {
        let inputs = self.inputs(job).into_iter().enumerate();
        inputs.map(move |(position, input)| (input.name.clone(), self.input_digest(job, position, &input)))
    }

    fn input_digest(&self, job: JobId, position: usize, input: &InputFiles) -> Digest {
        let declared = self.task(job).inputs.get(position);
        match declared.map(|input| input.source) {
            Some(FileSource::Data(data)) if further(self.task(job), position).is_none() => self.graph.data_digest(data),
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
        lines.extend(names.variables().into_iter().map(|(name, value)| format!("{name}={value}")));
        lines.extend(environment.secrets.iter().map(|name| format!("secret {name}")));
        lines.join("\n")
    }
}

/// Of other operations, what they leave stays where they put it.
fn pushes(work: &Work) -> bool {
    matches!(work, Work::Task(_) | Work::Cluster(_) | Work::Operation(Operation::Transfer))
}

/// What a variable takes as it comes.
fn arrivals(task: &Task, name: &str) -> Option<FileSource> {
    task.scatter.iter().find_map(|axis| match axis.values {
        AxisValues::Arrivals { task, output, .. } if axis.names.iter().any(|other| other == name) => {
            Some(FileSource::Output { task, output })
        }
        _ => None,
    })
}

/// The sources of an input beside its first.
pub(super) fn further(task: &Task, position: usize) -> Option<&[FileSource]> {
    task.run.planned()?.further.get(&u32::try_from(position).ok()?).map(Vec::as_slice)
}

/// The content of some files under their names, whatever their order.
pub(super) fn files_digest(files: &[InputFile]) -> Digest {
    crate::key::files_digest(files.iter().map(|file| (file.path.as_str(), file.digest)))
}

type LookUp<'a, T> = Box<dyn Fn(&str) -> Option<T> + 'a>;

/// What the names in a task's templates mean.
struct Names<'a> {
    task: &'a Task,
    /// The way of doing it, when it is not the task's own.
    variant: Option<&'a Variant>,
    inputs: Vec<InputFiles>,
    outputs: Vec<OutputSpec>,
    value: LookUp<'a, Value>,
    /// The number of the file that a scatter variable stands for, counted from 1.
    number: LookUp<'a, u32>,
}

impl<'a> Names<'a> {
    fn new(
        task: &'a Task,
        inputs: Vec<InputFiles>,
        value: impl Fn(&str) -> Option<Value> + 'a,
        number: impl Fn(&str) -> Option<u32> + 'a,
    ) -> Self {
        let (value, number) = (Box::new(value), Box::new(number));
        let mut names = Self { task, variant: None, inputs, outputs: Vec::new(), value, number };
        names.outputs = task
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

    /// What is run: that of the variant, where it has its own.
    fn run(&self) -> &'a Run {
        self.variant.and_then(|variant| variant.run.as_ref()).unwrap_or(&self.task.run)
    }

    fn command(&self) -> Result<CommandLine, TemplateError> {
        let mut look_up = |name: &str, attribute: &str| self.look_up(name, attribute);
        let mut run = self.run();
        while let Run::Planned(planned) = run {
            match &planned.work {
                Work::Task(inner) => run = inner,
                Work::Cluster(_) | Work::Operation(_) => return Ok(CommandLine::Arguments(Vec::new())),
            }
        }
        match run {
            Run::Shell(line) => {
                let shell = self.task.settings.shell.clone().unwrap_or_else(|| "sh".to_owned());
                Ok(CommandLine::Shell { shell, line: template::shell(&line.0, &mut look_up)? })
            }
            Run::Arguments(arguments) => Ok(CommandLine::Arguments(template::arguments(arguments, &mut look_up)?)),
            Run::Planned(_) => unreachable!("unwrapped above"),
        }
    }

    /// Everything that is needed to run one attempt.
    fn spec(
        self,
        attempt: AttemptId,
        name: String,
        request: &Request,
        node: &str,
        gpus: Vec<String>,
    ) -> Result<JobSpec, TemplateError> {
        let environment = &self.task.settings.environment;
        let command = self.command()?;
        let lists: Vec<String> = self.lists();
        let variables = self.variables();
        let inputs = self
            .inputs
            .into_iter()
            .map(|input| {
                let list = lists.contains(&input.name).then(|| list_path(&input.name));
                InputFiles { list, ..input }
            })
            .collect();
        Ok(JobSpec {
            attempt,
            name,
            command,
            variables,
            secrets: environment.secrets.clone(),
            container: environment.container.clone(),
            venv: environment.venv.clone(),
            conda: environment.conda.clone(),
            inputs,
            outputs: self.outputs,
            checkpoint: self.task.settings.checkpoint.clone(),
            limits: Limits { memory: request.memory, time: request.time, grace: self.task.settings.grace },
            io: self.task.settings.io,
            place: Place::Owned,
            milli_cpus: request.milli_cpus,
            gpus,
            cores: Vec::new(),
            node: node.to_owned(),
            script: None,
            objectives: self.task.search().map_or_else(Vec::new, |search| search.numbers()),
        })
    }

    /// The variables that the workflow and, for a trial, its search give the task. One that names an inactive parameter
    /// is not there.
    fn variables(&self) -> BTreeMap<String, String> {
        let absent = |value: &Template| {
            let mut names = template::references(&value.0);
            names.any(|reference| self.look_up(reference.name, reference.attribute) == Some(Values::Absent))
        };
        let said = self.task.settings.environment.variables.iter().filter(|(_, value)| !absent(value));
        said.map(|(name, value)| (name.clone(), self.plain(value))).chain(self.of_trial()).collect()
    }

    /// What a trial may want to know of itself, for programs that do not take it from their command.
    fn of_trial(&self) -> Vec<(String, String)> {
        let Some(search) = self.task.search() else { return Vec::new() };
        let names = search.study.space.parameters().iter().map(|parameter| &parameter.name);
        let values = names.filter_map(|name| {
            let value = match (self.value)(name)? {
                Value::Bool(value) => value.into(),
                Value::Integer(value) => value.into(),
                Value::Written { number, .. } => serde_json::Value::from(number),
                other => other.to_string().into(),
            };
            Some((name.clone(), value))
        });
        let values = serde_json::Value::Object(values.collect());
        let objectives: Vec<&str> = search.study.objectives.iter().map(|objective| objective.name.as_str()).collect();
        vec![
            ("TULPAR_PARAMETERS".to_owned(), values.to_string()),
            ("TULPAR_OBJECTIVES".to_owned(), serde_json::json!(objectives).to_string()),
        ]
    }

    /// A parameter of the search that the task is a trial of.
    fn is_parameter(&self, name: &str) -> bool {
        let search = self.task.search();
        search.is_some_and(|search| search.study.space.parameters().iter().any(|parameter| parameter.name == name))
    }

    /// Of paths and variables: reading has refused every name that is not known.
    fn plain(&self, template: &Template) -> String {
        template::plain(&template.0, &mut |name, attribute| self.look_up(name, attribute))
            .unwrap_or_else(|_| template.0.to_string())
    }

    /// Inputs of which some template wants the list file.
    fn lists(&self) -> Vec<String> {
        let variables = self.task.settings.environment.variables.values();
        self.run()
            .templates()
            .iter()
            .chain(variables)
            .flat_map(|template| template::references(&template.0))
            .filter(|reference| reference.attribute == "list")
            .map(|reference| reference.name.to_owned())
            .collect()
    }

    fn input_values(&self, input: &InputFiles, attribute: &str) -> Option<Values<'static>> {
        match attribute {
            "list" => return Some(Values::one(list_path(&input.name))),
            "index" => return Some(Values::one((self.number)(&input.name)?.to_string())),
            _ => {}
        }
        let paths: Vec<&str> = input.files.iter().map(|file| file.path.as_str()).collect();
        Some(match template::file_values(&paths, attribute)? {
            Values::One(one) => Values::one(one.into_owned()),
            Values::Many(many) => Values::many(many.into_iter().map(|one| one.into_owned())),
            Values::Absent => Values::Absent,
        })
    }

    fn look_up(&self, name: &str, attribute: &str) -> Option<Values<'static>> {
        if let Some(input) = self.inputs.iter().find(|input| input.name == name) {
            return self.input_values(input, attribute);
        }
        if let Some(output) = self.outputs.iter().find(|output| output.name == name) {
            return output_values(output, attribute);
        }
        if let Some(value) = (self.value)(name) {
            return Some(Values::one(value.to_string()));
        }
        let settings = &self.task.settings;
        let request = self.variant.map_or(&settings.request, |variant| &variant.request);
        let program = settings.environment.programs.iter().find(|program| program.name == name);
        if let Some(place) = program.and_then(|program| program.place.as_ref()) {
            return Some(Values::one(place.clone()));
        }
        match name {
            "cpus" => Some(Values::one(request.milli_cpus.div_ceil(1000).to_string())),
            "gpus" => Some(Values::one(request.gpus.to_string())),
            _ if self.is_parameter(name) => Some(Values::Absent),
            _ => None,
        }
    }
}

/// What one member of a cluster runs, now that the files of the members before it are known.
pub fn member_spec(
    member: &Member,
    params: &BTreeMap<String, Value>,
    inputs: Vec<InputFiles>,
    attempt: AttemptId,
    node: &str,
    gpus: Vec<String>,
) -> Result<JobSpec, TemplateError> {
    let value = |name: &str| member.values.get(name).or_else(|| params.get(name)).cloned();
    let names = Names::new(&member.task, inputs, value, |name| numbered(&member.values, name));
    names.spec(attempt, member.task.name.clone(), &member.task.settings.request, node, gpus)
}

/// The name under which a planned task keeps the number of a file.
pub(crate) fn number_name(variable: &str) -> String {
    format!("{variable}.index")
}

fn numbered(values: &BTreeMap<String, Value>, variable: &str) -> Option<u32> {
    match values.get(&number_name(variable))? {
        Value::Integer(number) => u32::try_from(*number).ok(),
        _ => None,
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
