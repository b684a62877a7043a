//! Which files are meant by what a person typed: files, folders that are searched, and patterns. Does not open them.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// Folders inside folders beyond this are a loop.
const DEEPEST: usize = 64;

/// Why nothing can be read from what was named.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} is no pattern for files: {why}", pattern.display())]
    Pattern { pattern: PathBuf, why: String },
    #[error("no {what} in {}", path.display())]
    Nothing { path: PathBuf, what: &'static str },
}

/// The Darshan logs that are meant, in order, each once.
pub fn logs(named: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    files(named, "Darshan log (*.darshan)", |path| path.extension().is_some_and(|extension| extension == "darshan"))
}

/// All files that are meant: named ones as they are, those of folders if they are `wanted`.
pub fn files(named: &[PathBuf], what: &'static str, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for path in named {
        let before = found.len();
        if path.is_dir() {
            walk(path, DEEPEST, &mut |file| {
                if wanted(file) {
                    found.push(file.to_owned());
                }
            })?;
        } else if !path.exists() && is_pattern(path) {
            matching(path, &mut found)?;
        } else {
            std::fs::metadata(path).map_err(|source| Error::Io { path: path.clone(), source })?;
            found.push(path.clone());
        }
        if found.len() == before {
            return Err(Error::Nothing { path: path.clone(), what });
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| seen.insert(path.clone()));
    Ok(found)
}

/// A pattern for paths: `*` stays inside a folder, `**` does not.
pub fn pattern(text: &str) -> Result<GlobMatcher, Error> {
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    let failed = |error: globset::Error| Error::Pattern { pattern: text.into(), why: error.kind().to_string() };
    Ok(glob.map_err(failed)?.compile_matcher())
}

fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '[', '{'])
}

fn matching(pattern: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let text = pattern.to_string_lossy();
    let glob = self::pattern(&text)?;
    let plain: PathBuf = pattern.components().take_while(|part| !is_pattern(Path::new(part))).collect();
    let beyond = pattern.components().count() - plain.components().count();
    let depth = if text.contains("**") { DEEPEST } else { beyond };
    let from = if plain.as_os_str().is_empty() { PathBuf::from(".") } else { plain.clone() };
    walk(&from, depth, &mut |file| {
        let shown = if plain.as_os_str().is_empty() { file.strip_prefix(".").unwrap_or(file) } else { file };
        if glob.is_match(shown) {
            found.push(shown.to_owned());
        }
    })
}

/// Files below a folder, sorted by name; links to folders are not followed.
fn walk(folder: &Path, depth: usize, visit: &mut impl FnMut(&Path)) -> Result<(), Error> {
    let failed = |source| Error::Io { path: folder.to_owned(), source };
    let mut entries: Vec<(PathBuf, bool)> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        entries.push((entry.path(), entry.file_type().map_err(failed)?.is_dir()));
    }
    entries.sort();
    for (path, is_folder) in entries {
        match is_folder {
            true if depth > 1 => walk(&path, depth - 1, visit)?,
            true => {}
            false => visit(&path),
        }
    }
    Ok(())
}
