//! `tulpar report`: runs in figures and charts, for people and for programs.

use crate::failure::{Exit, Failure};
use crate::replay::{self, Replayed, Standing};
use crate::reporting::ReportArguments;
use crate::{print, view};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_exec::folder::RunFolder;
use tulpar_report::{Forecast, RunFacts, RunReport, Timeline};

pub(crate) fn report(folder: Option<&Path>, arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let folders: Vec<RunFolder> = match arguments.runs.as_slice() {
        [] => vec![project.run(None)?],
        names => names.iter().map(|name| project.run(Some(name))).collect::<Result<_, _>>()?,
    };
    let mut runs: Vec<RunReport> = folders.into_iter().map(of_run).collect::<Result<_, _>>()?;
    tulpar_report::compare(&mut runs);
    if let Some(file) = page(folder, arguments, &runs) {
        std::fs::write(&file, tulpar_report::page(&runs))
            .map_err(|source| Failure::Write { path: file.clone(), source })?;
        print::note(&format!("the report of {} is in {}", view::count(runs.len(), "run"), file.display()));
    }
    if arguments.json {
        print::json(&runs);
    } else {
        print::bytes(tulpar_report::markdown(&runs).as_bytes());
    }
    Ok(Exit::Done.into())
}

/// The file for the page, unless only text is wanted.
fn page(folder: Option<&Path>, arguments: &ReportArguments, runs: &[RunReport]) -> Option<PathBuf> {
    let here = folder.unwrap_or(Path::new("."));
    if let Some(file) = &arguments.html {
        return Some(here.join(file));
    }
    if arguments.json || arguments.markdown {
        return None;
    }
    Some(here.join(match runs {
        // The run of a workflow inside a run has slashes in its name.
        [run] => format!("report-{}.html", run.facts.run.replace('/', "-")),
        _ => "report.html".to_owned(),
    }))
}

fn of_run(folder: RunFolder) -> Result<RunReport, Failure> {
    let forecast = forecast(&folder)?;
    let mut timeline = Timeline::default();
    let replayed = replay::open_with(folder, |engine, entry| timeline.note(engine.graph(), entry.at, &entry.event))?;
    let standing = replayed.standing();
    let now = (standing == Standing::Running).then(replay::now);
    Ok(tulpar_report::report(facts(&replayed), replayed.engine.graph(), &timeline, forecast, now))
}

pub(super) fn facts(replayed: &Replayed) -> RunFacts {
    RunFacts {
        run: replayed.folder.name.clone(),
        standing: replayed.standing().word().to_owned(),
        workflow_file: replayed.workflow_file.clone(),
        version: replayed.version.clone(),
        simulated: replayed.folder.is_simulated(),
        mode: Some(replayed.engine.policy().mode.name().to_owned()),
    }
}

/// What was expected of the run, when that was recorded.
fn forecast(folder: &RunFolder) -> Result<Option<Forecast>, Failure> {
    let path = folder.forecast();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Failure::Read { path, source }),
    };
    match serde_json::from_str(&text) {
        Ok(forecast) => Ok(Some(forecast)),
        Err(cause) => {
            print::warning(&format!("{} is passed over: {cause}", path.display()));
            Ok(None)
        }
    }
}
