//! Opening, copying and closing of descriptors.

use core::ffi::{c_char, c_int, c_uint};
use core::sync::atomic::Ordering;

use super::{posix_entry, stdio_entry};
use crate::clock::ticks;
use crate::layout::entry;
use crate::path::Path;
use crate::rules::Words;
use crate::symbol::hooks;
use crate::system::AT_FDCWD;
use crate::{account, active, files, store, system};

const O_APPEND: c_int = 0o2000;
const O_TMPFILE: c_int = 0o20_000_000;
const O_PATH: c_int = 0o10_000_000;
const O_CREAT: c_int = 0o100;

unsafe fn opened(number: c_int, folder: c_int, path: *const c_char, (flags, mode): (c_int, c_uint), start: u64) {
    if number < 0 || !active() || !store::is_ours() {
        return;
    }
    let path = if flags & O_TMPFILE != 0 {
        Path::of_descriptor(number)
    } else if flags & O_PATH != 0 {
        None
    } else {
        // SAFETY: the call that just succeeded has read the same text.
        unsafe { Path::new(folder, path.cast()) }
    };
    let Some(entry) = files::opened(number, path, entry::POSIX) else { return };
    if flags & O_APPEND != 0
        && let Some(descriptor) = files::descriptor(number)
    {
        descriptor.position.store(system::end(number), Ordering::Relaxed);
    }
    let mode = if flags & (O_CREAT | O_TMPFILE) != 0 { mode } else { 0 };
    account::open(entry, u64::from(mode), entry::OPENS, start);
}

/// Called before the number is free again: another thread may get it at once.
fn closing(number: c_int) -> Option<crate::files::Entry> {
    if !active() || !store::is_ours() {
        return None;
    }
    let descriptor = files::descriptor(number)?;
    let entry = posix_entry(descriptor);
    descriptor.forget();
    entry
}

fn copied(old: c_int, new: c_int, start: u64) {
    if new < 0 || old == new || !active() || !store::is_ours() {
        return;
    }
    files::copied(old, new);
    if let Some(entry) = files::descriptor(old).and_then(posix_entry) {
        account::metadata(entry, entry::DUPS, start);
    }
}

fn closing_range(first: c_uint, last: c_uint) {
    if active() && store::is_ours() {
        for (number, descriptor) in files::known() {
            if (first..=last).contains(&(number as c_uint)) {
                descriptor.forget();
            }
        }
    }
}

hooks! {
    // In C these take the mode as an optional argument; where arguments are passed in registers that is the same.
    fn open | open64[real](path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
        let start = ticks();
        let number = real(path, flags, mode);
        opened(number, AT_FDCWD, path, (flags, mode), start);
        number
    }
    fn __open_2 | __open64_2[real](path: *const c_char, flags: c_int) -> c_int {
        let start = ticks();
        let number = real(path, flags);
        opened(number, AT_FDCWD, path, (flags, 0), start);
        number
    }
    fn openat | openat64[real](folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
        let start = ticks();
        let number = real(folder, path, flags, mode);
        opened(number, folder, path, (flags, mode), start);
        number
    }
    fn __openat_2 | __openat64_2[real](folder: c_int, path: *const c_char, flags: c_int) -> c_int {
        let start = ticks();
        let number = real(folder, path, flags);
        opened(number, folder, path, (flags, 0), start);
        number
    }
    fn creat | creat64[real](path: *const c_char, mode: c_uint) -> c_int {
        let start = ticks();
        let number = real(path, mode);
        opened(number, AT_FDCWD, path, (O_CREAT, mode), start);
        number
    }
    fn mkstemp | mkstemp64[real](template: *mut c_char) -> c_int {
        let start = ticks();
        let number = real(template);
        opened(number, AT_FDCWD, template, (O_CREAT, 0o600), start);
        number
    }
    fn mkostemp | mkostemp64[real](template: *mut c_char, flags: c_int) -> c_int {
        let start = ticks();
        let number = real(template, flags);
        opened(number, AT_FDCWD, template, (flags | O_CREAT, 0o600), start);
        number
    }
    fn mkstemps[real](template: *mut c_char, suffix: c_int) -> c_int {
        let start = ticks();
        let number = real(template, suffix);
        opened(number, AT_FDCWD, template, (O_CREAT, 0o600), start);
        number
    }
    fn close[real](number: c_int) -> c_int {
        let entry = closing(number);
        let start = ticks();
        let result = real(number);
        if let Some(entry) = entry {
            account::close(entry, start);
        }
        result
    }
    fn close_range[real](first: c_uint, last: c_uint, flags: c_int) -> c_int {
        const CLOEXEC: c_int = 4;
        if flags & CLOEXEC == 0 {
            closing_range(first, last);
        }
        real(first, last, flags)
    }
    fn closefrom[real](first: c_int) -> () {
        closing_range(first.max(0) as c_uint, c_uint::MAX);
        real(first)
    }
    fn closedir[real](folder: *mut u8) -> c_int {
        let number = folder_number(folder);
        if let Some(descriptor) = files::descriptor(number)
            && active() && store::is_ours()
        {
            descriptor.forget();
        }
        real(folder)
    }
    fn dup[real](old: c_int) -> c_int {
        let start = ticks();
        let new = real(old);
        copied(old, new, start);
        new
    }
    fn dup2[real](old: c_int, new: c_int) -> c_int {
        let start = ticks();
        let result = real(old, new);
        copied(old, result, start);
        result
    }
    fn dup3[real](old: c_int, new: c_int, flags: c_int) -> c_int {
        let start = ticks();
        let result = real(old, new, flags);
        copied(old, result, start);
        result
    }
    fn fcntl | fcntl64[real](number: c_int, command: c_int, argument: usize) -> c_int {
        let start = ticks();
        let result = real(number, command, argument);
        controlled(number, command, result, start);
        result
    }
    fn fileno[real](stream: *mut u8) -> c_int {
        let number = real(stream);
        if active() && let Some(entry) = files::descriptor(number).and_then(stdio_entry) {
            account::change(entry, |entry| entry.add(entry::FILENOS, 1));
        }
        number
    }
}

fn controlled(number: c_int, command: c_int, result: c_int, start: u64) {
    const DUPLICATE: c_int = 0;
    const DUPLICATE_CLOEXEC: c_int = 1030;
    if command == DUPLICATE || command == DUPLICATE_CLOEXEC {
        copied(number, result, start);
    }
}

unsafe fn folder_number(folder: *mut u8) -> c_int {
    static NUMBER: crate::symbol::Symbol = crate::symbol::Symbol::new(c"dirfd".as_ptr());
    if folder.is_null() || NUMBER.is_missing() {
        return -1;
    }
    // SAFETY: of the C library.
    let number: unsafe extern "C" fn(*mut u8) -> c_int = unsafe { core::mem::transmute(NUMBER.get()) };
    // SAFETY: the caller has an open folder.
    unsafe { number(folder) }
}
