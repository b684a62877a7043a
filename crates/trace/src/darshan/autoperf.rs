//! The AutoPerf modules: MPI calls per rank (APMPI) and Cray network counters (APXC). Knows the structure, not the
//! meaning of network counters.

use std::io::Read;

use super::bytes::{ByteOrder, text};
use super::error::Error;
use super::region::Region;

const APMPI_HEAD: usize = 48;
const APMPI_RECORD: usize = 5232;
const APXC_HEAD: usize = 72;
const APXC_RECORD: usize = 3184;

/// How much the ranks differ in their time in MPI.
#[derive(Debug, Clone, PartialEq)]
pub struct ApmpiHeader {
    pub id: u64,
    pub variance_total: f64,
    pub variance_synchronisation: f64,
}

/// MPI calls of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct ApmpiRecord {
    pub id: u64,
    pub rank: i64,
    pub counters: Vec<u64>,
    /// Total, least and greatest time of each operation.
    pub times: Vec<f64>,
    /// Time that a barrier before each blocking collective would have taken.
    pub synchronisation: Vec<f64>,
    pub total_time: f64,
    pub total_synchronisation: f64,
    pub node: String,
}

/// The machine, as far as the network is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApxcHeader {
    pub id: u64,
    pub blades: i64,
    pub chassis: i64,
    pub groups: i64,
    pub memory_mode: i64,
    pub cluster_mode: i64,
    pub application: i64,
}

/// Network counters of one router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApxcRecord {
    pub id: u64,
    pub rank: i64,
    pub group: i64,
    pub chassis: i64,
    pub blade: i64,
    pub node: i64,
    pub counters: Vec<u64>,
}

pub(crate) fn read_apmpi<R: Read>(
    region: &mut Region<R>,
    version: u32,
    order: ByteOrder,
    header: impl FnOnce(&ApmpiHeader),
    mut record: impl FnMut(&ApmpiRecord),
) -> Result<(), Error> {
    if version != 1 {
        return Err(Error::UnknownVersion(version));
    }
    let Some(head) = region.next(APMPI_HEAD)? else { return Ok(()) };
    let (variance_total, variance_synchronisation) = (order.f64(head, 32), order.f64(head, 40));
    header(&ApmpiHeader { id: order.u64(head, 0), variance_total, variance_synchronisation });
    while let Some(bytes) = region.next(APMPI_RECORD)? {
        let floats = |at: usize, count: usize| (0..count).map(|index| order.f64(bytes, at + 8 * index)).collect();
        record(&ApmpiRecord {
            id: order.u64(bytes, 0),
            rank: order.i64(bytes, 8),
            counters: (0..396).map(|index| order.u64(bytes, 16 + 8 * index)).collect(),
            times: floats(3184, 222),
            synchronisation: floats(4960, 16),
            total_time: order.f64(bytes, 5088),
            total_synchronisation: order.f64(bytes, 5096),
            node: text(&bytes[5104..]),
        });
    }
    Ok(())
}

pub(crate) fn read_apxc<R: Read>(
    region: &mut Region<R>,
    version: u32,
    order: ByteOrder,
    header: impl FnOnce(&ApxcHeader),
    mut record: impl FnMut(&ApxcRecord),
) -> Result<(), Error> {
    if version != 1 {
        return Err(Error::UnknownVersion(version));
    }
    let Some(head) = region.next(APXC_HEAD)? else { return Ok(()) };
    let number = |index: usize| order.i64(head, 8 * index);
    header(&ApxcHeader {
        id: order.u64(head, 0),
        blades: number(3),
        chassis: number(4),
        groups: number(5),
        memory_mode: number(6),
        cluster_mode: number(7),
        application: number(8),
    });
    while let Some(bytes) = region.next(APXC_RECORD)? {
        let number = |index: usize| order.i64(bytes, 8 * index);
        record(&ApxcRecord {
            id: order.u64(bytes, 0),
            rank: number(1),
            group: number(2),
            chassis: number(3),
            blade: number(4),
            node: number(5),
            counters: (0..392).map(|index| order.u64(bytes, 48 + 8 * index)).collect(),
        });
    }
    Ok(())
}
