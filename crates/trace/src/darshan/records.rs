//! Records of fixed size: `id, rank, integers, floats`, in any version, converted to today's. Conversions follow what the
//! counters mean; where Darshan's own library loses or garbles values of old logs, these are kept.

use std::io::Read;

use super::bytes::ByteOrder;
use super::counters;
use super::error::Error;
use super::module::Module;
use super::region::Region;

/// No MDHIM installation has as many servers.
const MANY_SERVERS: i64 = 1 << 20;

/// The counters of one file (dataset, object …) on one rank. Positions and names are in [`counters`].
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub module: Module,
    pub id: u64,
    /// -1: the sum over all ranks of a file that all of them opened.
    pub rank: i64,
    /// The file that a dataset or variable lies in; 0 where the log does not know it.
    pub file: Option<u64>,
    pub integers: Vec<i64>,
    pub floats: Vec<f64>,
    /// Requests per server (MDHIM only).
    pub servers: Vec<i64>,
    /// What follows the counters: pool, container and object of DFS and DAOS records.
    pub trailer: Vec<u8>,
}

impl Record {
    pub fn is_shared(&self) -> bool {
        self.rank == -1
    }
}

struct Layout {
    /// Bytes between rank and counters.
    gap: usize,
    file: bool,
    integers: usize,
    floats: usize,
    trailer: usize,
}

/// The layout of records as they lie in the log.
fn layout(module: Module, version: u32) -> Option<Layout> {
    let (integers, floats) = counters::names(module).map(|(integers, floats)| (integers.len(), floats.len()))?;
    let plain = |integers, floats| Some(Layout { gap: 0, file: false, integers, floats, trailer: 0 });
    match (module, version) {
        (Module::Posix, 1) => plain(68, 15),
        (Module::Posix, 2) => plain(64, 15),
        (Module::Posix, 3) => plain(64, 17),
        (Module::MpiIo, 1 | 2) => plain(integers, 15),
        (Module::Stdio, 1) => plain(13, floats),
        (Module::Hdf5File, 1) => plain(1, 2),
        (Module::Hdf5File, 2) => plain(1, 4),
        (Module::PnetcdfFile, 1) => plain(2, 2),
        (Module::PnetcdfFile, 2) => plain(2, 4),
        (Module::BlueGene, 1) => Some(Layout { gap: 8, file: false, integers, floats, trailer: 0 }),
        (Module::Posix, 4)
        | (Module::MpiIo | Module::Hdf5File | Module::PnetcdfFile, 3)
        | (Module::Stdio | Module::BlueGene, 2)
        | (Module::Hdf5Dataset | Module::Mdhim, 1) => plain(integers, floats),
        (Module::Hdf5Dataset, 2) | (Module::PnetcdfVariable, 1) => {
            Some(Layout { gap: 8, file: true, integers, floats, trailer: 0 })
        }
        (Module::Dfs, 1) => Some(Layout { gap: 0, file: false, integers, floats, trailer: 32 }),
        (Module::Daos, 1) => Some(Layout { gap: 0, file: false, integers, floats, trailer: 48 }),
        _ => None,
    }
}

pub(crate) fn read<R: Read>(
    region: &mut Region<R>,
    module: Module,
    version: u32,
    order: ByteOrder,
    mut visit: impl FnMut(&Record),
) -> Result<(), Error> {
    let layout = layout(module, version).ok_or(Error::UnknownVersion(version))?;
    let counters_at = 16 + layout.gap;
    let floats_at = counters_at + 8 * layout.integers;
    let end = floats_at + 8 * layout.floats;
    let (integers, floats, servers, trailer) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut record = Record { module, id: 0, rank: 0, file: None, integers, floats, servers, trailer };
    while let Some(bytes) = region.next(end + layout.trailer)? {
        record.id = order.u64(bytes, 0);
        record.rank = order.i64(bytes, 8);
        record.file = match module {
            Module::Hdf5Dataset | Module::PnetcdfVariable => Some(if layout.file { order.u64(bytes, 16) } else { 0 }),
            _ => None,
        };
        record.integers.clear();
        record.integers.extend((counters_at..floats_at).step_by(8).map(|at| order.i64(bytes, at)));
        record.floats.clear();
        record.floats.extend((floats_at..end).step_by(8).map(|at| order.f64(bytes, at)));
        record.trailer.clear();
        record.trailer.extend_from_slice(&bytes[end..]);
        if module == Module::Mdhim {
            let count = record.integers[counters::mdhim::SERVERS];
            if !(0..MANY_SERVERS).contains(&count) {
                return Err(Error::Nonsense("an MDHIM record has an impossible number of servers"));
            }
            record.servers.clear();
            for _ in 0..count {
                record.servers.push(order.i64(region.promised(8)?, 0));
            }
        }
        if convert(&mut record, version) {
            visit(&record);
        }
    }
    Ok(())
}

/// Brings a record to today's counters; false if it has to be left out.
fn convert(record: &mut Record, version: u32) -> bool {
    let (integers, floats) = (&mut record.integers, &mut record.floats);
    // The times at which a close begins and an open ends were added to both layers alike.
    let has_no_close_start = |floats: &mut Vec<f64>, at: usize| drop(floats.splice(at..at, [-1.0, -1.0]));
    match (record.module, version) {
        (Module::Posix, 1..=3) => {
            if version == 1 {
                // Such records mix the counters of stdio streams into those of POSIX.
                if integers[6] > 0 {
                    return false;
                }
                integers.drain(6..10);
            }
            if version <= 2 {
                has_no_close_start(floats, 3);
            }
            integers.splice(1..1, [-1, -1]);
            integers.splice(10..10, [-1, -1, 0]);
        }
        (Module::MpiIo, 1 | 2) => has_no_close_start(floats, 3),
        (Module::Stdio, 1) => integers.insert(1, -1),
        (Module::Hdf5File, 1 | 2) => {
            if version == 1 {
                has_no_close_start(floats, 1);
            }
            integers.splice(1..1, [-1, -1]);
            floats.push(-1.0);
        }
        (Module::PnetcdfFile, 1 | 2) => {
            if version == 1 {
                has_no_close_start(floats, 1);
            }
            let opens = integers[0].saturating_add(integers[1]);
            *integers = vec![-1, opens, -1, -1, -1, -1, -1, -1, -1];
            *floats = vec![floats[0], floats[1], -1.0, floats[2], floats[3], -1.0, -1.0, -1.0];
        }
        _ => {}
    }
    true
}
