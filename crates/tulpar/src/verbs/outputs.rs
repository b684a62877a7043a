//! `tulpar outputs`: the files that a run made, where they are shown, and `--to`: copies of them elsewhere.

use crate::arguments::OutputsArguments;
use crate::failure::{Exit, Failure};
use crate::replay::{self, Replayed};
use crate::view::count;
use crate::{print, view};
use serde::Serialize;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use tulpar_core::ids::{Digest, JobId};
use tulpar_core::units::Bytes;
use tulpar_exec::cache::object_path;
use tulpar_exec::data::hash_file;
use tulpar_exec::folder::Project;
use tulpar_exec::publish::shown_now;

#[derive(Serialize)]
pub(crate) struct OutputView {
    pub(crate) task: String,
    pub(crate) output: String,
    /// Under the folder of the workflow, when this run's file is there now.
    pub(crate) path: Option<String>,
    pub(crate) size: u64,
    pub(crate) digest: Digest,
    /// Its path in the sandbox of the task.
    pub(crate) file: String,
    /// It is not shown in `results/`.
    temporary: bool,
    /// Whether the cache has its content.
    cached: bool,
    #[serde(skip)]
    executable: bool,
    /// Its path below `results/`.
    #[serde(skip)]
    result: String,
}

pub(crate) fn outputs(folder: Option<&Path>, arguments: &OutputsArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let run = project.real_run(arguments.choice.run.run.as_deref())?;
    let replayed = replay::open(&project, Some(&run.name))?;
    let views = views(&project, &replayed);
    if let Some(to) = &arguments.to {
        let to = folder.unwrap_or(Path::new(".")).join(to);
        return restore(&project, &run.name, &views, &to, arguments.choice.json);
    }
    if arguments.choice.json {
        print::json(&views);
        return Ok(Exit::Done.into());
    }
    if views.is_empty() {
        print::note(&format!("{} has no outputs yet", replayed.folder.name));
        return Ok(Exit::Done.into());
    }
    let rows: Vec<Vec<String>> = views
        .iter()
        .map(|view| {
            vec![
                view.task.clone(),
                view.output.clone(),
                Bytes(view.size).to_string(),
                view.digest.short(),
                match &view.path {
                    Some(path) => path.clone(),
                    None if view.temporary => format!("{} (temporary)", view.file),
                    None if view.cached => format!("{} (in the cache)", view.result),
                    None => format!("{} (gone)", view.result),
                },
            ]
        })
        .collect();
    print::table(&["task", "output", "size", "digest", "path"], &rows);
    let hidden = views.iter().filter(|view| view.path.is_none() && view.cached && !view.temporary).count();
    if hidden > 0 {
        print::hint(&format!(
            "results/ does not show {} of {run}; `tulpar outputs {run} --to DIR` writes them to a folder",
            view::count(hidden, "file"),
            run = run.name
        ));
    }
    Ok(Exit::Done.into())
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
enum Lost {
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
struct Restored<'a> {
    run: &'a str,
    to: String,
    written: usize,
    bytes: u64,
    lost: Vec<LostView>,
}

#[derive(Serialize)]
struct LostView {
    file: String,
    because: String,
}

/// Writes copies of the files that the run shows, or would.
fn restore(project: &Project, run: &str, views: &[OutputView], to: &Path, json: bool) -> Result<ExitCode, Failure> {
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
    for LostView { file, because } in &restored.lost {
        print::warning(&format!("{file}: {because}"));
    }
    let all = restored.lost.is_empty();
    if json {
        print::json(&restored);
    } else {
        let (files, bytes) = (count(restored.written, "file"), Bytes(restored.bytes));
        print::note(&format!("{files} of {run} ({bytes}) written to {}", restored.to));
        if !all {
            print::error(&format!("{} of {run} could not be written", count(restored.lost.len(), "file")));
        }
    }
    Ok(if all { Exit::Done } else { Exit::SiteTrouble }.into())
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
