//! The abstract workflow after reading: names are resolved, parameters bound, units counted.
//!
//! It knows nothing of sites, sandboxes or attempts, and no position in it is needed to run it: spans
//! are kept only so that a later finding can point at the word.

use super::{Hook, Settings};
use crate::catalogue::Chosen;
use crate::ids::{DataId, Digest, SetId};
use crate::resources::Request;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Byte offsets into the workflow's text, `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// Parameters with the values of this run (defaults, or what the command line said).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Data>,
    pub tasks: Vec<Task>,
    /// When several workflows share one run, each with the first of its task sets; they follow each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// Commands for when the run begins and ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// Metadata of the workflow, its tasks and its files. Nothing depends on it.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Where settings were written, so that a later finding can point at them.
    #[serde(skip)]
    pub places: Places,
}

/// Words by their names.
pub type Words = BTreeMap<String, String>;

/// Metadata that the author of a workflow wrote about it, its tasks and its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workflow: Words,
    /// By the names of task sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<String, Words>,
    /// By the paths that tasks see.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Words>,
}

impl Metadata {
    pub fn is_empty(&self) -> bool {
        self.workflow.is_empty() && self.tasks.is_empty() && self.files.is_empty()
    }

    /// `creator=me, year=2026`
    pub fn line(words: &Words) -> String {
        words.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
    }
}

/// One of several workflows that share a run and its resources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    pub name: String,
    pub first: SetId,
    /// Its share of the resources against that of the others.
    pub weight: u32,
    /// Its own parameters; those of the whole are empty then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Value>,
}

impl Workflow {
    /// Of several workflows that share a run, the one that a task set belongs to.
    pub fn member(&self, set: SetId) -> Option<&Member> {
        let after = self.members.partition_point(|member| member.first <= set);
        self.members.get(after.checked_sub(1)?)
    }

    /// The parameters that the tasks of a set see.
    pub fn params_of(&self, set: SetId) -> &BTreeMap<String, Value> {
        self.member(set).map_or(&self.params, |member| &member.params)
    }
}

/// Keys and where they stand.
pub type KeyPlaces = Vec<(&'static str, Span)>;

/// Places carry no meaning: any two are equal.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// For each distinct settings, the keys that ask for resources and where they stand.
    pub requests: Vec<(Arc<Settings>, KeyPlaces)>,
    /// Reading found errors, so that what seems unused or missing may only be misspelt.
    pub incomplete: bool,
}

impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A parameter or the value of a scatter variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    /// A number whose text says more than its value: `0.10`, `1e-5`, `007`. It is written as the user wrote it.
    Written {
        number: f64,
        text: String,
    },
}

impl Value {
    /// What an unquoted word of a workflow or of the command line means.
    pub fn from_text(text: &str) -> Self {
        match text {
            "true" => return Value::Bool(true),
            "false" => return Value::Bool(false),
            _ => {}
        }
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        // Rust also reads `inf`, `nan` and the like as numbers: people mean words by them.
        if !digits.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.') {
            return Value::Text(text.to_owned());
        }
        if let Ok(integer) = text.parse::<i64>()
            && integer.to_string() == text
        {
            return Value::Integer(integer);
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number.to_string() == text => Value::Number(number),
            Ok(number) if number.is_finite() => Value::Written { number, text: text.to_owned() },
            _ => Value::Text(text.to_owned()),
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(value) => Some(*value as f64),
            Value::Number(number) | Value::Written { number, .. } => Some(*number),
            Value::Bool(_) | Value::Text(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::Text(value) | Value::Written { text: value, .. } => f.write_str(value),
        }
    }
}

/// One entry under `data:`: files that exist before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    pub name: String,
    pub source: DataSource,
    /// SHA-256 sums that files must have, by the path under which tasks see them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sha256: BTreeMap<String, Digest>,
    #[serde(default)]
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataSource {
    /// One file.
    File(String),
    /// Every file that matches, e.g. `images/*.jpg` or `raw/**/*.npy`.
    Glob(String),
    /// Everything below a directory (written with a trailing slash).
    Directory(String),
    /// A text file with one path a line, relative to the manifest.
    Manifest(String),
    /// A file fetched before the run.
    Url(String),
    /// Files under names of their own: what the sandbox calls each, and its path or URL.
    Files(BTreeMap<String, String>),
    /// Files by the names that the catalogue knows: `labels.csv`, `images/`, `*.npy`. Tasks see them under these names.
    Replicas(Vec<String>),
    /// The copies of replicas that the catalogue gives for a site.
    Copies(Vec<Chosen>),
}

/// One file of a [`Data`] entry as it was found. Listing and hashing are the caller's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Where the sandbox shows it, relative: `data/labels.csv`.
    pub path: String,
    /// Where it really is: absolute, or relative to the folder of the workflow.
    pub from: String,
    pub size: u64,
    pub digest: Digest,
}

/// One entry under `tasks:`, a task set: one task, or one for every combination of its scatter axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scatter: Vec<Axis>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
    /// Task sets that must have ended well first, beside those that make the inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<SetId>,
    pub run: Run,
    /// Other ways to do the same, the dearest to the user first, after `run` itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
    /// Shared between the task sets that say the same.
    pub settings: Arc<Settings>,
    #[serde(default)]
    pub span: Span,
}

impl Task {
    /// The inputs that are the newest results of a task set: their positions, and the set.
    pub fn latest(&self) -> impl Iterator<Item = (u32, SetId)> + '_ {
        self.inputs.iter().enumerate().filter_map(|(position, input)| match input.source {
            FileSource::Latest { task, .. } => Some((position as u32, task)),
            _ => None,
        })
    }

    /// What its tasks are trials of.
    pub fn search(&self) -> Option<&Arc<Search>> {
        self.scatter.iter().find_map(|axis| match &axis.values {
            AxisValues::Trials(search) => Some(search),
            _ => None,
        })
    }

    /// Whether it, or a task of the cluster that it became, runs in a container.
    pub fn starts_containers(&self) -> bool {
        let members = self.run.planned().map_or(&[][..], |planned| match &planned.work {
            super::planned::Work::Cluster(cluster) => &cluster.members,
            _ => &[],
        });
        self.settings.environment.container.is_some() || members.iter().any(|member| member.task.starts_containers())
    }

    /// The task set whose results it takes as they come, and how many at a time.
    pub fn arrivals(&self) -> Option<(SetId, u32)> {
        self.scatter.iter().find_map(|axis| match axis.values {
            AxisValues::Arrivals { task, by, .. } => Some((task, by)),
            _ => None,
        })
    }
}

/// Another way to do what a task does: on other resources, perhaps with another command. The results are the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    pub request: Request,
    /// `None`: the task's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// How long it is expected to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Duration>,
}

/// Variables of a scatter that advance together; a task set has one task for every combination of its axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Usually one name. Several for `for: [{lr: 0.1, seed: 1}, {lr: 0.2, seed: 5}]`.
    pub names: Vec<String>,
    pub values: AxisValues,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisValues {
    /// `first..last`, both included.
    Range { first: i64, last: i64, step: i64 },
    /// Rows; each has one value for each name of the axis.
    Rows(Vec<Vec<Value>>),
    /// One task a file, or a batch of `by` files. The name is also an input of the task.
    Files { source: FileSource, by: Option<u32> },
    /// One task for every `by` results of a task set, in the order in which its tasks end well. Each of its tasks leaves
    /// one file, so how many batches there are is known before the run; what is in them is not.
    Arrivals { task: SetId, output: u32, by: u32 },
    /// One task a trial of a search. The first name of the axis is `trial`, counted from 1; the others are the parameters
    /// of the space, and have values when the trial is asked for.
    Trials(Arc<Search>),
}

/// `search:` of a task: what to try, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    pub trials: u32,
    /// How many trials may be under way at once; as many as there is room for where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// No trial begins when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// No trial begins when so much of GPUs was used, all trials together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_time: Option<Duration>,
    /// What a trial must keep, in numbers that it says, to count among the best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// Where others see the study and add to it: a journal file of Optuna's, or `sqlite:///` and a file. In the run's
    /// folder where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// What the study is called there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub study: tulpar_hpo::Settings,
}

impl Search {
    /// The numbers that a trial must say: those of its objectives first.
    pub fn numbers(&self) -> Vec<String> {
        let mut names: Vec<String> = self.study.objectives.iter().map(|objective| objective.name.clone()).collect();
        for constraint in &self.constraints {
            if !names.contains(&constraint.name) {
                names.push(constraint.name.clone());
            }
        }
        names
    }
}

/// `latency <= 20`: a number that a trial says, and how large or small it may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Constraint {
    pub name: String,
    /// Else at least.
    pub at_most: bool,
    pub bound: f64,
}

impl Constraint {
    /// By how much it is broken: it is kept where this is at most 0. None where the number was not said.
    pub fn violation(&self, told: &crate::job::Told) -> Option<f64> {
        let value = *told.values.get(&self.name)?;
        Some(if self.at_most { value - self.bound } else { self.bound - value })
    }

    /// The number that breaks it by so much.
    pub fn value(&self, violation: f64) -> f64 {
        if self.at_most { self.bound + violation } else { self.bound - violation }
    }
}

/// What a search leaves for other tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The best trial: its number, parameters and values, as JSON.
    Best,
    /// A table of all trials.
    Trials,
    /// An output of the best trial.
    Output(u32),
    /// An output of so many of the best trials.
    Top { trials: u32, output: u32 },
    /// An output of all trials that no other is better than in every objective.
    Front(u32),
}

/// Where files come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSource {
    Data(DataId),
    /// The files of one named output of a task set. Axes match by name: variables that producer and
    /// consumer share select; what only the producer has is gathered; what only the consumer has repeats.
    Output {
        task: SetId,
        output: u32,
    },
    /// The files of whichever task of a set ended well last when the attempt is handed over; none before the first.
    /// Nobody waits for it.
    Latest {
        task: SetId,
        output: u32,
    },
    /// What a search found, when all its trials have ended.
    Search {
        task: SetId,
        finding: Finding,
    },
}

impl FileSource {
    /// The task set whose end is waited for.
    pub fn awaited(&self) -> Option<SetId> {
        match self {
            FileSource::Output { task, .. } | FileSource::Search { task, .. } => Some(*task),
            FileSource::Data(_) | FileSource::Latest { .. } => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// What `{name}` in the command means.
    pub name: String,
    pub source: FileSource,
    /// Fetched from where it is, not by way of the staging site.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bypass: bool,
    /// A program that is sent along.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub program: bool,
    #[serde(default)]
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    pub name: String,
    /// A relative path, with `{variables}` of the scatter and parameters.
    pub path: Template,
    pub kind: OutputKind,
    /// No file is no failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Kept for the tasks that need it, not shown under `results/`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub temporary: bool,
    /// To be entered in the replica catalogue when it is at its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub register: bool,
    /// How large it is expected to be, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default)]
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// One file, its name known before the run.
    File,
    /// A pattern with `*`, `**`, `?` or `[…]`: however many files the task writes.
    Pattern,
    /// A directory (written with a trailing slash) and everything below it.
    Directory,
}

/// Text with `{name}` and `{name.attribute}` in it, kept as written; checked when the workflow is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template(pub Box<str>);

impl AsRef<str> for Template {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// A line (or script) for the shell; substituted values are quoted.
    Shell(Template),
    /// A program and its arguments; no shell. An argument that is exactly `{input}` becomes one argument a file.
    Arguments(Vec<Template>),
    /// What the planner made of it.
    Planned(Box<super::planned::Planned>),
}

impl Run {
    /// The texts that the user wrote.
    pub fn templates(&self) -> &[Template] {
        use super::planned::Work;
        match self {
            Run::Shell(line) => std::slice::from_ref(line),
            Run::Arguments(arguments) => arguments,
            Run::Planned(planned) => match &planned.work {
                Work::Task(run) => run.templates(),
                Work::Cluster(_) | Work::Operation(_) => &[],
            },
        }
    }

    pub fn planned(&self) -> Option<&super::planned::Planned> {
        match self {
            Run::Planned(planned) => Some(planned),
            Run::Shell(_) | Run::Arguments(_) => None,
        }
    }
}

/// `when:` — a comparison tree over parameters, scatter variables and values in JSON files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Compare {
        left: Operand,
        operator: Comparison,
        right: Operand,
    },
    /// A single operand, true unless `false`, `0`, empty or absent.
    Truth(Operand),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operand {
    Literal(Value),
    /// A parameter or scatter variable.
    Variable(String),
    /// A value in a JSON file that is an input of the task: `metrics.accuracy` is input `metrics`,
    /// pointer `/accuracy`.
    Field {
        input: String,
        pointer: String,
    },
}

/// The limits that people set on what an attempt may use, after retries have changed them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// 0: not limited.
    pub memory: Bytes,
    pub time: Option<Duration>,
    pub grace: Option<Duration>,
}
