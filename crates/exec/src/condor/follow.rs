//! Follows the event log of a run: what was appended since the last look, entry by entry.

use crate::condor::text::log::{Entry, LogReader};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// So much is held at a time: the log of a million jobs has gigabytes.
const PIECE: u64 = 4 << 20;

pub(super) struct Log {
    path: PathBuf,
    /// Kept open: the schedd appends to the same file all the time.
    file: Option<File>,
    piece: Vec<u8>,
    reader: LogReader,
}

impl Log {
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, piece: Vec::new(), reader: LogReader::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads from its beginning again.
    pub(super) fn rewind(&mut self) {
        *self = Self::at(&self.path.clone());
    }

    /// Complete entries of the next piece that is new; nothing where all was read. What cannot be read is passed over: the
    /// queue is asked when the log is silent.
    pub(super) fn news(&mut self) -> io::Result<Option<Vec<Entry>>> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let file = self.file.as_mut().expect("just opened");
        self.piece.clear();
        // Nobody else moves the place where it is read.
        file.take(PIECE).read_to_end(&mut self.piece)?;
        if self.piece.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.reader.push(&self.piece).into_iter().filter_map(Result::ok).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_long_log_is_read_in_pieces_and_every_entry_comes_once() {
        let path = std::env::temp_dir().join(format!("tulpar-long-log-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut log = Log::at(&path);
        assert_eq!(log.news().unwrap(), None, "not there yet");
        let entries = 2 * PIECE as usize / 60;
        let text: String = (0..entries)
            .map(|number| {
                format!("001 ({number}.000.000) 2026-11-18 06:06:53 Job executing on host: <1.2.3.4:5>\n...\n")
            })
            .collect();
        let mut file = File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut seen = Vec::new();
        let mut pieces = 0;
        while let Some(found) = log.news().unwrap() {
            pieces += 1;
            seen.extend(found.iter().map(|entry| entry.cluster));
        }
        assert_eq!(pieces, text.len().div_ceil(PIECE as usize));
        assert!(seen.iter().copied().eq(0..entries as i64), "{} of {entries}", seen.len());
        file.write_all(
            b"005 (7.000.000) 2026-11-18 06:06:54 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n",
        )
        .unwrap();
        assert_eq!(log.news().unwrap().unwrap().len(), 1, "what is written later");
        std::fs::remove_file(&path).unwrap();
    }
}
