//! Reading a journal from its beginning: strictly to go on from it, leniently to report on it.
//!
//! Streams: a run of a million jobs has several million events, and nobody needs them all at once. It
//! changes nothing on disk; whoever holds the lock cuts.

use super::{Damage, JournalError, failed};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use tulpar_core::event::Event;
use tulpar_core::journal_line::{Line, LineError, VERSION};
use tulpar_core::units::Timestamp;

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub seq: u64,
    pub at: Timestamp,
    pub event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// To go on from it: every event counts. Only a torn tail may be left out.
    Strict,
    /// To report on it: what does not read is left out and counted.
    Lenient,
}

/// The part of the last batch that a crash left behind, from `offset` to the end of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub line: u64,
    pub offset: u64,
    pub bytes: u64,
    /// The last event that is kept; 0 when none is.
    pub last_seq: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the last {} bytes of the journal (line {}, from byte {}) were not completely written before the \
             crash and were cut; nothing had been done because of them, and event {} is the last",
            self.bytes, self.line, self.offset, self.last_seq
        )
    }
}

/// What a lenient reading left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    pub bad_lines: u64,
    /// Whole, but written by another version of Tulpar.
    pub unknown: u64,
}

#[derive(Debug)]
pub struct Reading {
    pub entries: Vec<Entry>,
    /// Strict readings only.
    pub cut: Option<Cut>,
    /// Lenient readings only.
    pub skipped: Skipped,
}

/// Reads a whole journal. Takes no lock: a run may be writing it meanwhile.
pub fn read(path: &Path, strictness: Strictness) -> Result<Reading, JournalError> {
    let mut entries = Vec::new();
    let (cut, skipped) = read_with(path, strictness, |entry| entries.push(entry))?;
    Ok(Reading { entries, cut, skipped })
}

/// The same, one event at a time.
pub fn read_with(
    path: &Path,
    strictness: Strictness,
    each: impl FnMut(Entry),
) -> Result<(Option<Cut>, Skipped), JournalError> {
    let file = File::open(path).map_err(failed("open", path))?;
    let scanned = scan(&file, path, strictness, each)?;
    Ok((scanned.cut, scanned.skipped))
}

pub(super) struct Scanned {
    /// Length of the whole-event prefix.
    pub good: u64,
    pub next_seq: u64,
    pub cut: Option<Cut>,
    pub skipped: Skipped,
}

/// Refuses a journal of an earlier version. All lines of a journal have the version of the first.
pub(super) fn refuse_older(path: &Path) -> Result<(), JournalError> {
    let file = File::open(path).map_err(failed("open", path))?;
    let mut first = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut first).map_err(failed("read", path))?;
    match Line::parse(first.strip_suffix(b"\n").unwrap_or(&first)) {
        Ok(line) if line.version < VERSION => Err(JournalError::Older { path: path.to_owned(), version: line.version }),
        _ => Ok(()),
    }
}

pub(super) fn scan(
    file: &File,
    path: &Path,
    strictness: Strictness,
    mut each: impl FnMut(Entry),
) -> Result<Scanned, JournalError> {
    refuse_older(path)?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut scanned = Scanned { good: 0, next_seq: 1, cut: None, skipped: Skipped::default() };
    let mut bytes = Vec::new();
    let mut line = 0;
    loop {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).map_err(failed("read", path))? == 0 {
            return Ok(scanned);
        }
        line += 1;
        let terminated = bytes.last() == Some(&b'\n');
        let content = if terminated { &bytes[..bytes.len() - 1] } else { &bytes[..] };
        let cause = match Line::parse(content) {
            Ok(parsed) if terminated => match (strictness, parsed.event()) {
                (Strictness::Strict, Ok(_)) if parsed.seq != scanned.next_seq => {
                    Damage::Order { expected: scanned.next_seq, found: parsed.seq }
                }
                (_, Ok(event)) => {
                    each(Entry { seq: parsed.seq, at: parsed.at, event });
                    scanned.good += bytes.len() as u64;
                    scanned.next_seq = parsed.seq.saturating_add(1);
                    continue;
                }
                (Strictness::Lenient, Err(cause)) => {
                    if cause.is_newer() {
                        scanned.skipped.unknown += 1;
                    } else {
                        scanned.skipped.bad_lines += 1;
                    }
                    continue;
                }
                (Strictness::Strict, Err(cause)) if cause.is_newer() => {
                    return Err(JournalError::Newer { path: path.to_owned(), line, cause });
                }
                (Strictness::Strict, Err(cause)) => Damage::Line(cause),
            },
            // Someone may be in the middle of writing it.
            _ if !terminated && strictness == Strictness::Lenient => return Ok(scanned),
            Ok(_) => Damage::Line(LineError::NoChecksum),
            Err(_) if strictness == Strictness::Lenient => {
                scanned.skipped.bad_lines += 1;
                continue;
            }
            Err(cause) => Damage::Line(cause),
        };
        let offset = scanned.good;
        reader.read_to_end(&mut bytes).map_err(failed("read", path))?;
        let last_seq = scanned.next_seq - 1;
        if is_torn(&bytes, offset, scanned.next_seq) {
            scanned.cut = Some(Cut { line, offset, bytes: bytes.len() as u64, last_seq });
            return Ok(scanned);
        }
        return Err(JournalError::Damaged { path: path.to_owned(), line, offset, whole: last_seq, cause });
    }
}

/// Whether `rest`, which begins at the first line that does not read, is what a crash can leave of the
/// batch that was being written: its beginning, or all of it with holes of zeros where a block did not
/// reach the disk. No journal line holds a zero byte.
fn is_torn(rest: &[u8], offset: u64, expected_seq: u64) -> bool {
    let Some(newline) = rest.iter().position(|byte| *byte == b'\n') else {
        return true;
    };
    let Some(hole) = rest[..newline].iter().position(|byte| *byte == 0) else {
        return false;
    };
    // Blocks reach the disk whole: a hole ends where a sector does, or with the file.
    let mut zero_before = false;
    for (index, byte) in rest.iter().enumerate() {
        let zero = *byte == 0;
        if zero_before && !zero && !(offset + index as u64).is_multiple_of(512) {
            return false;
        }
        zero_before = zero;
    }
    // A batch has one time. Whole lines after the hole must be of the batch that the hole is in, or
    // else events that were durable are missing.
    let mut batch = None;
    for line in rest[newline + 1..].split(|byte| *byte == b'\n') {
        if let Ok(whole) = Line::parse(line) {
            if batch.is_some_and(|at| at != whole.at) {
                return false;
            }
            batch = Some(whole.at);
        }
    }
    let Some(at) = batch else {
        return true;
    };
    let head = format!("{{\"seq\":{expected_seq},\"at\":{},", at.0);
    let shown = &rest[..hole];
    let common = shown.len().min(head.len());
    shown[..common] == head.as_bytes()[..common]
}
