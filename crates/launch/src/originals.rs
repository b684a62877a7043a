//! Large files of the user that tasks read where they lie: whether each still holds the content that its digest names.
//!
//! A look at the stamp answers for a file that was seen before, here or by the stat cache that the planner filled. The
//! content is hashed only when the stamp is new, and a stamp is remembered only when a later write must change it.

use crate::collect::hash_file;
use crate::shares::Shares;
use crate::spoiled::Spoiled;
use crate::stamps::{Stamp, StatCache};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tulpar_core::ids::Digest;

pub(crate) struct Originals {
    stat_file: PathBuf,
    known: OnceLock<StatCache>,
    seen: Mutex<HashMap<PathBuf, (Stamp, Digest)>>,
    copied: Mutex<u64>,
    pub(crate) shares: Shares,
}

/// Objects up to this size are read whenever a run reuses them.
pub const READ_AT_REUSE: u64 = 16 << 20;

impl Originals {
    /// `stat_file` is the stat cache of the project. It is read when the first large file is given to a task.
    pub(crate) fn new(stat_file: PathBuf) -> Self {
        let shares = Shares::new(stat_file.with_file_name(Spoiled::FILE));
        Self { stat_file, known: OnceLock::new(), seen: Mutex::default(), copied: Mutex::default(), shares }
    }

    /// Whether the file at `path` holds this content. `name` is its name in the stat cache.
    pub(crate) fn holds(&self, name: &str, path: &Path, digest: Digest) -> io::Result<bool> {
        let stamp = Stamp::of(&std::fs::metadata(path)?);
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied();
        if seen == Some((stamp, digest)) {
            return Ok(true);
        }
        let known = self.known.get_or_init(|| StatCache::load(&self.stat_file));
        if known.get(name, &stamp) == Some(digest) {
            self.remember(path, stamp, digest);
            return Ok(true);
        }
        let now = Stamp::now();
        let (found, _) = hash_file(path)?;
        let after = Stamp::of(&std::fs::metadata(path)?);
        if after == stamp && found == digest && stamp.is_settled(now) {
            self.remember(path, stamp, digest);
        }
        Ok(after == stamp && found == digest)
    }

    /// The bytes of large files that were copied so far. Held during a copy, so that tasks that start together copy a file once.
    pub(crate) fn copied(&self) -> MutexGuard<'_, u64> {
        self.copied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, path: &Path, stamp: Stamp, digest: Digest) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), (stamp, digest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_holds_its_content_until_someone_writes_or_replaces_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let originals = Originals::new(folder.path().join("stat"));
        fs::write(&file, "one").unwrap();
        let holds = |content: &[u8]| originals.holds("a", &file, Digest::of(content)).unwrap();
        assert!(holds(b"one") && holds(b"one") && !holds(b"two"));
        fs::write(&file, "two").unwrap();
        assert!(!holds(b"one") && holds(b"two"));
        fs::write(folder.path().join("b"), "six").unwrap();
        fs::rename(folder.path().join("b"), &file).unwrap();
        assert!(!holds(b"two") && holds(b"six"));
    }

    #[test]
    fn the_stat_cache_of_the_project_saves_the_reading() {
        let folder = tempfile::tempdir().unwrap();
        let (file, stat) = (folder.path().join("a"), folder.path().join("stat"));
        fs::write(&file, "one").unwrap();
        // A wrong entry shows that the file is not read.
        let stamp = Stamp::of(&fs::metadata(&file).unwrap());
        StatCache::load(&stat).record(vec![("a".into(), stamp, Digest::of(b"as noted"))]).unwrap();
        let originals = Originals::new(stat);
        assert!(originals.holds("a", &file, Digest::of(b"as noted")).unwrap());
    }
}
