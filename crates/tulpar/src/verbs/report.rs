//! `tulpar report`: runs in figures and charts, for people and for programs.

use crate::failure::{Exit, Failure};
use crate::replay::{self, Replayed, Standing};
use crate::reporting::{ReportArguments, StatsArguments};
use crate::{earlier, energy, print, traced, view};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_report::{
    Aside, CsvFile, Document, Forecast, Gathered, NamedRuns, Rates, RunFacts, RunReport, Timeline, Transfer,
};

pub(crate) fn report(folder: Option<&Path>, arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let given = scenarios(&project, &arguments.scenarios)?;
    let mut names: Vec<&str> = arguments.runs.iter().map(String::as_str).collect();
    for name in given.iter().flat_map(|scenario| &scenario.runs) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let folders: Vec<RunFolder> = match names.as_slice() {
        [] => vec![project.run(None)?],
        names => names.iter().map(|name| project.run(Some(name))).collect::<Result<_, _>>()?,
    };
    let rates = arguments.rates()?;
    let mut runs = Vec::new();
    let mut moved: Vec<(String, Vec<Transfer>)> = Vec::new();
    for folder in folders {
        let (run, transfers) = of_run(&project, folder, &rates, arguments.csv.is_some())?;
        moved.push((run.facts.run.clone(), transfers));
        runs.push(run);
    }
    let document = Document::new(runs, &given);
    let runs = &document.runs;
    if let Some(file) = page(folder, arguments, runs) {
        std::fs::write(&file, tulpar_report::page(&document))
            .map_err(|source| Failure::Write { path: file.clone(), source })?;
        print::note(&format!("the report of {} is in {}", view::count(runs.len(), "run"), file.display()));
    }
    if let Some(directory) = &arguments.csv {
        let directory = folder.unwrap_or(Path::new(".")).join(directory);
        let mut files = tulpar_report::csv(&document);
        let moved = moved.iter_mut().map(|(run, all)| (run.as_str(), std::mem::take(all)));
        files.push(tulpar_report::transfers_csv(&document, moved));
        write_tables(&directory, &files)?;
    }
    if arguments.json {
        print::json(&document);
    } else {
        print::bytes(tulpar_report::markdown(&document).as_bytes());
    }
    Ok(Exit::Done.into())
}

/// These runs as scenarios, and the page of them.
pub(super) fn write_page(
    project: &Project,
    given: &[NamedRuns],
    asides: impl FnOnce(&Document) -> Vec<Aside>,
    file: &Path,
) -> Result<Document, Failure> {
    let mut runs = Vec::new();
    for name in given.iter().flat_map(|scenario| &scenario.runs) {
        runs.push(of_run(project, project.run(Some(name))?, &Rates::default(), false)?.0);
    }
    let mut document = Document::new(runs, given);
    document.asides = asides(&document);
    let page = tulpar_report::page(&document);
    std::fs::write(file, page).map_err(|source| Failure::Write { path: file.to_owned(), source })?;
    Ok(document)
}

pub(super) fn write_tables(directory: &Path, files: &[CsvFile]) -> Result<(), Failure> {
    let written = |path: &Path| {
        let path = path.to_owned();
        |source| Failure::Write { path, source }
    };
    std::fs::create_dir_all(directory).map_err(written(directory))?;
    for file in files {
        let path = directory.join(file.name);
        std::fs::write(&path, &file.text).map_err(written(&path))?;
    }
    print::note(&format!("{} in {}", view::count(files.len(), "table"), directory.display()));
    Ok(())
}

/// What tasks of some runs asked for and used, alone.
pub(super) fn efficiency(
    project: &Project,
    folders: Vec<RunFolder>,
    here: Option<&Path>,
    arguments: &StatsArguments,
) -> Result<ExitCode, Failure> {
    let runs = folders.into_iter().map(|folder| Ok(of_run(project, folder, &Rates::default(), false)?.0));
    let document = Document::new(runs.collect::<Result<_, Failure>>()?, &[]);
    if arguments.json {
        let rows: Vec<_> = document.runs.iter().map(|run| (&run.facts.run, &run.efficiency)).collect();
        print::json(&rows.into_iter().collect::<BTreeMap<_, _>>());
    } else if let Some(directory) = &arguments.csv {
        let files: Vec<CsvFile> =
            tulpar_report::csv(&document).into_iter().filter(|file| file.name == "efficiency.csv").collect();
        write_tables(&here.unwrap_or(Path::new(".")).join(directory), &files)?;
    } else {
        print::bytes(tulpar_report::efficiency_text(&document).as_bytes());
    }
    Ok(Exit::Done.into())
}

/// `baseline=galaxy-1,galaxy-2`
fn scenarios(project: &Project, given: &[String]) -> Result<Vec<NamedRuns>, Failure> {
    let mut scenarios = Vec::new();
    for text in given {
        let Some((name, list)) = text.split_once('=').filter(|(name, list)| !name.is_empty() && !list.is_empty())
        else {
            return Err(Failure::usage_with(
                format!("--scenario {text}: a name, `=` and runs are wanted"),
                "write for example --scenario baseline=galaxy-1,galaxy-2",
            ));
        };
        let mut runs = Vec::new();
        for run in list.split(',').map(str::trim).filter(|run| !run.is_empty()) {
            runs.push(project.run(Some(run))?.name);
        }
        scenarios.push(NamedRuns { name: name.trim().to_owned(), runs });
    }
    Ok(scenarios)
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

fn of_run(
    project: &Project,
    folder: RunFolder,
    rates: &Rates,
    all: bool,
) -> Result<(RunReport, Vec<Transfer>), Failure> {
    let mut timeline = Timeline::default();
    let mut gathered = Gathered::default();
    let replayed = replay::open_with(folder, |engine, entry| {
        timeline.note(engine.graph(), entry.at, &entry.event);
        gathered.note(engine.graph(), entry.at, &entry.event);
    })?;
    let report = put_together(project, &replayed, &timeline, &gathered, rates)?;
    let graph = replayed.engine.graph();
    let transfers = if all { tulpar_report::all_transfers(graph, &gathered).collect() } else { Vec::new() };
    Ok((report, transfers))
}

/// One run that was replayed, as `--json` prints it.
pub(crate) fn report_of(
    project: &Project,
    replayed: &Replayed,
    timeline: &Timeline,
    gathered: &Gathered,
) -> Result<RunReport, Failure> {
    put_together(project, replayed, timeline, gathered, &Rates::default())
}

fn put_together(
    project: &Project,
    replayed: &Replayed,
    timeline: &Timeline,
    gathered: &Gathered,
    rates: &Rates,
) -> Result<RunReport, Failure> {
    let forecast = forecast(&replayed.folder)?;
    let now = (replayed.standing() == Standing::Running).then(replay::now);
    let graph = replayed.engine.graph();
    let images = earlier::image_sizes(project, graph.plan());
    let joules = energy::recorded(&replayed.folder);
    let io = traced::tasks(replayed)?;
    let facts = RunFacts { images, joules, rates: rates.clone(), io, ..facts(replayed) };
    Ok(tulpar_report::report(facts, graph, timeline, gathered, forecast, now))
}

pub(super) fn facts(replayed: &Replayed) -> RunFacts {
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
