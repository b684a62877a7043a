//! Writes a file in one pass: what describes it, the chunks, their indexes. Nothing but a block of data is in memory.

use std::io::{self, Write};

use super::layout::{
    DATASET_HEADER, Dataset, Element, FANOUT, GROUP_NODE, GROUP_TREE, HEADERS_AT, HEAP, HEAP_AT, HEAP_HEADER,
    LONGEST_NAME, MANY_NAMES, NAMES_AT, NAMES_NODE, ROOT, SIGNATURE, SUPERBLOCK, UNDEFINED, data_at, node_bytes,
};

/// Fields in the order of the format.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn raw(&mut self, bytes: &[u8]) -> &mut Bytes {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u16(&mut self, value: u16) -> &mut Bytes {
        self.raw(&value.to_le_bytes())
    }

    fn u32(&mut self, value: u32) -> &mut Bytes {
        self.raw(&value.to_le_bytes())
    }

    fn u64(&mut self, value: u64) -> &mut Bytes {
        self.raw(&value.to_le_bytes())
    }

    fn pad(&mut self, length: u64) -> &mut Bytes {
        self.0.resize(self.0.len().max(length as usize), 0);
        self
    }
}

/// Writes `datasets`, whose chunks lie within `data` bytes that `fill` gives block by block, in order.
pub(crate) fn write(
    datasets: &[Dataset],
    data: u64,
    mut fill: impl FnMut(&mut [u8]),
    to: &mut impl Write,
) -> io::Result<()> {
    let unfit = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    if datasets.len() > MANY_NAMES || datasets.iter().any(|dataset| dataset.name.len() > LONGEST_NAME) {
        return unfit("at most eight datasets with names of at most 15 letters fit");
    }
    if !datasets.is_sorted_by(|a, b| a.name < b.name) {
        return unfit("the names of datasets must be sorted");
    }
    let begin = data_at(datasets.len());
    // The roots come last of their tree, and all sizes are known before anything is written.
    let (mut roots, mut end) = (Vec::new(), begin + data);
    for dataset in datasets {
        let nodes: u64 = levels(dataset.count()).iter().sum();
        end += nodes * node_bytes(dataset.chunks.len());
        roots.push(end - node_bytes(dataset.chunks.len()));
    }
    to.write_all(&head(datasets, &roots, begin, end).0)?;
    let mut block = vec![0; 1 << 20];
    let mut left = data;
    while left > 0 {
        let many = left.min(block.len() as u64);
        fill(&mut block[..many as usize]);
        to.write_all(&block[..many as usize])?;
        left -= many;
    }
    let mut at = begin + data;
    for dataset in datasets {
        at = index(dataset, begin, at, to)?;
    }
    debug_assert_eq!(at, end);
    Ok(())
}

/// Nodes of each level of an index, leaves first.
fn levels(chunks: u64) -> Vec<u64> {
    let mut levels = vec![chunks.div_ceil(FANOUT).max(1)];
    while let Some(below) = levels.last().filter(|nodes| **nodes > 1) {
        levels.push(below.div_ceil(FANOUT));
    }
    levels
}

fn head(datasets: &[Dataset], roots: &[u64], begin: u64, end: u64) -> Bytes {
    let mut out = Bytes::default();
    out.raw(&SIGNATURE).raw(&[0, 0, 0, 0, 0, 8, 8, 0]).u16(4).u16(16).u32(0);
    out.u64(0).u64(UNDEFINED).u64(end).u64(UNDEFINED);
    out.u64(0).u64(ROOT).u32(1).u32(0).u64(GROUP_TREE).u64(HEAP_AT).pad(SUPERBLOCK);
    // Header of the root group: one message, its tree and its names.
    out.raw(&[1, 0]).u16(1).u32(1).u32(24).u32(0).u16(0x11).u16(16).u32(0).u64(GROUP_TREE).u64(HEAP_AT);
    debug_assert_eq!(out.0.len() as u64, GROUP_TREE);
    let last = if datasets.is_empty() { 0 } else { 8 + 16 * (datasets.len() as u64 - 1) };
    out.raw(b"TREE\0\0").u16(1).u64(UNDEFINED).u64(UNDEFINED).u64(0).u64(NAMES_AT).u64(last);
    out.pad(GROUP_TREE + GROUP_NODE);
    // The heap of names; 1 says that nothing of it is free.
    out.raw(b"HEAP\0\0\0\0").u64(HEAP).u64(1).u64(HEAP_AT + HEAP_HEADER).u64(0);
    for (number, dataset) in datasets.iter().enumerate() {
        out.raw(dataset.name.as_bytes()).pad(HEAP_AT + HEAP_HEADER + 8 + 16 * (number as u64 + 1));
    }
    out.pad(NAMES_AT);
    out.raw(b"SNOD\x01\0").u16(datasets.len() as u16);
    for number in 0..datasets.len() as u64 {
        out.u64(8 + 16 * number).u64(HEADERS_AT + number * DATASET_HEADER).u64(0).u64(0).u64(0);
    }
    out.pad(NAMES_AT + NAMES_NODE);
    for (number, (dataset, root)) in datasets.iter().zip(roots).enumerate() {
        header(dataset, *root, &mut out);
        out.pad(HEADERS_AT + (number as u64 + 1) * DATASET_HEADER);
    }
    out.pad(begin);
    out
}

/// Header of a dataset: extent, type, what is not written, layout.
fn header(dataset: &Dataset, root: u64, out: &mut Bytes) {
    let mut messages = Bytes::default();
    let mut count = 0;
    let mut message = |kind: u16, body: &mut Bytes| {
        body.pad(body.0.len().next_multiple_of(8) as u64);
        messages.u16(kind).u16(body.0.len() as u16).u32(0).raw(&body.0);
        count += 1;
    };
    let dimensions = dataset.chunks.len() as u8;
    let mut body = Bytes::default();
    body.raw(&[1, dimensions, 0, 0, 0, 0, 0, 0]);
    for (length, many) in dataset.chunk.iter().zip(dataset.chunks) {
        body.u64(length * many);
    }
    message(0x01, &mut body);
    let mut body = Bytes::default();
    match dataset.element {
        Element::Byte => body.raw(&[0x10, 0, 0, 0]).u32(1).u16(0).u16(8),
        Element::Float => body.raw(&[0x11, 0x20, 31, 0]).u32(4).u16(0).u16(32).raw(&[23, 8, 0, 23]).u32(127),
    };
    message(0x03, &mut body);
    message(0x05, Bytes::default().raw(&[2, 3, 2, 1]).u32(0));
    let mut body = Bytes::default();
    body.raw(&[3, 2, dimensions + 1]).u64(root);
    for length in dataset.chunk {
        body.u32(*length as u32);
    }
    body.u32(dataset.element.bytes() as u32);
    message(0x08, &mut body);
    out.raw(&[1, 0]).u16(count).u32(1).u32(messages.0.len() as u32).u32(0).raw(&messages.0);
}

/// Writes the tree of a dataset from its leaves to its root; gives the address after it.
fn index(dataset: &Dataset, begin: u64, at: u64, to: &mut impl Write) -> io::Result<u64> {
    let size = node_bytes(dataset.chunks.len());
    // Chunks below one child, address of the first child, and how far children are apart: that is what a level knows.
    let (mut span, mut level_at, mut below_at) = (1, at, 0);
    for (level, nodes) in levels(dataset.count()).into_iter().enumerate() {
        for node in 0..nodes {
            let first = node * FANOUT;
            let last = (first + FANOUT).min(dataset.count().div_ceil(span));
            let mut out = Bytes::default();
            let neighbour = |there: bool, number: u64| if there { level_at + number * size } else { UNDEFINED };
            out.raw(b"TREE\x01").raw(&[level as u8]).u16((last - first) as u16);
            out.u64(neighbour(node > 0, node.wrapping_sub(1))).u64(neighbour(node + 1 < nodes, node + 1));
            for child in first..=last {
                let chunk = (child * span).min(dataset.count());
                out.u32(dataset.chunk_bytes() as u32).u32(0);
                for offset in dataset.offsets(chunk) {
                    out.u64(offset);
                }
                if child < last {
                    out.u64(if level == 0 { begin + (dataset.address)(child) } else { below_at + child * size });
                }
            }
            to.write_all(&out.pad(size).0)?;
        }
        (below_at, level_at, span) = (level_at, level_at + nodes * size, span * FANOUT);
    }
    Ok(level_at)
}
