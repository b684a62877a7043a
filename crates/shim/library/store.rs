//! The two files of this process, mapped and shared with the kernel: what is written into them is kept however the process
//! ends. They grow in steps; when they cannot, what is lost is counted.
//!
//! Does not know what is in an entry.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::layout::{UNIT, header, segment};
use crate::rules::{Transfer, WRITE};
use crate::{clock, lock, settings, system};

const STEP: usize = 64 * 1024;
const LARGEST_STEP: usize = 4 * 1024 * 1024;
const ROOM: [usize; 3] = [1 << 30, 64 << 20, 4 << 20];
/// What a process keeps in memory of each file; the rest is in the file.
const KEPT: usize = 2 * LARGEST_STEP;
const PATH: usize = 4096;

pub(crate) struct Arena {
    base: AtomicPtr<u8>,
    mapped: AtomicUsize,
    reserved: AtomicUsize,
    lock: AtomicU32,
    suffix: &'static [u8],
}

pub(crate) static FILES: Arena = Arena::new(b".files\0");
pub(crate) static SEGMENTS: Arena = Arena::new(b".segments\0");

/// Tells the files of this process image: process number and the moment of its start.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static MOMENT: AtomicU64 = AtomicU64::new(0);

impl Arena {
    const fn new(suffix: &'static [u8]) -> Arena {
        Arena {
            base: AtomicPtr::new(core::ptr::null_mut()),
            mapped: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
            lock: AtomicU32::new(0),
            suffix,
        }
    }

    #[inline(always)]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.load(Ordering::Acquire)
    }

    /// Whether the first `bytes` can be written to; grows if they cannot.
    #[inline(always)]
    fn has(&self, bytes: usize) -> bool {
        bytes <= self.mapped.load(Ordering::Acquire) || self.grow(bytes)
    }

    #[cold]
    #[inline(never)]
    fn grow(&self, bytes: usize) -> bool {
        if !lock::acquire(&self.lock) {
            return false;
        }
        let mapped = self.mapped.load(Ordering::Relaxed);
        let mut good = bytes <= mapped;
        if !good && bytes <= self.reserved.load(Ordering::Relaxed) {
            let step = mapped.clamp(STEP, LARGEST_STEP);
            let target = (mapped + step).max(bytes.next_multiple_of(STEP)).min(self.reserved.load(Ordering::Relaxed));
            let base = self.base();
            let mut path = [0u8; PATH];
            self.path(&mut path);
            // SAFETY: the range was reserved for this file alone.
            good = unsafe { system::lengthen(path.as_ptr(), base.add(mapped), mapped, target, mapped > STEP) };
            if good {
                self.mapped.store(target, Ordering::Release);
                if mapped > KEPT {
                    // SAFETY: shared pages of a file are only dropped from this process' tables.
                    unsafe { system::forget(base, mapped - KEPT / 2) };
                }
            }
        }
        lock::release(&self.lock);
        good
    }

    /// `<folder>/<process>-<moment>.<suffix>`
    fn path(&self, path: &mut [u8; PATH]) {
        let mut text = Text { bytes: path, length: 0 };
        text.append(settings::folder());
        text.append(b"/");
        text.append_number(u64::from(PROCESS.load(Ordering::Relaxed)));
        text.append(b"-");
        text.append_number(MOMENT.load(Ordering::Relaxed));
        text.append(self.suffix);
    }

    /// Reserves addresses and makes the first step.
    fn start(&self, rooms: &[usize], first: usize) -> bool {
        for &room in rooms {
            // SAFETY: fresh addresses.
            let base = unsafe { system::reserve(room) };
            if base.is_null() {
                continue;
            }
            self.mapped.store(0, Ordering::Relaxed);
            self.reserved.store(room, Ordering::Relaxed);
            self.lock.store(0, Ordering::Relaxed);
            self.base.store(base, Ordering::Release);
            if self.has(first) {
                return true;
            }
            // SAFETY: nobody has seen it yet.
            unsafe { system::release(base, room) };
            self.base.store(core::ptr::null_mut(), Ordering::Release);
            return false;
        }
        false
    }
}

struct Text<'a> {
    bytes: &'a mut [u8; PATH],
    length: usize,
}

impl Text<'_> {
    fn append(&mut self, more: &[u8]) {
        for &byte in more {
            if self.length < PATH - 1 {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
    }

    fn append_number(&mut self, number: u64) {
        let mut digits = [0u8; 20];
        let mut at = 20;
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.append(&digits[at..]);
    }
}

/// A word of the header. Only while there is a store.
#[inline(always)]
pub(crate) fn word(position: usize) -> &'static AtomicU64 {
    // SAFETY: the header is mapped as long as there is a base, and words are aligned.
    unsafe { &*FILES.base().cast::<AtomicU64>().add(position) }
}

/// Counts what could not be kept.
pub(crate) fn lose(position: usize) {
    if !FILES.base().is_null() {
        word(position).fetch_add(1, Ordering::Relaxed);
    }
}

/// Where the arenas were before a fork: the child copies from there what it needs, then lets go.
pub(crate) struct Before {
    files: (*mut u8, usize),
    segments: (*mut u8, usize),
}

impl Before {
    pub(crate) fn base(&self) -> *mut u8 {
        self.files.0
    }

    pub(crate) fn release(self) {
        for (base, room) in [self.files, self.segments] {
            if !base.is_null() {
                // SAFETY: nothing of this process points there any more.
                unsafe { system::release(base, room) };
            }
        }
    }
}

static BEFORE: [AtomicPtr<u8>; 2] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 2];

/// Whether the memory that is seen here is of this process alone: the child of `vfork` borrows that of its parent, but
/// has descriptors of its own.
pub(crate) fn is_ours() -> bool {
    system::process() == PROCESS.load(Ordering::Relaxed)
}

/// In the child of a fork: the files belong to the parent.
pub(crate) fn leave_to_parent() {
    PROCESS.store(system::process(), Ordering::Relaxed);
    for (arena, before) in [&FILES, &SEGMENTS].into_iter().zip(&BEFORE) {
        before.store(arena.base(), Ordering::Relaxed);
        arena.base.store(core::ptr::null_mut(), Ordering::Relaxed);
        arena.mapped.store(0, Ordering::Relaxed);
        arena.lock.store(0, Ordering::Relaxed);
    }
}

pub(crate) fn before() -> Before {
    let taken = |index: usize| BEFORE[index].swap(core::ptr::null_mut(), Ordering::Relaxed);
    Before {
        files: (taken(0), FILES.reserved.load(Ordering::Relaxed)),
        segments: (taken(1), SEGMENTS.reserved.load(Ordering::Relaxed)),
    }
}

pub(crate) fn start() -> bool {
    PROCESS.store(system::process(), Ordering::Relaxed);
    MOMENT.store(system::nanoseconds(1), Ordering::Relaxed);
    if settings::tracing() {
        let most = (settings::most_segments() * segment::BYTES).next_multiple_of(STEP);
        if !SEGMENTS.start(&[most, most.min(ROOM[1])], STEP) {
            // Counting goes on.
            settings::stop_tracing();
        }
    }
    if !FILES.start(&ROOM, STEP) {
        return false;
    }
    let set = |position: usize, value: u64| word(position).store(value, Ordering::Relaxed);
    set(header::VERSION, header::LAYOUT);
    set(header::PROCESS, u64::from(PROCESS.load(Ordering::Relaxed)));
    set(header::PARENT, u64::from(system::parent()));
    set(header::START_TICKS, clock::ticks());
    set(header::START_MONOTONIC, system::nanoseconds(1));
    set(header::START_REAL, system::nanoseconds(0));
    set(header::FILES_USED, header::BYTES as u64);
    set(header::TRACING, u64::from(settings::tracing()));
    let mut name = [0u8; 65];
    system::host(&mut name);
    // SAFETY: both lie inside the header.
    unsafe {
        core::ptr::copy_nonoverlapping(name.as_ptr(), FILES.base().add(header::HOST_AT), 64);
        command(FILES.base().add(header::COMMAND_AT));
    }
    check_clock();
    word(header::MAGIC).store(header::MAGIC_NUMBER, Ordering::Release);
    true
}

/// The words of the command, NUL between them.
unsafe fn command(at: *mut u8) {
    // SAFETY: reads no more than the header has room for.
    unsafe {
        let file = system::open_for_reading(c"/proc/self/cmdline".as_ptr().cast());
        if file >= 0 {
            system::read(file, at, header::COMMAND_BYTES - 2);
            system::close(file);
        }
    }
}

/// Reads both clocks together, now and then: the longer apart, the better is their ratio known.
pub(crate) fn check_clock() {
    let (ticks, monotonic) = (clock::ticks(), system::nanoseconds(1));
    word(header::LATE_TICKS).store(ticks, Ordering::Relaxed);
    word(header::LATE_MONOTONIC).store(monotonic, Ordering::Relaxed);
}

/// Room for an entry: its first unit. 0 if there is none.
pub(crate) fn allocate(units: usize) -> u32 {
    let bytes = units * UNIT;
    let at = word(header::FILES_USED).fetch_add(bytes as u64, Ordering::Relaxed) as usize;
    if !FILES.has(at + bytes) {
        lose(header::FILES_LOST);
        return 0;
    }
    (at / UNIT) as u32
}

/// Keeps one read or write; whether there was room for it.
#[inline(always)]
pub(crate) fn trace<const WAY: usize>(unit: u32, transfer: &Transfer, start: u64) -> bool {
    let index = word(header::SEGMENTS_USED).fetch_add(1, Ordering::Relaxed) as usize;
    if !SEGMENTS.has((index + 1) * segment::BYTES) {
        lose(header::SEGMENTS_LOST);
        return false;
    }
    let way = if WAY == WRITE { segment::WRITE } else { 0 };
    let aligned = if transfer.misaligned { segment::MISALIGNED } else { 0 };
    // SAFETY: the place is mapped, and this call alone has it.
    unsafe {
        let words = SEGMENTS.base().add(index * segment::BYTES).cast::<AtomicU64>();
        let put = |position: usize, value: u64| (*words.add(position)).store(value, Ordering::Relaxed);
        put(segment::ENTRY, u64::from(unit) | way | aligned | clock::thread() << segment::THREAD_AT);
        put(segment::OFFSET, transfer.offset);
        put(segment::LENGTH, transfer.size);
        put(segment::START, start);
        (*words.add(segment::END)).store(clock::ticks(), Ordering::Release);
    }
    true
}
