//! From one entry under `data:` to the names of its files, as a shell would list them.
//!
//! Names that begin with a dot are left out unless the pattern says the dot. Links are followed; a
//! directory that contains itself through a link is entered once. Nothing is hashed here, and directories
//! that the pattern cannot reach are not opened.

use super::{DataError, Listed, Listing};
use globset::{GlobBuilder, GlobMatcher};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tulpar_core::workflow::DataSource;

pub(super) fn list(folder: &Path, name: &str, source: &DataSource) -> Result<Vec<Listed>, DataError> {
    match source {
        DataSource::File(path) => {
            let from = tidy(path);
            Ok(vec![Listed { path: shown(folder, name, parent(&from), &from), from, within: None }])
        }
        DataSource::Glob(pattern) => {
            let parts = parse(pattern)?;
            let base: Vec<&str> = parts.iter().map_while(Part::literal).collect();
            let root = if pattern.starts_with('/') { "/" } else { "" };
            let base = format!("{root}{}", base.join("/"));
            Ok(found(folder, name, &base, walk(folder, root, &parts)?))
        }
        DataSource::Directory(path) => {
            let (base, files) = below_directory(folder, path)?;
            Ok(found(folder, name, &base, files))
        }
        DataSource::Manifest(path) => manifest(folder, name, path),
        // What must be fetched is listed by `fetch`.
        DataSource::Files(files) => Ok(files
            .iter()
            .filter(|(_, place)| !is_url(place))
            .map(|(path, place)| Listed { path: path.clone(), from: tidy(place), within: None })
            .collect()),
        DataSource::Copies(copies) => super::copies::list(folder, copies),
        // Nobody has asked the catalogue yet.
        DataSource::Url(_) | DataSource::Replicas(_) => Ok(vec![]),
    }
}

/// A directory as it is tidily written, and every file below it.
pub(super) fn below_directory(folder: &Path, path: &str) -> Result<(String, Vec<String>), DataError> {
    let base = tidy(path.trim_end_matches('/'));
    let base = if base.is_empty() && path.starts_with('/') { "/".to_owned() } else { base };
    match fs::metadata(folder.join(&base)) {
        Ok(about) if about.is_dir() => {}
        Ok(_) => return Err(DataError::NotDirectory { path: path.to_owned() }),
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            return Err(DataError::Missing { path: path.to_owned(), within: None, hint: hint(folder, &base) });
        }
        Err(cause) => return Err(DataError::Unreadable { path: path.to_owned(), within: None, cause }),
    }
    let files = walk(folder, &base, &[Part::Any])?;
    Ok((base, files))
}

fn found(folder: &Path, name: &str, base: &str, mut files: Vec<String>) -> Vec<Listed> {
    files.sort_unstable();
    files.dedup();
    files.into_iter().map(|from| Listed { path: shown(folder, name, base, &from), from, within: None }).collect()
}

fn manifest(folder: &Path, name: &str, path: &str) -> Result<Vec<Listed>, DataError> {
    let text = fs::read(folder.join(path)).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => DataError::Missing { path: path.to_owned(), within: None, hint: hint(folder, path) },
        ErrorKind::IsADirectory => DataError::IsDirectory { path: path.to_owned(), within: None },
        _ => DataError::Unreadable { path: path.to_owned(), within: None, cause },
    })?;
    let text = String::from_utf8(text).map_err(|error| DataError::Unreadable {
        path: path.to_owned(),
        within: None,
        cause: std::io::Error::new(ErrorKind::InvalidData, error.utf8_error()),
    })?;
    let manifest = tidy(path);
    let base = parent(&manifest).to_owned();
    let mut files = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line_text = line.trim();
        let line = u32::try_from(index + 1).unwrap_or(u32::MAX);
        if line_text.is_empty() || line_text.starts_with('#') {
            continue;
        }
        if line_text.starts_with("http://") || line_text.starts_with("https://") {
            return Err(DataError::UrlInManifest { manifest: path.to_owned(), line, text: line_text.to_owned() });
        }
        let from = if line_text.starts_with('/') { tidy(line_text) } else { tidy(&join(&base, line_text)) };
        let within = Some(Listing { manifest: path.to_owned(), line });
        files.push(Listed { path: shown(folder, name, &base, &from), from, within });
    }
    files.sort_by(|a, b| a.from.cmp(&b.from));
    files.dedup_by(|a, b| a.from == b.from);
    Ok(files)
}

enum Part {
    Literal(String),
    Pattern {
        matcher: GlobMatcher,
        dotted: bool,
    },
    /// `**`: any number of directories, none included.
    Any,
}

impl Part {
    fn literal(&self) -> Option<&str> {
        match self {
            Part::Literal(text) => Some(text),
            _ => None,
        }
    }
}

fn parse(pattern: &str) -> Result<Vec<Part>, DataError> {
    let mut parts = Vec::new();
    for text in pattern.split('/').filter(|text| !text.is_empty() && *text != ".") {
        if text == "**" {
            if !matches!(parts.last(), Some(Part::Any)) {
                parts.push(Part::Any);
            }
        } else if !text.contains(['*', '?', '[', '\\']) {
            parts.push(Part::Literal(text.to_owned()));
        } else {
            // Braces are no part of our patterns, but they are of globset's.
            let escaped = text.replace('{', "[{]").replace('}', "[}]");
            let glob = GlobBuilder::new(&escaped).literal_separator(true).backslash_escape(true).build();
            let glob = glob
                .map_err(|cause| DataError::Pattern { pattern: pattern.to_owned(), cause: cause.kind().to_string() })?;
            parts.push(Part::Pattern { matcher: glob.compile_matcher(), dotted: text.starts_with('.') });
        }
    }
    Ok(parts)
}

fn walk(folder: &Path, root: &str, parts: &[Part]) -> Result<Vec<String>, DataError> {
    let mut walk = Walk { folder, found: Vec::new(), inside: Vec::new() };
    walk.visit(root, parts)?;
    Ok(walk.found)
}

struct Walk<'a> {
    folder: &'a Path,
    found: Vec<String>,
    /// Device and inode of the directories around the present one, to leave a circle of links.
    inside: Vec<(u64, u64)>,
}

/// Below a folder, what is hidden is no data, and neither is what Python compiled from the modules beside it.
fn is_left_out(name: &str) -> bool {
    name.starts_with('.') || name == "__pycache__"
}

impl Walk<'_> {
    fn visit(&mut self, directory: &str, parts: &[Part]) -> Result<(), DataError> {
        let Some((part, rest)) = parts.split_first() else {
            return Ok(());
        };
        match part {
            Part::Literal(name) => {
                let path = join(directory, name);
                if !rest.is_empty() {
                    return self.visit(&path, rest);
                }
                if fs::metadata(self.folder.join(&path)).is_ok_and(|about| about.is_file()) {
                    self.found.push(path);
                }
                Ok(())
            }
            Part::Pattern { matcher, dotted } => {
                for entry in self.entries(directory)? {
                    if (entry.name.starts_with('.') && !dotted) || !matcher.is_match(&entry.name) {
                        continue;
                    }
                    let path = join(directory, &entry.name);
                    match entry.kind(&self.folder.join(&path)) {
                        Kind::File if rest.is_empty() => self.found.push(path),
                        Kind::Directory if !rest.is_empty() => self.visit(&path, rest)?,
                        _ => {}
                    }
                }
                Ok(())
            }
            Part::Any => {
                let Ok(about) = fs::metadata(self.folder.join(directory)) else {
                    return Ok(());
                };
                let identity = (about.dev(), about.ino());
                if self.inside.contains(&identity) {
                    return Ok(());
                }
                if !rest.is_empty() {
                    self.visit(directory, rest)?;
                }
                self.inside.push(identity);
                for entry in self.entries(directory)? {
                    if is_left_out(&entry.name) {
                        continue;
                    }
                    let path = join(directory, &entry.name);
                    match entry.kind(&self.folder.join(&path)) {
                        Kind::File if rest.is_empty() => self.found.push(path),
                        Kind::Directory => self.visit(&path, parts)?,
                        _ => {}
                    }
                }
                self.inside.pop();
                Ok(())
            }
        }
    }

    /// A directory that is not there has nothing in it: patterns match what exists.
    fn entries(&self, directory: &str) -> Result<Vec<Entry>, DataError> {
        let path = self.folder.join(directory);
        let unreadable = |cause| DataError::Unreadable { path: path.display().to_string(), within: None, cause };
        let listing = match fs::read_dir(&path) {
            Ok(listing) => listing,
            Err(cause) if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(vec![]),
            Err(cause) => return Err(unreadable(cause)),
        };
        let mut entries = Vec::new();
        for entry in listing {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            let name = entry.file_name().into_string().map_err(|_| DataError::NotUtf8 { path: entry.path() })?;
            entries.push(Entry { name, kind });
        }
        Ok(entries)
    }
}

struct Entry {
    name: String,
    kind: fs::FileType,
}

enum Kind {
    File,
    Directory,
    Other,
}

impl Entry {
    /// Links are looked through; a link to nothing is nothing.
    fn kind(&self, path: &Path) -> Kind {
        if self.kind.is_file() {
            Kind::File
        } else if self.kind.is_dir() {
            Kind::Directory
        } else if self.kind.is_symlink() {
            match fs::metadata(path) {
                Ok(about) if about.is_file() => Kind::File,
                Ok(about) if about.is_dir() => Kind::Directory,
                _ => Kind::Other,
            }
        } else {
            Kind::Other
        }
    }
}

/// A scheme and `://`, as in the entries of a workflow.
pub(super) fn is_url(place: &str) -> bool {
    let scheme = place.split_once("://").map_or("", |(scheme, _)| scheme);
    !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        "/" => format!("/{name}"),
        _ => format!("{directory}/{name}"),
    }
}

pub(super) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => "",
    }
}

/// Without `.` and empty components. `..` stays: behind a link it is not where it seems.
pub(super) fn tidy(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, parts.join("/"))
}

/// Where the sandbox shows a file. What lies beside the workflow keeps its place. What lies elsewhere
/// goes under the name of its entry, so that files of two entries never meet.
pub(super) fn shown(folder: &Path, name: &str, base: &str, from: &str) -> String {
    let place = resolved(folder, from);
    let here = resolved(folder, "");
    if let Some(inside) = below(&here, &place) {
        return inside.to_owned();
    }
    let base = resolved(folder, base);
    let rest = below(&base, &place).unwrap_or_else(|| place.trim_start_matches('/'));
    format!("{name}/{rest}")
}

pub(super) fn below<'a>(base: &str, path: &'a str) -> Option<&'a str> {
    if base == "/" {
        return path.strip_prefix('/');
    }
    path.strip_prefix(base)?.strip_prefix('/')
}

/// Absolute, with `..` taken back by the text alone.
fn resolved(folder: &Path, path: &str) -> String {
    let folder = folder.to_string_lossy();
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The first folder on the way that is not there, or what else may have gone wrong.
pub(super) fn hint(folder: &Path, path: &str) -> String {
    if path.starts_with('~') {
        return "`~` is not expanded: write the whole path".to_owned();
    }
    let mut above = parent(path);
    let mut missing = None;
    while !above.is_empty() && above != "/" && !folder.join(above).exists() {
        missing = Some(above);
        above = parent(above);
    }
    match missing {
        Some(directory) => format!("There is no folder `{directory}` either; paths are relative to the workflow file"),
        None => "Check the spelling; paths are relative to the workflow file".to_owned(),
    }
}
