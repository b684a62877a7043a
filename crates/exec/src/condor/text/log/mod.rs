//! HTCondor's job event log, read as it grows: bytes in, entries out.
//!
//! An entry is a line `005 (12.000.000) 2026-11-16 06:06:53 Job terminated.`, its body, and a line `...`; it counts only
//! when that last line is there, because the writer may be in the middle of it. The text form alone is read: neither the
//! XML of `log_xml = true` nor JSON. The reader does not know which jobs are ours, nor where the bytes come from.

mod event;
mod lines;
mod time;
mod usage;

pub use event::{Event, Exit, TransferPhase};
pub use time::LogTime;
pub use usage::{Bytes, ResourceUse};

use lines::header;
use thiserror::Error;

/// One thing that HTCondor says about a job, or about a whole cluster of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// HTCondor's number of the event: 5 is "terminated".
    pub kind: u16,
    pub cluster: i64,
    /// -1 when the entry is about the cluster.
    pub proc: i32,
    pub subproc: i32,
    pub time: LogTime,
    pub event: Event,
}

/// A piece of the log that says nothing. What follows it is read as usual.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {at} of the job event log: {what} (`{line}`)")]
pub struct BadEntry {
    /// Where it starts, counted from where reading began.
    pub at: u64,
    pub what: Damage,
    /// Its first line, shortened.
    pub line: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    #[error("not the start of an entry")]
    Header,
    #[error("the entry breaks off before its end; another one follows")]
    Torn,
    #[error("the entry's text does not fit its number")]
    Body,
    #[error("this log is XML or JSON, and only the text form is read: remove `log_xml` from the submit file")]
    Format,
    #[error("no end of the entry in {LONGEST} bytes")]
    Endless,
}

/// An entry longer than this is damage: the longest real ones, with many GPUs and attributes, have some thousand bytes.
const LONGEST: usize = 4 << 20;

/// Gives every entry once, however the bytes are cut.
#[derive(Clone, Debug, Default)]
pub struct LogReader {
    /// What came after the last complete entry.
    tail: Vec<u8>,
    /// How far the tail was looked at, so that a slow writer costs nothing more: the start of its last line.
    seen: usize,
    /// How many bytes are behind us.
    consumed: u64,
    /// The entry had no end for too long and was reported; up to its end nothing is kept.
    skipping: bool,
}

impl LogReader {
    /// A reader for what follows byte `offset`, which was a value of [`LogReader::consumed`].
    pub fn starting_at(offset: u64) -> Self {
        Self { consumed: offset, ..Self::default() }
    }

    /// The end of the last complete entry: where reading may be taken up again by another reader.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Bytes that are held because the entry that they belong to has no end yet.
    pub fn pending(&self) -> usize {
        self.tail.len()
    }

    pub fn push(&mut self, bytes: &[u8]) -> Vec<Result<Entry, BadEntry>> {
        self.tail.extend_from_slice(bytes);
        let mut found = Vec::new();
        let (mut start, mut line) = (0, self.seen);
        while let Some(length) = self.tail[line..].iter().position(|byte| *byte == b'\n') {
            let end = line + length;
            if is_end(&self.tail[line..end]) {
                if self.skipping {
                    self.skipping = false;
                } else {
                    read_entry(&self.tail[start..line], self.consumed + start as u64, &mut found);
                }
                start = end + 1;
            }
            line = end + 1;
        }
        self.tail.drain(..start);
        self.consumed += start as u64;
        self.seen = line - start;
        if self.tail.len() > LONGEST {
            if !self.skipping {
                found.push(Err(bad(self.consumed, Damage::Endless, &first_line(&self.tail))));
                self.skipping = true;
            }
            // An unfinished line stays: it may become the end.
            let whole = if self.seen == 0 { self.tail.len() } else { self.seen };
            self.tail.drain(..whole);
            self.consumed += whole as u64;
            self.seen = 0;
        }
        found
    }
}

fn is_end(line: &[u8]) -> bool {
    line.strip_suffix(b"\r").unwrap_or(line) == b"..."
}

/// What lies between two ends: one entry, or several of which all but the last were torn by a crash of their writer.
fn read_entry(bytes: &[u8], at: u64, found: &mut Vec<Result<Entry, BadEntry>>) {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    // Blocks of zeros are what some file systems leave after a crash; they are no line of their own.
    let headers: Vec<usize> = (0..lines.len()).filter(|index| header(strip_zeros(lines[*index])).is_some()).collect();
    let leading = headers.first().copied().unwrap_or(lines.len());
    if let Some(line) = lines[..leading].iter().find(|line| !line.trim_matches(['\0', ' ', '\t']).is_empty()) {
        let start = line.trim_start_matches(['\0', ' ']);
        let format = start.starts_with('<') || start.starts_with('{');
        found.push(Err(bad(at, if format { Damage::Format } else { Damage::Header }, line)));
    } else if headers.is_empty() {
        found.push(Err(bad(at, Damage::Header, "")));
    }
    for (number, index) in headers.iter().enumerate() {
        let line = strip_zeros(lines[*index]);
        let Some(header) = header(line) else { continue };
        if number + 1 < headers.len() {
            found.push(Err(bad(at, Damage::Torn, line)));
            continue;
        }
        let event = Event::read(header.kind, header.title, &lines[index + 1..]);
        found.push(match event {
            Some(event) => Ok(Entry {
                kind: header.kind,
                cluster: header.cluster,
                proc: header.proc,
                subproc: header.subproc,
                time: header.time,
                event,
            }),
            None => Err(bad(at, Damage::Body, line)),
        });
    }
}

fn strip_zeros(line: &str) -> &str {
    line.trim_start_matches('\0')
}

fn first_line(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(200)];
    String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned()
}

fn bad(at: u64, what: Damage, line: &str) -> BadEntry {
    BadEntry { at, what, line: line.chars().filter(|character| !character.is_control()).take(80).collect() }
}

#[cfg(test)]
mod tests;
