//! How a process leaves its records in its two files, shared by the library that writes them and the crate that reads
//! them: plain 64-bit words in the byte order of the machine, found by position.
//!
//! `<process>-<start>.files`: one page of header, then entries of whole 64-byte units. `<process>-<start>.segments`: five
//! words a read or write, only while tracing; these are not counted in the entries.

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
    pub const LAYOUT: u64 = 2;
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

    // What a read touches lies together: a line of the cache for all calls, three for reads, three for writes, one for
    // sizes.
    positions! {
        // Kind, and units of the whole entry above bit 32. Written last: 0 is an entry that was not finished.
        KIND LOCK NAME_LENGTH FILE_ALIGNMENT
        // Which call was last: 1 a read, 2 a write.
        LAST_OPERATION
        MEMORY_NOT_ALIGNED FILE_NOT_ALIGNED RW_SWITCHES
        // Of reads; those of writes follow at a distance.
        CALLS BYTES MAX_BYTE CONSECUTIVE SEQUENTIAL TIME MAX_TIME LAST_BYTE
        LAST_END FIRST_START MAX_TIME_SIZE
        SIZES_AT
    }
    /// How far the words of writes are behind those of reads.
    pub const WAY: usize = 24;
    pub const WRITE_CALLS: usize = CALLS + WAY;
    pub const WRITE_BYTES: usize = BYTES + WAY;
    pub const WRITE_MAX_BYTE: usize = MAX_BYTE + WAY;
    pub const WRITE_CONSECUTIVE: usize = CONSECUTIVE + WAY;
    pub const WRITE_SEQUENTIAL: usize = SEQUENTIAL + WAY;
    pub const WRITE_TIME: usize = TIME + WAY;
    pub const WRITE_MAX_TIME: usize = MAX_TIME + WAY;
    pub const WRITE_LAST_BYTE: usize = LAST_BYTE + WAY;
    pub const WRITE_LAST_END: usize = LAST_END + WAY;
    pub const WRITE_FIRST_START: usize = FIRST_START + WAY;
    pub const WRITE_MAX_TIME_SIZE: usize = MAX_TIME_SIZE + WAY;
    pub const WRITE_SIZES_AT: usize = SIZES_AT + WAY;
    pub const ACCESSES_AT: usize = CALLS + 2 * WAY;
    pub const STRIDES_AT: usize = ACCESSES_AT + 2 * COMMON;

    mod rare {
        positions! {
            OPENS FILENOS DUPS SEEKS STATS MMAPS FSYNCS FDSYNCS RENAME_SOURCES RENAME_TARGETS FLUSHES FDOPENS MODE
            META_TIME OPEN_START OPEN_END CLOSE_START CLOSE_END
            COUNT
        }
    }
    const RARE_AT: usize = STRIDES_AT + 2 * COMMON;
    pub const OPENS: usize = RARE_AT + rare::OPENS;
    pub const FILENOS: usize = RARE_AT + rare::FILENOS;
    pub const DUPS: usize = RARE_AT + rare::DUPS;
    pub const SEEKS: usize = RARE_AT + rare::SEEKS;
    pub const STATS: usize = RARE_AT + rare::STATS;
    pub const MMAPS: usize = RARE_AT + rare::MMAPS;
    pub const FSYNCS: usize = RARE_AT + rare::FSYNCS;
    pub const FDSYNCS: usize = RARE_AT + rare::FDSYNCS;
    pub const RENAME_SOURCES: usize = RARE_AT + rare::RENAME_SOURCES;
    pub const RENAME_TARGETS: usize = RARE_AT + rare::RENAME_TARGETS;
    pub const FLUSHES: usize = RARE_AT + rare::FLUSHES;
    pub const FDOPENS: usize = RARE_AT + rare::FDOPENS;
    pub const MODE: usize = RARE_AT + rare::MODE;
    pub const META_TIME: usize = RARE_AT + rare::META_TIME;
    pub const OPEN_START: usize = RARE_AT + rare::OPEN_START;
    pub const OPEN_END: usize = RARE_AT + rare::OPEN_END;
    pub const CLOSE_START: usize = RARE_AT + rare::CLOSE_START;
    pub const CLOSE_END: usize = RARE_AT + rare::CLOSE_END;
    pub const WORDS: usize = RARE_AT + rare::COUNT;
}

/// Words of a segment.
pub mod segment {
    positions! {
        // Unit of the entry; bits for a write and for memory that was not aligned; above them, which thread.
        ENTRY OFFSET LENGTH START
        // Written last: 0 is a segment that was not finished.
        END
        WORDS
    }
    pub const WRITE: u64 = 1 << 32;
    pub const MISALIGNED: u64 = 1 << 33;
    pub const THREAD_AT: u32 = 34;
    pub const BYTES: usize = WORDS * 8;
}
