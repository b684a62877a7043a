//! How a process leaves its records in its two files, shared by the library that writes them and the crate that reads
//! them: plain 64-bit words in the byte order of the machine, found by position.
//!
//! `<process>-<start>.files`: one page of header, then entries of whole 64-byte units. `<process>-<start>.segments`: five
//! words a read or write, only while tracing.

#![allow(dead_code, unreachable_pub)]

/// Gives each name its position.
macro_rules! positions {
    ($($name:ident)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(usize)]
        enum Position { $($name),* }
        $(pub const $name: usize = Position::$name as usize;)*
    };
}

pub const UNIT: usize = 64;
pub const FILES: &str = "files";
pub const SEGMENTS: &str = "segments";

/// Words of the first page of a `.files` file.
pub mod header {
    pub const MAGIC_NUMBER: u64 = u64::from_le_bytes(*b"tulpario");
    pub const LAYOUT: u64 = 1;
    pub const BYTES: usize = 4096;
    /// NUL-terminated texts, as bytes from the start.
    pub const HOST_AT: usize = 512;
    pub const HOST_BYTES: usize = 256;
    pub const COMMAND_AT: usize = 1024;
    pub const COMMAND_BYTES: usize = 3072;

    positions! {
        MAGIC VERSION PROCESS PARENT
        // Where the clock of the records stood when both others were read, at the start and lately: nanoseconds.
        START_TICKS START_MONOTONIC START_REAL LATE_TICKS LATE_MONOTONIC
        // 0 where the process was killed.
        END_TICKS
        FILES_USED SEGMENTS_USED
        // What could not be kept: entries, segments, calls.
        FILES_LOST SEGMENTS_LOST CALLS_LOST
        // Opens of files of the system, which are left out.
        SYSTEM_OPENS
        TRACING
        WORDS
    }
}

/// Words of an entry. The name follows them.
pub mod entry {
    pub const POSIX: u64 = 1;
    pub const STDIO: u64 = 2;
    /// A program that was started and cannot be seen into; the name says which.
    pub const UNSEEN: u64 = 3;

    /// Distinct request sizes and strides that are counted, each as a value and a count.
    pub const COMMON: usize = 4;
    pub const BUCKETS: usize = 10;

    positions! {
        // Kind, and units of the whole entry above bit 32. Written last: 0 is an entry that was not finished.
        KIND LOCK NAME_LENGTH
        OPENS FILENOS DUPS SEEKS STATS MMAPS FSYNCS FDSYNCS RENAME_SOURCES RENAME_TARGETS
        FLUSHES FDOPENS
        MODE MEMORY_NOT_ALIGNED FILE_NOT_ALIGNED FILE_ALIGNMENT RW_SWITCHES
        // Reads, then writes.
        CALLS WRITE_CALLS
        BYTES WRITE_BYTES
        MAX_BYTE WRITE_MAX_BYTE
        CONSECUTIVE WRITE_CONSECUTIVE
        SEQUENTIAL WRITE_SEQUENTIAL
        TIME WRITE_TIME
        MAX_TIME WRITE_MAX_TIME
        MAX_TIME_SIZE WRITE_MAX_TIME_SIZE
        FIRST_START WRITE_FIRST_START
        LAST_END WRITE_LAST_END
        META_TIME OPEN_START OPEN_END CLOSE_START CLOSE_END
        // Of the process, not of the file: where the last read and write ended, and which was last (1, 2).
        LAST_BYTE WRITE_LAST_BYTE LAST_OPERATION
        SIZES_AT
    }
    pub const WRITE_SIZES_AT: usize = SIZES_AT + BUCKETS;
    pub const ACCESSES_AT: usize = WRITE_SIZES_AT + BUCKETS;
    pub const STRIDES_AT: usize = ACCESSES_AT + 2 * COMMON;
    pub const WORDS: usize = STRIDES_AT + 2 * COMMON;
}

/// Words of a segment.
pub mod segment {
    positions! {
        // Unit of the entry; bit 32 is set for a write; above it, which thread.
        ENTRY OFFSET LENGTH START
        // Written last: 0 is a segment that was not finished.
        END
        WORDS
    }
    pub const WRITE: u64 = 1 << 32;
    pub const BYTES: usize = WORDS * 8;
}
