//! `tulpar outputs`: the files that a run made, where they are shown, and `--to`: copies of them elsewhere.

use crate::arguments::OutputsArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::outputs::{LostView, Restored, restore};
use tulpar::replay::{self};
use tulpar::view;
use tulpar::view::count;
use tulpar_core::units::Bytes;

pub(crate) fn outputs(folder: Option<&Path>, arguments: &OutputsArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let (run, views) = tulpar::outputs::outputs(&project, arguments.choice.run.run.as_deref(), &Terminal)?;
    if let Some(to) = &arguments.to {
        let to = folder.unwrap_or(Path::new(".")).join(to);
        return show_restored(&restore(&project, &run, &views, &to)?, arguments.choice.json);
    }
    if arguments.choice.json {
        print::json(&views);
        return Ok(Exit::Done.into());
    }
    if views.is_empty() {
        print::note(&format!("{} has no outputs yet", run));
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
            run = run
        ));
    }
    Ok(Exit::Done.into())
}

fn show_restored(restored: &Restored<'_>, json: bool) -> Result<ExitCode, Failure> {
    for LostView { file, because } in &restored.lost {
        print::warning(&format!("{file}: {because}"));
    }
    let all = restored.lost.is_empty();
    if json {
        print::json(restored);
    } else {
        let (files, bytes, run) = (count(restored.written, "file"), Bytes(restored.bytes), restored.run);
        print::note(&format!("{files} of {run} ({bytes}) written to {}", restored.to));
        if !all {
            print::error(&format!("{} of {run} could not be written", count(restored.lost.len(), "file")));
        }
    }
    Ok(if all { Exit::Done } else { Exit::SiteTrouble }.into())
}
