//! The names behind the record numbers. Memory is bounded by what a file of this size can honestly hold.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Read;

use super::bytes::ByteOrder;
use super::error::Error;
use super::header::Version;
use super::region::Region;

/// A path is at most 4,096 bytes on Linux; HDF5 appends the name of a dataset.
const LONGEST: usize = 64 * 1024;
/// Paths with long common parts compress well, but each has a hash beside it that does not: beyond this it is a bomb.
const RATIO: u64 = 256;
const ALWAYS: u64 = 1 << 20;
/// What a name costs beside its text.
const OVERHEAD: u64 = 48;

/// Record number → path, dataset or variable.
#[derive(Debug, Clone, Default)]
pub struct Names {
    names: HashMap<u64, Box<str>>,
}

impl Names {
    pub fn get(&self, id: u64) -> Option<&str> {
        self.names.get(&id).map(|name| &**name)
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// In no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &str)> {
        self.names.iter().map(|(id, name)| (*id, &**name))
    }

    /// Reads until the end or the first damage; what was read stays.
    pub(crate) fn read<R: Read>(
        &mut self,
        region: &mut Region<R>,
        version: Version,
        order: ByteOrder,
        compressed: u64,
    ) -> Result<(), Error> {
        let budget = compressed.saturating_mul(RATIO).saturating_add(ALWAYS);
        let mut spent = 0u64;
        let counted = version < (Version { major: 3, minor: 10 });
        let head = if counted { 12 } else { 8 };
        loop {
            let Some(bytes) = region.next(head)? else { return Ok(()) };
            let id = order.u64(bytes, 0);
            let name = if counted {
                let length = order.u32(bytes, 8) as usize;
                if length > LONGEST {
                    return Err(Error::Nonsense("a name is longer than any path"));
                }
                String::from_utf8_lossy(region.promised(length)?).into_owned()
            } else {
                let available = region.fill(LONGEST);
                let Some(end) = available.iter().position(|&byte| byte == 0) else {
                    return Err(region.shortage(Error::Nonsense("a name has no end")));
                };
                let name = String::from_utf8_lossy(&available[..end]).into_owned();
                region.consume(end + 1);
                name
            };
            match self.names.entry(id) {
                Entry::Occupied(held) if !held.get().is_empty() || name.is_empty() => continue,
                Entry::Occupied(mut held) => {
                    spent += name.len() as u64;
                    held.insert(name.into());
                }
                Entry::Vacant(free) => {
                    spent += name.len() as u64 + OVERHEAD;
                    free.insert(name.into());
                }
            }
            if spent > budget {
                return Err(Error::Nonsense("there are more names than a log of this size can have"));
            }
        }
    }
}
