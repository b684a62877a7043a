//! `osdf://` and `pelican://` by the Pelican client, when it is installed: one `pelican object get` or `put` a file.

use crate::error::{ErrorKind, TransferError};
use crate::local::Arrived;
use crate::location::Location;
use crate::process::{self, Landing};
use crate::target::Folders;
use crate::types::{Options, Transfer};
use crate::work::Work;
use std::path::Path;
use std::process::Command;

pub(crate) fn perform(
    options: &Options,
    folders: &mut Folders,
    batch: &mut [Work<'_>],
) -> Vec<Result<Arrived, TransferError>> {
    let program = process::find("pelican");
    batch
        .iter()
        .map(|work| match &program {
            Some(program) => one(options, folders, work.transfer, program),
            None => {
                let why = "it needs the Pelican client: install `pelican` from pelicanplatform.org and put it on PATH";
                Err(TransferError::unsupported(&work.transfer.from, why))
            }
        })
        .collect()
}

fn one(
    options: &Options,
    folders: &mut Folders,
    transfer: &Transfer,
    program: &Path,
) -> Result<Arrived, TransferError> {
    if options.is_cancelled() {
        return Err(TransferError::cancelled(&transfer.from));
    }
    let mut command = Command::new(program);
    command.arg("object");
    match (&transfer.from, &transfer.to) {
        (Location::Url(_), Location::File(path)) => {
            let landing = Landing::new(folders, path)?;
            run(options, command.arg("get").arg(name(&transfer.from)).arg(landing.path()), &transfer.from)?;
            landing.finish(options, transfer)
        }
        (Location::File(path), Location::Url(_)) => {
            let leaving = process::departing(options, transfer, path)?;
            run(options, command.arg("put").arg(path).arg(name(&transfer.to)), &transfer.to)?;
            Ok(leaving)
        }
        _ => Err(TransferError::unsupported(&transfer.from, "one end of it must be here")),
    }
}

/// `stash://` is the older name of `osdf://`.
fn name(location: &Location) -> String {
    let exact = location.exact();
    exact.strip_prefix("stash://").map(|rest| format!("osdf://{rest}")).unwrap_or(exact)
}

fn run(options: &Options, command: &mut Command, remote: &Location) -> Result<(), TransferError> {
    let ended = process::run(options, command, Vec::new(), |_| {})
        .map_err(|error| TransferError::unsupported(remote, format!("pelican cannot be started: {error}")))?;
    if ended.success {
        return Ok(());
    }
    let said = ended.complaint.lines().last().unwrap_or("it said nothing").to_owned();
    let lower = ended.complaint.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let kind = if has(&["404", "not found", "no such"]) {
        ErrorKind::NotFound
    } else if has(&["403", "401", "permission", "unauthorized", "forbidden", "credential"]) {
        ErrorKind::Denied
    } else {
        ErrorKind::Transient
    };
    Err(TransferError::new(kind, remote, format!("pelican failed: {said}")))
}
