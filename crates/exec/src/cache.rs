//! The cache of results: what was made from what, so that nothing finished is made again.
//!
//! ```text
//! .tulpar/cache/objects/ab/cdef…       contents by digest, read-only; `launch` writes them
//! .tulpar/cache/index/<time>-<pid>.jsonl   what is remembered: one line an entry, appended
//! .tulpar/cache/lock                    held while entries are written (shared) or collected (exclusive)
//! ```
//!
//! Why segments and not a file a key: making a file costs tens of microseconds and an inode, a key needs
//! two of them (the key, and the last one of its job's name), and a million of them make every later look
//! a walk through cold directories. A process appends to a segment of its own, in one write an entry: no
//! other process writes there, so nothing interleaves, and what `kill -9` leaves is a whole prefix. All
//! segments are scanned once when the cache is opened; in memory an entry is its digest and its place.
//! A miss costs no system call, a hit one read and one stat an output. The lock on its own segment, kept
//! until the process dies, tells `gc` which runs are alive. Small segments of the dead are merged.
//!
//! It does not decide what a key is, nor whether a result may be reused: that is the engine's.

mod collect;
mod index;
mod lines;

pub use collect::{Collected, Keep};
pub use lines::Remembered;

use index::Index;
use lines::{Found, Writing};
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;
use tulpar_core::event::{Cached, Change, Key, KeyPart, Made, Reason};
use tulpar_core::ids::Digest;
use tulpar_core::job::{InputFile, OutputFile, Told};
use tulpar_launch::objects::{self, Check, Object, WalkError};

#[derive(Debug, Error)]
pub enum CacheError {
    #[error("cannot {doing} {}: {cause}. Check the permissions of .tulpar/cache and the space left", path.display())]
    Io { doing: &'static str, path: PathBuf, cause: io::Error },
    #[error(
        "the output `{path}` is not among the objects of the cache ({digest}): it was removed while the run needed it. Run again"
    )]
    ObjectMissing { path: String, digest: Digest },
    #[error("this cache was opened to read only")]
    ReadOnly,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSize {
    pub objects: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    run: String,
    index: Index,
}

impl Cache {
    /// For a run that will look and remember. `folder` is `.tulpar/cache`; it is made if need be.
    pub fn open(folder: &Path, run: &str) -> Result<Self, CacheError> {
        Ok(Self { folder: folder.to_owned(), run: run.to_owned(), index: Index::open(folder, true)? })
    }

    /// For `--dry-run`, `explain` and `lineage`. Writes nothing; a cache that is not there is empty.
    pub fn open_to_read(folder: &Path) -> Result<Self, CacheError> {
        Ok(Self { folder: folder.to_owned(), run: String::new(), index: Index::open(folder, false)? })
    }

    /// Whether the result of this key is here; if not, what differs from the last run of the job of this
    /// name. A hit is counted as a use, and its objects stay until this process ends.
    pub fn look(&mut self, name: &str, key: &Key) -> Cached {
        let digest = key.digest();
        match self.find(&digest) {
            Some(found) => match self.check(name, digest, found) {
                Some(Remembered { outputs, run, told, .. }) => Cached::Hit { outputs, run, told },
                None => Cached::Miss(Reason::OutputsGone),
            },
            None => self.made(name, key).unwrap_or_else(|| Cached::Miss(self.why(name, key))),
        }
    }

    fn find(&mut self, digest: &Digest) -> Option<Found> {
        if let Some(found) = self.index.read(digest) {
            return Some(found);
        }
        // Another run in this folder may have made it since.
        if self.index.refresh() { self.index.read(digest) } else { None }
    }

    /// The entry, if all of its objects are whole.
    fn check(&mut self, name: &str, digest: Digest, found: Found) -> Option<Remembered> {
        if found.gone {
            return None;
        }
        // Until the use is written down, nobody may collect what was just seen.
        let _held = self.index.share().ok()?;
        let store = objects_of(&self.folder);
        let mut stamps = Vec::with_capacity(found.entry.outputs.len());
        let mut restamp = found.entry.name != name;
        for (output, stamp) in found.entry.outputs.iter().zip(&found.stamps) {
            match objects::check(&store, output, *stamp, self.index.is_writable()) {
                Check::Whole => stamps.push(*stamp),
                Check::Touched(stamp) => {
                    restamp = true;
                    stamps.push(stamp);
                }
                Check::Gone => return None,
            }
        }
        if self.index.is_writable() {
            // Failing to write a use down costs at most an early collection.
            let _ = if restamp {
                self.index.append_entry(&Writing { name, ..found.entry.writing(digest, &stamps) })
            } else {
                Ok(())
            };
            let _ = self.index.append_use(digest, &self.run);
        }
        Some(found.entry)
    }

    /// The files of an attempt that had this key except for its declared outputs.
    fn made(&mut self, name: &str, key: &Key) -> Option<Cached> {
        let name = files_of(name);
        self.index.last(&name)?;
        let digest = undeclared(key).digest();
        let found = self.index.read(&digest)?;
        let Remembered { outputs: files, run, told, incomplete, .. } = self.check(&name, digest, found)?;
        if files.is_empty() { None } else { Some(Cached::Made { files, run, attempt: incomplete?, told }) }
    }

    /// Keeps what an attempt made that misses a declared output.
    pub fn keep_made(&mut self, made: &Made) -> Result<(), CacheError> {
        let (name, key) = (files_of(&made.name), undeclared(&made.key));
        self.append(&name, &key, &made.files, made.told.as_deref(), Some(made.attempt))
    }

    fn why(&self, name: &str, key: &Key) -> Reason {
        let (last, key) = match self.index.last(name) {
            Some(last) => (Some(last), Cow::Borrowed(key)),
            None => (self.index.last(&files_of(name)), Cow::Owned(undeclared(key))),
        };
        match last {
            None => Reason::New,
            Some(last) => match changes(&last.entry.key, &key) {
                changes if changes.is_empty() => Reason::OutputsGone,
                changes => Reason::Changed(changes),
            },
        }
    }

    /// Keeps the outputs of a job under its key, and the numbers that it said, as a trial of a search. The objects must be there.
    pub fn remember(
        &mut self,
        name: &str,
        key: &Key,
        outputs: &[OutputFile],
        told: Option<&Told>,
    ) -> Result<(), CacheError> {
        self.append(name, key, outputs, told, None)
    }

    fn append(
        &mut self,
        name: &str,
        key: &Key,
        outputs: &[OutputFile],
        told: Option<&Told>,
        incomplete: Option<u32>,
    ) -> Result<(), CacheError> {
        let _held = self.index.share()?;
        let stamps = self.stamps(outputs)?;
        let (digest, run) = (key.digest(), self.run.as_str());
        let entry = Writing { digest, name, run, key, outputs, stamps: &stamps, told, incomplete, gone: false };
        self.index.append_entry(&entry)
    }

    /// Keeps the outputs of a job without a key (`cache: off`) as long as this run is kept.
    pub fn hold(&mut self, outputs: &[OutputFile]) -> Result<(), CacheError> {
        let _held = self.index.share()?;
        self.stamps(outputs)?;
        self.index.append_held(&self.run, outputs)
    }

    /// Keeps a file that no task made as long as this run is kept.
    pub fn keep(&mut self, file: &InputFile, content: &[u8]) -> Result<(), CacheError> {
        let InputFile { path, digest, .. } = file.clone();
        self.pin([PinnedFile { path, digest, bytes: content.to_vec(), executable: false, private: false }])
    }

    /// Keeps files that no task made as long as this run is kept.
    pub fn pin(&mut self, files: impl IntoIterator<Item = PinnedFile>) -> Result<(), CacheError> {
        let store = objects_of(&self.folder);
        let mut kept = Vec::new();
        for file in files {
            let PinnedFile { path, digest, bytes, executable, private } = file;
            objects::put(&store, &digest, &bytes, executable, private).map_err(|cause| {
                let path = objects::path(&store, &digest);
                CacheError::Io { doing: "write", path, cause }
            })?;
            kept.push(OutputFile { output: 0, path, size: bytes.len() as u64, digest, executable });
        }
        if kept.is_empty() { Ok(()) } else { self.hold(&kept) }
    }

    fn stamps(&self, outputs: &[OutputFile]) -> Result<Vec<i64>, CacheError> {
        let store = objects_of(&self.folder);
        outputs
            .iter()
            .map(|output| {
                objects::stamp(&store, output)
                    .ok_or_else(|| CacheError::ObjectMissing { path: output.path.clone(), digest: output.digest })
            })
            .collect()
    }

    /// What is remembered of the last run of a job, whether or not its outputs are still here.
    pub fn last(&self, name: &str) -> Option<Remembered> {
        self.index.last(name).map(|found| found.entry)
    }

    /// Where the content of a digest lies.
    pub fn object(&self, digest: &Digest) -> PathBuf {
        object_path(&self.folder, digest)
    }

    pub fn entries(&self) -> usize {
        self.index.len()
    }

    /// Objects and bytes in a cache. Walks all objects.
    pub fn size(folder: &Path) -> Result<CacheSize, CacheError> {
        let mut size = CacheSize::default();
        walk(folder, |object| {
            size.objects += 1;
            size.bytes += object.size;
        })?;
        Ok(size)
    }

    /// Removes what no entry refers to, then the entries that were not used for the longest time, until
    /// the objects are no larger than `quota`. Never what `keep` names or a live run needs.
    pub fn gc(folder: &Path, quota: Option<u64>, keep: &Keep, dry: bool) -> Result<Collected, CacheError> {
        collect::collect(folder, quota, keep, dry)
    }
}

/// A file that no task made, with its content.
pub struct PinnedFile {
    pub path: String,
    pub digest: Digest,
    pub bytes: Vec<u8>,
    pub executable: bool,
    /// Nobody but its owner may read it.
    pub private: bool,
}

fn objects_of(cache: &Path) -> PathBuf {
    cache.join("objects")
}

/// Where the content of a digest lies below `.tulpar/cache`.
pub fn object_path(cache: &Path, digest: &Digest) -> PathBuf {
    objects::path(&objects_of(cache), digest)
}

fn walk(cache: &Path, each: impl FnMut(Object)) -> Result<(), CacheError> {
    let failed = |WalkError { path, cause }| CacheError::Io { doing: "list", path, cause };
    objects::walk(&objects_of(cache), each).map_err(failed)
}

/// The name of an entry that holds what an attempt of a task made.
fn files_of(name: &str) -> String {
    format!("files of {name}")
}

/// The key of an attempt whatever it declares.
fn undeclared(key: &Key) -> Key {
    Key { outputs: "whatever it makes".into(), ..key.clone() }
}

/// In the order of the key's parts; inputs by name.
fn changes(before: &Key, now: &Key) -> Vec<Change> {
    let mut changes = Vec::new();
    for (part, before, now) in [
        (KeyPart::Command, &before.command, &now.command),
        (KeyPart::Environment, &before.environment, &now.environment),
        (KeyPart::Outputs, &before.outputs, &now.outputs),
    ] {
        if before != now {
            changes.push(Change { part, before: before.clone(), now: now.clone() });
        }
    }
    let mut names: Vec<&String> = before.inputs.keys().chain(now.inputs.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (before, now) = (before.inputs.get(name), now.inputs.get(name));
        if before != now {
            let short = |digest: Option<&Digest>| digest.map(Digest::short).unwrap_or_default();
            changes.push(Change { part: KeyPart::Input(name.clone()), before: short(before), now: short(now) });
        }
    }
    changes
}
