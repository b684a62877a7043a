//! Other programs that move files: started with a text on stdin, read line by line, ended when the list is cancelled; and
//! the place where a file that a program writes waits until it was checked.

use crate::error::TransferError;
use crate::local::Arrived;
use crate::target::{self, Folders};
use crate::types::{How, Options, Progress, Transfer};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How soon a program is ended after the list was cancelled.
const GLANCE: Duration = Duration::from_millis(200);
/// Of what a program complains, the end is kept.
const LONGEST_COMPLAINT: usize = 2000;

pub(crate) struct Ended {
    pub(crate) success: bool,
    /// What it wrote to stderr, its end.
    pub(crate) complaint: String,
}

/// The program of this name, if it is on PATH.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    use rustix::fs::{Access, access};
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}

/// Runs a program to its end. Every line of its stdout is handed on as it comes.
pub(crate) fn run(
    options: &Options,
    command: &mut Command,
    input: Vec<u8>,
    mut line: impl FnMut(&str),
) -> std::io::Result<Ended> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that does not read all of its list says why on its other streams.
            let _ = stdin.map(|mut stdin| stdin.write_all(&input));
        });
        scope.spawn(move || {
            let Some(stdout) = stdout else { return };
            let mut reader = BufReader::new(stdout);
            let mut bytes = Vec::new();
            while reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
                let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
                if tell.send(text).is_err() {
                    return;
                }
                bytes.clear();
            }
        });
        let complaint = scope.spawn(move || {
            let mut kept = Vec::new();
            let mut buffer = [0; 4096];
            let Some(mut stderr) = stderr else { return kept };
            while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                kept.extend_from_slice(&buffer[..count]);
                let surplus = kept.len().saturating_sub(LONGEST_COMPLAINT);
                kept.drain(..surplus);
            }
            kept
        });
        loop {
            match told.recv_timeout(GLANCE) {
                Ok(text) => line(&text),
                Err(RecvTimeoutError::Timeout) if options.is_cancelled() => {
                    let _ = child.kill();
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = child.wait()?;
        drop(told);
        let complaint = complaint.join().unwrap_or_default();
        Ok(Ended { success: status.success(), complaint: String::from_utf8_lossy(&complaint).trim().to_owned() })
    })
}

/// A file that a program is to write: under a temporary name beside its destination. Dropped, it is gone.
pub(crate) struct Landing {
    temporary: PathBuf,
    to: PathBuf,
}

impl Landing {
    pub(crate) fn new(folders: &mut Folders, to: &Path) -> Result<Self, TransferError> {
        let (folder, _) = target::split(to)?;
        folders.made(folder)?;
        let absolute = std::path::absolute(folder).map_err(|error| TransferError::local(folder, error))?;
        Ok(Landing { temporary: absolute.join(target::temporary_name()), to: to.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.temporary
    }

    /// Reads what the program wrote, checks it, and gives it its name.
    pub(crate) fn finish(self, options: &Options, transfer: &Transfer) -> Result<Arrived, TransferError> {
        let failed = |error| TransferError::local(&self.to, error);
        let found = target::hash_file(&self.temporary, &|| !options.is_cancelled());
        let (bytes, sha256) = match found {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(TransferError::transient(&transfer.from, "the program that moves it wrote nothing"));
            }
            Err(error) => return Err(failed(error)),
        };
        target::check(&transfer.from, transfer.size, transfer.sha256, bytes, Some(sha256))?;
        if transfer.executable {
            let mode = std::fs::metadata(&self.temporary).map_err(failed)?.permissions().mode();
            let mode = std::fs::Permissions::from_mode(mode | 0o111);
            std::fs::set_permissions(&self.temporary, mode).map_err(failed)?;
        }
        std::fs::rename(&self.temporary, &self.to).map_err(failed)?;
        options.tell(Progress::Bytes(bytes));
        Ok(Arrived { bytes, sha256: Some(sha256), how: How::Program })
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// A local file that a program is to send: what it is now, checked against what it should be.
pub(crate) fn departing(options: &Options, transfer: &Transfer, path: &Path) -> Result<Arrived, TransferError> {
    let (bytes, sha256) =
        target::hash_file(path, &|| !options.is_cancelled()).map_err(|error| TransferError::local(path, error))?;
    target::check(&path.display(), transfer.size, transfer.sha256, bytes, Some(sha256))?;
    Ok(Arrived { bytes, sha256: Some(sha256), how: How::Program })
}
