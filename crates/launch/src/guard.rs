//! Ends the processes of a driver that is gone, wherever they went.
//!
//! A driver that is killed cannot tidy up. So it starts a guard: a process that holds one end of a pipe and does nothing
//! until the other end closes, whatever the reason. Resuming a run does the same once more.

use crate::marker::{Marker, Owner};
use crate::process::{self, Stat};
use crate::spawn::{self, Apart, Program, SpawnError};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Ends every process of the run's drivers, by SIGKILL, until none is left. Gives how many there were.
///
/// Only for a run that has no living driver.
pub fn kill_leftovers(run: &str) -> usize {
    kill_all_of(Owner::run(run))
}

fn kill_all_of(owner: Owner) -> usize {
    let mut killed = 0;
    let own = std::process::id() as i32;
    let mut buffer = Vec::new();
    // Each round ends what the last one missed: a process may start others while we look. The rounds are
    // bounded because what the kernel cannot end (a hanging network file system) would be found for ever.
    for _ in 0..1000 {
        let alive: Vec<OwnedFd> = process::all()
            .into_iter()
            .filter(|pid| *pid != own)
            .filter_map(|pid| {
                // Opened before looking, so that the descriptor is of the process that was looked at.
                let pidfd = process::open_pidfd(pid).ok()?;
                let marked = Marker::of_process(pid).is_some_and(|marker| owner.owns(marker));
                (marked && !Stat::of(pid, &mut buffer)?.is_over()).then_some(pidfd)
            })
            .collect();
        if alive.is_empty() {
            break;
        }
        killed += alive.len();
        alive.iter().for_each(|pidfd| process::signal(pidfd, libc::SIGKILL));
        wait_until_over(&alive, Duration::from_secs(5));
    }
    killed
}

fn wait_until_over(processes: &[OwnedFd], patience: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let until = Instant::now() + patience;
    for process in processes {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout));
    }
}

/// The body of the guard's process: waits until its driver is gone, then ends what that left.
pub fn guard_main(run: &str) {
    let mut told = String::new();
    // An error reading means the same as the end: the driver cannot reach us.
    let _ = io::stdin().read_to_string(&mut told);
    if let Ok(instance) = told.trim().parse() {
        kill_all_of(Owner::driver(run, instance));
    }
}

/// The driver's end of it.
pub(crate) struct Guard {
    /// Open as long as the driver lives; nobody else has it.
    pipe: Option<OwnedFd>,
    child: spawn::Child,
}

impl Guard {
    pub(crate) fn start(arguments: &[String], instance: u16) -> io::Result<Guard> {
        let (theirs, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        File::from(ours.as_fd().try_clone_to_owned()?).write_all(format!("{instance}\n").as_bytes())?;
        let nothing = OpenOptions::new().write(true).open("/dev/null")?;
        let string = |text: &str| CString::new(text).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
        let own = std::env::current_exe()?;
        let words = std::iter::once(Ok(string(&own.to_string_lossy())?))
            .chain(arguments.iter().map(|word| string(word)))
            .collect::<io::Result<Vec<_>>>()?;
        let child = spawn::spawn(&Program {
            // Also when the file was replaced by a newer build meanwhile.
            path: c"/proc/self/exe",
            arguments: &words,
            variables: &[],
            folder: c"/",
            stdin: theirs.as_raw_fd(),
            stdout: nothing.as_raw_fd(),
            stderr: nothing.as_raw_fd(),
            // Ctrl-C in the terminal reaches the driver's session only.
            apart: Apart::Session,
            mark: None,
            open_files: None,
            cpus: None,
        });
        let child = child.map_err(|error| match error {
            SpawnError::Clone(error)
            | SpawnError::Folder(error)
            | SpawnError::Streams(error)
            | SpawnError::Execute(error) => error,
        })?;
        Ok(Guard { pipe: Some(ours), child })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.pid
    }

    /// Nothing is left to guard: end it without a search.
    pub(crate) fn dismiss(self) {}
}

impl Drop for Guard {
    fn drop(&mut self) {
        process::signal(&self.child.pidfd, libc::SIGKILL);
        self.pipe.take();
        let _ = process::reap(self.child.pid, &mut Vec::new());
    }
}
