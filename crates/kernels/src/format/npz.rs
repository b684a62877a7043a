//! NPZ: a ZIP archive of NPY arrays, not compressed, as `numpy.savez` writes it. Reads an archive as `numpy.load` does:
//! the end of the directory, what would be there if it were large, the directory, then each array.

use std::io::{self, Write};

use crate::error::Error;
use crate::meter::{Probe, Seen};

/// An array of one kind, little-endian.
pub(crate) struct Array<'a> {
    pub(crate) name: &'a str,
    /// As NumPy says it: `<f4`, `<i8`, `|u1`.
    pub(crate) kind: &'a str,
    pub(crate) shape: &'a [u64],
    pub(crate) data: &'a [u8],
}

/// What goes before the data of an array; a multiple of 64 bytes.
fn npy_header(array: &Array) -> Vec<u8> {
    let shape: String = array.shape.iter().map(|length| format!("{length}, ")).collect();
    let shape = if array.shape.len() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", array.kind);
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.extend(std::iter::repeat_n(' ', length - 1 - text.len()));
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend_from_slice(&(length as u16).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header
}

/// The date of every member: 1980-01-01, so that the same data give the same bytes.
const DATE: [u8; 4] = [0, 0, 0x21, 0];
const LOCAL: [u8; 4] = *b"PK\x03\x04";
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const END: [u8; 4] = *b"PK\x05\x06";
const LOCAL_BYTES: u64 = 30;
const END_BYTES: u64 = 22;
/// What would say where the end of a large archive lies.
const LOCATOR_BYTES: u64 = 20;

pub(crate) fn write(arrays: &[Array], to: &mut impl Write) -> io::Result<()> {
    let (mut directory, mut offset) = (Vec::new(), 0_u32);
    let large = || io::Error::new(io::ErrorKind::InvalidInput, "an archive of signals must be smaller than 4 GB");
    for array in arrays {
        let header = npy_header(array);
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header);
        crc.update(array.data);
        let size = u32::try_from(header.len() + array.data.len()).map_err(|_| large())?;
        let name = format!("{}.npy", array.name);
        let mut entry = Vec::new();
        entry.extend_from_slice(&[20, 0, 0, 0, 0, 0]); // Version 2.0, no flags, not compressed.
        entry.extend_from_slice(&DATE);
        entry.extend_from_slice(&crc.finalize().to_le_bytes());
        entry.extend_from_slice(&size.to_le_bytes());
        entry.extend_from_slice(&size.to_le_bytes());
        entry.extend_from_slice(&(name.len() as u16).to_le_bytes());
        entry.extend_from_slice(&[0; 2]);
        to.write_all(&LOCAL)?;
        to.write_all(&entry)?;
        to.write_all(name.as_bytes())?;
        to.write_all(&header)?;
        to.write_all(array.data)?;
        directory.extend_from_slice(&CENTRAL);
        directory.extend_from_slice(&[20, 3]); // Made on Unix.
        directory.extend_from_slice(&entry);
        directory.extend_from_slice(&[0; 6]);
        directory.extend_from_slice(&(0o600_u32 << 16).to_le_bytes());
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
        let whole = size.checked_add(LOCAL_BYTES as u32 + name.len() as u32);
        offset = whole.and_then(|whole| offset.checked_add(whole)).ok_or_else(large)?;
    }
    to.write_all(&directory)?;
    to.write_all(&END)?;
    to.write_all(&[0; 4])?;
    let many = (arrays.len() as u16).to_le_bytes();
    to.write_all(&many)?;
    to.write_all(&many)?;
    to.write_all(&(directory.len() as u32).to_le_bytes())?;
    to.write_all(&offset.to_le_bytes())?;
    to.write_all(&[0; 2])
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)))
}

/// Reads every array of an archive; how many bytes of data they have. `request` is the largest read.
pub(crate) fn read(probe: &mut Probe, file: &Seen, request: usize, buffer: &mut Vec<u8>) -> Result<u64, Error> {
    let damaged = |what| Error::damaged(file.path(), what);
    let size = probe.size(file)?;
    if size < END_BYTES + LOCATOR_BYTES {
        return Err(damaged("it is too short"));
    }
    // The head of an archive is looked at to see that it is one.
    probe.fill(file, buffer, 0, 4)?;
    probe.fill(file, buffer, size - END_BYTES, END_BYTES as usize)?;
    let (Some(many), Some(length), Some(start)) = (u16_at(buffer, 10), u32_at(buffer, 12), u32_at(buffer, 16)) else {
        return Err(damaged("it has no end of directory"));
    };
    probe.fill(file, buffer, size - END_BYTES - LOCATOR_BYTES, (END_BYTES + LOCATOR_BYTES) as usize)?;
    probe.fill(file, buffer, start, length as usize)?;
    let directory = std::mem::take(buffer);
    let (mut at, mut bytes) = (0, 0);
    for _ in 0..many {
        let entry = (|| {
            Some((
                u32_at(&directory, at + 16)?,
                u32_at(&directory, at + 24)?,
                u16_at(&directory, at + 28)?,
                u32_at(&directory, at + 42)?,
            ))
        })();
        let Some((crc, stored, name, offset)) = entry else { return Err(damaged("its directory is cut off")) };
        at += 46 + name as usize;
        // The head of the member and that of the array come with one request, as from a buffered file.
        let head = LOCAL_BYTES + name;
        probe.fill(file, buffer, offset, (head + 10) as usize)?;
        let header = 10 + u16_at(buffer, (head + 8) as usize).unwrap_or(0);
        let mut checked = crc32fast::Hasher::new();
        checked.update(&buffer[head as usize..]);
        let mut done = 10;
        while done < stored {
            // First what is left of the head of the array, then its data in large pieces.
            let want = if done < header { header - done } else { (stored - done).min(request as u64) };
            probe.fill(file, buffer, offset + head + done, want as usize)?;
            checked.update(buffer);
            done += want;
        }
        if checked.finalize() != crc as u32 {
            return Err(damaged("an array has a wrong checksum"));
        }
        bytes += stored.saturating_sub(header);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Array, npy_header};

    #[test]
    fn the_header_of_an_array_is_that_of_numpy() {
        let array = |shape| Array { name: "signal", kind: "<f4", shape, data: &[] };
        let header = npy_header(&array(&[3]));
        assert_eq!(header.len(), 128);
        assert_eq!(&header[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert!(header[10..].starts_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }   "));
        assert_eq!(header.last(), Some(&b'\n'));
        let header = npy_header(&array(&[3, 14]));
        assert!(header[10..].starts_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 14), }   "));
    }
}
