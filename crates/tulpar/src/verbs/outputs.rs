//! `tulpar outputs`: the files that a run made, and where they are shown.

use crate::arguments::RunChoice;
use crate::failure::{Exit, Failure};
use crate::print;
use crate::replay::{self, Replayed};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tulpar_core::ids::{Digest, JobId};
use tulpar_core::units::Bytes;

#[derive(Serialize)]
pub(crate) struct OutputView {
    pub(crate) task: String,
    pub(crate) output: String,
    /// Under the folder of the workflow; absent for temporary outputs, which are only in the cache.
    pub(crate) path: Option<String>,
    pub(crate) size: u64,
    pub(crate) digest: Digest,
    /// Its path in the sandbox of the task.
    pub(crate) file: String,
}

pub(crate) fn outputs(folder: Option<&Path>, arguments: &RunChoice) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let run = project.real_run(arguments.run.run.as_deref())?;
    let replayed = replay::open(&project, Some(&run.name))?;
    let views = views(&replayed);
    if arguments.json {
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
                view.path.clone().unwrap_or_else(|| format!("{} (temporary)", view.file)),
            ]
        })
        .collect();
    print::table(&["task", "output", "size", "digest", "path"], &rows);
    Ok(Exit::Done.into())
}

fn views(replayed: &Replayed) -> Vec<OutputView> {
    let engine = &replayed.engine;
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
            views.push(OutputView {
                task: name.clone(),
                output: declared.map(|output| output.name.clone()).unwrap_or_default(),
                path: (!temporary).then(|| format!("results/{below}{}", file.path)),
                size: file.size,
                digest: file.digest,
                file: file.path.clone(),
            });
        }
    }
    views
}
