//! The folders of attempts: `<job / 1000>/<job>.<n>/` with `stdout`, `stderr` and `work/`, the sandbox.
//!
//! Making and removing these five costs a third of what starting a process costs, so a folder that an
//! attempt left as it was made is not removed but renamed for the next one, and its streams stay open meanwhile. Nothing
//! of the ended attempt can still write there: all its processes are gone before its folder is given back.
//!
//! On a node that is played with a folder of its own an attempt is in that folder, and what is here is a link to it. What
//! is to be kept of it comes here when it has ended.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tulpar_core::ids::{AttemptId, Digest};
use tulpar_core::job::{InputFiles, IoRecord};

/// More would only be found by a burst that ended long ago.
const SPARE: usize = 64;
/// The streams of no more attempts than these stay open while they run: descriptors are not without end.
const HELD: usize = 256;

pub(crate) struct Sandboxes {
    folder: PathBuf,
    spare: Mutex<Vec<Spare>>,
    held: AtomicUsize,
    /// An attempt may be started again by the queue of a site, in the folder that all see: what it wrote before stays.
    again: bool,
}

struct Spare {
    folder: PathBuf,
    streams: Option<Streams>,
}

/// Where the output of an attempt goes.
pub(crate) struct Streams {
    pub(crate) stdout: File,
    pub(crate) stderr: File,
}

impl Streams {
    /// Appending: several processes of a task write into the same file without overwriting each other.
    fn open(folder: &Path) -> io::Result<Self> {
        let open = |name: &str| OpenOptions::new().append(true).create(true).mode(0o644).open(folder.join(name));
        Ok(Self { stdout: open("stdout")?, stderr: open("stderr")? })
    }

    /// For a task that knows a secret and may print it. Files that stay empty may serve others so.
    pub(crate) fn make_private(&self) -> io::Result<()> {
        let private = fs::Permissions::from_mode(0o600);
        self.stdout.set_permissions(private.clone())?;
        self.stderr.set_permissions(private)
    }

    /// Nothing was written to them, and they have not been removed.
    fn are_untouched(&self) -> bool {
        let untouched = |file: &File| file.metadata().is_ok_and(|about| about.len() == 0 && about.nlink() == 1);
        untouched(&self.stdout) && untouched(&self.stderr)
    }
}

pub(crate) struct Sandbox {
    pub(crate) folder: PathBuf,
    pub(crate) streams: Streams,
}

/// What is left of an attempt that has ended.
pub(crate) struct Leftover {
    pub(crate) folder: PathBuf,
    pub(crate) streams: Option<Streams>,
    pub(crate) keep_work: bool,
    /// Its reads and writes were recorded.
    pub(crate) recorded: bool,
    /// Its inputs, if nobody keeps its names of them.
    pub(crate) inputs: Vec<InputFiles>,
}

/// Below it are the attempts of what a job runs that is more than a command.
pub(crate) const INSIDE: &str = "inside";

pub(crate) fn folder_of(attempts: &Path, attempt: AttemptId) -> PathBuf {
    attempts.join((attempt.job.0 / 1000).to_string()).join(attempt.to_string())
}

impl Sandboxes {
    pub(crate) fn new(folder: PathBuf, again: bool) -> Self {
        Self { folder, spare: Mutex::new(Vec::new()), held: AtomicUsize::new(0), again }
    }

    /// A folder that exists already is a crashed driver's: the caller takes what it needs out of it first. `node` is the folder
    /// of the node, where it has one.
    pub(crate) fn make(&self, attempt: AttemptId, node: Option<&Path>) -> io::Result<Sandbox> {
        let folder = folder_of(&self.folder, attempt);
        if let Some(node) = node {
            return self.make_on(node, folder);
        }
        let streams = loop {
            let spare = self.spare.lock().expect("no panic while held").pop();
            let made = match &spare {
                Some(spare) => fs::rename(&spare.folder, &folder),
                None => fs::create_dir(&folder),
            };
            match made {
                Ok(()) => match spare {
                    Some(spare) => break spare.streams,
                    None => {
                        fs::create_dir(folder.join("work"))?;
                        break None;
                    }
                },
                // A whole bucket of attempts may have been cleaned away by a person.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.keep_spare(spare.filter(|spare| spare.folder.exists()));
                    fs::create_dir_all(folder.parent().expect("built with a parent"))?;
                }
                Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty) => {
                    self.keep_spare(spare);
                    if self.again {
                        remove_tree(&folder.join("work"));
                        fs::create_dir_all(folder.join("work"))?;
                        break None;
                    }
                    fs::remove_dir_all(&folder)?;
                }
                Err(error) => return Err(error),
            }
        };
        let streams = streams.map_or_else(|| Streams::open(&folder), Ok)?;
        Ok(Sandbox { folder, streams })
    }

    /// The folder is on the node, under a name that no attempt of another run has, and `link` leads to it.
    fn make_on(&self, node: &Path, link: PathBuf) -> io::Result<Sandbox> {
        let owner = Digest::of(self.folder.as_os_str().as_encoded_bytes()).hex();
        let attempt = link.file_name().expect("built with a name").to_string_lossy();
        let there = node.join(format!("{}-{attempt}", &owner[..12]));
        remove_attempt(&link);
        remove_tree(&there);
        fs::create_dir_all(there.join("work"))?;
        fs::create_dir_all(link.parent().expect("built with a parent"))?;
        symlink(&there, &link)?;
        let streams = Streams::open(&there)?;
        Ok(Sandbox { folder: link, streams })
    }

    /// Keeps the streams of a running attempt open, if not too many are.
    pub(crate) fn hold(&self, streams: Streams) -> Option<Streams> {
        let before = self.held.fetch_add(1, Ordering::Relaxed);
        if before >= HELD {
            self.held.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(streams)
    }

    fn keep_spare(&self, spare: Option<Spare>) {
        self.spare.lock().expect("no panic while held").extend(spare);
    }

    /// Removes what nobody needs of an ended attempt.
    pub(crate) fn tidy(&self, left: Leftover) {
        let Leftover { folder, streams, keep_work, recorded, inputs: _ } = left;
        if streams.is_some() {
            self.held.fetch_sub(1, Ordering::Relaxed);
        }
        let on_node = on_node(&folder);
        let work = folder.join("work");
        let work_is_empty = is_empty(&work);
        if !work_is_empty && !keep_work {
            remove_tree(&work);
        }
        let is_silent = |name: &str| fs::metadata(folder.join(name)).is_ok_and(|file| file.len() == 0);
        // Those that were removed, or put there anew, are opened again.
        let streams = streams.filter(Streams::are_untouched);
        let silent = match &streams {
            Some(_) => [true, true],
            None => ["stdout", "stderr"].map(is_silent),
        };
        let says_nothing = silent == [true, true] && !(recorded && folder.join(IoRecord::LOG).exists());
        if work_is_empty && says_nothing && on_node.is_none() {
            let mut spare = self.spare.lock().expect("no panic while held");
            if spare.len() < SPARE {
                spare.push(Spare { folder, streams });
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
        match on_node {
            None => drop(fs::remove_dir(&folder)),
            Some(there) if fs::remove_dir(&there).is_ok() => drop(fs::remove_file(&folder)),
            Some(there) => bring_home(&there, &folder),
        }
    }

    /// Removes the spare folders; they would look like attempts that said nothing.
    pub(crate) fn close(&self) {
        for Spare { folder, .. } in self.spare.lock().expect("no panic while held").drain(..) {
            remove_tree(&folder);
            if let Some(bucket) = folder.parent() {
                let _ = fs::remove_dir(bucket);
            }
        }
    }
}

/// Where the folder of an attempt really is, if it is on a node. Other links lead to data: they are never followed.
fn on_node(folder: &Path) -> Option<PathBuf> {
    let there = fs::read_link(folder).ok()?;
    let attempt = folder.file_name()?.to_str()?;
    let (_, name) = there.file_name()?.to_str()?.split_once('-')?;
    (name == attempt).then_some(there)
}

/// Puts the folder into the place of the link to it, in one step. On another disk it stays where it is, and the link leads there.
fn bring_home(there: &Path, link: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    if renameat_with(CWD, there, CWD, link, RenameFlags::EXCHANGE).is_ok() {
        let _ = fs::remove_file(there);
    }
}

/// Removes all that is left of an attempt, wherever it ran.
pub(crate) fn remove_attempt(folder: &Path) {
    if let Some(there) = on_node(folder) {
        remove_tree(&there);
    }
    remove_tree(folder);
}

/// Removes what attempts of this folder left on nodes: all that is left when their driver was killed, or their node has
/// another disk.
pub fn remove_from_nodes(attempts: &Path) {
    let below = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let is_number = |path: &Path| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        !name.is_empty() && name.iter().all(u8::is_ascii_digit)
    };
    for bucket in below(attempts).into_iter().filter(|bucket| is_number(bucket)) {
        below(&bucket).iter().filter_map(|attempt| on_node(attempt)).for_each(|there| remove_tree(&there));
    }
    // Jobs that are more than a command have attempts of their own.
    for bucket in below(&attempts.join(INSIDE)) {
        below(&bucket).iter().for_each(|job| remove_from_nodes(job));
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

    fn left(folder: &Path, keep_work: bool) -> Leftover {
        Leftover { folder: folder.to_owned(), streams: None, keep_work, recorded: false, inputs: Vec::new() }
    }

    #[test]
    fn streams_that_were_removed_or_put_there_anew_are_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(folder.path().to_path_buf(), false);
        let Sandbox { folder: first, streams } = sandboxes.make(FIRST, None).unwrap();
        fs::remove_file(first.join("stdout")).unwrap();
        fs::write(first.join("stdout"), "").unwrap();
        sandboxes.tidy(Leftover { streams: sandboxes.hold(streams), ..left(&first, false) });
        let Sandbox { folder: second, mut streams } = sandboxes.make(SECOND, None).unwrap();
        io::Write::write_all(&mut streams.stdout, b"seen").unwrap();
        assert_eq!(fs::read(second.join("stdout")).unwrap(), b"seen");
    }

    #[test]
    fn an_attempt_that_a_queue_starts_again_goes_on_behind_what_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        for (again, expected) in [(false, "two"), (true, "onetwo")] {
            let project = folder.path().join(expected);
            for word in ["one", "two"] {
                let Sandbox { folder, mut streams } = Sandboxes::new(project.clone(), again).make(FIRST, None).unwrap();
                assert!(is_empty(&folder.join("work")));
                fs::write(folder.join("work/x"), word).unwrap();
                io::Write::write_all(&mut streams.stdout, word.as_bytes()).unwrap();
            }
            let stdout = folder_of(&project, FIRST).join("stdout");
            assert_eq!(fs::read_to_string(stdout).unwrap(), expected);
        }
    }

    #[test]
    fn an_untouched_folder_is_renamed_for_the_next_attempt_and_gone_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(folder.path().to_path_buf(), false);
        let Sandbox { folder: first, streams } = sandboxes.make(FIRST, None).unwrap();
        assert!(first.ends_with("1/1234.1"));
        sandboxes.tidy(Leftover { streams: sandboxes.hold(streams), ..left(&first, false) });
        let Sandbox { folder: second, mut streams } = sandboxes.make(SECOND, None).unwrap();
        assert!(second.ends_with("2/2001.3") && second.join("work").is_dir() && !first.exists());
        io::Write::write_all(&mut streams.stdout, b"mine").unwrap();
        assert_eq!(fs::read(second.join("stdout")).unwrap(), b"mine");
        fs::write(second.join("stdout"), "").unwrap();
        sandboxes.tidy(left(&second, false));
        sandboxes.close();
        assert_eq!(fs::read_dir(folder.path().join("2")).map(|_| ()).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn what_a_task_said_or_left_is_kept_or_removed_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(folder.path().to_path_buf(), false);
        let kept = sandboxes.make(FIRST, None).unwrap().folder;
        fs::write(kept.join("work/x"), "x").unwrap();
        sandboxes.tidy(left(&kept, true));
        assert!(kept.join("work/x").exists() && !kept.join("stdout").exists());
        let removed = sandboxes.make(SECOND, None).unwrap().folder;
        fs::write(removed.join("work/x"), "x").unwrap();
        fs::write(removed.join("stderr"), "oh").unwrap();
        sandboxes.tidy(left(&removed, false));
        assert!(removed.join("stderr").exists() && !removed.join("work").exists());
    }

    #[test]
    fn an_attempt_on_a_node_is_there_while_it_runs_and_what_is_kept_comes_home() {
        let folder = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(folder.path().join("attempts"), false);
        let node = folder.path().join("nodes/a");
        let on_the_node = || fs::read_dir(&node).unwrap().count();
        let kept = sandboxes.make(FIRST, Some(&node)).unwrap().folder;
        assert!(kept.ends_with("attempts/1/1234.1"));
        assert!(kept.join("work").canonicalize().unwrap().starts_with(node.canonicalize().unwrap()));
        fs::write(kept.join("work/x"), "x").unwrap();
        fs::write(kept.join("stdout"), "said").unwrap();
        assert_eq!(on_the_node(), 1);
        sandboxes.tidy(left(&kept, true));
        assert!(!kept.is_symlink() && kept.join("work/x").exists());
        assert_eq!(fs::read(kept.join("stdout")).unwrap(), b"said");
        assert_eq!(on_the_node(), 0);
        let silent = sandboxes.make(SECOND, Some(&node)).unwrap().folder;
        fs::write(silent.join("work/x"), "x").unwrap();
        sandboxes.tidy(left(&silent, false));
        assert!(!silent.is_symlink() && !silent.exists());
        assert_eq!(on_the_node(), 0);
    }

    #[test]
    fn what_a_killed_driver_left_on_nodes_is_removed_and_links_to_data_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let attempts = folder.path().join("attempts");
        let [node, other, data] = ["a", "b", "data"].map(|name| folder.path().join(name));
        let here = Sandboxes::new(attempts.clone(), false);
        here.make(FIRST, Some(&node)).unwrap();
        // The attempt that is made again may be on another node, and is only there.
        here.make(FIRST, Some(&other)).unwrap();
        assert_eq!([&node, &other].map(|node| fs::read_dir(node).unwrap().count()), [0, 1]);
        Sandboxes::new(attempts.join(INSIDE).join("0/7"), false).make(SECOND, Some(&node)).unwrap();
        fs::create_dir_all(data.join("x-1.1")).unwrap();
        for link in ["links/1.1", "1/picture"] {
            fs::create_dir_all(attempts.join(link).parent().unwrap()).unwrap();
            symlink(data.join("x-1.1"), attempts.join(link)).unwrap();
        }
        remove_from_nodes(&attempts);
        assert_eq!([&node, &other, &data].map(|folder| fs::read_dir(folder).unwrap().count()), [0, 0, 1]);
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
