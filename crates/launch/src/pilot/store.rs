//! What a pilot keeps of contents, so that the next task finds them: bounded, the longest unused goes first.
//!
//! What a task uses or the driver still wants is *pinned*, and stays whatever the bound. Nothing is durable.

use crate::objects;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;

pub(super) struct Store {
    folder: PathBuf,
    limit: u64,
    used: u64,
    entries: HashMap<Digest, Entry>,
    /// What may go, the longest unused first.
    idle: BTreeMap<u64, Digest>,
    clock: u64,
}

#[derive(Default)]
struct Entry {
    /// Of what is there.
    size: Option<u64>,
    pins: u32,
    idle_since: u64,
}

impl Store {
    pub(super) fn new(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit, used: 0, entries: HashMap::new(), idle: BTreeMap::new(), clock: 0 }
    }

    pub(super) fn path(&self, digest: &Digest) -> PathBuf {
        objects::path(&self.folder, digest)
    }

    pub(super) fn has(&self, digest: &Digest) -> bool {
        self.entries.get(digest).is_some_and(|entry| entry.size.is_some())
    }

    /// Keeps it until it is unpinned as often, also when it has yet to come.
    pub(super) fn pin(&mut self, digest: &Digest) {
        let entry = self.entries.entry(*digest).or_default();
        if entry.pins == 0 {
            self.idle.remove(&entry.idle_since);
        }
        entry.pins += 1;
    }

    pub(super) fn unpin(&mut self, digest: &Digest) {
        let Some(entry) = self.entries.get_mut(digest) else { return };
        entry.pins = entry.pins.saturating_sub(1);
        if entry.pins > 0 {
            return;
        }
        if entry.size.is_some() {
            self.clock += 1;
            entry.idle_since = self.clock;
            self.idle.insert(self.clock, *digest);
            self.shrink();
        } else {
            self.entries.remove(digest);
        }
    }

    /// Moves a proven content to its place.
    pub(super) fn put(&mut self, digest: &Digest, size: u64, from: &Path, executable: bool) -> io::Result<()> {
        fs::set_permissions(from, Permissions::from_mode(objects::mode(executable, false)))?;
        objects::take(&self.folder, digest, from)?;
        self.note(digest, size);
        Ok(())
    }

    /// It is there: the launcher put it there.
    pub(super) fn note(&mut self, digest: &Digest, size: u64) {
        self.pin(digest);
        let entry = self.entries.get_mut(digest).expect("pinned right now");
        if entry.size.replace(size).is_none() {
            self.used += size;
        }
        self.unpin(digest);
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.used > self.limit {
            let Some((_, digest)) = self.idle.pop_first() else { return };
            let _ = fs::remove_file(self.path(&digest));
            if let Some(size) = self.entries.remove(&digest).and_then(|entry| entry.size) {
                self.used -= size;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_first_and_what_is_pinned_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::new(folder.path().join("objects"), 10);
        let digest = |text: &str| Digest::of(text.as_bytes());
        let put = |store: &mut Store, text: &str| {
            let from = folder.path().join("new");
            fs::write(&from, text).unwrap();
            store.put(&digest(text), text.len() as u64, &from, false).unwrap();
        };
        put(&mut store, "aaaa");
        put(&mut store, "bbbb");
        store.pin(&digest("aaaa"));
        store.pin(&digest("dddd"));
        put(&mut store, "cccc");
        let there = |store: &Store| {
            ["aaaa", "bbbb", "cccc", "dddd"].map(|text| {
                assert_eq!(store.has(&digest(text)), store.path(&digest(text)).exists(), "{text}");
                store.has(&digest(text))
            })
        };
        assert_eq!(there(&store), [true, false, true, false]);
        put(&mut store, "dddd");
        assert_eq!(there(&store), [true, false, false, true]);
        store.pin(&digest("aaaa"));
        store.unpin(&digest("aaaa"));
        put(&mut store, "bbbb");
        assert_eq!(there(&store), [true, false, false, true]);
        store.unpin(&digest("aaaa"));
        put(&mut store, "bbbb");
        assert_eq!(there(&store), [false, true, false, true]);
    }
}
