//! Records: `length, checksum, data, checksum`. Also the framing of TFRecord data files. Does not look into the data.

use std::io::{self, Read};

use super::Error;
use super::checksum::masked;

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    Record(&'a [u8]),
    End,
    /// The file ends inside a record, as the file of a living writer does.
    Torn,
}

/// Reads records one after the other.
pub struct Records<R> {
    source: R,
    offset: u64,
    data: Vec<u8>,
}

impl<R: Read> Records<R> {
    /// `source` stands at `offset`, the first byte of a record.
    pub fn new(source: R, offset: u64) -> Records<R> {
        Records { source, offset, data: Vec::new() }
    }

    /// The first byte of the record that is read next.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn read(&mut self) -> Result<Next<'_>, Error> {
        let damaged = Error::Damaged { offset: self.offset };
        let mut head = [0; 12];
        match read_up_to(&mut self.source, &mut head)? {
            0 => return Ok(Next::End),
            12 => {}
            _ => return Ok(Next::Torn),
        }
        let (length, check) = head.split_at(8);
        if masked(length) != u32::from_le_bytes(check.try_into().expect("four bytes")) {
            return Err(damaged);
        }
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
        let Some(end) = length.checked_add(16).and_then(|size| self.offset.checked_add(size)) else {
            return Err(damaged);
        };
        // Grows with what is really there, whatever the length claims.
        self.data.clear();
        (&mut self.source).take(length).read_to_end(&mut self.data)?;
        let mut check = [0; 4];
        if self.data.len() as u64 != length || read_up_to(&mut self.source, &mut check)? != 4 {
            return Ok(Next::Torn);
        }
        if masked(&self.data) != u32::from_le_bytes(check) {
            return Err(damaged);
        }
        self.offset = end;
        Ok(Next::Record(&self.data))
    }
}

/// Fills the buffer as far as the source goes.
fn read_up_to(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
