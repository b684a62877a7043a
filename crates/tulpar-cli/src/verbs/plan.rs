//! `tulpar plan`: the executable workflow, why it is so, how it looks, and what other ways would cost.

mod compared;
mod view;

use crate::arguments::PlanArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::plan_source::{self, PlanRequest};
use tulpar_core::planner::estimate::estimate_with;
use tulpar_core::planner::{self, PlanError};
use tulpar_lab::compare;
use tulpar_report::draw;

pub(crate) fn plan(folder: Option<&Path>, arguments: &PlanArguments) -> Result<ExitCode, Failure> {
    let request = PlanRequest {
        folder: folder.map(Path::to_owned),
        workflow: arguments.workflow.choice(),
        planning: arguments.planning.choice(),
        published: arguments.published.clone(),
    };
    let source = plan_source::source(&request, &Terminal)?;
    let (graph, catalogue, options) = (&source.graph, &source.catalogue, &source.options);
    if arguments.compare {
        let comparison = compare::compare(graph, catalogue, options, &source.costs).map_err(refused)?;
        if arguments.json {
            print::json(&comparison);
        } else {
            compared::print(&comparison);
        }
        return Ok(Exit::Done.into());
    }
    let layout = planner::plan(graph, catalogue, options, &[]).map_err(refused)?;
    let mut on_stdout = false;
    if let Some(path) = &arguments.dot {
        on_stdout |= write(folder, path, &draw::dot(graph, &layout))?;
    }
    if let Some(path) = &arguments.svg {
        on_stdout |= write(folder, path, &draw::svg(graph, &layout))?;
    }
    if on_stdout {
        return Ok(Exit::Done.into());
    }
    let predicted = estimate_with(graph, &layout, catalogue, options, &source.costs);
    let view = view::PlanView::new(&source, &layout, predicted);
    if arguments.json {
        print::json(&view);
    } else {
        view.print(arguments.explain);
    }
    Ok(Exit::Done.into())
}

fn refused(error: PlanError) -> Failure {
    match error {
        PlanError::UnknownSite { .. } => {
            Failure::usage_with(error.to_string(), "`tulpar sites` lists the sites that are known")
        }
        error => Failure::usage(error.to_string()),
    }
}

/// Writes a drawing; true when that was to stdout.
fn write(folder: Option<&Path>, path: &Path, text: &str) -> Result<bool, Failure> {
    if path == Path::new("-") {
        print::bytes(text.as_bytes());
        return Ok(true);
    }
    let path = folder.unwrap_or(Path::new("")).join(path);
    std::fs::write(&path, text).map_err(|source| Failure::Write { path: path.clone(), source })?;
    print::note(&format!("wrote {}", path.display()));
    Ok(false)
}
