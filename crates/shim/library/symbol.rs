//! The functions that stand behind the hooks: the next ones in the order of the loader, be they of the C library or of
//! another preloaded library.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

type Lookup = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

const NEXT: *mut c_void = usize::MAX as *mut c_void;
const NO_SUCH_CALL: c_int = 38;

// Weak: no version is asked for, so that it loads beside older C libraries, where `dlsym` may be in a library that the
// program does not have.
core::arch::global_asm!(".weak dlsym", ".weak __libc_dlsym");

#[cfg(target_arch = "x86_64")]
macro_rules! weak {
    ($name:literal) => {{
        let address: usize;
        unsafe {
            core::arch::asm!(concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"), out(reg) address,
                options(nostack, pure, readonly));
        }
        address
    }};
}

#[cfg(target_arch = "aarch64")]
macro_rules! weak {
    ($name:literal) => {{
        let address: usize;
        unsafe {
            core::arch::asm!(concat!("adrp {0}, :got:", $name), concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address, options(nostack, pure, readonly));
        }
        address
    }};
}

/// 0 where nothing behind us has the name.
pub(crate) fn find(name: *const c_char) -> usize {
    find_from(NEXT, name)
}

/// The one that everybody means: the loader may have moved a variable of the C library into the program.
pub(crate) fn find_variable(name: *const c_char) -> usize {
    find_from(core::ptr::null_mut(), name)
}

#[inline(never)]
fn find_from(place: *mut c_void, name: *const c_char) -> usize {
    let mut lookup = weak!("dlsym");
    if lookup == 0 {
        lookup = weak!("__libc_dlsym");
    }
    if lookup == 0 {
        return 0;
    }
    let lookup: Lookup = unsafe { core::mem::transmute(lookup) };
    // The C library tells by the return address whose "next" is meant: this must stay a call, never a jump.
    let found = unsafe { lookup(place, name) } as usize;
    core::hint::black_box(found)
}

/// A function, looked up once.
pub(crate) struct Symbol {
    name: *const c_char,
    address: AtomicUsize,
}

// SAFETY: the pointer is to a constant.
unsafe impl Sync for Symbol {}

impl Symbol {
    pub(crate) const fn new(name: *const c_char) -> Symbol {
        Symbol { name, address: AtomicUsize::new(0) }
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.look_up(),
            address => address,
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self) -> usize {
        let found = match find(self.name) {
            0 => missing as *const () as usize,
            found => found,
        };
        self.address.store(found, Ordering::Relaxed);
        found
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.get() == missing as *const () as usize
    }
}

/// Stands for what this C library does not have: nobody built against it can call it.
unsafe extern "C" fn missing() -> isize {
    set_error(NO_SUCH_CALL);
    -1
}

pub(crate) fn set_error(number: c_int) {
    static LOCATION: AtomicUsize = AtomicUsize::new(0);
    let mut location = LOCATION.load(Ordering::Relaxed);
    if location == 0 {
        location = find(c"__errno_location".as_ptr());
        LOCATION.store(location, Ordering::Relaxed);
    }
    if location != 0 {
        let location: unsafe extern "C" fn() -> *mut c_int = unsafe { core::mem::transmute(location) };
        unsafe { *location() = number };
    }
}

/// Defines hooks: `fn name | another[real](arguments) -> result { … real(arguments) … }`. Several names stand for
/// functions of the C library that differ in nothing a hook cares for; each calls the real one of its own name.
macro_rules! hooks {
    ($($(#[$attribute:meta])* fn $($name:ident)|+[$real:ident]$arguments:tt -> $result:ty $body:block)*) => {
        $($crate::symbol::hooks! { @each [$($name)+] [$(#[$attribute])*] $real $arguments [$result] $body })*
    };
    (@each [$($name:ident)+] $attributes:tt $real:ident $arguments:tt $result:tt $body:block) => {
        $($crate::symbol::hooks! { @one $name $attributes $real $arguments $result $body })+
    };
    (
        @one $name:ident [$(#[$attribute:meta])*] $real:ident
        ($($argument:ident: $kind:ty),* $(,)?) [$result:ty] $body:block
    ) => {
        $(#[$attribute])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> $result {
            static REAL: $crate::symbol::Symbol =
                $crate::symbol::Symbol::new(concat!(stringify!($name), "\0").as_ptr().cast());
            #[allow(unused_unsafe)]
            unsafe {
                let $real: unsafe extern "C" fn($($kind),*) -> $result = core::mem::transmute(REAL.get());
                $body
            }
        }
    };
}
pub(crate) use hooks;
