//! `tulpar io record`: runs a command and says where the log of its I/O is. The work is in `tulpar-shim`.

use crate::print;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::Failure;
use tulpar_shim::{Darshan, Logs, Mode, Outcome, Recorded, Request, Summary};

#[derive(Debug, Args)]
pub(crate) struct IoRecordArguments {
    /// The log to write; without, it is named after the command and lies in this folder
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Keep every read and write with its time, not only counters
    #[arg(long)]
    pub(crate) trace: bool,
    /// Keep files of the system too (/usr, /etc …)
    #[arg(long)]
    pub(crate) all: bool,
    /// Record with Tulpar's own library even where Darshan is installed
    #[arg(long)]
    pub(crate) no_darshan: bool,
    /// Print what was recorded as JSON, after all that the command prints
    #[arg(long)]
    pub(crate) json: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Serialize)]
struct View<'a> {
    log: Option<&'a Path>,
    recorder: &'static str,
    exit_code: u8,
    processes: u64,
    files: u64,
    reads: u64,
    writes: u64,
    bytes_read: u64,
    bytes_written: u64,
    segments: u64,
    not_seen: &'a [String],
    lost: u64,
}

pub(crate) fn record(folder: Option<&Path>, arguments: &IoRecordArguments) -> Result<ExitCode, Failure> {
    if let Some(folder) = folder {
        std::env::set_current_dir(folder).map_err(|source| Failure::Read { path: folder.to_owned(), source })?;
    }
    let word = &arguments.command[0];
    let log = arguments.output.clone().unwrap_or_else(|| tulpar_shim::name_of_log(word));
    if let Some(folder) = log.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        return Err(Failure::usage_with(
            format!("there is no folder {} for the log", folder.display()),
            format!("make it with `mkdir -p {}`, or choose another with `-o FILE`", folder.display()),
        ));
    }
    let darshan = if arguments.no_darshan { None } else { Darshan::find() };
    match &darshan {
        Some(darshan) => print::note(&format!(
            "Darshan is installed and records ({}); `--no-darshan` records without it",
            darshan.library.display()
        )),
        None => {
            if let Some(reason) = tulpar_shim::sight_of(word).reason() {
                print::warning(&format!(
                    "{word} cannot be looked into: {reason}; its own reads and writes will be missing"
                ));
            }
        }
    }
    let mode = if arguments.trace { Mode::Trace } else { Mode::Count };
    let request =
        Request { words: &arguments.command, log: &log, mode, everything: arguments.all, darshan: darshan.as_ref() };
    let outcome = tulpar_shim::run(&request).map_err(|error| match error {
        tulpar_shim::Error::File { what: "start", .. } => {
            Failure::usage_with(error.to_string(), "is the command spelled right, and is it on the PATH?")
        }
        error => Failure::Site { message: error.to_string(), hint: None },
    })?;
    tell(arguments, &outcome, &log);
    Ok(ExitCode::from(outcome.code()))
}

fn tell(arguments: &IoRecordArguments, outcome: &Outcome, log: &Path) {
    let nothing = Summary::default();
    let (summary, recorder, place) = match &outcome.recorded {
        Recorded::Here(summary) => (summary, "tulpar", Some(log)),
        Recorded::ByDarshan(Logs::None) => (&nothing, "darshan", None),
        Recorded::ByDarshan(Logs::One(log) | Logs::Several(log, _)) => (&nothing, "darshan", Some(log.as_path())),
    };
    if arguments.json {
        return print::json(&View {
            log: place,
            recorder,
            exit_code: outcome.code(),
            processes: summary.processes,
            files: summary.files,
            reads: summary.reads,
            writes: summary.writes,
            bytes_read: summary.bytes_read,
            bytes_written: summary.bytes_written,
            segments: summary.segments,
            not_seen: &summary.unseen,
            lost: summary.lost,
        });
    }
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&outcome.status) {
        print::note(&format!("{} was ended by signal {signal}", arguments.command[0]));
    }
    for program in &summary.unseen {
        print::warning(&format!("not seen: {program}, which is linked statically or runs as another user"));
    }
    if summary.lost > 0 {
        let lost = summary.lost;
        print::warning(&format!("there was no room for {lost} records: the log says that it is not complete"));
    }
    let Some(place) = place else {
        print::warning("Darshan left no log; `--no-darshan` records without it");
        return;
    };
    if recorder == "tulpar" {
        print::note(&format!(
            "{} of {} in {}: {} read with {} calls, {} written with {}",
            amount(summary.files, "file"),
            amount(summary.ranks, "process"),
            place.display(),
            bytes(summary.bytes_read),
            summary.reads,
            bytes(summary.bytes_written),
            summary.writes,
        ));
    }
    print::hint(&format!("`tulpar io report {}` says what it means", place.display()));
}

fn amount(number: u64, thing: &str) -> String {
    let plural = if thing.ends_with('s') { "es" } else { "s" };
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}{plural}") }
}

fn bytes(number: u64) -> String {
    tulpar_core::units::Bytes(number).to_string()
}
