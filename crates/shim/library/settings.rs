//! What the recorder asked for, through the environment, and how programs that are started from here inherit it.

use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Copies that outlive changes of the environment. Each is the whole `NAME=value`, NUL-terminated.
const LONGEST: usize = 4096;
pub(crate) const NAMES: [&[u8]; 5] =
    [b"TULPAR_IO_FOLDER=", b"TULPAR_IO_LIBRARY=", b"TULPAR_IO_MODE=", b"TULPAR_IO_EVERYTHING=", b"TULPAR_IO_SEGMENTS="];
const FOLDER: usize = 0;
const LIBRARY: usize = 1;
const MODE: usize = 2;
const EVERYTHING: usize = 3;
const SEGMENTS: usize = 4;
const DEFAULT_SEGMENTS: usize = 4 << 20;

/// One page-sized text each, in memory of their own.
static TEXTS: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static LENGTHS: [AtomicUsize; 5] = [const { AtomicUsize::new(0) }; 5];
static TRACING: AtomicBool = AtomicBool::new(false);

/// Reads the environment; false if nobody asked for anything.
pub(crate) fn read(environment: *const *const c_char) -> bool {
    if environment.is_null() {
        return false;
    }
    // SAFETY: fresh memory.
    let texts = unsafe { crate::system::memory(NAMES.len() * LONGEST) };
    if texts.is_null() {
        return false;
    }
    TEXTS.store(texts, Ordering::Relaxed);
    // SAFETY: the environment is a NULL-terminated list of NUL-terminated texts.
    unsafe {
        let mut at = environment;
        while !(*at).is_null() {
            let text = (*at).cast::<u8>();
            for (index, name) in NAMES.iter().enumerate() {
                let length = crate::path::length(text);
                if crate::path::begins(text, name) && length < LONGEST {
                    core::ptr::copy_nonoverlapping(text, texts.add(index * LONGEST), length + 1);
                    LENGTHS[index].store(length, Ordering::Relaxed);
                }
            }
            at = at.add(1);
        }
    }
    TRACING.store(value(MODE) == b"trace", Ordering::Relaxed);
    !folder().is_empty()
}

/// The whole `NAME=value`, NUL-terminated, if it was set.
pub(crate) fn setting(index: usize) -> Option<*const c_char> {
    let texts = TEXTS.load(Ordering::Relaxed);
    if texts.is_null() || LENGTHS[index].load(Ordering::Relaxed) == 0 {
        return None;
    }
    // SAFETY: inside the memory of all texts.
    Some(unsafe { texts.add(index * LONGEST) }.cast())
}

fn value(index: usize) -> &'static [u8] {
    let Some(text) = setting(index) else { return b"" };
    let skip = NAMES[index].len();
    let length = LENGTHS[index].load(Ordering::Relaxed);
    // SAFETY: the text is at least as long as its name, and stays.
    unsafe { core::slice::from_raw_parts(text.cast::<u8>().add(skip), length - skip) }
}

pub(crate) fn folder() -> &'static [u8] {
    value(FOLDER)
}

pub(crate) fn library() -> &'static [u8] {
    value(LIBRARY)
}

/// Files of the system too.
pub(crate) fn everything() -> bool {
    value(EVERYTHING) == b"1"
}

pub(crate) fn most_segments() -> usize {
    let mut number = 0usize;
    for &digit in value(SEGMENTS) {
        number = number.saturating_mul(10).saturating_add(usize::from(digit.wrapping_sub(b'0').min(9)));
    }
    if number == 0 { DEFAULT_SEGMENTS } else { number.min(1 << 28) }
}

#[inline(always)]
pub(crate) fn tracing() -> bool {
    TRACING.load(Ordering::Relaxed)
}

pub(crate) fn stop_tracing() {
    TRACING.store(false, Ordering::Relaxed);
}
