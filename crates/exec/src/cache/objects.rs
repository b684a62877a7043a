//! The objects of the cache from the reader's side: where one lies, whether it is still what it was.
//!
//! `launch` writes them. Small ones are read and their digest compared whenever they are reused: a disk that flips a bit
//! tells nobody. Large ones are looked at (size, time, permissions) and read when something about them looks edited; `launch` reads
//! them before it gives them to a task.

use super::CacheError;
use crate::data::{Stamp, hash_file};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;
use tulpar_core::job::OutputFile;
use tulpar_launch::{READ_AT_REUSE, mode_of_object};

/// Where the content of a digest lies below `.tulpar/cache`.
pub fn object_path(cache: &Path, digest: &Digest) -> PathBuf {
    let hex = digest.hex();
    let mut path = PathBuf::with_capacity(cache.as_os_str().len() + 80);
    path.push(cache);
    path.push("objects");
    path.push(&hex[..2]);
    path.push(&hex[2..]);
    path
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSize {
    pub objects: u64,
    pub bytes: u64,
}

pub(super) enum Check {
    Whole,
    /// Its content is right although its time or permissions were not; this is its time now.
    Touched(i64),
    Gone,
}

/// The object's modification time, if it is there and as large as it should be.
pub(super) fn stamp(cache: &Path, output: &OutputFile) -> Option<i64> {
    let about = fs::symlink_metadata(object_path(cache, &output.digest)).ok()?;
    (about.is_file() && about.size() == output.size).then(|| Stamp::of(&about).mtime_ns)
}

/// Looks at one object. One that holds something else is removed: the job will make it again, and
/// `launch` would take what is there for the right content.
pub(super) fn check(cache: &Path, output: &OutputFile, stamp: i64, repair: bool) -> Check {
    let path = object_path(cache, &output.digest);
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
    let same = right_size
        && File::open(&path).and_then(|mut file| hash_file(&mut file)).is_ok_and(|(digest, _)| digest == output.digest);
    if !same {
        if repair {
            let _ = fs::remove_file(&path);
        }
        return Check::Gone;
    }
    if untouched || !repair {
        return Check::Whole;
    }
    let mode = mode_of_object(executable || output.executable, about.mode() & 0o077 == 0);
    let _ = fs::set_permissions(&path, Permissions::from_mode(mode));
    Check::Touched(mtime)
}

/// One object as a walk finds it.
pub(super) struct Object {
    pub digest: Digest,
    pub size: u64,
    pub ctime_ns: i64,
    /// No other name, such as one under `results/`, holds the content too.
    pub alone: bool,
}

/// Calls `each` for every object, folder by folder.
pub(super) fn walk(cache: &Path, mut each: impl FnMut(Object)) -> Result<(), CacheError> {
    let root = cache.join("objects");
    let failed = |path: &Path, cause| CacheError::Io { doing: "list", path: path.to_owned(), cause };
    let folders = match fs::read_dir(&root) {
        Ok(folders) => folders,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(failed(&root, cause)),
    };
    for folder in folders {
        let folder = folder.map_err(|cause| failed(&root, cause))?.path();
        let Some(start) = folder.file_name().and_then(|name| name.to_str()).filter(|name| name.len() == 2) else {
            continue;
        };
        for object in fs::read_dir(&folder).map_err(|cause| failed(&folder, cause))? {
            let object = object.map_err(|cause| failed(&folder, cause))?;
            let digest = object.file_name().to_str().and_then(|rest| Digest::parse(&format!("{start}{rest}")));
            // It may go while we walk.
            if let (Some(digest), Ok(about)) = (digest, object.metadata()) {
                each(Object {
                    digest,
                    size: about.size(),
                    ctime_ns: Stamp::of(&about).ctime_ns,
                    alone: about.nlink() == 1,
                });
            }
        }
    }
    Ok(())
}

pub(super) fn size(cache: &Path) -> Result<CacheSize, CacheError> {
    let mut size = CacheSize::default();
    walk(cache, |object| {
        size.objects += 1;
        size.bytes += object.size;
    })?;
    Ok(size)
}
