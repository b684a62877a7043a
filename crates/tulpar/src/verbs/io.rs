//! `tulpar io …`: what a program read and wrote, recorded, explained and generated. Each part has its own words here and
//! its work in the crate that it belongs to.

mod bench;

use crate::failure::{Exit, Failure};
use crate::print;
use crate::verbs::record::{IoRecordArguments, record};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_trace::darshan::JobSet;
use tulpar_trace::report::Report;

#[derive(Debug, Subcommand)]
pub(crate) enum Io {
    /// Say what a job did to its files and where its time went, from Darshan logs
    Report(IoReportArguments),
    /// Run a command and record what it and all that it starts do to files, as a Darshan log
    Record(IoRecordArguments),
    /// Judge a file system by the access patterns of deep-learning applications
    Bench(bench::IoBenchArguments),
    /// The process of a kernel
    #[command(name = "__kernel", hide = true)]
    Kernel(bench::KernelArguments),
}

#[derive(Debug, Args)]
pub(crate) struct IoReportArguments {
    /// Darshan logs, folders with logs, or patterns; several logs of one job are one
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// Print everything as JSON: one object a job
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn io(folder: Option<&Path>, verb: &Io) -> Result<ExitCode, Failure> {
    match verb {
        Io::Report(arguments) => report(folder, arguments),
        Io::Record(arguments) => record(folder, arguments),
        Io::Bench(arguments) => bench::judge(folder, arguments),
        Io::Kernel(arguments) => bench::kernel(arguments),
    }
}

fn report(folder: Option<&Path>, arguments: &IoReportArguments) -> Result<ExitCode, Failure> {
    let sets = jobs(folder, &arguments.logs)?;
    let reports: Vec<Report> = sets.iter().map(Report::of).collect();
    if arguments.json {
        print::json(&reports);
    } else {
        let texts: Vec<String> = reports.iter().map(tulpar_report::io::text).collect();
        print::bytes(texts.join("\n").as_bytes());
    }
    Ok(Exit::Done.into())
}

/// The jobs whose logs are named. A log that cannot be opened is a warning as long as another can.
fn jobs(folder: Option<&Path>, named: &[PathBuf]) -> Result<Vec<JobSet>, Failure> {
    let named: Vec<PathBuf> = named.iter().map(|path| folder.unwrap_or(Path::new("")).join(path)).collect();
    let paths = tulpar_trace::collect::logs(&named).map_err(|error| Failure::usage(error.to_string()))?;
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
