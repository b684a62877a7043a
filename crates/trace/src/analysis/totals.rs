//! Counters that are of interest only as sums over the job: sizes without a trace, alignment, kinds of MPI-IO calls, HDF5
//! datasets, and how evenly ranks share the files that all of them use.

use serde::Serialize;

use crate::darshan::Record;
use crate::darshan::counters::{hdf5_dataset, mpi_io, posix};

/// Sums over all records.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Totals {
    /// POSIX requests by size, in Darshan's buckets.
    pub read_sizes: [u64; 10],
    pub write_sizes: [u64; 10],
    /// POSIX requests that begin at no multiple of the file system's block, or of the memory's.
    pub file_not_aligned: u64,
    pub memory_not_aligned: u64,
    pub stats: u64,
    pub syncs: u64,
    pub sync_files: u64,
    pub independent_reads: u64,
    pub collective_reads: u64,
    pub independent_writes: u64,
    pub collective_writes: u64,
    /// Bytes that programs asked of HDF5 datasets.
    pub dataset_bytes_read: i64,
    pub dataset_reads: u64,
    /// The shared POSIX file whose slowest rank lost most against its fastest: record, slowest rank, seconds of both.
    pub straggler: Option<Straggler>,
    /// POSIX requests to files that all ranks share, and those of at most 1 MiB.
    pub shared_reads: u64,
    pub shared_writes: u64,
    pub shared_small_reads: u64,
    pub shared_small_writes: u64,
    /// Seconds in them, over all ranks.
    pub shared_time: f64,
    /// The POSIX file of which ranks moved the most different amounts: the slowest and the fastest of a shared record, or
    /// those that moved most and least where each rank has one.
    pub uneven: Option<Uneven>,
    pub uneven_name: Option<String>,
}

/// Bytes of two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Uneven {
    pub file: u64,
    pub most: u64,
    pub least: u64,
}

impl Uneven {
    pub(crate) fn apart(&self) -> u64 {
        self.most.abs_diff(self.least)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Straggler {
    pub file: u64,
    pub rank: i64,
    pub slowest: f64,
    pub fastest: f64,
}

impl Totals {
    pub(super) fn posix(&mut self, record: &Record) {
        let integer = |index: usize| record.integers.get(index).copied().unwrap_or(0).max(0).cast_unsigned();
        for bucket in 0..10 {
            self.read_sizes[bucket] = self.read_sizes[bucket].saturating_add(integer(posix::SIZE_READ_0_100 + bucket));
            self.write_sizes[bucket] =
                self.write_sizes[bucket].saturating_add(integer(posix::SIZE_WRITE_0_100 + bucket));
        }
        self.file_not_aligned = self.file_not_aligned.saturating_add(integer(posix::FILE_NOT_ALIGNED));
        self.memory_not_aligned = self.memory_not_aligned.saturating_add(integer(posix::MEM_NOT_ALIGNED));
        self.stats = self.stats.saturating_add(integer(posix::STATS));
        let syncs = integer(posix::FSYNCS).saturating_add(integer(posix::FDSYNCS));
        self.syncs = self.syncs.saturating_add(syncs);
        self.sync_files += u64::from(syncs > 0);
        if record.is_shared() {
            let float = |index: usize| record.floats.get(index).copied().unwrap_or(0.0);
            let small = |first: usize| (first..first + 5).fold(0u64, |sum, index| sum.saturating_add(integer(index)));
            self.shared_reads = self.shared_reads.saturating_add(integer(posix::READS));
            self.shared_writes = self.shared_writes.saturating_add(integer(posix::WRITES));
            self.shared_small_reads = self.shared_small_reads.saturating_add(small(posix::SIZE_READ_0_100));
            self.shared_small_writes = self.shared_small_writes.saturating_add(small(posix::SIZE_WRITE_0_100));
            let time = |index: usize| Some(float(index)).filter(|time| *time > 0.0).unwrap_or(0.0);
            self.shared_time += time(posix::F_READ_TIME) + time(posix::F_WRITE_TIME);
            let (slow, fast) = (integer(posix::SLOWEST_RANK_BYTES), integer(posix::FASTEST_RANK_BYTES));
            if slow.abs_diff(fast) > self.uneven.as_ref().map_or(0, Uneven::apart) {
                self.uneven = Some(Uneven { file: record.id, most: slow.max(fast), least: slow.min(fast) });
            }
            let (slowest, fastest) = (float(posix::F_SLOWEST_RANK_TIME), float(posix::F_FASTEST_RANK_TIME));
            let rank = record.integers.get(posix::SLOWEST_RANK).copied().unwrap_or(-1);
            let lost = self.straggler.map_or(0.0, |known| known.slowest - known.fastest);
            if slowest.is_finite() && fastest >= 0.0 && slowest - fastest > lost {
                self.straggler = Some(Straggler { file: record.id, rank, slowest, fastest });
            }
        }
    }

    pub(super) fn mpi_io(&mut self, record: &Record) {
        let integer = |index: usize| record.integers.get(index).copied().unwrap_or(0).max(0).cast_unsigned();
        self.independent_reads = self.independent_reads.saturating_add(integer(mpi_io::INDEP_READS));
        self.collective_reads = self.collective_reads.saturating_add(integer(mpi_io::COLL_READS));
        self.independent_writes = self.independent_writes.saturating_add(integer(mpi_io::INDEP_WRITES));
        self.collective_writes = self.collective_writes.saturating_add(integer(mpi_io::COLL_WRITES));
    }

    pub(super) fn dataset(&mut self, record: &Record) {
        let integer = |index: usize| record.integers.get(index).copied().unwrap_or(0).max(0);
        self.dataset_bytes_read = self.dataset_bytes_read.saturating_add(integer(hdf5_dataset::BYTES_READ));
        self.dataset_reads = self.dataset_reads.saturating_add(integer(hdf5_dataset::READS).cast_unsigned());
    }
}
