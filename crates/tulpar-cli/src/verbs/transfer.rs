//! `tulpar transfer FROM TO` or `tulpar transfer LIST`: files between folders, servers and object stores, with checks.

use crate::arguments::{Links, TransferArguments};
use crate::failure::Exit;
use crate::print;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tulpar::Failure;
use tulpar_core::units::{Bytes, parse_duration};
use tulpar_transfer::{LinkMode, Location, Moved, Options, Progress, Sha256Digest, Transfer, TransferError, Transfers};

#[derive(Serialize)]
struct View {
    files: usize,
    failed: usize,
    bytes: u64,
    seconds: f64,
    transfers: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    from: String,
    to: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    moved: Option<Moved>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

/// More failures than this are counted, not listed.
const LISTED: usize = 20;

pub(crate) fn transfer(folder: Option<&Path>, arguments: &TransferArguments) -> Result<ExitCode, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let timeout = parse_duration(&arguments.timeout).map_err(|error| usage(&error))?;
    let bar = bar();
    let mut options = Options {
        threads: arguments.threads,
        retries: arguments.retries,
        timeout,
        certificates: arguments.certificates.clone(),
        links: match arguments.links {
            Links::Auto => LinkMode::Auto,
            Links::HardLink => LinkMode::HardLink,
            Links::Symlink => LinkMode::Symlink,
            Links::Copy => LinkMode::Copy,
        },
        ..Options::default()
    };
    if let Some(bar) = bar.clone() {
        options.progress = Some(Arc::new(move |progress| match progress {
            Progress::Done { .. } | Progress::Failed { .. } => bar.inc(1),
            Progress::Bytes(_) | Progress::Retry { .. } => {}
        }));
    }
    let cancel = options.cancel.clone();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, cancel.clone()).map_err(Failure::Launch)?;
    }
    let transfers = Transfers::new(options);
    let list = match &arguments.to {
        Some(to) => pair(&transfers, &place(folder, &arguments.from)?, &place(folder, to)?, arguments)?,
        None => read(folder, &arguments.from)?,
    };
    if let Some(bar) = &bar {
        bar.set_length(list.len() as u64);
    }
    let begun = Instant::now();
    let results = transfers.transfer(&list);
    let taken = begun.elapsed();
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let view = view(&list, results, taken);
    if arguments.json {
        print::json(&view);
    } else {
        show(&view);
    }
    Ok(match view.failed {
        0 => Exit::Done.into(),
        _ if cancel.load(Ordering::Relaxed) => Exit::Interrupted.into(),
        _ => Exit::SiteTrouble.into(),
    })
}

fn bar() -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let style = ProgressStyle::with_template("{pos} of {len} files {wide_bar} {per_sec}, {eta} left").ok()?;
    Some(ProgressBar::no_length().with_style(style))
}

/// Relative paths are meant from `-C DIR`.
fn place(folder: Option<&Path>, text: &str) -> Result<Location, Failure> {
    match (Location::parse(text), folder) {
        (Ok(Location::File(path)), Some(folder)) => Ok(Location::File(folder.join(path))),
        (Ok(location), _) => Ok(location),
        (Err(error), _) => Err(Failure::usage(error.to_string())),
    }
}

/// One file, or all of a folder.
fn pair(
    transfers: &Transfers,
    from: &Location,
    to: &Location,
    arguments: &TransferArguments,
) -> Result<Vec<Transfer>, Failure> {
    let is_folder = match from {
        Location::File(path) => path.is_dir(),
        Location::Url(url) => url.path.ends_with('/'),
    };
    let sha256 = match &arguments.sha256 {
        Some(_) if is_folder => return Err(Failure::usage("--sha256 is for one file, and a folder is to be moved")),
        Some(text) => Some(
            Sha256Digest::parse(text)
                .ok_or_else(|| Failure::usage("--sha256 needs 64 hexadecimal digits, as sha256sum prints them"))?,
        ),
        None => None,
    };
    if is_folder {
        return transfers.tree(from, to).map_err(|error| Failure::Site { message: error.to_string(), hint: None });
    }
    let into_folder = match to {
        Location::File(path) => path.is_dir() || arguments.to.as_deref().is_some_and(|to| to.ends_with('/')),
        Location::Url(url) => url.path.ends_with('/'),
    };
    let to = if into_folder { to.join(&from.name()) } else { to.clone() };
    Ok(vec![Transfer { sha256, ..Transfer::new(from.clone(), to) }])
}

/// A transfer a line.
fn read(folder: Option<&Path>, name: &str) -> Result<Vec<Transfer>, Failure> {
    let path = folder.map_or_else(|| Path::new(name).to_owned(), |folder| folder.join(name));
    let failed = |source| Failure::Read { path: path.clone(), source };
    let reader: Box<dyn BufRead> = match name {
        "-" => Box::new(std::io::stdin().lock()),
        _ => Box::new(BufReader::new(std::fs::File::open(&path).map_err(failed)?)),
    };
    let mut list = Vec::new();
    for (number, line) in reader.lines().enumerate() {
        let line = line.map_err(failed)?;
        if line.trim().is_empty() {
            continue;
        }
        let transfer: Transfer = serde_json::from_str(&line).map_err(|error| {
            Failure::usage_with(
                format!("{name}, line {}: {error}", number + 1),
                "a line is {\"from\": \"…\", \"to\": \"…\"}; to move one file or folder, say where to: `tulpar transfer FROM TO`",
            )
        })?;
        let (from, to) = (place(folder, &transfer.from.exact())?, place(folder, &transfer.to.exact())?);
        list.push(Transfer { from, to, ..transfer });
    }
    Ok(list)
}

fn view(list: &[Transfer], results: Vec<Result<Moved, TransferError>>, taken: Duration) -> View {
    let rows: Vec<Row> = list
        .iter()
        .zip(results)
        .map(|(transfer, result)| {
            let (moved, error) = match result {
                Ok(moved) => (Some(moved), None),
                Err(error) => (None, Some(error)),
            };
            Row {
                from: transfer.from.to_string(),
                to: transfer.to.to_string(),
                moved,
                kind: error.as_ref().map(|error| format!("{:?}", error.kind())),
                error: error.map(|error| error.to_string()),
            }
        })
        .collect();
    View {
        files: rows.len(),
        failed: rows.iter().filter(|row| row.error.is_some()).count(),
        bytes: rows.iter().filter_map(|row| row.moved.as_ref()).map(|moved| moved.bytes).sum(),
        seconds: taken.as_secs_f64(),
        transfers: rows,
    }
}

fn show(view: &View) {
    let failed = view.transfers.iter().filter_map(|row| row.error.as_ref());
    for error in failed.clone().take(LISTED) {
        print::error(error);
    }
    if view.failed > LISTED {
        print::note(&format!("… and {} more; --json lists all", view.failed - LISTED));
    }
    let again = view.transfers.iter().filter_map(|row| row.moved.as_ref()).filter(|moved| moved.attempts > 1).count();
    let again = if again > 0 { format!(", {again} of them only after another attempt") } else { String::new() };
    let rate = Bytes((view.bytes as f64 / view.seconds.max(1e-9)) as u64);
    print::line(&format!(
        "{} of {} files moved: {} in {:.1} s ({rate}/s){again}",
        view.files - view.failed,
        view.files,
        Bytes(view.bytes),
        view.seconds
    ));
}
