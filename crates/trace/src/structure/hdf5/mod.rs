//! The tree of an HDF5 file: groups, datasets, links. Understands what h5py and the library write by default, older and
//! newest files: superblocks 0 to 3, headers 1 and 2, symbol tables, links in headers. Attributes and data are not read;
//! links of large groups of newer files, and messages that files share, are said not to be.

mod dataset;
mod datatype;
mod group;
mod header;
mod source;

use std::collections::HashMap;
use std::io::{Read, Seek};

use super::{Found, Kind, Limits, Object, volume};
use group::Target;
use header::{DATASPACE, DATATYPE, EXTERNAL, FILTERS, GROUP_INFO, LAYOUT, LINK, LINK_INFO, Message, SYMBOL_TABLE};
use source::{DAMAGED, Fields, Source, Stop};

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Looks at everything that the limits allow.
pub fn read(file: impl Read + Seek, limits: Limits) -> Found {
    let Some(mut source) = Source::new(file, limits.bytes) else { return Found::nothing("it cannot be read") };
    let root = match superblock(&mut source) {
        Ok(root) => root,
        Err(Stop::Not(why)) => return Found::nothing(why),
        Err(Stop::Spent) => return Found::nothing("it is no HDF5 file"),
    };
    let mut walk = Walk { source, limits, found: Found::default(), known: HashMap::new() };
    if walk.object("/", root, 0) == Err(Stop::Spent) {
        let seen = walk.found.objects.len();
        walk.found.not_read.push(format!("what comes after the first {seen} objects"));
    }
    walk.found
}

/// Finds the superblock, sets what addresses are, and gives that of the root.
fn superblock<R: Read + Seek>(source: &mut Source<R>) -> Result<u64, Stop> {
    // A user's own data may lie before it, in a block of a power of two.
    let places = std::iter::once(0).chain((9..=20).map(|bits| 1u64 << bits));
    for at in places {
        let Ok(bytes) = source.up_to(at, 128) else { break };
        if !bytes.starts_with(SIGNATURE) {
            continue;
        }
        source.base = at;
        let mut fields = Fields(&bytes[8..]);
        let version = fields.byte()?;
        fields.take(if version < 2 { 4 } else { 0 })?;
        (source.address, source.length) = (fields.small(1)?, fields.small(1)?);
        if ![source.address, source.length].iter().all(|size| matches!(size, 2 | 4 | 8)) {
            return Err(Stop::Not("its addresses are of a size that is not understood"));
        }
        return match version {
            0 | 1 => {
                // Sizes of nodes, and addresses of the begin, of free space, the end, and of a driver; then the root's entry.
                fields.take(1 + 8 + if version == 1 { 4 } else { 0 })?;
                fields.take(5 * source.address)?;
                fields.number(source.address)
            }
            2 | 3 => {
                fields.take(1 + 3 * source.address)?;
                fields.number(source.address)
            }
            _ => Err(Stop::Not("it is of a version of HDF5 that is not understood")),
        };
    }
    Err(Stop::Not("it is no HDF5 file"))
}

struct Walk<R> {
    source: Source<R>,
    limits: Limits,
    found: Found,
    /// Objects by address, so that what is linked twice is shown once, and circles end.
    known: HashMap<u64, String>,
}

impl<R: Read + Seek> Walk<R> {
    /// Adds an object and what lies in it. Fails only where no more may be looked at.
    fn object(&mut self, name: &str, address: u64, depth: usize) -> Result<(), Stop> {
        if let Some(known) = self.known.get(&address) {
            let target = Some(known.clone());
            return self.push(Object { name: name.to_owned(), kind: Kind::Link, target, ..Object::default() });
        }
        self.known.insert(address, name.to_owned());
        let object = Object { name: name.to_owned(), ..Object::default() };
        let messages = match header::read(&mut self.source, address) {
            Ok(messages) => messages,
            Err(Stop::Spent) => return Err(Stop::Spent),
            Err(Stop::Not(why)) => {
                return self.push(Object { kind: Kind::Unknown, not_read: Some(why.to_owned()), ..object });
            }
        };
        let has = |kinds: &[u16]| messages.iter().any(|message| kinds.contains(&message.kind));
        if has(&[LAYOUT, DATASPACE]) {
            let object = self.dataset(object, &messages)?;
            return self.push(object);
        }
        if has(&[SYMBOL_TABLE, LINK_INFO, LINK, GROUP_INFO]) {
            return self.group(object, &messages, depth);
        }
        if has(&[DATATYPE]) {
            let data_type = self.datatype(&messages).map(|found| found.name);
            return self.push(Object { kind: Kind::Type, data_type: data_type.ok(), ..object });
        }
        let why = "it is of a kind that is not understood".to_owned();
        self.push(Object { kind: Kind::Unknown, not_read: Some(why), ..object })
    }

    fn push(&mut self, object: Object) -> Result<(), Stop> {
        if self.found.objects.len() >= self.limits.objects {
            return Err(Stop::Spent);
        }
        // That there is a root says nothing; what is wrong with it does.
        if object.name == "/" && object.kind == Kind::Group {
            self.found.not_read.extend(object.not_read);
        } else {
            self.found.objects.push(object);
        }
        Ok(())
    }

    fn group(&mut self, mut object: Object, messages: &[Message], depth: usize) -> Result<(), Stop> {
        let path = if object.name == "/" { String::new() } else { object.name.clone() };
        if depth >= self.limits.depth {
            object.not_read = Some("it lies too deep".to_owned());
            return self.push(object);
        }
        // One more than can be shown, so that it is said.
        let most = self.limits.objects.saturating_sub(self.found.objects.len()) + 1;
        let links = group::links(&mut self.source, messages, most)?;
        object.not_read = links.not_read.map(str::to_owned);
        self.push(object)?;
        for (name, target) in links.named {
            let name = format!("{path}/{name}");
            match target {
                Target::Object(address) => self.object(&name, address, depth + 1)?,
                Target::Elsewhere(target) => {
                    self.push(Object { name, kind: Kind::Link, target: Some(target), ..Object::default() })?;
                }
            }
        }
        Ok(())
    }

    /// What can be told of a dataset; what cannot leaves a reason.
    fn dataset(&mut self, mut object: Object, messages: &[Message]) -> Result<Object, Stop> {
        object.kind = Kind::Dataset;
        let each = match self.datatype(messages) {
            Ok(found) => {
                object.data_type = Some(found.name);
                found.bytes
            }
            Err(Stop::Spent) => return Err(Stop::Spent),
            Err(Stop::Not(why)) => {
                object.not_read = Some(why.to_owned());
                None
            }
        };
        for message in messages {
            if let Err(Stop::Not(why)) = self.describe(&mut object, message, each) {
                object.not_read = Some(why.to_owned());
            }
        }
        if messages.iter().any(|message| message.kind == EXTERNAL) {
            object.layout = Some("external");
        }
        Ok(object)
    }

    fn describe(&self, object: &mut Object, message: &Message, each: Option<u64>) -> Result<(), Stop> {
        if message.shared && matches!(message.kind, DATASPACE | LAYOUT | FILTERS) {
            return Err(Stop::Not("what describes it is shared with others"));
        }
        match message.kind {
            DATASPACE => {
                object.shape = dataset::extent(&message.body, self.source.length)?;
                object.bytes = match &object.shape {
                    Some(shape) => each.and_then(|each| volume(shape, each)),
                    None => Some(0),
                };
            }
            LAYOUT => {
                let layout = dataset::Layout::read(&message.body, self.source.address)?;
                (object.layout, object.chunk, object.index) = (Some(layout.name), layout.chunk, layout.index);
            }
            FILTERS => object.filters = dataset::filters(&message.body)?,
            _ => {}
        }
        Ok(())
    }

    /// The type among the messages; one with a name has a header of its own.
    fn datatype(&mut self, messages: &[Message]) -> Result<datatype::Datatype, Stop> {
        let message = messages.iter().find(|message| message.kind == DATATYPE).ok_or(DAMAGED)?;
        if !message.shared {
            return datatype::read(&message.body);
        }
        let mut fields = Fields(&message.body);
        let (version, kind) = (fields.byte()?, fields.byte()?);
        fields.take(if version == 1 { 6 } else { 0 })?;
        if version == 3 && kind != 2 {
            return Err(Stop::Not("its type is shared with others"));
        }
        let address = fields.number(self.source.address)?;
        let own = header::read(&mut self.source, address)?;
        let own = own.iter().find(|message| message.kind == DATATYPE && !message.shared).ok_or(DAMAGED)?;
        datatype::read(&own.body)
    }
}
