//! `tulpar io report` and `tulpar io compare`: logs and profiles in, figures, findings and pages out.

use crate::failure::Exit;
use crate::print;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::Failure;
use tulpar_trace::collect;
use tulpar_trace::darshan::JobSet;
use tulpar_trace::report::{Comparison, Report, Wanted, timeline};

/// What of a job, and beside which profiles.
#[derive(Debug, Args)]
pub(crate) struct IoPartArguments {
    /// Only files whose path matches the pattern, e.g. '/data/**/*.h5'
    #[arg(long, value_name = "PATTERN")]
    files: Option<String>,
    /// Only these ranks
    #[arg(long, value_name = "RANK", value_delimiter = ',')]
    ranks: Vec<i64>,
    /// Seconds of a bin of the timeline
    #[arg(long, value_name = "SECONDS")]
    bin: Option<f64>,
    /// Profiles of the same job, or folders with them: TensorBoard event files, xplane, trace.json.gz, input_pipeline,
    /// PyTorch (*.pt.trace.json), dftracer (*.pfw)
    #[arg(long = "profile", value_name = "DIR")]
    profiles: Vec<PathBuf>,
    /// Seconds to add to the times of the profiles, instead of aligning them by clocks or likeness
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    shift: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct IoReportArguments {
    /// Darshan logs, folders with logs, or patterns; several logs of one job are one
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    #[command(flatten)]
    part: IoPartArguments,
    /// Write a page that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write requests and steps on one clock as a Chrome trace, for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Print everything as JSON: one object a job
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct IoCompareArguments {
    /// The log, or the folder of the logs, of one job
    before: PathBuf,
    /// Those of the other
    after: PathBuf,
    #[command(flatten)]
    part: IoPartArguments,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn report(folder: Option<&Path>, arguments: &IoReportArguments) -> Result<ExitCode, Failure> {
    let reports = reports(folder, arguments)?;
    if let Some(path) = &arguments.html {
        let path = place(folder, path);
        let page = tulpar_report::io::page(&reports);
        std::fs::write(&path, page).map_err(|source| Failure::Write { path: path.clone(), source })?;
        print::note(&format!("wrote {}", path.display()));
    }
    if let Some(path) = &arguments.timeline {
        let path = place(folder, path);
        let failed = |source| Failure::Write { path: path.clone(), source };
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path).map_err(failed)?);
        timeline(&reports, &mut file).and_then(|()| file.flush()).map_err(failed)?;
        print::note(&format!("wrote {}", path.display()));
    }
    if arguments.json {
        print::json(&reports);
    } else if arguments.html.is_none() && arguments.timeline.is_none() {
        let texts: Vec<String> = reports.iter().map(tulpar_report::io::text).collect();
        print::bytes(texts.join("\n").as_bytes());
    }
    Ok(Exit::Done.into())
}

fn reports(folder: Option<&Path>, arguments: &IoReportArguments) -> Result<Vec<Report>, Failure> {
    let mut wanted = wanted(folder, &arguments.part)?;
    wanted.part.requests = arguments.timeline.is_some();
    reports_of(folder, &arguments.logs, &wanted)
}

/// A report of each job whose logs are named.
pub(in crate::verbs) fn reports_of(
    folder: Option<&Path>,
    logs: &[PathBuf],
    wanted: &Wanted,
) -> Result<Vec<Report>, Failure> {
    let sets = jobs(folder, logs)?;
    sets.iter().map(|set| Report::of(set, wanted).map_err(|error| usage(&error))).collect()
}

pub(crate) fn compare(folder: Option<&Path>, arguments: &IoCompareArguments) -> Result<ExitCode, Failure> {
    let wanted = wanted(folder, &arguments.part)?;
    let one = |path: &PathBuf| -> Result<Report, Failure> {
        let mut sets = jobs(folder, std::slice::from_ref(path))?;
        match (sets.pop(), sets.is_empty()) {
            (Some(set), true) => Report::of(&set, &wanted).map_err(|error| usage(&error)),
            _ => Err(Failure::usage_with(
                format!("{} has the logs of several jobs", path.display()),
                "name the log of one job, or a folder with the logs of one",
            )),
        }
    };
    let comparison = Comparison::of(&one(&arguments.before)?, &one(&arguments.after)?);
    if arguments.json {
        print::json(&comparison);
    } else {
        print::bytes(tulpar_report::io::comparison(&comparison).as_bytes());
    }
    Ok(Exit::Done.into())
}

fn usage(error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

/// Relative paths are meant from `-C DIR`.
fn place(folder: Option<&Path>, path: &Path) -> PathBuf {
    folder.unwrap_or(Path::new("")).join(path)
}

fn wanted(folder: Option<&Path>, part: &IoPartArguments) -> Result<Wanted, Failure> {
    let mut wanted = Wanted { shift: part.shift, look: true, ..Wanted::default() };
    wanted.profiles = part.profiles.iter().map(|path| place(folder, path)).collect();
    wanted.part.bin = part.bin;
    wanted.part.ranks = (!part.ranks.is_empty()).then(|| part.ranks.iter().copied().collect());
    wanted.part.files = part.files.as_deref().map(collect::pattern).transpose().map_err(|error| usage(&error))?;
    Ok(wanted)
}

/// The jobs whose logs are named. A log that cannot be opened is a warning as long as another can.
fn jobs(folder: Option<&Path>, named: &[PathBuf]) -> Result<Vec<JobSet>, Failure> {
    let named: Vec<PathBuf> = named.iter().map(|path| place(folder, path)).collect();
    let paths = collect::logs(&named).map_err(|error| usage(&error))?;
    let (sets, mut failed) = JobSet::group(&paths);
    if sets.is_empty()
        && let Some((path, error)) = failed.pop()
    {
        return Err(Failure::usage(format!("{}: {error}", path.display())));
    }
    for (path, error) in failed {
        print::warning(&format!("{}: {error}", path.display()));
    }
    Ok(sets)
}
