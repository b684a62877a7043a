//! The kernel's calls without a C library: what the library does for itself must not run through its own hooks, must
//! not change `errno`, and must load beside any C library.

#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(crate) const MMAP: usize = 9;
    pub(crate) const MUNMAP: usize = 11;
    pub(crate) const MADVISE: usize = 28;
    pub(crate) const LSEEK: usize = 8;
    pub(crate) const SCHED_YIELD: usize = 24;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const UNAME: usize = 63;
    pub(crate) const GETCWD: usize = 79;
    pub(crate) const FTRUNCATE: usize = 77;
    pub(crate) const GETPPID: usize = 110;
    pub(crate) const CLOCK_GETTIME: usize = 228;
    pub(crate) const CLOSE: usize = 3;
    pub(crate) const READ: usize = 0;
    pub(crate) const PWRITE: usize = 18;
    pub(crate) const OPENAT: usize = 257;
    pub(crate) const READLINKAT: usize = 267;
    pub(crate) const FALLOCATE: usize = 285;
    pub(crate) const PRLIMIT: usize = 302;
    pub(crate) const STATX: usize = 332;
    pub(crate) const GETEUID: usize = 107;
    pub(crate) const GETEGID: usize = 108;
}

#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(crate) const MMAP: usize = 222;
    pub(crate) const MUNMAP: usize = 215;
    pub(crate) const MADVISE: usize = 233;
    pub(crate) const LSEEK: usize = 62;
    pub(crate) const SCHED_YIELD: usize = 124;
    pub(crate) const GETPID: usize = 172;
    pub(crate) const UNAME: usize = 160;
    pub(crate) const GETCWD: usize = 17;
    pub(crate) const FTRUNCATE: usize = 46;
    pub(crate) const GETPPID: usize = 173;
    pub(crate) const CLOCK_GETTIME: usize = 113;
    pub(crate) const CLOSE: usize = 57;
    pub(crate) const READ: usize = 63;
    pub(crate) const PWRITE: usize = 68;
    pub(crate) const OPENAT: usize = 56;
    pub(crate) const READLINKAT: usize = 78;
    pub(crate) const FALLOCATE: usize = 47;
    pub(crate) const PRLIMIT: usize = 261;
    pub(crate) const STATX: usize = 291;
    pub(crate) const GETEUID: usize = 175;
    pub(crate) const GETEGID: usize = 177;
}

pub(crate) const AT_FDCWD: i32 = -100;
const AT_EMPTY_PATH: usize = 0x1000;
const O_CREAT: usize = 0o100;
const O_RDWR: usize = 0o2;
const O_CLOEXEC: usize = 0o2_000_000;
const PROT_READ_WRITE: usize = 3;
const MAP_SHARED: usize = 1;
const MAP_PRIVATE: usize = 2;
const MAP_FIXED: usize = 0x10;
const MAP_POPULATE: usize = 0x8000;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;
const MADV_DONTNEED: usize = 4;
const MADV_POPULATE_WRITE: usize = 23;
const RLIMIT_FSIZE: usize = 1;
const NOT_SUPPORTED: isize = -95;
const NOT_IMPLEMENTED: isize = -38;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn call(number: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller vouches for the arguments; the kernel keeps all registers but these.
    unsafe {
        core::arch::asm!("syscall", inlateout("rax") number as isize => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
unsafe fn call(number: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("svc 0", in("x8") number, inlateout("x0") a[0] as isize => result,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5], options(nostack));
    }
    result
}

pub(crate) fn process() -> u32 {
    unsafe { call(numbers::GETPID, [0; 6]) as u32 }
}

pub(crate) fn parent() -> u32 {
    unsafe { call(numbers::GETPPID, [0; 6]) as u32 }
}

pub(crate) fn effective_user() -> (u32, u32) {
    unsafe { (call(numbers::GETEUID, [0; 6]) as u32, call(numbers::GETEGID, [0; 6]) as u32) }
}

pub(crate) fn give_way() {
    unsafe { call(numbers::SCHED_YIELD, [0; 6]) };
}

/// Nanoseconds of a clock: 0 is the real one, 1 the monotonic.
pub(crate) fn nanoseconds(clock: usize) -> u64 {
    let mut time = [0i64; 2];
    unsafe { call(numbers::CLOCK_GETTIME, [clock, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    time[0] as u64 * 1_000_000_000 + time[1] as u64
}

/// The name of the host, NUL-terminated.
pub(crate) fn host(name: &mut [u8; 65]) {
    let mut names = [0u8; 6 * 65];
    if unsafe { call(numbers::UNAME, [names.as_mut_ptr() as usize, 0, 0, 0, 0, 0]) } == 0 {
        unsafe { core::ptr::copy_nonoverlapping(names.as_ptr().add(65), name.as_mut_ptr(), 64) };
    }
}

pub(crate) unsafe fn current_folder(buffer: *mut u8, room: usize) -> isize {
    // The kernel counts the NUL.
    unsafe { call(numbers::GETCWD, [buffer as usize, room, 0, 0, 0, 0]) - 1 }
}

pub(crate) unsafe fn read_link(path: *const u8, buffer: *mut u8, room: usize) -> isize {
    unsafe { call(numbers::READLINKAT, [AT_FDCWD as usize, path as usize, buffer as usize, room, 0, 0]) }
}

pub(crate) fn position(descriptor: i32) -> u64 {
    const CURRENT: usize = 1;
    unsafe { call(numbers::LSEEK, [descriptor as usize, 0, CURRENT, 0, 0, 0]) }.max(0) as u64
}

pub(crate) fn end(descriptor: i32) -> u64 {
    Status::of_descriptor(descriptor).map_or(0, |status| status.size)
}

pub(crate) fn close(descriptor: isize) {
    unsafe { call(numbers::CLOSE, [descriptor as usize, 0, 0, 0, 0, 0]) };
}

pub(crate) unsafe fn open_for_reading(path: *const u8) -> isize {
    unsafe { call(numbers::OPENAT, [AT_FDCWD as usize, path as usize, O_CLOEXEC, 0, 0, 0]) }
}

pub(crate) unsafe fn open_own(path: *const u8) -> isize {
    unsafe { call(numbers::OPENAT, [AT_FDCWD as usize, path as usize, O_RDWR | O_CREAT | O_CLOEXEC, 0o600, 0, 0]) }
}

pub(crate) unsafe fn read(descriptor: isize, buffer: *mut u8, room: usize) -> isize {
    unsafe { call(numbers::READ, [descriptor as usize, buffer as usize, room, 0, 0, 0]) }
}

/// What `statx` tells, as far as it is needed.
pub(crate) struct Status {
    pub(crate) mode: u32,
    pub(crate) block: u32,
    pub(crate) size: u64,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

impl Status {
    pub(crate) fn of_descriptor(descriptor: i32) -> Option<Status> {
        const BASIC: usize = 0x7ff;
        let mut words = [0u64; 32];
        let arguments =
            [descriptor as usize, c"".as_ptr() as usize, AT_EMPTY_PATH, BASIC, words.as_mut_ptr() as usize, 0];
        if unsafe { call(numbers::STATX, arguments) } != 0 {
            return None;
        }
        Some(Status {
            block: (words[0] >> 32) as u32,
            user: (words[2] >> 32) as u32,
            group: words[3] as u32,
            mode: (words[3] >> 32) as u32 & 0xffff,
            size: words[5],
        })
    }

    pub(crate) fn is_regular(&self) -> bool {
        is_regular(self.mode)
    }
}

pub(crate) fn is_regular(mode: u32) -> bool {
    mode & 0o170_000 == 0o100_000
}

pub(crate) unsafe fn reserve(bytes: usize) -> *mut u8 {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    address(unsafe { call(numbers::MMAP, [0, bytes, 0, flags, usize::MAX, 0]) })
}

pub(crate) unsafe fn memory(bytes: usize) -> *mut u8 {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS;
    address(unsafe { call(numbers::MMAP, [0, bytes, PROT_READ_WRITE, flags, usize::MAX, 0]) })
}

fn address(result: isize) -> *mut u8 {
    if (-4095..0).contains(&result) { core::ptr::null_mut() } else { result as *mut u8 }
}

pub(crate) unsafe fn release(at: *mut u8, bytes: usize) {
    unsafe { call(numbers::MUNMAP, [at as usize, bytes, 0, 0, 0, 0]) };
}

/// The pages stay in the file, and leave the memory of this process until they are touched again.
pub(crate) unsafe fn forget(at: *mut u8, bytes: usize) {
    unsafe { call(numbers::MADVISE, [at as usize, bytes, MADV_DONTNEED, 0, 0, 0]) };
}

/// Lengthens a file by blocks that exist, and shows them at an address. Writing into a mapped hole of a full disk would
/// kill the program. `at_once` readies all of it: what will surely be written is cheaper together than page by page.
pub(crate) unsafe fn lengthen(path: *const u8, at: *mut u8, from: usize, to: usize, at_once: bool) -> bool {
    let mut limits = [0u64; 2];
    // Beyond its limit of file sizes a program gets a signal.
    if unsafe { call(numbers::PRLIMIT, [0, RLIMIT_FSIZE, 0, limits.as_mut_ptr() as usize, 0, 0]) } == 0
        && limits[0] < to as u64
    {
        return false;
    }
    let file = unsafe { open_own(path) };
    if file < 0 {
        return false;
    }
    let descriptor = file as usize;
    let mut good = unsafe { call(numbers::FALLOCATE, [descriptor, 0, from, to - from, 0, 0]) };
    if good == NOT_SUPPORTED || good == NOT_IMPLEMENTED {
        good = unsafe { call(numbers::FTRUNCATE, [descriptor, to, 0, 0, 0, 0]) };
        let zeros = [0u8; 4096];
        let mut at = from;
        while good >= 0 && at < to {
            good = unsafe { call(numbers::PWRITE, [descriptor, zeros.as_ptr() as usize, 4096, at, 0, 0]) };
            at += 4096;
        }
    }
    let show = |more: usize| {
        let flags = MAP_SHARED | MAP_FIXED | more;
        let shown = unsafe { call(numbers::MMAP, [at as usize, to - from, PROT_READ_WRITE, flags, descriptor, from]) };
        !address(shown).is_null()
    };
    let mut shown = good >= 0 && show(0);
    // Pages of a shared mapping are readied by MAP_POPULATE for reading only: the first write to each would fault again.
    // Systems before Linux 5.14 have nothing better.
    if shown && at_once && unsafe { call(numbers::MADVISE, [at as usize, to - from, MADV_POPULATE_WRITE, 0, 0, 0]) } < 0 {
        shown = show(MAP_POPULATE);
    }
    close(file);
    shown
}
