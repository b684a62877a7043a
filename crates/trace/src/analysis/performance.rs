//! The performance figures of `darshan-parser --perf`, for a layer: what the slowest rank took, and bytes over that.

use std::collections::HashMap;

use super::files::{Counts, FileTable};
use super::layer::Layer;
use crate::darshan::Record;
use crate::darshan::counters::{dfs, mpi_io, posix, stdio};

/// Files of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Category {
    pub files: u64,
    pub bytes: i64,
    pub max_offset: i64,
}

impl Category {
    fn add(&mut self, counts: &Counts) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(counts.bytes_read).saturating_add(counts.bytes_written);
        self.max_offset = self.max_offset.max(counts.max_offset);
    }
}

/// Times are seconds.
#[derive(Debug, Clone, Default)]
pub struct Performance {
    /// Time of each rank in its own files: metadata, reading and writing.
    own: HashMap<i64, (f64, f64)>,
    /// Over shared files: the time of the slowest rank of each.
    pub shared_time: f64,
    pub total: Category,
    pub read_only: Category,
    pub write_only: Category,
    pub read_write: Category,
    /// Of one process.
    pub unique: Category,
    /// Of several or all processes.
    pub shared: Category,
}

impl Performance {
    pub(super) fn add(&mut self, layer: Layer, record: &Record, rank: i64) {
        if record.is_shared() {
            let index = match layer {
                Layer::Posix => posix::F_SLOWEST_RANK_TIME,
                Layer::MpiIo => mpi_io::F_SLOWEST_RANK_TIME,
                Layer::Stdio => stdio::F_SLOWEST_RANK_TIME,
                Layer::Dfs => dfs::F_SLOWEST_RANK_TIME,
            };
            self.shared_time += record.floats.get(index).copied().filter(|time| *time > 0.0).unwrap_or(0.0);
            return;
        }
        let counts = Counts::of(layer, record);
        let (metadata, transfer) = self.own.entry(rank).or_default();
        *metadata += counts.metadata_time;
        *transfer += counts.read_time + counts.write_time;
    }

    pub(super) fn finish(&mut self, layer: Layer, files: &FileTable) {
        for counts in files.rows.values().filter_map(|row| row.layer(layer)) {
            self.total.add(counts);
            match (counts.bytes_read > 0, counts.bytes_written > 0) {
                (true, false) => self.read_only.add(counts),
                (false, true) => self.write_only.add(counts),
                (true, true) => self.read_write.add(counts),
                (false, false) => {}
            }
            if counts.shared || counts.processes > 1 {
                self.shared.add(counts);
            } else {
                self.unique.add(counts);
            }
        }
    }

    /// The rank that took longest for its own files, with its time in metadata and in transfers.
    pub fn slowest_rank(&self) -> Option<(i64, f64, f64)> {
        let all = |(metadata, transfer): (f64, f64)| metadata + transfer;
        self.own
            .iter()
            .max_by(|a, b| all(*a.1).total_cmp(&all(*b.1)).then(b.0.cmp(a.0)))
            .map(|(rank, (metadata, transfer))| (*rank, *metadata, *transfer))
    }

    /// Time of the slowest rank, in its own files and in those of all.
    pub fn time(&self) -> f64 {
        self.slowest_rank().map_or(0.0, |(_, metadata, transfer)| metadata + transfer) + self.shared_time
    }

    /// MiB a second over [`Performance::time`].
    pub fn bandwidth(&self) -> Option<f64> {
        let time = self.time();
        (time > 0.0).then(|| self.total.bytes as f64 / f64::from(1 << 20) / time)
    }
}
