//! The files that a run made, where they are shown, and copies of them elsewhere.

use crate::Failure;
use crate::messages::Messages;
use crate::replay::{self, Replayed};
use serde::Serialize;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use tulpar_core::ids::{Digest, JobId};
use tulpar_exec::cache::object_path;
use tulpar_exec::data::hash_file;
use tulpar_exec::folder::Project;
use tulpar_exec::publish::shown_now;

#[derive(Serialize)]
pub struct OutputView {
    pub task: String,
    pub output: String,
    /// Under the folder of the workflow, when this run's file is there now.
    pub path: Option<String>,
    pub size: u64,
    pub digest: Digest,
    /// Its path in the sandbox of the task.
    pub file: String,
    /// It is not shown in `results/`.
    pub temporary: bool,
    /// Whether the cache has its content.
    pub cached: bool,
    #[serde(skip)]
    pub executable: bool,
    /// Its path below `results/`.
    #[serde(skip)]
    pub result: String,
}

fn views(project: &Project, replayed: &Replayed) -> Vec<OutputView> {
    let engine = &replayed.engine;
    let shown = shown_now(&project.results(), &project.shown());
    let mut views = Vec::new();
    for job in (0..engine.graph().len()).map(JobId::from) {
        let Some(files) = engine.outputs(job).filter(|files| !files.is_empty()) else { continue };
        let set = engine.graph().set_of(job);
        let task = engine.plan().task(set);
        let member = engine.plan().workflow.member(set);
        let below = member.map(|member| format!("{}/", member.name)).unwrap_or_default();
        let name = replayed.name(job);
        for file in files.iter() {
            let declared = task.outputs.get(file.output as usize);
            let temporary = declared.is_some_and(|output| output.temporary);
            let result = format!("{below}{}", file.path);
            // The run may have made another file at this path later: then this one is not there.
            let there = !temporary && shown(&result) == Some(file.digest);
            let object = fs::metadata(object_path(&project.cache(), &file.digest));
            views.push(OutputView {
                task: name.clone(),
                output: declared.map(|output| output.name.clone()).unwrap_or_default(),
                path: there.then(|| format!("results/{result}")),
                size: file.size,
                digest: file.digest,
                file: file.path.clone(),
                temporary,
                cached: object.is_ok_and(|object| object.len() == file.size),
                executable: file.executable,
                result,
            });
        }
    }
    views
}

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("the cache no longer has it; `tulpar run` with the parameters of that run makes it again")]
    Gone,
    #[error("its content in the cache was damaged; `tulpar run` with the parameters of that run makes it again")]
    Damaged,
    #[error("there is another file at {}; it was left as it is. Choose an empty folder", .0.display())]
    InTheWay(PathBuf),
    #[error("its path leaves the folder")]
    Outside,
    #[error("cannot be written to {}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

#[derive(Serialize)]
pub struct Restored<'a> {
    pub run: &'a str,
    pub to: String,
    pub written: usize,
    pub bytes: u64,
    pub lost: Vec<LostView>,
}

#[derive(Serialize)]
pub struct LostView {
    pub file: String,
    pub because: String,
}

/// Writes copies of the files that the run shows, or would.
pub fn restore<'a>(project: &Project, run: &'a str, views: &[OutputView], to: &Path) -> Result<Restored<'a>, Failure> {
    fs::create_dir_all(to).map_err(|source| Failure::Write { path: to.to_owned(), source })?;
    let mut restored = Restored { run, to: to.display().to_string(), written: 0, bytes: 0, lost: Vec::new() };
    for view in views.iter().filter(|view| !view.temporary) {
        match copy(project, view, to) {
            Ok(()) => {
                restored.written += 1;
                restored.bytes += view.size;
            }
            Err(lost) => restored.lost.push(LostView { file: view.result.clone(), because: lost.to_string() }),
        }
    }
    Ok(restored)
}

/// A copy, not another name: whoever changes it changes nothing of Tulpar's. Its content is checked on the way.
fn copy(project: &Project, view: &OutputView, to: &Path) -> Result<(), Lost> {
    if !Path::new(&view.result).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(Lost::Outside);
    }
    let target = to.join(&view.result);
    let failed = |error| Lost::Io(target.clone(), error);
    if let Ok(mut there) = File::open(&target) {
        let same = hash_file(&mut there).is_ok_and(|(digest, _)| digest == view.digest);
        return if same { Ok(()) } else { Err(Lost::InTheWay(target)) };
    }
    // A result outlives its object when the cache is shrunk.
    let object = File::open(object_path(&project.cache(), &view.digest));
    let shown = || view.path.as_ref().and_then(|path| File::open(project.root().join(path)).ok());
    let mut from = object.ok().or_else(shown).ok_or(Lost::Gone)?;
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let coming = target.with_file_name(format!(".{}.{}", name.get(..100).unwrap_or(&name), std::process::id()));
    let written = write(&mut from, &coming, view);
    let moved = written.and_then(|()| fs::rename(&coming, &target).map_err(failed));
    moved.inspect_err(|_| drop(fs::remove_file(&coming)))
}

fn write(from: &mut File, coming: &Path, view: &OutputView) -> Result<(), Lost> {
    let failed = |error| Lost::Io(coming.to_owned(), error);
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(coming).map_err(failed)?;
    io::copy(from, &mut file).map_err(failed)?;
    let (digest, _) = File::open(coming).and_then(|mut copy| hash_file(&mut copy)).map_err(failed)?;
    if digest != view.digest {
        return Err(Lost::Damaged);
    }
    let mode = if view.executable { 0o755 } else { 0o644 };
    file.set_permissions(Permissions::from_mode(mode)).map_err(failed)
}

/// The files that a run made; none is the latest real run. Also the name of the run.
pub fn outputs(
    project: &Project,
    run: Option<&str>,
    messages: &dyn Messages,
) -> Result<(String, Vec<OutputView>), Failure> {
    let run = project.real_run(run)?;
    let replayed = replay::open(messages, project, Some(&run.name))?;
    Ok((run.name, views(project, &replayed)))
}
