//! Whole lines of a file that grows, from an offset on.

use crate::rows::signed;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

pub(crate) struct Lines {
    reader: BufReader<File>,
    buffer: Vec<u8>,
    /// Of the end of the last line given out.
    pub(crate) offset: i64,
    pub(crate) count: u64,
}

impl Lines {
    pub(crate) fn open(path: &Path, offset: i64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset.unsigned_abs()))?;
        Ok(Self { reader: BufReader::with_capacity(1 << 20, file), buffer: Vec::new(), offset, count: 0 })
    }

    /// As [`Lines::open`]; nothing when there is no such file.
    pub(crate) fn open_if_there(path: &Path, offset: i64) -> io::Result<Option<Self>> {
        match Self::open(path, offset) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.clear();
        let read = self.reader.read_until(b'\n', &mut self.buffer)?;
        if self.buffer.pop() != Some(b'\n') {
            return Ok(None);
        }
        self.offset += signed(read as u64);
        self.count += 1;
        Ok(Some(&self.buffer))
    }
}

/// Whether a whole line begins there.
pub(crate) fn has_line(path: &Path, offset: i64) -> io::Result<bool> {
    Ok(Lines::open(path, offset)?.next()?.is_some())
}

/// The last bytes before an offset: enough to tell this file from another of the same name, because they hold a
/// checksum (journal) or a time (samples).
pub(crate) fn tail(path: &Path, offset: i64) -> io::Result<String> {
    const LENGTH: u64 = 200;
    let offset = offset.unsigned_abs();
    if offset == 0 {
        return Ok(String::new());
    }
    let start = offset.saturating_sub(LENGTH);
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(offset - start).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
