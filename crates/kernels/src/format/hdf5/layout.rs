//! Where things lie in a file, and the sizes that the format gives them.

/// No address.
pub(super) const UNDEFINED: u64 = u64::MAX;
pub(super) const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// Superblock of version 0 with the entry of the root group.
pub(super) const SUPERBLOCK: u64 = 96;
/// Object header with the one message of a group.
pub(super) const GROUP_HEADER: u64 = 40;
/// B-tree node of a group: up to 32 children.
pub(super) const GROUP_NODE: u64 = 544;
/// Node of names: up to 8 of them.
pub(super) const NAMES_NODE: u64 = 328;
pub(super) const MANY_NAMES: usize = 8;
/// Names of datasets; what is not used stays zero.
pub(super) const HEAP_HEADER: u64 = 32;
pub(super) const HEAP: u64 = 8 + 16 * MANY_NAMES as u64;
pub(super) const LONGEST_NAME: usize = 15;
/// Room of the object header of a dataset.
pub(super) const DATASET_HEADER: u64 = 320;
/// Children of a node of the index of chunks: twice the default of the library.
pub(super) const FANOUT: u64 = 64;

pub(super) const ROOT: u64 = SUPERBLOCK;
pub(super) const GROUP_TREE: u64 = ROOT + GROUP_HEADER;
pub(super) const HEAP_AT: u64 = GROUP_TREE + GROUP_NODE;
pub(super) const NAMES_AT: u64 = HEAP_AT + HEAP_HEADER + HEAP;
pub(super) const HEADERS_AT: u64 = NAMES_AT + NAMES_NODE;

/// Where the chunks begin.
pub(super) const fn data_at(datasets: usize) -> u64 {
    (HEADERS_AT + datasets as u64 * DATASET_HEADER).next_multiple_of(4096)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Byte,
    Float,
}

impl Element {
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Element::Byte => 1,
            Element::Float => 4,
        }
    }
}

/// A dataset of whole chunks.
pub(crate) struct Dataset<'a> {
    /// Sorted among those of the file, at most 15 letters.
    pub(crate) name: &'a str,
    pub(crate) element: Element,
    /// Elements of a chunk, by dimension.
    pub(crate) chunk: &'a [u64],
    /// Chunks, by dimension.
    pub(crate) chunks: &'a [u64],
    /// Where a chunk lies, counted from the first byte of data; chunks are numbered in the order of C.
    pub(crate) address: &'a dyn Fn(u64) -> u64,
}

impl Dataset<'_> {
    pub(super) fn chunk_bytes(&self) -> u64 {
        self.chunk.iter().product::<u64>() * self.element.bytes()
    }

    pub(super) fn count(&self) -> u64 {
        self.chunks.iter().product()
    }

    /// Offsets of a chunk in elements; past the end, those of the chunk that would come next.
    pub(super) fn offsets(&self, chunk: u64) -> Vec<u64> {
        let mut offsets = vec![0; self.chunks.len() + 1];
        let mut rest = chunk;
        for dimension in (0..self.chunks.len()).rev() {
            let length = if dimension == 0 { u64::MAX } else { self.chunks[dimension] };
            offsets[dimension] = rest % length * self.chunk[dimension];
            rest /= length;
        }
        offsets
    }
}

/// Bytes of a key of the index of chunks.
pub(super) const fn key_bytes(dimensions: usize) -> u64 {
    8 + 8 * (dimensions as u64 + 1)
}

/// Bytes of a node of the index of chunks.
pub(super) const fn node_bytes(dimensions: usize) -> u64 {
    24 + (FANOUT + 1) * key_bytes(dimensions) + FANOUT * 8
}

#[cfg(test)]
mod tests {
    use super::node_bytes;

    #[test]
    fn nodes_are_as_large_as_those_of_the_library() {
        assert_eq!(node_bytes(1), 2096);
        assert_eq!(node_bytes(3), 3136);
    }
}
