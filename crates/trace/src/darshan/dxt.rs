//! Extended traces (DXT): single reads and writes with their times, handed on in blocks that fit into a small buffer.

use std::io::Read;

use super::bytes::{ByteOrder, text};
use super::error::Error;
use super::log::Visitor;
use super::module::Module;
use super::region::Region;

const HEAD: usize = 104;
/// Segments in a block: large enough to make the calls free, small enough to stay in the cache.
const BLOCK: usize = 1024;

/// What a segment did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    Read,
    Write,
}

/// One read or write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// -1 where the log does not know it (DXT_MPIIO version 1).
    pub offset: i64,
    pub length: i64,
    /// Seconds since the start of the job.
    pub start: f64,
    pub end: f64,
    /// 0 where the log has no threads.
    pub thread: u64,
}

/// The file, the process and the host that the following segments belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    pub module: Module,
    pub id: u64,
    pub rank: i64,
    pub host: String,
    pub writes: u64,
    pub reads: u64,
}

pub(crate) fn read<R: Read>(
    region: &mut Region<R>,
    module: Module,
    version: u32,
    order: ByteOrder,
    visitor: &mut impl Visitor,
) -> Result<(), Error> {
    let (size, has_offsets) = match (module, version) {
        (Module::DxtPosix, 1) | (Module::DxtMpiIo, 2) => (32, true),
        (Module::DxtPosix, 2) | (Module::DxtMpiIo, 3) => (40, true),
        (Module::DxtMpiIo, 1) => (32, false),
        _ => return Err(Error::UnknownVersion(version)),
    };
    let mut segments = Vec::with_capacity(BLOCK);
    while let Some(head) = region.next(HEAD)? {
        let count = |at: usize| u64::try_from(order.i64(head, at));
        let (Ok(writes), Ok(reads)) = (count(88), count(96)) else {
            return Err(Error::Nonsense("a trace has a negative number of segments"));
        };
        let (id, rank) = (order.u64(head, 0), order.i64(head, 8));
        let trace = Trace { module, id, rank, host: text(&head[24..88]), writes, reads };
        visitor.trace(&trace);
        for (operation, total) in [(Operation::Write, writes), (Operation::Read, reads)] {
            let mut left = total;
            while left > 0 {
                let wanted = left.min(BLOCK as u64) as usize;
                let available = region.fill(wanted * size);
                let count = wanted.min(available.len() / size);
                if count == 0 {
                    return Err(region.shortage(Error::Truncated("a trace has fewer segments than it says")));
                }
                segments.clear();
                segments.extend(available[..count * size].chunks_exact(size).map(|bytes| Segment {
                    offset: if has_offsets { order.i64(bytes, 0) } else { -1 },
                    length: order.i64(bytes, 8),
                    start: order.f64(bytes, 16),
                    end: order.f64(bytes, 24),
                    thread: if size == 40 { order.u64(bytes, 32) } else { 0 },
                }));
                region.consume(count * size);
                left -= count as u64;
                visitor.segments(&trace, operation, &segments);
            }
        }
    }
    Ok(())
}
