//! Runs one command from its start to its log: the streams and the terminal are its own, signals that mean it reach it,
//! and the log is written however it ends.

use std::ffi::OsStr;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::darshan::{self, Darshan};
use crate::merge::Summary;
use crate::program::{Sight, sight};
use crate::recording::{Mode, Recording};
use crate::{Error, darshan::Logs};

/// What shall be run, and recorded how.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub words: &'a [String],
    pub log: &'a Path,
    pub mode: Mode,
    /// Files of the system too.
    pub everything: bool,
    /// Darshan's own library, where it shall record.
    pub darshan: Option<&'a Darshan>,
}

/// What became of it.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub recorded: Recorded,
}

#[derive(Debug)]
pub enum Recorded {
    Here(Summary),
    /// By Darshan itself: the log, or the folder of the logs of several processes.
    ByDarshan(Logs),
}

impl Outcome {
    /// As a shell says it: the code, or 128 and the signal.
    pub fn code(&self) -> u8 {
        let code = self.status.code().or_else(|| self.status.signal().map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

/// Where a command is, as the shell finds it.
pub fn find(word: &str) -> Option<PathBuf> {
    if word.contains('/') {
        return Some(PathBuf::from(word));
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(word))
        .find(|path| path.metadata().is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0))
}

/// Whether the library can see into a command.
pub fn sight_of(word: &str) -> Sight {
    find(word).map_or(Sight::Seen, |program| sight(&program))
}

/// Runs and records. Must be called before other threads exist: signals are taken from all of them.
pub fn run(request: &Request<'_>) -> Result<Outcome, Error> {
    let Some((program, arguments)) = request.words.split_first() else { return Err(Error::NoCommand) };
    let scratch = scratch();
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(darshan) = request.darshan {
        std::fs::create_dir_all(&scratch).map_err(Error::file("make the folder", &scratch))?;
        command.envs(darshan.environment(&scratch, request.mode, preload().as_deref())?);
        let status = follow(command, program)?;
        let logs = darshan::gather(&scratch, request.log)?;
        let _ = std::fs::remove_dir_all(&scratch);
        return Ok(Outcome { status, recorded: Recorded::ByDarshan(logs) });
    }
    let recording = Recording::begin(&scratch, request.mode, request.everything)?;
    command.envs(recording.environment(preload().as_deref()));
    match follow(command, program) {
        Err(error) => {
            recording.discard();
            Err(error)
        }
        Ok(status) => {
            let mut summary = recording.finish(request.words, request.log)?;
            if summary.processes == 0 && summary.unseen.is_empty() {
                summary.unseen.push(find(program).map_or_else(|| program.clone(), |path| path.display().to_string()));
            }
            Ok(Outcome { status, recorded: Recorded::Here(summary) })
        }
    }
}

fn preload() -> Option<std::ffi::OsString> {
    std::env::var_os("LD_PRELOAD")
}

fn scratch() -> PathBuf {
    let moment = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    std::env::temp_dir().join(format!("tulpar-io-{}-{moment}", std::process::id()))
}

/// Starts it and waits. A signal from the terminal reaches it by itself; one that was sent to us is handed on.
fn follow(mut command: Command, program: &str) -> Result<ExitStatus, Error> {
    let signals = block();
    let start = |error| Error::File { what: "start", path: PathBuf::from(program), error };
    let mut child = command.spawn().map_err(start)?;
    // SAFETY: no pointers.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) } as RawFd;
    // It ends with this process; the descriptor names the child for ever, so no other can be meant.
    std::thread::spawn(move || {
        loop {
            // SAFETY: plain data, filled by the call.
            let mut what: libc::siginfo_t = unsafe { std::mem::zeroed() };
            // SAFETY: both point to living locals.
            let signal = unsafe { libc::sigwaitinfo(&signals, &mut what) };
            if signal > 0 && what.si_code <= 0 {
                let nothing = std::ptr::null::<u8>();
                // SAFETY: no pointers but null.
                unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process, signal, nothing, 0) };
            }
        }
    });
    child.wait().map_err(start)
}

fn block() -> libc::sigset_t {
    // SAFETY: plain data, and pointers to it.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
            libc::sigaddset(&mut signals, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
        signals
    }
}

/// A name for the log of a command.
pub fn name_of_log(word: &str) -> PathBuf {
    let name = Path::new(word).file_name().unwrap_or(OsStr::new("command"));
    let clean: String = String::from_utf8_lossy(name.as_bytes())
        .chars()
        .map(|letter| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '_' })
        .collect();
    PathBuf::from(format!("{clean}-{}.darshan", std::process::id()))
}
