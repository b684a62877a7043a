//! What a call adds to an entry. The rules of the counters are Darshan's.

use core::sync::atomic::Ordering;

use crate::clock::ticks;
use crate::files::{self, Descriptor, Entry, IGNORED};
use crate::layout::{entry, segment};
use crate::{active, lock, settings, store};

pub(crate) const READ: usize = 0;
pub(crate) const WRITE: usize = 1;

/// The descriptor and the unit of its entry, if its calls count.
#[inline(always)]
pub(crate) fn of_interest(number: i32) -> Option<(&'static Descriptor, u32)> {
    if !active() {
        return None;
    }
    let descriptor = files::descriptor(number)?;
    let mut unit = descriptor.posix.load(Ordering::Relaxed);
    if unit == 0 {
        unit = files::resolve(number, entry::POSIX);
    }
    (unit != IGNORED).then_some((descriptor, unit))
}

/// The same for a stream.
#[inline(always)]
pub(crate) fn stream_of_interest(number: i32) -> Option<(&'static Descriptor, u32)> {
    if !active() {
        return None;
    }
    let descriptor = files::descriptor(number)?;
    let mut unit = descriptor.stdio.load(Ordering::Relaxed);
    if unit == 0 {
        unit = files::resolve(number, entry::STDIO);
    }
    (unit != IGNORED).then_some((descriptor, unit))
}

/// One read or write of a file. `offset` is where a call says it reads; without, it goes on from where the last ended.
#[inline(always)]
pub(crate) fn transfer<const WAY: usize>(
    (descriptor, unit): (&Descriptor, u32),
    offset: Option<u64>,
    size: u64,
    buffer: usize,
    start: u64,
) {
    let end = ticks();
    let offset = offset.unwrap_or_else(|| {
        let position = descriptor.position.load(Ordering::Relaxed);
        descriptor.position.store(position + size, Ordering::Relaxed);
        position
    });
    let mut entry = Entry::at(unit);
    if !lock::acquire_quickly(entry.lock()) {
        let Some(beside) = entry.beside() else { return };
        entry = beside;
    }
    let misaligned = buffer & 7 != 0;
    entry.add(entry::MEMORY_NOT_ALIGNED, u64::from(misaligned));
    let alignment = entry.get(entry::FILE_ALIGNMENT);
    entry.add(entry::FILE_NOT_ALIGNED, u64::from(offset & alignment.wrapping_sub(1) != 0));
    let last = entry.get(entry::LAST_BYTE + WAY * entry::WAY);
    entry.add(entry::SEQUENTIAL + WAY * entry::WAY, u64::from(offset > last));
    entry.add(entry::CONSECUTIVE + WAY * entry::WAY, u64::from(offset == last + 1));
    if offset > last + 1 && last != 0 {
        common(entry, entry::STRIDES_AT, offset - last - 1);
    }
    let this = WAY as u64 + 1;
    let before = entry.get(entry::LAST_OPERATION);
    if before != this {
        entry.add(entry::RW_SWITCHES, u64::from(before != 0));
        entry.set(entry::LAST_OPERATION, this);
    }
    entry.add(entry::SIZES_AT + WAY * entry::WAY + bucket(size), 1);
    common(entry, entry::ACCESSES_AT, size);
    finish::<WAY>(entry, offset, size, start, end);
    lock::release(entry.lock());
    if settings::tracing() {
        store::trace(u64::from(unit) | WAY as u64 * segment::WRITE, offset, size, start, end);
    }
}

/// What reads and writes of descriptors and of streams have in common. The entry is locked.
#[inline(always)]
fn finish<const WAY: usize>(entry: Entry, offset: u64, size: u64, start: u64, end: u64) {
    entry.add(entry::CALLS + WAY * entry::WAY, 1);
    entry.add(entry::BYTES + WAY * entry::WAY, size);
    let last = (offset + size).saturating_sub(1);
    if last > entry.get(entry::MAX_BYTE + WAY * entry::WAY) {
        entry.set(entry::MAX_BYTE + WAY * entry::WAY, last);
    }
    entry.set(entry::LAST_BYTE + WAY * entry::WAY, last);
    let took = end.saturating_sub(start);
    entry.add(entry::TIME + WAY * entry::WAY, took);
    if took > entry.get(entry::MAX_TIME + WAY * entry::WAY) {
        entry.set(entry::MAX_TIME + WAY * entry::WAY, took);
        entry.set(entry::MAX_TIME_SIZE + WAY * entry::WAY, size);
    }
    if entry.get(entry::FIRST_START + WAY * entry::WAY) == 0 {
        entry.set(entry::FIRST_START + WAY * entry::WAY, start);
    }
    entry.set(entry::LAST_END + WAY * entry::WAY, end);
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
fn common(entry: Entry, at: usize, value: u64) {
    if entry.get(at) == value && value != 0 {
        return entry.add(at + 1, 1);
    }
    uncommon(entry, at, value);
}

#[inline(never)]
fn uncommon(entry: Entry, at: usize, value: u64) {
    if value == 0 {
        return;
    }
    let mut free = None;
    for place in (at..at + 2 * entry::COMMON).step_by(2) {
        let count = entry.get(place + 1);
        if count != 0 && entry.get(place) == value {
            return entry.set(place + 1, count + 1);
        }
        if count == 0 && free.is_none_or(|(_, count)| count > 0) || count == 1 && free.is_none() {
            free = Some((place, count));
        }
    }
    if let Some((place, _)) = free {
        entry.set(place, value);
        entry.set(place + 1, 1);
    }
}

/// One read or write of a stream.
#[inline(always)]
pub(crate) fn stream<const WAY: usize>((descriptor, unit): (&Descriptor, u32), size: u64, start: u64) {
    let end = ticks();
    let position = descriptor.position.load(Ordering::Relaxed);
    descriptor.position.store(position + size, Ordering::Relaxed);
    change(Entry::at(unit), |entry| finish::<WAY>(entry, position, size, start, end));
}

/// Does something to an entry under its lock.
#[inline(always)]
pub(crate) fn change(mut entry: Entry, change: impl FnOnce(Entry)) {
    if !lock::acquire_quickly(entry.lock()) {
        let Some(beside) = entry.beside() else { return };
        entry = beside;
    }
    change(entry);
    lock::release(entry.lock());
}

/// Counts a call that moves no data, with its time.
pub(crate) fn metadata(entry: Entry, position: usize, start: u64) {
    let end = ticks();
    change(entry, |entry| {
        entry.add(position, 1);
        entry.add(entry::META_TIME, end.saturating_sub(start));
    });
}

pub(crate) fn open(entry: Entry, mode: u64, position: usize, start: u64) {
    let end = ticks();
    change(entry, |entry| {
        entry.add(position, 1);
        entry.add(entry::META_TIME, end.saturating_sub(start));
        entry.set(entry::MODE, mode);
        if entry.get(entry::OPEN_START) == 0 {
            entry.set(entry::OPEN_START, start);
        }
        entry.set(entry::OPEN_END, end);
    });
}

pub(crate) fn close(entry: Entry, start: u64) {
    let end = ticks();
    change(entry, |entry| {
        entry.add(entry::META_TIME, end.saturating_sub(start));
        if entry.get(entry::CLOSE_START) == 0 {
            entry.set(entry::CLOSE_START, start);
        }
        entry.set(entry::CLOSE_END, end);
    });
}
