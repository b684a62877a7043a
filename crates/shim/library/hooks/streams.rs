//! Streams (`FILE *`). What the C library does for them underneath runs past the hooks of descriptors, as it does past
//! Darshan's: streams are a layer of their own.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::sync::atomic::Ordering;

use super::{Offset, Signed, Size, stdio_entry};
use crate::account::{self, READ, WRITE};
use crate::clock::ticks;
use crate::files::Entry;
use crate::layout::entry;
use crate::path::{self, Path};
use crate::rules::Words;
use crate::symbol::{Symbol, hooks};
use crate::system::AT_FDCWD;
use crate::{active, files, store};

pub(crate) type Stream = *mut c_void;

static NUMBER: Symbol = Symbol::new(c"fileno_unlocked".as_ptr());
static POSITION: Symbol = Symbol::new(c"ftello".as_ptr());

unsafe fn number_of(stream: Stream) -> c_int {
    if stream.is_null() {
        return -1;
    }
    // SAFETY: of the C library, for one of its streams. Streams without a descriptor give -1 and an error number, which
    // is why it is only asked after calls that succeeded.
    unsafe {
        let number: unsafe extern "C" fn(Stream) -> c_int = core::mem::transmute(NUMBER.get());
        number(stream)
    }
}

#[inline(always)]
pub(crate) unsafe fn moved<const WAY: usize>(stream: Stream, size: Option<u64>, start: u64) {
    if let Some(size) = size
        && active()
        && let Some(descriptor) = account::stream_of_interest(unsafe { number_of(stream) })
    {
        account::stream::<WAY>(descriptor, size, start);
    }
}

/// Single characters are so quick that a look at the clock would be most of their time.
#[inline(always)]
unsafe fn moved_one<const WAY: usize>(stream: Stream, result: c_int) {
    if result >= 0
        && active()
        && let Some((descriptor, unit)) = account::stream_of_interest(unsafe { number_of(stream) })
    {
        let position = descriptor.position.load(Ordering::Relaxed);
        descriptor.position.store(position + 1, Ordering::Relaxed);
        account::change(Entry::at(unit), |entry| {
            entry.add(entry::CALLS + WAY * entry::WAY, 1);
            entry.add(entry::BYTES + WAY * entry::WAY, 1);
            if position > entry.get(entry::MAX_BYTE + WAY * entry::WAY) {
                entry.set(entry::MAX_BYTE + WAY * entry::WAY, position);
            }
        });
    }
}

fn positive(result: Signed) -> Option<u64> {
    u64::try_from(result).ok()
}

unsafe fn opened(stream: Stream, path: *const c_char, start: u64) {
    if stream.is_null() || !active() || !store::is_ours() {
        return;
    }
    // SAFETY: both are of the call that just succeeded.
    let (number, path) = unsafe { (number_of(stream), Path::new(AT_FDCWD, path.cast())) };
    if let Some(entry) = files::opened(number, path, entry::STDIO) {
        account::open(entry, 0, entry::OPENS, start);
    }
}

/// Before the stream is gone.
unsafe fn closing(stream: Stream) -> Option<Entry> {
    if stream.is_null() || !active() || !store::is_ours() {
        return None;
    }
    let descriptor = files::descriptor(unsafe { number_of(stream) })?;
    let entry = stdio_entry(descriptor);
    descriptor.forget();
    entry
}

unsafe fn sought(stream: Stream, result: c_int, start: u64) {
    if result == 0
        && active()
        && let Some((descriptor, unit)) = account::stream_of_interest(unsafe { number_of(stream) })
    {
        // SAFETY: of the C library, for one of its streams.
        let position = unsafe {
            let position: unsafe extern "C" fn(Stream) -> Offset = core::mem::transmute(POSITION.get());
            position(stream)
        };
        descriptor.position.store(position.max(0) as u64, Ordering::Relaxed);
        account::metadata(Entry::at(unit), entry::SEEKS, start);
    }
}

unsafe fn text_length(text: *const c_char) -> Option<u64> {
    if text.is_null() { None } else { Some(unsafe { path::length(text.cast()) } as u64) }
}

hooks! {
    fn fopen | fopen64[real](path: *const c_char, mode: *const c_char) -> Stream {
        let start = ticks();
        let stream = real(path, mode);
        opened(stream, path, start);
        stream
    }
    fn freopen | freopen64[real](path: *const c_char, mode: *const c_char, old: Stream) -> Stream {
        let closed = closing(old);
        let start = ticks();
        let stream = real(path, mode, old);
        if let Some(entry) = closed {
            account::close(entry, start);
        }
        opened(stream, path, start);
        stream
    }
    fn fdopen[real](number: c_int, mode: *const c_char) -> Stream {
        let start = ticks();
        let stream = real(number, mode);
        if !stream.is_null() && store_is_ours() && let Some((_, unit)) = account::stream_of_interest(number) {
            account::open(Entry::at(unit), 0, entry::FDOPENS, start);
        }
        stream
    }
    fn fclose[real](stream: Stream) -> c_int {
        let entry = closing(stream);
        let start = ticks();
        let result = real(stream);
        if let Some(entry) = entry {
            account::close(entry, start);
        }
        result
    }
    fn fread | fread_unlocked[real](buffer: *mut c_void, size: Size, count: Size, stream: Stream) -> Size {
        let start = ticks();
        let result = real(buffer, size, count, stream);
        moved::<READ>(stream, (result > 0).then_some((result * size) as u64), start);
        result
    }
    fn __fread_chk[real](buffer: *mut c_void, room: Size, size: Size, count: Size, stream: Stream) -> Size {
        let start = ticks();
        let result = real(buffer, room, size, count, stream);
        moved::<READ>(stream, (result > 0).then_some((result * size) as u64), start);
        result
    }
    fn fwrite | fwrite_unlocked[real](buffer: *const c_void, size: Size, count: Size, stream: Stream) -> Size {
        let start = ticks();
        let result = real(buffer, size, count, stream);
        moved::<WRITE>(stream, (result > 0).then_some((result * size) as u64), start);
        result
    }
    fn fgets | fgets_unlocked[real](buffer: *mut c_char, room: c_int, stream: Stream) -> *mut c_char {
        let start = ticks();
        let result = real(buffer, room, stream);
        moved::<READ>(stream, text_length(result), start);
        result
    }
    fn __fgets_chk[real](buffer: *mut c_char, size: Size, room: c_int, stream: Stream) -> *mut c_char {
        let start = ticks();
        let result = real(buffer, size, room, stream);
        moved::<READ>(stream, text_length(result), start);
        result
    }
    fn getline[real](line: *mut *mut c_char, room: *mut Size, stream: Stream) -> Signed {
        let start = ticks();
        let result = real(line, room, stream);
        moved::<READ>(stream, positive(result), start);
        result
    }
    fn getdelim | __getdelim[real](line: *mut *mut c_char, room: *mut Size, end: c_int, stream: Stream) -> Signed {
        let start = ticks();
        let result = real(line, room, end, stream);
        moved::<READ>(stream, positive(result), start);
        result
    }
    fn fputs | fputs_unlocked[real](text: *const c_char, stream: Stream) -> c_int {
        let start = ticks();
        let result = real(text, stream);
        if result >= 0 {
            moved::<WRITE>(stream, text_length(text), start);
        }
        result
    }
    fn fgetc | getc | getc_unlocked[real](stream: Stream) -> c_int {
        let result = real(stream);
        moved_one::<READ>(stream, result);
        result
    }
    fn fputc | putc | putc_unlocked[real](character: c_int, stream: Stream) -> c_int {
        let result = real(character, stream);
        moved_one::<WRITE>(stream, result);
        result
    }
    fn vfprintf[real](stream: Stream, format: *const c_char, arguments: *mut c_void) -> c_int {
        let start = ticks();
        let result = real(stream, format, arguments);
        moved::<WRITE>(stream, positive(result as Signed), start);
        result
    }
    fn __vfprintf_chk[real](stream: Stream, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int {
        let start = ticks();
        let result = real(stream, flag, format, arguments);
        moved::<WRITE>(stream, positive(result as Signed), start);
        result
    }
    fn fflush[real](stream: Stream) -> c_int {
        let start = ticks();
        let result = real(stream);
        if !stream.is_null() && result == 0 && active()
            && let Some((_, unit)) = account::stream_of_interest(number_of(stream))
        {
            account::metadata(Entry::at(unit), entry::FLUSHES, start);
        }
        result
    }
    fn fseek[real](stream: Stream, offset: c_long, whence: c_int) -> c_int {
        let start = ticks();
        let result = real(stream, offset, whence);
        sought(stream, result, start);
        result
    }
    fn fseeko | fseeko64[real](stream: Stream, offset: Offset, whence: c_int) -> c_int {
        let start = ticks();
        let result = real(stream, offset, whence);
        sought(stream, result, start);
        result
    }
    fn rewind[real](stream: Stream) -> () {
        let start = ticks();
        real(stream);
        sought(stream, 0, start);
    }
}

fn store_is_ours() -> bool {
    active() && store::is_ours()
}
