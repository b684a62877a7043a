//! The differences between compared runs: parameters, commit, environments, inputs by their content, metrics.

use super::runs::RunLine;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tulpar_core::ids::Digest;
use tulpar_core::provenance::{Code, Metric, short};

/// More are not listed: a workflow may have a million inputs.
const MOST: usize = 500;

/// Something that is not the same in all runs.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Difference {
    kind: &'static str,
    name: String,
    /// Of each run, in words; absent where the run has none.
    values: Vec<Option<String>>,
}

/// One run, by kind and name.
pub(super) struct Side(BTreeMap<(Kind, String), String>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Parameter,
    Commit,
    Environment,
    Input,
    Metric,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Parameter => "parameter",
            Kind::Commit => "commit",
            Kind::Environment => "environment",
            Kind::Input => "input",
            Kind::Metric => "metric",
        }
    }
}

impl Side {
    pub(super) fn new(line: &RunLine, inputs: &BTreeMap<String, Digest>) -> Self {
        let words = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let parameters = line.provenance.parameters.iter();
        let parameters = parameters.map(|(name, value)| ((Kind::Parameter, name.clone()), words(value)));
        let commit = line.provenance.code.iter().map(|code| ((Kind::Commit, String::new()), Code::short(code)));
        let digests = |kind, all: &BTreeMap<String, Digest>| -> Vec<((Kind, String), String)> {
            all.iter().map(|(name, digest)| ((kind, name.clone()), short(digest))).collect()
        };
        let metric =
            |metric: &Metric| ((Kind::Metric, format!("{} {}", metric.set, metric.name)), metric.value_words());
        let environments = digests(Kind::Environment, &line.provenance.environments);
        let metrics = line.metrics.iter().map(metric);
        let all = parameters.chain(commit).chain(environments).chain(digests(Kind::Input, inputs)).chain(metrics);
        Side(all.collect())
    }
}

pub(super) fn between(sides: &[Side]) -> Vec<Difference> {
    let keys: BTreeSet<&(Kind, String)> = sides.iter().flat_map(|side| side.0.keys()).collect();
    let found = keys.into_iter().filter_map(|key| {
        let values: Vec<Option<String>> = sides.iter().map(|side| side.0.get(key).cloned()).collect();
        let differ = values.windows(2).any(|pair| pair[0] != pair[1]);
        differ.then(|| Difference { kind: key.0.word(), name: key.1.clone(), values })
    });
    found.take(MOST).collect()
}
