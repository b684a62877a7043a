//! Headers of objects: messages, in one block and those that it leads on to. Knows the frames of messages, not what is in
//! them.

use std::io::{Read, Seek};

use super::source::{DAMAGED, Fields, Source, Stop};

/// Blocks of one header; real ones have a few.
const BLOCKS: usize = 64;

pub(super) const DATASPACE: u16 = 0x01;
pub(super) const LINK_INFO: u16 = 0x02;
pub(super) const DATATYPE: u16 = 0x03;
pub(super) const LINK: u16 = 0x06;
pub(super) const EXTERNAL: u16 = 0x07;
pub(super) const LAYOUT: u16 = 0x08;
pub(super) const GROUP_INFO: u16 = 0x0a;
pub(super) const FILTERS: u16 = 0x0b;
const CONTINUATION: u16 = 0x10;
pub(super) const SYMBOL_TABLE: u16 = 0x11;

/// What an object says of itself, without attributes and times.
pub(super) struct Message {
    pub(super) kind: u16,
    /// It stands elsewhere, and this says where.
    pub(super) shared: bool,
    pub(super) body: Vec<u8>,
}

/// How messages are framed.
struct Frame {
    new: bool,
    /// Messages carry the order of their making.
    ordered: bool,
}

pub(super) fn read<R: Read + Seek>(source: &mut Source<R>, address: u64) -> Result<Vec<Message>, Stop> {
    let begin = source.up_to(address, 64)?;
    let (frame, first_at, length) = if begin.starts_with(b"OHDR") { new(&begin)? } else { old(&begin)? };
    let mut messages = Vec::new();
    let mut blocks = vec![(address.checked_add(first_at).ok_or(DAMAGED)?, length)];
    let mut read = 0;
    while let Some((at, length)) = blocks.pop() {
        read += 1;
        if read > BLOCKS {
            return Err(Stop::Not("its header has too many parts"));
        }
        let block = source.piece(at, length)?;
        let mut rest = &block[..];
        // Later blocks of the new kind begin with a mark; all of that kind end with a checksum, the first beyond its length.
        if frame.new && read > 1 {
            let inside = block.len().checked_sub(4).filter(|_| block.starts_with(b"OCHK")).ok_or(DAMAGED)?;
            rest = block.get(4..inside).ok_or(DAMAGED)?;
        }
        frame.messages(rest, |kind, flags, body| {
            if kind == CONTINUATION {
                let mut fields = Fields(body);
                blocks.push((fields.number(source.address)?, fields.number(source.length)?));
            } else if matches!(
                kind,
                DATASPACE | LINK_INFO | DATATYPE | LINK | EXTERNAL | LAYOUT | GROUP_INFO | FILTERS | SYMBOL_TABLE
            ) {
                messages.push(Message { kind, shared: flags & 2 != 0, body: body.to_vec() });
            }
            Ok(())
        })?;
    }
    Ok(messages)
}

fn old(begin: &[u8]) -> Result<(Frame, u64, u64), Stop> {
    let mut fields = Fields(begin);
    if fields.byte()? != 1 {
        return Err(Stop::Not("its header is of a kind that is not understood"));
    }
    // Behind: reserved, messages, references, bytes of messages, and what fills up to eight.
    fields.take(7)?;
    Ok((Frame { new: false, ordered: false }, 16, fields.number(4)?))
}

fn new(begin: &[u8]) -> Result<(Frame, u64, u64), Stop> {
    let mut fields = Fields(begin);
    fields.take(4)?;
    if fields.byte()? != 2 {
        return Err(Stop::Not("its header is of a kind that is not understood"));
    }
    let flags = fields.byte()?;
    // Times, and how many attributes are stored how.
    fields.take(if flags & 0x20 != 0 { 16 } else { 0 })?;
    fields.take(if flags & 0x10 != 0 { 4 } else { 0 })?;
    let length = fields.number(1 << (flags & 3))?;
    Ok((Frame { new: true, ordered: flags & 4 != 0 }, (begin.len() - fields.0.len()) as u64, length))
}

impl Frame {
    fn messages(&self, block: &[u8], mut visit: impl FnMut(u16, u8, &[u8]) -> Result<(), Stop>) -> Result<(), Stop> {
        let mut fields = Fields(block);
        let head = if self.new { 4 + 2 * usize::from(self.ordered) } else { 8 };
        // What is shorter than a message is a gap.
        while fields.0.len() >= head {
            let (kind, length, flags) = if self.new {
                (u16::from(fields.byte()?), fields.small(2)?, fields.byte()?)
            } else {
                (fields.number(2)? as u16, fields.small(2)?, fields.byte()?)
            };
            fields.take(if self.new { head - 4 } else { 3 })?;
            visit(kind, flags, fields.take(length)?)?;
        }
        Ok(())
    }
}
