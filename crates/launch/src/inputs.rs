//! Gives a task its inputs: exactly the contents that its key names, so that the originals cannot change.
//!
//! | files | given as | the task may edit it |
//! |---|---|---|
//! | up to 1 MiB, in a task with at most 64 input files | a private copy, its digest checked on the way | yes |
//! | the user's own, otherwise | a hard link to a read-only copy, made once per run | no |
//! | results | a hard link to the read-only object; a large one of an earlier run is read first | no |
//! | the user's own, where a copy would be too large | refused; with `--link-large` a symbolic link; the stamp is compared before and after | it must not |
//!
//! A copy is too large if the file system cannot share blocks between files, and the copies of the run would exceed 16 GiB
//! or take more than a quarter of the free space.
//!
//! A copy per task of 30,000 images would be gigabytes; a copy per run is the images once. Results are shown by hard
//! links where the file system allows, because a symbolic link to a name as long as theirs takes an inode and a block
//! each (measured on ext4: 20 times the time of a hard link), and because a task may then rename an input into an output.

use crate::objects;
use crate::originals::Originals;
use crate::refusal::Refusal;
use crate::shares::{Fault, Look, Share};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tulpar_core::ids::Digest;
use tulpar_core::job::{InputFile, InputFiles, Source};

/// Relative, no way up, nothing that only looks like a path.
pub(crate) fn is_safe(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && !path.starts_with('/')
        && path.split('/').all(|part| part != "..")
        && path.split('/').any(|part| !part.is_empty() && part != ".")
}

/// Files up to this size are copied for each task.
pub(crate) const SMALL: u64 = 1 << 20;
/// The most bytes that a run copies of files larger than [`SMALL`].
const COPIES: u64 = 16 << 30;
/// A task with more input files than this shares its copies with other tasks.
pub(crate) const FEW: usize = 64;
/// So often a shared copy is made again for one task before the task is refused.
const MOST_COPIES: u32 = 16;

/// How a file is given to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Copy,
    /// A read-only copy that the tasks of a run share.
    Pin,
    Object,
    Original,
}

impl Way {
    fn of(file: &InputFile, few: bool, pins: bool) -> Way {
        match &file.source {
            // Only a script takes these, and pulls them first; given as they are they would not be found.
            Source::Remote(_) => Way::Original,
            _ if few && file.size <= SMALL => Way::Copy,
            Source::Object | Source::Text(_) => Way::Object,
            Source::Path(_) if pins => Way::Pin,
            Source::Path(_) => Way::Original,
        }
    }
}

/// How each file of a task is given.
pub(crate) fn way_of(inputs: &[InputFiles], pins: bool) -> impl Fn(&InputFile) -> Way + use<> {
    let few = are_few(inputs);
    move |file| Way::of(file, few, pins)
}

fn are_few(inputs: &[InputFiles]) -> bool {
    inputs.iter().map(|input| input.files.len()).sum::<usize>() <= FEW
}

/// The inputs of an attempt as they were given.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// In the order of the inputs and their files.
    pub(crate) seen: Vec<Look>,
}

pub(crate) struct Giver<'a> {
    pub(crate) project: &'a Path,
    pub(crate) objects: &'a Path,
    pub(crate) work: &'a Path,
    /// Copies, and links to large files, that tasks share; none where there is one task alone.
    pub(crate) pins: Option<&'a Path>,
    pub(crate) originals: &'a Originals,
    /// Where there is no room for a copy, a link to the user's own file will do.
    pub(crate) link_large: bool,
}

impl Giver<'_> {
    pub(crate) fn ways(&self, inputs: &[InputFiles]) -> impl Fn(&InputFile) -> Way + use<> {
        way_of(inputs, self.pins.is_some())
    }

    /// `restored`: the paths that a checkpoint has filled already. It has what the task made of its input.
    pub(crate) fn give(&self, inputs: &[InputFiles], restored: &HashSet<String>) -> Result<Given, Refusal> {
        let mut given = Given::default();
        if inputs.is_empty() {
            return Ok(given);
        }
        let top = open_folder(self.work).map_err(Refusal::sandbox("opening it"))?;
        let mut folders = Folders { top: &top, made: HashSet::new(), last: None };
        let way_of = self.ways(inputs);
        for (position, input) in inputs.iter().enumerate() {
            for (index, file) in input.files.iter().enumerate() {
                if !is_safe(&file.path) {
                    return Err(Refusal::UnsafePath(file.path.clone()));
                }
                if restored.contains(&file.path) {
                    given.seen.push(Look::default());
                    continue;
                }
                let (folder, name) = folders.parent(&file.path)?;
                let way = way_of(file);
                let seen = match self.give_one(file, way, folder, name) {
                    Ok(seen) => seen,
                    // The same file through two inputs, or twice in one, is no conflict.
                    Err(Trouble::Exists(seen)) if is_repeated(inputs, position, index) => seen,
                    Err(Trouble::Exists(_)) => return Err(Refusal::SamePath(file.path.clone())),
                    Err(Trouble::Refused(refusal)) => return Err(refusal),
                    Err(Trouble::Io(error)) => {
                        return Err(Refusal::sandbox(format!("giving it `{}`", file.path))(error));
                    }
                };
                given.seen.push(match way {
                    Way::Copy => rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                        .map_or_else(|_| Look::default(), |stat| Look::of(&stat)),
                    _ => seen,
                });
                given.files += 1;
                given.bytes += file.size;
            }
            if let Some(list) = &input.list {
                self.write_list(list, input, &mut folders)?;
            }
        }
        Ok(given)
    }

    fn give_one(&self, file: &InputFile, way: Way, folder: &OwnedFd, name: &str) -> Result<Look, Trouble> {
        match way {
            Way::Copy => match self.content(file)? {
                Content::Folder(from) => rustix::fs::symlinkat(from, folder, name)?,
                Content::File { bytes, access } => write(folder, name, &bytes, access)?,
            },
            Way::Pin => return self.pin(file, folder, name),
            Way::Object => {
                let from = self.object(file);
                let share = Share { path: &from, digest: file.digest, pin: false };
                // A job of its own process would read every object once more.
                return match self.originals.shares.link(&share, (folder, name), self.pins.is_none()) {
                    Err(Fault::Damaged) => Err(Refusal::Damaged(file.path.clone()).into()),
                    Err(Fault::Errno(rustix::io::Errno::NOENT)) => Err(missing(file, &from).into()),
                    other => Ok(other?),
                };
            }
            Way::Original => {
                let from = self.original(file).ok_or_else(|| missing(file, Path::new(&file.path)))?;
                self.check_original(file, &from)?;
                rustix::fs::symlinkat(&from, folder, name)?;
            }
        }
        Ok(Look::default())
    }

    /// A hard link to the copy that the tasks of this run share. A copy that a task has changed is made again.
    fn pin(&self, file: &InputFile, folder: &OwnedFd, name: &str) -> Result<Look, Trouble> {
        let pin = self.pin_path(file);
        let share = Share { path: &pin, digest: file.digest, pin: true };
        // Tasks that were given the copy in the meantime may have changed it too.
        for _ in 0..MOST_COPIES {
            match self.originals.shares.link(&share, (folder, name), false) {
                Err(Fault::Damaged | Fault::Errno(rustix::io::Errno::NOENT)) => {}
                other => return Ok(other?),
            }
            if file.size > SMALL {
                self.copy_pin(file, &share)?;
                continue;
            }
            match self.content(file)? {
                Content::Folder(from) => {
                    rustix::fs::symlinkat(from, folder, name)?;
                    return Ok(Look::default());
                }
                Content::File { bytes, access } => {
                    if make_pin(&pin, access, |mut to| to.write_all(&bytes))? {
                        self.originals.shares.made(&share);
                    }
                }
            }
        }
        Err(changed(file).into())
    }

    /// A copy of a file that is too large to hold in memory; file systems that share blocks between files copy nothing. Where
    /// a copy is too large, a link to the original stands for it if the user allows that: later tasks get another name of that link.
    fn copy_pin(&self, file: &InputFile, share: &Share<'_>) -> Result<(), Trouble> {
        let pin = share.path;
        let from = self.original(file).ok_or_else(|| missing(file, Path::new(&file.path)))?;
        let mut copied = self.originals.copied();
        if std::fs::symlink_metadata(pin).is_ok() {
            return Ok(());
        }
        self.check_original(file, &from)?;
        let access = Access::of(&std::fs::metadata(&from)?);
        let made = match make_pin(pin, access, |to| share_blocks(&from, to)) {
            Err(_) if copied.saturating_add(file.size) > COPIES => {
                return self.link_original(file, &from, pin, "the copies of this run would exceed 16 GiB");
            }
            Err(_) if !has_room(pin, file.size) => {
                return self.link_original(file, &from, pin, "a copy would take more than a quarter of the free space");
            }
            Err(_) => {
                *copied += file.size;
                make_pin(pin, access, |mut to| io::copy(&mut File::open(&from)?, &mut to).map(|_| ()))
            }
            made => made,
        };
        match made {
            // An edit during the copy may be in it or not.
            Ok(made) => {
                self.check_original(file, &from).inspect_err(|_| drop(std::fs::remove_file(pin)))?;
                if made {
                    self.originals.shares.made(share);
                }
                Ok(())
            }
            Err(error) if is_full(&error) => self.link_original(file, &from, pin, "the disk has no room for a copy"),
            Err(error) => Err(error.into()),
        }
    }

    fn link_original(&self, file: &InputFile, from: &Path, pin: &Path, why: &'static str) -> Result<(), Trouble> {
        if !self.link_large {
            let (path, mib) = (file.path.clone(), file.size as f64 / f64::from(1 << 20));
            return Err(Refusal::NoCopy { path, mib, why }.into());
        }
        Ok(rustix::fs::symlinkat(from, rustix::fs::CWD, pin)?)
    }

    /// The bytes that the digest names: from the store, where a copy may be kept, or from the user's file.
    fn content(&self, file: &InputFile) -> Result<Content, Trouble> {
        let object = self.object(file);
        let stored = read(&object, file.size);
        if let Ok(Content::File { bytes, .. }) = &stored {
            if Digest::of(bytes) == file.digest {
                return Ok(stored?);
            }
            // A damaged object would be taken for the right content by others.
            let _ = std::fs::remove_file(&object);
        }
        let Some(original) = self.original(file) else {
            return Err(match stored {
                Ok(_) => Refusal::Damaged(file.path.clone()).into(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing(file, &object).into(),
                Err(error) => error.into(),
            });
        };
        match read(&original, file.size) {
            Ok(Content::File { bytes, .. }) if Digest::of(&bytes) != file.digest => Err(changed(file).into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(file, &original).into()),
            other => Ok(other?),
        }
    }

    fn check_original(&self, file: &InputFile, from: &Path) -> Result<(), Trouble> {
        let Source::Path(name) = &file.source else { return Err(missing(file, from).into()) };
        match self.originals.holds(name, from, file.digest) {
            Ok(true) => Ok(()),
            Ok(false) => Err(changed(file).into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(file, from).into()),
            // A folder; its files are not ours to count.
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The input files whose content is not what it was when the task started. A shared copy that holds something else is
    /// removed, so that no other task gets it.
    pub(crate) fn changed(&self, inputs: &[InputFiles], seen: &[Look]) -> Vec<String> {
        let way_of = self.ways(inputs);
        let files = inputs.iter().flat_map(|input| input.files.iter());
        let mut changed: Vec<String> = files
            .zip(seen)
            .filter_map(|(file, seen)| {
                let whole = match way_of(file) {
                    Way::Copy => true,
                    Way::Pin if self.pin_path(file).is_symlink() => self.is_as_it_was(file),
                    Way::Pin | Way::Object => self.shared(file, way_of(file), |share| {
                        self.originals.shares.is_whole(&share, &self.work.join(&file.path), seen)
                    }),
                    Way::Original => self.is_as_it_was(file),
                };
                (!whole).then(|| file.path.clone())
            })
            .collect();
        changed.dedup();
        changed
    }

    /// Removes the task's names of shared files. Its other files stay.
    pub(crate) fn release(&self, inputs: &[InputFiles]) {
        let way_of = self.ways(inputs);
        for file in inputs.iter().flat_map(|input| input.files.iter()) {
            let way = way_of(file);
            if matches!(way, Way::Pin | Way::Object) && is_safe(&file.path) {
                self.shared(file, way, |share| self.originals.shares.release(&share, &self.work.join(&file.path)));
            }
        }
    }

    fn shared<R>(&self, file: &InputFile, way: Way, ask: impl FnOnce(Share<'_>) -> R) -> R {
        let pin = way == Way::Pin;
        let path = if pin { self.pin_path(file) } else { self.object(file) };
        ask(Share { path: &path, digest: file.digest, pin })
    }

    fn is_as_it_was(&self, file: &InputFile) -> bool {
        match (&file.source, self.original(file)) {
            (Source::Path(name), Some(from)) => match self.originals.holds(name, &from, file.digest) {
                Err(error) => error.kind() == io::ErrorKind::IsADirectory,
                Ok(holds) => holds,
            },
            _ => true,
        }
    }

    pub(crate) fn object(&self, file: &InputFile) -> PathBuf {
        objects::path(self.objects, &file.digest)
    }

    pub(crate) fn pin_path(&self, file: &InputFile) -> PathBuf {
        objects::path(self.pins.unwrap_or(self.objects), &file.digest)
    }

    /// Where the user's own file lies.
    pub(crate) fn original(&self, file: &InputFile) -> Option<PathBuf> {
        match &file.source {
            Source::Path(path) => Some(self.project.join(path)),
            Source::Remote(_) | Source::Object | Source::Text(_) => None,
        }
    }

    fn write_list(&self, list: &str, input: &InputFiles, folders: &mut Folders<'_>) -> Result<(), Refusal> {
        if !is_safe(list) {
            return Err(Refusal::UnsafePath(list.into()));
        }
        let mut text = String::new();
        for file in input.files.iter() {
            text.push_str(&file.path);
            text.push('\n');
        }
        let (folder, name) = folders.parent(list)?;
        // Never through a link: the file behind it would be the user's.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o644)) {
            Ok(file) => std::fs::File::from(file),
            Err(rustix::io::Errno::EXIST) => return Err(Refusal::SamePath(list.into())),
            Err(error) => return Err(Refusal::sandbox(format!("writing `{list}`"))(error.into())),
        };
        (&file).write_all(text.as_bytes()).map_err(Refusal::sandbox(format!("writing `{list}`")))
    }
}

/// Why a file could not be given.
enum Trouble {
    /// A shared file looks like this.
    Exists(Look),
    Refused(Refusal),
    Io(io::Error),
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists(Look::default()),
            _ => Self::Io(error),
        }
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Exists(look) => Self::Exists(look),
            Fault::Errno(error) => error.into(),
            Fault::Damaged => io::Error::from(io::ErrorKind::InvalidData).into(),
        }
    }
}

impl From<rustix::io::Errno> for Trouble {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

fn missing(file: &InputFile, from: &Path) -> Refusal {
    if matches!(file.source, Source::Object) {
        return Refusal::Gone(file.path.clone());
    }
    Refusal::MissingInput { path: file.path.clone(), from: from.display().to_string() }
}

fn changed(file: &InputFile) -> Refusal {
    Refusal::Changed(file.path.clone())
}

/// Who may do what with a file, as far as its copies have it too.
#[derive(Clone, Copy)]
struct Access {
    executable: bool,
    /// Nobody but its owner may read it.
    private: bool,
}

impl Access {
    fn of(about: &std::fs::Metadata) -> Self {
        Self { executable: about.mode() & 0o111 != 0, private: about.mode() & 0o077 == 0 }
    }

    fn shared(self) -> u32 {
        objects::mode(self.executable, self.private)
    }
}

enum Content {
    File {
        bytes: Vec<u8>,
        access: Access,
    },
    /// Given by a link: its files are not listed one by one.
    Folder(PathBuf),
}

fn read(path: &Path, size: u64) -> io::Result<Content> {
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Ok(Content::Folder(path.to_owned()));
    }
    let mut bytes = Vec::with_capacity(size as usize + 1);
    // A file that has grown is not read to its end: its digest is another one in any case.
    Read::by_ref(&mut file).take(size + 1).read_to_end(&mut bytes)?;
    Ok(Content::File { bytes, access: Access::of(&about) })
}

fn write(folder: &OwnedFd, name: &str, bytes: &[u8], access: Access) -> Result<(), Trouble> {
    // Never through a link: the file behind it would be the user's.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(access.shared() | 0o200);
    let mut file = File::from(rustix::fs::openat(folder, name, flags, mode)?);
    file.write_all(bytes)?;
    Ok(file.set_modified(earlier())?)
}

/// A write in the tick of the clock in which the file was made would leave its time as it is.
fn earlier() -> SystemTime {
    SystemTime::now() - Duration::from_secs(1)
}

/// Written beside, so that no task links half of it. A copy that another task has made meanwhile stays: tasks may have it. Says
/// whether the copy is this one.
fn make_pin(pin: &Path, access: Access, write: impl Fn(&File) -> io::Result<()>) -> io::Result<bool> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let folder = pin.parent().expect("two levels");
    let fresh = folder.join(format!(".{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    let open = || File::options().write(true).create_new(true).mode(0o600).open(&fresh);
    let file = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::create_dir_all(folder).and_then(|()| open()),
        other => other,
    };
    let written = file.and_then(|file| {
        write(&file)?;
        file.set_modified(earlier())?;
        file.set_permissions(std::fs::Permissions::from_mode(access.shared()))
    });
    let made = written.and_then(|()| {
        match std::fs::hard_link(&fresh, pin) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // A file system without hard links.
            Err(_) => std::fs::rename(&fresh, pin).map(|()| true),
            Ok(()) => Ok(true),
        }
    });
    let _ = std::fs::remove_file(&fresh);
    made
}

fn share_blocks(from: &Path, to: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, File::open(from)?)?)
}

/// Whether a copy leaves most of the free space to the tasks.
fn has_room(pin: &Path, size: u64) -> bool {
    let there = pin.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok());
    there.is_some_and(|there| size < there.f_bavail.saturating_mul(there.f_frsize) / 4)
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Whether an earlier file with the same path has the same content.
fn is_repeated(inputs: &[InputFiles], position: usize, index: usize) -> bool {
    let file = &inputs[position].files[index];
    let before = inputs[..position].iter().flat_map(|input| input.files.iter());
    let before = before.chain(&inputs[position].files[..index]);
    before.filter(|other| other.path == file.path).any(|other| other.digest == file.digest)
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The folders inside a sandbox: each made once, the last one held open because the next file is mostly there too.
struct Folders<'a> {
    top: &'a OwnedFd,
    made: HashSet<String>,
    last: Option<(String, OwnedFd)>,
}

impl Folders<'_> {
    fn parent<'p>(&mut self, path: &'p str) -> Result<(&OwnedFd, &'p str), Refusal> {
        let Some((folder, name)) = path.rsplit_once('/') else { return Ok((self.top, path)) };
        if self.last.as_ref().is_none_or(|(last, _)| last != folder) {
            self.make(folder, path)?;
            let open =
                rustix::fs::openat(self.top, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                    .map_err(|error| Refusal::sandbox(format!("opening `{folder}`"))(error.into()))?;
            self.last = Some((folder.to_owned(), open));
        }
        let (_, open) = self.last.as_ref().expect("just set");
        Ok((open, name))
    }

    fn make(&mut self, folder: &str, path: &str) -> Result<(), Refusal> {
        if self.made.contains(folder) {
            return Ok(());
        }
        if let Some((above, _)) = folder.rsplit_once('/') {
            self.make(above, path)?;
        }
        match rustix::fs::mkdirat(self.top, folder, Mode::from_raw_mode(0o755)) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                // Through a link to a user's folder we would write into that folder.
                let kind = rustix::fs::statat(self.top, folder, AtFlags::SYMLINK_NOFOLLOW)
                    .map(|stat| FileType::from_raw_mode(stat.st_mode));
                if kind != Ok(FileType::Directory) {
                    return Err(Refusal::BelowAnInput(path.to_owned()));
                }
            }
            Err(error) => return Err(Refusal::sandbox(format!("making the folder `{folder}`"))(error.into())),
        }
        self.made.insert(folder.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
