//! The results folder, for one thread: what is there, and how a result appears.
//!
//! A result is a clone of the object in the cache where the file system can (it shares the blocks until
//! one side is changed), else another name of the read-only object, else a copy. It appears whole or not
//! at all, and an equal one is left alone. A file that somebody else put there, or changed since, is never
//! touched: that is told, and the result stays in the cache. To know its own files again, a line for each
//! is written to the ledger before the file appears.

use super::PublishError;
use super::ledger::{Change, Ledger};
use crate::cache::object_path;
use crate::data::{Stamp, hash_file};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tulpar_core::job::OutputFile;
use tulpar_launch::READ_AT_REUSE;

/// The outcome of showing some outputs.
#[derive(Debug, Default)]
pub struct Shown {
    pub new: u64,
    pub unchanged: u64,
    pub problems: Vec<PublishError>,
}

/// The results folder, for one thread.
#[derive(Debug)]
pub struct Results {
    pub(super) folder: PathBuf,
    pub(super) cache: PathBuf,
    pub(super) ledger: Ledger,
    pub(super) owner: Arc<str>,
    /// Workflows inside this one that showed something before this run, and whose tasks this run has not done (yet).
    pub(super) inner: HashSet<Arc<str>>,
    /// Outputs that could not be shown so far.
    pub(super) waiting: HashMap<String, OutputFile>,
    pub(super) taken: Vec<(PathBuf, String)>,
    pub(super) made: HashSet<PathBuf>,
    clones: bool,
    links: bool,
    copied: bool,
    number: u64,
}

/// A result on its way, after everything was decided and before it appears.
struct Coming {
    target: PathBuf,
    /// The file to rename; none when the object itself gets a second name.
    ready: Option<PathBuf>,
    replaces: bool,
}

impl Coming {
    fn give_up(&self) {
        if let Some(ready) = &self.ready {
            let _ = fs::remove_file(ready);
        }
    }
}

enum There {
    Nothing,
    Same,
    Ours,
    Others,
}

impl Results {
    /// `owner` is the workflow whose results these are.
    pub fn open(folder: &Path, cache: &Path, known: &Path, owner: &str) -> Self {
        let ledger = Ledger::load(known);
        let inside = format!("{owner}/");
        let owners = ledger.entries.values().map(|entry| &entry.owner);
        let inner = owners.filter(|owner| owner.starts_with(&inside)).cloned().collect();
        remove_leftovers(&folder.join(".incoming"));
        super::sweep::remove_spoiled(folder, cache, &ledger);
        Self {
            folder: folder.to_owned(),
            cache: cache.to_owned(),
            ledger,
            owner: owner.into(),
            inner,
            waiting: HashMap::new(),
            taken: Vec::new(),
            made: HashSet::new(),
            clones: true,
            links: true,
            copied: false,
            number: 0,
        }
    }

    /// A task of this run is done: if it is a workflow itself, its files are results of this run.
    pub fn made_again(&mut self, task: &str) {
        if !self.inner.is_empty() {
            let owner = format!("{}/{}", self.owner, task.replace('/', "_"));
            let below = format!("{owner}/");
            self.inner.retain(|inner| **inner != *owner && !inner.starts_with(&below));
        }
    }

    /// Shows these outputs; one that fails does not stop the others.
    pub fn show<'a>(&mut self, outputs: impl IntoIterator<Item = &'a OutputFile>) -> Shown {
        self.show_all(&mut outputs.into_iter())
    }

    fn show_all(&mut self, outputs: &mut dyn Iterator<Item = &OutputFile>) -> Shown {
        let mut shown = Shown::default();
        let mut coming = Vec::new();
        let mut lines = Vec::new();
        let mut paths = HashSet::new();
        let mut later = Vec::new();
        for output in outputs {
            // Only one line a path can be written before its file appears.
            if !paths.insert(output.path.as_str()) {
                later.push(output);
                continue;
            }
            self.waiting.remove(&output.path);
            match self.prepare(output) {
                Ok((Some(ready), line)) => {
                    coming.push((output, ready));
                    lines.push(line);
                }
                Ok((None, line)) => {
                    shown.unchanged += 1;
                    let known = self.ledger.get(&line.path);
                    if known.is_some_and(|known| Some(known.newest) == line.form && known.owner == self.owner) {
                        self.ledger.keep(&line.path, output.executable);
                    } else {
                        lines.push(line);
                    }
                }
                Err(problem) => self.failed(output, problem, &mut shown),
            }
        }
        if let Err(cause) = self.ledger.record(&self.owner, lines) {
            // Without the lines the files would later be taken for somebody else's.
            for (output, ready) in coming {
                ready.give_up();
                let problem = PublishError::Io { path: ready.target, cause: copy_of(&cause) };
                self.failed(output, problem, &mut shown);
            }
            return shown;
        }
        for (output, ready) in coming {
            match self.appear(output, &ready) {
                Ok(()) => shown.new += 1,
                Err(problem) => {
                    ready.give_up();
                    self.failed(output, problem, &mut shown);
                }
            }
        }
        if !later.is_empty() {
            let more = self.show_all(&mut later.into_iter());
            shown.new += more.new;
            shown.unchanged += more.unchanged;
            shown.problems.extend(more.problems);
        }
        shown
    }

    /// It is tried once more when the run ends.
    fn failed(&mut self, output: &OutputFile, problem: PublishError, shown: &mut Shown) {
        if matches!(problem, PublishError::Io { .. }) {
            // Somebody may have removed the folders.
            self.made.clear();
        }
        self.waiting.insert(output.path.clone(), output.clone());
        shown.problems.push(problem);
    }

    /// Decides, and makes ready whatever can be before the line about it is written. No `Coming` when
    /// the result is there already.
    fn prepare(&mut self, output: &OutputFile) -> Result<(Option<Coming>, Change), PublishError> {
        let inside = Path::new(&output.path).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || output.path.is_empty() {
            return Err(PublishError::Outside { path: output.path.clone() });
        }
        let target = self.folder.join(&output.path);
        let object = object_path(&self.cache, &output.digest);
        let failed = |cause| PublishError::Io { path: target.clone(), cause };
        let line = |stamp| Change {
            path: output.path.clone(),
            form: Some((stamp, output.digest)),
            executable: output.executable,
        };
        let about = match fs::symlink_metadata(&object) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Err(PublishError::Gone { path: target }),
            about => about.map_err(failed)?,
        };
        let (there, stamp) = self.there(&output.path, &target, output, &Stamp::of(&about));
        let replaces = match there {
            There::Same => return Ok((None, line(stamp))),
            There::Others => return Err(PublishError::NotOurs { path: target, object }),
            There::Ours => true,
            There::Nothing => false,
        };
        if replaces && let Some(known) = self.ledger.get(&output.path).filter(|known| known.owner != self.owner) {
            self.taken.push((target.clone(), known.owner.to_string()));
        }
        self.make_folder(&target).map_err(failed)?;
        let ready = self.make_ready(&object, output.executable).map_err(failed)?;
        let coming = Coming { target: target.clone(), ready, replaces };
        let stamp = match &coming.ready {
            Some(path) => fs::symlink_metadata(path).map(|about| lasting(&about)).map_err(|cause| {
                coming.give_up();
                failed(cause)
            })?,
            None => lasting(&about),
        };
        Ok((Some(coming), line(stamp)))
    }

    fn there(&self, path: &str, target: &Path, output: &OutputFile, object: &Stamp) -> (There, Stamp) {
        let Ok(about) = fs::symlink_metadata(target) else {
            return (There::Nothing, *object);
        };
        let stamp = lasting(&about);
        if !about.is_file() {
            return (There::Others, stamp);
        }
        let one_file = stamp.inode == object.inode && stamp.device == object.device;
        let equal = || {
            stamp.size == output.size
                && File::open(target)
                    .and_then(|mut file| hash_file(&mut file))
                    .is_ok_and(|(digest, _)| digest == output.digest)
        };
        match self.ledger.get(path).and_then(|known| known.digest(&stamp)) {
            // The other name of a damaged object that has been made again since is damaged too. A copy can be written to.
            Some(digest) if digest == output.digest => {
                let is_copy = about.permissions().mode() & 0o200 != 0;
                let whole = one_file || (is_copy && stamp.size > READ_AT_REUSE) || equal();
                (if whole { There::Same } else { There::Ours }, stamp)
            }
            Some(_) => (There::Ours, stamp),
            None if one_file || equal() => (There::Same, stamp),
            None => (There::Others, stamp),
        }
    }

    fn make_folder(&mut self, target: &Path) -> io::Result<()> {
        let folder = target.parent().unwrap_or(&self.folder);
        if !self.made.contains(folder) {
            fs::create_dir_all(folder)?;
            self.made.insert(folder.to_owned());
        }
        Ok(())
    }

    /// A clone or a copy under a temporary name; none when linking the object will do.
    fn make_ready(&mut self, object: &Path, executable: bool) -> io::Result<Option<PathBuf>> {
        if !self.clones && self.links {
            return Ok(None);
        }
        let incoming = self.folder.join(".incoming");
        if self.made.insert(incoming.clone()) {
            fs::create_dir_all(&incoming)?;
        }
        self.number += 1;
        let path = incoming.join(format!("{}-{}", std::process::id(), self.number));
        let made = self.fill(object, &path, executable);
        if !matches!(made, Ok(true)) {
            let _ = fs::remove_file(&path);
        }
        made.map(|made| made.then_some(path))
    }

    /// Whether `path` has the content of the object now; if not, linking the object will do.
    fn fill(&mut self, object: &Path, path: &Path, executable: bool) -> io::Result<bool> {
        let mut from = File::open(object)?;
        let private = from.metadata()?.permissions().mode() & 0o077 == 0;
        let mode = tulpar_launch::objects::mode(executable, private) | 0o200;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
        // The mode of an open file is less the umask; a result that is to run must be able to.
        file.set_permissions(Permissions::from_mode(mode))?;
        if self.clones {
            if rustix::fs::ioctl_ficlone(&file, &from).is_ok() {
                return Ok(true);
            }
            self.clones = false;
            if self.links {
                return Ok(false);
            }
        }
        io::copy(&mut from, &mut file)?;
        self.copied = true;
        Ok(true)
    }

    fn appear(&mut self, output: &OutputFile, coming: &Coming) -> Result<(), PublishError> {
        let object = object_path(&self.cache, &output.digest);
        let failed = |cause: io::Error| PublishError::Io { path: coming.target.clone(), cause };
        let Some(ready) = &coming.ready else {
            return match link(&object, &coming.target, coming.replaces) {
                Ok(()) => Ok(()),
                // It came in between: from an earlier output of this batch, or from somebody else.
                Err(Errno::EXIST) => self.again(output),
                Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP | Errno::ACCESS) => {
                    self.links = false;
                    self.again(output)
                }
                Err(cause) => Err(failed(cause.into())),
            };
        };
        let moved = if coming.replaces {
            fs::rename(ready, &coming.target)
        } else {
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(rustix::fs::CWD, ready, rustix::fs::CWD, &coming.target, flags) {
                Err(Errno::EXIST) => {
                    coming.give_up();
                    return self.again(output);
                }
                Err(Errno::INVAL | Errno::NOSYS) => fs::rename(ready, &coming.target),
                other => other.map_err(io::Error::from),
            }
        };
        moved.map_err(failed)
    }

    fn again(&mut self, output: &OutputFile) -> Result<(), PublishError> {
        let (coming, line) = self.prepare(output)?;
        let Some(coming) = coming else {
            return Ok(());
        };
        let recorded = self.ledger.record(&self.owner, vec![line]);
        let recorded = recorded.map_err(|cause| PublishError::Io { path: coming.target.clone(), cause });
        recorded.and_then(|()| self.appear(output, &coming)).inspect_err(|_| coming.give_up())
    }

    /// Makes what was shown durable. Objects are durable already; it is the names that are new.
    pub fn settle(&mut self) {
        let incoming = self.folder.join(".incoming");
        self.made.remove(&incoming);
        let _ = fs::remove_dir(&incoming);
        for folder in &self.made {
            if let Ok(folder) = File::open(folder) {
                let _ =
                    if self.copied { rustix::fs::syncfs(&folder).map_err(io::Error::from) } else { folder.sync_all() };
                if self.copied {
                    break;
                }
            }
        }
    }
}

/// Links directly where nothing is, else under a temporary name that takes the other's place.
fn link(object: &Path, target: &Path, replaces: bool) -> Result<(), Errno> {
    if !replaces {
        return rustix::fs::link(object, target);
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = target.with_file_name(format!(".{}.{}", name.get(..100).unwrap_or(&name), std::process::id()));
    let _ = fs::remove_file(&temporary);
    rustix::fs::link(object, &temporary)?;
    rustix::fs::rename(&temporary, target).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Half-made files of drivers that were killed.
fn remove_leftovers(incoming: &Path) {
    for entry in fs::read_dir(incoming).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.split_once('-')?.0.parse::<u32>().ok());
        if maker.is_some_and(|maker| !Path::new(&format!("/proc/{maker}")).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(incoming);
}

/// The part of a stamp that stays when other names of the file come and go.
pub(super) fn lasting(about: &fs::Metadata) -> Stamp {
    Stamp { ctime_ns: 0, ..Stamp::of(about) }
}

fn copy_of(cause: &io::Error) -> io::Error {
    io::Error::new(cause.kind(), cause.to_string())
}
