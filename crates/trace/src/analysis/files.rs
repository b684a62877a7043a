//! The files of a job with their counters, layer by layer.

use std::collections::BTreeMap;

use super::layer::Layer;
use super::pattern::Pattern;
use super::traced::FileTrace;
use crate::darshan::Record;
use crate::darshan::counters::{dfs, mpi_io, posix, stdio};

/// What one layer counted for one file, over all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counts {
    pub opens: i64,
    /// Opens, stats, seeks, syncs and the like.
    pub metadata_calls: i64,
    pub bytes_read: i64,
    pub bytes_written: i64,
    pub reads: Pattern,
    pub writes: Pattern,
    /// Sums over ranks and threads.
    pub read_time: f64,
    pub write_time: f64,
    pub metadata_time: f64,
    /// Requests of at most 1 MiB.
    pub small_reads: u64,
    pub small_writes: u64,
    pub max_offset: i64,
    /// Processes that opened it: exact, unless a shared record hides them.
    pub processes: i64,
    pub shared: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileRow {
    pub name: Option<String>,
    pub posix: Option<Counts>,
    pub mpi_io: Option<Counts>,
    pub stdio: Option<Counts>,
    pub dfs: Option<Counts>,
    pub traced: Option<Box<FileTrace>>,
    /// Targets over which a Lustre file is striped.
    pub stripes: i64,
    /// What single ranks moved through POSIX, where a record tells it of each.
    pub by_rank: Option<ByRank>,
}

/// Bytes that the ranks of a file moved, the least and the most of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByRank {
    pub ranks: u32,
    pub least: u64,
    pub most: u64,
}

impl FileRow {
    pub fn layer(&self, layer: Layer) -> Option<&Counts> {
        match layer {
            Layer::Posix => self.posix.as_ref(),
            Layer::MpiIo => self.mpi_io.as_ref(),
            Layer::Stdio => self.stdio.as_ref(),
            Layer::Dfs => self.dfs.as_ref(),
        }
    }

    /// Bytes read and written, each counted once: MPI-IO's pass through POSIX, those of stdio and DFS do not.
    pub fn bytes(&self) -> (i64, i64) {
        let of = |counts: &Option<Counts>| counts.map_or((0, 0), |counts| (counts.bytes_read, counts.bytes_written));
        let (mut posix, mpi_io, stdio, dfs) = (of(&self.posix), of(&self.mpi_io), of(&self.stdio), of(&self.dfs));
        if let (None, Some(traced)) = (&self.posix, &self.traced) {
            let bytes = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            posix = (bytes(traced.bytes_read), bytes(traced.bytes_written));
        }
        (
            posix.0.max(mpi_io.0).saturating_add(stdio.0).saturating_add(dfs.0),
            posix.1.max(mpi_io.1).saturating_add(stdio.1).saturating_add(dfs.1),
        )
    }
}

/// Files that every log may have, and bytes of a log for each further one: a file has its number twice, and numbers are
/// hashes, which do not compress.
const ALWAYS: u64 = 1 << 14;
const BYTES_A_FILE: u64 = 16;
/// The row of all files beyond that.
const BEYOND: u64 = u64::MAX;

/// All files, by record number.
#[derive(Debug, Clone, Default)]
pub struct FileTable {
    pub rows: BTreeMap<u64, FileRow>,
    /// Rows that there may be.
    room: u64,
    /// Records that found no room, and are in one row together.
    pub(super) beyond: u64,
    /// Rows without a name so far.
    pub(super) fresh: Vec<u64>,
}

impl FileTable {
    /// A log of so many bytes comes.
    pub(super) fn make_room(&mut self, bytes: u64) {
        self.room = self.room.saturating_add(ALWAYS).saturating_add(bytes / BYTES_A_FILE);
    }

    pub(super) fn row(&mut self, mut id: u64) -> &mut FileRow {
        let is_full = self.rows.len() as u64 >= self.room;
        if is_full && !self.rows.contains_key(&id) {
            (id, self.beyond) = (BEYOND, self.beyond + 1);
        }
        let fresh = &mut self.fresh;
        self.rows.entry(id).or_insert_with(|| match id {
            BEYOND if is_full => FileRow { name: Some("(all other files)".to_owned()), ..FileRow::default() },
            _ => {
                fresh.push(id);
                FileRow::default()
            }
        })
    }

    pub(super) fn add(&mut self, record: &Record, processes: i64) {
        let Some(layer) = Layer::of(record.module) else { return };
        let row = self.row(record.id);
        let own = Counts::of(layer, record);
        if layer == Layer::Posix && !record.is_shared() {
            let moved = own.bytes_read.saturating_add(own.bytes_written).cast_unsigned();
            let known = row.by_rank.unwrap_or(ByRank { ranks: 0, least: moved, most: moved });
            row.by_rank = Some(ByRank {
                ranks: known.ranks.saturating_add(1),
                least: known.least.min(moved),
                most: known.most.max(moved),
            });
        }
        let counts = match layer {
            Layer::Posix => row.posix.get_or_insert_default(),
            Layer::MpiIo => row.mpi_io.get_or_insert_default(),
            Layer::Stdio => row.stdio.get_or_insert_default(),
            Layer::Dfs => row.dfs.get_or_insert_default(),
        };
        counts.extend(&own);
        counts.shared |= record.is_shared();
        counts.processes = counts.processes.saturating_add(if record.is_shared() { processes.max(1) } else { 1 });
    }
}

impl Counts {
    pub(super) fn of(layer: Layer, record: &Record) -> Counts {
        // -1 stands for "not known".
        let integer = |index: usize| record.integers.get(index).copied().unwrap_or(0).max(0);
        let sum = |indices: &[usize]| indices.iter().fold(0i64, |sum, index| sum.saturating_add(integer(*index)));
        let float = |index: usize| record.floats.get(index).copied().filter(|value| *value > 0.0).unwrap_or(0.0);
        let pattern = |accesses: i64, sequential: i64, consecutive: i64| Pattern {
            accesses: accesses.cast_unsigned(),
            sequential: sequential.cast_unsigned(),
            consecutive: consecutive.cast_unsigned(),
        };
        let small = |first: usize| sum(&[first, first + 1, first + 2, first + 3, first + 4]).cast_unsigned();
        match layer {
            Layer::Posix => Counts {
                opens: integer(posix::OPENS),
                metadata_calls: sum(&[
                    posix::OPENS,
                    posix::STATS,
                    posix::SEEKS,
                    posix::FSYNCS,
                    posix::FDSYNCS,
                    posix::MMAPS,
                ]),
                bytes_read: integer(posix::BYTES_READ),
                bytes_written: integer(posix::BYTES_WRITTEN),
                reads: pattern(integer(posix::READS), integer(posix::SEQ_READS), integer(posix::CONSEC_READS)),
                writes: pattern(integer(posix::WRITES), integer(posix::SEQ_WRITES), integer(posix::CONSEC_WRITES)),
                read_time: float(posix::F_READ_TIME),
                write_time: float(posix::F_WRITE_TIME),
                metadata_time: float(posix::F_META_TIME),
                small_reads: small(posix::SIZE_READ_0_100),
                small_writes: small(posix::SIZE_WRITE_0_100),
                max_offset: integer(posix::MAX_BYTE_READ).max(integer(posix::MAX_BYTE_WRITTEN)),
                processes: 0,
                shared: false,
            },
            Layer::MpiIo => Counts {
                opens: sum(&[mpi_io::INDEP_OPENS, mpi_io::COLL_OPENS]),
                metadata_calls: sum(&[mpi_io::INDEP_OPENS, mpi_io::COLL_OPENS, mpi_io::SYNCS, mpi_io::VIEWS]),
                bytes_read: integer(mpi_io::BYTES_READ),
                bytes_written: integer(mpi_io::BYTES_WRITTEN),
                reads: pattern(
                    sum(&[mpi_io::INDEP_READS, mpi_io::COLL_READS, mpi_io::SPLIT_READS, mpi_io::NB_READS]),
                    0,
                    0,
                ),
                writes: pattern(
                    sum(&[mpi_io::INDEP_WRITES, mpi_io::COLL_WRITES, mpi_io::SPLIT_WRITES, mpi_io::NB_WRITES]),
                    0,
                    0,
                ),
                read_time: float(mpi_io::F_READ_TIME),
                write_time: float(mpi_io::F_WRITE_TIME),
                metadata_time: float(mpi_io::F_META_TIME),
                small_reads: small(mpi_io::SIZE_READ_AGG_0_100),
                small_writes: small(mpi_io::SIZE_WRITE_AGG_0_100),
                max_offset: 0,
                processes: 0,
                shared: false,
            },
            Layer::Stdio => Counts {
                opens: integer(stdio::OPENS),
                metadata_calls: sum(&[stdio::OPENS, stdio::SEEKS, stdio::FLUSHES]),
                bytes_read: integer(stdio::BYTES_READ),
                bytes_written: integer(stdio::BYTES_WRITTEN),
                reads: pattern(integer(stdio::READS), 0, 0),
                writes: pattern(integer(stdio::WRITES), 0, 0),
                read_time: float(stdio::F_READ_TIME),
                write_time: float(stdio::F_WRITE_TIME),
                metadata_time: float(stdio::F_META_TIME),
                small_reads: 0,
                small_writes: 0,
                max_offset: integer(stdio::MAX_BYTE_READ).max(integer(stdio::MAX_BYTE_WRITTEN)),
                processes: 0,
                shared: false,
            },
            Layer::Dfs => Counts {
                opens: sum(&[dfs::OPENS, dfs::GLOBAL_OPENS]),
                metadata_calls: sum(&[
                    dfs::OPENS,
                    dfs::GLOBAL_OPENS,
                    dfs::LOOKUPS,
                    dfs::GET_SIZES,
                    dfs::PUNCHES,
                    dfs::REMOVES,
                    dfs::STATS,
                ]),
                bytes_read: integer(dfs::BYTES_READ),
                bytes_written: integer(dfs::BYTES_WRITTEN),
                // Calls that do not wait are counted among the others too.
                reads: pattern(sum(&[dfs::READS, dfs::READXS]), 0, 0),
                writes: pattern(sum(&[dfs::WRITES, dfs::WRITEXS]), 0, 0),
                read_time: float(dfs::F_READ_TIME),
                write_time: float(dfs::F_WRITE_TIME),
                metadata_time: float(dfs::F_META_TIME),
                small_reads: small(dfs::SIZE_READ_0_100),
                small_writes: small(dfs::SIZE_WRITE_0_100),
                max_offset: 0,
                processes: 0,
                shared: false,
            },
        }
    }

    fn extend(&mut self, other: &Counts) {
        self.opens = self.opens.saturating_add(other.opens);
        self.metadata_calls = self.metadata_calls.saturating_add(other.metadata_calls);
        self.bytes_read = self.bytes_read.saturating_add(other.bytes_read);
        self.bytes_written = self.bytes_written.saturating_add(other.bytes_written);
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.read_time += other.read_time;
        self.write_time += other.write_time;
        self.metadata_time += other.metadata_time;
        self.small_reads = self.small_reads.saturating_add(other.small_reads);
        self.small_writes = self.small_writes.saturating_add(other.small_writes);
        self.max_offset = self.max_offset.max(other.max_offset);
    }
}
