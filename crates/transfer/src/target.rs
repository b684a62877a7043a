//! A file that is being written: without a name, or under a temporary one in its folder, until all of it is there and
//! right; then it gets its name. It does not know where the bytes come from.

use crate::error::TransferError;
use crate::types::{Sha256Digest, Transfer};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// More open folders than this are closed and opened again.
const MOST_OPEN: usize = 64;

/// The folders that one thread has open, so that a file costs one name to resolve and not a path.
#[derive(Default)]
pub(crate) struct Folders {
    open: HashMap<PathBuf, Arc<OwnedFd>>,
}

impl Folders {
    pub(crate) fn existing(&mut self, folder: &Path) -> Result<Arc<OwnedFd>, TransferError> {
        if let Some(open) = self.open.get(folder) {
            return Ok(open.clone());
        }
        let open = open(folder).map_err(|error| TransferError::local(folder, error))?;
        Ok(self.remember(folder, open))
    }

    /// Opened, and made before when it is not there.
    pub(crate) fn made(&mut self, folder: &Path) -> Result<Arc<OwnedFd>, TransferError> {
        if let Some(open) = self.open.get(folder) {
            return Ok(open.clone());
        }
        let open = match open(folder) {
            Err(Errno::NOENT) => {
                std::fs::create_dir_all(folder).map_err(|error| TransferError::local(folder, error))?;
                open(folder)
            }
            other => other,
        };
        let open = open.map_err(|error| TransferError::local(folder, error))?;
        Ok(self.remember(folder, open))
    }

    fn remember(&mut self, folder: &Path, open: OwnedFd) -> Arc<OwnedFd> {
        if self.open.len() >= MOST_OPEN {
            self.open.clear();
        }
        let open = Arc::new(open);
        self.open.insert(folder.to_owned(), open.clone());
        open
    }
}

fn open(folder: &Path) -> rustix::io::Result<OwnedFd> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Folder and name of a path that is to be a file.
pub(crate) fn split(path: &Path) -> Result<(&Path, &OsStr), TransferError> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok((folder, name)),
        _ => Err(TransferError::unsupported(path.display(), "it names a folder, not a file")),
    }
}

/// A name that nobody else uses, on any machine that shares the folder.
pub(crate) fn temporary_name() -> String {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let process = PROCESS.get_or_init(|| {
        let mut random = std::hash::RandomState::new().build_hasher();
        random.write_u32(std::process::id());
        random.finish()
    });
    format!(".tulpar-part-{process:016x}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Bytes on their way into a file. Dropped before [`Target::finish`], it leaves nothing behind.
pub(crate) struct Target {
    folder: Arc<OwnedFd>,
    /// `None`: the file has no name yet, and is gone with this process whatever happens.
    temporary: Option<String>,
    name: OsString,
    file: File,
    hasher: Option<Sha256>,
    written: u64,
}

impl Target {
    pub(crate) fn create(folders: &mut Folders, path: &Path, mode: u32, hash: bool) -> Result<Self, TransferError> {
        let (folder, name) = split(path)?;
        let folder = folders.made(folder)?;
        Target::create_at(folder, name, mode, hash).map_err(|error| TransferError::local(path, error))
    }

    pub(crate) fn create_at(folder: Arc<OwnedFd>, name: &OsStr, mode: u32, hash: bool) -> rustix::io::Result<Self> {
        let (file, temporary) = match unnamed(&folder, mode) {
            Some(file) => (file, None),
            None => {
                let temporary = temporary_name();
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&*folder, &temporary, flags, Mode::from_raw_mode(mode))?;
                (file, Some(temporary))
            }
        };
        Ok(Target {
            folder,
            temporary,
            name: name.to_owned(),
            file: file.into(),
            hasher: hash.then(Sha256::new),
            written: 0,
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        self.file.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Bytes that the kernel copied, past the hasher.
    pub(crate) fn count(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Forgets what was written so far.
    pub(crate) fn restart(&mut self) -> std::io::Result<()> {
        use std::io::Seek;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.written = 0;
        if let Some(hasher) = &mut self.hasher {
            *hasher = Sha256::new();
        }
        Ok(())
    }

    /// Checks size and checksum against what was expected, and only then gives the file its name.
    pub(crate) fn finish(
        mut self,
        from: &dyn std::fmt::Display,
        size: Option<u64>,
        sha256: Option<Sha256Digest>,
    ) -> Result<(u64, Option<Sha256Digest>), TransferError> {
        let found = self.hasher.take().map(|hasher| Sha256Digest(hasher.finalize().into()));
        check(from, size, sha256, self.written, found)?;
        self.name_it().map_err(|error| TransferError::local(Path::new(&self.name), error))?;
        Ok((self.written, found))
    }

    fn name_it(&mut self) -> rustix::io::Result<()> {
        if self.temporary.is_none() {
            let here = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            let link = |name: &OsStr| rustix::fs::linkat(CWD, &here, &*self.folder, name, AtFlags::SYMLINK_FOLLOW);
            match link(&self.name) {
                Err(Errno::EXIST) => {}
                other => return other,
            }
            // Only a rename replaces what is there.
            let temporary = temporary_name();
            link(OsStr::new(&temporary))?;
            self.temporary = Some(temporary);
        }
        if let Some(temporary) = &self.temporary {
            rustix::fs::renameat(&*self.folder, temporary, &*self.folder, &self.name)?;
            self.temporary = None;
        }
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = rustix::fs::unlinkat(&*self.folder, temporary, AtFlags::empty());
        }
    }
}

/// A file without a name, where the file system has such: it costs one entry of the folder instead of two, and a crash
/// leaves nothing.
fn unnamed(folder: &OwnedFd, mode: u32) -> Option<OwnedFd> {
    static IMPOSSIBLE: AtomicBool = AtomicBool::new(false);
    static NAMED_LATER: OnceLock<bool> = OnceLock::new();
    if IMPOSSIBLE.load(Ordering::Relaxed) || !NAMED_LATER.get_or_init(|| Path::new("/proc/self/fd").is_dir()) {
        return None;
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, ".", flags, Mode::from_raw_mode(mode)) {
        Ok(file) => Some(file),
        Err(error) => {
            if matches!(error, Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) {
                IMPOSSIBLE.store(true, Ordering::Relaxed);
            }
            None
        }
    }
}

/// Whether a file is what was expected.
pub(crate) fn check(
    from: &dyn std::fmt::Display,
    size: Option<u64>,
    sha256: Option<Sha256Digest>,
    found_size: u64,
    found: Option<Sha256Digest>,
) -> Result<(), TransferError> {
    if let Some(expected) = size.filter(|size| *size != found_size) {
        return Err(TransferError::size(from, expected, found_size));
    }
    match (sha256, found) {
        (Some(expected), Some(found)) if expected != found => Err(TransferError::Mismatch {
            location: from.to_string(),
            property: "SHA-256",
            expected: expected.to_string(),
            found: found.to_string(),
        }),
        _ => Ok(()),
    }
}

/// What a new file may be: read and written by all whom the umask allows, run by them if it is a program.
pub(crate) fn mode(transfer: &Transfer) -> u32 {
    if transfer.executable { 0o777 } else { 0o666 }
}

/// The checksum of a file that is there, read once.
pub(crate) fn hash_file(path: &Path, keep_on: &dyn Fn() -> bool) -> std::io::Result<(u64, Sha256Digest)> {
    use std::io::Read;
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let mut size = 0;
    while keep_on() {
        match file.read(&mut buffer)? {
            0 => return Ok((size, Sha256Digest(hasher.finalize().into()))),
            count => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
        }
    }
    Err(std::io::ErrorKind::Interrupted.into())
}
