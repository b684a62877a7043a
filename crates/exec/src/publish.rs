//! Results where people look for them: the outputs of finished jobs under `results/`.
//!
//! A result is a clone of the object in the cache where the file system can (it shares the blocks until
//! one side is changed), else another name of the read-only object, else a copy. It appears whole or not
//! at all, and an equal one is left alone. What somebody else put there, or changed since, is never
//! touched: that is told, and the result stays in the cache. To know its own files again, a line for each
//! (path, digest, size, time, inode) is written to `.tulpar/results` before the file appears.

use crate::cache::object_path;
use crate::data::{Stamp, StatCache, hash_file};
use crossbeam_channel::{Sender, unbounded};
use rustix::io::Errno;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::thread::JoinHandle;
use thiserror::Error;
use tulpar_core::event::Publication;
use tulpar_core::ids::Digest;
use tulpar_core::job::OutputFile;

/// More problems than this are counted, not listed.
const MOST_TOLD: usize = 20;

/// Why a result is not shown.
#[derive(Debug, Error)]
pub enum PublishError {
    #[error(
        "{}: this file is not from Tulpar, or was changed since; it was left as it is. The new result is {}. Move \
         the file away and run again to have it here", path.display(), object.display()
    )]
    NotOurs { path: PathBuf, object: PathBuf },
    #[error(
        "`{path}` is no place inside the results folder; the result stays in the cache. Give the output a relative path"
    )]
    Outside { path: String },
    #[error("{}: cannot be shown: {cause}. The result stays in the cache; run again when there is room and permission", path.display())]
    Io { path: PathBuf, cause: io::Error },
}

/// What came of showing some outputs.
#[derive(Debug, Default)]
pub struct Shown {
    pub new: u64,
    pub unchanged: u64,
    pub problems: Vec<PublishError>,
}

/// Shows results beside the run, in a thread of its own: no job waits for it.
#[derive(Debug)]
pub struct Publisher {
    sender: Option<Sender<Publication>>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Publisher {
    /// `results` is the folder for people, `cache` is `.tulpar/cache`, `known` the file that tells our
    /// results from others' files.
    pub fn start(results: &Path, cache: &Path, known: &Path) -> io::Result<Self> {
        let (sender, receiver) = unbounded::<Publication>();
        let (results, cache, known) = (results.to_owned(), cache.to_owned(), known.to_owned());
        let thread = std::thread::Builder::new().name("publish".into()).spawn(move || {
            let mut results = Results::open(&results, &cache, &known);
            let mut told = Vec::new();
            let mut untold = 0;
            while let Ok(first) = receiver.recv() {
                let batch: Vec<Publication> = std::iter::once(first).chain(receiver.try_iter()).collect();
                let outputs: Vec<Cow<'_, OutputFile>> = batch.iter().flat_map(shown).collect();
                for problem in results.show(outputs.iter().map(AsRef::as_ref)).problems {
                    if told.len() < MOST_TOLD {
                        told.push(problem.to_string());
                    } else {
                        untold += 1;
                    }
                }
            }
            results.settle();
            if untold > 0 {
                told.push(format!("and {untold} more results could not be shown"));
            }
            told
        })?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    pub fn publish(&mut self, publication: Publication) {
        if let Some(sender) = &self.sender {
            // The thread ends only when the sender goes, or in a panic that `finish` passes on.
            let _ = sender.send(publication);
        }
    }

    /// Waits until everything is shown; what could not be, in words.
    pub fn finish(&mut self) -> Vec<String> {
        self.sender = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(told)) => told,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Vec::new(),
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The outputs of a job that people see, under the paths where they see them.
fn shown(publication: &Publication) -> impl Iterator<Item = Cow<'_, OutputFile>> {
    let outputs = publication.outputs.iter().filter(|output| !publication.temporary.contains(&output.output));
    outputs.map(|output| match &publication.below {
        Some(folder) => Cow::Owned(OutputFile { path: format!("{folder}/{}", output.path), ..output.clone() }),
        None => Cow::Borrowed(output),
    })
}

/// The results folder, for one thread.
#[derive(Debug)]
pub struct Results {
    folder: PathBuf,
    cache: PathBuf,
    known: StatCache,
    made: HashSet<PathBuf>,
    clones: bool,
    links: bool,
    copied: bool,
    number: u64,
}

/// A line for `.tulpar/results`: path below the folder, how the file looks, what it holds.
type Known = (String, Stamp, Digest);

/// A result on its way, after everything was decided and before it appears.
struct Coming {
    target: PathBuf,
    /// The file to rename; none when the object itself gets a second name.
    ready: Option<PathBuf>,
    replaces: bool,
}

enum There {
    Nothing,
    Same,
    Ours,
    Others,
}

impl Results {
    pub fn open(folder: &Path, cache: &Path, known: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            cache: cache.to_owned(),
            known: StatCache::load(known),
            made: HashSet::new(),
            clones: true,
            links: true,
            copied: false,
            number: 0,
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
            match self.prepare(output) {
                Ok((Some(ready), line)) => {
                    coming.push((output, ready));
                    lines.push(line);
                }
                Ok((None, line)) => {
                    shown.unchanged += 1;
                    if self.known.get(&line.0, &line.1) != Some(line.2) {
                        lines.push(line);
                    }
                }
                Err(problem) => shown.problems.push(problem),
            }
        }
        if let Err(cause) = self.known.record(lines) {
            // Without the lines the files would later be taken for somebody else's.
            for (_, ready) in coming {
                shown.problems.push(PublishError::Io { path: ready.target, cause: copy_of(&cause) });
            }
            return shown;
        }
        for (output, ready) in coming {
            match self.appear(output, ready) {
                Ok(()) => shown.new += 1,
                Err(problem) => shown.problems.push(problem),
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

    /// Decides, and makes ready whatever can be before the line about it is written. No `Coming` when
    /// the result is there already.
    fn prepare(&mut self, output: &OutputFile) -> Result<(Option<Coming>, Known), PublishError> {
        let inside = Path::new(&output.path).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || output.path.is_empty() {
            return Err(PublishError::Outside { path: output.path.clone() });
        }
        let target = self.folder.join(&output.path);
        let object = object_path(&self.cache, &output.digest);
        let failed = |cause| PublishError::Io { path: target.clone(), cause };
        let about = fs::symlink_metadata(&object).map_err(failed)?;
        let (there, stamp) = self.there(&output.path, &target, output, &Stamp::of(&about));
        let replaces = match there {
            There::Same => return Ok((None, (output.path.clone(), stamp, output.digest))),
            There::Others => return Err(PublishError::NotOurs { path: target, object }),
            There::Ours => true,
            There::Nothing => false,
        };
        self.make_folder(&target).map_err(failed)?;
        let ready = self.make_ready(&object, output.executable).map_err(failed)?;
        let stamp = match &ready {
            Some(path) => fs::symlink_metadata(path).map(|about| lasting(&about)).map_err(failed)?,
            None => lasting(&about),
        };
        Ok((Some(Coming { target, ready, replaces }), (output.path.clone(), stamp, output.digest)))
    }

    fn there(&self, path: &str, target: &Path, output: &OutputFile, object: &Stamp) -> (There, Stamp) {
        let Ok(about) = fs::symlink_metadata(target) else {
            return (There::Nothing, *object);
        };
        let stamp = lasting(&about);
        if !about.is_file() {
            return (There::Others, stamp);
        }
        match self.known.get(path, &stamp) {
            Some(digest) if digest == output.digest => return (There::Same, stamp),
            Some(_) => return (There::Ours, stamp),
            None => {}
        }
        let one_file = stamp.inode == object.inode && stamp.device == object.device;
        let equal = || {
            stamp.size == output.size
                && File::open(target)
                    .and_then(|mut file| hash_file(&mut file))
                    .is_ok_and(|(digest, _)| digest == output.digest)
        };
        if one_file || equal() { (There::Same, stamp) } else { (There::Others, stamp) }
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
        let mode = if executable { 0o755 } else { 0o644 };
        let mut from = File::open(object)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&path)?;
        // The mode of an open file is less the umask; a result that is to run must be able to.
        file.set_permissions(Permissions::from_mode(mode))?;
        if self.clones {
            if rustix::fs::ioctl_ficlone(&file, &from).is_ok() {
                return Ok(Some(path));
            }
            self.clones = false;
            if self.links {
                fs::remove_file(&path)?;
                return Ok(None);
            }
        }
        io::copy(&mut from, &mut file)?;
        self.copied = true;
        Ok(Some(path))
    }

    fn appear(&mut self, output: &OutputFile, coming: Coming) -> Result<(), PublishError> {
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
                    let _ = fs::remove_file(ready);
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
        let target = coming.target.clone();
        self.known.record(vec![line]).map_err(|cause| PublishError::Io { path: target, cause })?;
        self.appear(output, coming)
    }

    /// Makes what was shown durable. Objects are durable already; it is the names that are new.
    pub fn settle(&mut self) {
        let incoming = self.folder.join(".incoming");
        if self.made.remove(&incoming) {
            let _ = fs::remove_dir(&incoming);
        }
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

/// What stays of a stamp when other names of the file come and go.
fn lasting(about: &fs::Metadata) -> Stamp {
    Stamp { ctime_ns: 0, ..Stamp::of(about) }
}

fn copy_of(cause: &io::Error) -> io::Error {
    io::Error::new(cause.kind(), cause.to_string())
}
