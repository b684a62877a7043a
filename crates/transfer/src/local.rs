//! From a file of this machine to another: reflink, hard link, symbolic link, or a copy that the kernel makes. Bytes pass
//! through this process only when their checksum is wanted. It knows no URL.

use crate::error::TransferError;
use crate::target::{self, Folders, Target};
use crate::types::{How, LinkMode, Options, Progress, Sha256Digest, Transfer};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// What was learnt about the file systems, so that a file does not pay for a call that cannot work.
#[derive(Default)]
pub(crate) struct Learnt {
    no_reflink: AtomicBool,
}

/// What came of one file, before anybody counted attempts.
pub(crate) struct Arrived {
    pub(crate) bytes: u64,
    pub(crate) sha256: Option<Sha256Digest>,
    pub(crate) how: How,
}

const BUFFER: usize = 256 << 10;

/// One thread's way of moving local files.
pub(crate) struct Local<'a> {
    pub(crate) options: &'a Options,
    pub(crate) learnt: &'a Learnt,
    pub(crate) folders: Folders,
    buffer: Vec<u8>,
}

impl<'a> Local<'a> {
    pub(crate) fn new(options: &'a Options, learnt: &'a Learnt) -> Self {
        Local { options, learnt, folders: Folders::default(), buffer: Vec::new() }
    }

    pub(crate) fn place(&mut self, transfer: &Transfer, from: &Path, to: &Path) -> Result<Arrived, TransferError> {
        match self.options.links {
            LinkMode::Auto | LinkMode::Copy => self.copy(transfer, from, to),
            LinkMode::HardLink | LinkMode::Symlink => match self.link(transfer, from, to)? {
                Some(arrived) => Ok(arrived),
                None => self.copy(transfer, from, to),
            },
        }
    }

    fn copy(&mut self, transfer: &Transfer, from: &Path, to: &Path) -> Result<Arrived, TransferError> {
        let (source, stat) = self.open(from)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if let Some(expected) = transfer.size.filter(|expected| *expected != size) {
            return Err(TransferError::size(from.display(), expected, size));
        }
        let hash = transfer.sha256.is_some() || self.options.hash_local;
        let mode = stat.st_mode & 0o777 | if transfer.executable { 0o111 } else { 0 };
        let mut target = Target::create(&mut self.folders, to, mode, hash)?;
        let failed = |error: std::io::Error| TransferError::local(to, error);
        let mut how = How::Copy;
        if hash {
            self.pour(transfer, source, &mut target)?;
        } else if self.reflink(&source, target.file()) {
            how = How::Reflink;
            target.count(size);
        } else {
            self.copy_in_kernel(transfer, source, size, &mut target).map_err(failed)?;
        }
        if self.options.is_cancelled() {
            return Err(TransferError::cancelled(&transfer.from));
        }
        let (bytes, sha256) = target.finish(&from.display(), transfer.size, transfer.sha256)?;
        self.options.tell(Progress::Bytes(bytes));
        Ok(Arrived { bytes, sha256, how })
    }

    fn open(&mut self, from: &Path) -> Result<(OwnedFd, Stat), TransferError> {
        let failed = |error: Errno| TransferError::local(from, error);
        let (folder, name) = target::split(from)?;
        let folder = self.folders.existing(folder)?;
        // Without NONBLOCK, a pipe that stands where a file is expected would block for ever.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let source = rustix::fs::openat(&*folder, name, flags, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&source).map_err(failed)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((source, stat)),
            FileType::Directory => Err(TransferError::unsupported(from.display(), "it is a folder, not a file")),
            _ => Err(TransferError::unsupported(from.display(), "it is no regular file")),
        }
    }

    fn reflink(&self, source: &OwnedFd, target: &File) -> bool {
        if self.options.links == LinkMode::Copy || self.learnt.no_reflink.load(Ordering::Relaxed) {
            return false;
        }
        match rustix::fs::ioctl_ficlone(target, source) {
            Ok(()) => true,
            Err(error) => {
                if matches!(error, Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS | Errno::XDEV) {
                    self.learnt.no_reflink.store(true, Ordering::Relaxed);
                }
                false
            }
        }
    }

    /// The kernel moves the bytes; where it will not (some pairs of file systems), they are read and written.
    fn copy_in_kernel(
        &mut self,
        transfer: &Transfer,
        source: OwnedFd,
        size: u64,
        target: &mut Target,
    ) -> std::io::Result<()> {
        const AT_ONCE: u64 = 64 << 20;
        while target.written() < size && !self.options.is_cancelled() {
            let wanted = (size - target.written()).min(AT_ONCE) as usize;
            match rustix::fs::copy_file_range(&source, None, target.file(), None, wanted) {
                Ok(0) => break,
                Ok(count) => target.count(count as u64),
                Err(Errno::INTR) => {}
                Err(_) if target.written() == 0 => {
                    return self.pour(transfer, source, target).map_err(std::io::Error::other);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if target.written() != size && !self.options.is_cancelled() {
            return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the file shrank while it was copied"));
        }
        Ok(())
    }

    fn pour(&mut self, transfer: &Transfer, source: OwnedFd, target: &mut Target) -> Result<(), TransferError> {
        self.buffer.resize(BUFFER, 0);
        let mut source = File::from(source);
        let name = || transfer.from.as_path().unwrap_or(Path::new(""));
        loop {
            if self.options.is_cancelled() {
                return Err(TransferError::cancelled(&transfer.from));
            }
            let count = source.read(&mut self.buffer).map_err(|error| TransferError::local(name(), error))?;
            if count == 0 {
                return Ok(());
            }
            target.write(&self.buffer[..count]).map_err(|error| TransferError::local(name(), error))?;
        }
    }

    /// `None` when a link cannot do what is wanted, so that a copy has to.
    fn link(&mut self, transfer: &Transfer, from: &Path, to: &Path) -> Result<Option<Arrived>, TransferError> {
        let failed = |error: Errno| TransferError::local(to, error);
        let (source_folder, source_name) = target::split(from)?;
        let source = self.folders.existing(source_folder)?;
        let symbolic = self.options.links == LinkMode::Symlink;
        let (folder, name) = target::split(to)?;
        let folder = self.folders.made(folder)?;
        // A hard link that nothing is expected of needs no look at the file: linkat says what is wrong.
        let bare = !symbolic && transfer.size.is_none() && transfer.sha256.is_none() && !transfer.executable;
        let mut size = 0;
        let mut sha256 = None;
        if !bare {
            let stat = rustix::fs::statat(&*source, source_name, AtFlags::empty())
                .map_err(|error| TransferError::local(from, error))?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                return Err(TransferError::unsupported(from.display(), "it is a folder, not a file"));
            }
            size = u64::try_from(stat.st_size).unwrap_or(0);
            if let Some(expected) = transfer.size.filter(|expected| *expected != size) {
                return Err(TransferError::size(from.display(), expected, size));
            }
            if transfer.executable && stat.st_mode & 0o111 == 0 {
                return Ok(None);
            }
            if is_same(to, &stat) && is_no_link(to) {
                return Ok(Some(Arrived { bytes: size, sha256: self.verify(transfer, from)?, how: How::InPlace }));
            }
            sha256 = self.verify(transfer, from)?;
        }
        let absolute: PathBuf = if symbolic {
            std::path::absolute(from).map_err(|error| TransferError::local(from, error))?
        } else {
            PathBuf::new()
        };
        let make = |name: &OsStr| {
            if symbolic {
                rustix::fs::symlinkat(&absolute, &*folder, name)
            } else {
                // The file itself, not a symbolic link to it that may lead elsewhere tomorrow.
                rustix::fs::linkat(&*source, source_name, &*folder, name, AtFlags::SYMLINK_FOLLOW)
            }
        };
        let made = match make(name) {
            Err(Errno::EXIST) => {
                let temporary = target::temporary_name();
                make(OsStr::new(&temporary)).and_then(|()| {
                    let renamed = rustix::fs::renameat(&*folder, &temporary, &*folder, name);
                    // Two names of one file: rename does nothing and says that all is well.
                    let _ = rustix::fs::unlinkat(&*folder, &temporary, AtFlags::empty());
                    renamed
                })
            }
            other => other,
        };
        match made {
            Ok(()) if bare => {
                let stat = rustix::fs::statat(&*folder, name, AtFlags::empty()).map_err(failed)?;
                size = u64::try_from(stat.st_size).unwrap_or(0);
            }
            Ok(()) => {}
            Err(Errno::XDEV | Errno::MLINK | Errno::OPNOTSUPP) => return Ok(None),
            // Linking a folder or a file of somebody else is not permitted; copying says which it is.
            Err(Errno::PERM) => return Ok(None),
            Err(Errno::NOENT) => return Err(TransferError::local(from, Errno::NOENT)),
            Err(error) => return Err(failed(error)),
        }
        let how = if symbolic { How::Symlink } else { How::HardLink };
        Ok(Some(Arrived { bytes: size, sha256, how }))
    }

    fn verify(&self, transfer: &Transfer, from: &Path) -> Result<Option<Sha256Digest>, TransferError> {
        if transfer.sha256.is_none() && !self.options.hash_local {
            return Ok(None);
        }
        let (size, found) = target::hash_file(from, &|| !self.options.is_cancelled())
            .map_err(|error| TransferError::local(from, error))?;
        target::check(&from.display(), transfer.size, transfer.sha256, size, Some(found))?;
        Ok(Some(found))
    }
}

fn is_same(path: &Path, stat: &Stat) -> bool {
    rustix::fs::stat(path).is_ok_and(|other| other.st_dev == stat.st_dev && other.st_ino == stat.st_ino)
}

fn is_no_link(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::Symlink)
}

/// Every regular file below a folder, as paths relative to it. Links to files count as files; links to folders, which may
/// lead in circles, are not followed.
pub(crate) fn tree(root: &Path) -> Result<Vec<String>, TransferError> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    let mut room = Vec::with_capacity(64 << 10);
    while let Some(prefix) = folders.pop() {
        let folder = root.join(&prefix);
        let failed = |error: Errno| TransferError::local(&folder, error);
        let open = rustix::fs::open(&folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(failed)?;
        let mut entries = RawDir::new(&open, room.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || name.to_bytes().starts_with(b".tulpar-part-") {
                continue;
            }
            let kind = |flags| rustix::fs::statat(&open, name, flags).map(|stat| FileType::from_raw_mode(stat.st_mode));
            let kind = match entry.file_type() {
                FileType::Unknown => kind(AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?,
                FileType::Symlink => match kind(AtFlags::empty()) {
                    Ok(FileType::RegularFile) => FileType::RegularFile,
                    _ => continue,
                },
                known => known,
            };
            let text = name.to_string_lossy();
            let relative = if prefix.is_empty() { text.into_owned() } else { format!("{prefix}/{text}") };
            match kind {
                FileType::Directory => folders.push(relative),
                FileType::RegularFile => found.push(relative),
                _ => {}
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
