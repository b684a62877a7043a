//! The journal: the file of a run's events, durable before anything that they imply is done.
//!
//! One process writes it (it holds a lock), any number read it. It knows what an event looks like as a
//! line, and nothing of what events mean.
//!
//! A batch is one write and one `fdatasync`. What a crash can leave behind is therefore a part of the
//! last batch, and nothing of that batch was acted upon: cutting it loses nothing. Anything else that
//! does not read is damage, and going on from it could run a finished task twice: [`open_for_resume`]
//! refuses.
//!
//! [`open_for_resume`]: Journal::open_for_resume

mod follow;
mod portions;
mod read;

pub use follow::Follow;
pub use portions::{Portions, read_about, read_in_portions};
pub use read::{Cut, Entry, Reading, Skipped, Strictness, read, read_with};

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;
use tulpar_core::event::Event;
use tulpar_core::journal_line::{self, LineError, VERSION};
use tulpar_core::units::Timestamp;

#[derive(Debug, Error)]
pub enum JournalError {
    #[error("cannot {doing} the journal {path}: {cause}")]
    Io { doing: &'static str, path: PathBuf, cause: io::Error },
    #[error("{path} is there already: this run was started before; continue it with `tulpar resume`")]
    Exists { path: PathBuf },
    #[error(
        "{path} is in use by another Tulpar{}: wait until it ends, or stop it with `tulpar cancel`",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Locked { path: PathBuf, pid: Option<u32> },
    #[error(
        "{path}, line {line} (byte {offset}): {cause}.\nThe {whole} events before it are whole, but the file was changed \
         after it was written, so the run cannot be continued safely.\nRestore the file from a copy; or go on \
         from event {whole} with `truncate -s {offset} {path}` and then resume: what ended later is looked \
         up in the cache or runs again"
    )]
    Damaged { path: PathBuf, line: u64, offset: u64, whole: u64, cause: Damage },
    #[error("{path}, line {line}: {cause}. Continue this run with the Tulpar that started it, or a newer one")]
    Newer { path: PathBuf, line: u64, cause: LineError },
    #[error(
        "{path} was written by an earlier Tulpar: its events have version {version}, and this Tulpar reads version \
         {VERSION} only. Start a new run with `tulpar run`, or go on with this run with the Tulpar that started it"
    )]
    Older { path: PathBuf, version: u32 },
    #[error(
        "the journal {path} failed before and takes no more events: {cause}. Free or repair the disk, then resume the run"
    )]
    Broken { path: PathBuf, cause: String },
    #[error("the journal {path} was removed or replaced while the run went on: the history of this run is lost")]
    Removed { path: PathBuf },
}

/// What is wrong with a line that is not a torn tail.
#[derive(Debug, Error)]
pub enum Damage {
    #[error(transparent)]
    Line(LineError),
    #[error("event {found} stands where event {expected} should be")]
    Order { expected: u64, found: u64 },
}

/// What was in a journal that is taken up again.
#[derive(Debug)]
pub struct Recovered {
    pub events: Vec<Entry>,
    /// The torn tail that was cut off, to be told to the user.
    pub cut: Option<Cut>,
}

/// A journal that this process writes. The lock goes when it is dropped or the process dies.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    tape: Tape<File>,
}

impl Journal {
    /// Begins the journal of a new run. The folder must exist.
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(|cause| {
            if cause.kind() == io::ErrorKind::AlreadyExists {
                JournalError::Exists { path: path.to_owned() }
            } else {
                failed("create", path)(cause)
            }
        })?;
        lock(&file, path)?;
        // A file whose name is not durable is lost with everything in it.
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("make durable", path))?;
        Ok(Self { path: path.to_owned(), tape: Tape::new(file, 0, 1) })
    }

    /// Takes the journal of an interrupted run up again.
    pub fn open_for_resume(path: &Path) -> Result<(Self, Recovered), JournalError> {
        let mut events = Vec::new();
        let (journal, cut) = Self::open_for_resume_with(path, |entry| events.push(entry))?;
        Ok((journal, Recovered { events, cut }))
    }

    /// The same, without holding all events at once.
    pub fn open_for_resume_with(path: &Path, each: impl FnMut(Entry)) -> Result<(Self, Option<Cut>), JournalError> {
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(failed("open", path))?;
        lock(&file, path)?;
        let scanned = read::scan(&file, path, Strictness::Strict, each)?;
        if scanned.cut.is_some() {
            file.set_len(scanned.good).and_then(|()| file.sync_all()).map_err(failed("cut the torn tail of", path))?;
        }
        let tape = Tape::new(file, scanned.good, scanned.next_seq);
        Ok((Self { path: path.to_owned(), tape }, scanned.cut))
    }

    /// Makes the events durable, all together. When this returns an error none of them may be acted upon.
    pub fn append(&mut self, at: Timestamp, events: &[Event]) -> Result<(), JournalError> {
        self.tape.append(at, events).map_err(|trouble| match trouble {
            Trouble::Now(doing, cause) => JournalError::Io { doing, path: self.path.clone(), cause },
            Trouble::Before(cause) => JournalError::Broken { path: self.path.clone(), cause },
        })
    }

    /// The file that events are appended to is the one that its name leads to: what is written to a removed file is lost.
    pub fn ensure_in_place(&self) -> Result<(), JournalError> {
        use std::os::unix::fs::MetadataExt;
        let written = self.tape.medium.metadata().map_err(failed("look at", &self.path))?;
        match std::fs::metadata(&self.path) {
            Ok(named) if (named.dev(), named.ino()) == (written.dev(), written.ino()) => Ok(()),
            Err(cause) if !matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(failed("look at", &self.path)(cause))
            }
            _ => Err(JournalError::Removed { path: self.path.clone() }),
        }
    }

    /// The sequence number that the next event gets.
    pub fn next_seq(&self) -> u64 {
        self.tape.next_seq
    }

    /// Bytes that are durable.
    pub fn length(&self) -> u64 {
        self.tape.length
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    move |cause| JournalError::Io { doing, path, cause }
}

/// `flock`, not `fcntl`: a reader in this process that closes its own handle must not release it. It
/// cannot name the holder, so the holder leaves its process id beside the journal.
fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    let beside = path.with_extension("pid");
    let begun = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                return std::fs::write(&beside, format!("{}\n", std::process::id())).map_err(failed("lock", path));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let pid = noted_pid(&beside);
                // A task that a driver was just starting holds the lock until it executes its program, also after the
                // driver died or, in this very process, closed the journal.
                let patience = match pid {
                    Some(pid) if pid == std::process::id() => LEFT_BEHIND / 10,
                    Some(pid) if !is_there(pid) => LEFT_BEHIND,
                    _ => Duration::ZERO,
                };
                if begun.elapsed() < patience {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                return Err(JournalError::Locked { path: path.to_owned(), pid });
            }
            Err(cause) => return Err(failed("lock", path)(cause.into())),
        }
    }
}

/// How long the lock of a driver that is dead may outlive it.
const LEFT_BEHIND: Duration = Duration::from_secs(5);

fn noted_pid(beside: &Path) -> Option<u32> {
    std::fs::read_to_string(beside).ok()?.trim().parse().ok()
}

/// A process of another user is there too, though it may not be told anything.
fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// The process that writes this journal now, if one lives. Takes the lock for a moment only when the process
/// that last held it is still there, so that it never stands in the way of a driver that starts.
pub fn writer(path: &Path) -> Option<u32> {
    let pid = noted_pid(&path.with_extension("pid")).filter(|pid| is_there(*pid))?;
    let file = File::open(path).ok()?;
    // The number may be another process's by now: only the lock is proof.
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(rustix::io::Errno::WOULDBLOCK) => Some(pid),
        _ => None,
    }
}

/// What a tape is written on: a file, or in the tests a disk that fails.
trait Medium {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Medium for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

enum Trouble {
    Now(&'static str, io::Error),
    Before(String),
}

#[derive(Debug)]
struct Tape<M> {
    medium: M,
    length: u64,
    next_seq: u64,
    buffer: Vec<u8>,
    broken: Option<String>,
}

impl<M: Medium> Tape<M> {
    fn new(medium: M, length: u64, next_seq: u64) -> Self {
        Self { medium, length, next_seq, buffer: Vec::new(), broken: None }
    }

    fn append(&mut self, at: Timestamp, events: &[Event]) -> Result<(), Trouble> {
        if let Some(cause) = &self.broken {
            return Err(Trouble::Before(cause.clone()));
        }
        if events.is_empty() {
            return Ok(());
        }
        self.buffer.clear();
        for (seq, event) in (self.next_seq..).zip(events) {
            journal_line::encode(seq, at, event, &mut self.buffer);
        }
        if let Err(cause) = self.medium.write(&self.buffer) {
            // A full disk may become free again: only if the half batch cannot be taken back is it over.
            if let Err(second) = self.medium.cut(self.length) {
                self.broken = Some(second.to_string());
            }
            return Err(Trouble::Now("write to", cause));
        }
        if let Err(cause) = self.medium.sync() {
            // After a failed sync the kernel may have dropped the pages and forgotten the error: a second
            // sync that succeeds would prove nothing.
            self.broken = Some(cause.to_string());
            return Err(Trouble::Now("make durable", cause));
        }
        self.length += self.buffer.len() as u64;
        self.next_seq += events.len() as u64;
        if self.buffer.capacity() > 4 << 20 {
            self.buffer = Vec::new();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::ids::JobId;

    #[derive(Default)]
    struct Disk {
        bytes: Vec<u8>,
        /// Bytes that still fit.
        room: Option<usize>,
        sync_fails: bool,
    }

    impl Medium for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
            let fits = self.room.unwrap_or(usize::MAX).min(bytes.len());
            self.bytes.extend_from_slice(&bytes[..fits]);
            if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }
        fn sync(&mut self) -> io::Result<()> {
            if self.sync_fails { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
        }
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.bytes.truncate(length as usize);
            Ok(())
        }
    }

    const EVENTS: [Event; 2] = [Event::Due { job: JobId(1) }, Event::Due { job: JobId(2) }];

    #[test]
    fn a_batch_that_does_not_fit_on_the_disk_leaves_nothing_and_the_next_one_goes_on() {
        let mut tape = Tape::new(Disk::default(), 0, 1);
        assert!(tape.append(Timestamp(1), &EVENTS).is_ok());
        let before = tape.medium.bytes.clone();
        tape.medium.room = Some(70);
        assert!(matches!(tape.append(Timestamp(2), &EVENTS), Err(Trouble::Now("write to", _))));
        assert_eq!(tape.medium.bytes, before);
        tape.medium.room = None;
        assert!(tape.append(Timestamp(3), &EVENTS).is_ok());
        let text = String::from_utf8(tape.medium.bytes).unwrap();
        let seqs: Vec<&str> = text.lines().map(|line| &line[..16]).collect();
        assert_eq!(
            seqs,
            ["{\"seq\":1,\"at\":1,", "{\"seq\":2,\"at\":1,", "{\"seq\":3,\"at\":3,", "{\"seq\":4,\"at\":3,"]
        );
    }

    #[test]
    fn after_a_failed_sync_nothing_more_is_taken() {
        let mut tape = Tape::new(Disk { sync_fails: true, ..Disk::default() }, 0, 1);
        assert!(matches!(tape.append(Timestamp(1), &EVENTS), Err(Trouble::Now("make durable", _))));
        tape.medium.sync_fails = false;
        assert!(matches!(tape.append(Timestamp(1), &EVENTS), Err(Trouble::Before(_))));
    }
}
