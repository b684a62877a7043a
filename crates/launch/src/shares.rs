//! Files that several tasks are given by hard links: whether each still holds the content that its digest names.
//!
//! Another task may be writing to such a file while this one is given it, and may put its time back. The change time tells:
//! no program can set it. A hard link and its removal change it too, so Tulpar's own are counted: it looks at the file before and
//! after each of them, and remembers the look. A file whose look is not the remembered one is read again.

use crate::collect::hash_file;
use rustix::fs::{AtFlags, CWD, FileType, Stat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tulpar_core::ids::Digest;

/// How a file looks from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) inode: u64,
    size: u64,
    mode: u32,
    mtime_ns: i64,
    ctime_ns: i64,
}

impl Look {
    pub(crate) fn of(stat: &Stat) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            inode: stat.st_ino,
            size: stat.st_size as u64,
            mode: stat.st_mode,
            mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
            ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }

    /// Of a name itself, not of the file behind a link.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        rustix::fs::lstat(path).ok().map(|stat| Self::of(&stat))
    }

    /// Nothing but its names came or went.
    pub(crate) fn is_like(&self, other: &Look) -> bool {
        Look { ctime_ns: 0, ..*self } == Look { ctime_ns: 0, ..*other }
    }

    fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    fn is_writable(&self) -> bool {
        self.mode & 0o222 != 0
    }
}

/// A file that tasks share.
#[derive(Clone, Copy)]
pub(crate) struct Share<'a> {
    pub(crate) path: &'a Path,
    pub(crate) digest: Digest,
    /// A copy that the tasks of a run share, or else a stored result.
    pub(crate) pin: bool,
}

pub(crate) enum Fault {
    /// It held something else, and was removed.
    Damaged,
    /// The name is taken; the file looks like this.
    Exists(Look),
    Errno(Errno),
}

type Known = HashMap<(Digest, bool), Look>;

/// How each shared file looked when its content was known. In parts, so that tasks wait for each other only while one reads
/// the file that the other needs.
pub(crate) struct Shares {
    parts: [Mutex<Known>; 64],
    /// Where damaged results are noted.
    spoiled: PathBuf,
}

impl Shares {
    pub(crate) fn new(spoiled: PathBuf) -> Self {
        Self { parts: std::array::from_fn(|_| Mutex::default()), spoiled }
    }

    fn part(&self, share: &Share<'_>) -> MutexGuard<'_, Known> {
        self.parts[usize::from(share.digest.0[0]) % self.parts.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a task one more name of the file. `unread`: a file that was not seen before is taken for what its name says.
    pub(crate) fn link(
        &self,
        share: &Share<'_>,
        (folder, name): (&OwnedFd, &str),
        unread: bool,
    ) -> Result<Look, Fault> {
        let mut known = self.part(share);
        let mut look = Look::of(&rustix::fs::lstat(share.path).map_err(Fault::Errno)?);
        if look.is_file() {
            let before = known.get(&share.key()).copied();
            if before != Some(look) && !(unread && before.is_none() && !look.is_writable()) {
                look = share.settle(look).inspect_err(|fault| {
                    if matches!(fault, Fault::Damaged) {
                        share.remove(&mut known, look.inode);
                    }
                })?;
            }
        }
        let linked = rustix::fs::linkat(CWD, share.path, folder, name, AtFlags::empty());
        match linked {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(Fault::Errno(Errno::NOENT)),
            // Another file system, too many links, a file system without them.
            Err(error) if error != Errno::EXIST => {
                rustix::fs::symlinkat(share.path, folder, name).map_err(|error| match error {
                    Errno::EXIST => Fault::Exists(look),
                    error => Fault::Errno(error),
                })?;
            }
            Err(_) => {
                known.insert(share.key(), look);
                return Err(Fault::Exists(look));
            }
        }
        // A file that was written to in between keeps its old look, so that it is read afterwards.
        if let Some(after) = Look::at(share.path).filter(|after| after.is_like(&look)) {
            look = after;
        }
        known.insert(share.key(), look);
        Ok(look)
    }

    /// The file was just written with the content of its digest.
    pub(crate) fn made(&self, share: &Share<'_>) {
        let mut known = self.part(share);
        if let Some(look) = Look::at(share.path).filter(Look::is_file) {
            known.entry(share.key()).or_insert(look);
        }
    }

    /// Whether the file that looked like `seen` when a task was given it still holds its content. The task's own name of it
    /// answers, unless the task has removed it or was given a symbolic link: then the shared name does. A file that is gone from
    /// there, or that another one has replaced, was damaged: another task that had it noticed.
    pub(crate) fn is_whole(&self, share: &Share<'_>, own: &Path, seen: &Look) -> bool {
        let look = || [own, share.path].into_iter().find_map(|path| Some((path, same_file(path, seen)?)));
        if look().is_some_and(|(_, now)| now == *seen) {
            return true;
        }
        let mut known = self.part(share);
        let Some((path, now)) = look() else { return *seen == Look::default() };
        if now.is_like(seen) && known.get(&share.key()) == Some(&now) {
            return true;
        }
        let read = Share { path, ..*share }.read(&now);
        match read {
            Ok(now) => {
                if same_file(share.path, seen).is_some() {
                    known.insert(share.key(), now);
                }
                true
            }
            Err(_) => {
                if !share.pin {
                    crate::spoiled::note(&self.spoiled, path);
                }
                share.remove(&mut known, seen.inode);
                false
            }
        }
    }

    /// Removes a task's name of the file, so that the next look at the file needs no reading.
    pub(crate) fn release(&self, share: &Share<'_>, own: &Path) {
        let mut known = self.part(share);
        let Some(before) = known.get(&share.key()).copied() else { return };
        if Look::at(own) == Some(before)
            && std::fs::remove_file(own).is_ok()
            && let Some(after) = Look::at(share.path).filter(|after| after.is_like(&before))
        {
            known.insert(share.key(), after);
        }
    }
}

impl Share<'_> {
    fn key(&self) -> (Digest, bool) {
        (self.digest, self.pin)
    }

    /// As [`Share::read`], until nobody writes to the file while it is read.
    fn settle(&self, mut look: Look) -> Result<Look, Fault> {
        for _ in 0..4 {
            look = self.read(&look)?;
            match Look::at(self.path) {
                Some(now) if now == look => return Ok(look),
                Some(now) if now.inode == look.inode => look = now,
                _ => return Err(Fault::Errno(Errno::NOENT)),
            }
        }
        Err(Fault::Damaged)
    }

    /// Reads the file, and takes away the right to write. Gives its look if it holds its content.
    fn read(&self, look: &Look) -> Result<Look, Fault> {
        if !hash_file(self.path).is_ok_and(|(digest, _)| digest == self.digest) {
            return Err(Fault::Damaged);
        }
        // The look is the one from before the reading: a write since then shows.
        if !look.is_writable() {
            return Ok(*look);
        }
        let mode = std::fs::Permissions::from_mode(look.mode & 0o555);
        let _ = std::fs::set_permissions(self.path, mode);
        let now = Look::at(self.path).ok_or(Fault::Errno(Errno::NOENT))?;
        let unwritten = Look { mode: look.mode, ctime_ns: look.ctime_ns, ..now } == *look;
        Ok(if unwritten { now } else { *look })
    }

    fn remove(&self, known: &mut Known, inode: u64) {
        known.remove(&self.key());
        if Look::at(self.path).is_some_and(|now| now.inode == inode) {
            let _ = std::fs::remove_file(self.path);
        }
    }
}

fn same_file(path: &Path, seen: &Look) -> Option<Look> {
    Look::at(path).filter(|now| now.inode == seen.inode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    #[test]
    fn names_that_come_and_go_need_no_reading_and_a_hidden_write_does() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("object");
        fs::write(&path, "one").unwrap();
        let earlier = SystemTime::now() - Duration::from_secs(1);
        File::open(&path).unwrap().set_modified(earlier).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        let folder = rustix::fs::open(top.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let shares = Shares::new(top.path().join("spoiled"));
        let share = Share { path: &path, digest: Digest::of(b"one"), pin: false };
        let give = |name: &str| shares.link(&share, (&folder, name), false);
        let is_known = || shares.part(&share).get(&share.key()).copied() == Look::at(&path);
        let [a, b] = ["a", "b"].map(|name| top.path().join(name));
        let Ok(first) = give("a") else { panic!("whole") };
        let Ok(_) = give("b") else { panic!("whole") };
        assert!(is_known() && shares.is_whole(&share, &a, &first));
        shares.release(&share, &b);
        assert!(is_known() && !b.exists() && shares.is_whole(&share, &a, &first));
        // Times come in ticks: a write within that of the last look would not show.
        let (last, probe) = (Look::at(&path).unwrap().ctime_ns, top.path().join("probe"));
        while fs::write(&probe, "").is_ok() && Look::at(&probe).unwrap().ctime_ns <= last {}
        // Same size, time and permissions.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&path, "six").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(earlier).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(matches!(give("c"), Err(Fault::Damaged)));
        assert!(!path.exists() && !shares.is_whole(&share, &a, &first));
    }
}
