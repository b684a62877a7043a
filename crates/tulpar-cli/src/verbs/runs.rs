//! `tulpar runs`: the runs of this folder, the latest last.

use crate::arguments::RunsArguments;
use crate::failure::Exit;
use crate::print;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tulpar::Failure;
use tulpar::replay::{self};
use tulpar::runs::RunView;
use tulpar::view::duration;
use tulpar_core::provenance::{self, Code, Metric};

/// Of a cell with parameters or metrics.
const MOST_LETTERS: usize = 60;

pub(crate) fn runs(folder: Option<&Path>, arguments: &RunsArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let views = tulpar::runs::runs(&project)?;
    if arguments.json {
        print::json(&views);
        return Ok(Exit::Done.into());
    }
    if views.is_empty() {
        print::note("There is no run here yet; `tulpar run` starts one.");
        return Ok(Exit::Done.into());
    }
    let mut rows: Vec<Vec<String>> = views
        .iter()
        .map(|view| {
            vec![
                view.run.clone(),
                view.standing.word().to_owned(),
                match view.simulated {
                    true => "simulated".to_owned(),
                    false => view.started.map(|started| started.to_string()).unwrap_or_default(),
                },
                duration(Duration::from_secs_f64(view.seconds)),
                view.tasks.to_string(),
                view.done.to_string(),
                view.reused.to_string(),
                view.failed.to_string(),
            ]
        })
        .collect();
    let mut header = vec!["run", "state", "started", "took", "tasks", "done", "reused", "failed"];
    type Cell = fn(&RunView) -> String;
    let more: [(&str, Cell); 3] = [
        ("parameters", |view| short(provenance::parameter_words(&view.provenance.parameters))),
        ("commit", |view| view.provenance.code.as_ref().map(Code::short).unwrap_or_default()),
        ("metrics", |view| short(view.metrics.iter().map(Metric::words).collect::<Vec<_>>().join(", "))),
    ];
    for (title, cell) in more {
        let cells: Vec<String> = views.iter().map(cell).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            header.push(title);
            rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        }
    }
    print::table(&header, &rows);
    Ok(Exit::Done.into())
}

/// The whole is in `--json` and in `status`.
fn short(text: String) -> String {
    if text.chars().count() <= MOST_LETTERS {
        return text;
    }
    let cut: String = text.chars().take(MOST_LETTERS - 1).collect();
    cut + "…"
}
