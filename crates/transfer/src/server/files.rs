//! The files below the root, and no others: the kernel itself refuses a path or symbolic link that leads out. It knows no
//! HTTP.

use crate::target::Target;
use crate::types::Entry;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::{Errno, Result};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) struct Files {
    root: Arc<OwnedFd>,
    /// Where the kernel cannot confine a path (older than 5.6, or a strict container), names are resolved and compared.
    compared: Option<PathBuf>,
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Files {
    pub(super) fn new(root: &Path) -> std::io::Result<Self> {
        let open = Arc::new(rustix::fs::open(root, FOLDER, Mode::empty())?);
        let confined = rustix::fs::openat2(&*open, ".", FOLDER, Mode::empty(), ResolveFlags::BENEATH);
        let compared = if confined.is_ok() { None } else { Some(root.canonicalize()?) };
        Ok(Files { root: open, compared })
    }

    pub(super) fn open(&self, path: &str, flags: OFlags) -> Result<OwnedFd> {
        let path = if path.is_empty() { "." } else { path };
        if let Some(root) = &self.compared {
            let resolved =
                root.join(path).canonicalize().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            if !resolved.starts_with(root) {
                return Err(Errno::XDEV);
            }
            return rustix::fs::open(resolved, flags | OFlags::CLOEXEC, Mode::empty());
        }
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..8 {
            // A rename at the same moment makes the kernel unsure whether the path stayed inside.
            match rustix::fs::openat2(&*self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), how) {
                Err(Errno::AGAIN) => {}
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    /// A folder, made with those above it when it is not there.
    pub(super) fn make_folder(&self, path: &str) -> Result<Arc<OwnedFd>> {
        match self.open(path, FOLDER) {
            Err(Errno::NOENT) => {}
            other => return other.map(Arc::new),
        }
        let mut made = String::new();
        let mut folder = self.root.clone();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            match rustix::fs::mkdirat(&*folder, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            made.push_str(if made.is_empty() { "" } else { "/" });
            made.push_str(part);
            folder = Arc::new(self.open(&made, FOLDER)?);
        }
        Ok(folder)
    }

    pub(super) fn create(&self, folder: &Arc<OwnedFd>, name: &str, executable: bool) -> Result<Target> {
        let mode = if executable { 0o777 } else { 0o666 };
        Target::create_at(folder.clone(), OsStr::new(name), mode, true)
    }

    pub(super) fn remove(&self, path: &str) -> Result<()> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.open(folder, FOLDER)?;
        rustix::fs::unlinkat(&folder, name, AtFlags::empty())
    }

    /// A folder with all that is in it. Symbolic links are removed, never followed.
    pub(super) fn remove_folder(&self, path: &str) -> Result<()> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let above = self.open(above, FOLDER)?;
        remove_below(&above, OsStr::new(name))
    }

    /// What is in a folder: names relative to it, in order.
    pub(super) fn list(&self, path: &str, recursive: bool) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        let mut prefixes = vec![String::new()];
        let mut room = Vec::with_capacity(64 << 10);
        while let Some(prefix) = prefixes.pop() {
            let place = if path.is_empty() || prefix.is_empty() {
                format!("{path}{prefix}")
            } else {
                format!("{path}/{prefix}")
            };
            let folder = match self.open(&place, OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(folder) => folder,
                // Removed while it was being listed.
                Err(Errno::NOENT) if !prefix.is_empty() => continue,
                Err(error) => return Err(error),
            };
            let mut entries = RawDir::new(&folder, room.spare_capacity_mut());
            while let Some(entry) = entries.next() {
                let entry = entry?;
                let Ok(name) = entry.file_name().to_str() else { continue };
                if matches!(name, "." | "..") || name.starts_with(".tulpar-part-") {
                    continue;
                }
                let relative = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
                let stat = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                        // A link that leads out is not shown, not even its size; one to a folder may lead in circles.
                        let place = if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
                        match self.open(&place, OFlags::PATH).and_then(rustix::fs::fstat) {
                            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => stat,
                            _ => continue,
                        }
                    }
                    Ok(stat) => stat,
                    Err(Errno::NOENT) => continue,
                    Err(error) => return Err(error),
                };
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory => {
                        if recursive {
                            prefixes.push(relative.clone());
                        }
                        found.push(Entry { name: relative, size: None, directory: true });
                    }
                    FileType::RegularFile => {
                        found.push(Entry { name: relative, size: u64::try_from(stat.st_size).ok(), directory: false });
                    }
                    _ => {}
                }
            }
        }
        found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }
}

fn remove_below(above: &OwnedFd, name: &OsStr) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(above, name, flags, Mode::empty())?;
    let mut room = Vec::with_capacity(32 << 10);
    let mut folders = Vec::new();
    let mut entries = RawDir::new(&folder, room.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR | Errno::PERM) => folders.push(name.to_owned()),
            Err(error) => return Err(error),
        }
    }
    for inner in folders {
        use std::os::unix::ffi::OsStrExt;
        remove_below(&folder, OsStr::from_bytes(inner.to_bytes()))?;
    }
    rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR)
}
