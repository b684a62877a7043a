//! `tulpar tune`: a search on its own, of a workflow file or of one command.

use super::run::{Manner, run_read};
use crate::print;
use crate::terminal::Terminal;
use crate::tuning::TuneArguments;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tulpar::Failure;
use tulpar::prepare::{Prepared, prepare, prepare_text};
use tulpar::running::RunRequest;
use tulpar::together::Together;
use tulpar_core::plan::Plan;
use tulpar_core::workflow::AxisValues;

pub(crate) fn tune(folder: Option<&Path>, arguments: TuneArguments) -> Result<ExitCode, Failure> {
    if arguments.client {
        print::line(include_str!("tulpar_client.py").trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let choice = arguments.workflow.choice();
    let of_command = !arguments.command.words.is_empty();
    let mut prepared = if of_command {
        let here = folder.unwrap_or(Path::new("."));
        let text = arguments.search().text(here)?;
        prepare_text(folder, &choice, here.join(&arguments.command.name), text, &BTreeMap::new(), &Terminal)?
    } else {
        prepare(folder, &choice, &Terminal)?
    };
    let mut plan = prepared.plan_or_findings(&Terminal)?;
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
    let request = RunRequest {
        folder: folder.map(Path::to_owned),
        workflow: choice,
        until,
        policy: arguments.scheduling.policy(),
        pilots: arguments.pilots.choice()?,
        ..RunRequest::default()
    };
    let manner = Manner::new(arguments.detach, arguments.watch, arguments.json);
    run_read(Together { project, files: vec![file], plan, catalogue }, &request, &arguments.launch, manner)
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
