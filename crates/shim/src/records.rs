//! From the counters of one process about one file to a record of a Darshan log.

use std::collections::BTreeMap;

use tulpar_trace::darshan::counters::{posix, stdio};
use tulpar_trace::darshan::{Module, Record};

use crate::layout::entry;

pub(crate) type Words = [u64; entry::WORDS];

/// Turns ticks of one process into seconds since the start of the recording.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    pub(crate) ticks: u64,
    pub(crate) seconds: f64,
    pub(crate) seconds_per_tick: f64,
}

impl Clock {
    pub(crate) fn seconds(&self, ticks: u64) -> f64 {
        if ticks == 0 {
            return 0.0;
        }
        let since = ticks.wrapping_sub(self.ticks) as i64 as f64;
        (self.seconds + since * self.seconds_per_tick).max(0.0)
    }
}

/// Adds an entry to another of the same file.
pub(crate) fn add(held: &mut Words, more: &Words) {
    const LARGEST: [usize; 8] = [
        entry::MAX_BYTE,
        entry::WRITE_MAX_BYTE,
        entry::LAST_END,
        entry::WRITE_LAST_END,
        entry::OPEN_END,
        entry::CLOSE_END,
        entry::MODE,
        entry::FILE_ALIGNMENT,
    ];
    const FIRST: [usize; 4] = [entry::FIRST_START, entry::WRITE_FIRST_START, entry::OPEN_START, entry::CLOSE_START];
    for (time, size) in [(entry::MAX_TIME, entry::MAX_TIME_SIZE), (entry::WRITE_MAX_TIME, entry::WRITE_MAX_TIME_SIZE)] {
        if more[time] > held[time] {
            (held[time], held[size]) = (more[time], more[size]);
        }
    }
    for at in [entry::ACCESSES_AT, entry::STRIDES_AT] {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for words in [&*held, more] {
            for (value, count) in common(words, at) {
                *counts.entry(value).or_default() += count;
            }
        }
        let mut counts: Vec<(u64, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts.resize(entry::COMMON, (0, 0));
        for (index, (value, count)) in counts.into_iter().take(entry::COMMON).enumerate() {
            (held[at + 2 * index], held[at + 2 * index + 1]) = (value, count);
        }
    }
    // What belongs to an entry and not to its file, and what was added above.
    const APART: [usize; 6] =
        [entry::KIND, entry::LOCK, entry::NAME_LENGTH, entry::LAST_OPERATION, entry::LAST_BYTE, entry::WRITE_LAST_BYTE];
    for position in (0..entry::WORDS).filter(|position| {
        !APART.contains(position) && !(entry::ACCESSES_AT..entry::STRIDES_AT + 2 * entry::COMMON).contains(position)
    }) {
        let (old, new) = (held[position], more[position]);
        held[position] = if LARGEST.contains(&position) {
            old.max(new)
        } else if FIRST.contains(&position) {
            if old == 0 || new == 0 { old.max(new) } else { old.min(new) }
        } else if [entry::MAX_TIME, entry::WRITE_MAX_TIME, entry::MAX_TIME_SIZE, entry::WRITE_MAX_TIME_SIZE]
            .contains(&position)
        {
            old
        } else {
            old.wrapping_add(new)
        };
    }
}

fn common(words: &Words, at: usize) -> impl Iterator<Item = (u64, u64)> {
    (0..entry::COMMON)
        .map(move |index| (words[at + 2 * index], words[at + 2 * index + 1]))
        .filter(|(_, count)| *count > 0)
}

pub(crate) fn posix_record(id: u64, rank: i64, words: &Words, clock: &Clock) -> Record {
    const MEMORY_ALIGNMENT: i64 = 8;
    const SAME: [(usize, usize); 29] = [
        (posix::OPENS, entry::OPENS),
        (posix::FILENOS, entry::FILENOS),
        (posix::DUPS, entry::DUPS),
        (posix::READS, entry::CALLS),
        (posix::WRITES, entry::WRITE_CALLS),
        (posix::SEEKS, entry::SEEKS),
        (posix::STATS, entry::STATS),
        (posix::MMAPS, entry::MMAPS),
        (posix::FSYNCS, entry::FSYNCS),
        (posix::FDSYNCS, entry::FDSYNCS),
        (posix::RENAME_SOURCES, entry::RENAME_SOURCES),
        (posix::RENAME_TARGETS, entry::RENAME_TARGETS),
        (posix::MODE, entry::MODE),
        (posix::BYTES_READ, entry::BYTES),
        (posix::BYTES_WRITTEN, entry::WRITE_BYTES),
        (posix::MAX_BYTE_READ, entry::MAX_BYTE),
        (posix::MAX_BYTE_WRITTEN, entry::WRITE_MAX_BYTE),
        (posix::CONSEC_READS, entry::CONSECUTIVE),
        (posix::CONSEC_WRITES, entry::WRITE_CONSECUTIVE),
        (posix::SEQ_READS, entry::SEQUENTIAL),
        (posix::SEQ_WRITES, entry::WRITE_SEQUENTIAL),
        (posix::RW_SWITCHES, entry::RW_SWITCHES),
        (posix::MEM_NOT_ALIGNED, entry::MEMORY_NOT_ALIGNED),
        (posix::FILE_NOT_ALIGNED, entry::FILE_NOT_ALIGNED),
        (posix::FILE_ALIGNMENT, entry::FILE_ALIGNMENT),
        (posix::MAX_READ_TIME_SIZE, entry::MAX_TIME_SIZE),
        (posix::MAX_WRITE_TIME_SIZE, entry::WRITE_MAX_TIME_SIZE),
        (posix::SIZE_READ_0_100, entry::SIZES_AT),
        (posix::SIZE_WRITE_0_100, entry::WRITE_SIZES_AT),
    ];
    let mut integers = vec![0; posix::INTEGERS.len()];
    for (to, from) in SAME {
        integers[to] = words[from] as i64;
    }
    for bucket in 0..entry::BUCKETS {
        integers[posix::SIZE_READ_0_100 + bucket] = words[entry::SIZES_AT + bucket] as i64;
        integers[posix::SIZE_WRITE_0_100 + bucket] = words[entry::WRITE_SIZES_AT + bucket] as i64;
    }
    integers[posix::MEM_ALIGNMENT] = MEMORY_ALIGNMENT;
    for (at, values, counts) in [
        (entry::ACCESSES_AT, posix::ACCESS1_ACCESS, posix::ACCESS1_COUNT),
        (entry::STRIDES_AT, posix::STRIDE1_STRIDE, posix::STRIDE1_COUNT),
    ] {
        let mut found: Vec<(u64, u64)> = common(words, at).collect();
        found.sort_by_key(|(value, count)| std::cmp::Reverse((*count, *value)));
        for (index, (value, count)) in found.into_iter().enumerate() {
            integers[values + index] = value as i64;
            integers[counts + index] = count as i64;
        }
    }
    let mut floats = vec![0.0; posix::FLOATS.len()];
    for (to, from) in [
        (posix::F_OPEN_START_TIMESTAMP, entry::OPEN_START),
        (posix::F_READ_START_TIMESTAMP, entry::FIRST_START),
        (posix::F_WRITE_START_TIMESTAMP, entry::WRITE_FIRST_START),
        (posix::F_CLOSE_START_TIMESTAMP, entry::CLOSE_START),
        (posix::F_OPEN_END_TIMESTAMP, entry::OPEN_END),
        (posix::F_READ_END_TIMESTAMP, entry::LAST_END),
        (posix::F_WRITE_END_TIMESTAMP, entry::WRITE_LAST_END),
        (posix::F_CLOSE_END_TIMESTAMP, entry::CLOSE_END),
    ] {
        floats[to] = clock.seconds(words[from]);
    }
    for (to, from) in [
        (posix::F_READ_TIME, entry::TIME),
        (posix::F_WRITE_TIME, entry::WRITE_TIME),
        (posix::F_META_TIME, entry::META_TIME),
        (posix::F_MAX_READ_TIME, entry::MAX_TIME),
        (posix::F_MAX_WRITE_TIME, entry::WRITE_MAX_TIME),
    ] {
        floats[to] = words[from] as f64 * clock.seconds_per_tick;
    }
    record(Module::Posix, id, rank, integers, floats)
}

pub(crate) fn stdio_record(id: u64, rank: i64, words: &Words, clock: &Clock) -> Record {
    let mut integers = vec![0; stdio::INTEGERS.len()];
    for (to, from) in [
        (stdio::OPENS, entry::OPENS),
        (stdio::FDOPENS, entry::FDOPENS),
        (stdio::READS, entry::CALLS),
        (stdio::WRITES, entry::WRITE_CALLS),
        (stdio::SEEKS, entry::SEEKS),
        (stdio::FLUSHES, entry::FLUSHES),
        (stdio::BYTES_WRITTEN, entry::WRITE_BYTES),
        (stdio::BYTES_READ, entry::BYTES),
        (stdio::MAX_BYTE_READ, entry::MAX_BYTE),
        (stdio::MAX_BYTE_WRITTEN, entry::WRITE_MAX_BYTE),
    ] {
        integers[to] = words[from] as i64;
    }
    let mut floats = vec![0.0; stdio::FLOATS.len()];
    for (to, from) in [
        (stdio::F_META_TIME, entry::META_TIME),
        (stdio::F_WRITE_TIME, entry::WRITE_TIME),
        (stdio::F_READ_TIME, entry::TIME),
    ] {
        floats[to] = words[from] as f64 * clock.seconds_per_tick;
    }
    for (to, from) in [
        (stdio::F_OPEN_START_TIMESTAMP, entry::OPEN_START),
        (stdio::F_CLOSE_START_TIMESTAMP, entry::CLOSE_START),
        (stdio::F_WRITE_START_TIMESTAMP, entry::WRITE_FIRST_START),
        (stdio::F_READ_START_TIMESTAMP, entry::FIRST_START),
        (stdio::F_OPEN_END_TIMESTAMP, entry::OPEN_END),
        (stdio::F_CLOSE_END_TIMESTAMP, entry::CLOSE_END),
        (stdio::F_WRITE_END_TIMESTAMP, entry::WRITE_LAST_END),
        (stdio::F_READ_END_TIMESTAMP, entry::LAST_END),
    ] {
        floats[to] = clock.seconds(words[from]);
    }
    record(Module::Stdio, id, rank, integers, floats)
}

fn record(module: Module, id: u64, rank: i64, integers: Vec<i64>, floats: Vec<f64>) -> Record {
    Record { module, id, rank, file: None, integers, floats, servers: Vec::new(), trailer: Vec::new() }
}
