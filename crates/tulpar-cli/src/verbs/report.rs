//! `tulpar report`: runs in figures and charts, for people and for programs.

use crate::failure::Exit;
use crate::print;
use crate::reporting::{ReportArguments, StatsArguments};
use crate::terminal::Terminal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::run_report::of_run;
use tulpar::{replay, view};
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_report::{Aside, CsvFile, Document, NamedRuns, Rates, RunReport, Transfer};

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
        let (run, transfers) = of_run(&project, folder, &rates, arguments.csv.is_some(), &Terminal)?;
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
        runs.push(of_run(project, project.run(Some(name))?, &Rates::default(), false, &Terminal)?.0);
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
    let runs = folders.into_iter().map(|folder| Ok(of_run(project, folder, &Rates::default(), false, &Terminal)?.0));
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
