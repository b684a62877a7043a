//! `tulpar stats`: the tables that users of pegasus-statistics know, and what tasks asked for in vain.

use super::report;
use crate::failure::{Exit, Failure};
use crate::replay::{self, Replayed};
use crate::reporting::{StatsArguments, StatsLevel, StatsPeriod};
use crate::{print, records};
use serde::Deserialize;
use std::path::Path;
use std::process::ExitCode;
use tulpar_core::ids::AttemptId;
use tulpar_core::workflow::SUB_WORKFLOW_VARIABLE;
use tulpar_exec::folder::RunFolder;
use tulpar_report::{Ledger, Period, Statistics, StatisticsFacts};

pub(crate) fn stats(folder: Option<&Path>, arguments: &StatsArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let folders: Vec<RunFolder> = match arguments.runs.as_slice() {
        [] => vec![project.run(None)?],
        names => names.iter().map(|name| project.run(Some(name))).collect::<Result<_, _>>()?,
    };
    if arguments.efficiency {
        return report::efficiency(&project, folders, folder, arguments);
    }
    let all: Vec<Statistics> = folders.into_iter().map(|run| of_run(run, arguments)).collect::<Result<_, _>>()?;
    if arguments.json {
        print::json(&all);
        return Ok(Exit::Done.into());
    }
    let wanted =
        |name: &str| arguments.show.iter().any(|level| *level == StatsLevel::All || level.tables().contains(&name));
    let tables: Vec<_> =
        tulpar_report::statistics_tables(&all).into_iter().filter(|table| wanted(table.name)).collect();
    if let Some(directory) = &arguments.csv {
        let files: Vec<_> = tables.iter().map(|table| table.csv()).collect();
        report::write_tables(&folder.unwrap_or(Path::new(".")).join(directory), &files)?;
        return Ok(Exit::Done.into());
    }
    let texts: Vec<String> = tables.iter().map(|table| table.text()).collect();
    print::bytes(texts.join("\n").as_bytes());
    Ok(Exit::Done.into())
}

fn of_run(folder: RunFolder, arguments: &StatsArguments) -> Result<Statistics, Failure> {
    /// What of a record is wanted here.
    #[derive(Deserialize)]
    struct Host {
        attempt: AttemptId,
        host: String,
    }
    let mut ledger = Ledger::default();
    let replayed: Replayed =
        replay::open_with(folder, |engine, entry| ledger.note(engine.graph(), entry.at, &entry.event))?;
    let graph = replayed.engine.graph();
    let inner =
        |task: &tulpar_core::workflow::Task| task.settings.environment.variables.contains_key(SUB_WORKFLOW_VARIABLE);
    let mut facts = StatisticsFacts {
        run: replayed.folder.name.clone(),
        simulated: replayed.folder.is_simulated(),
        wall_seconds: replayed.took().as_secs_f64(),
        period: match arguments.period {
            StatsPeriod::Hour => Period::Hour,
            StatsPeriod::Day => Period::Day,
        },
        sub_workflows: graph.plan().workflow.tasks.iter().map(inner).collect(),
        ..StatisticsFacts::default()
    };
    records::each(&replayed.folder, |record: Host| drop(facts.hosts.insert(record.attempt, record.host)))?;
    Ok(tulpar_report::statistics(&facts, graph, &ledger))
}
