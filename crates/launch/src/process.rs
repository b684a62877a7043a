//! What `/proc` says of processes, and the last words of one that is over.
//!
//! Knows pids only. Every number of a process that cannot be read (it is gone, it is another user's)
//! is an error or zero, never a guess.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use tulpar_core::job::Usage;

/// Reads a file of `/proc/PID/` into `buffer`, which is cleared first.
pub(crate) fn read(pid: i32, name: &str, buffer: &mut Vec<u8>) -> io::Result<()> {
    use std::io::Write;
    let mut path = [0u8; 64];
    let length = {
        let mut rest = &mut path[..];
        write!(rest, "/proc/{pid}/{name}")?;
        64 - rest.len()
    };
    let path = std::str::from_utf8(&path[..length]).expect("digits and a literal");
    let file = File::open(path)?;
    let length = fill(buffer, |part, _| (&file).read(part))?;
    buffer.truncate(length);
    Ok(())
}

/// The kernel fills as much as it has: when so little came, there is no more. Asking again would cost as much as the answer.
const LITTLE: usize = 2048;

/// Reads to the end, without asking first how long it is: files of `/proc` do not know. Gives the length.
fn fill(buffer: &mut Vec<u8>, mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>) -> io::Result<usize> {
    buffer.resize(buffer.capacity().max(2 * LITTLE), 0);
    let mut length = 0;
    loop {
        let more = read(&mut buffer[length..], length as u64)?;
        length += more;
        if more == 0 || (more < LITTLE && length < buffer.len()) {
            return Ok(length);
        }
        if length == buffer.len() {
            buffer.resize(length * 2, 0);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: u8,
    pub(crate) parent: i32,
    /// Ticks since boot; with the pid it names a process for ever.
    pub(crate) started: u64,
    /// Ticks of its own and of its reaped children, user and system.
    pub(crate) ticks: u64,
    pub(crate) rss_pages: u64,
}

impl Stat {
    pub(crate) fn of(pid: i32, buffer: &mut Vec<u8>) -> Option<Stat> {
        read(pid, "stat", buffer).ok()?;
        Stat::parse(buffer)
    }

    /// The name in parentheses may hold anything, spaces and parentheses too: fields start after the last one.
    fn parse(text: &[u8]) -> Option<Stat> {
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let mut fields = std::str::from_utf8(&text[end + 1..]).ok()?.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let mut fields = fields.skip(9);
        let mut ticks = 0;
        for _ in 0..4 {
            ticks += fields.next()?.parse::<i64>().ok()?.max(0) as u64;
        }
        let mut fields = fields.skip(4);
        let started = fields.next()?.parse().ok()?;
        let rss_pages = fields.nth(1)?.parse::<i64>().ok()?.max(0) as u64;
        Some(Stat { state, parent, started, ticks, rss_pages })
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// `/proc/PID/io`: of the process and of the children it has waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Io {
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    read_calls: u64,
    write_calls: u64,
    device_read_bytes: u64,
    device_write_bytes: u64,
}

impl Io {
    /// `None`: the kernel does not say. It may refuse an ordinary user the counters of a zombie of his own.
    pub(crate) fn of(pid: i32, buffer: &mut Vec<u8>) -> Option<Io> {
        read(pid, "io", buffer).ok()?;
        Some(Io::parse(buffer))
    }

    fn map(self, other: Io, each: impl Fn(u64, u64) -> u64) -> Io {
        Io {
            read_bytes: each(self.read_bytes, other.read_bytes),
            write_bytes: each(self.write_bytes, other.write_bytes),
            read_calls: each(self.read_calls, other.read_calls),
            write_calls: each(self.write_calls, other.write_calls),
            device_read_bytes: each(self.device_read_bytes, other.device_read_bytes),
            device_write_bytes: each(self.device_write_bytes, other.device_write_bytes),
        }
    }

    fn without(self, other: Io) -> Io {
        self.map(other, u64::saturating_sub)
    }

    fn parse(text: &[u8]) -> Io {
        let mut io = Io::default();
        for line in text.split(|byte| *byte == b'\n') {
            let Some((name, value)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once(": ")) else {
                continue;
            };
            let Ok(value) = value.trim().parse() else { continue };
            match name {
                "rchar" => io.read_bytes = value,
                "wchar" => io.write_bytes = value,
                "syscr" => io.read_calls = value,
                "syscw" => io.write_calls = value,
                "read_bytes" => io.device_read_bytes = value,
                "write_bytes" => io.device_write_bytes = value,
                _ => {}
            }
        }
        io
    }
}

/// The bytes that this process has read and written, with the children that it has waited for: the counters of a child become its
/// parent's when it is reaped, so the difference is the child's.
struct Inherited {
    whole: Io,
    /// Of other threads of this process, which go on meanwhile.
    others: HashMap<i32, Io>,
    /// The bytes that reading the counters has added since.
    asking: Io,
}

impl Inherited {
    fn before(buffer: &mut Vec<u8>) -> Option<Self> {
        let others = Self::others(buffer);
        let whole = Io::of(std::process::id() as i32, buffer)?;
        let asking = Io { read_bytes: buffer.len() as u64, read_calls: 1, ..Io::default() };
        Some(Self { whole, others, asking })
    }

    /// The bytes that other processes added: a lower bound while other threads are busy.
    fn since(self, buffer: &mut Vec<u8>) -> Option<Io> {
        let whole = Io::of(std::process::id() as i32, buffer)?;
        let mut added = whole.without(self.whole).without(self.asking);
        for (thread, io) in Self::others(buffer) {
            added = added.without(io.without(self.others.get(&thread).copied().unwrap_or_default()));
        }
        Some(added)
    }

    fn others(buffer: &mut Vec<u8>) -> HashMap<i32, Io> {
        // SAFETY: no pointers.
        let own = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return HashMap::new() };
        let threads = threads.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let process = std::process::id() as i32;
        let io = |thread: i32| {
            read(process, &format!("task/{thread}/io"), buffer).ok()?;
            Some((thread, Io::parse(buffer)))
        };
        threads.filter(|thread| *thread != own).filter_map(io).collect()
    }
}

/// How a process left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Exit(i32),
    Signal(i32),
}

/// Whether a child's peak says something about the child: a child shares this process's memory until it executes its
/// program, and starts with our peak as its own. The kernel's figure for us may be our parent's in the same way, so that
/// only `VmHWM` is ours; it is read when a peak is above all that was read before.
pub(crate) fn is_above_our_peak(peak: u64) -> bool {
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    if peak <= KNOWN.load(Ordering::Relaxed) {
        return false;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().unwrap_or(u64::MAX / 1024);
    let ours = KNOWN.fetch_max(kilobytes * 1024, Ordering::Relaxed).max(kilobytes * 1024);
    peak > ours
}

/// Measures a zombie child of ours and lets it go. The order matters: its `io` is gone with it.
pub(crate) fn reap(pid: i32, buffer: &mut Vec<u8>) -> io::Result<(Left, Usage)> {
    let io = Io::of(pid, buffer);
    let before = if io.is_none() { Inherited::before(buffer) } else { None };
    let mut status = 0;
    // SAFETY: plain data for the kernel to fill in.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to living locals.
    while unsafe { libc::wait4(pid, &mut status, 0, &mut used) } == -1 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let io = io.or_else(|| before?.since(buffer)).unwrap_or_default();
    let left = if libc::WIFSIGNALED(status) {
        Left::Signal(libc::WTERMSIG(status))
    } else {
        Left::Exit(libc::WEXITSTATUS(status))
    };
    let micros = |time: libc::timeval| time.tv_sec.max(0) as u64 * 1_000_000 + time.tv_usec.max(0) as u64;
    let count = |number: libc::c_long| number.max(0) as u64;
    let usage = Usage {
        user_us: micros(used.ru_utime),
        system_us: micros(used.ru_stime),
        peak_rss: count(used.ru_maxrss) * 1024,
        read_bytes: io.read_bytes,
        write_bytes: io.write_bytes,
        read_calls: io.read_calls,
        write_calls: io.write_calls,
        device_read_bytes: io.device_read_bytes,
        device_write_bytes: io.device_write_bytes,
        voluntary_switches: count(used.ru_nvcsw),
        involuntary_switches: count(used.ru_nivcsw),
        minor_faults: count(used.ru_minflt),
        major_faults: count(used.ru_majflt),
        ..Usage::default()
    };
    Ok((left, usage))
}

/// Adds what another process of the same tree used. Sizes do not add up over time: the larger counts.
pub(crate) fn add(total: &mut Usage, part: &Usage) {
    total.user_us += part.user_us;
    total.system_us += part.system_us;
    total.peak_rss = total.peak_rss.max(part.peak_rss);
    total.read_bytes += part.read_bytes;
    total.write_bytes += part.write_bytes;
    total.read_calls += part.read_calls;
    total.write_calls += part.write_calls;
    total.device_read_bytes += part.device_read_bytes;
    total.device_write_bytes += part.device_write_bytes;
    total.voluntary_switches += part.voluntary_switches;
    total.involuntary_switches += part.involuntary_switches;
    total.minor_faults += part.minor_faults;
    total.major_faults += part.major_faults;
}

/// Every pid there is.
pub(crate) fn all() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The children that the kernel gave to this process because their own parents ended: it hangs them
/// below the first thread, and the tasks themselves are started from others, so this list is short.
pub(crate) struct Adopted {
    list: Option<File>,
}

impl Adopted {
    pub(crate) fn open() -> Self {
        let own = std::process::id();
        Self { list: File::open(format!("/proc/self/task/{own}/children")).ok() }
    }

    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>) -> Vec<i32> {
        use std::os::unix::fs::FileExt;
        let Some(list) = &self.list else { return children_by_search(buffer) };
        let length = fill(buffer, |part, at| list.read_at(part, at)).unwrap_or(0);
        std::str::from_utf8(&buffer[..length])
            .map(|text| text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
            .unwrap_or_default()
    }
}

/// For kernels without `CONFIG_PROC_CHILDREN`.
fn children_by_search(buffer: &mut Vec<u8>) -> Vec<i32> {
    let own = std::process::id() as i32;
    all().into_iter().filter(|pid| Stat::of(*pid, buffer).is_some_and(|stat| stat.parent == own)).collect()
}

pub(crate) fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?)
}

/// Signals the process behind the descriptor, which can be no other. One that is gone is no error.
pub(crate) fn signal(pidfd: &OwnedFd, signal: i32) {
    // SAFETY: no pointers are passed but null.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, std::ptr::null::<u8>(), 0) };
}

/// How often the kernel has killed something for lack of memory, since boot.
pub(crate) fn out_of_memory_kills() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/vmstat") else { return 0 };
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()).unwrap_or(0)
}

/// CPU time that the calling thread has used.
pub(crate) fn thread_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
}

/// Resident bytes with shared pages divided among those who share them: dear, so only asked for when it decides.
pub(crate) fn proportional_size(pid: i32, buffer: &mut Vec<u8>) -> Option<u64> {
    read(pid, "smaps_rollup", buffer).ok()?;
    let text = std::str::from_utf8(buffer).ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(kilobytes.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_even_when_the_name_holds_parentheses() {
        let line = b"8882 (a) b (c)) Z 8841 8832 5181 0 -1 4227148 228 0 0 0 1 2 3 4 20 0 1 0 133236 500 77 18446744073709551615 0\n";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat, Stat { state: b'Z', parent: 8841, started: 133_236, ticks: 10, rss_pages: 77 });
        assert!(stat.is_over());
        assert_eq!(Stat::parse(b"8882 (cut off"), None);
    }

    #[test]
    fn io_counters_are_read_by_name() {
        let text =
            b"rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        assert_eq!(
            Io::parse(text),
            Io {
                read_bytes: 10,
                write_bytes: 20,
                read_calls: 3,
                write_calls: 4,
                device_read_bytes: 5,
                device_write_bytes: 6
            }
        );
    }
}
