//! The content-addressed store: `ab/cdef…`, read-only, each file durable before anyone hears of it.
//!
//! Committing has three steps so that a power cut at any moment leaves either no object or a whole
//! one: data to disk under the old name, rename, folders to disk. The thread of `commit` takes all attempts
//! that came together through the steps at once. What `gc` removes is not its business.

use crate::collect::{Found, Take};
use crate::inputs::object_path;
use rustix::fs::{Mode, OFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tulpar_core::ids::Digest;
use tulpar_core::job::OutputFile;

/// Up to here files are synced one by one; beyond, the whole file system at once is cheaper, although that
/// also waits for what others wrote.
const FEW: usize = 64;

pub(crate) struct Objects {
    folder: PathBuf,
    /// Of the sandboxes: on another file system files are copied, not moved.
    device: u64,
    durable: bool,
    copies: AtomicU64,
}

#[derive(Debug, thiserror::Error)]
#[error("the output `{path}` could not be stored: {error}")]
pub(crate) struct StoreError {
    path: String,
    pub(crate) error: io::Error,
}

/// The same error for another attempt. The system's number says whether there is no room.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}

impl Objects {
    pub(crate) fn open(folder: &Path, durable: bool) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let device = fs::metadata(folder)?.dev();
        Ok(Self { folder: folder.to_path_buf(), device, durable, copies: AtomicU64::new(0) })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(object_path(digest))
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
        fs::set_permissions(&found.from, Permissions::from_mode(mode_of_object(found.file.executable, private)))
    }

    fn copy(&self, found: &mut Found) -> io::Result<()> {
        let number = self.copies.fetch_add(1, Ordering::Relaxed);
        let incoming = self.folder.join("incoming");
        fs::create_dir_all(&incoming)?;
        let copy = incoming.join(format!("{}-{number}", std::process::id()));
        fs::copy(&found.from, &copy)?;
        // A user's file may have changed since it was hashed; the copy cannot.
        (found.file.digest, found.file.size) = crate::collect::hash_file(&copy)?;
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
                // Content that is there already stays; one that a disk or a person has damaged is replaced. The right to
                // execute it may be new, and so may its privacy: content that one task keeps to its owner is the
                // owner's wherever it comes from.
                Ok(there) if there.len() == found.file.size && (found.take == Take::Leave || holds(&path, found)) => {
                    let executable = found.file.executable || there.mode() & 0o111 != 0;
                    let mode = mode_of_object(executable, is_private(&there) || found.is_private());
                    if mode != there.mode() & 0o777 {
                        let _ = fs::set_permissions(&path, Permissions::from_mode(mode));
                    }
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
            let path = self.path(digest);
            let mut store = |from: &Path| -> io::Result<()> {
                if self.durable && !together {
                    File::open(from)?.sync_all()?;
                }
                new_folder |= rename(from, &path)?;
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

fn is_private(about: &Metadata) -> bool {
    about.mode() & 0o077 == 0
}

/// The permissions of an object: it is never written to, and private if the file was.
pub fn mode_of_object(executable: bool, private: bool) -> u32 {
    let mode = if executable { 0o555 } else { 0o444 };
    if private { mode & 0o700 } else { mode }
}

/// Takes in outputs that were made elsewhere and have been proven: read-only and durable, many attempts at once.
pub struct Depot(Objects);

impl Depot {
    /// A store of objects: `ab/cdef…`.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self(Objects::open(folder, true)?))
    }

    /// Moves files into the store; those without a file are there already. One attempt that fails does not spoil the others.
    pub fn commit(&self, attempts: Vec<Vec<(OutputFile, Option<PathBuf>)>>) -> Vec<Result<(), String>> {
        let staged = attempts.into_iter().map(|files| {
            let mut found: Vec<Found> = files
                .into_iter()
                .map(|(file, from)| Found {
                    take: if from.is_some() { Take::Move } else { Take::Leave },
                    from: from.unwrap_or_else(|| self.0.path(&file.digest)),
                    file,
                })
                .collect();
            self.0.stage(&mut found).map(|()| found)
        });
        let staged: Vec<Result<Vec<Found>, StoreError>> = staged.collect();
        let whole: Vec<&[Found]> = staged.iter().flatten().map(Vec::as_slice).collect();
        let mut results = self.0.commit(&whole).into_iter();
        let mut told = |found: &Result<Vec<Found>, StoreError>| match found {
            Err(error) => Err(error.to_string()),
            Ok(_) => results.next().expect("one for each").map_err(|error| error.to_string()),
        };
        staged.iter().map(&mut told).collect()
    }
}

/// Whether an object that is there has the content of its name. Reading it costs no more than hashing the new one did.
fn holds(path: &Path, found: &Found) -> bool {
    crate::collect::hash_file(path).is_ok_and(|(digest, _)| digest == found.file.digest)
}

/// Says whether the folder had to be made.
fn rename(from: &Path, to: &Path) -> io::Result<bool> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(to.parent().expect("two levels"))?;
            fs::rename(from, to).map(|()| true)
        }
        other => other.map(|()| false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(from: &Path, executable: bool, take: Take) -> Found {
        let content = fs::read(from).unwrap();
        let file = OutputFile {
            output: 0,
            path: "x".into(),
            size: content.len() as u64,
            digest: Digest::of(&content),
            executable,
        };
        Found { file, from: from.to_path_buf(), take }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn files_become_read_only_objects_and_equal_content_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
        let here = |name: &str| folder.path().join(name);
        for name in ["a", "b", "c"] {
            fs::write(here(name), "same").unwrap();
        }
        fs::write(here("user"), "other").unwrap();
        let mut first = [found(&here("a"), false, Take::Move), found(&here("user"), false, Take::Copy)];
        let mut second = [found(&here("b"), false, Take::Move)];
        objects.stage(&mut first).unwrap();
        objects.stage(&mut second).unwrap();
        assert!(objects.commit(&[&first, &second]).iter().all(Result::is_ok));
        let same = objects.path(&Digest::of(b"same"));
        assert_eq!((fs::read_to_string(&same).unwrap(), mode(&same)), ("same".into(), 0o444));
        assert!(here("user").exists() && !here("a").exists());
        let mut third = [found(&here("c"), true, Take::Move)];
        objects.stage(&mut third).unwrap();
        assert!(objects.commit(&[&third]).iter().all(Result::is_ok));
        assert_eq!(mode(&same), 0o555);
    }

    #[test]
    fn an_object_with_other_content_than_its_name_says_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
        let object = objects.path(&Digest::of(b"same"));
        fs::create_dir_all(object.parent().unwrap()).unwrap();
        fs::write(&object, "s\u{1}me").unwrap();
        fs::write(folder.path().join("a"), "same").unwrap();
        let mut made = [found(&folder.path().join("a"), false, Take::Move)];
        objects.stage(&mut made).unwrap();
        assert!(objects.commit(&[&made]).iter().all(Result::is_ok));
        assert_eq!(fs::read(&object).unwrap(), b"same");
    }

    #[test]
    fn content_that_one_file_keeps_private_stays_private() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
        let store = |files: &[(u32, bool)]| {
            let files: Vec<[Found; 1]> = files
                .iter()
                .enumerate()
                .map(|(number, (mode, executable))| {
                    let path = folder.path().join(number.to_string());
                    fs::write(&path, "same").unwrap();
                    fs::set_permissions(&path, Permissions::from_mode(*mode)).unwrap();
                    let mut found = [found(&path, *executable, Take::Move)];
                    objects.stage(&mut found).unwrap();
                    found
                })
                .collect();
            let all: Vec<&[Found]> = files.iter().map(|found| &found[..]).collect();
            assert!(objects.commit(&all).iter().all(Result::is_ok));
            mode(&objects.path(&Digest::of(b"same")))
        };
        assert_eq!(store(&[(0o644, false)]), 0o444);
        assert_eq!(store(&[(0o600, false)]), 0o400);
        assert_eq!(store(&[(0o755, true)]), 0o500);
        fs::remove_file(objects.path(&Digest::of(b"same"))).unwrap();
        assert_eq!(store(&[(0o644, false), (0o600, false)]), 0o400);
    }

    #[test]
    fn content_that_one_attempt_lost_is_stored_from_another() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
        fs::write(folder.path().join("a"), "same").unwrap();
        fs::write(folder.path().join("b"), "same").unwrap();
        let first = [found(&folder.path().join("a"), false, Take::Move)];
        let second = [found(&folder.path().join("b"), false, Take::Move)];
        fs::remove_file(folder.path().join("a")).unwrap();
        assert!(objects.commit(&[&first, &second]).iter().all(Result::is_ok));
        assert!(objects.path(&Digest::of(b"same")).exists());
    }

    #[test]
    fn an_attempt_whose_file_is_gone_fails_alone() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        fs::write(folder.path().join("b"), "b").unwrap();
        let first = [found(&folder.path().join("a"), false, Take::Move)];
        let second = [found(&folder.path().join("b"), false, Take::Move)];
        fs::remove_file(folder.path().join("a")).unwrap();
        let results = objects.commit(&[&first, &second]);
        assert!(results[0].is_err() && results[1].is_ok());
    }

    #[test]
    fn more_than_a_few_files_are_committed_together() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
        let mut all: Vec<Found> = (0..200)
            .map(|n| {
                let path = folder.path().join(n.to_string());
                fs::write(&path, n.to_string()).unwrap();
                found(&path, false, Take::Move)
            })
            .collect();
        objects.stage(&mut all).unwrap();
        assert!(objects.commit(&[&all]).iter().all(Result::is_ok));
        assert_eq!(fs::read_to_string(objects.path(&Digest::of(b"117"))).unwrap(), "117");
    }
}
