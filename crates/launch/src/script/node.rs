//! What earlier jobs have brought to this node: contents by their digest, in the folder that `TULPAR_NODE_CACHE` names.
//!
//! Only where a site names one, since a home may be on a file system of all nodes. A content is taken under another name of the
//! same file, or as a copy, so that it may be removed here at any time; it is checked like one that was fetched. Small
//! files are fetched faster than they are looked after.

use super::files::Pulled;
use crate::objects;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The variable that names where contents stay on a node.
pub(crate) const NODE_FOLDER: &str = "TULPAR_NODE_CACHE";
const SMALL: u64 = 64 << 10;
/// When less than this part of the disk is free nothing more is kept, and what nobody used for a while goes.
const FREE: u64 = 5;
const UNUSED: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Node {
    folder: Option<PathBuf>,
    /// Whether a folder's disk takes more.
    has_room: fn(&Path) -> bool,
}

impl Node {
    /// As the site says.
    pub(super) fn here() -> Self {
        Self { folder: named(), has_room }
    }

    fn place(&self, (_, (_, file)): &Pulled) -> Option<PathBuf> {
        self.folder.as_ref().filter(|_| file.size >= SMALL).map(|folder| objects::path(folder, &file.digest))
    }

    /// Lays out what is here. Gives what that is, and what is to be fetched.
    pub(super) fn take(&self, wanted: Vec<Pulled>) -> (Vec<Pulled>, Vec<Pulled>) {
        wanted.into_iter().partition(|one| {
            let Some(place) = self.place(one) else { return false };
            let there = fs::metadata(&place).is_ok_and(|about| about.is_file() && about.len() == one.1.1.size);
            let taken = there && lay(&place, &one.0).is_ok();
            if taken {
                // Somebody else's may not be touched; then it goes earlier.
                let _ = File::open(&place).and_then(|file| file.set_modified(SystemTime::now()));
            }
            taken
        })
    }

    /// What is here under this digest is something else.
    pub(super) fn forget(&self, damaged: &[Pulled]) {
        for place in damaged.iter().filter_map(|one| self.place(one)) {
            let _ = fs::remove_file(place);
        }
    }

    /// Keeps what was fetched for the next job. Without it that fetches it again.
    pub(super) fn keep(&self, fetched: &[Pulled]) {
        let Some(folder) = self.folder.as_ref().filter(|_| fetched.iter().any(|one| one.1.1.size >= SMALL)) else {
            return;
        };
        if fs::create_dir_all(folder).is_err() || !(self.has_room)(folder) {
            return sweep(folder);
        }
        for one in fetched {
            let Some(place) = self.place(one) else { continue };
            let part = folder.join(format!("part-{}-{}", std::process::id(), one.1.1.digest.hex()));
            let kept = place.parent().map_or(Ok(()), fs::create_dir_all);
            let kept = kept.and_then(|()| lay(&one.0, &part)).and_then(|()| fs::rename(&part, &place));
            if kept.is_err() {
                let _ = fs::remove_file(&part);
            }
        }
    }
}

pub(super) fn named() -> Option<PathBuf> {
    std::env::var_os(NODE_FOLDER).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Another name of the same file, else a copy.
fn lay(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop))
}

fn has_room(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail * FREE >= disk.f_blocks)
}

fn sweep(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let unused = || about.modified().is_ok_and(|at| at.elapsed().is_ok_and(|since| since > UNUSED));
            if about.is_dir() {
                folders.push(entry.path());
            } else if unused() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::ids::Digest;
    use tulpar_core::job::{InputFile, Source};

    fn pulled(to: PathBuf, text: &[u8]) -> Pulled {
        let url = "http://a/x".to_owned();
        let source = Source::Remote(url.clone());
        let file = InputFile { path: "x".into(), source, size: text.len() as u64, digest: Digest::of(text) };
        (to, (url, file))
    }

    #[test]
    fn what_one_job_fetched_the_next_takes_and_small_files_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let node = Node { folder: Some(path("node")), has_room: |_| true };
        let (large, small) = (vec![7; SMALL as usize], b"small".to_vec());
        let first = vec![pulled(path("1/large"), &large), pulled(path("1/small"), &small)];
        let (there, left) = node.take(first);
        assert_eq!((there.len(), left.len()), (0, 2));
        for ((to, _), text) in left.iter().zip([&large, &small]) {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::write(to, text).unwrap();
        }
        node.keep(&left);
        let next = vec![pulled(path("2/large"), &large), pulled(path("2/small"), &small)];
        let (there, left) = node.take(next);
        assert_eq!((there.len(), left.len()), (1, 1));
        assert_eq!(fs::read(path("2/large")).unwrap(), large);
        node.forget(&there);
        let again = || vec![pulled(path("3/large"), &large)];
        assert_eq!(node.take(again()).0.len(), 0);
        // Nor is anything kept where the disk is nearly full.
        Node { has_room: |_| false, ..node }.keep(&there);
        assert_eq!(Node { folder: Some(path("node")), has_room: |_| true }.take(again()).0.len(), 0);
    }

    #[test]
    fn where_a_site_names_no_folder_nothing_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let one = pulled(folder.path().join("a"), &vec![7; SMALL as usize]);
        fs::write(&one.0, vec![7; SMALL as usize]).unwrap();
        let node = Node { folder: None, has_room: |_| true };
        node.keep(std::slice::from_ref(&one));
        assert_eq!(node.take(vec![one]).1.len(), 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
