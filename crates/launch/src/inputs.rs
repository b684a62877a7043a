//! Shows a task its inputs: one link a file, never a copy.
//!
//! The user's own files are shown by symbolic links: a hard link would change their link count and ctime, so
//! that backups and stat caches read them all again. Results in the store are ours and read-only; they are shown
//! by hard links where the file system allows, because a symbolic link to a name as long as theirs takes an
//! inode and a block each (measured here on ext4: 20 times the time of a hard link), and because a task
//! may then rename an input into an output. Reflinks cost an inode with extents and work on few file systems.
//!
//! When many tasks are shown the same 30,000 images, making and removing as many inodes a task is what
//! takes the time (ext4 will not reuse those of removed files for a while, and searches past them). So a
//! symbolic link is made once a run, in a folder of its own, and every sandbox gets another name of it.

use crate::refusal::Refusal;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;
use tulpar_core::job::{InputFile, InputFiles, Source};

/// Relative, no way up, nothing that only looks like a path.
pub(crate) fn is_safe(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && !path.starts_with('/')
        && path.split('/').all(|part| part != "..")
        && path.split('/').any(|part| !part.is_empty() && part != ".")
}

/// Where an object lies below the folder of objects.
pub(crate) fn object_path(digest: &Digest) -> String {
    let hex = digest.hex();
    format!("{}/{}", &hex[..2], &hex[2..])
}

pub(crate) struct Shower<'a> {
    pub(crate) project: &'a Path,
    pub(crate) objects: &'a Path,
    pub(crate) work: &'a Path,
    /// Where symbolic links are kept for the next task.
    pub(crate) links: &'a Path,
}

/// From here on it pays to keep them.
const MANY: usize = 64;

impl Shower<'_> {
    /// Gives the number of files and bytes shown.
    pub(crate) fn show(&self, inputs: &[InputFiles]) -> Result<(u64, u64), Refusal> {
        let (mut files, mut bytes) = (0, 0);
        if inputs.is_empty() {
            return Ok((0, 0));
        }
        let top = open_folder(self.work).map_err(Refusal::sandbox("opening it"))?;
        let mut folders = Folders { top: &top, made: HashSet::new(), last: None };
        let project = self.project.to_str().unwrap_or_default();
        let keep_links = inputs.iter().map(|input| input.files.len()).sum::<usize>() >= MANY;
        let mut from = String::new();
        for input in inputs {
            for file in input.files.iter() {
                if !is_safe(&file.path) {
                    return Err(Refusal::UnsafePath(file.path.clone()));
                }
                self.source(file, project, &mut from);
                let (folder, name) = folders.parent(&file.path)?;
                let mut linked = match file.source {
                    Source::Object | Source::Text(_) => {
                        rustix::fs::linkat(rustix::fs::CWD, from.as_str(), folder, name, AtFlags::empty())
                    }
                    Source::Path(_) | Source::Remote(_) => Err(rustix::io::Errno::XDEV),
                };
                // Another file system, too many links, a file system without them.
                if linked.is_err_and(|error| !matches!(error, rustix::io::Errno::EXIST | rustix::io::Errno::NOENT)) {
                    linked = rustix::fs::access(from.as_str(), rustix::fs::Access::EXISTS).and_then(|()| {
                        if keep_links && self.link_again(&from, folder, name).is_ok() {
                            return Ok(());
                        }
                        rustix::fs::symlinkat(from.as_str(), folder, name)
                    });
                }
                match linked {
                    Ok(()) => {}
                    Err(rustix::io::Errno::NOENT) => {
                        return Err(Refusal::MissingInput { path: file.path.clone(), from });
                    }
                    // The same file through two inputs, or twice in one, is no conflict.
                    Err(rustix::io::Errno::EXIST) if is_link_to(&self.work.join(&file.path), Path::new(&from)) => {}
                    Err(rustix::io::Errno::EXIST) => return Err(Refusal::SamePath(file.path.clone())),
                    Err(error) => return Err(Refusal::sandbox(format!("linking `{}`", file.path))(error.into())),
                }
                files += 1;
                bytes += file.size;
            }
            if let Some(list) = &input.list {
                self.write_list(list, input, &mut folders)?;
            }
        }
        Ok((files, bytes))
    }

    /// Another name for the symbolic link to `from` that an earlier task had, or that is made for the later ones.
    fn link_again(&self, from: &str, folder: &OwnedFd, name: &str) -> rustix::io::Result<()> {
        let kept = self.links.join(object_path(&Digest::of(from.as_bytes())));
        let link = || rustix::fs::linkat(rustix::fs::CWD, &kept, folder, name, AtFlags::empty());
        match link() {
            Err(rustix::io::Errno::NOENT) => {
                if let Err(rustix::io::Errno::NOENT) = rustix::fs::symlinkat(from, rustix::fs::CWD, &kept) {
                    let _ = std::fs::create_dir_all(kept.parent().expect("two levels"));
                    rustix::fs::symlinkat(from, rustix::fs::CWD, &kept)?;
                }
                link()
            }
            other => other,
        }
    }

    fn source(&self, file: &InputFile, project: &str, from: &mut String) {
        from.clear();
        match &file.source {
            // Only a script takes these, and pulls them first; shown as they are they would not be found.
            Source::Remote(url) => from.push_str(url),
            Source::Path(path) if path.starts_with('/') => from.push_str(path),
            Source::Path(path) => {
                from.push_str(project);
                from.push('/');
                from.push_str(path);
            }
            Source::Object | Source::Text(_) => {
                let _ = write!(from, "{}/{}", self.objects.display(), object_path(&file.digest));
            }
        }
    }

    fn write_list(&self, list: &str, input: &InputFiles, folders: &mut Folders<'_>) -> Result<(), Refusal> {
        if !is_safe(list) {
            return Err(Refusal::UnsafePath(list.into()));
        }
        let mut text = String::new();
        for file in input.files.iter() {
            text.push_str(&file.path);
            text.push('\n');
        }
        let (folder, name) = folders.parent(list)?;
        // Never through a link: the file behind it would be the user's.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o644)) {
            Ok(file) => std::fs::File::from(file),
            Err(rustix::io::Errno::EXIST) => return Err(Refusal::SamePath(list.into())),
            Err(error) => return Err(Refusal::sandbox(format!("writing `{list}`"))(error.into())),
        };
        io::Write::write_all(&mut &file, text.as_bytes()).map_err(Refusal::sandbox(format!("writing `{list}`")))
    }
}

/// Whether `link` is what we would make to show `from`: a symbolic link to it, or another name of it.
fn is_link_to(link: &Path, from: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match std::fs::read_link(link) {
        Ok(target) => target == from,
        Err(_) => match (std::fs::symlink_metadata(link), std::fs::symlink_metadata(from)) {
            (Ok(here), Ok(there)) => (here.dev(), here.ino()) == (there.dev(), there.ino()),
            _ => false,
        },
    }
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The folders inside a sandbox: each made once, the last one held open because the next file is mostly there too.
struct Folders<'a> {
    top: &'a OwnedFd,
    made: HashSet<String>,
    last: Option<(String, OwnedFd)>,
}

impl Folders<'_> {
    fn parent<'p>(&mut self, path: &'p str) -> Result<(&OwnedFd, &'p str), Refusal> {
        let Some((folder, name)) = path.rsplit_once('/') else { return Ok((self.top, path)) };
        if self.last.as_ref().is_none_or(|(last, _)| last != folder) {
            self.make(folder, path)?;
            let open =
                rustix::fs::openat(self.top, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                    .map_err(|error| Refusal::sandbox(format!("opening `{folder}`"))(error.into()))?;
            self.last = Some((folder.to_owned(), open));
        }
        let (_, open) = self.last.as_ref().expect("just set");
        Ok((open, name))
    }

    fn make(&mut self, folder: &str, path: &str) -> Result<(), Refusal> {
        if self.made.contains(folder) {
            return Ok(());
        }
        if let Some((above, _)) = folder.rsplit_once('/') {
            self.make(above, path)?;
        }
        match rustix::fs::mkdirat(self.top, folder, Mode::from_raw_mode(0o755)) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                // Through a link to a user's folder we would write into that folder.
                let kind = rustix::fs::statat(self.top, folder, AtFlags::SYMLINK_NOFOLLOW)
                    .map(|stat| FileType::from_raw_mode(stat.st_mode));
                if kind != Ok(FileType::Directory) {
                    return Err(Refusal::BelowAnInput(path.to_owned()));
                }
            }
            Err(error) => return Err(Refusal::sandbox(format!("making the folder `{folder}`"))(error.into())),
        }
        self.made.insert(folder.to_owned());
        Ok(())
    }
}

/// What was shown, so that collecting can tell inputs from what the task made.
pub(crate) struct Shown<'a> {
    inputs: &'a [InputFiles],
    shower: Shower<'a>,
    by_path: OnceCell<HashMap<&'a str, &'a InputFile>>,
    by_source: OnceCell<HashMap<PathBuf, &'a InputFile>>,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(inputs: &'a [InputFiles], shower: Shower<'a>) -> Self {
        Self { inputs, shower, by_path: OnceCell::new(), by_source: OnceCell::new() }
    }

    fn files(&self) -> impl Iterator<Item = &'a InputFile> {
        self.inputs.iter().flat_map(|input| input.files.iter())
    }

    fn source(&self, file: &InputFile) -> PathBuf {
        let mut from = String::new();
        self.shower.source(file, self.shower.project.to_str().unwrap_or_default(), &mut from);
        PathBuf::from(from)
    }

    /// The input shown at `path`, and where it really lies, if the link there is still the one we made.
    pub(crate) fn unchanged(&self, path: &str) -> Option<(&'a InputFile, PathBuf)> {
        let input =
            *self.by_path.get_or_init(|| self.files().map(|file| (file.path.as_str(), file)).collect()).get(path)?;
        let from = self.source(input);
        is_link_to(&self.shower.work.join(path), &from).then_some((input, from))
    }

    /// The input behind a link that the task moved or copied to another name.
    pub(crate) fn behind(&self, link: &Path) -> Option<(&'a InputFile, PathBuf)> {
        let target = std::fs::read_link(link).ok()?;
        let by_source = self.by_source.get_or_init(|| self.files().map(|file| (self.source(file), file)).collect());
        Some((*by_source.get(&target)?, target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, source: &str) -> InputFile {
        InputFile { path: path.into(), source: Source::Path(source.into()), size: 2, digest: Digest::of(b"x") }
    }

    fn show(files: Vec<InputFile>, list: Option<&str>) -> (tempfile::TempDir, Result<(u64, u64), Refusal>) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["project/raw", "objects", "work"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let object = folder.path().join("objects").join(object_path(&Digest::of(b"made")));
        std::fs::create_dir_all(object.parent().unwrap()).unwrap();
        std::fs::write(object, "made").unwrap();
        for name in ["a", "b"] {
            std::fs::write(folder.path().join("project/raw").join(name), name).unwrap();
        }
        let inputs = [InputFiles { name: "raw".into(), files: files.into(), list: list.map(String::from) }];
        let shown = Shower {
            project: &folder.path().join("project"),
            objects: &folder.path().join("objects"),
            work: &folder.path().join("work"),
            links: &folder.path().join("links"),
        }
        .show(&inputs);
        (folder, shown)
    }

    #[test]
    fn inputs_appear_at_their_paths_and_in_the_list() {
        let (folder, shown) =
            show(vec![file("in/deep/a", "raw/a"), file("in/b", "raw/b"), file("in/b", "raw/b")], Some("raw.list"));
        assert_eq!(shown.unwrap(), (3, 6));
        assert_eq!(std::fs::read_to_string(folder.path().join("work/in/deep/a")).unwrap(), "a");
        assert_eq!(std::fs::read_to_string(folder.path().join("work/raw.list")).unwrap(), "in/deep/a\nin/b\nin/b\n");
    }

    #[test]
    fn results_are_shown_by_hard_links_and_the_users_files_are_left_as_they_were() {
        use std::os::unix::fs::MetadataExt;
        let made = InputFile { path: "m".into(), source: Source::Object, size: 4, digest: Digest::of(b"made") };
        let (folder, shown) = show(vec![made.clone(), made, file("a", "raw/a")], None);
        shown.unwrap();
        assert_eq!(std::fs::symlink_metadata(folder.path().join("work/m")).unwrap().nlink(), 2);
        assert!(folder.path().join("work/a").is_symlink());
        assert_eq!(std::fs::metadata(folder.path().join("project/raw/a")).unwrap().nlink(), 1);
    }

    #[test]
    fn many_links_to_the_users_files_are_made_once_and_named_again() {
        use std::os::unix::fs::MetadataExt;
        let files: Vec<InputFile> = (0..MANY).map(|n| file(&format!("in/{n}"), "raw/a")).collect();
        let (folder, shown) = show(files, None);
        shown.unwrap();
        let link = folder.path().join("work/in/7");
        assert_eq!(std::fs::read_link(&link).unwrap(), folder.path().join("project/raw/a"));
        assert_eq!(std::fs::symlink_metadata(&link).unwrap().nlink(), MANY as u64 + 1);
    }

    #[test]
    fn what_cannot_be_shown_safely_is_refused_by_name() {
        let refused = |files, list| show(files, list).1.unwrap_err().to_string();
        assert_eq!(
            refused(vec![file("../a", "raw/a")], None),
            "the path `../a` leaves the sandbox: use a relative path without `..`"
        );
        assert_eq!(
            refused(vec![file("/a", "raw/a")], None),
            "the path `/a` leaves the sandbox: use a relative path without `..`"
        );
        assert_eq!(
            refused(vec![file("a", "raw/a"), file("a", "raw/b")], None),
            "two inputs claim the path `a` in the sandbox: give one of them another name"
        );
        assert!(
            refused(vec![file("d", "raw"), file("d/x", "raw/b")], None)
                .starts_with("the input `d/x` lies below another input")
        );
        assert!(refused(vec![file("a", "raw/nosuch")], None).contains("the input `a` is missing"));
        let lost = InputFile { path: "m".into(), source: Source::Object, size: 4, digest: Digest::of(b"lost") };
        assert!(refused(vec![lost], None).contains("the input `m` is missing"));
        assert!(refused(vec![file("a", "raw/a")], Some("a")).starts_with("two inputs claim the path `a`"));
    }
}
