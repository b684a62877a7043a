//! The provenance of a run: parameters, the commit of the workflow's repository, environments.
//!
//! It is recorded with the first event of a run. It does not know how Git is asked.

use crate::ids::Digest;
use crate::job::InputFile;
use crate::key::files_digest;
use crate::plan::Plan;
use crate::workflow::{Metadata, Value, Words};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// By name; of several workflows in one run as `workflow.name`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// The metadata that its author wrote.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Words,
    /// Absent where the workflow is in no repository, or Git is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Content of container images, and packages of Python environments, by the name that tasks give them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environments: BTreeMap<String, Digest>,
}

/// The repository of a workflow at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// The whole hash.
    pub commit: String,
    /// Tracked files differ from the commit, or the workflow's file is not tracked.
    pub dirty: bool,
}

impl Code {
    /// `0123456789ab`, with a `+` when it was dirty.
    pub fn short(&self) -> String {
        let commit: String = self.commit.chars().take(12).collect();
        if self.dirty { commit + "+" } else { commit }
    }
}

impl Provenance {
    pub fn of(plan: &Plan, code: Option<Code>) -> Self {
        let workflow = &plan.workflow;
        let own = workflow.params.iter().map(|(name, value)| (name.clone(), plain(value)));
        let others = workflow.members.iter().flat_map(|member| {
            member.params.iter().map(|(name, value)| (format!("{}.{name}", member.name), plain(value)))
        });
        let metadata = workflow.metadata.workflow.clone();
        Self { parameters: own.chain(others).collect(), metadata, code, environments: plan.environments.clone() }
    }

    /// The lines that people see: a title and a text each.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        if !self.parameters.is_empty() {
            lines.push(("parameters", parameter_words(&self.parameters)));
        }
        if !self.metadata.is_empty() {
            lines.push(("metadata", Metadata::line(&self.metadata)));
        }
        if let Some(code) = &self.code {
            lines.push(("commit", format!("{}{}", code.commit, if code.dirty { ", with changes" } else { "" })));
        }
        if !self.environments.is_empty() {
            let word = |(name, digest): (&String, &Digest)| format!("{name} {}", short(digest));
            lines.push(("environments", self.environments.iter().map(word).collect::<Vec<_>>().join(", ")));
        }
        lines
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The beginning of a digest: enough to tell two apart.
pub fn short(digest: &Digest) -> String {
    digest.hex().chars().take(12).collect()
}

/// The content of every data entry, by its name.
pub fn inputs(plan: &Plan) -> BTreeMap<String, Digest> {
    let digest = |files: &[InputFile]| files_digest(files.iter().map(|file| (file.path.as_str(), file.digest)));
    plan.workflow.data.iter().zip(&plan.files).map(|(entry, files)| (entry.name.clone(), digest(files))).collect()
}

/// As JSON has it; a number that JSON would write otherwise, such as `007`, is a text.
fn plain(value: &Value) -> serde_json::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        Value::Number(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Written { text, .. } => {
            let number = serde_json::from_str::<serde_json::Number>(text);
            number.map_or_else(|_| text.as_str().into(), serde_json::Value::Number)
        }
    }
}

/// `epochs=5 rate=0.1`
pub fn parameter_words(parameters: &BTreeMap<String, serde_json::Value>) -> String {
    let word = |(name, value): (&String, &serde_json::Value)| match value {
        serde_json::Value::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    };
    parameters.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A metric that tasks of one set reported, over those tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    pub set: String,
    pub name: String,
    /// How many tasks reported it.
    pub tasks: u64,
    pub min: f64,
    pub mean: f64,
    pub max: f64,
}

impl Metric {
    pub(crate) fn new(set: &str, name: &str) -> Self {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { set: set.to_owned(), name: name.to_owned(), tasks: 0, min, mean: 0.0, max }
    }

    pub(crate) fn add(&mut self, value: f64) {
        self.tasks += 1;
        self.mean += (value - self.mean) / self.tasks as f64;
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
    }

    /// `evaluate accuracy=0.93`, or `tune loss=0.2…0.9 (20 tasks)`
    pub fn words(&self) -> String {
        format!("{} {}={}", self.set, self.name, self.value_words())
    }

    /// `0.93`, or `0.2…0.9 (20 tasks)`
    pub fn value_words(&self) -> String {
        match self.tasks {
            1 => figure(self.max),
            tasks => format!("{}…{} ({tasks} tasks)", figure(self.min), figure(self.max)),
        }
    }
}

/// Six digits tell metrics apart.
fn figure(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let places = (5 - value.abs().log10().floor() as i64).clamp(0, 12) as usize;
    let text = format!("{value:.places$}");
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if short.trim_start_matches('-') == "0" { format!("{value:e}") } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_read_as_people_write_them() {
        let metric = |tasks, min, max| Metric {
            set: "train".into(),
            name: "loss".into(),
            tasks,
            min,
            mean: (min + max) / 2.0,
            max,
        };
        assert_eq!(metric(1, 0.25, 0.25).words(), "train loss=0.25");
        assert_eq!(metric(1, 1.0 / 3.0, 1.0 / 3.0).words(), "train loss=0.333333");
        assert_eq!(metric(3, -1234567.0, 0.0).words(), "train loss=-1234567…0 (3 tasks)");
        assert_eq!(metric(1, 3e-20, 3e-20).words(), "train loss=3e-20");
    }

    #[test]
    fn a_dirty_commit_is_marked() {
        let code = |dirty| Code { commit: "0123456789abcdef".into(), dirty };
        assert_eq!([code(false).short(), code(true).short()], ["0123456789ab", "0123456789ab+"]);
    }
}
