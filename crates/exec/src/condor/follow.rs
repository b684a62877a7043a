//! Follows the event log of a run: what was appended since the last look, entry by entry.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tulpar_core::htcondor::log::{Entry, LogReader};

pub(super) struct Log {
    path: PathBuf,
    /// Kept open: the schedd appends to the same file all the time.
    file: Option<File>,
    offset: u64,
    reader: LogReader,
}

impl Log {
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, offset: 0, reader: LogReader::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads from its beginning again.
    pub(super) fn rewind(&mut self) {
        *self = Self::at(&self.path.clone());
    }

    /// Complete entries that are new. What cannot be read is passed over: the queue is asked when the log is silent.
    pub(super) fn news(&mut self) -> io::Result<Vec<Entry>> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        let file = self.file.as_mut().expect("just opened");
        if file.metadata()?.len() <= self.offset {
            return Ok(Vec::new());
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        self.offset += file.read_to_end(&mut bytes)? as u64;
        Ok(self.reader.push(&bytes).into_iter().filter_map(Result::ok).collect())
    }
}
