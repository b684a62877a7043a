//! The digests of small files, as long as their stamps stay the same: a second look costs no reading.

use crate::data::Stamp;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;

#[derive(Default)]
pub(super) struct Known {
    files: HashMap<PathBuf, (Stamp, Digest)>,
}

impl Known {
    /// The digest of a file's content; none when there is no such file.
    pub(super) fn of_file(&mut self, path: &Path) -> Option<Digest> {
        self.or_read(path, |path| Some(Digest::of(&fs::read(path).ok()?)))
    }

    /// The same, read by `read` where the file is new or has another stamp.
    pub(super) fn or_read(&mut self, path: &Path, read: impl FnOnce(&Path) -> Option<Digest>) -> Option<Digest> {
        let stamp = Stamp::of(&fs::metadata(path).ok().filter(|about| about.is_file())?);
        if let Some((then, digest)) = self.files.get(path)
            && *then == stamp
        {
            return Some(*digest);
        }
        // Before reading: a file that is written while it is read gets a stamp that differs from this one.
        let is_settled = stamp.is_settled(Stamp::now());
        let digest = read(path)?;
        if is_settled {
            self.files.insert(path.to_owned(), (stamp, digest));
        } else {
            self.files.remove(path);
        }
        Some(digest)
    }
}
