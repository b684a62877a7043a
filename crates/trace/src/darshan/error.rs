//! What can be wrong with a log, in words that say what to do. Does not know how much of the log was still read: see
//! [`Damage`], which names the part.

/// Why a log, or a part of it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the log: {0}")]
    Io(#[from] std::io::Error),
    #[error(
        "this log was written by Darshan 2.x or older, whose format is another one; read it with the tools of Darshan \
         2.x, or trace the program again with Darshan 3"
    )]
    Old,
    #[error("this log has format version {0}, which is newer than what can be read here (3.x); a newer Tulpar may do")]
    Newer(String),
    #[error("this is not a Darshan log: {0}")]
    NotALog(&'static str),
    #[error("the log ends in the middle: {0}; was the job killed while it wrote, or the copy cut short?")]
    Truncated(&'static str),
    #[error("the log is compressed by a method that is not known here (number {0}); known are zlib, bzip2 and none")]
    UnknownCompression(u8),
    #[error("the compressed data are damaged: {0}")]
    Compressed(String),
    #[error("the records have version {0}, which is not known here; a newer Tulpar may do")]
    UnknownVersion(u32),
    #[error("the data make no sense: {0}")]
    Nonsense(&'static str),
}

/// A part of a log that could not be read to its end. What came before the damage was handed on.
#[derive(Debug, thiserror::Error)]
#[error("{part}: {error}")]
pub struct Damage {
    pub part: String,
    pub error: Error,
}
