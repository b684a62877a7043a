//! Bounded reads of an HDF5 file, and fields of what was read. Knows addresses and sizes, no messages.

use std::io::{Read, Seek, SeekFrom};

/// A read costs at least so much of what may be read, so that many small ones end too.
const LEAST: u64 = 512;
/// Longer names are cut.
const NAME: usize = 255;

/// Why something is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// No more may be read of this file.
    Spent,
    /// It is not what it should be, or of a kind that is not understood.
    Not(&'static str),
}

pub(super) const DAMAGED: Stop = Stop::Not("it is damaged");

pub(super) struct Source<R> {
    file: R,
    size: u64,
    left: u64,
    /// What addresses count from.
    pub(super) base: u64,
    /// Bytes of an address and of a length.
    pub(super) address: usize,
    pub(super) length: usize,
}

impl<R: Read + Seek> Source<R> {
    pub(super) fn new(mut file: R, left: u64) -> Option<Source<R>> {
        let size = file.seek(SeekFrom::End(0)).ok()?;
        Some(Source { file, size, left, base: 0, address: 8, length: 8 })
    }

    /// All bytes of a part of the file.
    pub(super) fn piece(&mut self, address: u64, length: u64) -> Result<Vec<u8>, Stop> {
        let bytes = self.up_to(address, length)?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(Stop::Not("it lies beyond the end of the file")) }
    }

    /// As many of the bytes as the file has.
    pub(super) fn up_to(&mut self, address: u64, length: u64) -> Result<Vec<u8>, Stop> {
        let at = self.base.checked_add(address).filter(|at| *at < self.size);
        let at = at.ok_or(Stop::Not("it lies beyond the end of the file"))?;
        let length = length.min(self.size - at);
        self.left = self.left.checked_sub(length.max(LEAST)).ok_or(Stop::Spent)?;
        let mut bytes = Vec::new();
        let cannot = |_| Stop::Not("it cannot be read");
        self.file.seek(SeekFrom::Start(at)).map_err(cannot)?;
        (&mut self.file).take(length).read_to_end(&mut bytes).map_err(cannot)?;
        Ok(bytes)
    }

    /// All ones stand for nowhere.
    pub(super) fn is_nowhere(&self, address: u64) -> bool {
        address == u64::MAX >> (64 - 8 * self.address)
    }
}

/// Takes fields one after the other.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Stop> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(DAMAGED)?;
        self.0 = rest;
        Ok(taken)
    }

    /// An integer of up to eight bytes.
    pub(super) fn number(&mut self, bytes: usize) -> Result<u64, Stop> {
        let mut all = [0; 8];
        all.get_mut(..bytes).ok_or(DAMAGED)?.copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(all))
    }

    pub(super) fn byte(&mut self) -> Result<u8, Stop> {
        Ok(self.take(1)?[0])
    }

    /// For what counts things in memory.
    pub(super) fn small(&mut self, bytes: usize) -> Result<usize, Stop> {
        usize::try_from(self.number(bytes)?).map_err(|_| DAMAGED)
    }

    /// Text up to a zero, which is taken too.
    pub(super) fn ended_text(&mut self) -> Result<&'a [u8], Stop> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(DAMAGED)?;
        let text = self.take(end)?;
        self.take(1)?;
        Ok(text)
    }
}

/// A name as it is shown: up to a zero, at most so long.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    if end > NAME {
        return format!("{}…", String::from_utf8_lossy(&bytes[..NAME]));
    }
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
