//! What made a result, and what made its inputs, up to the user's data.
//!
//! A file is known by its content first, so that a renamed copy is found too and an edited one is noticed.

use crate::Failure;
use crate::ancestry::{self, Depth, Made};
use crate::messages::Messages;
use crate::projection;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use tulpar_core::ids::{DataId, Digest};
use tulpar_core::job::Source;
use tulpar_core::plan::Plan;
use tulpar_core::workflow::{AxisValues, FileSource};
use tulpar_exec::folder::Project;
use tulpar_store::{Producer, Store, Wanted};

#[derive(Serialize)]
pub struct LineageView {
    pub file: PathBuf,
    /// Absent when the file is not there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The content that was made under this path, when the file has another one now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_since: Option<Changed>,
    /// Metadata that the author of the workflow wrote.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Box<Made>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data_of: Vec<DataUse>,
}

#[derive(Clone, Serialize)]
pub struct Changed {
    pub run: String,
    pub digest: Digest,
}

/// A run that used the file as data.
#[derive(Serialize)]
pub struct DataUse {
    pub run: String,
    pub data: String,
    pub tasks: Vec<String>,
    /// Whether the run saw what the file holds now.
    pub same_content: bool,
}

/// Older runs than this many are not looked through for a data file.
const MOST_RUNS: usize = 50;

/// Of a file that a run made. A plan that cannot be read says nothing.
fn metadata(project: &Project, producer: &Producer) -> BTreeMap<String, String> {
    let plan = project.folder_of(&producer.run).load().map(|saved| saved.plan);
    plan.ok().and_then(|mut plan| plan.workflow.metadata.files.remove(&producer.output.path)).unwrap_or_default()
}

/// The file that is meant: from here, or from the folder of the workflow. It need not exist any more.
pub fn place(project: &Project, file: &Path) -> Result<PathBuf, Failure> {
    let here = std::path::absolute(file).map_err(|source| Failure::Read { path: file.to_owned(), source })?;
    let there = project.root().join(file);
    let chosen = if here.exists() || !there.exists() { here } else { there };
    // Only the folder is resolved: a result may be a link to somewhere else.
    let plain: PathBuf = match (chosen.parent().and_then(|parent| parent.canonicalize().ok()), chosen.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => chosen.components().filter(|part| *part != Component::CurDir).collect(),
    };
    Ok(plain)
}

pub fn content(path: &Path) -> Result<Option<(Digest, u64)>, Failure> {
    let failed = |source| Failure::Read { path: path.to_owned(), source };
    if path.is_dir() {
        return Err(Failure::usage_with(format!("{} is a directory", path.display()), "name one of the files in it"));
    }
    match File::open(path) {
        Ok(mut file) => tulpar_exec::data::hash_file(&mut file).map(Some).map_err(failed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Who made the content; else who made what was once shown under this path.
fn producer(
    project: &Project,
    store: &Store,
    digest: Option<Digest>,
    shown: Option<&str>,
) -> Result<(Option<Producer>, Option<Changed>), Failure> {
    if let Some(digest) = digest {
        let mut found = really(project, store, &Wanted::Digest(digest))?;
        if !found.is_empty() {
            let at = shown.and_then(|shown| maker_of_shown(&found, shown)).unwrap_or(0);
            return Ok((Some(found.swap_remove(at)), None));
        }
    }
    let Some(shown) = shown else { return Ok((None, None)) };
    let Some(producer) = makers_of_path(project, store, shown)?.into_iter().next() else { return Ok((None, None)) };
    let changed = match (digest, Digest::parse(&producer.output.digest)) {
        (Some(_), Some(digest)) => Some(Changed { run: producer.run.clone(), digest }),
        _ => None,
    };
    Ok((Some(producer), changed))
}

/// Of runs that really ran; those that made it come before those that reused it, the latest first.
pub fn really(project: &Project, store: &Store, wanted: &Wanted) -> Result<Vec<Producer>, Failure> {
    let mut found = store.producer_of(wanted)?;
    found.retain(|producer| !project.folder_of(&producer.run).is_simulated());
    Ok(found)
}

/// Who made what was once shown under this path.
pub fn makers_of_path(project: &Project, store: &Store, shown: &str) -> Result<Vec<Producer>, Failure> {
    let found = really(project, store, &Wanted::Path(shown.to_owned()))?;
    let Some((_, path)) = shown.split_once('/').filter(|_| found.is_empty()) else { return Ok(found) };
    let mut below = really(project, store, &Wanted::Path(path.to_owned()))?;
    below.retain(|producer| is_shown(producer, shown));
    Ok(below)
}

/// The same content may have been made more than once, from other scripts too. The latest run is the one that is shown;
/// if it reused the file, the run that it was reused from made it.
fn maker_of_shown(found: &[Producer], shown: &str) -> Option<usize> {
    let latest = (0..found.len()).filter(|at| is_shown(&found[*at], shown)).max_by_key(|at| found[*at].started)?;
    let Some(from) = &found[latest].reused_from else { return Some(latest) };
    let made_it = |other: &Producer| other.run == *from && other.output.name == found[latest].output.name;
    Some(found.iter().position(made_it).unwrap_or(latest))
}

/// Whether people see what was made under this path; workflows that shared a run have a folder each.
fn is_shown(producer: &Producer, shown: &str) -> bool {
    let output = &producer.output;
    let member = output.name.as_ref().and_then(|task| task.split_once('/')).map(|(member, _)| member);
    output.path == shown
        || member.is_some_and(|member| {
            shown.strip_prefix(member).and_then(|rest| rest.strip_prefix('/')) == Some(output.path.as_str())
        })
}

/// The runs that had this file among their data, the latest first.
fn data_uses(project: &Project, path: &Path, digest: Option<Digest>) -> Result<Vec<DataUse>, Failure> {
    let mut uses = Vec::new();
    for run in project.all_runs()?.into_iter().rev().filter(|run| !run.is_simulated()).take(MOST_RUNS) {
        // A plan of another version tells nothing, and is no reason to say nothing of the others.
        let Ok(saved) = run.load() else { continue };
        for (index, files) in saved.plan.files.iter().enumerate() {
            let same_file = |source: &Source| match source {
                Source::Path(from) => project.root().join(from) == path,
                Source::Object | Source::Remote(_) | Source::Text(_) => false,
            };
            let found = files
                .iter()
                .find(|file| same_file(&file.source))
                .or_else(|| files.iter().find(|file| Some(file.digest) == digest));
            if let Some(file) = found {
                let data = DataId::from(index);
                uses.push(DataUse {
                    run: run.name.clone(),
                    data: saved.plan.workflow.data[index].name.clone(),
                    tasks: users(&saved.plan, data),
                    same_content: Some(file.digest) == digest,
                });
            }
        }
    }
    Ok(uses)
}

fn users(plan: &Plan, data: DataId) -> Vec<String> {
    let wants = |source: &FileSource| *source == FileSource::Data(data);
    plan.workflow
        .tasks
        .iter()
        .filter(|task| {
            task.inputs.iter().any(|input| wants(&input.source))
                || task
                    .scatter
                    .iter()
                    .any(|axis| matches!(&axis.values, AxisValues::Files { source, .. } if wants(source)))
        })
        .map(|task| task.name.clone())
        .collect()
}

/// The origin of a file, with so many levels of tasks above it told in full.
pub fn lineage(project: &Project, file: &Path, depth: u32, messages: &dyn Messages) -> Result<LineageView, Failure> {
    let path = place(project, file)?;
    let content = content(&path)?;
    let store = projection::open(project)?;
    let shown = path.strip_prefix(project.results()).ok().map(|path| path.to_string_lossy().into_owned());
    let digest = content.map(|(digest, _)| digest);
    let (producer, changed_since) = producer(project, &store, digest, shown.as_deref())?;
    let mut view = LineageView {
        file: file.to_owned(),
        digest,
        size: content.map(|(_, size)| size),
        changed_since,
        metadata: BTreeMap::new(),
        made: None,
        data_of: Vec::new(),
    };
    match producer {
        Some(producer) => {
            view.metadata = metadata(project, &producer);
            view.made = Some(Box::new(ancestry::made(project, &store, &producer, Depth(depth), messages)?))
        }
        None => view.data_of = data_uses(project, &path, digest)?,
    }
    if view.made.is_none() && view.data_of.is_empty() {
        return Err(match digest {
            None => Failure::usage(format!("there is no {}, and no run made one", file.display())),
            Some(_) => Failure::usage_with(
                format!("no run of this folder made or used {}", file.display()),
                "`tulpar outputs` lists what the latest run made; -C DIR says which folder is meant",
            ),
        });
    }
    Ok(view)
}
