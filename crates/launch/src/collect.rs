//! Finds what a task left of its declared outputs, and hashes it. Moves nothing: that is `objects`.
//!
//! Links that stay in the sandbox are followed; links that leave it are an error, because the file behind
//! them is not the task's. An input that the task left as it was shown counts as an output only where it
//! is declared by its very name: a pattern or a directory means what the task wrote.

use crate::inputs::{Shown, is_safe};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tulpar_core::ids::Digest;
use tulpar_core::job::{InputFile, OutputFile, OutputSpec, Source};
use tulpar_core::workflow::OutputKind;

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
    All(Vec<Found>),
    /// These are missing; nothing shall be committed.
    Missing(Vec<String>),
}

pub(crate) fn collect(work: &Path, outputs: &[OutputSpec], shown: &Shown<'_>) -> Result<Collected, CollectError> {
    let work = fs::canonicalize(work).map_err(|error| CollectError::Read { path: ".".into(), error })?;
    let mut search = Search { work: &work, shown, found: Vec::new(), missing: Vec::new() };
    for (position, output) in outputs.iter().enumerate() {
        search.output(position as u32, output);
    }
    if !search.missing.is_empty() {
        return Ok(Collected::Missing(search.missing));
    }
    let mut found = search.found;
    hash_all(&mut found)?;
    Ok(Collected::All(found))
}

struct Search<'a, 's> {
    work: &'a Path,
    shown: &'a Shown<'s>,
    found: Vec<Found>,
    missing: Vec<String>,
}

impl Search<'_, '_> {
    fn output(&mut self, position: u32, output: &OutputSpec) {
        if !is_safe(&output.path) {
            self.missing.push(format!("{} (leaves the sandbox)", output.path));
            return;
        }
        let before = (self.found.len(), self.missing.len());
        match output.kind {
            OutputKind::File => self.file(position, &output.path, true),
            OutputKind::Directory => self.below(position, output.path.trim_end_matches('/'), &|_| true),
            OutputKind::Pattern => match glob(&output.path) {
                Some(matcher) => self.below(position, fixed_part(&output.path), &|path| matcher.is_match(path)),
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
            Ok(metadata) if metadata.is_dir() && named => {
                self.missing.push(format!("{path} (is a directory: declare it as `{path}/`)"))
            }
            _ => {}
        }
    }

    /// An input that is passed on. The user's file stays the user's.
    fn input(&mut self, output: u32, path: &str, input: &InputFile, from: PathBuf) {
        let take = match input.source {
            Source::Object | Source::Text(_) => Take::Leave,
            Source::Path(_) | Source::Remote(_) => Take::Copy,
        };
        let executable = fs::metadata(&from).is_ok_and(|file| file.mode() & 0o111 != 0);
        let file = OutputFile { output, path: path.into(), size: input.size, digest: input.digest, executable };
        self.found.push(Found { file, from, take });
    }

    /// Every file below a folder that is wanted, in the order of names.
    fn below(&mut self, output: u32, top: &str, wanted: &dyn Fn(&str) -> bool) {
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
            for entry in entries.flatten() {
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
                } else if (kind.is_file() || kind.is_symlink()) && wanted(&path) {
                    paths.insert(path);
                }
            }
        }
        for path in paths {
            self.file(output, &path, false);
        }
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
    use crate::inputs::Shower;
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
        let shower = || Shower { project: &root, objects: &root, work: &work, links: &root };
        shower().show(&inputs).unwrap();
        prepare(&work);
        match collect(&work, outputs, &Shown::new(&inputs, shower())).unwrap() {
            Collected::All(found) => Ok(found
                .iter()
                .map(|found| {
                    let content = fs::read(&found.from).unwrap();
                    assert_eq!((found.file.digest, found.file.size), (Digest::of(&content), content.len() as u64));
                    format!("{} {} {:?}", found.file.output, found.file.path, found.take)
                })
                .collect()),
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
            symlink(fs::read_link(work.join("in.npy")).unwrap(), work.join("renamed")).unwrap();
        };
        let outputs = [
            output("m.bin", OutputKind::File, false),
            output("*.npy", OutputKind::Pattern, false),
            output("d/e", OutputKind::Directory, false),
            output("latest", OutputKind::File, false),
            output("in.npy", OutputKind::File, false),
            output("nothing", OutputKind::File, true),
            output("renamed", OutputKind::File, false),
        ];
        assert_eq!(
            collected(prepare, &outputs).unwrap(),
            [
                "0 m.bin Move",
                "1 a.npy Move",
                "1 b.npy Move",
                "2 d/e/2 Move",
                "3 latest Move",
                "4 in.npy Copy",
                "6 renamed Copy"
            ]
        );
    }

    #[test]
    fn every_missing_output_is_named_and_links_that_leave_are_refused() {
        let prepare = |work: &Path| {
            fs::create_dir(work.join("empty")).unwrap();
            symlink("/etc/passwd", work.join("leak")).unwrap();
            symlink("/etc", work.join("etc")).unwrap();
            symlink("gone", work.join("broken")).unwrap();
        };
        let outputs = [
            output("m.bin", OutputKind::File, false),
            output("clean/*.npy", OutputKind::Pattern, false),
            output("empty", OutputKind::Directory, false),
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
