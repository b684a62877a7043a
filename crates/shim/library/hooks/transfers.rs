//! Reads and writes of descriptors.

use core::ffi::{c_int, c_void};

use super::{Offset, Signed, Size};
use crate::account::{self, READ, WRITE};
use crate::clock::ticks;
use crate::symbol::hooks;

/// Runs a call and keeps it, if it is one of a file.
macro_rules! kept {
    ($way:ident, $number:expr, $offset:expr, $buffer:expr, $call:expr) => {{
        let start = ticks();
        match account::of_interest($number) {
            None => $call,
            Some(descriptor) => {
                let result = $call;
                if result >= 0 {
                    account::transfer::<$way>(descriptor, $offset, result as u64, $buffer as usize, start);
                }
                result
            }
        }
    }};
}

/// A negative offset of the second version of vectored calls means: from the current position.
fn stated(offset: Offset) -> Option<u64> {
    u64::try_from(offset).ok()
}

hooks! {
    fn read[real](number: c_int, buffer: *mut c_void, size: Size) -> Signed {
        kept!(READ, number, None, buffer, real(number, buffer, size))
    }
    fn __read_chk[real](number: c_int, buffer: *mut c_void, size: Size, room: Size) -> Signed {
        kept!(READ, number, None, buffer, real(number, buffer, size, room))
    }
    fn pread | pread64[real](number: c_int, buffer: *mut c_void, size: Size, offset: Offset) -> Signed {
        kept!(READ, number, stated(offset), buffer, real(number, buffer, size, offset))
    }
    fn __pread_chk | __pread64_chk[real](
        number: c_int, buffer: *mut c_void, size: Size, offset: Offset, room: Size
    ) -> Signed {
        kept!(READ, number, stated(offset), buffer, real(number, buffer, size, offset, room))
    }
    fn readv[real](number: c_int, vector: *const c_void, count: c_int) -> Signed {
        kept!(READ, number, None, 0, real(number, vector, count))
    }
    fn preadv | preadv64[real](number: c_int, vector: *const c_void, count: c_int, offset: Offset) -> Signed {
        kept!(READ, number, stated(offset), 0, real(number, vector, count, offset))
    }
    fn preadv2 | preadv64v2[real](
        number: c_int, vector: *const c_void, count: c_int, offset: Offset, flags: c_int
    ) -> Signed {
        kept!(READ, number, stated(offset), 0, real(number, vector, count, offset, flags))
    }
    fn write[real](number: c_int, buffer: *const c_void, size: Size) -> Signed {
        kept!(WRITE, number, None, buffer, real(number, buffer, size))
    }
    fn pwrite | pwrite64[real](number: c_int, buffer: *const c_void, size: Size, offset: Offset) -> Signed {
        kept!(WRITE, number, stated(offset), buffer, real(number, buffer, size, offset))
    }
    fn writev[real](number: c_int, vector: *const c_void, count: c_int) -> Signed {
        kept!(WRITE, number, None, 0, real(number, vector, count))
    }
    fn pwritev | pwritev64[real](number: c_int, vector: *const c_void, count: c_int, offset: Offset) -> Signed {
        kept!(WRITE, number, stated(offset), 0, real(number, vector, count, offset))
    }
    fn pwritev2 | pwritev64v2[real](
        number: c_int, vector: *const c_void, count: c_int, offset: Offset, flags: c_int
    ) -> Signed {
        kept!(WRITE, number, stated(offset), 0, real(number, vector, count, offset, flags))
    }
    fn sendfile | sendfile64[real](to: c_int, from: c_int, offset: *mut Offset, size: Size) -> Signed {
        let at = if offset.is_null() { None } else { stated(*offset) };
        let start = ticks();
        let result = real(to, from, offset, size);
        both(to, None, from, at, result, start);
        result
    }
    fn copy_file_range[real](
        from: c_int, from_offset: *mut Offset, to: c_int, to_offset: *mut Offset, size: Size, flags: u32
    ) -> Signed {
        let read_at = if from_offset.is_null() { None } else { stated(*from_offset) };
        let write_at = if to_offset.is_null() { None } else { stated(*to_offset) };
        let start = ticks();
        let result = real(from, from_offset, to, to_offset, size, flags);
        both(to, write_at, from, read_at, result, start);
        result
    }
}

/// The kernel moved data from one file to another: a read and a write of the same time.
fn both(to: c_int, to_at: Option<u64>, from: c_int, from_at: Option<u64>, result: Signed, start: u64) {
    let Ok(size) = u64::try_from(result) else { return };
    if let Some(descriptor) = account::of_interest(from) {
        account::transfer::<READ>(descriptor, from_at, size, 0, start);
    }
    if let Some(descriptor) = account::of_interest(to) {
        account::transfer::<WRITE>(descriptor, to_at, size, 0, start);
    }
}
