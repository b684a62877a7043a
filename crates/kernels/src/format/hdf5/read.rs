//! Reads chunks with the requests of the library: superblock in three pieces, headers and names with 512 bytes ahead,
//! nodes of the index once, chunks one by one.

use std::collections::HashMap;

use super::layout::{FANOUT, GROUP_NODE, NAMES_NODE, SIGNATURE, key_bytes, node_bytes};
use crate::error::Error;
use crate::meter::{Probe, Seen};

/// The library does not know how long a header is before it has read it, and asks for this much.
const AHEAD: u64 = 512;
/// Nodes that are kept: the library keeps about two megabytes of such.
const KEPT: usize = 1024;

pub(crate) struct Reader {
    file: Seen,
    size: u64,
    names: Vec<(String, u64)>,
    datasets: Vec<Opened>,
    nodes: HashMap<u64, Vec<u8>>,
}

struct Opened {
    root: u64,
    /// Elements of a chunk by dimension.
    chunk: Vec<u64>,
    /// Chunks by dimension.
    chunks: Vec<u64>,
    chunk_bytes: u64,
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut value = [0; 8];
    value[..length].copy_from_slice(bytes.get(at..at + length)?);
    Some(u64::from_le_bytes(value))
}

impl Reader {
    /// Opens what is open already as a file of HDF5.
    pub(crate) fn new(probe: &mut Probe, file: Seen) -> Result<Reader, Error> {
        let size = probe.size(&file)?;
        let mut reader = Reader { file, size, names: Vec::new(), datasets: Vec::new(), nodes: HashMap::new() };
        let mut bytes = Vec::new();
        reader.read(probe, &mut bytes, 0, 8)?;
        if bytes != SIGNATURE {
            return Err(reader.damaged("it is no file of HDF5"));
        }
        reader.read(probe, &mut bytes, 0, 48)?;
        reader.read(probe, &mut bytes, 48, 48)?;
        let root = reader.number(&bytes, 16, 8)?;
        reader.read(probe, &mut bytes, root, AHEAD)?;
        let (tree, heap) = (reader.number(&bytes, 24, 8)?, reader.number(&bytes, 32, 8)?);
        reader.read(probe, &mut bytes, heap, AHEAD)?;
        let names = bytes.get(32..).unwrap_or_default().to_vec();
        reader.read(probe, &mut bytes, tree, GROUP_NODE)?;
        let node = reader.number(&bytes, 32, 8)?;
        reader.read(probe, &mut bytes, node, NAMES_NODE)?;
        for entry in 0..reader.number(&bytes, 6, 2)? as usize {
            let name = reader.number(&bytes, 8 + 40 * entry, 8)? as usize;
            let header = reader.number(&bytes, 16 + 40 * entry, 8)?;
            let name: Vec<u8> = names.iter().skip(name).take_while(|letter| **letter != 0).copied().collect();
            reader.names.push((String::from_utf8_lossy(&name).into_owned(), header));
        }
        Ok(reader)
    }

    pub(crate) fn close(self) -> Seen {
        self.file
    }

    /// Opens a dataset; its number is what the other calls want.
    pub(crate) fn open(&mut self, probe: &mut Probe, name: &str) -> Result<usize, Error> {
        let Some((_, header)) = self.names.iter().find(|known| known.0 == name) else {
            return Err(self.damaged("a dataset is missing"));
        };
        let mut bytes = Vec::new();
        self.read(probe, &mut bytes, *header, AHEAD)?;
        let (mut lengths, mut chunk, mut root) = (Vec::new(), Vec::new(), 0);
        let mut at = 16;
        for _ in 0..self.number(&bytes, 2, 2)? {
            let (kind, length) = (self.number(&bytes, at, 2)?, self.number(&bytes, at + 2, 2)? as usize);
            let body = at + 8;
            match kind {
                0x01 => {
                    let dimensions = self.number(&bytes, body + 1, 1)? as usize;
                    for dimension in 0..dimensions {
                        lengths.push(self.number(&bytes, body + 8 + 8 * dimension, 8)?);
                    }
                }
                0x08 => {
                    root = self.number(&bytes, body + 3, 8)?;
                    for dimension in 0..self.number(&bytes, body + 2, 1)? as usize {
                        chunk.push(self.number(&bytes, body + 11 + 4 * dimension, 4)?);
                    }
                }
                _ => {}
            }
            at = body + length;
        }
        if lengths.is_empty() || chunk.len() != lengths.len() + 1 || chunk.contains(&0) {
            return Err(self.damaged("a dataset is not in chunks"));
        }
        let chunk_bytes = chunk.iter().product();
        chunk.pop();
        let chunks = lengths.iter().zip(&chunk).map(|(length, part)| length.div_ceil(*part)).collect();
        self.datasets.push(Opened { root, chunk, chunks, chunk_bytes });
        Ok(self.datasets.len() - 1)
    }

    /// Chunks by dimension.
    pub(crate) fn chunks(&self, dataset: usize) -> &[u64] {
        &self.datasets[dataset].chunks
    }

    /// Replaces `bytes` by the chunk with these numbers.
    pub(crate) fn chunk(
        &mut self,
        probe: &mut Probe,
        dataset: usize,
        place: &[u64],
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let opened = &self.datasets[dataset];
        let (mut address, size, length) = (opened.root, node_bytes(place.len()), opened.chunk_bytes);
        let wanted: Vec<u64> = place.iter().zip(&opened.chunk).map(|(place, chunk)| place * chunk).collect();
        loop {
            if !self.nodes.contains_key(&address) {
                let mut node = Vec::new();
                self.read(probe, &mut node, address, size)?;
                if self.nodes.len() >= KEPT {
                    self.nodes.clear();
                }
                self.nodes.insert(address, node);
            }
            let Some((leaf, child)) = self.nodes.get(&address).and_then(|node| find(node, &wanted)) else {
                return Err(self.damaged("a chunk is not in the index"));
            };
            address = child;
            if leaf {
                return self.read(probe, bytes, address, length);
            }
        }
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::damaged(self.file.path(), what)
    }

    fn number(&self, bytes: &[u8], at: usize, length: usize) -> Result<u64, Error> {
        number(bytes, at, length).ok_or_else(|| self.damaged("what describes it is cut off"))
    }

    fn read(&self, probe: &mut Probe, bytes: &mut Vec<u8>, at: u64, length: u64) -> Result<(), Error> {
        let length = length.min(self.size.saturating_sub(at));
        probe.fill(&self.file, bytes, at, length as usize)
    }
}

/// The child of a node that holds a chunk, and whether it is the chunk itself.
fn find(node: &[u8], wanted: &[u64]) -> Option<(bool, u64)> {
    if node.get(..5)? != b"TREE\x01" {
        return None;
    }
    let (key, children) = (key_bytes(wanted.len()) as usize, number(node, 6, 2)?.min(FANOUT) as usize);
    let begins = |child: usize| -> Option<Vec<u64>> {
        (0..wanted.len()).map(|dimension| number(node, 24 + child * (key + 8) + 8 + 8 * dimension, 8)).collect()
    };
    // The last child that does not begin after what is wanted.
    let (mut low, mut high) = (0, children);
    while low < high {
        let middle = (low + high) / 2;
        if begins(middle)?.as_slice() <= wanted { low = middle + 1 } else { high = middle }
    }
    let child = low.checked_sub(1)?;
    let leaf = node[5] == 0;
    if leaf && begins(child)? != wanted {
        return None;
    }
    Some((leaf, number(node, 24 + child * (key + 8) + key, 8)?))
}
