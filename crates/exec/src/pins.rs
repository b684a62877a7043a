//! Keeps the user's small files as they were when the run was planned: scripts, settings, tables.
//!
//! People edit a script while an earlier version of it runs. Every task of the run gets the version that the plan names,
//! whenever it starts. Large files, and entries with many files, are not copied here: `launch` copies small files of the
//! latter once a task needs them, and compares the former before and after.

use crate::cache::{Cache, CacheError, PinnedFile};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use tulpar_core::ids::Digest;
use tulpar_core::job::{InputFile, Source};

/// As in `launch`: files up to this size are copied.
const SMALL: u64 = 1 << 20;
/// Entries with more files than this are data, which nobody edits file by file.
const FEW: usize = 64;

/// `data` has the files of each entry. A file that has changed since it was listed is left out: the task that needs it
/// says so.
pub fn pin(cache: &mut Cache, root: &Path, data: &[Arc<[InputFile]>]) -> Result<(), CacheError> {
    let files = data.iter().filter(|files| files.len() <= FEW).flat_map(|files| files.iter());
    let pinned = files.filter(|file| file.size <= SMALL).filter_map(|file| content(root, file));
    cache.pin(pinned)
}

fn content(root: &Path, file: &InputFile) -> Option<PinnedFile> {
    let Source::Path(from) = &file.source else { return None };
    let open = std::fs::File::open(root.join(from)).ok()?;
    let mode = open.metadata().ok()?.mode();
    let mut bytes = Vec::with_capacity(file.size as usize + 1);
    open.take(file.size + 1).read_to_end(&mut bytes).ok()?;
    (Digest::of(&bytes) == file.digest).then(|| PinnedFile {
        path: file.path.clone(),
        digest: file.digest,
        bytes,
        executable: mode & 0o111 != 0,
        private: mode & 0o077 == 0,
    })
}
