//! The links of a group: in its header, or in a tree of symbol tables with a heap of names. Those of large groups of newer
//! files lie in a heap of another kind, which is not read.

use std::io::{Read, Seek};

use super::header::{LINK, LINK_INFO, Message, SYMBOL_TABLE};
use super::source::{DAMAGED, Fields, Source, Stop, text};

/// Heaps of names up to this are read at once.
const HEAP: u64 = 256 << 10;
/// Of a name that is read by itself.
const NAME: u64 = 256;

pub(super) enum Target {
    Object(u64),
    /// A path, or a file and a path.
    Elsewhere(String),
}

pub(super) struct Links {
    pub(super) named: Vec<(String, Target)>,
    /// Why some or all are missing.
    pub(super) not_read: Option<&'static str>,
}

/// At most so many links, sorted by their names.
pub(super) fn links<R: Read + Seek>(source: &mut Source<R>, messages: &[Message], most: usize) -> Result<Links, Stop> {
    let mut links = Links { named: Vec::new(), not_read: None };
    for message in messages {
        let read = match message.kind {
            _ if message.shared => Err(Stop::Not("its links are shared")),
            SYMBOL_TABLE => symbols(source, &message.body, most, &mut links.named),
            LINK if links.named.len() < most => link(source.address, &message.body).map(|one| links.named.extend(one)),
            LINK_INFO => dense(source, &message.body),
            _ => Ok(()),
        };
        match read {
            Err(Stop::Spent) => return Err(Stop::Spent),
            Err(Stop::Not(why)) => links.not_read = Some(why),
            Ok(()) => {}
        }
    }
    links.named.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(links)
}

fn dense<R: Read + Seek>(source: &mut Source<R>, body: &[u8]) -> Result<(), Stop> {
    let mut fields = Fields(body);
    fields.take(1)?;
    let flags = fields.byte()?;
    fields.take(if flags & 1 != 0 { 8 } else { 0 })?;
    let heap = fields.number(source.address)?;
    if source.is_nowhere(heap) { Ok(()) } else { Err(Stop::Not("its links are stored densely, in a fractal heap")) }
}

fn link(address: usize, body: &[u8]) -> Result<Option<(String, Target)>, Stop> {
    let mut fields = Fields(body);
    if fields.byte()? != 1 {
        return Err(Stop::Not("a link is of a kind that is not understood"));
    }
    let flags = fields.byte()?;
    let kind = if flags & 8 != 0 { fields.byte()? } else { 0 };
    fields.take(if flags & 4 != 0 { 8 } else { 0 })?;
    fields.take(usize::from(flags & 16 != 0))?;
    let length = fields.small(1 << (flags & 3))?;
    let name = text(fields.take(length)?);
    let target = match kind {
        0 => Target::Object(fields.number(address)?),
        1 => {
            let length = fields.small(2)?;
            Target::Elsewhere(text(fields.take(length)?))
        }
        64 => {
            let length = fields.small(2)?;
            let mut fields = Fields(fields.take(length)?);
            fields.take(1)?;
            let file = text(fields.ended_text()?);
            Target::Elsewhere(format!("{file}:{}", text(fields.0)))
        }
        _ => Target::Elsewhere("(of a user's own kind)".to_owned()),
    };
    Ok(Some((name, target)))
}

/// Names, by their place in a heap.
struct Heap {
    at: u64,
    size: u64,
    /// All of it, where it is small.
    bytes: Option<Vec<u8>>,
}

impl Heap {
    fn open<R: Read + Seek>(source: &mut Source<R>, address: u64) -> Result<Heap, Stop> {
        let head = source.piece(address, 8 + 2 * source.length as u64 + source.address as u64)?;
        let mut fields = Fields(&head);
        if fields.take(4)? != b"HEAP" {
            return Err(DAMAGED);
        }
        fields.take(4)?;
        let size = fields.number(source.length)?;
        fields.take(source.length)?;
        let at = fields.number(source.address)?;
        let bytes = if size <= HEAP { Some(source.piece(at, size)?) } else { None };
        Ok(Heap { at, size, bytes })
    }

    fn name<R: Read + Seek>(&self, source: &mut Source<R>, offset: u64) -> Result<String, Stop> {
        if offset >= self.size {
            return Err(DAMAGED);
        }
        match &self.bytes {
            Some(bytes) => Ok(text(usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).ok_or(DAMAGED)?)),
            None => {
                let at = self.at.checked_add(offset).ok_or(DAMAGED)?;
                Ok(text(&source.up_to(at, NAME.min(self.size - offset))?))
            }
        }
    }
}

fn symbols<R: Read + Seek>(
    source: &mut Source<R>,
    body: &[u8],
    most: usize,
    named: &mut Vec<(String, Target)>,
) -> Result<(), Stop> {
    let mut fields = Fields(body);
    let (tree, heap) = (fields.number(source.address)?, fields.number(source.address)?);
    let heap = Heap::open(source, heap)?;
    branch(source, &heap, tree, None, most, named)
}

/// One node of the tree; levels only fall, so that no tree is endless.
fn branch<R: Read + Seek>(
    source: &mut Source<R>,
    heap: &Heap,
    address: u64,
    above: Option<u8>,
    most: usize,
    named: &mut Vec<(String, Target)>,
) -> Result<(), Stop> {
    let begin = 8 + 2 * source.address as u64;
    let head = source.piece(address, begin)?;
    let mut fields = Fields(&head);
    if fields.take(4)? != b"TREE" || fields.byte()? != 0 {
        return Err(DAMAGED);
    }
    let (level, count) = (fields.byte()?, fields.number(2)?);
    if above.is_some_and(|above| level >= above) || level > 32 {
        return Err(DAMAGED);
    }
    let at = address.checked_add(begin).ok_or(DAMAGED)?;
    let entries = source.piece(at, count * (source.length + source.address) as u64)?;
    let mut fields = Fields(&entries);
    for _ in 0..count {
        if named.len() >= most {
            break;
        }
        fields.take(source.length)?;
        let child = fields.number(source.address)?;
        match level {
            0 => leaf(source, heap, child, most, named)?,
            _ => branch(source, heap, child, Some(level), most, named)?,
        }
    }
    Ok(())
}

fn leaf<R: Read + Seek>(
    source: &mut Source<R>,
    heap: &Heap,
    address: u64,
    most: usize,
    named: &mut Vec<(String, Target)>,
) -> Result<(), Stop> {
    let head = source.piece(address, 8)?;
    let mut fields = Fields(&head);
    if fields.take(4)? != b"SNOD" {
        return Err(DAMAGED);
    }
    fields.take(2)?;
    let count = fields.number(2)?;
    let at = address.checked_add(8).ok_or(DAMAGED)?;
    let entries = source.piece(at, count * (2 * source.address as u64 + 24))?;
    let mut fields = Fields(&entries);
    for _ in 0..count {
        if named.len() >= most {
            break;
        }
        let (name, object) = (fields.number(source.address)?, fields.number(source.address)?);
        let cached = fields.number(4)?;
        fields.take(4)?;
        let mut scratch = Fields(fields.take(16)?);
        let name = heap.name(source, name)?;
        let target = match cached {
            2 => Target::Elsewhere(heap.name(source, scratch.number(4)?)?),
            _ => Target::Object(object),
        };
        named.push((name, target));
    }
    Ok(())
}
