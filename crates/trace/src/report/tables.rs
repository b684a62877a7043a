//! Files in figures, and groups of them.

use serde::Serialize;

use crate::analysis::{Analysis, Counts, FileRow};

/// Files beyond this are in the totals only.
const LISTED: usize = 100;

#[derive(Debug, Clone, Serialize)]
pub struct FileReport {
    pub name: String,
    pub bytes_read: i64,
    pub bytes_written: i64,
    pub reads: u64,
    pub writes: u64,
    pub opens: i64,
    pub metadata_calls: i64,
    /// Sums over ranks and threads, in seconds.
    pub read_time: f64,
    pub write_time: f64,
    pub metadata_time: f64,
    pub processes: i64,
}

impl FileReport {
    fn of(id: u64, row: &FileRow) -> FileReport {
        let all: Vec<&Counts> = [&row.posix, &row.mpi_io, &row.stdio].into_iter().flatten().collect();
        // MPI-IO's requests pass through POSIX: those of POSIX stand for both.
        let own: Vec<&Counts> = match (&row.posix, &row.stdio) {
            (None, None) => all.clone(),
            (posix, stdio) => posix.iter().chain(stdio).collect(),
        };
        let sum = |value: fn(&Counts) -> i64| own.iter().fold(0i64, |sum, counts| sum.saturating_add(value(counts)));
        let time = |value: fn(&Counts) -> f64| own.iter().map(|counts| value(counts)).sum::<f64>();
        let (bytes_read, bytes_written) = row.bytes();
        FileReport {
            name: row.name.clone().unwrap_or_else(|| format!("(record {id})")),
            bytes_read,
            bytes_written,
            reads: own.iter().map(|counts| counts.reads.accesses).sum(),
            writes: own.iter().map(|counts| counts.writes.accesses).sum(),
            opens: sum(|counts| counts.opens),
            metadata_calls: sum(|counts| counts.metadata_calls),
            read_time: time(|counts| counts.read_time),
            write_time: time(|counts| counts.write_time),
            metadata_time: time(|counts| counts.metadata_time),
            processes: all.iter().map(|counts| counts.processes).max().unwrap_or(0),
        }
    }

    /// Seconds in any call, summed over ranks and threads.
    pub fn time(&self) -> f64 {
        self.read_time + self.write_time + self.metadata_time
    }
}

pub(super) fn files(analysis: &Analysis) -> Vec<FileReport> {
    let mut files: Vec<FileReport> = analysis.files.rows.iter().map(|(id, row)| FileReport::of(*id, row)).collect();
    files.sort_by(|a, b| b.time().total_cmp(&a.time()).then_with(|| a.name.cmp(&b.name)));
    files.truncate(LISTED);
    files
}
