//! What is under way: every attempt from the moment it was handed in until its report, and how to stop it.
//!
//! Behind one lock, held for microseconds. Changing it never waits for anything.

use crate::process::{self, Left};
use crate::sample::Samples;
use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec, Told, Usage};
use tulpar_core::units::Timestamp;

const GRACE: Duration = Duration::from_secs(10);
/// After SIGKILL a process goes unless the kernel itself hangs (a dead network file system).
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// One attempt whose process was started.
pub(crate) struct Running {
    pub(crate) spec: Box<JobSpec>,
    pub(crate) folder: PathBuf,
    /// Kept open for the next attempt in the same folder.
    pub(crate) streams: Option<crate::sandbox::Streams>,
    /// Values that must not leave through stderr's tail.
    pub(crate) secrets: Vec<String>,
    /// Of its reads and writes.
    pub(crate) capture: Option<crate::capture::Capture>,
    pub(crate) io: Option<Box<tulpar_core::job::IoRecord>>,
    /// Removes its container when the client was killed.
    pub(crate) remove_container: Option<Vec<String>>,
    pub(crate) input_files: u64,
    pub(crate) input_bytes: u64,
    /// Its inputs as they were when it started.
    pub(crate) inputs_seen: Vec<crate::shares::Look>,
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    pub(crate) clock: Instant,
    pub(crate) started: Timestamp,
    /// Why we ended it, if we did.
    pub(crate) stop: Option<Ending>,
    /// SIGKILL was sent.
    pub(crate) killed: bool,
    /// Set when its main process is over.
    pub(crate) left: Option<Left>,
    pub(crate) wall: Duration,
    /// The kernel killed it for lack of memory.
    pub(crate) out_of_memory: bool,
    /// A pass over the processes has seen it.
    pub(crate) seen: bool,
    /// Of all processes that are over.
    pub(crate) usage: Usage,
    /// Its processes that the kernel gave to us and that are not over.
    pub(crate) strays: u32,
    pub(crate) samples: Samples,
    /// What it says as a trial, while it runs.
    pub(crate) hearing: crate::told::Hearing,
    /// What it said as a trial, once it has ended well.
    pub(crate) told: Option<Box<Told>>,
    /// What lay in its output folders and cannot be kept.
    pub(crate) left_out: Vec<String>,
}

/// A living process of an attempt whose own parent is gone.
pub(crate) struct Stray {
    pub(crate) serial: u32,
    pub(crate) pidfd: OwnedFd,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    /// Waiting for a thread; `Some` when it was cancelled before it started.
    Queued(Option<Ending>),
    Running(u32),
    Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    Walltime,
    Kill,
    GiveUp,
}

#[derive(Default)]
pub(crate) struct Table {
    pub(crate) stages: HashMap<AttemptId, Stage>,
    pub(crate) running: HashMap<u32, Running>,
    pub(crate) strays: HashMap<i32, Stray>,
    pub(crate) alarms: BTreeSet<(Instant, u32, Alarm)>,
    /// How many of `running` have a memory limit.
    pub(crate) memory_limited: usize,
    /// How many of `running` are trials that may say numbers on the way.
    pub(crate) trials: usize,
    /// How many of `running` no pass has seen yet: a short task shall leave a figure of its memory too.
    pub(crate) unseen: usize,
    /// Something was started since a pass was last due.
    pub(crate) has_started: bool,
    /// Until when the watching thread sleeps.
    pub(crate) sleeps_until: Option<Instant>,
    /// Somebody waits until there is nothing left.
    pub(crate) awaited: bool,
    pub(crate) closing: bool,
}

impl Running {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.clock.checked_add(self.limit()?.0)
    }

    /// How long it may run, and what that is then called.
    pub(crate) fn limit(&self) -> Option<(Duration, Ending)> {
        let slice = self.spec.checkpoint.as_ref().and_then(|checkpoint| checkpoint.every);
        match (self.spec.limits.time, slice) {
            (Some(time), Some(slice)) if time <= slice => Some((time, Ending::Walltime)),
            (_, Some(slice)) => Some((slice, Ending::Checkpointed)),
            (Some(time), None) => Some((time, Ending::Walltime)),
            (None, None) => None,
        }
    }

    /// The group while the main process holds its number, else nobody: it might be another's by now.
    fn signal_group(&self, signal: i32) {
        if self.left.is_none() {
            // SAFETY: no pointers.
            let reached = unsafe { libc::kill(-self.pid, signal) };
            if reached != 0 {
                process::signal(&self.pidfd, signal);
            }
        }
    }
}

impl Table {
    /// Asks an attempt to end, and sees to it that it does. The first reason stays.
    pub(crate) fn stop(&mut self, serial: u32, why: Ending, now: Instant) {
        let Some(running) = self.running.get_mut(&serial) else { return };
        if running.stop.is_some() {
            return;
        }
        running.stop = Some(why);
        let grace = running.spec.limits.grace.unwrap_or(GRACE);
        running.signal_group(libc::SIGTERM);
        // A stopped process takes no notice of SIGTERM.
        running.signal_group(libc::SIGCONT);
        let group = running.pid;
        self.signal_strays(serial, libc::SIGTERM, Some(group));
        self.alarms.insert((now + grace, serial, Alarm::Kill));
    }

    /// Ends every process of an attempt that can be reached now; the rest when their parents are gone.
    pub(crate) fn kill(&mut self, serial: u32, now: Instant) {
        let Some(running) = self.running.get_mut(&serial) else { return };
        running.killed = true;
        running.signal_group(libc::SIGKILL);
        if running.left.is_none() {
            process::signal(&running.pidfd, libc::SIGKILL);
        }
        self.signal_strays(serial, libc::SIGKILL, None);
        self.alarms.insert((now + PATIENCE, serial, Alarm::GiveUp));
    }

    /// `except`: a group that has had the signal.
    fn signal_strays(&self, serial: u32, signal: i32, except: Option<i32>) {
        for (pid, stray) in self.strays.iter().filter(|(_, stray)| stray.serial == serial) {
            // SAFETY: no pointers.
            if except.is_none_or(|group| unsafe { libc::getpgid(*pid) } != group) {
                process::signal(&stray.pidfd, signal);
            }
        }
    }
}
