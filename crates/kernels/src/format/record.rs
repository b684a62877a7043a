//! TFRecord: length, its checksum, data, its checksum. Reads through one buffer, as `tf.data` does: requests of the size
//! of the buffer, a short one at the end, and one that finds nothing.

use std::io::{self, Write};
use std::path::Path;

use super::checksum::masked;
use crate::error::Error;
use crate::meter::{Probe, Seen};

pub(crate) fn write(data: &[u8], to: &mut impl Write) -> io::Result<()> {
    let length = (data.len() as u64).to_le_bytes();
    to.write_all(&length)?;
    to.write_all(&masked(&length).to_le_bytes())?;
    to.write_all(data)?;
    to.write_all(&masked(data).to_le_bytes())
}

/// Reads one file from its begin to its end.
pub(crate) struct Records {
    file: Seen,
    buffer: Vec<u8>,
    /// What of the buffer is filled, and how far it was used.
    filled: usize,
    used: usize,
    /// Where in the file the next request begins.
    offset: u64,
    ended: bool,
}

impl Records {
    /// `buffer` is reused from file to file; its length is the size of the requests.
    pub(crate) fn new(file: Seen, buffer: Vec<u8>) -> Records {
        Records { file, buffer, filled: 0, used: 0, offset: 0, ended: false }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives file and buffer back.
    pub(crate) fn close(self) -> (Seen, Vec<u8>) {
        (self.file, self.buffer)
    }

    /// Replaces `record` by the next record; `false` at the end of the file.
    pub(crate) fn next(&mut self, probe: &mut Probe, record: &mut Vec<u8>) -> Result<bool, Error> {
        let mut head = [0; 12];
        match self.take(probe, &mut head)? {
            0 => return Ok(false),
            12 => {}
            _ => return Err(self.damaged("it ends in the middle of a record")),
        }
        let (length, check) = head.split_at(8);
        if masked(length).to_le_bytes() != check {
            return Err(self.damaged("the length of a record has a wrong checksum"));
        }
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes were split off"));
        // The checksum was right, so the length is what was written, and a record fits memory.
        record.resize(length as usize, 0);
        let mut check = [0; 4];
        if self.take(probe, record)? != record.len() || self.take(probe, &mut check)? != 4 {
            return Err(self.damaged("it ends in the middle of a record"));
        }
        if masked(record).to_le_bytes() != check {
            return Err(self.damaged("a record has a wrong checksum"));
        }
        Ok(true)
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::damaged(self.file.path(), what)
    }

    /// How much could be taken.
    fn take(&mut self, probe: &mut Probe, into: &mut [u8]) -> Result<usize, Error> {
        let mut taken = 0;
        while taken < into.len() {
            if self.used == self.filled && !self.fill(probe)? {
                break;
            }
            let many = (self.filled - self.used).min(into.len() - taken);
            into[taken..taken + many].copy_from_slice(&self.buffer[self.used..self.used + many]);
            self.used += many;
            taken += many;
        }
        Ok(taken)
    }

    fn fill(&mut self, probe: &mut Probe) -> Result<bool, Error> {
        (self.filled, self.used) = (0, 0);
        while self.filled < self.buffer.len() && !self.ended {
            let many = probe.read_at(&self.file, &mut self.buffer[self.filled..], self.offset)?;
            self.ended = many == 0;
            self.filled += many;
            self.offset += many as u64;
        }
        Ok(self.filled > 0)
    }
}
