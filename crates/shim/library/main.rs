//! The library that is loaded before a program (`LD_PRELOAD`) and keeps what the program does to files: counters and
//! histograms a file, and single reads and writes on request. It has no dependency, not even on a C library of a certain
//! version, and allocates nothing from the program's heap.
//!
//! Built by `build.rs` of `tulpar-shim`, which carries it. It knows nothing of Darshan's format nor of other processes.

#![no_std]
#![allow(clippy::missing_safety_doc, private_interfaces)]

mod account;
mod clock;
mod files;
mod hooks;
mod layout;
mod lock;
mod path;
mod rules;
mod settings;
mod store;
mod symbol;
mod system;

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicU32, Ordering};

const UNSTARTED: u32 = 0;
const STARTING: u32 = 1;
const ON: u32 = 2;
const OFF: u32 = 3;
const FORKED: u32 = 4;

static STATE: AtomicU32 = AtomicU32::new(UNSTARTED);

/// Whether calls are kept.
#[inline(always)]
pub(crate) fn active() -> bool {
    STATE.load(Ordering::Acquire) == ON || start()
}

#[cold]
#[inline(never)]
fn start() -> bool {
    let state = STATE.load(Ordering::Acquire);
    if state != UNSTARTED && state != FORKED {
        return false;
    }
    // Calls that come while another thread starts, or that starting itself makes, are not kept.
    if STATE.compare_exchange(state, STARTING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return false;
    }
    let good = if state == FORKED {
        let before = store::before();
        let good = store::start();
        if good {
            files::carry_over(&before);
        }
        before.release();
        good
    } else {
        settings::read(environment()) && {
            lock::start();
            follow_forks();
            store::start()
        }
    };
    STATE.store(if good { ON } else { OFF }, Ordering::Release);
    good
}

pub(crate) fn environment() -> *const *const c_char {
    let found = symbol::find_variable(c"environ".as_ptr()) as *const *const *const c_char;
    if found.is_null() { core::ptr::null() } else { unsafe { *found } }
}

fn follow_forks() {
    type Handler = Option<unsafe extern "C" fn()>;
    let glibc = symbol::find(c"__register_atfork".as_ptr());
    if glibc != 0 {
        let register: unsafe extern "C" fn(Handler, Handler, Handler, *mut u8) -> c_int =
            unsafe { core::mem::transmute(glibc) };
        unsafe { register(None, None, Some(forked), core::ptr::null_mut()) };
        return;
    }
    let other = symbol::find(c"pthread_atfork".as_ptr());
    if other != 0 {
        let register: unsafe extern "C" fn(Handler, Handler, Handler) -> c_int = unsafe { core::mem::transmute(other) };
        unsafe { register(None, None, Some(forked)) };
    }
}

/// The child gets its own files at its first call that is kept: most children only start another program.
unsafe extern "C" fn forked() {
    if STATE.load(Ordering::Acquire) == ON {
        store::leave_to_parent();
        STATE.store(FORKED, Ordering::Release);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_start() {
    active();
}

pub(crate) extern "C" fn at_end() {
    if STATE.load(Ordering::Acquire) == ON {
        store::check_clock();
        store::word(layout::header::END_TICKS).store(clock::ticks(), Ordering::Relaxed);
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Nothing here panics; were it so, the program must not be harmed further.
    loop {
        core::hint::spin_loop();
    }
}
