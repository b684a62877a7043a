//! `tulpar stats`: the tables that users of pegasus-statistics know, and what tasks asked for in vain.

use super::report;
use crate::failure::Exit;
use crate::print;
use crate::reporting::{StatsArguments, StatsLevel, StatsPeriod};
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::replay::{self};
use tulpar::statistics::of_run;
use tulpar_exec::folder::RunFolder;
use tulpar_report::{Period, Statistics};

pub(crate) fn stats(folder: Option<&Path>, arguments: &StatsArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let folders: Vec<RunFolder> = match arguments.runs.as_slice() {
        [] => vec![project.run(None)?],
        names => names.iter().map(|name| project.run(Some(name))).collect::<Result<_, _>>()?,
    };
    if arguments.efficiency {
        return report::efficiency(&project, folders, folder, arguments);
    }
    let period = match arguments.period {
        StatsPeriod::Hour => Period::Hour,
        StatsPeriod::Day => Period::Day,
    };
    let all: Vec<Statistics> =
        folders.into_iter().map(|run| of_run(run, period, &Terminal)).collect::<Result<_, _>>()?;
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
