//! The settings of `defaults:`, groups and tasks: each is a layer, and the nearest layer wins.
//!
//! Equal settings are shared, so that a million tasks that say the same cost one.

use super::expression::ExpressionError;
use super::reader::{Reader, list, place};
use super::request::Asked;
use super::template::is_identifier;
use super::{
    Best, Caching, Checkpoint, ClusterHint, Hook, IoCapture, Iteration, Occasion, Places, Program, Quantity, Retry,
    RetryExpression, RetryOn, Settings, Span, Template, Tolerance, expression, keys,
};
use crate::diagnostic::{BAD_NAME, BAD_VALUE, CONFLICT, Diagnostic, QUANTITY, did_you_mean};
use crate::units::{DURATION_ACCEPTED, TIME_UNITS, parse_count, parse_duration};
use crate::yaml::{Kind, Node};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The software a task runs in: of these a layer names at most one, which replaces what lies below.
#[derive(Clone, Debug)]
enum Software {
    None,
    Container(String),
    Venv(String),
    Conda(String),
}

/// What one map of settings says; what it does not say is left to the layers below.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    asked: Asked,
    at_most: Option<u32>,
    iteration: Option<Iteration>,
    shell: Option<String>,
    software: Option<(Software, Span)>,
    /// Each with the place of its value, for those who check its names.
    variables: BTreeMap<String, (Template, Span)>,
    secrets: Option<Vec<String>>,
    retry: Option<Retry>,
    checkpoint: Option<Option<Checkpoint>>,
    tolerate: Option<Tolerance>,
    cache: Option<Caching>,
    priority: Option<i32>,
    grace: Option<Duration>,
    io: Option<Option<IoCapture>>,
    hooks: Option<Vec<Hook>>,
    programs: Option<Vec<String>>,
    site: Option<String>,
    runtime: Option<Duration>,
    label: Option<String>,
    cluster: Option<Option<ClusterHint>>,
    kind: Option<String>,
    /// Places of the keys, for findings that come later.
    places: Vec<(&'static str, Span)>,
    pub(super) is_empty: bool,
}

impl Layer {
    pub(super) fn new() -> Self {
        Self { is_empty: true, ..Self::default() }
    }

    pub(super) fn place(&self, key: &str) -> Option<Span> {
        self.places.iter().find(|(other, _)| *other == key).map(|(_, span)| *span)
    }

    pub(super) fn variable_place(&self, name: &str) -> Option<Span> {
        self.variables.get(name).map(|(_, span)| *span)
    }

    pub(super) fn read_all(reader: &mut Reader, node: Node<'_>, what: &str) -> Self {
        let mut layer = Self::new();
        for (key, value) in reader.map(node, what).into_iter().flatten() {
            if !layer.read(reader, key, value) {
                reader.unknown_key(key, what, &[keys::SETTINGS]);
            }
        }
        layer
    }

    /// Takes one key; false when it is no setting.
    pub(super) fn read(&mut self, reader: &mut Reader, key: Node<'_>, value: Node<'_>) -> bool {
        let Some(name) = key.text().and_then(|text| keys::SETTINGS.iter().find(|name| **name == text)) else {
            return false;
        };
        self.is_empty = false;
        self.places.push((name, place(key, value)));
        match *name {
            asked if keys::REQUEST.contains(&asked) => self.asked.read(reader, asked, value),
            "at_most" => {
                self.at_most = count(reader, name, value);
                if self.at_most == Some(0) {
                    reader.report(
                        Diagnostic::error(QUANTITY, value.span(), "`at_most`: 0 tasks at once would never end")
                            .help("write how many tasks of the set may run at once, or leave it out"),
                    );
                }
            }
            "iteration" => self.iteration = iteration(reader, value),
            "grace" => self.grace = duration(reader, name, value),
            "io" => self.io = io(reader, value),
            "hooks" => self.hooks = Some(hooks(reader, value)),
            "shell" => self.shell = reader.bound_text(value, "`shell`").map(|text| text.into_owned()),
            "container" | "venv" | "conda" => self.software(reader, name, key, value),
            "env" => self.environment(reader, value),
            "secrets" => {
                let words = reader.words(value, "`secrets`");
                let named = words.into_iter().filter(|(node, text)| variable_name(reader, *node, text));
                self.secrets = Some(named.map(|(_, text)| text.to_owned()).collect());
            }
            "programs" => {
                let words = reader.words(value, "`programs`");
                let named = words.into_iter().filter(|(node, _)| reader.name(*node, "a program").is_some());
                self.programs = Some(named.map(|(_, text)| text.to_owned()).collect());
            }
            "site" => self.site = reader.bound_text(value, "`site`").map(|text| text.into_owned()),
            "runtime" => self.runtime = duration(reader, name, value),
            // Its names are checked with those of the task that has it.
            "label" => self.label = reader.text(value, "`label`").map(str::to_owned),
            "cluster" => self.cluster = cluster(reader, value),
            "kind" => self.kind = reader.bound_text(value, "`kind`").map(|text| text.into_owned()),
            "retry" => self.retry = retry(reader, value),
            "checkpoint" => self.checkpoint = checkpoint(reader, key, value),
            "failures" => self.tolerate = failures(reader, value),
            "cache" => {
                self.cache = reader.boolean(value, "`cache`").map(|on| if on { Caching::On } else { Caching::Off });
            }
            "priority" => {
                self.priority = reader.bound_text(value, "`priority`").and_then(|text| {
                    let parsed = text.trim().parse::<i32>().ok();
                    if parsed.is_none() {
                        let message = format!("`priority` is a whole number, not `{text}`");
                        reader.report(
                            Diagnostic::error(BAD_VALUE, value.span(), message)
                                .help("higher runs first; 0 unless you say otherwise"),
                        );
                    }
                    parsed
                });
            }
            _ => unreachable!("every key of the table is taken above"),
        }
        true
    }

    fn software(&mut self, reader: &mut Reader, name: &str, key: Node<'_>, value: Node<'_>) {
        let Some(text) = reader.bound_text(value, &format!("`{name}`")) else { return };
        let text = text.into_owned();
        let software = match (name, text.as_str()) {
            (_, "none") => Software::None,
            ("container", _) => Software::Container(text),
            ("venv", _) => Software::Venv(text),
            _ => Software::Conda(text),
        };
        if let Some((_, earlier)) = self.software {
            reader.report(
                Diagnostic::error(CONFLICT, key.span(), "a task runs in one of `container`, `venv` and `conda`")
                    .related(earlier, "the other one is here")
                    .help("remove one; a Python environment inside a container is started by the command"),
            );
        }
        self.software = Some((software, key.span()));
    }

    fn environment(&mut self, reader: &mut Reader, node: Node<'_>) {
        for (key, value) in reader.map(node, "`env`").into_iter().flatten() {
            let Some(name) = key.text() else { continue };
            if !variable_name(reader, key, name) {
                continue;
            }
            let text = if value.is_null() { Some("") } else { reader.text(value, &format!("the variable `{name}`")) };
            if let Some(text) = text {
                self.variables.insert(name.to_owned(), (Template(text.into()), value.span()));
            }
        }
    }

    /// Lays this layer over settings.
    fn apply(&self, settings: &mut Settings) {
        fn set<T: Clone>(target: &mut T, value: &Option<T>) {
            if let Some(value) = value {
                *target = value.clone();
            }
        }
        self.asked.apply(&mut settings.request);
        settings.at_most = self.at_most.or(settings.at_most);
        settings.iteration = self.iteration.clone().or(settings.iteration.take());
        settings.shell = self.shell.clone().or(settings.shell.take());
        let environment = &mut settings.environment;
        if let Some((software, _)) = &self.software {
            environment.container = None;
            environment.venv = None;
            environment.conda = None;
            match software.clone() {
                Software::None => {}
                Software::Container(name) => environment.container = Some(name),
                Software::Venv(name) => environment.venv = Some(name),
                Software::Conda(name) => environment.conda = Some(name),
            }
        }
        for (name, (value, _)) in &self.variables {
            environment.variables.insert(name.clone(), value.clone());
        }
        for name in self.secrets.iter().flatten() {
            if !environment.secrets.contains(name) {
                environment.secrets.push(name.clone());
            }
        }
        for name in self.programs.iter().flatten() {
            if !environment.programs.iter().any(|program| program.name == *name) {
                environment.programs.push(Program { name: name.clone(), place: None });
            }
        }
        let hints = &mut settings.hints;
        hints.site = self.site.clone().or(hints.site.take());
        hints.runtime = self.runtime.or(hints.runtime);
        hints.label = self.label.clone().or(hints.label.take());
        hints.program = self.kind.clone().or(hints.program.take());
        set(&mut hints.cluster, &self.cluster);
        set(&mut settings.retry, &self.retry);
        set(&mut settings.checkpoint, &self.checkpoint);
        set(&mut settings.tolerate, &self.tolerate);
        set(&mut settings.cache, &self.cache);
        set(&mut settings.priority, &self.priority);
        settings.grace = self.grace.or(settings.grace);
        set(&mut settings.io, &self.io);
        set(&mut settings.hooks, &self.hooks);
    }
}

/// `2`, or the name of a variable of `for:` whose values are such numbers. Which variables there are, tasks know.
fn iteration(reader: &mut Reader, node: Node<'_>) -> Option<Iteration> {
    let text = reader.bound_text(node, "`iteration`")?;
    let text = text.trim();
    match text.parse() {
        Ok(number) => Some(Iteration::Number(number)),
        Err(_) if is_identifier(text) => Some(Iteration::Variable(text.to_owned())),
        Err(_) => {
            reader.report(
                Diagnostic::error(BAD_VALUE, node.span(), format!("`iteration` cannot be `{text}`"))
                    .help("write a whole number from 0, or the variable of `for:` that counts the iterations"),
            );
            None
        }
    }
}

/// `count`, `trace`, or `off` for a task among others.
fn io(reader: &mut Reader, node: Node<'_>) -> Option<Option<IoCapture>> {
    let text = reader.bound_text(node, "`io`")?;
    match text.trim() {
        "count" => Some(Some(IoCapture::Count)),
        "trace" => Some(Some(IoCapture::Trace)),
        "off" | "no" | "false" => Some(None),
        text => {
            let help = match did_you_mean(text, ["count", "trace", "off"]) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "write `count` for counters a file, `trace` for every read and write, or `off`".to_owned(),
            };
            reader.report(Diagnostic::error(BAD_VALUE, node.span(), format!("`io` cannot be `{text}`")).help(help));
            None
        }
    }
}

pub(super) fn duration(reader: &mut Reader, name: &str, value: Node<'_>) -> Option<Duration> {
    reader.quantity(value, name, parse_duration, DURATION_ACCEPTED, TIME_UNITS)
}

pub(super) fn count(reader: &mut Reader, name: &str, value: Node<'_>) -> Option<u32> {
    reader.quantity(value, name, parse_count, "write a whole number", &[])
}

/// What environment variables may be called: a `-` would make them unreachable for shells.
fn variable_name(reader: &mut Reader, node: Node<'_>, name: &str) -> bool {
    let good = is_identifier(name) && !name.contains('-');
    if !good {
        reader.report(
            Diagnostic::error(BAD_NAME, node.span(), format!("`{name}` cannot be the name of an environment variable"))
                .help("such names have letters, digits and `_`, and do not begin with a digit"),
        );
    }
    good
}

fn retry(reader: &mut Reader, node: Node<'_>) -> Option<Retry> {
    let mut retry = Retry::default();
    if !matches!(node.kind(), Kind::Mapping) {
        retry.times = count(reader, "retry", node)?;
        retry.on = match retry.times {
            0 => Vec::new(),
            _ => vec![RetryOn::Memory, RetryOn::Time, RetryOn::Evicted, RetryOn::Failure],
        };
        return Some(retry);
    }
    for (key, value) in node.entries() {
        match key.text() {
            Some("times") => retry.times = count(reader, "times", value).unwrap_or(retry.times),
            Some("pause") => retry.pause = duration(reader, "pause", value).unwrap_or(retry.pause),
            Some("memory") => retry.memory_percent = factor(reader, "memory", value).unwrap_or(retry.memory_percent),
            Some("time") => retry.time_percent = factor(reader, "time", value).unwrap_or(retry.time_percent),
            Some("ask") => retry.expressions = expressions(reader, value),
            Some("on") => {
                let words = reader.words(value, "`on`");
                retry.on = words.into_iter().filter_map(|(node, word)| retry_on(reader, node, word)).collect();
            }
            _ => reader.unknown_key(key, "`retry`", &[keys::RETRY]),
        }
    }
    Some(retry)
}

/// `{memory: memory * 2}`: what the next try asks for.
fn expressions(reader: &mut Reader, node: Node<'_>) -> Vec<RetryExpression> {
    let mut found = Vec::new();
    for (key, value) in reader.map(node, "`ask`").into_iter().flatten() {
        let Some(what) = key.text().and_then(Quantity::from_name) else {
            reader.unknown_key(key, "`ask`", &[keys::ASK]);
            continue;
        };
        let Some(text) = reader.bound_text(value, "an expression") else { continue };
        let known = |name: &str| (name == "attempt" || Quantity::from_name(name).is_some()).then_some(1.0);
        match expression::evaluate(&text, &known) {
            // A number that is none for these values may be one for others.
            Ok(_) | Err(ExpressionError::NoNumber) => found.push(RetryExpression { what, text: text.into_owned() }),
            Err(error) => reader.report(
                Diagnostic::error(BAD_VALUE, value.span(), format!("`{text}` says nothing: {error}"))
                    .help("write for example `memory * 2 if attempt > 1 else memory`; memory and disk are in MiB, time in seconds"),
            ),
        }
    }
    found
}

/// `{error: mail me}`: commands by occasion, one or several each.
pub(super) fn hooks(reader: &mut Reader, node: Node<'_>) -> Vec<Hook> {
    let mut found = Vec::new();
    for (key, value) in reader.map(node, "`hooks`").into_iter().flatten() {
        match key.text().and_then(Occasion::from_name) {
            Some(on) => {
                for (node, _) in reader.words(value, "a hook") {
                    let run = reader.bound_text(node, "a hook").map(|text| text.into_owned());
                    found.extend(run.map(|run| Hook { on, run }));
                }
            }
            None => reader.unknown_key(key, "`hooks`", &[keys::HOOKS]),
        }
    }
    found
}

fn retry_on(reader: &mut Reader, node: Node<'_>, word: &str) -> Option<RetryOn> {
    let code = word.strip_prefix("exit_").or(word.strip_prefix("exit ")).and_then(|code| code.parse::<i32>().ok());
    match (word, code) {
        ("out_of_memory", _) => Some(RetryOn::Memory),
        ("out_of_time", _) => Some(RetryOn::Time),
        ("evicted", _) => Some(RetryOn::Evicted),
        ("failure", _) => Some(RetryOn::Failure),
        (_, Some(code @ 1..=255)) => Some(RetryOn::Exit(code)),
        _ => {
            let near = match word {
                "memory" | "oom" => Some("out_of_memory"),
                "time" | "timeout" | "walltime" => Some("out_of_time"),
                "preempted" | "preemption" => Some("evicted"),
                "error" | "any" | "all" | "failed" => Some("failure"),
                _ => did_you_mean(word, keys::RETRY_ON.iter().copied()),
            };
            let diagnostic = Diagnostic::error(BAD_VALUE, node.span(), format!("`{word}` is nothing to retry on"));
            let diagnostic = match near {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic,
            };
            reader.report(diagnostic.help(format!(
                "it can be {}, and `exit_75` for an exit code from 1 to 255",
                list(keys::RETRY_ON.iter().copied())
            )));
            None
        }
    }
}

/// `x2`, `2x`, `150%`: in hundredths, at least 100.
fn factor(reader: &mut Reader, key: &str, node: Node<'_>) -> Option<u32> {
    let text = reader.bound_text(node, &format!("`{key}` of `retry`"))?;
    let trimmed = text.trim();
    let times =
        trimmed.strip_prefix('x').or(trimmed.strip_suffix('x')).and_then(|number| number.trim().parse::<f64>().ok());
    let percent = trimmed.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match times.map(|times| times * 100.0).or(percent) {
        Some(percent) if (100.0..=100_000.0).contains(&percent) => Some(percent.round() as u32),
        _ => {
            reader.report(
                Diagnostic::error(BAD_VALUE, node.span(), format!("`{key}` of `retry` is a factor, not `{text}`"))
                    .help("write `x2` or `150%`; it cannot be less than 100%"),
            );
            None
        }
    }
}

fn checkpoint(reader: &mut Reader, key: Node<'_>, node: Node<'_>) -> Option<Option<Checkpoint>> {
    let mut checkpoint = Checkpoint { files: Vec::new(), keep: None, best: Best::default(), every: None };
    let mut files = Some(node);
    if matches!(node.kind(), Kind::Mapping) {
        files = None;
        for (key, value) in node.entries() {
            match key.text() {
                Some("files") => files = Some(value),
                Some("keep") => checkpoint.keep = count(reader, "keep", value),
                Some("every") => {
                    let read = reader.quantity(value, "every", parse_duration, DURATION_ACCEPTED, TIME_UNITS);
                    checkpoint.every = read.filter(|time| !time.is_zero());
                }
                Some("best") => {
                    checkpoint.best = match reader.text(value, "`best`") {
                        Some("smallest") => Best::Smallest,
                        Some("largest") => Best::Largest,
                        Some("newest") | None => Best::Newest,
                        Some(other) => {
                            let diagnostic =
                                Diagnostic::error(BAD_VALUE, value.span(), format!("`best` cannot be `{other}`"))
                                    .suggest(other, keys::BEST.iter().copied())
                                    .help(format!("it can be {}", list(keys::BEST.iter().copied())));
                            reader.report(diagnostic);
                            Best::Newest
                        }
                    }
                }
                _ => reader.unknown_key(key, "`checkpoint`", &[keys::CHECKPOINT]),
            }
        }
    } else if node.text() == Some("none") {
        return Some(None);
    }
    let Some(files) = files else {
        reader.report(
            Diagnostic::error(crate::diagnostic::MISSING_KEY, key.span(), "`checkpoint` does not say which files")
                .help("add `files:`, for example `files: train-*.ckpt`"),
        );
        return None;
    };
    for (node, text) in reader.words(files, "`checkpoint`") {
        let Some(path) = reader.bind(node, text) else { continue };
        let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
        if let Some(problem) = super::paths::problem(&path) {
            reader.report(problem.diagnostic(node.span(), "the checkpoint", &path));
        }
        checkpoint.files.push(path);
    }
    Some(Some(checkpoint))
}

/// `10` tasks each, or a map that says how many, how many clusters, or how long.
fn cluster(reader: &mut Reader, node: Node<'_>) -> Option<Option<ClusterHint>> {
    let mut hint = ClusterHint::default();
    if node.text() == Some("none") {
        return Some(None);
    }
    if !matches!(node.kind(), Kind::Mapping) {
        hint.size = Some(at_least_one(reader, "cluster", node)?);
        return Some(Some(hint));
    }
    for (key, value) in node.entries() {
        match key.text() {
            Some("size") => hint.size = at_least_one(reader, "size", value),
            Some("count") => hint.count = at_least_one(reader, "count", value),
            Some("runtime") => hint.runtime = duration(reader, "runtime", value),
            _ => reader.unknown_key(key, "`cluster`", &[keys::CLUSTER]),
        }
    }
    Some(Some(hint))
}

fn at_least_one(reader: &mut Reader, name: &str, node: Node<'_>) -> Option<u32> {
    let found = count(reader, name, node)?;
    if found == 0 {
        let message = format!("`{name}`: a cluster needs at least 1");
        reader.report(Diagnostic::error(QUANTITY, node.span(), message).help("leave it out, or write `cluster: none`"));
        return None;
    }
    Some(found)
}

fn failures(reader: &mut Reader, node: Node<'_>) -> Option<Tolerance> {
    let text = reader.bound_text(node, "`failures`")?;
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<u32>().ok());
    match (text.as_ref(), text.parse::<u32>().ok(), percent) {
        ("any", ..) => Some(Tolerance::Any),
        ("none", ..) | (_, Some(0), _) => Some(Tolerance::None),
        (_, Some(count), _) => Some(Tolerance::Tasks(count)),
        (_, _, Some(percent @ 0..=100)) => Some(Tolerance::Percent(percent)),
        _ => {
            reader.report(
                Diagnostic::error(BAD_VALUE, node.span(), format!("`failures` cannot be `{text}`"))
                    .help("write how many tasks of the scatter may fail: `3`, `10%` or `any`"),
            );
            None
        }
    }
}

/// Puts layers together and shares equal results.
pub(super) struct Interner {
    pub(super) defaults: Layer,
    default_settings: Arc<Settings>,
    known: FxHashSet<Arc<Settings>>,
    pub(super) places: Places,
}

impl Interner {
    pub(super) fn new(reader: &mut Reader, defaults: Layer) -> Self {
        let mut interner = Self {
            defaults: Layer::new(),
            default_settings: Arc::default(),
            known: FxHashSet::default(),
            places: Places::default(),
        };
        interner.default_settings = interner.settings(reader, None, &defaults);
        interner.defaults = defaults;
        interner
    }

    pub(super) fn settings(&mut self, reader: &mut Reader, group: Option<&Layer>, task: &Layer) -> Arc<Settings> {
        if group.is_none() && task.is_empty {
            return self.default_settings.clone();
        }
        let mut settings = Settings::default();
        self.defaults.apply(&mut settings);
        if let Some(group) = group {
            group.apply(&mut settings);
        }
        task.apply(&mut settings);
        if let Some(known) = self.known.get(&settings) {
            return known.clone();
        }
        let layers = [Some(task), group, Some(&self.defaults)];
        let mut places: Vec<(&'static str, Span)> = Vec::new();
        for (key, span) in layers.into_iter().flatten().flat_map(|layer| layer.places.iter()) {
            if !places.iter().any(|(known, _)| known == key) {
                places.push((key, *span));
            }
        }
        task.asked.without_effect(reader, &settings.request, &|key| task.place(key));
        let settings = Arc::new(settings);
        self.known.insert(settings.clone());
        self.places.requests.push((settings.clone(), places));
        settings
    }
}
