//! Removing runs: their logs, records, checkpoints and sandboxes. Never results, never the cache.

use crate::Failure;
use crate::messages::Messages;
use crate::replay::{self, Standing};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tulpar_exec::folder::{Project, RunFolder};

/// Checkpoints and half-done work are lost with a run that could go on: only by name.
pub fn worth_keeping(run: &RunFolder, messages: &dyn Messages) -> Option<&'static str> {
    let replayed = replay::open_with(messages, run.clone(), |_, _| {}).ok()?;
    match replayed.standing() {
        Standing::Stopped | Standing::Interrupted => Some("it can be resumed"),
        _ => None,
    }
}

/// Keeps every driver off the run while it is removed; `None` when one has it.
pub fn hold(run: &RunFolder) -> Result<Option<Option<File>>, Failure> {
    let path = run.journal();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(None)),
        Err(source) => return Err(Failure::Read { path, source }),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Some(file))),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(Failure::Read { path, source: error.into() }),
    }
}

/// Out of sight at once, so that nobody ever sees half a run; then piece by piece.
pub fn remove(project: &Project, run: &RunFolder) -> Result<(), Failure> {
    tulpar_launch::remove_from_nodes(&run.attempts());
    // Sandboxes on a shared file system are elsewhere.
    if let Ok(elsewhere) = fs::read_link(run.attempts()) {
        remove_tree(&elsewhere).map_err(|source| Failure::Write { path: elsewhere.clone(), source })?;
    }
    let bin = project.own().join("removed");
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Failure::Write { path, source }
    };
    fs::create_dir_all(&bin).map_err(failed(&bin))?;
    let gone = bin.join(format!("{}.{}", run.name, std::process::id()));
    let place = match fs::rename(&run.path, &gone) {
        Ok(()) => &gone,
        // A folder of a lower layer of an overlay cannot be moved.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => &run.path,
        Err(error) => return Err(failed(&run.path)(error)),
    };
    remove_tree(place).map_err(failed(place))?;
    // Refuses while something is left of an earlier time, and that is what is wanted.
    let _ = fs::remove_dir(&bin);
    Ok(())
}

/// Tasks may have taken the right to write from their own folders.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    if fs::remove_dir_all(folder).is_ok() {
        return Ok(());
    }
    each_below(folder, &mut |path, about| {
        if about.is_dir() {
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
        }
    });
    fs::remove_dir_all(folder)
}

pub fn size(folder: &Path) -> u64 {
    let mut bytes = 0;
    each_below(folder, &mut |_, about| {
        // What has another name elsewhere stays on the disk.
        if about.is_file() && about.nlink() == 1 {
            bytes += about.len();
        }
    });
    bytes
}

fn each_below(folder: &Path, each: &mut impl FnMut(&Path, &fs::Metadata)) {
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.path().symlink_metadata() else { continue };
            each(&entry.path(), &about);
            if about.is_dir() {
                folders.push(entry.path());
            }
        }
    }
}
