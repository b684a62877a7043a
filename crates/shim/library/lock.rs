//! Locks that give up: a signal handler may have interrupted the holder, and then waiting would never end.

use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

static NOBODY_KNOWS: AtomicU8 = AtomicU8::new(0);
/// The C library's own word on whether there was ever a second thread.
static SINGLE: AtomicPtr<AtomicU8> = AtomicPtr::new((&raw const NOBODY_KNOWS).cast_mut());

pub(crate) fn start() {
    let found = crate::symbol::find_variable(c"__libc_single_threaded".as_ptr());
    if found != 0 {
        SINGLE.store(found as *mut AtomicU8, Ordering::Relaxed);
    }
}

/// For the short work on an entry: without a second thread no locked instruction is needed, and what remains is the
/// check against an interrupted self.
#[inline(always)]
pub(crate) fn acquire_quickly(lock: &AtomicU32) -> bool {
    // SAFETY: points to a byte that is never freed.
    let alone = unsafe { (*SINGLE.load(Ordering::Relaxed)).load(Ordering::Relaxed) } != 0;
    if alone {
        if lock.load(Ordering::Relaxed) != 0 {
            return false;
        }
        lock.store(1, Ordering::Relaxed);
        return true;
    }
    lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() || acquire(lock)
}

#[cold]
#[inline(never)]
pub(crate) fn acquire(lock: &AtomicU32) -> bool {
    for round in 0..600 {
        if lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return true;
        }
        if round < 200 { core::hint::spin_loop() } else { crate::system::give_way() }
    }
    false
}

#[inline(always)]
pub(crate) fn release(lock: &AtomicU32) {
    lock.store(0, Ordering::Release);
}
