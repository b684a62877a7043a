//! The store of objects: contents under their digests, `ab/cdef…`, read-only. Its layout and every write to it are here, for the
//! driver, for workers and for pilots.
//!
//! One strategy of durability: a content gets its name by a rename when all of it is there, so that a process that is killed at any
//! moment leaves an object or none. Whether it is synced before depends on who else has it:
//!
//! | content | by | on disk before anyone hears of it |
//! |---|---|---|
//! | an output that nobody else has | [`Objects::commit`], [`Objects::import`] | data, rename, folders; many attempts at once, with two calls of `syncfs` beyond [`FEW`] files |
//! | an output on a worker | the same, not `durable` | no: who takes it in makes it durable, and reports it then |
//! | a copy of what lies elsewhere too: pins of a plan, text of the engine, inputs on a worker | [`put`], [`take`], [`copy`] | no: syncing would cost more than making it again |
//!
//! A power cut may take an object of the last two rows, or its bytes: readers compare its length and its content ([`check`], and
//! whoever gives it to a task). What is removed is the collector's business. Caches of images and contents that all jobs of a
//! node share (`script/node`, `script/images`) have this layout and locks of their own.

use crate::collect::{Found, Take, hash_file};
use crate::originals::READ_AT_REUSE;
use crate::stamps::Stamp;
use rustix::fs::{Mode, OFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tulpar_core::ids::Digest;
use tulpar_core::job::OutputFile;

/// Up to here files are synced one by one; beyond, the whole file system at once is cheaper, although that
/// also waits for what others wrote.
const FEW: usize = 64;

/// Of names that files have until they are objects.
static NUMBER: AtomicU64 = AtomicU64::new(0);

// ---- the layout

/// Where a content lies in a store.
pub fn path(store: &Path, digest: &Digest) -> PathBuf {
    let hex = digest.hex();
    let mut path = PathBuf::with_capacity(store.as_os_str().len() + 70);
    path.push(store);
    path.push(&hex[..2]);
    path.push(&hex[2..]);
    path
}

/// What a content is called beside others in one folder: as in the store, without its folder there.
pub fn flat_name(digest: &Digest) -> String {
    digest.hex()[2..].to_owned()
}

/// The permissions of an object: it is never written to, and private if the file was.
pub fn mode(executable: bool, private: bool) -> u32 {
    let mode = if executable { 0o555 } else { 0o444 };
    if private { mode & 0o700 } else { mode }
}

/// One object as a walk finds it.
pub struct Object {
    pub digest: Digest,
    pub size: u64,
    pub ctime_ns: i64,
    /// No other name, such as one under `results/`, holds the content too.
    pub alone: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot list {}: {cause}", path.display())]
pub struct WalkError {
    pub path: PathBuf,
    pub cause: io::Error,
}

/// Calls `each` for every object, folder by folder. A store that is not there is empty.
pub fn walk(store: &Path, mut each: impl FnMut(Object)) -> Result<(), WalkError> {
    let failed = |path: &Path, cause| WalkError { path: path.to_owned(), cause };
    let folders = match fs::read_dir(store) {
        Ok(folders) => folders,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(failed(store, cause)),
    };
    for folder in folders {
        let folder = folder.map_err(|cause| failed(store, cause))?.path();
        let Some(start) = folder.file_name().and_then(|name| name.to_str()).filter(|name| name.len() == 2) else {
            continue;
        };
        for object in fs::read_dir(&folder).map_err(|cause| failed(&folder, cause))? {
            let object = object.map_err(|cause| failed(&folder, cause))?;
            let digest = object.file_name().to_str().and_then(|rest| Digest::parse(&format!("{start}{rest}")));
            // It may go while we walk.
            if let (Some(digest), Ok(about)) = (digest, object.metadata()) {
                let (size, ctime_ns) = (about.size(), Stamp::of(&about).ctime_ns);
                each(Object { digest, size, ctime_ns, alone: about.nlink() == 1 });
            }
        }
    }
    Ok(())
}

// ---- whether an object is still what it was

/// Its modification time, if it is there and as large as it should be.
pub fn stamp(store: &Path, output: &OutputFile) -> Option<i64> {
    let about = fs::symlink_metadata(path(store, &output.digest)).ok()?;
    (about.is_file() && about.size() == output.size).then(|| Stamp::of(&about).mtime_ns)
}

pub enum Check {
    Whole,
    /// Its content is right although its time or permissions were not; this is its time now.
    Touched(i64),
    Gone,
}

/// Looks at one object. Small ones are read and their digest compared: a disk that flips a bit tells nobody. Large ones are
/// read when their size, time or permissions look edited; else when they are given to a task. `repair` removes one that holds
/// something else, since others would take it for the right content.
pub fn check(store: &Path, output: &OutputFile, stamp: i64, repair: bool) -> Check {
    let path = path(store, &output.digest);
    let Ok(about) = fs::symlink_metadata(&path) else {
        return Check::Gone;
    };
    let right_size = about.is_file() && about.size() == output.size;
    let writable = about.mode() & 0o222 != 0;
    let mtime = Stamp::of(&about).mtime_ns;
    let executable = about.mode() & 0o111 != 0;
    let untouched = right_size && !writable && mtime == stamp && (executable || !output.executable);
    if untouched && output.size > READ_AT_REUSE {
        return Check::Whole;
    }
    if !(right_size && holds(&path, &output.digest)) {
        if repair {
            let _ = fs::remove_file(&path);
        }
        return Check::Gone;
    }
    if untouched || !repair {
        return Check::Whole;
    }
    let mode = mode(executable || output.executable, is_private(&about));
    let _ = fs::set_permissions(&path, Permissions::from_mode(mode));
    Check::Touched(mtime)
}

fn holds(path: &Path, digest: &Digest) -> bool {
    hash_file(path).is_ok_and(|(found, _)| found == *digest)
}

/// Whether a file that came from elsewhere is this output. What was done to its permissions on the way says nothing of the output.
pub fn is_output(file: &Path, output: &OutputFile) -> io::Result<bool> {
    if hash_file(file)? != (output.digest, output.size) {
        return Ok(false);
    }
    fs::set_permissions(file, Permissions::from_mode(0o644))?;
    Ok(true)
}

// ---- copies of what lies elsewhere too

/// Gives a file of the same file system the name of its content. Says whether a folder had to be made for it.
pub fn take(store: &Path, digest: &Digest, from: &Path) -> io::Result<bool> {
    let to = path(store, digest);
    match fs::rename(from, &to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(to.parent().expect("two levels"))?;
            fs::rename(from, to).map(|()| true)
        }
        other => other.map(|()| false),
    }
}

/// Stores bytes. An object that is there stays; only the right to execute it, and its privacy, may be new.
pub fn put(store: &Path, digest: &Digest, bytes: &[u8], executable: bool, private: bool) -> io::Result<()> {
    let to = path(store, digest);
    match fs::metadata(&to) {
        Ok(there) if there.len() == bytes.len() as u64 => set_mode(&to, &there, executable, private),
        _ => write(store, digest, mode(executable, private), |file| file.write_all(bytes)),
    }
}

/// Stores what a file holds, which may change afterwards, with its permissions. An object that is there stays.
pub fn copy(store: &Path, digest: &Digest, from: &Path) -> io::Result<()> {
    if path(store, digest).exists() {
        return Ok(());
    }
    let mut from = File::open(from)?;
    let mode = from.metadata()?.mode() & 0o777;
    write(store, digest, mode, |file| io::copy(&mut from, file).map(drop))
}

/// Written beside, so that nobody sees half of it.
pub(crate) fn write(
    store: &Path,
    digest: &Digest,
    mode: u32,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let to = path(store, digest);
    let folder = to.parent().expect("two levels");
    let fresh = folder.join(format!(
        ".{}-{}-{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed),
        flat_name(digest)
    ));
    fs::create_dir_all(folder)?;
    // Of a process of this number that was killed.
    let _ = fs::remove_file(&fresh);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = fill(&mut file)
        .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
        .and_then(|()| fs::rename(&fresh, &to));
    written.inspect_err(|_| drop(fs::remove_file(&fresh)))
}

/// The right to execute it may be new, and so may its privacy: content that one task keeps to its owner is the owner's wherever
/// it comes from.
fn set_mode(path: &Path, there: &Metadata, executable: bool, private: bool) -> io::Result<()> {
    let mode = mode(executable || there.mode() & 0o111 != 0, private || is_private(there));
    if mode == there.mode() & 0o777 { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(mode)) }
}

fn is_private(about: &Metadata) -> bool {
    about.mode() & 0o077 == 0
}

// ---- outputs

/// A store that takes in outputs.
pub struct Objects {
    folder: PathBuf,
    /// Of the store: on another file system files are copied, not moved.
    device: u64,
    durable: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the output `{path}` could not be stored: {error}")]
pub struct StoreError {
    path: String,
    pub error: io::Error,
}

/// The same error for another attempt. The system's number says whether there is no room.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}

impl Objects {
    /// `durable`: outputs survive a power cut before they are reported.
    pub fn open(folder: &Path, durable: bool) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let device = fs::metadata(folder)?.dev();
        Ok(Self { folder: folder.to_path_buf(), device, durable })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn path(&self, digest: &Digest) -> PathBuf {
        path(&self.folder, digest)
    }

    /// Whether an object of this length is there.
    pub fn has(&self, output: &OutputFile) -> bool {
        fs::metadata(self.path(&output.digest)).is_ok_and(|there| there.len() == output.size)
    }

    /// Makes every file ready to be renamed: on this file system, with one name, read-only. May be done
    /// by many threads at once.
    pub(crate) fn stage(&self, found: &mut [Found]) -> Result<(), StoreError> {
        found.iter_mut().try_for_each(|found| {
            self.stage_one(found).map_err(|error| StoreError { path: found.file.path.clone(), error })
        })
    }

    fn stage_one(&self, found: &mut Found) -> io::Result<()> {
        match found.take {
            Take::Leave => return Ok(()),
            Take::Copy => self.copy(found)?,
            Take::Move if fs::metadata(&found.from)?.dev() != self.device => self.copy(found)?,
            Take::Move => {}
        }
        // A result is never changed in place: its digest is its name.
        let private = is_private(&fs::metadata(&found.from)?);
        fs::set_permissions(&found.from, Permissions::from_mode(mode(found.file.executable, private)))
    }

    fn copy(&self, found: &mut Found) -> io::Result<()> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let incoming = self.folder.join("incoming");
        fs::create_dir_all(&incoming)?;
        let copy = incoming.join(format!("{}-{number}", std::process::id()));
        fs::copy(&found.from, &copy)?;
        // A user's file may have changed since it was hashed; the copy cannot.
        (found.file.digest, found.file.size) = hash_file(&copy)?;
        found.from = copy;
        found.take = Take::Move;
        Ok(())
    }

    /// Commits several attempts at once. One that fails does not spoil the others.
    pub(crate) fn commit(&self, attempts: &[&[Found]]) -> Vec<Result<(), StoreError>> {
        let mut results: Vec<Result<(), StoreError>> = attempts.iter().map(|_| Ok(())).collect();
        // Several may bring the same content; the first that can be stored does for all.
        let mut wanted: BTreeMap<Digest, Vec<(usize, &Found)>> = BTreeMap::new();
        let mut folders = BTreeSet::new();
        let mut new_folder = false;
        for (attempt, found) in
            attempts.iter().enumerate().flat_map(|(attempt, found)| found.iter().map(move |found| (attempt, found)))
        {
            let path = self.path(&found.file.digest);
            // Also of objects that are there: the attempt that made them may not have got as far as syncing.
            folders.insert(path.parent().expect("two levels").to_path_buf());
            match fs::metadata(&path) {
                // Content that is there already stays; one that a disk or a person has damaged is replaced. Reading it costs no
                // more than hashing the new one did.
                Ok(there)
                    if there.len() == found.file.size
                        && (found.take == Take::Leave || holds(&path, &found.file.digest)) =>
                {
                    let _ = set_mode(&path, &there, found.file.executable, found.is_private());
                }
                _ => wanted.entry(found.file.digest).or_default().push((attempt, found)),
            }
        }
        let mut fail = |attempt: usize, found: &Found, error: &io::Error| {
            if results[attempt].is_ok() {
                results[attempt] = Err(StoreError { path: found.file.path.clone(), error: again(error) });
            }
        };
        let together = self.durable && wanted.len() > FEW;
        let synced = if together { self.sync_all() } else { Ok(()) };
        for (digest, candidates) in &mut wanted {
            candidates.sort_by_key(|(_, found)| !found.is_private());
            let mut store = |from: &Path| -> io::Result<()> {
                if self.durable && !together {
                    File::open(from)?.sync_all()?;
                }
                new_folder |= take(&self.folder, digest, from)?;
                Ok(())
            };
            let stored = match &synced {
                Err(error) => Err(again(error)),
                Ok(()) => {
                    let mut stored = Err(io::ErrorKind::NotFound.into());
                    for (_, found) in candidates.iter() {
                        stored = store(&found.from);
                        if stored.is_ok() {
                            break;
                        }
                    }
                    stored
                }
            };
            if let Err(error) = stored {
                candidates.iter().for_each(|(attempt, found)| fail(*attempt, found, &error));
            }
        }
        if new_folder {
            // It is an entry in the one above.
            folders.insert(self.folder.clone());
        }
        let synced = if !self.durable {
            Ok(())
        } else if together {
            self.sync_all()
        } else {
            // One that could not even be made belongs to an attempt that has failed already.
            folders.iter().filter_map(|folder| File::open(folder).ok()).try_for_each(|folder| folder.sync_all())
        };
        if let Err(error) = synced {
            for (attempt, found) in
                attempts.iter().enumerate().filter_map(|(attempt, found)| Some((attempt, found.first()?)))
            {
                fail(attempt, found, &error);
            }
        }
        results
    }

    /// Takes in outputs that were made elsewhere and have been proven, many attempts at once; those without a file are there
    /// already. One attempt that fails does not spoil the others.
    pub fn import(&self, attempts: Vec<Vec<(OutputFile, Option<PathBuf>)>>) -> Vec<Result<(), StoreError>> {
        let staged = attempts.into_iter().map(|files| {
            let mut found: Vec<Found> = files
                .into_iter()
                .map(|(file, from)| Found {
                    take: if from.is_some() { Take::Move } else { Take::Leave },
                    from: from.unwrap_or_else(|| self.path(&file.digest)),
                    file,
                })
                .collect();
            self.stage(&mut found).map(|()| found)
        });
        let staged: Vec<Result<Vec<Found>, StoreError>> = staged.collect();
        let whole: Vec<&[Found]> = staged.iter().flatten().map(Vec::as_slice).collect();
        let mut results = self.commit(&whole).into_iter();
        let committed = |staged: Result<Vec<Found>, StoreError>| {
            staged.and_then(|_| results.next().expect("one for each that was staged"))
        };
        staged.into_iter().map(committed).collect()
    }

    /// The sandbox of a failed attempt still shows what was taken out of it.
    pub(crate) fn show_again(&self, found: &[Found]) {
        for found in found.iter().filter(|found| !found.from.starts_with(&self.folder) && !found.from.exists()) {
            let _ = std::os::unix::fs::symlink(self.path(&found.file.digest), &found.from);
        }
    }

    fn sync_all(&self) -> io::Result<()> {
        let folder =
            rustix::fs::open(&self.folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(rustix::fs::syncfs(folder)?)
    }
}

impl Found {
    /// Nobody but its owner may read it.
    fn is_private(&self) -> bool {
        self.take == Take::Move && fs::metadata(&self.from).is_ok_and(|about| is_private(&about))
    }
}

#[cfg(test)]
mod tests;
