//! A run in figures: its journal, records, traces and forecast put together for `tulpar_report`.

use crate::failure::Failure;
use crate::messages::Messages;
use crate::replay::{self, Replayed, Standing};
use crate::{earlier, energy, traced};
use std::io::ErrorKind;
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_report::{Forecast, Gathered, Rates, RunFacts, RunReport, Timeline, Transfer};

/// One run with everything that its journal and records say, and with `all` every transfer of it.
pub fn of_run(
    project: &Project,
    folder: RunFolder,
    rates: &Rates,
    all: bool,
    messages: &dyn Messages,
) -> Result<(RunReport, Vec<Transfer>), Failure> {
    let mut timeline = Timeline::default();
    let mut gathered = Gathered::default();
    let replayed = replay::open_with(messages, folder, |engine, entry| {
        timeline.note(engine.graph(), entry.at, &entry.event);
        gathered.note(engine.graph(), entry.at, &entry.event);
    })?;
    let report = put_together(project, &replayed, &timeline, &gathered, rates, messages)?;
    let graph = replayed.engine.graph();
    let transfers = if all { tulpar_report::all_transfers(graph, &gathered).collect() } else { Vec::new() };
    Ok((report, transfers))
}

/// One run that was replayed, as `--json` prints it.
pub fn report_of(
    project: &Project,
    replayed: &Replayed,
    timeline: &Timeline,
    gathered: &Gathered,
    messages: &dyn Messages,
) -> Result<RunReport, Failure> {
    put_together(project, replayed, timeline, gathered, &Rates::default(), messages)
}

fn put_together(
    project: &Project,
    replayed: &Replayed,
    timeline: &Timeline,
    gathered: &Gathered,
    rates: &Rates,
    messages: &dyn Messages,
) -> Result<RunReport, Failure> {
    let forecast = forecast(&replayed.folder, messages)?;
    let now = (replayed.standing() == Standing::Running).then(replay::now);
    let graph = replayed.engine.graph();
    let images = earlier::image_sizes(project, graph.plan());
    let joules = energy::recorded(&replayed.folder);
    let io = traced::tasks(replayed, messages)?;
    let facts = RunFacts { images, joules, rates: rates.clone(), io, ..facts(replayed) };
    Ok(tulpar_report::report(facts, graph, timeline, gathered, forecast, now))
}

pub fn facts(replayed: &Replayed) -> RunFacts {
    RunFacts {
        run: replayed.folder.name.clone(),
        standing: replayed.standing().word().to_owned(),
        workflow_file: replayed.workflow_file.clone(),
        version: replayed.version.clone(),
        simulated: replayed.folder.is_simulated(),
        provenance: replayed.provenance.clone(),
        mode: Some(replayed.engine.policy().mode.name().to_owned()),
        ..RunFacts::default()
    }
}

/// What was expected of the run, when that was recorded.
fn forecast(folder: &RunFolder, messages: &dyn Messages) -> Result<Option<Forecast>, Failure> {
    let path = folder.forecast();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Failure::Read { path, source }),
    };
    match serde_json::from_str(&text) {
        Ok(forecast) => Ok(Some(forecast)),
        Err(cause) => {
            messages.warning(&format!("{} is passed over: {cause}", path.display()));
            Ok(None)
        }
    }
}
