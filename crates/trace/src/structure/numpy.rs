//! Arrays in NumPy's own format, alone (NPY) and as members of a ZIP archive (NPZ). Reads the headers of arrays and the
//! directory of an archive, not the values.

use std::io::{BufReader, Read, Seek, SeekFrom};

use flate2::bufread::DeflateDecoder;

use super::{Found, Kind, Limits, Object, volume};

/// Headers are shorter, by far.
const HEADER: u64 = 64 << 10;
/// The end of an archive: 22 bytes and a comment.
const END: u64 = 22 + 65_535;

/// The array of an NPY file.
pub fn array(source: impl Read) -> Found {
    match header(source) {
        Some(object) => Found { objects: vec![object], ..Found::default() },
        None => Found::nothing("it is no array of NumPy"),
    }
}

/// Type and shape from the text before the values.
fn header(mut source: impl Read) -> Option<Object> {
    let mut head = [0; 10];
    source.read_exact(&mut head).ok()?;
    let (b"\x93NUMPY", version) = (head.get(..6)?, head[6]) else { return None };
    let length = match version {
        1 => u64::from(u16::from_le_bytes([head[8], head[9]])),
        2 | 3 => {
            let mut high = [0; 2];
            source.read_exact(&mut high).ok()?;
            u64::from(u32::from_le_bytes([head[8], head[9], high[0], high[1]]))
        }
        _ => return None,
    };
    if length > HEADER {
        return None;
    }
    let mut text = Vec::new();
    source.take(length).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let shape = text.split_once("'shape':")?.1.trim_start().strip_prefix('(')?.split_once(')')?.0;
    let numbers =
        shape.split(',').map(|number| number.trim().trim_end_matches('L')).filter(|number| !number.is_empty());
    let shape: Vec<u64> = numbers.map(str::parse).collect::<Result<_, _>>().ok()?;
    let descr = text.split_once("'descr':")?.1.trim_start();
    let (data_type, each) = match descr.strip_prefix('\'').and_then(|rest| rest.split_once('\'')) {
        Some((code, _)) => named(code),
        None => ("fields".to_owned(), None),
    };
    let bytes = each.and_then(|each| volume(&shape, each));
    Some(Object { kind: Kind::Array, data_type: Some(data_type), shape: Some(shape), bytes, ..Object::default() })
}

/// `<f4` → `float32` of four bytes.
fn named(code: &str) -> (String, Option<u64>) {
    let order = code.chars().next().filter(|order| "<>|=".contains(*order));
    let rest = &code[order.map_or(0, char::len_utf8)..];
    let Some(letter) = rest.chars().next() else { return (code.to_owned(), None) };
    let Ok(size) = rest[letter.len_utf8()..].parse::<u64>() else { return (code.to_owned(), None) };
    let bits = size.saturating_mul(8);
    let (name, bytes) = match letter {
        'f' => (format!("float{bits}"), Some(size)),
        'i' => (format!("int{bits}"), Some(size)),
        'u' => (format!("uint{bits}"), Some(size)),
        'c' => (format!("complex{bits}"), Some(size)),
        'b' => ("bool".to_owned(), Some(size)),
        'S' | 'a' => (format!("string of {size}"), Some(size)),
        'U' => (format!("text of {size}"), size.checked_mul(4)),
        'V' => (format!("opaque of {size}"), Some(size)),
        // Pickled: its size in the file is anyone's guess.
        'O' => ("object".to_owned(), None),
        _ => (code.to_owned(), None),
    };
    let foreign = order == Some('>') && size > 1;
    (if foreign { format!("{name} big-endian") } else { name }, bytes)
}

/// A member of an archive.
struct Member {
    name: String,
    method: u16,
    at: u64,
}

/// The arrays of an NPZ file.
pub fn archive(mut source: impl Read + Seek, limits: Limits) -> Found {
    let Some((members, more)) = directory(&mut source, limits) else {
        return Found::nothing("it is no archive, or its directory is damaged");
    };
    let mut found = Found::default();
    if more {
        found.not_read.push(format!("arrays beyond the first {}", members.len()));
    }
    for member in members {
        let name = member.name.strip_suffix(".npy").unwrap_or(&member.name).to_owned();
        let object = array_of(&mut source, &member);
        let not_read =
            object.is_none().then(|| "it is no array of NumPy, or compressed in a way of its own".to_owned());
        let object = object.unwrap_or(Object { kind: Kind::Array, ..Object::default() });
        found.objects.push(Object { name, not_read, ..object });
    }
    found
}

fn array_of(source: &mut (impl Read + Seek), member: &Member) -> Option<Object> {
    source.seek(SeekFrom::Start(member.at)).ok()?;
    let mut head = [0; 30];
    source.read_exact(&mut head).ok()?;
    if !head.starts_with(b"PK\x03\x04") {
        return None;
    }
    let skipped = u64::from(u16_at(&head, 26)?) + u64::from(u16_at(&head, 28)?);
    source.seek_relative(i64::try_from(skipped).ok()?).ok()?;
    let array = source.take(HEADER);
    let mut object = match member.method {
        0 => header(array)?,
        8 => header(DeflateDecoder::new(BufReader::with_capacity(4096, array)))?,
        _ => return None,
    };
    if member.method == 8 {
        object.filters.push("deflate".to_owned());
    }
    Some(object)
}

/// Members as the directory at the end lists them, and whether there are more.
fn directory(source: &mut (impl Read + Seek), limits: Limits) -> Option<(Vec<Member>, bool)> {
    let size = source.seek(SeekFrom::End(0)).ok()?;
    let tail_at = size.saturating_sub(END);
    let tail = piece(source, tail_at, size - tail_at)?;
    let end = tail.windows(4).rposition(|four| four == b"PK\x05\x06")?;
    let record = tail.get(end..)?;
    let mut count = u64::from(u16_at(record, 10)?);
    let (mut length, mut at) = (u64::from(u32_at(record, 12)?), u64::from(u32_at(record, 16)?));
    if count == 0xffff || length == 0xffff_ffff || at == 0xffff_ffff {
        // A large archive says it again, before: where that is stands in the 20 bytes before the end.
        let locator = tail.get(end.checked_sub(20)?..end)?;
        let large = piece(source, u64_at(locator, 8).filter(|_| locator.starts_with(b"PK\x06\x07"))?, 56)?;
        if !large.starts_with(b"PK\x06\x06") {
            return None;
        }
        (count, length, at) = (u64_at(&large, 32)?, u64_at(&large, 40)?, u64_at(&large, 48)?);
    }
    let listing = piece(source, at, length.min(limits.bytes).min(size))?;
    let (mut members, mut rest) = (Vec::new(), &listing[..]);
    while rest.starts_with(b"PK\x01\x02") && members.len() < limits.objects {
        let [name, extra, comment] = [28, 30, 32].map(|at| u16_at(rest, at).map(usize::from));
        let (name, extra, comment) = (name?, extra?, comment?);
        let Some(text) = rest.get(46..46 + name) else { break };
        let mut at = u64::from(u32_at(rest, 42)?);
        if at == 0xffff_ffff {
            at = large_offset(rest.get(46 + name..46 + name + extra)?, rest)?;
        }
        members.push(Member { name: String::from_utf8_lossy(text).into_owned(), method: u16_at(rest, 10)?, at });
        rest = rest.get(46 + name + extra + comment..).unwrap_or_default();
    }
    let more = count > members.len() as u64;
    Some((members, more))
}

/// The place of a member beyond 4 GB: after those of its sizes that are as large.
fn large_offset(mut extra: &[u8], entry: &[u8]) -> Option<u64> {
    loop {
        let (kind, length) = (u16_at(extra, 0)?, usize::from(u16_at(extra, 2)?));
        let body = extra.get(4..4 + length)?;
        if kind == 1 {
            let before = [20, 24].iter().filter(|at| u32_at(entry, **at) == Some(0xffff_ffff)).count();
            return u64_at(body, 8 * before);
        }
        extra = extra.get(4 + length..)?;
    }
}

/// All bytes of a part, or none. The caller has bounded its length.
fn piece(source: &mut (impl Read + Seek), at: u64, length: u64) -> Option<Vec<u8>> {
    source.seek(SeekFrom::Start(at)).ok()?;
    let mut bytes = Vec::new();
    source.take(length).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == length).then_some(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
