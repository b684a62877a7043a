//! The clock of the records: the processor's own counter where it runs evenly, else the monotonic clock. How its ticks
//! become seconds is found by the reader, from pairs of readings in the header.

#[cfg(target_arch = "x86_64")]
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(target_arch = "x86_64")]
mod state {
    pub(super) const UNKNOWN: usize = 0;
    pub(super) const COUNTER: usize = 1;
}

/// 0 not known yet, 1 the counter, else the address of `clock_gettime`.
#[cfg(target_arch = "x86_64")]
static SOURCE: AtomicUsize = AtomicUsize::new(state::UNKNOWN);

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    if SOURCE.load(Ordering::Relaxed) == state::COUNTER {
        // SAFETY: every x86-64 processor has it.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    slow_ticks()
}

#[cfg(target_arch = "x86_64")]
#[cold]
#[inline(never)]
fn slow_ticks() -> u64 {
    if SOURCE.load(Ordering::Relaxed) == state::UNKNOWN {
        SOURCE.store(choose(), Ordering::Relaxed);
        return ticks();
    }
    let function: unsafe extern "C" fn(usize, *mut [i64; 2]) -> i32 =
        unsafe { core::mem::transmute(SOURCE.load(Ordering::Relaxed)) };
    let mut time = [0i64; 2];
    unsafe { function(1, &mut time) };
    time[0] as u64 * 1_000_000_000 + time[1] as u64
}

/// The counter is even over all cores when the processor says so, or when the kernel itself keeps time by it.
#[cfg(target_arch = "x86_64")]
fn choose() -> usize {
    use core::arch::x86_64::__cpuid;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    let invariant = __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & INVARIANT != 0;
    if invariant || kernel_uses_counter() {
        return state::COUNTER;
    }
    match crate::symbol::find(c"clock_gettime".as_ptr()) {
        0 => state::COUNTER,
        function => function,
    }
}

#[cfg(target_arch = "x86_64")]
fn kernel_uses_counter() -> bool {
    let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let file = unsafe { crate::system::open_for_reading(path.as_ptr().cast()) };
    if file < 0 {
        return false;
    }
    let mut text = [0u8; 4];
    let length = unsafe { crate::system::read(file, text.as_mut_ptr(), 4) };
    crate::system::close(file);
    length >= 3 && text[0] == b't' && text[1] == b's' && text[2] == b'c'
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets programs read the generic timer, which is even over all cores.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

/// Tells threads apart; what it is does not matter.
#[inline(always)]
pub(crate) fn thread() -> u64 {
    let pointer: u64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the first word of a thread's block points to the block.
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, pure, readonly))
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, pure, nomem))
    };
    (pointer >> 6) & 0x3fff_ffff
}
