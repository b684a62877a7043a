//! Plug-ins: a program `tulpar-transfer-SCHEME` on PATH gets a list as JSON and answers a line of JSON a file. The
//! protocol is described in docs/transfers.md. What it fetches is checked here like everything else.

use crate::error::{ErrorKind, TransferError};
use crate::local::Arrived;
use crate::location::Location;
use crate::process::{self, Landing};
use crate::target::Folders;
use crate::types::{Options, Transfer};
use crate::work::Work;
use serde::{Deserialize, Serialize};
use std::process::Command;

#[derive(Serialize)]
struct List<'a> {
    version: u32,
    transfers: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    index: usize,
    #[serde(flatten)]
    transfer: &'a Transfer,
}

#[derive(Deserialize)]
struct Said {
    index: usize,
    ok: bool,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    message: String,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    NotFound,
    Denied,
    Mismatch,
    #[default]
    Transient,
    Unsupported,
}

/// A file on its way: where it lands here, or what it was when it left.
enum Way {
    Down(Landing),
    Up(Arrived),
}

pub(crate) fn perform(
    options: &Options,
    folders: &mut Folders,
    batch: &mut [Work<'_>],
) -> Vec<Result<Arrived, TransferError>> {
    let Some(first) = batch.first() else { return Vec::new() };
    let remote = if first.transfer.from.as_path().is_some() { &first.transfer.to } else { &first.transfer.from };
    let name = format!("tulpar-transfer-{}", remote.scheme());
    let Some(program) = process::find(&name) else {
        let why = format!("nothing here knows {}://; a program `{name}` on PATH could", remote.scheme());
        return batch.iter().map(|work| Err(TransferError::unsupported(&work.transfer.from, &why))).collect();
    };
    let mut ways: Vec<Result<(Way, Transfer), TransferError>> =
        batch.iter().map(|work| begin(options, folders, work.transfer)).collect();
    let begun = ways.iter().enumerate().filter_map(|(index, way)| Some((index, way.as_ref().ok()?)));
    let list = List { version: 1, transfers: begun.map(|(index, (_, transfer))| Item { index, transfer }).collect() };
    let mut said: Vec<Option<Said>> = batch.iter().map(|_| None).collect();
    let ended = serde_json::to_vec(&list).map_err(std::io::Error::other).and_then(|input| {
        process::run(options, &mut Command::new(&program), input, |line| {
            if let Ok(answer) = serde_json::from_str::<Said>(line)
                && let Some(place) = said.get_mut(answer.index)
            {
                *place = Some(answer);
            }
        })
    });
    let silence = match &ended {
        Ok(ended) if ended.success => format!("{name} said nothing about it"),
        Ok(ended) => format!("{name} failed: {}", ended.complaint),
        Err(error) => format!("{name} cannot be started: {error}"),
    };
    batch
        .iter()
        .zip(ways.drain(..).zip(said))
        .map(|(work, (way, said))| {
            let (way, _) = way?;
            let from = &work.transfer.from;
            match (said, way) {
                _ if options.is_cancelled() => Err(TransferError::cancelled(from)),
                (None, _) => Err(TransferError::transient(from, &silence)),
                (Some(said), _) if !said.ok => Err(TransferError::new(said.kind.into(), from, said.message)),
                (Some(_), Way::Down(landing)) => landing.finish(options, work.transfer),
                (Some(_), Way::Up(arrived)) => Ok(arrived),
            }
        })
        .collect()
}

fn begin(options: &Options, folders: &mut Folders, transfer: &Transfer) -> Result<(Way, Transfer), TransferError> {
    match (&transfer.from, &transfer.to) {
        (Location::File(path), _) => {
            let leaving = process::departing(options, transfer, path)?;
            // Plug-ins get whole paths and what the file is, so that they can check on their side.
            let absolute = std::path::absolute(path).map_err(|error| TransferError::local(path, error))?;
            let told = Transfer {
                from: absolute.into(),
                size: Some(leaving.bytes),
                sha256: leaving.sha256,
                ..transfer.clone()
            };
            Ok((Way::Up(leaving), told))
        }
        (_, Location::File(path)) => {
            let landing = Landing::new(folders, path)?;
            let told = Transfer { to: landing.path().into(), ..transfer.clone() };
            Ok((Way::Down(landing), told))
        }
        _ => Err(TransferError::unsupported(&transfer.from, "one end of it must be here")),
    }
}

impl From<Kind> for ErrorKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::NotFound => ErrorKind::NotFound,
            Kind::Denied => ErrorKind::Denied,
            Kind::Mismatch => ErrorKind::Mismatch,
            Kind::Transient => ErrorKind::Transient,
            Kind::Unsupported => ErrorKind::Unsupported,
        }
    }
}
