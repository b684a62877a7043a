//! `tulpar export`: a run in the format of another community, with what was measured; or a workflow for another system.

use super::{hand_over, results};
use crate::failure::Exit;
use crate::print;
use crate::reporting::{ExportArguments, ExportFormat};
use crate::terminal::Terminal;
use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::replay::{self, Replayed, Standing};
use tulpar::run_report;
use tulpar::{records, view};
use tulpar_core::ids::JobId;
use tulpar_core::job::Record;
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_formats::wfformat;
use tulpar_report::{Counters, Ledger, Measures, Timeline, TrialTimes};
use tulpar_transfer::{Location, Options, Transfers};

pub(crate) fn export(folder: Option<&Path>, arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    if let Some(system) = &arguments.system {
        return hand_over::hand_over(folder, system);
    }
    let project = replay::project(folder)?;
    let run = project.run(arguments.run.run.as_deref())?;
    if arguments.otlp_endpoint.is_some() && arguments.format != ExportFormat::Otlp {
        return Err(Failure::usage_with("--otlp-endpoint takes spans alone", "add --format otlp"));
    }
    match arguments.format {
        ExportFormat::Wfformat => instance(folder, &project, run, arguments),
        ExportFormat::Chrome | ExportFormat::Otlp => trace(folder, run, arguments),
        ExportFormat::Table => results::table(folder, &project, run, arguments),
        ExportFormat::Trials | ExportFormat::Hparams | ExportFormat::Mlflow | ExportFormat::Wandb => {
            trials(folder, run, arguments)
        }
    }
}

/// The run as a trace that others draw.
fn trace(folder: Option<&Path>, run: RunFolder, arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    let mut ledger = Ledger::default();
    let replayed =
        replay::open_with(&Terminal, run, |engine, entry| ledger.note(engine.graph(), entry.at, &entry.event))?;
    let now = (replayed.standing() == Standing::Running).then(replay::now);
    let (facts, graph) = (run_report::facts(&replayed), replayed.engine.graph());
    let text = match arguments.format {
        ExportFormat::Otlp => tulpar_report::otlp(&facts, graph, &ledger, now),
        _ => {
            let mut counters = Counters::default();
            records::each(&replayed.folder, |record: Record| counters.note(&record))?;
            tulpar_report::chrome(&facts, graph, &ledger, &counters, now)
        }
    };
    if let Some(collector) = &arguments.otlp_endpoint {
        send(collector, &text)?;
        print::note(&format!("the spans of {} were taken by {collector}", replayed.folder.name));
        return Ok(Exit::Done.into());
    }
    write(folder, arguments, &text, &format!("the trace of {}", replayed.folder.name))?;
    Ok(Exit::Done.into())
}

/// The searches of the run for tools that follow experiments.
fn trials(folder: Option<&Path>, run: RunFolder, arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    let mut times = TrialTimes::default();
    let replayed = replay::open_with(&Terminal, run, |_, entry| times.note(entry.at, &entry.event))?;
    let name = &replayed.folder.name;
    let (first, simulated) = (replayed.started.unwrap_or_default(), replayed.folder.is_simulated());
    let searches = tulpar_report::searched(replayed.engine.graph(), &times, first, simulated);
    if simulated {
        print::note(&format!("{name} was simulated: its trials have no values, and are marked"));
    }
    if searches.is_empty() {
        return Err(Failure::usage_with(
            format!("{name} has no search"),
            "`tulpar runs` lists the runs of this folder",
        ));
    }
    if arguments.format == ExportFormat::Trials {
        write(folder, arguments, &tulpar_report::trials_json(&searches), &format!("the trials of {name}"))?;
        return Ok(Exit::Done.into());
    }
    let Some(out) = &arguments.out else {
        return Err(Failure::usage_with("this format is a folder of files", "say where with `--out DIR`"));
    };
    let out = folder.unwrap_or(Path::new(".")).join(out);
    let failed = |path: &Path, source| Failure::Write { path: path.to_owned(), source };
    std::fs::create_dir_all(&out).map_err(|source| failed(&out, source))?;
    let place = out.canonicalize().map_err(|source| failed(&out, source))?;
    let files = match arguments.format {
        ExportFormat::Mlflow => tulpar_report::mlflow(&searches, name, &place.display().to_string()),
        ExportFormat::Wandb => tulpar_report::wandb(&searches, name),
        _ => tulpar_report::hparams(&searches),
    };
    for (file, bytes) in &files {
        let path = out.join(file);
        let parent = if file.ends_with('/') { &path } else { path.parent().unwrap_or(&out) };
        std::fs::create_dir_all(parent).map_err(|source| failed(parent, source))?;
        if file.ends_with('/') {
            continue;
        }
        std::fs::write(&path, bytes).map_err(|source| failed(&path, source))?;
    }
    let count: usize = searches.iter().map(|search| search.trials.len()).sum();
    print::note(&format!("{} of {name} written to {}", view::count(count, "trial"), out.display()));
    Ok(Exit::Done.into())
}

/// Posts each request to a collector of OpenTelemetry.
fn send(collector: &str, requests: &str) -> Result<(), Failure> {
    let failed = |error: String| Failure::Site {
        message: format!("the spans could not be sent to {collector}: {error}"),
        hint: Some("look at the address; `--out FILE` writes them to a file".to_owned()),
    };
    let url = match collector.trim_end_matches('/') {
        // What follows the host is given by the protocol, unless somebody says another path.
        host if host.matches('/').count() == 2 => format!("{host}/v1/traces"),
        whole => whole.to_owned(),
    };
    let to = Location::parse(&url).map_err(|error| failed(error.to_string()))?;
    let transfers = Transfers::new(Options::default());
    for request in requests.lines() {
        transfers.post(&to, "application/json", request.as_bytes()).map_err(|error| failed(error.to_string()))?;
    }
    Ok(())
}

fn write(folder: Option<&Path>, arguments: &ExportArguments, text: &str, what: &str) -> Result<(), Failure> {
    match &arguments.out {
        None => print::bytes(text.as_bytes()),
        Some(file) => {
            let path = folder.unwrap_or(Path::new(".")).join(file);
            std::fs::write(&path, text).map_err(|source| Failure::Write { path: path.clone(), source })?;
            print::note(&format!("{what} written to {}", path.display()));
        }
    }
    Ok(())
}

/// The run as others share runs.
fn instance(
    folder: Option<&Path>,
    project: &Project,
    run: RunFolder,
    arguments: &ExportArguments,
) -> Result<ExitCode, Failure> {
    let mut timeline = Timeline::default();
    let mut measures = Measures::default();
    let replayed = replay::open_with(&Terminal, run, |engine, entry| {
        timeline.note(engine.graph(), entry.at, &entry.event);
        measures.note(&entry.event);
    })?;
    borrow(project, &replayed, &mut measures);
    let graph = replayed.engine.graph();
    let outputs: Vec<_> = (0..graph.len()).map(|job| replayed.engine.outputs(JobId::from(job)).cloned()).collect();
    let now = (replayed.standing() == Standing::Running).then(replay::now);
    let name = &replayed.folder.name;
    let facts = run_report::facts(&replayed);
    let exported = tulpar_report::instance(&facts, graph, &outputs, &measures, &timeline, now);
    if exported.instance.tasks.is_empty() {
        return Err(Failure::usage(format!("{name} has no tasks: there is nothing to export")));
    }
    let tasks = view::count(exported.instance.tasks.len(), "task");
    write(folder, arguments, &wfformat::write(&exported.instance), &format!("{tasks} of {name}"))?;
    if exported.adopted > 0 {
        let tasks = view::count(exported.adopted as usize, "reused task");
        print::note(&format!("{tasks} with the figures of the run that did the work"));
    }
    if exported.without_figures > 0 {
        let tasks = view::count(exported.without_figures as usize, "task");
        print::warning(&format!("{tasks} did not run and have no run time; some readers want one for every task"));
    }
    Ok(Exit::Done.into())
}

/// Gives reused tasks the figures of the runs that did them, as far as these are still here.
fn borrow(project: &Project, replayed: &Replayed, measures: &mut Measures) {
    let graph = replayed.engine.graph();
    let wanted: Vec<(String, Vec<JobId>)> =
        measures.borrowed().into_iter().map(|(run, jobs)| (run.to_owned(), jobs)).collect();
    for (run, jobs) in wanted {
        let mut theirs = Measures::default();
        let Ok(folder) = project.run(Some(&run)) else { continue };
        let Ok(other) = replay::open_with(&Terminal, folder, |_, entry| theirs.note(&entry.event)) else { continue };
        let their_graph = other.engine.graph();
        let by_name: HashMap<String, JobId> =
            (0..their_graph.len()).map(JobId::from).map(|job| (their_graph.name(job), job)).collect();
        for job in jobs {
            if let Some(found) = by_name.get(&graph.name(job)) {
                measures.adopt(graph.plan(), job, &theirs, their_graph.plan(), *found);
            }
        }
    }
}
