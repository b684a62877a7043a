//! Calls and the entries that they count in: which one, under its lock. How they count is said by the rules.

use core::sync::atomic::Ordering;

use crate::clock::ticks;
use crate::files::{self, Descriptor, Entry, IGNORED};
use crate::layout::entry;
pub(crate) use crate::rules::{READ, WRITE};
use crate::rules::{Time, Transfer, Words};
use crate::{active, lock, rules, settings, store};

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

/// One read or write of a file. `offset` is where a call says it reads; without, it goes on from where the last ended. A
/// trace is counted by who reads it: the less a call does here, the less it changes what it measures.
///
/// In a trace the time of a call is that of its caller: the clock is read before and after everything that is done here.
/// Counting takes longer than that, and is left out of the times that are summed.
#[inline(always)]
pub(crate) fn transfer<const WAY: usize>(
    (descriptor, unit): (&Descriptor, u32),
    offset: Option<u64>,
    size: u64,
    buffer: usize,
    start: u64,
) {
    let offset = offset.unwrap_or_else(|| {
        let position = descriptor.position.load(Ordering::Relaxed);
        descriptor.position.store(position + size, Ordering::Relaxed);
        position
    });
    let transfer = Transfer { offset, size, misaligned: buffer & 7 != 0 };
    if settings::tracing() && store::trace::<WAY>(unit, &transfer, start) {
        return;
    }
    let time = Time { start, end: ticks() };
    // No closure: the compiler would not make one piece of it and the call, and that costs a sixth of the instructions.
    let Some(entry) = held(Entry::at(unit)) else { return };
    rules::transfer::<WAY>(entry, &transfer);
    rules::time::<WAY>(entry, size, &time);
    lock::release(entry.lock());
}

/// One read or write of a stream.
#[inline(always)]
pub(crate) fn stream<const WAY: usize>((descriptor, unit): (&Descriptor, u32), size: u64, start: u64) {
    let time = Time { start, end: ticks() };
    let position = descriptor.position.load(Ordering::Relaxed);
    descriptor.position.store(position + size, Ordering::Relaxed);
    change(Entry::at(unit), |entry| {
        rules::any::<WAY>(entry, &Transfer { offset: position, size, misaligned: false });
        rules::time::<WAY>(entry, size, &time);
    });
}

/// Does something to an entry under its lock.
#[inline(always)]
pub(crate) fn change(entry: Entry, change: impl FnOnce(Entry)) {
    let Some(entry) = held(entry) else { return };
    change(entry);
    lock::release(entry.lock());
}

/// The entry with its lock held, or another one of the same file.
#[inline(always)]
fn held(entry: Entry) -> Option<Entry> {
    if lock::acquire_quickly(entry.lock()) { Some(entry) } else { entry.beside() }
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
