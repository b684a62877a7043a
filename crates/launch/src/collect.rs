//! Finds what a task left of its declared outputs, and hashes it. Moves nothing: that is `objects`.
//!
//! Links that stay in the sandbox are followed; links that leave it are an error, because the file behind
//! them is not the task's. An input that the task left as it was shown counts as an output only where it
//! is declared by its very name: a pattern or a directory means what the task wrote.

use crate::inputs::is_safe;
use crate::shown::Shown;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tulpar_core::accept::UNDECLARED;
use tulpar_core::ids::Digest;
use tulpar_core::job::{InputFile, JobSpec, OutputFile, OutputSpec, Source};
use tulpar_core::workflow::OutputKind;

/// Of an attempt that misses a declared output, more files than this stay in its sandbox only.
const MOST_MADE: usize = 10_000;
/// More things that cannot be kept are counted, not named.
const MOST_LEFT_OUT: usize = 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CollectError {
    #[error("the output `{path}` cannot be read: {error}")]
    Read { path: String, error: io::Error },
}

/// A file to be committed.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) file: OutputFile,
    /// Where its content lies. Links are resolved.
    pub(crate) from: PathBuf,
    pub(crate) take: Take,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    Move,
    /// The file has another name somewhere, or belongs to the user.
    Copy,
    /// It is an object already.
    Leave,
}

#[derive(Debug)]
pub(crate) enum Collected {
    All {
        found: Vec<Found>,
        /// Empty folders, pipes, sockets and devices in output folders: a result consists of files.
        left_out: Vec<String>,
    },
    /// These are missing; nothing shall be committed.
    Missing(Vec<String>),
}

pub(crate) fn collect(work: &Path, outputs: &[OutputSpec], shown: &Shown<'_>) -> Result<Collected, CollectError> {
    let work = fs::canonicalize(work).map_err(|error| CollectError::Read { path: ".".into(), error })?;
    let mut search = Search::new(&work, shown);
    for (position, output) in outputs.iter().enumerate() {
        search.output(position as u32, output);
    }
    if !search.missing.is_empty() {
        return Ok(Collected::Missing(search.missing));
    }
    let mut found = search.found;
    hash_all(&mut found)?;
    Ok(Collected::All { found, left_out: named(search.left_out) })
}

/// Everything that a task left beside its inputs, whatever it declares; how many files, when these are too many.
pub(crate) fn made(work: &Path, spec: &JobSpec, shown: &Shown<'_>) -> Result<Result<Vec<Found>, usize>, CollectError> {
    let work = fs::canonicalize(work).map_err(|error| CollectError::Read { path: ".".into(), error })?;
    let mut search = Search::new(&work, shown);
    let ours = |path: &str| {
        let is_list = spec.inputs.iter().any(|input| input.list.as_deref() == Some(path));
        is_list || path == crate::told::FILE || path.starts_with(".tulpar") || path.starts_with(".staged/")
    };
    search.below(UNDECLARED, "", &|path| !ours(path));
    let mut found = search.found;
    if found.len() > MOST_MADE {
        return Ok(Err(found.len()));
    }
    hash_all(&mut found)?;
    Ok(Ok(found))
}

/// In the order of names, each once; the last of very many stands for the rest.
fn named(left_out: BTreeSet<String>) -> Vec<String> {
    let more = left_out.len().saturating_sub(MOST_LEFT_OUT);
    let mut named: Vec<String> = left_out.into_iter().take(MOST_LEFT_OUT).collect();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    named
}

struct Search<'a, 's> {
    work: &'a Path,
    shown: &'a Shown<'s>,
    found: Vec<Found>,
    missing: Vec<String>,
    left_out: BTreeSet<String>,
}

impl<'a, 's> Search<'a, 's> {
    fn new(work: &'a Path, shown: &'a Shown<'s>) -> Self {
        Self { work, shown, found: Vec::new(), missing: Vec::new(), left_out: BTreeSet::new() }
    }

    fn output(&mut self, position: u32, output: &OutputSpec) {
        if !is_safe(&output.path) {
            self.missing.push(format!("{} (leaves the sandbox)", output.path));
            return;
        }
        let before = (self.found.len(), self.missing.len());
        match output.kind {
            OutputKind::File => self.file(position, &output.path, true),
            OutputKind::Directory => self.folder(position, output.path.trim_end_matches('/')),
            OutputKind::Pattern => match glob(&output.path) {
                Some(matcher) => {
                    self.below(position, fixed_part(&output.path), &|path| matcher.is_match(path));
                }
                None => self.missing.push(format!("{} (is not a valid pattern)", output.path)),
            },
        }
        // Otherwise what was wrong with it has been said.
        if before == (self.found.len(), self.missing.len()) && !output.optional {
            self.missing.push(output.path.clone());
        }
    }

    /// One file. `named`: the workflow names it, so that an untouched input counts too.
    fn file(&mut self, output: u32, path: &str, named: bool) {
        let here = self.work.join(path);
        if let Some((input, from)) = self.shown.unchanged(path) {
            if named {
                self.input(output, path, input, from);
            }
            return;
        }
        let real = match fs::canonicalize(&here) {
            Ok(real) => real,
            Err(_) => {
                if let Ok(target) = fs::read_link(&here) {
                    self.missing.push(format!("{path} (a link to {}, which does not exist)", target.display()));
                }
                return;
            }
        };
        if !real.starts_with(self.work) {
            match self.shown.behind(&here) {
                Some((input, from)) => self.input(output, path, input, from),
                None => self
                    .missing
                    .push(format!("{path} (a link to {}, outside the sandbox: copy the file instead)", real.display())),
            }
            return;
        }
        match fs::metadata(&real) {
            Ok(metadata) if metadata.is_file() => {
                let executable = metadata.mode() & 0o111 != 0;
                let take = if metadata.nlink() > 1 { Take::Copy } else { Take::Move };
                let file =
                    OutputFile { output, path: path.into(), size: metadata.len(), digest: Digest([0; 32]), executable };
                self.found.push(Found { file, from: real, take });
            }
            // Work is never lost to a missing slash: a folder under the name of a file is what is in it.
            Ok(metadata) if metadata.is_dir() && named => {
                let before = (self.found.len(), self.missing.len());
                self.folder(output, path);
                if before == (self.found.len(), self.missing.len()) {
                    self.missing.push(format!("{path} (is an empty folder)"));
                }
            }
            _ => {}
        }
    }

    /// An input that is passed on. The user's file stays the user's.
    fn input(&mut self, output: u32, path: &str, input: &InputFile, from: PathBuf) {
        let take = match input.source {
            Source::Object | Source::Text(_) => Take::Leave,
            // A private copy is the task's; the user's file stays the user's.
            Source::Path(_) | Source::Remote(_) if from.starts_with(self.work) => Take::Move,
            Source::Path(_) | Source::Remote(_) => Take::Copy,
        };
        let executable = fs::metadata(&from).is_ok_and(|file| file.mode() & 0o111 != 0);
        let file = OutputFile { output, path: path.into(), size: input.size, digest: input.digest, executable };
        self.found.push(Found { file, from, take });
    }

    /// All of a folder. What cannot be kept of it is named.
    fn folder(&mut self, output: u32, top: &str) {
        let left_out = self.below(output, top, &|_| true);
        self.left_out.extend(left_out);
    }

    /// Every file below a folder that is wanted, in the order of names. Gives what is there and is no file.
    fn below(&mut self, output: u32, top: &str, wanted: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut left_out = Vec::new();
        let mut stack = vec![(top.to_owned(), Vec::<PathBuf>::new())];
        let mut paths = BTreeSet::new();
        while let Some((folder, above)) = stack.pop() {
            let Ok(real) = fs::canonicalize(self.work.join(&folder)) else { continue };
            if !real.starts_with(self.work) {
                if self.shown.unchanged(&folder).is_none() {
                    self.missing.push(format!(
                        "{folder} (a link to {}, outside the sandbox: copy the files instead)",
                        real.display()
                    ));
                }
                continue;
            }
            // A link to a folder above would go round for ever.
            if above.contains(&real) {
                continue;
            }
            let Ok(entries) = fs::read_dir(&real) else { continue };
            let mut is_empty = true;
            for entry in entries.flatten() {
                is_empty = false;
                let Ok(name) = entry.file_name().into_string() else {
                    self.missing
                        .push(format!("{folder}/{} (its name is not UTF-8)", entry.file_name().to_string_lossy()));
                    continue;
                };
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                let Ok(kind) = entry.file_type() else { continue };
                let is_folder = kind.is_dir()
                    || kind.is_symlink() && fs::metadata(entry.path()).is_ok_and(|target| target.is_dir());
                if is_folder {
                    let mut above = above.clone();
                    above.push(real.clone());
                    stack.push((path, above));
                } else if !kind.is_file() && !kind.is_symlink() {
                    left_out.push(format!("{path} ({})", no_file(kind)));
                } else if wanted(&path) {
                    paths.insert(path);
                }
            }
            if is_empty && folder != top {
                left_out.push(format!("{folder} (an empty folder)"));
            }
        }
        for path in paths {
            self.file(output, &path, false);
        }
        left_out
    }
}

fn no_file(kind: fs::FileType) -> &'static str {
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

pub(crate) fn glob(pattern: &str) -> Option<globset::GlobMatcher> {
    Some(globset::GlobBuilder::new(pattern).literal_separator(true).build().ok()?.compile_matcher())
}

/// The folders before the first sign of a pattern: no need to look elsewhere.
pub(crate) fn fixed_part(pattern: &str) -> &str {
    let end = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    pattern[..end].rfind('/').map_or("", |slash| &pattern[..slash])
}

/// Few small files are hashed here; for many or large ones the cores share them.
fn hash_all(found: &mut [Found]) -> Result<(), CollectError> {
    let total: u64 = found.iter().map(|found| found.file.size).sum();
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    if found.len() < 2 || cores < 2 || (found.len() < 256 && total < 32 << 20) {
        return found.iter_mut().try_for_each(hash_one);
    }
    let next = AtomicUsize::new(0);
    let chunks: Vec<std::sync::Mutex<&mut [Found]>> = found.chunks_mut(16).map(std::sync::Mutex::new).collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores)
            .map(|_| {
                scope.spawn(|| {
                    while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        chunk.lock().expect("each chunk is taken once").iter_mut().try_for_each(hash_one)?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("hashing does not panic"))
    })
}

fn hash_one(found: &mut Found) -> Result<(), CollectError> {
    if found.take == Take::Leave {
        return Ok(());
    }
    let (digest, size) =
        hash_file(&found.from).map_err(|error| CollectError::Read { path: found.file.path.clone(), error })?;
    found.file.digest = digest;
    found.file.size = size;
    Ok(())
}

pub(crate) fn hash_file(path: &Path) -> io::Result<(Digest, u64)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok((Digest(*hasher.finalize().as_bytes()), hasher.count()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Giver;
    use crate::originals::Originals;
    use std::os::unix::fs::symlink;
    use tulpar_core::job::InputFiles;

    fn output(path: &str, kind: OutputKind, optional: bool) -> OutputSpec {
        OutputSpec { name: "x".into(), path: path.into(), kind, optional }
    }

    fn collected(prepare: impl Fn(&Path), outputs: &[OutputSpec]) -> Result<Vec<String>, Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let work = root.join("work");
        fs::create_dir(&work).unwrap();
        fs::write(root.join("mine"), "mine").unwrap();
        let input = InputFile {
            path: "in.npy".into(),
            source: Source::Path("mine".into()),
            size: 4,
            digest: Digest::of(b"mine"),
        };
        let inputs = [InputFiles { name: "in".into(), files: [input].into(), list: None }];
        let originals = Originals::new(root.join("stat"));
        let giver = || Giver {
            project: &root,
            objects: &root,
            work: &work,
            pins: Some(&root),
            originals: &originals,
            link_large: false,
        };
        let given = giver().give(&inputs, &std::collections::HashSet::new()).unwrap();
        prepare(&work);
        match collect(&work, outputs, &Shown::new(&inputs, &given.seen, giver())).unwrap() {
            Collected::All { found, left_out } => {
                let files = found.iter().map(|found| {
                    let content = fs::read(&found.from).unwrap();
                    assert_eq!((found.file.digest, found.file.size), (Digest::of(&content), content.len() as u64));
                    format!("{} {} {:?}", found.file.output, found.file.path, found.take)
                });
                Ok(files.chain(left_out.iter().map(|words| format!("without {words}"))).collect())
            }
            Collected::Missing(missing) => Err(missing),
        }
    }

    #[test]
    fn files_patterns_and_directories_are_found_and_untouched_inputs_only_by_name() {
        let prepare = |work: &Path| {
            fs::create_dir_all(work.join("d/e")).unwrap();
            for name in ["m.bin", "d/1", "d/e/2", "a.npy", "b.npy"] {
                fs::write(work.join(name), name).unwrap();
            }
            symlink("m.bin", work.join("latest")).unwrap();
            symlink("..", work.join("d/up")).unwrap();
            symlink("in.npy", work.join("renamed")).unwrap();
            fs::create_dir_all(work.join("f/g")).unwrap();
            fs::write(work.join("f/g/3"), "3").unwrap();
        };
        let outputs = [
            output("m.bin", OutputKind::File, false),
            output("*.npy", OutputKind::Pattern, false),
            output("d/e", OutputKind::Directory, false),
            output("latest", OutputKind::File, false),
            output("in.npy", OutputKind::File, false),
            output("nothing", OutputKind::File, true),
            output("renamed", OutputKind::File, false),
            output("f", OutputKind::File, false),
        ];
        assert_eq!(
            collected(prepare, &outputs).unwrap(),
            [
                "0 m.bin Move",
                "1 a.npy Move",
                "1 b.npy Move",
                "2 d/e/2 Move",
                "3 latest Move",
                "4 in.npy Move",
                "6 renamed Move",
                "7 f/g/3 Move"
            ]
        );
    }

    #[test]
    fn what_is_no_file_in_an_output_folder_is_named() {
        let prepare = |work: &Path| {
            for folder in ["d/full", "d/empty", "d/deep/empty", "e"] {
                fs::create_dir_all(work.join(folder)).unwrap();
            }
            for name in ["d/full/1", "e/1"] {
                fs::write(work.join(name), name).unwrap();
            }
            (0..30).for_each(|number| fs::create_dir(work.join(format!("e/{number:02}"))).unwrap());
            rustix::fs::mknodat(
                rustix::fs::CWD,
                work.join("d/pipe"),
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RWXU,
                0,
            )
            .unwrap();
            std::os::unix::net::UnixListener::bind(work.join("d/socket")).unwrap();
            symlink("full", work.join("d/link")).unwrap();
        };
        assert_eq!(
            collected(prepare, &[output("d", OutputKind::Directory, false)]).unwrap(),
            [
                "0 d/full/1 Move",
                "0 d/link/1 Move",
                "without d/deep/empty (an empty folder)",
                "without d/empty (an empty folder)",
                "without d/pipe (a named pipe)",
                "without d/socket (a socket)",
            ]
        );
        let many = collected(prepare, &[output("e", OutputKind::File, false)]).unwrap();
        assert_eq!((many.len(), many.last().unwrap().as_str()), (22, "without and 10 more"));
    }

    #[test]
    fn every_missing_output_is_named_and_links_that_leave_are_refused() {
        let prepare = |work: &Path| {
            fs::create_dir(work.join("empty")).unwrap();
            fs::create_dir(work.join("bare")).unwrap();
            symlink("/etc/passwd", work.join("leak")).unwrap();
            symlink("/etc", work.join("etc")).unwrap();
            symlink("gone", work.join("broken")).unwrap();
        };
        let outputs = [
            output("m.bin", OutputKind::File, false),
            output("clean/*.npy", OutputKind::Pattern, false),
            output("empty", OutputKind::Directory, false),
            output("bare", OutputKind::File, false),
            output("leak", OutputKind::File, false),
            output("etc/passwd", OutputKind::File, false),
            output("broken", OutputKind::File, true),
            output("../x", OutputKind::File, false),
        ];
        assert_eq!(
            collected(prepare, &outputs).unwrap_err(),
            [
                "m.bin",
                "clean/*.npy",
                "empty",
                "bare (is an empty folder)",
                "leak (a link to /etc/passwd, outside the sandbox: copy the file instead)",
                "etc/passwd (a link to /etc/passwd, outside the sandbox: copy the file instead)",
                "broken (a link to gone, which does not exist)",
                "../x (leaves the sandbox)",
            ]
        );
    }

    #[test]
    fn many_files_are_hashed_by_all_cores_to_the_same_digests() {
        let prepare =
            |work: &Path| (0..1000).for_each(|n| fs::write(work.join(format!("{n}.out")), n.to_string()).unwrap());
        assert_eq!(collected(prepare, &[output("*.out", OutputKind::Pattern, false)]).unwrap().len(), 1000);
    }
}
