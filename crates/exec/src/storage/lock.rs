//! The lock that Optuna's processes take before they append to a journal file: a symbolic link beside it, which only one
//! of them can make. It works on file systems that know no other locks.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Whoever holds it so long without writing is dead.
const GRACE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
#[error("{} cannot be made: {source}; is the folder there, and may it be written to?", path.display())]
pub struct LockError {
    path: PathBuf,
    source: std::io::Error,
}

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    link: PathBuf,
}

impl Lock {
    /// Waits until nobody holds it.
    pub fn take(file: &Path) -> Result<Self, LockError> {
        Self::take_after(file, GRACE)
    }

    /// The same; one that is held and not written under for so long is taken away.
    pub fn take_after(file: &Path, grace: Duration) -> Result<Self, LockError> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let link = PathBuf::from(name);
        let mut pause = FIRST_PAUSE;
        let mut seen: (Option<SystemTime>, Instant) = (None, Instant::now());
        loop {
            match symlink(file, &link) {
                Ok(()) => return Ok(Self { link }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(source) => return Err(LockError { path: link, source }),
            }
            // Through the link: it grows older only while nothing is written. Optuna makes links that lead nowhere when
            // it was given a relative path.
            let modified = link.metadata().or_else(|_| link.symlink_metadata()).and_then(|data| data.modified()).ok();
            if modified != seen.0 {
                seen = (modified, Instant::now());
            } else if modified.is_some() && seen.1.elapsed() > grace {
                remove(&link);
                seen = (None, Instant::now());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        remove(&self.link);
    }
}

/// Renamed first: only one of several who take it away can succeed.
fn remove(link: &Path) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = link.as_os_str().to_owned();
    name.push(format!("{}-{}.rename", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    if std::fs::rename(link, &name).is_ok() {
        let _ = std::fs::remove_file(&name);
    }
}
