//! What a read or write adds to the words of an entry: Darshan's rules for its counters. The library counts by them as calls
//! happen, the reader of a trace counts by them afterwards. Knows neither how entries are kept nor who counts.

#![allow(dead_code, unreachable_pub)]

use crate::layout::entry;

pub const READ: usize = 0;
pub const WRITE: usize = 1;

/// The words of an entry, wherever they lie.
pub trait Words: Copy {
    fn get(self, position: usize) -> u64;
    fn set(self, position: usize, value: u64);

    #[inline(always)]
    fn add(self, position: usize, value: u64) {
        self.set(position, self.get(position).wrapping_add(value));
    }
}

/// One read or write.
#[derive(Clone, Copy)]
pub struct Transfer {
    pub offset: u64,
    pub size: u64,
    /// Whether its memory began at no multiple of eight.
    pub misaligned: bool,
}

/// When it was, in ticks of the clock of the records.
#[derive(Clone, Copy)]
pub struct Time {
    pub start: u64,
    pub end: u64,
}

/// A read or write of a descriptor.
#[inline(always)]
pub fn transfer<const WAY: usize>(words: impl Words, transfer: &Transfer) {
    let (offset, size) = (transfer.offset, transfer.size);
    words.add(entry::MEMORY_NOT_ALIGNED, u64::from(transfer.misaligned));
    let alignment = words.get(entry::FILE_ALIGNMENT);
    words.add(entry::FILE_NOT_ALIGNED, u64::from(offset & alignment.wrapping_sub(1) != 0));
    let last = words.get(entry::LAST_BYTE + WAY * entry::WAY);
    words.add(entry::SEQUENTIAL + WAY * entry::WAY, u64::from(offset > last));
    words.add(entry::CONSECUTIVE + WAY * entry::WAY, u64::from(offset == last + 1));
    if offset > last + 1 && last != 0 {
        common(words, entry::STRIDES_AT, offset - last - 1);
    }
    let this = WAY as u64 + 1;
    let before = words.get(entry::LAST_OPERATION);
    if before != this {
        words.add(entry::RW_SWITCHES, u64::from(before != 0));
        words.set(entry::LAST_OPERATION, this);
    }
    words.add(entry::SIZES_AT + WAY * entry::WAY + bucket(size), 1);
    common(words, entry::ACCESSES_AT, size);
    any::<WAY>(words, transfer);
}

/// What reads and writes of descriptors and of streams have in common.
#[inline(always)]
pub fn any<const WAY: usize>(words: impl Words, transfer: &Transfer) {
    words.add(entry::CALLS + WAY * entry::WAY, 1);
    words.add(entry::BYTES + WAY * entry::WAY, transfer.size);
    let last = transfer.offset.wrapping_add(transfer.size).saturating_sub(1);
    if last > words.get(entry::MAX_BYTE + WAY * entry::WAY) {
        words.set(entry::MAX_BYTE + WAY * entry::WAY, last);
    }
    words.set(entry::LAST_BYTE + WAY * entry::WAY, last);
}

/// How long it took.
#[inline(always)]
pub fn time<const WAY: usize>(words: impl Words, size: u64, time: &Time) {
    let took = time.end.saturating_sub(time.start);
    words.add(entry::TIME + WAY * entry::WAY, took);
    if took > words.get(entry::MAX_TIME + WAY * entry::WAY) {
        words.set(entry::MAX_TIME + WAY * entry::WAY, took);
        words.set(entry::MAX_TIME_SIZE + WAY * entry::WAY, size);
    }
    if words.get(entry::FIRST_START + WAY * entry::WAY) == 0 {
        words.set(entry::FIRST_START + WAY * entry::WAY, time.start);
    }
    words.set(entry::LAST_END + WAY * entry::WAY, time.end);
}

/// Upper bounds of the buckets: 100, 1 K, 10 K, 100 K, 1 M, 4 M, 10 M, 100 M, 1 G.
#[inline(always)]
fn bucket(size: u64) -> usize {
    if size <= 10_240 {
        return usize::from(size > 100) + usize::from(size > 1024);
    }
    const LARGER: [u64; 6] = [102_400, 1_048_576, 4_194_304, 10_485_760, 104_857_600, 1_073_741_824];
    LARGER.iter().fold(3, |bucket, bound| bucket + usize::from(size > *bound))
}

/// Counts a value among the few that are counted. One that was seen once only makes room for a new one.
#[inline(always)]
fn common(words: impl Words, at: usize, value: u64) {
    if words.get(at) == value && value != 0 {
        return words.add(at + 1, 1);
    }
    uncommon(words, at, value);
}

#[inline(never)]
fn uncommon(words: impl Words, at: usize, value: u64) {
    if value == 0 {
        return;
    }
    let mut free = None;
    for place in (at..at + 2 * entry::COMMON).step_by(2) {
        let count = words.get(place + 1);
        if count != 0 && words.get(place) == value {
            return words.set(place + 1, count + 1);
        }
        if count == 0 && free.is_none_or(|(_, count)| count > 0) || count == 1 && free.is_none() {
            free = Some((place, count));
        }
    }
    if let Some((place, _)) = free {
        words.set(place, value);
        words.set(place + 1, 1);
    }
}
