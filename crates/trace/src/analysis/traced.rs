//! What the traces of all ranks say of one file: which bytes, by how many ranks, when.

use super::coverage::Coverage;

/// Reads and writes of one file as traced (POSIX).
#[derive(Debug, Clone, PartialEq)]
pub struct FileTrace {
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub reads: u64,
    pub writes: u64,
    /// Sums of durations.
    pub read_seconds: f64,
    pub write_seconds: f64,
    /// Bytes read by anyone, each once.
    pub read: Coverage,
    /// Bytes read by each rank, each once, summed over ranks.
    pub read_by_rank: f64,
    /// Ranks that read it.
    pub readers: u32,
    /// Seconds since the start of the job.
    pub first: f64,
    pub last: f64,
}

impl Default for FileTrace {
    fn default() -> FileTrace {
        FileTrace {
            bytes_read: 0,
            bytes_written: 0,
            reads: 0,
            writes: 0,
            read_seconds: 0.0,
            write_seconds: 0.0,
            read: Coverage::default(),
            read_by_rank: 0.0,
            readers: 0,
            first: f64::INFINITY,
            last: 0.0,
        }
    }
}

impl FileTrace {
    /// How often a byte that was read at all was read.
    pub fn times_read(&mut self) -> Option<f64> {
        let unique = self.read.length();
        (unique > 0.0).then(|| self.bytes_read as f64 / unique)
    }

    /// How many ranks read a byte that was read at all.
    pub fn readers_per_byte(&mut self) -> Option<f64> {
        let unique = self.read.length();
        (unique > 0.0).then(|| self.read_by_rank / unique)
    }
}
