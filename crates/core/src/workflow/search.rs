//! `search:` of a task: what is tried, how often, and what is to be made small or large.
//!
//! Whether a space, sampler or pruner makes sense is for `tulpar_hpo` to say; here its words get a place in the file.

use super::reader::Reader;
use super::scope::{Meaning, Scope};
use super::settings::duration;
use super::{Axis, AxisValues, Constraint, Search, Span, keys};
use crate::diagnostic::{BAD_VALUE, CONFLICT, Diagnostic, MISSING_KEY};
use crate::yaml::{Kind, Node};
use std::sync::Arc;
use std::time::Duration;
use tulpar_hpo::{Objective, Pruner, Sampler, Settings, Space, Study};

/// The variable that counts the trials.
pub(super) const TRIAL: &str = "trial";

const MOST_TRIALS: i64 = 1_000_000;
/// With a budget and no number of trials. Each may become a task, and those that do not are skipped one by one.
const TRIALS_OF_A_BUDGET: u32 = 10_000;

#[derive(Default)]
struct Parts<'d> {
    trials: Option<Node<'d>>,
    parallel: Option<Node<'d>>,
    space: Option<Node<'d>>,
    sampler: Option<Node<'d>>,
    pruner: Option<Node<'d>>,
    seed: Option<Node<'d>>,
    start: Option<Node<'d>>,
    storage: Option<String>,
    name: Option<String>,
    time: Option<Duration>,
    gpu_time: Option<Duration>,
    constraints: Vec<Constraint>,
    objectives: Vec<Objective>,
}

/// Reads it into an axis: one task a trial. The names of the parameters enter the scope of the task.
pub(super) fn read<'d>(
    reader: &mut Reader,
    scope: &mut Scope<'d>,
    key: Node<'d>,
    node: Node<'d>,
    others: &[Axis],
) -> Option<(Axis, Span)> {
    if let Some(other) = others.iter().find(|axis| matches!(axis.values, AxisValues::Arrivals { .. })) {
        reader.report(
            Diagnostic::error(CONFLICT, key.span(), "a search cannot take results `as ready`")
                .help(format!("leave out `as ready`: there is one search for each value of `{}`", other.names[0])),
        );
    }
    let mut parts = Parts::default();
    for (key, value) in reader.map(node, "`search`")? {
        match key.text().unwrap_or("") {
            "trials" => parts.trials = Some(value),
            "parallel" => parts.parallel = Some(value),
            "space" => parts.space = Some(value),
            "sampler" => parts.sampler = Some(value),
            "pruner" => parts.pruner = Some(value),
            "seed" => parts.seed = Some(value),
            "start" => parts.start = Some(value),
            "storage" => parts.storage = reader.bound_text(value, "`storage`").map(Into::into),
            "study" => parts.name = reader.bound_text(value, "`study`").map(Into::into),
            "time" => parts.time = Some(duration(reader, "time", value)?),
            "gpu_hours" => parts.gpu_time = Some(hours(reader, value)?),
            "constraints" => {
                let words = reader.words(value, "`constraints`");
                parts.constraints.extend(words.into_iter().filter_map(|(node, text)| constraint(reader, node, text)));
            }
            "minimize" => {
                let names = reader.words(value, "`minimize`");
                parts.objectives.extend(names.into_iter().map(|(_, name)| Objective::minimize(name)));
            }
            "maximize" => {
                let names = reader.words(value, "`maximize`");
                parts.objectives.extend(names.into_iter().map(|(_, name)| Objective::maximize(name)));
            }
            _ => reader.unknown_key(key, "`search`", &[keys::SEARCH]),
        }
    }
    let Some(space) = parts.space else {
        reader.report(
            Diagnostic::error(MISSING_KEY, key.span(), "`search` has no `space`")
                .help("say what is tried: `space: {lr: \"log(1e-5, 1e-1)\", layers: \"int(1, 8)\"}`"),
        );
        return None;
    };
    // Also when something else is wrong: the command may name them.
    scope.add(reader, TRIAL, Meaning::Variable, key.span());
    let mut names = vec![TRIAL.to_owned()];
    for node in named(space) {
        let Some(name) = reader.name(node, "a parameter") else { continue };
        scope.add(reader, name, Meaning::Sampled, node.span());
        names.push(name.to_owned());
    }
    if parts.objectives.is_empty() {
        reader.report(
            Diagnostic::error(MISSING_KEY, key.span(), "`search` does not say what is better")
                .help("write `minimize: loss` or `maximize: accuracy`; the task says that number, see docs/search.md"),
        );
        return None;
    }
    let trials = match parts.trials {
        Some(node) => count(reader, node, "trials")?,
        None if parts.time.is_some() || parts.gpu_time.is_some() => TRIALS_OF_A_BUDGET,
        None => {
            reader.report(
                Diagnostic::error(MISSING_KEY, key.span(), "`search` does not say how many `trials`")
                    .help("write for example `trials: 50`, `time: 2 h` or `gpu_hours: 10`"),
            );
            return None;
        }
    };
    let parallel = match parts.parallel {
        Some(node) => Some(count(reader, node, "parallel")?),
        None => None,
    };
    let settings = Settings {
        space: understood::<Space>(reader, space, json_of_space(space))?,
        objectives: std::mem::take(&mut parts.objectives),
        sampler: match parts.sampler {
            Some(node) => understood::<Sampler>(reader, node, json(node))?,
            None => Sampler::default(),
        },
        pruner: match parts.pruner {
            Some(node) => understood::<Pruner>(reader, node, json(node))?,
            None => Pruner::default(),
        },
        seed: match parts.seed {
            Some(node) => understood(reader, node, json(node))?,
            None => 0,
        },
        starts: match parts.start {
            Some(node) => understood(reader, node, json(node))?,
            None => Vec::new(),
        },
    };
    let conditional = settings.space.parameters().iter().filter(|parameter| !parameter.when.is_empty());
    scope.may_be_absent(conditional.map(|parameter| parameter.name.as_str()));
    if let Err(error) = Study::new(settings.clone()) {
        reader.report(Diagnostic::error(BAD_VALUE, node.span(), error.to_string()));
        return None;
    }
    let Parts { time, gpu_time, constraints, storage, name, .. } = parts;
    let search = Search { trials, parallel, time, gpu_time, constraints, storage, name, study: settings };
    Some((Axis { names, values: AxisValues::Trials(Arc::new(search)) }, key.span()))
}

/// Where the names of the parameters stand: before their domains, or in a list of maps.
fn named<'d>(space: Node<'d>) -> Vec<Node<'d>> {
    match space.kind() {
        Kind::Sequence => {
            let names = |item: Node<'d>| item.entries().find(|(key, _)| key.text() == Some("name"));
            space.items().filter_map(names).map(|(_, name)| name).collect()
        }
        _ => space.entries().filter(|(_, value)| !value.is_null()).map(|(name, _)| name).collect(),
    }
}

fn count(reader: &mut Reader, node: Node<'_>, what: &str) -> Option<u32> {
    let text = reader.bound_text(node, &format!("`{what}`"))?;
    match text.parse::<i64>() {
        Ok(count @ 1..=MOST_TRIALS) => Some(count as u32),
        _ => {
            reader.report(
                Diagnostic::error(BAD_VALUE, node.span(), format!("`{what}` cannot be `{text}`"))
                    .help(format!("write a whole number from 1 to {MOST_TRIALS}")),
            );
            None
        }
    }
}

fn hours(reader: &mut Reader, node: Node<'_>) -> Option<Duration> {
    let text = reader.bound_text(node, "`gpu_hours`")?;
    match text.parse::<f64>() {
        Ok(hours) if hours > 0.0 && hours < 1e9 => Some(Duration::from_secs_f64(hours * 3600.0)),
        _ => {
            reader.report(
                Diagnostic::error(BAD_VALUE, node.span(), format!("`gpu_hours` cannot be `{text}`"))
                    .help("write how many hours of one GPU all trials together may use, such as `gpu_hours: 10`"),
            );
            None
        }
    }
}

fn constraint(reader: &mut Reader, node: Node<'_>, text: &str) -> Option<Constraint> {
    let read = || {
        let (name, at_most, bound) = match text.split_once("<=") {
            Some((name, bound)) => (name, true, bound),
            None => text.split_once(">=").map(|(name, bound)| (name, false, bound))?,
        };
        let (name, bound) = (name.trim(), bound.trim().parse::<f64>().ok()?);
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        (is_name && bound.is_finite()).then(|| Constraint { name: name.to_owned(), at_most, bound })
    };
    let found = read();
    if found.is_none() {
        reader.report(
            Diagnostic::error(BAD_VALUE, node.span(), format!("`{text}` is no constraint"))
                .help("write a number that the task says, and how large or small it may be: `latency <= 20`"),
        );
    }
    found
}

fn understood<T: serde::de::DeserializeOwned>(
    reader: &mut Reader,
    node: Node<'_>,
    json: serde_json::Value,
) -> Option<T> {
    match serde_json::from_value(json) {
        Ok(value) => Some(value),
        Err(error) => {
            reader.report(Diagnostic::error(BAD_VALUE, node.span(), error.to_string()));
            None
        }
    }
}

fn json(node: Node<'_>) -> serde_json::Value {
    match node.kind() {
        Kind::Scalar { text, quoted: true } => text.into(),
        Kind::Scalar { .. } if node.is_null() => serde_json::Value::Null,
        Kind::Scalar { text, .. } => match tulpar_hpo::Value::parse(text) {
            tulpar_hpo::Value::Bool(value) => value.into(),
            tulpar_hpo::Value::Int(value) => value.into(),
            tulpar_hpo::Value::Float(value) => value.into(),
            tulpar_hpo::Value::Text(value) => value.into(),
        },
        Kind::Sequence => node.items().map(json).collect::<Vec<_>>().into(),
        Kind::Mapping => {
            let entries = node.entries().filter_map(|(key, value)| Some((key.text()?.to_owned(), json(value))));
            serde_json::Value::Object(entries.collect())
        }
    }
}

/// In braces YAML takes the comma of `lr: log(1e-5, 1e-1)` for the end of the entry, and what follows for a key: no
/// reader would. The parts are put together again.
fn json_of_space(node: Node<'_>) -> serde_json::Value {
    if !matches!(node.kind(), Kind::Mapping) {
        return json(node);
    }
    let mut parameters: Vec<(String, serde_json::Value)> = Vec::new();
    for (key, value) in node.entries() {
        let Some(name) = key.text() else { continue };
        match parameters.last_mut() {
            Some((_, serde_json::Value::String(open)))
                if value.is_null() && open.contains('(') && !open.contains(')') =>
            {
                open.push_str(", ");
                open.push_str(name);
            }
            _ => parameters.push((name.to_owned(), json(value))),
        }
    }
    serde_json::Value::Object(parameters.into_iter().collect())
}
