//! Reading a journal while it grows: what came since the last look, from a byte offset.
//!
//! For progress displays and everything else that looks again and again. It takes no lock, never waits,
//! and is lenient: a report on a running job must not stop because of a line it does not know.

use super::read::refuse_older;
use super::{Entry, JournalError, Skipped, failed};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tulpar_core::journal_line::Line;

/// No look reads more than this at once, so that a late follower of a long run stays small.
const PORTION: usize = 8 << 20;

#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    offset: u64,
    skipped: Skipped,
    restarted: bool,
}

impl Follow {
    /// Begins at `offset`, which is 0 or what [`Follow::offset`] said before.
    pub fn new(path: &Path, offset: u64) -> Self {
        Self { path: path.to_owned(), offset, skipped: Skipped::default(), restarted: false }
    }

    /// The next events, oldest first. Empty when there is nothing new; call again until it is to catch
    /// up with a long journal.
    pub fn poll(&mut self) -> Result<Vec<Entry>, JournalError> {
        let mut file = File::open(&self.path).map_err(failed("open", &self.path))?;
        let length = file.metadata().map_err(failed("read", &self.path))?.len();
        if length < self.offset {
            // A resume after a power loss cut lines that had been seen here.
            self.offset = 0;
            self.restarted = true;
        }
        if self.offset == 0 {
            refuse_older(&self.path)?;
        }
        let mut entries = Vec::new();
        let mut portion = PORTION as u64;
        while entries.is_empty() && self.offset < length {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(self.offset)).map_err(failed("read", &self.path))?;
            (&file).take(portion).read_to_end(&mut bytes).map_err(failed("read", &self.path))?;
            let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
                if (bytes.len() as u64) < portion {
                    break;
                }
                // One line longer than the portion.
                portion *= 2;
                continue;
            };
            for line in bytes[..end].split(|byte| *byte == b'\n') {
                match Line::parse(line).and_then(|line| Ok((line, line.event()?))) {
                    Ok((line, event)) => entries.push(Entry { seq: line.seq, at: line.at, event }),
                    Err(cause) if cause.is_newer() => self.skipped.unknown += 1,
                    Err(_) => self.skipped.bad_lines += 1,
                }
            }
            self.offset += end as u64 + 1;
        }
        Ok(entries)
    }

    /// Everything before this byte was given out.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// Whether the journal became shorter and was read from its beginning again. Asking clears it.
    pub fn take_restarted(&mut self) -> bool {
        std::mem::take(&mut self.restarted)
    }
}
