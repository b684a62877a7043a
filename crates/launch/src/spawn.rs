//! Starts a program: `clone(CLONE_VM | CLONE_VFORK)`, a few system calls in the child, `execve`.
//!
//! Not `std::process::Command` and not `posix_spawn`, for three reasons: the child must set the marker
//! limit and give back the raised number of descriptors before its program runs (with `pre_exec` the
//! standard library would fork, and copying the page tables of a driver with a million jobs takes
//! longer than the task); the pidfd comes with the clone; and a failure says which step failed.
//! Knows nothing of attempts.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;

pub(crate) struct Program<'a> {
    pub(crate) path: &'a CStr,
    pub(crate) arguments: &'a [CString],
    pub(crate) variables: &'a [CString],
    pub(crate) folder: &'a CStr,
    pub(crate) stdin: RawFd,
    pub(crate) stdout: RawFd,
    pub(crate) stderr: RawFd,
    pub(crate) apart: Apart,
    /// Soft limit of `RLIMIT_LOCKS`, see `marker`.
    pub(crate) mark: Option<u64>,
    /// Soft limit of open files that the program shall see.
    pub(crate) open_files: Option<u64>,
    /// The only CPUs that it may run on.
    pub(crate) cpus: Option<libc::cpu_set_t>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Its own process group: one signal reaches it and its children.
    Group,
    /// Its own session, and no descriptor beyond the first three.
    Session,
}

pub(crate) struct Child {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("no process could be made: {0}")]
    Clone(io::Error),
    #[error("the folder of the attempt cannot be entered: {0}")]
    Folder(io::Error),
    #[error("its standard streams cannot be connected: {0}")]
    Streams(io::Error),
    #[error("{0}")]
    Execute(io::Error),
}

impl SpawnError {
    pub(crate) fn cause(&self) -> &io::Error {
        match self {
            Self::Clone(error) | Self::Folder(error) | Self::Streams(error) | Self::Execute(error) => error,
        }
    }
}

#[derive(Clone, Copy)]
#[repr(i32)]
enum Step {
    Streams = 1,
    Folder = 2,
    Execute = 3,
}

/// What the child needs, all made before it exists: it may not allocate.
struct Orders {
    path: *const libc::c_char,
    arguments: *const *const libc::c_char,
    variables: *const *const libc::c_char,
    folder: *const libc::c_char,
    streams: [RawFd; 3],
    apart: Apart,
    mark: Option<u64>,
    open_files: Option<u64>,
    cpus: Option<libc::cpu_set_t>,
    failed: i32,
    error: i32,
}

const STACK: usize = 256 * 1024;

thread_local! {
    /// The child borrows it until it executes its program; until then this thread stands still.
    static CHILD_STACK: std::cell::RefCell<Vec<u8>> = std::cell::RefCell::new(vec![0; STACK]);
}

pub(crate) fn spawn(program: &Program<'_>) -> Result<Child, SpawnError> {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
    };
    let arguments = pointers(program.arguments);
    let variables = pointers(program.variables);
    let mut orders = Orders {
        path: program.path.as_ptr(),
        arguments: arguments.as_ptr(),
        variables: variables.as_ptr(),
        folder: program.folder.as_ptr(),
        streams: [program.stdin, program.stdout, program.stderr],
        apart: program.apart,
        mark: program.mark,
        open_files: program.open_files,
        cpus: program.cpus,
        failed: 0,
        error: 0,
    };
    let orders: *mut Orders = &mut orders;
    let mut pidfd: RawFd = -1;
    let pid = CHILD_STACK.with_borrow_mut(|stack| {
        // SAFETY: the child runs `child` on its own stack in our memory while this thread is suspended
        // (CLONE_VFORK), reads `orders` and what it points to, which outlive the call, and leaves by
        // execve or _exit. All signals are blocked meanwhile, so that no handler of ours runs in it.
        unsafe {
            let end = stack.as_mut_ptr().add(STACK);
            let top = end.sub(end as usize % 16);
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let pid = libc::clone(
                child,
                top.cast(),
                libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD,
                orders.cast(),
                &mut pidfd as *mut RawFd,
            );
            let error = io::Error::last_os_error();
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
            if pid < 0 { Err(SpawnError::Clone(error)) } else { Ok(pid) }
        }
    })?;
    // SAFETY: the clone succeeded, so the kernel put a new descriptor there that nobody else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    // SAFETY: `orders` is alive; volatile because the child wrote it behind the compiler's back.
    let (failed, error) =
        unsafe { (ptr::read_volatile(&raw const (*orders).failed), ptr::read_volatile(&raw const (*orders).error)) };
    if failed == 0 {
        return Ok(Child { pid, pidfd });
    }
    // SAFETY: the child has left by _exit; this collects it.
    unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
    let error = io::Error::from_raw_os_error(error);
    Err(match failed {
        failed if failed == Step::Folder as i32 => SpawnError::Folder(error),
        failed if failed == Step::Streams as i32 => SpawnError::Streams(error),
        _ => SpawnError::Execute(error),
    })
}

/// Runs in the child, in the parent's memory: system calls only, no allocation, no lock, no panic.
extern "C" fn child(orders: *mut libc::c_void) -> libc::c_int {
    // SAFETY: see `spawn`.
    unsafe {
        let orders: *mut Orders = orders.cast();
        match (*orders).apart {
            Apart::Group => {
                libc::setpgid(0, 0);
            }
            Apart::Session => {
                libc::setsid();
            }
        }
        for stream in 0..3 {
            if libc::dup2((&raw const (*orders).streams).cast::<RawFd>().add(stream).read(), stream as RawFd) < 0 {
                fail(orders, Step::Streams);
            }
        }
        if (*orders).apart == Apart::Session {
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
        }
        if libc::chdir((*orders).folder) < 0 {
            fail(orders, Step::Folder);
        }
        if let Some(mark) = (*orders).mark {
            lower(libc::RLIMIT_LOCKS as libc::c_int, mark);
        }
        if let Some(limit) = (*orders).open_files {
            lower(libc::RLIMIT_NOFILE as libc::c_int, limit);
        }
        if let Some(cpus) = &(*orders).cpus {
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus);
        }
        // Handlers would be reset by execve, but a signal may come between the unblocking and that.
        // SIGPIPE is ignored in Rust programs; others do not expect it so.
        let mut action: libc::sigaction = std::mem::zeroed();
        for signal in 1..32 {
            if libc::sigaction(signal, ptr::null(), &mut action) == 0
                && action.sa_sigaction != libc::SIG_DFL
                && (action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE)
            {
                action.sa_sigaction = libc::SIG_DFL;
                action.sa_flags = 0;
                libc::sigaction(signal, &action, ptr::null_mut());
            }
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        libc::execve((*orders).path, (*orders).arguments, (*orders).variables);
        fail(orders, Step::Execute)
    }
}

/// Changes a soft limit and keeps the hard one. Failing is no reason not to run the task.
///
/// # Safety
/// Only system calls; safe in the child of a vfork.
unsafe fn lower(which: libc::c_int, soft: u64) {
    // SAFETY: plain data, and the pointers are to a living local.
    unsafe {
        // As the kernel has it: soft, hard. The types of the C libraries differ.
        let mut limit = [0u64; 2];
        if libc::syscall(libc::SYS_prlimit64, 0, which, ptr::null::<u8>(), &mut limit) == 0 {
            limit[0] = soft;
            libc::syscall(libc::SYS_prlimit64, 0, which, &limit, ptr::null::<u8>());
        }
    }
}

/// # Safety
/// Only in the child, with the orders it was given.
unsafe fn fail(orders: *mut Orders, step: Step) -> ! {
    // SAFETY: the parent is suspended and reads these only after we left.
    unsafe {
        ptr::write_volatile(&raw mut (*orders).error, *libc::__errno_location());
        ptr::write_volatile(&raw mut (*orders).failed, step as i32);
        libc::_exit(127)
    }
}

/// The CPUs that this process may use at these positions; `None` when it has not so many, as on a pretended node.
pub(crate) fn cpus_at(positions: &[u16]) -> Option<libc::cpu_set_t> {
    if positions.is_empty() {
        return None;
    }
    // SAFETY: an all-zero set is a valid one; the calls write no more than its size.
    unsafe {
        let mut usable: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut usable) != 0 {
            return None;
        }
        let usable: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &usable)).collect();
        let mut chosen: libc::cpu_set_t = std::mem::zeroed();
        for position in positions {
            libc::CPU_SET(*usable.get(usize::from(*position))?, &mut chosen);
        }
        Some(chosen)
    }
}
