//! The end of a run in the results folder: files that no longer belong there go, those that should be there are looked for.

use super::Finished;
use super::ledger::{Change, Entry, Ledger};
use super::results::{Results, lasting};
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tulpar_core::job::OutputFile;
use tulpar_launch::Spoiled;

impl Results {
    /// `whole`: the run did everything that its workflow says, and did it well.
    pub fn finish(&mut self, whole: bool) -> Finished {
        // One run at a time: of two that end at the same moment, the second is shown, not a mixture.
        self.ledger.hold();
        // Other drivers may have shown something meanwhile.
        let mine = self.ledger.reload().entries;
        remove_spoiled(&self.folder, &self.cache, &self.ledger);
        let mut paths: HashSet<Box<str>> = self.waiting.keys().map(|path| path.as_str().into()).collect();
        let mut expected = Vec::new();
        for (path, entry) in mine {
            if entry.current && !self.waiting.contains_key(&*path) {
                expected.push((path.clone(), entry));
                paths.insert(path);
            }
        }
        let mut finished = Finished::default();
        self.sweep(whole, &paths, &mut finished);
        let gone = expected.into_iter().filter(|(path, entry)| {
            let there = fs::symlink_metadata(self.folder.join(&**path));
            !there.is_ok_and(|there| lasting(&there) == entry.newest.0)
        });
        let again: Vec<OutputFile> = gone.map(as_output).chain(self.waiting.values().cloned()).collect();
        finished.missing = self.show(&again).problems;
        finished.shown = (paths.len() - finished.missing.len()) as u64;
        finished.taken = std::mem::take(&mut self.taken);
        self.settle();
        self.ledger.release();
        finished
    }

    /// Looks at every file of this workflow that this run does not make.
    fn sweep(&mut self, whole: bool, mine: &HashSet<Box<str>>, finished: &mut Finished) {
        let ours = |entry: &Entry| entry.owner == self.owner || self.inner.contains(&entry.owner);
        let stale = self.ledger.entries.iter().filter(|(path, entry)| ours(entry) && !mine.contains(*path));
        let mut forgotten = Vec::new();
        let mut folders = BTreeSet::new();
        for (path, entry) in stale {
            let target = self.folder.join(&**path);
            let there = fs::symlink_metadata(&target);
            let unchanged = there.as_ref().is_ok_and(|there| entry.digest(&lasting(there)).is_some());
            match there {
                Err(error) if is_absent(&error) => {}
                Ok(_) if unchanged && !whole => {
                    finished.earlier += 1;
                    continue;
                }
                Ok(_) if unchanged => match fs::remove_file(&target) {
                    Ok(()) => {
                        finished.removed += 1;
                        folders
                            .extend(target.ancestors().skip(1).take_while(|up| *up != self.folder).map(PathBuf::from));
                    }
                    Err(error) => {
                        finished.stuck.push((target, error));
                        continue;
                    }
                },
                Ok(_) if !whole => continue,
                Ok(_) => finished.changed.push(target),
                Err(error) => {
                    finished.stuck.push((target, error));
                    continue;
                }
            }
            forgotten.push(Change { path: path.to_string(), form: None, executable: false });
        }
        finished.changed.sort();
        // The deepest first. A folder that still holds something stays.
        for folder in folders.iter().rev() {
            if fs::remove_dir(folder).is_ok() {
                self.made.remove(folder);
            }
        }
        // Lines that stay speak of files that are not there: they do no harm.
        let _ = self.ledger.record(&self.owner, forgotten);
    }
}

/// A task wrote to a stored result, or a disk damaged it: names of that file go, whatever they hold now.
pub(super) fn remove_spoiled(folder: &Path, cache: &Path, ledger: &Ledger) {
    let spoiled = Spoiled::read(cache);
    if spoiled.is_empty() {
        return;
    }
    for path in ledger.entries.keys() {
        let target = folder.join(&**path);
        if fs::symlink_metadata(&target).is_ok_and(|about| spoiled.has(&about)) {
            let _ = fs::remove_file(&target);
        }
    }
}

/// It, or a folder above it, is not there.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn as_output((path, entry): (Box<str>, Entry)) -> OutputFile {
    let (stamp, digest) = entry.newest;
    OutputFile { output: 0, path: path.into(), size: stamp.size, digest, executable: entry.executable }
}
