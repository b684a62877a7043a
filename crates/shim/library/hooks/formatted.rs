//! Formatted output and input, whose arguments have no fixed number: the registers that may hold some are saved as the
//! platform's `va_list` wants them, and the functions of the C library that take such a list do the work.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};

use super::Offset;
use super::streams::{Stream, moved};
use crate::account::{READ, WRITE};
use crate::clock::ticks;
use crate::symbol::Symbol;

type List = *mut c_void;

/// `$named` general registers hold what the function has names for; the list is handed over in the next one.
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($name:ident, $named:literal, $list:literal, $then:ident) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "sub rsp, 216",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                concat!("mov dword ptr [rsp], 8 * ", $named),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $list, ", rsp"),
                "call {then}",
                "add rsp, 216",
                "ret",
                then = sym $then,
            )
        }
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! variadic {
    ($name:ident, $named:literal, $list:literal, $then:ident) => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "sub sp, sp, #256",
                "stp x29, x30, [sp, #240]",
                "stp x2, x3, [sp, #48]",
                "stp x4, x5, [sp, #64]",
                "stp x6, x7, [sp, #80]",
                "stp q0, q1, [sp, #96]",
                "stp q2, q3, [sp, #128]",
                "stp q4, q5, [sp, #160]",
                "stp q6, q7, [sp, #192]",
                "add x9, sp, #256",
                "str x9, [sp]",
                "add x9, sp, #96",
                "str x9, [sp, #8]",
                "add x9, sp, #224",
                "str x9, [sp, #16]",
                concat!("mov w9, #(8 * ", $named, " - 64)"),
                "str w9, [sp, #24]",
                "mov w9, #-128",
                "str w9, [sp, #28]",
                concat!("mov ", $list, ", sp"),
                "bl {then}",
                "ldp x29, x30, [sp, #240]",
                "add sp, sp, #256",
                "ret",
                then = sym $then,
            )
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod trampolines {
    use super::*;
    variadic!(fprintf, 2, "rdx", print);
    variadic!(__fprintf_chk, 3, "rcx", print_checked);
    variadic!(fscanf, 2, "rdx", scan);
    variadic!(__isoc99_fscanf, 2, "rdx", scan_c99);
    variadic!(__isoc23_fscanf, 2, "rdx", scan_c23);
}

#[cfg(target_arch = "aarch64")]
mod trampolines {
    use super::*;
    variadic!(fprintf, 2, "x2", print);
    variadic!(__fprintf_chk, 3, "x3", print_checked);
    variadic!(fscanf, 2, "x2", scan);
    variadic!(__isoc99_fscanf, 2, "x2", scan_c99);
    variadic!(__isoc23_fscanf, 2, "x2", scan_c23);
}

unsafe extern "C" fn print(stream: Stream, format: *const c_char, list: List) -> c_int {
    static REAL: Symbol = Symbol::new(c"vfprintf".as_ptr());
    let start = ticks();
    // SAFETY: what the caller handed over, as a list.
    unsafe {
        let real: unsafe extern "C" fn(Stream, *const c_char, List) -> c_int = core::mem::transmute(REAL.get());
        let result = real(stream, format, list);
        moved::<WRITE>(stream, u64::try_from(result).ok(), start);
        result
    }
}

unsafe extern "C" fn print_checked(stream: Stream, flag: c_int, format: *const c_char, list: List) -> c_int {
    static REAL: Symbol = Symbol::new(c"__vfprintf_chk".as_ptr());
    let start = ticks();
    // SAFETY: as above.
    unsafe {
        let real: unsafe extern "C" fn(Stream, c_int, *const c_char, List) -> c_int = core::mem::transmute(REAL.get());
        let result = real(stream, flag, format, list);
        moved::<WRITE>(stream, u64::try_from(result).ok(), start);
        result
    }
}

/// How much was read is how far the position moved.
unsafe fn scan_with(symbol: &Symbol, stream: Stream, format: *const c_char, list: List) -> c_int {
    static POSITION: Symbol = Symbol::new(c"ftello".as_ptr());
    // SAFETY: as above.
    unsafe {
        let position: unsafe extern "C" fn(Stream) -> Offset = core::mem::transmute(POSITION.get());
        let real: unsafe extern "C" fn(Stream, *const c_char, List) -> c_int = core::mem::transmute(symbol.get());
        let is_kept = crate::active();
        let before = if is_kept { position(stream) } else { 0 };
        let start = ticks();
        let result = real(stream, format, list);
        if is_kept && result >= 0 && before >= 0 {
            moved::<READ>(stream, u64::try_from(position(stream) - before).ok(), start);
        }
        result
    }
}

unsafe extern "C" fn scan(stream: Stream, format: *const c_char, list: List) -> c_int {
    static REAL: Symbol = Symbol::new(c"vfscanf".as_ptr());
    unsafe { scan_with(&REAL, stream, format, list) }
}

unsafe extern "C" fn scan_c99(stream: Stream, format: *const c_char, list: List) -> c_int {
    static REAL: Symbol = Symbol::new(c"__isoc99_vfscanf".as_ptr());
    unsafe { scan_with(&REAL, stream, format, list) }
}

unsafe extern "C" fn scan_c23(stream: Stream, format: *const c_char, list: List) -> c_int {
    static REAL: Symbol = Symbol::new(c"__isoc23_vfscanf".as_ptr());
    unsafe { scan_with(&REAL, stream, format, list) }
}
