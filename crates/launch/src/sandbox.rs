//! The folders of attempts: `<job / 1000>/<job>.<n>/` with `stdout`, `stderr` and `work/`, the sandbox.
//!
//! Making and removing these five costs a third of what starting a process costs, so a folder that an
//! attempt left as it was made is not removed but renamed for the next one. Nothing of the ended attempt
//! can still write there: all its processes are gone before its folder is given back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::IoRecord;

/// More would only be found by a burst that ended long ago.
const SPARE: usize = 64;

pub(crate) struct Sandboxes {
    folder: PathBuf,
    spare: Mutex<Vec<PathBuf>>,
}

pub(crate) struct Sandbox {
    pub(crate) folder: PathBuf,
    pub(crate) stdout: File,
    pub(crate) stderr: File,
}

pub(crate) fn folder_of(attempts: &Path, attempt: AttemptId) -> PathBuf {
    attempts.join((attempt.job.0 / 1000).to_string()).join(attempt.to_string())
}

impl Sandboxes {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, spare: Mutex::new(Vec::new()) }
    }

    /// A folder that exists already is a crashed driver's: the caller takes what it needs out of it first.
    pub(crate) fn make(&self, attempt: AttemptId) -> io::Result<Sandbox> {
        let folder = folder_of(&self.folder, attempt);
        loop {
            let spare = self.spare.lock().expect("no panic while held").pop();
            let made = match &spare {
                Some(spare) => fs::rename(spare, &folder),
                None => fs::create_dir(&folder),
            };
            match made {
                Ok(()) if spare.is_some() => break,
                Ok(()) => {
                    fs::create_dir(folder.join("work"))?;
                    break;
                }
                // A whole bucket of attempts may have been cleaned away by a person.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.keep_spare(spare.filter(|spare| spare.exists()));
                    fs::create_dir_all(folder.parent().expect("built with a parent"))?;
                }
                Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty) => {
                    self.keep_spare(spare);
                    fs::remove_dir_all(&folder)?;
                }
                Err(error) => return Err(error),
            }
        }
        // Appending: several processes of a task write into the same file without overwriting each other.
        let open = |name: &str| OpenOptions::new().append(true).create(true).mode(0o644).open(folder.join(name));
        let (stdout, stderr) = (open("stdout")?, open("stderr")?);
        Ok(Sandbox { folder, stdout, stderr })
    }

    fn keep_spare(&self, spare: Option<PathBuf>) {
        self.spare.lock().expect("no panic while held").extend(spare);
    }

    /// Removes what nobody needs of an ended attempt.
    pub(crate) fn tidy(&self, folder: PathBuf, keep_work: bool) {
        let work = folder.join("work");
        let work_is_empty = is_empty(&work);
        if !work_is_empty && !keep_work {
            remove_tree(&work);
        }
        let silent = ["stdout", "stderr"].map(|name| fs::metadata(folder.join(name)).is_ok_and(|file| file.len() == 0));
        if work_is_empty && silent == [true, true] && !folder.join(IoRecord::LOG).exists() {
            let mut spare = self.spare.lock().expect("no panic while held");
            if spare.len() < SPARE {
                spare.push(folder);
                return;
            }
        }
        for (name, silent) in ["stdout", "stderr"].into_iter().zip(silent) {
            if silent {
                let _ = fs::remove_file(folder.join(name));
            }
        }
        // Both refuse what is not empty, and that is what is wanted.
        let _ = fs::remove_dir(&work);
        let _ = fs::remove_dir(&folder);
    }

    /// Removes the spare folders; they would look like attempts that said nothing.
    pub(crate) fn close(&self) {
        for folder in self.spare.lock().expect("no panic while held").drain(..) {
            remove_tree(&folder);
            if let Some(bucket) = folder.parent() {
                let _ = fs::remove_dir(bucket);
            }
        }
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Removes a tree even where a task took away its own right to write.
pub(crate) fn remove_tree(folder: &Path) {
    if fs::remove_dir_all(folder).is_ok() {
        return;
    }
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        folders.extend(
            entries
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    let _ = fs::remove_dir_all(folder);
}

/// The last lines of a text file, whatever bytes it holds.
pub(crate) fn tail(file: &Path, lines: usize, bytes: usize) -> String {
    use std::os::unix::fs::FileExt;
    let Ok(file) = File::open(file) else { return String::new() };
    let length = file.metadata().map(|file| file.len()).unwrap_or(0);
    let start = length.saturating_sub(bytes as u64);
    let mut end = vec![0; (length - start) as usize];
    if file.read_exact_at(&mut end, start).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&end);
    let text = text.trim_end();
    // A line that the limit cut in two is left out, unless it is all there is.
    let text = match text.split_once('\n') {
        Some((_, rest)) if start > 0 => rest,
        _ => text,
    };
    let from = text.rmatch_indices('\n').nth(lines - 1).map_or(0, |(at, _)| at + 1);
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::ids::JobId;

    const FIRST: AttemptId = AttemptId { job: JobId(1234), n: 1 };
    const SECOND: AttemptId = AttemptId { job: JobId(2001), n: 3 };

    #[test]
    fn an_untouched_folder_is_renamed_for_the_next_attempt_and_gone_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(folder.path().to_path_buf());
        let first = sandboxes.make(FIRST).unwrap().folder;
        assert!(first.ends_with("1/1234.1"));
        sandboxes.tidy(first.clone(), false);
        let second = sandboxes.make(SECOND).unwrap().folder;
        assert!(second.ends_with("2/2001.3") && second.join("work").is_dir() && !first.exists());
        sandboxes.tidy(second, false);
        sandboxes.close();
        assert_eq!(fs::read_dir(folder.path().join("2")).map(|_| ()).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn what_a_task_said_or_left_is_kept_or_removed_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(folder.path().to_path_buf());
        let kept = sandboxes.make(FIRST).unwrap().folder;
        fs::write(kept.join("work/x"), "x").unwrap();
        sandboxes.tidy(kept.clone(), true);
        assert!(kept.join("work/x").exists() && !kept.join("stdout").exists());
        let removed = sandboxes.make(SECOND).unwrap().folder;
        fs::write(removed.join("work/x"), "x").unwrap();
        fs::write(removed.join("stderr"), "oh").unwrap();
        sandboxes.tidy(removed.clone(), false);
        assert!(removed.join("stderr").exists() && !removed.join("work").exists());
    }

    #[test]
    fn a_tail_is_the_last_lines_and_never_half_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stderr");
        fs::write(&file, "one\ntwo\nthree\n\n").unwrap();
        assert_eq!(tail(&file, 2, 100), "two\nthree");
        assert_eq!(tail(&file, 20, 100), "one\ntwo\nthree");
        assert_eq!(tail(&file, 20, 9), "three");
        fs::write(&file, b"\xff\xfeoh").unwrap();
        assert_eq!(tail(&file, 20, 100), "\u{fffd}\u{fffd}oh");
    }
}
