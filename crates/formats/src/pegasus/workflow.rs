//! `workflow.yml`: jobs, their files, and their order.

use super::catalogues;
use super::codes::{BAD_VALUE, DUPLICATE, SHAPE, UNKNOWN_JOB};
use super::decoder::Decoder;
use super::model::{FileId, Hook, Job, JobKind, Link, Model, Use};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::{Span, Words};
use tulpar_core::yaml::{Document, Kind, Node};

const TOP: &[&str] = &[
    "pegasus",
    "name",
    "version",
    "hooks",
    "profiles",
    "metadata",
    "siteCatalog",
    "replicaCatalog",
    "transformationCatalog",
    "jobs",
    "jobDependencies",
];
const JOB: &[&str] = &[
    "type",
    "id",
    "namespace",
    "name",
    "version",
    "file",
    "nodeLabel",
    "arguments",
    "stdin",
    "stdout",
    "stderr",
    "uses",
    "profiles",
    "hooks",
    "metadata",
];
const USE: &[&str] =
    &["lfn", "type", "stageOut", "registerReplica", "bypass", "forPlanning", "optional", "size", "metadata"];

/// Logical names and their numbers.
#[derive(Default)]
struct Files<'d> {
    numbers: FxHashMap<&'d str, FileId>,
    names: Vec<String>,
    metadata: BTreeMap<String, Words>,
}

impl<'d> Files<'d> {
    fn number(&mut self, name: &'d str) -> FileId {
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name.to_owned());
            FileId(self.names.len() as u32 - 1)
        })
    }
}

pub(super) fn decode(text: &str, decoder: &mut Decoder<'_>) -> Option<Model> {
    let (document, problems) = Document::parse(text);
    problems.into_iter().for_each(|problem| decoder.report(problem));
    let document = document?;
    let root = document.root();
    if !matches!(root.kind(), Kind::Mapping) {
        decoder.report(Diagnostic::error(SHAPE, None, "a Pegasus workflow must be a map"));
        return None;
    }
    let mut model = Model::default();
    let mut files = Files::default();
    let mut jobs = None;
    let mut dependencies = None;
    decoder.map(root, "the workflow", |decoder, name, key, value| match name {
        "pegasus" => model.version = decoder.text(value, "`pegasus`").to_owned(),
        "name" => model.name = decoder.text(value, "`name`").to_owned(),
        "version" => {}
        "metadata" => model.metadata = metadata(decoder, value),
        "hooks" => model.hooks = hooks(decoder, value),
        "profiles" => model.profiles.read(decoder, value),
        "siteCatalog" => catalogues::sites(decoder, value, &mut model),
        "replicaCatalog" => catalogues::replicas(decoder, value, &mut model),
        "transformationCatalog" => catalogues::transformations(decoder, value, &mut model),
        "jobs" => jobs = Some(value),
        "jobDependencies" => dependencies = Some(value),
        _ => decoder.unknown(key, "a workflow", TOP),
    });
    if model.name.is_empty() {
        decoder.missing(root, "the workflow", "name");
    }
    match jobs {
        Some(jobs) => {
            model.jobs.reserve(jobs.size());
            decoder.list(jobs, "`jobs`", |decoder, node| model.jobs.push(job(decoder, node, &mut files)));
        }
        None => decoder.missing(root, "the workflow", "jobs"),
    }
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    for (number, job) in model.jobs.iter().enumerate() {
        if numbers.insert(&job.id, number as u32).is_some() && !job.id.is_empty() {
            decoder.report(Diagnostic::error(DUPLICATE, job.span, format!("two jobs have the id `{}`", job.id)));
        }
    }
    if let Some(node) = dependencies {
        model.dependencies = dependencies_of(decoder, node, &numbers);
    }
    model.files = files.names;
    for (name, words) in files.metadata {
        model.file_metadata.entry(name).or_default().extend(words);
    }
    model.infer_edges();
    Some(model)
}

fn dependencies_of(decoder: &mut Decoder<'_>, node: Node<'_>, numbers: &FxHashMap<&str, u32>) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    let number = |decoder: &mut Decoder<'_>, node: Node<'_>| {
        let id = decoder.text(node, "an id");
        let number = numbers.get(id).copied();
        if number.is_none() {
            let diagnostic = Diagnostic::error(UNKNOWN_JOB, node.span(), format!("there is no job with the id `{id}`"));
            decoder.report(if numbers.len() < 10_000 {
                diagnostic.suggest(id, numbers.keys().copied())
            } else {
                diagnostic
            });
        }
        number
    };
    decoder.list(node, "`jobDependencies`", |decoder, entry| {
        let mut parent = None;
        let mut children = Vec::new();
        decoder.map(entry, "a dependency", |decoder, name, key, value| match name {
            "id" => parent = number(decoder, value),
            "children" => decoder.list(value, "`children`", |decoder, child| children.extend(number(decoder, child))),
            _ => decoder.unknown(key, "a dependency", &["id", "children"]),
        });
        if let Some(parent) = parent {
            found.extend(children.into_iter().map(|child| (parent, child)));
        }
    });
    found
}

pub(super) fn hooks(decoder: &mut Decoder<'_>, node: Node<'_>) -> Vec<Hook> {
    let mut found = Vec::new();
    decoder.map(node, "`hooks`", |decoder, name, key, value| match name {
        "shell" => decoder.list(value, "`shell`", |decoder, entry| {
            let mut hook = Hook { on: String::new(), command: String::new(), span: entry.span() };
            decoder.map(entry, "a hook", |decoder, name, key, value| match name {
                "_on" => hook.on = decoder.text(value, "`_on`").to_owned(),
                "cmd" => hook.command = decoder.text(value, "`cmd`").to_owned(),
                _ => decoder.unknown(key, "a hook", &["_on", "cmd"]),
            });
            found.push(hook);
        }),
        _ => decoder.unknown(key, "`hooks`", &["shell"]),
    });
    found
}

fn job<'d>(decoder: &mut Decoder<'_>, node: Node<'d>, files: &mut Files<'d>) -> Job {
    let mut job = Job { span: node.span(), ..Job::default() };
    let mut place = None;
    decoder.map(node, "a job", |decoder, name, key, value| match name {
        "type" => {
            job.kind = match decoder.text(value, "`type`") {
                "job" | "" => JobKind::Compute,
                "pegasusWorkflow" | "dax" => JobKind::SubWorkflow,
                "condorWorkflow" | "dag" => JobKind::Dag,
                other => {
                    let known = ["job", "pegasusWorkflow", "condorWorkflow"];
                    let message = format!("`{other}` is no kind of job");
                    decoder.report(Diagnostic::error(BAD_VALUE, value.span(), message).suggest(other, known));
                    JobKind::Compute
                }
            }
        }
        "id" => {
            place = Some(value.span());
            job.id = decoder.text(value, "`id`").to_owned();
        }
        "namespace" => job.transformation.namespace = decoder.owned(value, "`namespace`"),
        "name" => job.transformation.name = decoder.text(value, "`name`").to_owned(),
        "version" => job.transformation.version = decoder.owned(value, "`version`"),
        "file" => job.file = Some(files.number(decoder.text(value, "`file`"))),
        "nodeLabel" => job.label = decoder.owned(value, "`nodeLabel`"),
        "arguments" => job.arguments = arguments(decoder, value),
        "stdin" => job.stdin = stream(decoder, value, files),
        "stdout" => job.stdout = stream(decoder, value, files),
        "stderr" => job.stderr = stream(decoder, value, files),
        "uses" => {
            job.uses.reserve_exact(value.size());
            decoder.list(value, "`uses`", |decoder, node| job.uses.extend(used(decoder, node, files)));
        }
        "profiles" => job.profiles.read(decoder, value),
        "hooks" => job.hooks = hooks(decoder, value),
        "metadata" => job.metadata = metadata(decoder, value),
        _ => decoder.unknown(key, "a job", JOB),
    });
    // The id is a better place to show than all of the job, which may have thousands of lines.
    job.span = place.unwrap_or(Span { start: job.span.start, end: job.span.start + 1 });
    if job.id.is_empty() {
        decoder.missing(node, "a job", "id");
    }
    match job.kind {
        JobKind::Compute if job.transformation.name.is_empty() => {
            decoder.missing(node, &format!("the job `{}`", job.id), "name")
        }
        JobKind::SubWorkflow | JobKind::Dag if job.file.is_none() => {
            decoder.missing(node, &format!("the job `{}`", job.id), "file")
        }
        _ => {}
    }
    job
}

fn stream<'d>(decoder: &mut Decoder<'_>, node: Node<'d>, files: &mut Files<'d>) -> Option<FileId> {
    Some(decoder.text(node, "a redirected stream")).filter(|name| !name.is_empty()).map(|name| files.number(name))
}

/// Joined by one space and trimmed, which is what Pegasus puts on the line of a shell.
fn arguments(decoder: &mut Decoder<'_>, node: Node<'_>) -> String {
    let mut line = String::new();
    decoder.list(node, "`arguments`", |decoder, item| {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(decoder.text(item, "an argument"));
    });
    line.truncate(line.trim_end().len());
    let start = line.len() - line.trim_start().len();
    line.drain(..start);
    line
}

/// Words by their names.
pub(super) fn metadata(decoder: &mut Decoder<'_>, node: Node<'_>) -> Words {
    let mut found = Words::new();
    decoder.map(node, "`metadata`", |decoder, name, _, value| {
        found.insert(name.to_owned(), decoder.text(value, "metadata").to_owned());
    });
    found
}

/// `size` among metadata.
pub(super) fn size_of(decoder: &mut Decoder<'_>, node: Node<'_>) -> Option<u64> {
    let mut size = None;
    decoder.map(node, "`metadata`", |decoder, name, _, value| {
        if name == "size" {
            size = decoder.text(value, "metadata").trim().parse().ok();
        }
    });
    size
}

fn used<'d>(decoder: &mut Decoder<'_>, node: Node<'d>, files: &mut Files<'d>) -> Option<Use> {
    let mut found = Use {
        file: FileId(0),
        link: Link::None,
        stage_out: true,
        register_replica: false,
        bypass: false,
        for_planning: false,
        optional: false,
        size: None,
        span: node.span(),
    };
    let mut name = None;
    let mut link = None;
    let mut about = Words::new();
    decoder.map(node, "an entry of `uses`", |decoder, key_name, key, value| match key_name {
        "lfn" => {
            name = Some(decoder.text(value, "`lfn`"));
            found.span = value.span();
        }
        "type" => {
            link = Some(match decoder.text(value, "`type`") {
                "input" => Link::Input,
                "output" => Link::Output,
                "inout" => Link::InOut,
                "checkpoint" => Link::Checkpoint,
                "none" => Link::None,
                other => {
                    let known = ["input", "output", "inout", "checkpoint", "none"];
                    let message = format!("`{other}` is no kind of use");
                    decoder.report(Diagnostic::error(BAD_VALUE, value.span(), message).suggest(other, known));
                    Link::None
                }
            });
        }
        "stageOut" => found.stage_out = decoder.truth(value, "`stageOut`"),
        "registerReplica" => found.register_replica = decoder.truth(value, "`registerReplica`"),
        "bypass" => found.bypass = decoder.truth(value, "`bypass`"),
        "forPlanning" => found.for_planning = decoder.truth(value, "`forPlanning`"),
        "optional" => found.optional = decoder.truth(value, "`optional`"),
        "size" => found.size = decoder.text(value, "`size`").trim().parse().ok(),
        "metadata" => about = metadata(decoder, value),
        _ => decoder.unknown(key, "an entry of `uses`", USE),
    });
    found.size = found.size.or_else(|| about.get("size")?.trim().parse().ok());
    if let Some(name) = name.filter(|name| !about.is_empty() && !name.is_empty()) {
        files.metadata.entry(name.to_owned()).or_default().extend(about);
    }
    match (name.filter(|name| !name.is_empty()), link) {
        (Some(name), Some(link)) => Some(Use { file: files.number(name), link, ..found }),
        (name, _) => {
            decoder.missing(node, "an entry of `uses`", if name.is_none() { "lfn" } else { "type" });
            None
        }
    }
}
