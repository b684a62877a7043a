//! Calls that move no data: seeks, stats, maps, syncs, renames.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::Ordering;

use super::{Offset, Size, posix_entry};
use crate::clock::ticks;
use crate::files::{Entry, IGNORED};
use crate::layout::entry;
use crate::path::Path;
use crate::symbol::hooks;
use crate::system::{AT_FDCWD, is_regular};
use crate::{account, active, files};

#[cfg(target_arch = "x86_64")]
const MODE_AT: usize = 24;
#[cfg(target_arch = "aarch64")]
const MODE_AT: usize = 16;
/// Of `struct statx`.
const EXTENDED_MODE_AT: usize = 28;

fn counted(number: c_int, position: usize, start: u64) {
    if active()
        && let Some(entry) = files::descriptor(number).and_then(posix_entry)
    {
        account::metadata(entry, position, start);
    }
}

fn sought(number: c_int, result: Offset, start: u64) {
    if result >= 0
        && let Some((descriptor, unit)) = account::of_interest(number)
    {
        descriptor.position.store(result as u64, Ordering::Relaxed);
        account::metadata(Entry::at(unit), entry::SEEKS, start);
    }
}

unsafe fn mode(status: *const c_void, at: usize) -> u32 {
    // SAFETY: the call has filled it.
    u32::from(unsafe { status.cast::<u8>().add(at).cast::<u16>().read_unaligned() })
}

/// `at`: where in the answer the kind of the file is. A call that failed has no answer, nor perhaps room for one.
unsafe fn asked(
    folder: c_int,
    path: *const c_char,
    (status, at): (*const c_void, usize),
    result: c_int,
    start: u64,
) {
    // SAFETY: the call has succeeded where this is read.
    if result != 0 || !active() || !is_regular(unsafe { mode(status, at) }) {
        return;
    }
    // SAFETY: the call that just succeeded has read the same text.
    if path.is_null() || unsafe { *path } == 0 {
        return counted(folder, entry::STATS, start);
    }
    // SAFETY: as above.
    unsafe { named(folder, path, entry::STATS, start) };
}

unsafe fn named(folder: c_int, path: *const c_char, position: usize, start: u64) {
    // SAFETY: a call has just read the same text.
    let Some(path) = (unsafe { Path::new(folder, path.cast()) }) else { return };
    let unit = files::entry_of_path(entry::POSIX, &path);
    if unit != 0 && unit != IGNORED {
        account::metadata(Entry::at(unit), position, start);
    }
}

unsafe fn renamed(from: (c_int, *const c_char), to: (c_int, *const c_char), result: c_int, start: u64) {
    if result == 0 && active() {
        // SAFETY: both were read by the call.
        unsafe {
            named(from.0, from.1, entry::RENAME_SOURCES, start);
            named(to.0, to.1, entry::RENAME_TARGETS, start);
        }
    }
}

hooks! {
    fn lseek | lseek64[real](number: c_int, offset: Offset, whence: c_int) -> Offset {
        let start = ticks();
        let result = real(number, offset, whence);
        sought(number, result, start);
        result
    }
    fn stat | stat64 | lstat | lstat64[real](path: *const c_char, status: *mut c_void) -> c_int {
        let start = ticks();
        let result = real(path, status);
        asked(AT_FDCWD, path, (status, MODE_AT), result, start);
        result
    }
    fn fstat | fstat64[real](number: c_int, status: *mut c_void) -> c_int {
        let start = ticks();
        let result = real(number, status);
        counted(number, entry::STATS, start);
        result
    }
    fn fstatat | fstatat64[real](folder: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int {
        let start = ticks();
        let result = real(folder, path, status, flags);
        asked(folder, path, (status, MODE_AT), result, start);
        result
    }
    // What programs call that were built before glibc 2.33.
    fn __xstat | __xstat64 | __lxstat | __lxstat64[real](
        version: c_int, path: *const c_char, status: *mut c_void
    ) -> c_int {
        let start = ticks();
        let result = real(version, path, status);
        asked(AT_FDCWD, path, (status, MODE_AT), result, start);
        result
    }
    fn __fxstat | __fxstat64[real](version: c_int, number: c_int, status: *mut c_void) -> c_int {
        let start = ticks();
        let result = real(version, number, status);
        counted(number, entry::STATS, start);
        result
    }
    fn __fxstatat | __fxstatat64[real](
        version: c_int, folder: c_int, path: *const c_char, status: *mut c_void, flags: c_int
    ) -> c_int {
        let start = ticks();
        let result = real(version, folder, path, status, flags);
        asked(folder, path, (status, MODE_AT), result, start);
        result
    }
    fn statx[real](folder: c_int, path: *const c_char, flags: c_int, mask: u32, status: *mut c_void) -> c_int {
        let start = ticks();
        let result = real(folder, path, flags, mask, status);
        asked(folder, path, (status, EXTENDED_MODE_AT), result, start);
        result
    }
    fn mmap | mmap64[real](
        at: *mut c_void, size: Size, protection: c_int, flags: c_int, number: c_int, offset: Offset
    ) -> *mut c_void {
        let start = ticks();
        let result = real(at, size, protection, flags, number, offset);
        if number >= 0 && result as usize != usize::MAX {
            counted(number, entry::MMAPS, start);
        }
        result
    }
    fn fsync[real](number: c_int) -> c_int {
        let start = ticks();
        let result = real(number);
        if result == 0 {
            counted(number, entry::FSYNCS, start);
        }
        result
    }
    fn fdatasync[real](number: c_int) -> c_int {
        let start = ticks();
        let result = real(number);
        if result == 0 {
            counted(number, entry::FDSYNCS, start);
        }
        result
    }
    fn rename[real](from: *const c_char, to: *const c_char) -> c_int {
        let start = ticks();
        let result = real(from, to);
        renamed((AT_FDCWD, from), (AT_FDCWD, to), result, start);
        result
    }
    fn renameat[real](from_folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char) -> c_int {
        let start = ticks();
        let result = real(from_folder, from, to_folder, to);
        renamed((from_folder, from), (to_folder, to), result, start);
        result
    }
    fn renameat2[real](
        from_folder: c_int, from: *const c_char, to_folder: c_int, to: *const c_char, flags: u32
    ) -> c_int {
        let start = ticks();
        let result = real(from_folder, from, to_folder, to, flags);
        renamed((from_folder, from), (to_folder, to), result, start);
        result
    }
}
