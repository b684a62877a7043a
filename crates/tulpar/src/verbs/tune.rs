//! `tulpar tune`: a search on its own, of a workflow file or of one command.

use super::prepare::{Prepared, prepare, prepare_text};
use super::run::run_together;
use super::together::Together;
use crate::failure::Failure;
use crate::print;
use crate::tuning::TuneArguments;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tulpar_core::plan::Plan;
use tulpar_core::workflow::AxisValues;

pub(crate) fn tune(folder: Option<&Path>, arguments: TuneArguments) -> Result<ExitCode, Failure> {
    if arguments.client {
        print::line(include_str!("tulpar_client.py").trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let of_command = !arguments.command.words.is_empty();
    let mut prepared = if of_command {
        let here = folder.unwrap_or(Path::new("."));
        let text = arguments.text(here)?;
        prepare_text(folder, &arguments.workflow, here.join(&arguments.command.name), text, &BTreeMap::new())?
    } else {
        prepare(folder, &arguments.workflow)?
    };
    let mut plan = prepared.plan_or_findings()?;
    if !of_command {
        change(&mut plan, &arguments);
    }
    let Prepared { project, file, catalogue, .. } = prepared;
    let searches = plan.workflow.tasks.iter().filter(|task| task.search().is_some());
    let until: Vec<String> = searches.map(|task| task.name.clone()).collect();
    if until.is_empty() {
        return Err(Failure::usage_with(
            format!("{} has no task with `search:`", file.display()),
            "see docs/search.md, or run it with `tulpar run`",
        ));
    }
    let mut run = arguments.into_run();
    run.until = until;
    run_together(Together { project, files: vec![file], plan, catalogue }, &run)
}

/// What was typed counts more than what the file says.
fn change(plan: &mut Plan, arguments: &TuneArguments) {
    for task in &mut plan.workflow.tasks {
        for axis in &mut task.scatter {
            let AxisValues::Trials(search) = &mut axis.values else { continue };
            let search = Arc::make_mut(search);
            search.trials = arguments.trials.unwrap_or(search.trials);
            search.parallel = arguments.parallel.or(search.parallel);
            search.storage = arguments.storage.clone().or(search.storage.take());
            search.name = arguments.study.clone().or(search.name.take());
            search.study.seed = arguments.seed.unwrap_or(search.study.seed);
        }
    }
}
